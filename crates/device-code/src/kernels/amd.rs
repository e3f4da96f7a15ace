//! Kernels of code objects for AMD's GPUs: their metadata, descriptors and symbols (LLVM's AMDGPU usage guide, "Code Object
//! Metadata").

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::ops::Range;

use codecs::msgpack::{self, Reader, Value};
use object::elf::{PT_NOTE, SHT_NOTE};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use target_id::TargetId;

use super::amd_symbols::Symbols;
use super::elf::Elf;
use super::{Argument, Kernel, KernelKind, Kernels, MOST_KERNELS, Stored, Version, note};
use crate::elf::LE;
use crate::fault::Fault;
use crate::notes;

/// The note of metadata since version 3.
const NT_AMDGPU_METADATA: u32 = 32;
/// The version of the ABI of code objects of version 6.
const NEWEST_ABI: u8 = 4;
/// The least bytes of metadata for a kernel. Real kernels have some hundred.
const LEAST_OF_KERNEL: u64 = 32;
const ELFOSABI_AMDGPU_HSA: u8 = 64;
const ELFOSABI_AMDGPU_PAL: u8 = 65;
const ELFOSABI_AMDGPU_MESA3D: u8 = 66;

pub(super) fn read<'a>(image: &'a [u8], found: &mut Kernels<'a>) {
    let Some(elf) = Elf::read(image, &mut found.faults) else { return };
    found.is_relocatable = elf.is_relocatable();
    match elf.os_abi() {
        ELFOSABI_AMDGPU_HSA => {
            let version = elf.known_abi_version(NEWEST_ABI, &mut found.faults);
            // Any byte may be there.
            found.version = version.checked_add(2).map(Version::CodeObject);
        }
        // Shaders have metadata of another kind.
        ELFOSABI_AMDGPU_PAL | ELFOSABI_AMDGPU_MESA3D => return,
        _ => {}
    }
    let symbols = Symbols::read(&elf);
    if found.version == Some(Version::CodeObject(2)) {
        found.kernels = Some(symbols.kernels_of_version_2(&elf).take(MOST_KERNELS).collect());
        return;
    }
    let mut kernels = Vec::new();
    let mut is_whole = false;
    if let Some((offset, metadata)) = metadata(&elf, &mut found.faults) {
        let mut reading = Metadata { kernels: &mut kernels, faults: &mut found.faults };
        match reading.read(metadata, offset) {
            Ok(()) => is_whole = true,
            Err(fault) => note(&mut found.faults, fault),
        }
    }
    // Kernels that metadata does not describe, because it is missing or malformed, are known by their descriptors.
    if !is_whole || kernels.is_empty() {
        let known: BTreeSet<&[u8]> = kernels.iter().map(|(kernel, _)| kernel.name).collect();
        let more: Vec<_> = symbols.descriptors().filter(|name| !known.contains(name)).collect();
        let more = more.into_iter().take(MOST_KERNELS - kernels.len());
        kernels.extend(more.map(|name| (Kernel { name, ..Kernel::default() }, None)));
    }
    let id = TargetId::from_elf_flags(elf.header.e_flags(LE).0, elf.abi_version());
    let processor = id.as_ref().map_or("", TargetId::processor);
    let kernels = kernels.into_iter().map(|(mut kernel, symbol)| {
        symbols.complete(&elf, &mut kernel, symbol, processor);
        kernel
    });
    found.kernels = Some(kernels.collect());
}

/// Returns the metadata of the first note which is not empty, and its place.
fn metadata<'a>(elf: &Elf<'a>, faults: &mut Vec<Fault>) -> Option<(u64, &'a [u8])> {
    let mut places = Vec::new();
    for (_, section) in elf.all().filter(|(_, section)| section.sh_type(LE) == SHT_NOTE) {
        match elf.data(section) {
            Ok(data) => places.push((section.sh_offset(LE), data)),
            Err(fault) => note(faults, fault),
        }
    }
    // A file without sections has the same notes as segments.
    if elf.sections.is_empty() {
        let segments = elf.header.program_headers(LE, elf.image).unwrap_or_else(|_| {
            let (expected, found) = ("the offset of the program headers", elf.header.e_phoff(LE));
            note(faults, Fault { offset: 0x20, expected, found });
            &[]
        });
        let segments = segments.iter().filter(|segment| segment.p_type(LE) == PT_NOTE);
        places.extend(
            segments.filter_map(|segment| {
                Some((segment.p_offset(LE), segment.data(LE, elf.image).ok()?))
            }),
        );
    }
    // Notes that share bytes are read as often as the image is long.
    let mut left = elf.image.len();
    let mut found: Option<(u64, &[u8])> = None;
    for (start, bytes) in places {
        let Some(more) = left.checked_sub(bytes.len()) else { break };
        left = more;
        let mut rest = bytes;
        while let Some((owner, kind, description)) = notes::next(&mut rest) {
            let is_it =
                owner == b"AMDGPU\0" && kind == NT_AMDGPU_METADATA && !description.is_empty();
            if !is_it {
                continue;
            }
            let at = description.as_ptr().addr() - bytes.as_ptr().addr();
            let offset = start + at as u64;
            if found.is_some() {
                note(faults, Fault { offset, expected: "one note of metadata", found: 2 });
                return found;
            }
            found = Some((offset, description));
        }
    }
    found
}

/// Reads the next value.
fn next<'a>(reader: &mut Reader<'a>) -> Result<Value<'a>, Fault> {
    reader.next().map_err(fault)
}

/// Passes over a value with all of its members.
fn skip(reader: &mut Reader<'_>) -> Result<(), Fault> {
    reader.skip().map_err(fault)
}

fn fault(error: msgpack::Error) -> Fault {
    let (expected, found) = match error.kind {
        msgpack::ErrorKind::Counted { members, .. } => {
            ("an array or a map that ends in the note", members)
        }
        msgpack::ErrorKind::Truncated { expected, .. } => {
            ("a value that ends in the note", expected)
        }
        _ => ("a value of MessagePack", 0xc1),
    };
    Fault { offset: error.offset, expected, found }
}

/// Returns the place of the target's name in the metadata.
pub(super) fn place_of_target(image: &[u8]) -> Option<Range<usize>> {
    let elf = Elf::read(image, &mut Vec::new())?;
    let (offset, metadata) = metadata(&elf, &mut Vec::new())?;
    let reader = &mut Reader::new(metadata, offset);
    let Value::Map(members) = reader.next().ok()? else { return None };
    for _ in 0..members {
        if reader.next().ok()? != Value::Text(b"amdhsa.target") {
            reader.skip().ok()?;
            continue;
        }
        let Value::Text(name) = reader.next().ok()? else { return None };
        let end = usize::try_from(reader.offset()).ok()?;
        return Some(end.checked_sub(name.len())?..end);
    }
    None
}

/// The metadata while it is read.
struct Metadata<'k, 'a> {
    /// Kernels with the names of their descriptors.
    kernels: &'k mut Vec<(Kernel<'a>, Option<&'a [u8]>)>,
    faults: &'k mut Vec<Fault>,
}

impl<'a> Metadata<'_, 'a> {
    fn read(&mut self, bytes: &'a [u8], offset: u64) -> Result<(), Fault> {
        let reader = &mut Reader::new(bytes, offset);
        let mut is_found = false;
        for _ in 0..self.map(reader)? {
            match self.key(reader)? {
                Some(b"amdhsa.kernels") if !is_found => {
                    is_found = true;
                    let most = bytes.len() as u64 / LEAST_OF_KERNEL;
                    let kernels = self.array(reader)?;
                    if kernels > most.min(MOST_KERNELS as u64) {
                        let expected = "an array of kernels that ends in the note";
                        return Err(Fault { offset: reader.offset(), expected, found: kernels });
                    }
                    for _ in 0..kernels {
                        self.kernel(reader)?;
                    }
                }
                Some(b"amdhsa.kernels") => self.again(reader)?,
                _ => skip(reader)?,
            }
        }
        if !reader.is_at_end() {
            let found = offset + bytes.len() as u64 - reader.offset();
            note(
                self.faults,
                Fault { offset: reader.offset(), expected: "the end of the metadata", found },
            );
        }
        Ok(())
    }

    fn kernel(&mut self, reader: &mut Reader<'a>) -> Result<(), Fault> {
        let mut kernel = Kernel::default();
        let (mut name, mut symbol, mut kind, mut dynamic_stack) = (None, None, None, None);
        for _ in 0..self.map(reader)? {
            let at = reader.offset();
            let key = self.key(reader)?.unwrap_or(b"");
            match key {
                b".name" => self.set_text(reader, &mut name)?,
                b".symbol" => self.set_text(reader, &mut symbol)?,
                b".kind" => self.set_text(reader, &mut kind)?,
                b".kernarg_segment_size" => self.set(reader, &mut kernel.arguments_size)?,
                b".group_segment_fixed_size" => self.set(reader, &mut kernel.group_memory)?,
                b".private_segment_fixed_size" => {
                    let mut size = kernel.private_memory.known();
                    self.set(reader, &mut size)?;
                    kernel.private_memory = size.map_or(Stored::Absent, Stored::Known);
                }
                b".wavefront_size" => self.set(reader, &mut kernel.wave_size)?,
                b".sgpr_count" => self.set(reader, &mut kernel.scalars)?,
                b".vgpr_count" => self.set(reader, &mut kernel.registers)?,
                b".agpr_count" => self.set(reader, &mut kernel.accumulators)?,
                b".sgpr_spill_count" => self.set(reader, &mut kernel.scalar_spills)?,
                b".vgpr_spill_count" => self.set(reader, &mut kernel.vector_spills)?,
                b".max_flat_workgroup_size" => self.set(reader, &mut kernel.max_group_size)?,
                b".reqd_workgroup_size" if kernel.required_group_size.is_none() => {
                    kernel.required_group_size = self.size(reader)?;
                }
                b".uses_dynamic_stack" => self.set(reader, &mut dynamic_stack)?,
                b".args" if kernel.arguments.is_none() => {
                    let mut arguments = Vec::new();
                    for _ in 0..self.array(reader)? {
                        arguments.extend(self.argument(reader)?);
                    }
                    kernel.arguments = Some(arguments);
                }
                b".reqd_workgroup_size" | b".args" => self.again(reader)?,
                b"" => {
                    note(
                        self.faults,
                        Fault { offset: at, expected: "a key that is text", found: 0 },
                    );
                    skip(reader)?;
                }
                _ => skip(reader)?,
            }
        }
        kernel.name = name.unwrap_or(b"");
        kernel.kind = match kind {
            Some(b"init") => KernelKind::Init,
            Some(b"fini") => KernelKind::Fini,
            _ => KernelKind::Kernel,
        };
        if dynamic_stack == Some(1_u8) {
            kernel.private_memory = Stored::Unknown(kernel.private_memory.known().unwrap_or(0));
        }
        self.kernels.push((kernel, symbol));
        Ok(())
    }

    /// Reads an argument; `None` for one that the source does not have, or that has no size.
    fn argument(&mut self, reader: &mut Reader<'a>) -> Result<Option<Argument<'a>>, Fault> {
        let (mut name, mut kind, mut offset, mut size) = (None, None, None, None);
        for _ in 0..self.map(reader)? {
            match self.key(reader)?.unwrap_or(b"") {
                b".name" => self.set_text(reader, &mut name)?,
                b".value_kind" => self.set_text(reader, &mut kind)?,
                b".offset" => self.set(reader, &mut offset)?,
                b".size" => self.set(reader, &mut size)?,
                _ => skip(reader)?,
            }
        }
        let is_hidden = kind.is_some_and(|kind: &[u8]| kind.starts_with(b"hidden_"));
        let place = offset.zip(size).filter(|_| !is_hidden);
        Ok(place.map(|(offset, size)| Argument { name, kind, offset, size }))
    }

    fn map(&mut self, reader: &mut Reader<'a>) -> Result<u64, Fault> {
        self.members(reader, "a map", |value| match value {
            Value::Map(count) => Some(count.into()),
            _ => None,
        })
    }

    fn array(&mut self, reader: &mut Reader<'a>) -> Result<u64, Fault> {
        self.members(reader, "an array", |value| match value {
            Value::Array(count) => Some(count.into()),
            _ => None,
        })
    }

    /// Returns the number of members; 0, with a fault, for a value of another kind.
    fn members(
        &mut self,
        reader: &mut Reader<'a>,
        expected: &'static str,
        count: impl Fn(Value<'a>) -> Option<u64>,
    ) -> Result<u64, Fault> {
        let mut ahead = *reader;
        if let Some(count) = count(next(&mut ahead)?) {
            *reader = ahead;
            return Ok(count);
        }
        note(self.faults, Fault { offset: reader.offset(), expected, found: 0 });
        skip(reader)?;
        Ok(0)
    }

    /// Reads a key; `None` for one that is not text.
    fn key(&mut self, reader: &mut Reader<'a>) -> Result<Option<&'a [u8]>, Fault> {
        let mut ahead = *reader;
        match next(&mut ahead)? {
            Value::Text(key) => {
                *reader = ahead;
                Ok(Some(key))
            }
            _ => {
                skip(reader)?;
                Ok(None)
            }
        }
    }

    fn text(&mut self, reader: &mut Reader<'a>) -> Result<Option<&'a [u8]>, Fault> {
        let offset = reader.offset();
        let key = self.key(reader)?;
        if key.is_none() {
            note(self.faults, Fault { offset, expected: "text", found: 0 });
        }
        Ok(key)
    }

    /// Reads text. The first one counts.
    fn set_text(
        &mut self,
        reader: &mut Reader<'a>,
        slot: &mut Option<&'a [u8]>,
    ) -> Result<(), Fault> {
        if slot.is_some() {
            return self.again(reader);
        }
        *slot = self.text(reader)?;
        Ok(())
    }

    /// Passes over the value of a key that was there before.
    fn again(&mut self, reader: &mut Reader<'a>) -> Result<(), Fault> {
        note(self.faults, Fault { offset: reader.offset(), expected: "a key once", found: 2 });
        skip(reader)
    }

    /// Reads a number. The first one counts.
    fn set<N: TryFrom<u64>>(
        &mut self,
        reader: &mut Reader<'a>,
        slot: &mut Option<N>,
    ) -> Result<(), Fault> {
        let offset = reader.offset();
        let mut ahead = *reader;
        let number = match next(&mut ahead)? {
            Value::Unsigned(number) => N::try_from(number).map_err(|_| number),
            Value::Bool(is_set) => N::try_from(is_set.into()).map_err(|_| 1),
            _ => Err(0),
        };
        match number {
            // Arrays and maps have members.
            Err(_) => skip(reader)?,
            Ok(_) => *reader = ahead,
        }
        match number {
            Ok(number) if slot.is_none() => *slot = Some(number),
            Ok(_) => note(self.faults, Fault { offset, expected: "a key once", found: 2 }),
            Err(found) => note(self.faults, Fault { offset, expected: "a number", found }),
        }
        Ok(())
    }

    /// Reads three numbers.
    fn size(&mut self, reader: &mut Reader<'a>) -> Result<Option<[u32; 3]>, Fault> {
        let offset = reader.offset();
        let count = self.array(reader)?;
        let mut numbers = [None; 3];
        for n in 0..count {
            match usize::try_from(n).ok().and_then(|n| numbers.get_mut(n)) {
                Some(number) => self.set::<u32>(reader, number)?,
                None => skip(reader)?,
            }
        }
        let size = match numbers {
            [Some(x), Some(y), Some(z)] if count == 3 => Some([x, y, z]),
            _ => None,
        };
        if size.is_none() {
            note(self.faults, Fault { offset, expected: "three numbers", found: 0 });
        }
        Ok(size)
    }
}
