//! Packages that compression may change: whoever reads them decides.
//!
//! LLVM 24 reads compressed packages, of version 3, where its linker wrapper and tools look for them. LLVM 23 and older
//! read no version 3. A package in the memory of a program is read by a runtime: the wrapper that LLVM 24 makes for
//! OpenMP and SYCL hands out pointers into it, so it has to be plain.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;

use object::read::coff::CoffHeader;
use object::read::elf::{FileHeader, SectionHeader};
use object::read::{FileKind, ReadRef};
use object::{Endianness, elf, pe};

use super::compress::CompressOptions;
use super::dispatch::Host;
use super::survey::Node;
use super::{Contents, EditError};
use crate::host::{is_hip_section, with_object_reader};
use crate::model::{ContainerKind, Location};
use crate::source::Source;

/// Offset of the entries in an offload binary that can be compressed: its header leaves no choice.
const ENTRIES_AT: u64 = 40;

/// A plain package, as far as compression asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PackageForm {
    version: u32,
    entries_at: u64,
    reader: Reader,
}

/// The reader of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Reader {
    /// Tools: it lies in a file of packages, or in a section that is never loaded.
    Tools,
    /// HIP's runtime.
    Hip,
    /// Another runtime.
    Program,
}

/// The outcome of compression for a plain package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Treatment {
    Compress,
    /// As `Compress`; it becomes version 3 by that.
    Upgrade,
    /// It stays: those who read its version need not read version 3.
    Older,
    /// It stays: a runtime reads it that may not decompress it.
    Registered,
}

impl PackageForm {
    pub(super) fn treatment(self, options: &CompressOptions) -> Treatment {
        match (self.reader, self.version) {
            (Reader::Program, _) => Treatment::Registered,
            (_, 3) if self.entries_at == ENTRIES_AT => Treatment::Compress,
            (Reader::Tools, _) if options.upgrade_packages => Treatment::Upgrade,
            _ => Treatment::Older,
        }
    }
}

impl Contents {
    /// Finds out what reads the packages that are not compressed.
    pub(super) fn find_readers(&mut self, source: &mut Source<'_>) -> Result<(), EditError> {
        let mut found = Vec::new();
        in_file(source, &(0..self.size), &self.root, &mut found)?;
        for (container, form) in found {
            if let Some(container) = self.containers.get_mut(container) {
                container.package = Some(form);
            }
        }
        Ok(())
    }
}

fn is_package(node: &Node) -> bool {
    node.kind() == ContainerKind::OffloadBinary
        && node.compression.is_none()
        && matches!(node.location, Location::File(_))
}

fn in_file(
    source: &mut Source<'_>,
    window: &Range<u64>,
    nodes: &[Node],
    found: &mut Vec<(usize, PackageForm)>,
) -> Result<(), EditError> {
    let mut never_loaded = None;
    for node in nodes {
        match node.kind() {
            ContainerKind::OffloadBinary => form(source, node, Reader::Tools, found)?,
            ContainerKind::Member if matches!(node.location, Location::File(_)) => {
                in_file(source, &node.range, &node.children, found)?;
            }
            ContainerKind::Section if node.children.iter().any(is_package) => {
                let reader = match node.segment.name() {
                    name if is_hip_section(name.as_bytes()) => Reader::Hip,
                    _ => {
                        let sections = match never_loaded.take() {
                            Some(sections) => sections,
                            None => sections_never_loaded(source, window)?,
                        };
                        let is_found = sections.contains(&node.range.start);
                        never_loaded = Some(sections);
                        if is_found { Reader::Tools } else { Reader::Program }
                    }
                };
                for package in &node.children {
                    form(source, package, reader, found)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn form(
    source: &mut Source<'_>,
    node: &Node,
    reader: Reader,
    found: &mut Vec<(usize, PackageForm)>,
) -> io::Result<()> {
    let Some(container) = node.container.filter(|_| is_package(node)) else { return Ok(()) };
    let header = source.peek(&node.range, 24)?;
    if let (Some(version), Some(entries)) = (header.get(4..8), header.get(16..24))
        && let (Ok(version), Ok(entries)) = (version.try_into(), entries.try_into())
    {
        let (version, entries_at) = (u32::from_le_bytes(version), u64::from_le_bytes(entries));
        found.push((container, PackageForm { version, entries_at, reader }));
    }
    Ok(())
}

/// Returns where sections start that no linked file loads: they are no part of its memory, or a linker drops them.
fn sections_never_loaded(
    source: &mut Source<'_>,
    window: &Range<u64>,
) -> io::Result<BTreeSet<u64>> {
    // Mach-O and WebAssembly have no packages that are edited.
    if matches!(Host::of(source, window), Ok(Host::Unsupported(_))) {
        return Ok(BTreeSet::new());
    }
    let starts = with_object_reader(source, window, |data| match FileKind::parse(data) {
        Ok(FileKind::Elf32) => of_elf::<elf::FileHeader32<Endianness>>(data),
        Ok(FileKind::Elf64) => of_elf::<elf::FileHeader64<Endianness>>(data),
        Ok(FileKind::Coff) => of_coff::<pe::ImageFileHeader>(data),
        Ok(FileKind::CoffBig) => of_coff::<pe::AnonObjectHeaderBigobj>(data),
        _ => Ok(Vec::new()),
    })?;
    // A file whose headers cannot be read twice is not changed.
    let starts = starts.unwrap_or_default().into_iter();
    Ok(starts.map(|start| window.start.saturating_add(start)).collect())
}

fn of_elf<'d, Elf: FileHeader<Endian = Endianness>>(
    data: impl ReadRef<'d>,
) -> object::read::Result<Vec<u64>> {
    let header = Elf::parse(data)?;
    let endian = header.endian()?;
    let table = header.sections(endian, data)?;
    let never_loaded = table.iter().filter(|section| {
        let flags = section.sh_flags(endian).0;
        flags & elf::SHF_ALLOC.0 == 0 || flags & elf::SHF_EXCLUDE.0 != 0
    });
    Ok(never_loaded.map(|section| section.sh_offset(endian).into()).collect())
}

fn of_coff<'d, Coff: CoffHeader>(data: impl ReadRef<'d>) -> object::read::Result<Vec<u64>> {
    let mut offset = 0;
    let header = Coff::parse(data, &mut offset)?;
    let table = header.sections(data, offset)?;
    let dropped = table.iter().filter(|section| {
        section.characteristics.get(object::LittleEndian).0 & pe::IMAGE_SCN_LNK_REMOVE.0 != 0
    });
    Ok(dropped.map(|s| s.pointer_to_raw_data.get(object::LittleEndian).into()).collect())
}
