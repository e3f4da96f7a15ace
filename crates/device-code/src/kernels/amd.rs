//! Kernels of code objects for AMD's GPUs: their metadata, descriptors and symbols (LLVM's AMDGPU usage guide, "Code Object
//! Metadata").

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use object::elf::{PT_NOTE, SHT_NOTE, STT_FUNC, STT_OBJECT, SymbolType};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};
use target_id::TargetId;

use super::descriptor::{self, Descriptor};
use super::elf::{Elf, Symbol64};
use super::msgpack::{Reader, Value};
use super::{Argument, Kernel, KernelKind, Kernels, Stored, Version};
use crate::elf::LE;
use crate::fault::Fault;
use crate::notes;

/// The note of metadata since version 3.
const NT_AMDGPU_METADATA: u32 = 32;
/// A kernel of a code object of version 2.
const STT_AMDGPU_HSA_KERNEL: SymbolType = SymbolType(10);

pub(super) fn read<'a>(image: &'a [u8], found: &mut Kernels<'a>) {
    let Some(elf) = Elf::read(image, &mut found.faults) else { return };
    found.is_relocatable = elf.is_relocatable();
    let version = elf.abi_version().saturating_add(2);
    found.version = Some(Version::CodeObject(version));
    let symbols = Symbols::read(&elf);
    if version == 2 {
        let kernels =
            symbols.all.iter().filter(|(_, symbol)| symbol.st_type() == STT_AMDGPU_HSA_KERNEL);
        found.kernels =
            Some(kernels.map(|(name, _)| Kernel { name, ..Kernel::default() }).collect());
        return;
    }
    let mut kernels = Vec::new();
    if let Some((offset, metadata)) = metadata(&elf, &mut found.faults) {
        let mut reading = Metadata { kernels: &mut kernels, faults: &mut found.faults };
        if let Err(fault) = reading.read(metadata, offset) {
            found.faults.push(fault);
        }
    }
    let id = TargetId::from_elf_flags(elf.header.e_flags(LE).0, elf.abi_version());
    let processor = id.as_ref().map_or("", TargetId::processor);
    if kernels.is_empty() {
        kernels
            .extend(symbols.descriptors().map(|name| (Kernel { name, ..Kernel::default() }, None)));
    }
    let kernels = kernels.into_iter().map(|(mut kernel, symbol)| {
        symbols.complete(&elf, &mut kernel, symbol, processor);
        kernel
    });
    found.kernels = Some(kernels.collect());
}

/// Returns the metadata and its place: that of the first note which is not empty.
fn metadata<'a>(elf: &Elf<'a>, faults: &mut Vec<Fault>) -> Option<(u64, &'a [u8])> {
    let mut places = Vec::new();
    for (_, section) in elf.all().filter(|(_, section)| section.sh_type(LE) == SHT_NOTE) {
        match elf.data(section) {
            Ok(data) => places.push((section.sh_offset(LE), data)),
            Err(fault) => faults.push(fault),
        }
    }
    // A file without sections has the same notes as segments.
    if elf.sections.is_empty() {
        let segments = elf.header.program_headers(LE, elf.image).unwrap_or_default();
        let segments = segments.iter().filter(|segment| segment.p_type(LE) == PT_NOTE);
        places.extend(
            segments.filter_map(|segment| {
                Some((segment.p_offset(LE), segment.data(LE, elf.image).ok()?))
            }),
        );
    }
    places.into_iter().find_map(|(start, bytes)| {
        let mut rest = bytes;
        while let Some((owner, kind, description)) = notes::next(&mut rest) {
            let is_it =
                owner == b"AMDGPU\0" && kind == NT_AMDGPU_METADATA && !description.is_empty();
            if is_it {
                let at = description.as_ptr().addr().saturating_sub(bytes.as_ptr().addr());
                return Some((start.saturating_add(at as u64), description));
            }
        }
        None
    })
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
                    for _ in 0..self.array(reader)? {
                        self.kernel(reader)?;
                    }
                }
                _ => reader.skip()?,
            }
        }
        if !reader.is_at_end() {
            let found = offset.saturating_add(bytes.len() as u64) - reader.offset();
            self.faults.push(Fault {
                offset: reader.offset(),
                expected: "the end of the metadata",
                found,
            });
        }
        Ok(())
    }

    fn kernel(&mut self, reader: &mut Reader<'a>) -> Result<(), Fault> {
        let mut kernel = Kernel::default();
        let (mut symbol, mut has_dynamic_stack) = (None, false);
        for _ in 0..self.map(reader)? {
            let at = reader.offset();
            let key = self.key(reader)?.unwrap_or_default();
            match key {
                b".name" => kernel.name = self.text(reader)?.unwrap_or_default(),
                b".symbol" => symbol = self.text(reader)?,
                b".kind" => {
                    kernel.kind = match self.text(reader)? {
                        Some(b"init") => KernelKind::Init,
                        Some(b"fini") => KernelKind::Fini,
                        _ => KernelKind::Kernel,
                    }
                }
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
                b".reqd_workgroup_size" => kernel.required_group_size = self.size(reader)?,
                b".uses_dynamic_stack" => has_dynamic_stack = reader.next()? == Value::Bool(true),
                b".args" if kernel.arguments.is_none() => {
                    let mut arguments = Vec::new();
                    for _ in 0..self.array(reader)? {
                        arguments.extend(self.argument(reader)?);
                    }
                    kernel.arguments = Some(arguments);
                }
                b"" => {
                    self.faults.push(Fault {
                        offset: at,
                        expected: "a key that is text",
                        found: 0,
                    });
                    reader.skip()?;
                }
                _ => reader.skip()?,
            }
        }
        if has_dynamic_stack {
            kernel.private_memory = Stored::Unknown(kernel.private_memory.known().unwrap_or(0));
        }
        self.kernels.push((kernel, symbol));
        Ok(())
    }

    /// Reads an argument; `None` for one that the source does not have.
    fn argument(&mut self, reader: &mut Reader<'a>) -> Result<Option<Argument<'a>>, Fault> {
        let mut argument = Argument::default();
        let (mut offset, mut size) = (None, None);
        for _ in 0..self.map(reader)? {
            match self.key(reader)?.unwrap_or_default() {
                b".name" => argument.name = self.text(reader)?,
                b".value_kind" => argument.kind = self.text(reader)?,
                b".offset" => self.set(reader, &mut offset)?,
                b".size" => self.set(reader, &mut size)?,
                _ => reader.skip()?,
            }
        }
        let is_hidden = argument.kind.is_some_and(|kind| kind.starts_with(b"hidden_"));
        (argument.offset, argument.size) = (offset.unwrap_or(0), size.unwrap_or(0));
        Ok((!is_hidden).then_some(argument))
    }

    fn map(&mut self, reader: &mut Reader<'a>) -> Result<u64, Fault> {
        self.members(reader, "a map", |value| match value {
            Value::Map(count) => Some(count),
            _ => None,
        })
    }

    fn array(&mut self, reader: &mut Reader<'a>) -> Result<u64, Fault> {
        self.members(reader, "an array", |value| match value {
            Value::Array(count) => Some(count),
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
        if let Some(count) = count(ahead.next()?) {
            *reader = ahead;
            return Ok(count);
        }
        self.faults.push(Fault { offset: reader.offset(), expected, found: 0 });
        reader.skip()?;
        Ok(0)
    }

    /// Reads a key; `None` for one that is not text.
    fn key(&mut self, reader: &mut Reader<'a>) -> Result<Option<&'a [u8]>, Fault> {
        let mut ahead = *reader;
        match ahead.next()? {
            Value::Text(key) => {
                *reader = ahead;
                Ok(Some(key))
            }
            _ => {
                reader.skip()?;
                Ok(None)
            }
        }
    }

    fn text(&mut self, reader: &mut Reader<'a>) -> Result<Option<&'a [u8]>, Fault> {
        let offset = reader.offset();
        let key = self.key(reader)?;
        if key.is_none() {
            self.faults.push(Fault { offset, expected: "text", found: 0 });
        }
        Ok(key)
    }

    /// Reads a number. The first one counts.
    fn set<N: TryFrom<u64>>(
        &mut self,
        reader: &mut Reader<'a>,
        slot: &mut Option<N>,
    ) -> Result<(), Fault> {
        let offset = reader.offset();
        let mut ahead = *reader;
        let number = match ahead.next()? {
            Value::Unsigned(number) => N::try_from(number).map_err(|_| number),
            Value::Bool(is_set) => N::try_from(is_set.into()).map_err(|_| 1),
            _ => Err(0),
        };
        reader.skip()?;
        match number {
            Ok(number) if slot.is_none() => *slot = Some(number),
            Ok(_) => self.faults.push(Fault { offset, expected: "a key once", found: 2 }),
            Err(found) => self.faults.push(Fault { offset, expected: "a number", found }),
        }
        Ok(())
    }

    /// Reads three numbers.
    fn size(&mut self, reader: &mut Reader<'a>) -> Result<Option<[u32; 3]>, Fault> {
        let offset = reader.offset();
        let mut numbers = Vec::new();
        for _ in 0..self.array(reader)? {
            let mut number: Option<u32> = None;
            self.set(reader, &mut number)?;
            numbers.extend(number);
        }
        let size = <[u32; 3]>::try_from(numbers).ok();
        if size.is_none() {
            self.faults.push(Fault { offset, expected: "three numbers", found: 0 });
        }
        Ok(size)
    }
}

/// The symbols of a file by name, and its functions by section and place.
struct Symbols<'a> {
    all: Vec<(&'a [u8], &'a Symbol64)>,
    /// Positions of the first symbol of each name.
    by_name: BTreeMap<&'a [u8], &'a Symbol64>,
    /// Sections and addresses of functions, in order.
    functions: Vec<(u16, u64)>,
}

impl<'a> Symbols<'a> {
    fn read(elf: &Elf<'a>) -> Self {
        let table = elf.loaded_symbols();
        let names =
            table.iter().filter_map(|symbol| Some((table.symbol_name(LE, symbol).ok()?, symbol)));
        let all: Vec<_> = names.filter(|(name, _)| !name.is_empty()).collect();
        let mut by_name = BTreeMap::new();
        for (name, symbol) in &all {
            by_name.entry(*name).or_insert(*symbol);
        }
        let functions = all.iter().filter(|(_, symbol)| symbol.st_type() == STT_FUNC);
        let mut functions: Vec<_> =
            functions.map(|(_, symbol)| (symbol.st_shndx(LE).0, symbol.st_value(LE))).collect();
        functions.sort_unstable();
        Symbols { all, by_name, functions }
    }

    /// Returns the names of kernels that have a descriptor.
    fn descriptors(&self) -> impl Iterator<Item = &'a [u8]> {
        let objects = self.all.iter().filter(|(_, symbol)| {
            symbol.st_type() == STT_OBJECT && symbol.st_size(LE) == descriptor::LEN
        });
        objects.filter_map(|(name, _)| name.strip_suffix(b".kd"))
    }

    /// Adds what descriptor and symbols say. Metadata comes first.
    fn complete(
        &self,
        elf: &Elf<'a>,
        kernel: &mut Kernel<'a>,
        symbol: Option<&'a [u8]>,
        processor: &str,
    ) {
        if let Some(function) =
            self.by_name.get(kernel.name).filter(|symbol| symbol.st_type() == STT_FUNC)
        {
            (kernel.code_size, kernel.is_code_size_estimated) = match function.st_size(LE) {
                0 => (self.to_next(elf, function), true),
                size => (Some(size), false),
            };
        }
        let mut name = kernel.name.to_vec();
        name.extend(b".kd");
        let found = self.by_name.get(symbol.unwrap_or(&name[..]));
        let bytes = found.and_then(|symbol| elf.bytes_of(symbol));
        let Some(descriptor) = bytes.and_then(|(_, bytes)| Descriptor::read(bytes)) else { return };
        kernel.registers_allocated = descriptor.registers(processor);
        kernel.wave_size = kernel.wave_size.or(Some(descriptor.wave_size()));
        kernel.group_memory = kernel.group_memory.or(Some(descriptor.group_segment.into()));
        if kernel.private_memory == Stored::Absent {
            let size = descriptor.private_segment.into();
            kernel.private_memory = if descriptor.has_dynamic_stack() {
                Stored::Unknown(size)
            } else {
                Stored::Known(size)
            };
        }
        // Before version 4 the field is reserved.
        let size = Some(descriptor.arguments.into()).filter(|size| *size != 0);
        kernel.arguments_size = kernel.arguments_size.or(size);
    }

    /// Returns the bytes from a function to the next one in its section, or to the end of that.
    fn to_next(&self, elf: &Elf<'_>, function: &Symbol64) -> Option<u64> {
        let (section, start) = (function.st_shndx(LE).0, function.st_value(LE));
        let next = self.functions.partition_point(|other| *other <= (section, start));
        let next = self.functions.get(next).filter(|(other, _)| *other == section);
        let end = match next {
            Some((_, next)) => *next,
            None => {
                let section = elf.section(section.into())?;
                section.sh_addr(LE).checked_add(section.sh_size(LE))?
            }
        };
        end.checked_sub(start)
    }
}
