//! Host files: ELF, COFF, PE and Mach-O, and which of their sections hold device code.

use std::io;
use std::ops::{ControlFlow, Range};

use byte_parts::Budget;
use byte_parts::elf::SHT_LLVM_OFFLOADING;
use device_code::FileFormat;
use object::read::elf::{FileHeader, SectionHeader};
use object::read::macho::{FatArch, MachHeader, MachOFatFile32, MachOFatFile64};
use object::read::{FileKind, ReadRef};
use object::{Endianness, Object, ObjectSection, elf, macho};

use crate::context::Context;
use crate::error::Error;
use crate::model::{ContainerKind, PathStep};
use crate::opened::{Children, Finds, Opened};
use crate::ranges::Ranges;
use crate::section::{Section, SectionContents, is_gcc_section};
use crate::sections::Sections;
use crate::source::Source;
use crate::text::lossy;
use crate::{bare, containers, sycl};

/// Section type of shared memory in relocatable cubins of NVIDIA's `ptxas`: the size is the size in memory, the file
/// has no bytes.
const SHT_CUDA_SHARED: u32 = 0x7000_000a;

/// Section types whose contents the ELF specification defines. Objects have a third of their sections of these types.
const TABLES: [elf::SectionType; 5] =
    [elf::SHT_RELA, elf::SHT_REL, elf::SHT_GROUP, elf::SHT_SYMTAB, elf::SHT_SYMTAB_SHNDX];

/// Sections of these names hold device code and nothing else. `.hip_fat`, `.nv_fatb` and `__nv_rel` are what is left of
/// longer names in the eight bytes of a PE section name.
const DEVICE_SECTIONS: [&str; 8] = [
    ".hip_fatbin",
    ".hip_fat",
    "__hip_fatbin",
    ".nv_fatbin",
    ".nv_fatb",
    "__nv_fatbin",
    "__nv_relfatbin",
    "__nv_rel",
];

pub(crate) struct Slice {
    name: String,
    start: u64,
    size: u64,
}

/// A section as its header names it.
pub(crate) struct NamedSection<'a> {
    pub(crate) name: &'a [u8],
    /// Offset and end in the host file.
    pub(crate) range: Range<u64>,
    pub(crate) contents: SectionContents,
}

impl NamedSection<'_> {
    /// Returns whether it is a bundle entry itself; such count when empty, too.
    pub(crate) fn is_bundle_entry(&self) -> bool {
        self.name.starts_with(bundle_format::MAGIC_TEXT.as_bytes())
    }
}

/// The list in the headers of a host file.
pub(crate) enum Parts {
    /// Sections that were handed out.
    Sections,
    Slices(Vec<Slice>),
    /// An ELF executable or library without section headers.
    Nothing,
    /// Sections whose names share bytes until they are too many.
    TooManyNames,
}

/// Opens the host file in the window; `None` if it is malformed, which is a finding then, or holds nothing.
pub(crate) fn open(
    cx: &mut Context<'_>,
    source: &mut Source<'_>,
    window: &Range<u64>,
    found: &mut Finds,
) -> io::Result<Option<Box<dyn Children>>> {
    // The scan looks into all of them.
    let mut listed = Listed::read(cx, source, window, cx.options.scan)?;
    let has_tables = listed.sections.iter().any(|it| sycl::may_have_tables(it.name.as_bytes()));
    if has_tables && listed.are_some_left_out {
        listed = Listed::read(cx, source, window, true)?;
    }
    let Listed { parts, sections, are_some_left_out, names } = listed;
    cx.names.spend(names);
    let fault = match parts {
        Ok(Parts::Slices(slices)) => return Ok(Some(Box::new(Slices::new(window, slices)))),
        Ok(Parts::Sections) => None,
        // Code for a GPU is loaded by its segments.
        Ok(Parts::Nothing) if bare::is_device_elf(FileFormat::sniff(&source.peek(window, 20)?)) => {
            return Ok(None);
        }
        Ok(Parts::Nothing) => (!cx.options.scan).then(Error::no_section_headers),
        Ok(Parts::TooManyNames) => {
            found.finding(window.start, Error::too_many_names(cx.names.limit()));
            return Ok(None);
        }
        Err(error) => {
            found.finding(window.start, error);
            return Ok(None);
        }
    };
    if sections.is_empty() && are_some_left_out {
        // Without a search, that is.
        cx.unsearched += usize::from(!source.is_start());
        return Ok(None);
    }
    let sycl = sycl::tables(cx, source, window, &sections, found)?;
    let sections = Sections::new(cx, source, window, sections, sycl)?;
    Ok(Some(Box::new(sections.with_fault(fault))))
}

/// The headers of a host file.
struct Listed {
    parts: Result<Parts, Error>,
    sections: Vec<Section>,
    are_some_left_out: bool,
    /// Bytes of names that were looked at.
    names: u64,
}

impl Listed {
    /// Reads the headers. Leaves out sections that certainly hold nothing, unless all are asked for.
    fn read(
        cx: &Context<'_>,
        source: &mut Source<'_>,
        window: &Range<u64>,
        all: bool,
    ) -> io::Result<Self> {
        let available = window.end - window.start;
        let (left, starts) = (cx.names.left(), cx.options.section_starts);
        let mut names = Budget::new(left);
        let (mut sections, mut are_some_left_out) = (Vec::new(), false);
        let parts = source.with_headers(window, |data| {
            let memory = data.in_memory();
            parts(data, &mut names, &mut |section| {
                if all || may_hold(&section, available, memory, starts) {
                    let NamedSection { name, range, contents } = section;
                    sections.push(Section { name: lossy(name), range, contents });
                } else {
                    are_some_left_out = true;
                }
                ControlFlow::Continue(())
            })
        })?;
        Ok(Listed { parts, sections, are_some_left_out, names: left - names.left() })
    }
}

/// Returns whether a section may hold a container or be a fault, by its header and its first bytes.
fn may_hold(
    section: &NamedSection<'_>,
    available: u64,
    memory: Option<&[u8]>,
    starts: bool,
) -> bool {
    let starts_so = |memory| containers::may_start_at(memory, section.range.start);
    let may_start = starts && section.contents == SectionContents::Unknown;
    section.contents == SectionContents::DeviceCode
        || section.is_bundle_entry()
        || section.range.end > available
        || is_gcc_section(section.name)
        || sycl::may_have_tables(section.name)
        || may_start && memory.is_none_or(starts_so)
}

/// The slices of a universal file.
struct Slices {
    window: Range<u64>,
    slices: std::vec::IntoIter<Slice>,
    index: usize,
    walked: Ranges,
}

impl Slices {
    fn new(window: &Range<u64>, slices: Vec<Slice>) -> Self {
        let (slices, walked) = (slices.into_iter(), Ranges::default());
        Slices { window: window.clone(), slices, index: 0, walked }
    }
}

impl Children for Slices {
    fn next(
        &mut self,
        _: &mut Context<'_>,
        _: &mut Source<'_>,
        found: &mut Finds,
    ) -> io::Result<bool> {
        let Some(slice) = self.slices.next() else { return Ok(false) };
        let base = self.window.start;
        let available = self.window.end - base;
        // An end too large for a number lies past the end of the file, too.
        let (start, end) = (slice.start, slice.start.saturating_add(slice.size));
        if end > available || !self.walked.insert(&(start..end)) {
            let index = self.index;
            let message = format!(
                "slice {index} of the universal file lies at {start:#x}..{end:#x}: it overlaps another or lies beyond the end at {available:#x}"
            );
            found.finding(base, Error::malformed(ContainerKind::Slice, message));
        } else {
            let inner = base + start..base + end;
            let step = PathStep::new(ContainerKind::Slice, slice.name);
            found.container(Opened::file(step, inner));
        }
        self.index += 1;
        Ok(true)
    }
}

/// Reads the headers of a host file, and hands out one section after the other until `each` stops it.
pub(crate) fn parts<'d>(
    data: impl ReadRef<'d>,
    names: &mut Budget,
    each: &mut dyn FnMut(NamedSection<'_>) -> ControlFlow<()>,
) -> Result<Parts, Error> {
    let malformed = |format| move |error: object::read::Error| Error::of_object(format, error);
    match FileKind::parse(data).map_err(malformed("host"))? {
        FileKind::Elf32 => elf_parts::<elf::FileHeader32<Endianness>>(data, names, each)
            .map_err(|error| malformed_elf::<elf::FileHeader32<Endianness>>(data, error)),
        FileKind::Elf64 => elf_parts::<elf::FileHeader64<Endianness>>(data, names, each)
            .map_err(|error| malformed_elf::<elf::FileHeader64<Endianness>>(data, error)),
        FileKind::Coff | FileKind::CoffBig => {
            other_parts(data, names, each).map_err(malformed("COFF"))
        }
        FileKind::Pe32 | FileKind::Pe64 => other_parts(data, names, each).map_err(malformed("PE")),
        FileKind::MachO32 => check_commands::<macho::MachHeader32<Endianness>>(data)
            .and_then(|()| other_parts(data, names, each))
            .map_err(malformed("Mach-O")),
        FileKind::MachO64 => check_commands::<macho::MachHeader64<Endianness>>(data)
            .and_then(|()| other_parts(data, names, each))
            .map_err(malformed("Mach-O")),
        FileKind::MachOFat32 => {
            let file = MachOFatFile32::parse(data).map_err(malformed("Mach-O"))?;
            Ok(Parts::Slices(file.arches().iter().map(slice).collect()))
        }
        FileKind::MachOFat64 => {
            let file = MachOFatFile64::parse(data).map_err(malformed("Mach-O"))?;
            Ok(Parts::Slices(file.arches().iter().map(slice).collect()))
        }
        _ => Ok(Parts::Sections),
    }
}

fn slice(arch: &impl FatArch) -> Slice {
    let name = match arch.architecture() {
        object::Architecture::Unknown => format!("cpu-{}", arch.cputype().0),
        known => format!("{known:?}").to_ascii_lowercase(),
    };
    Slice { name, start: arch.offset().into(), size: arch.size().into() }
}

/// Returns the error of an ELF file: one that ends before its section headers do was cut off.
fn malformed_elf<'d, Elf: FileHeader<Endian = Endianness>>(
    data: impl ReadRef<'d>,
    error: object::read::Error,
) -> Error {
    let missing = || {
        let header = Elf::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let (start, len): (u64, u64) = (header.e_shoff(endian).into(), data.len().ok()?);
        let size = u64::from(header.e_shnum(endian)) * u64::from(header.e_shentsize(endian));
        let end = start.checked_add(size).filter(|&end| end > len)?;
        Some(format!(
            "truncated: expected section headers at {start:#x}..{end:#x}, the file ends at {len:#x}"
        ))
    };
    match missing() {
        Some(text) => Error::of_object("ELF", text),
        None => Error::of_object("ELF", error),
    }
}

/// Reads ELF files by their section headers alone: symbol tables, which the general reader loads, can be large.
fn elf_parts<'d, Elf: FileHeader<Endian = Endianness>>(
    data: impl ReadRef<'d>,
    names: &mut Budget,
    each: &mut dyn FnMut(NamedSection<'_>) -> ControlFlow<()>,
) -> object::read::Result<Parts> {
    let header = Elf::parse(data)?;
    let endian = header.endian()?;
    let table = header.sections(endian, data)?;
    if table.is_empty() && [elf::ET_EXEC, elf::ET_DYN].contains(&header.e_type(endian)) {
        return Ok(Parts::Nothing);
    }
    let is_cubin = header.e_machine(endian) == elf::EM_CUDA;
    for header in table.iter() {
        let Some((start, size)) = header.file_range(endian) else {
            continue;
        };
        if is_cubin && header.sh_type(endian).0 == SHT_CUDA_SHARED {
            continue;
        }
        let name = table.section_name(endian, header)?;
        if !names.take(name.len() as u64) {
            return Ok(Parts::TooManyNames);
        }
        let kind = header.sh_type(endian);
        let contents = match contents_by_name(name) {
            _ if kind.0 == SHT_LLVM_OFFLOADING => SectionContents::DeviceCode,
            SectionContents::Unknown if TABLES.contains(&kind) => SectionContents::Table,
            contents => contents,
        };
        if each_section(name, (start, size), contents, each).is_break() {
            break;
        }
    }
    Ok(Parts::Sections)
}

/// Hands out a section, unless it has no bytes and is not a bundle entry.
fn each_section(
    name: &[u8],
    (start, size): (u64, u64),
    contents: SectionContents,
    each: &mut dyn FnMut(NamedSection<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    // An end too large for a number lies past the end of the file, too.
    let range = start..start.saturating_add(size);
    let section = NamedSection { name, range, contents };
    let is_empty = size == 0 && !section.is_bundle_entry();
    if is_empty { ControlFlow::Continue(()) } else { each(section) }
}

/// Fails at the first malformed load command, where [`object::File`] silently ends the list.
fn check_commands<'d, Mach: MachHeader>(data: impl ReadRef<'d>) -> object::read::Result<()> {
    let header = Mach::parse(data, 0)?;
    let mut commands = header.load_commands(header.endian()?, data, 0)?;
    while commands.next()?.is_some() {}
    Ok(())
}

fn other_parts<'d>(
    data: impl ReadRef<'d>,
    names: &mut Budget,
    each: &mut dyn FnMut(NamedSection<'_>) -> ControlFlow<()>,
) -> object::read::Result<Parts> {
    let file = object::File::parse(data)?;
    for section in file.sections() {
        let Some((start, size)) = section.file_range() else {
            continue;
        };
        let name = section.name_bytes()?;
        if !names.take(name.len() as u64) {
            return Ok(Parts::TooManyNames);
        }
        if each_section(name, (start, size), contents_by_name(name), each).is_break() {
            break;
        }
    }
    Ok(Parts::Sections)
}

pub(crate) fn is_device_section(name: &[u8]) -> bool {
    // Part of a name: COFF objects may carry several `.llvm.offloading` sections with a suffix.
    name.starts_with(b".llvm.offloading")
        || DEVICE_SECTIONS.iter().any(|device| device.as_bytes() == name)
}

fn contents_by_name(name: &[u8]) -> SectionContents {
    if is_device_section(name) { SectionContents::DeviceCode } else { SectionContents::Unknown }
}
