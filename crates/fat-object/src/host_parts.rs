//! The parts of a host file, as its headers describe them.

use std::io;
use std::ops::Range;

use byte_parts::elf::SHT_LLVM_OFFLOADING;
use byte_parts::{Budget, Window};
use object::read::elf::{FileHeader, SectionHeader};
use object::read::{FileKind, ReadRef};
use object::{Endianness, Object, ObjectSection, SectionKind, elf};

use crate::host::is_device_section;
use crate::text::lossy;

/// Sections can share a name. Honest names have fewer bytes than the file.
const NAMES_FOR_EACH_BYTE: u64 = 4;

/// Sections by which wrappers register device code, also with the eight bytes of a name in PE files.
const REGISTRATION: [&str; 12] = [
    ".hipFatBinSegment",
    ".hipFatB",
    "__hipFatBinSegment",
    ".hip_gpubin_handle",
    ".nvFatBinSegment",
    ".nvFatBi",
    "__nvFatBinSegment",
    "__nv_module_id",
    "omp_offloading_entries",
    "llvm_offload_entries",
    "cuda_offloading_entries",
    "hip_offloading_entries",
];

/// The kind of a part of a host file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostPartKind {
    /// The header of the file, and the tables of segments and sections.
    Headers,
    /// A section of device code.
    DeviceCode,
    /// A section by which wrappers register device code.
    Registration,
    /// Machine code.
    Code,
    /// Data.
    Data,
    /// Symbols, their names, and tables for looking them up.
    Symbols,
    /// Relocations.
    Relocations,
    /// Debug information.
    Debug,
}

/// A part of a host file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostPart {
    /// The name of the section; empty for headers.
    pub name: String,
    /// Its bytes, by their offsets in the file. Headers of a damaged file state any range.
    pub range: Range<u64>,
    /// Its kind.
    pub kind: HostPartKind,
}

/// Returns the headers and sections with bytes of the ELF, COFF, PE or Mach-O file in `window`, in the order of its headers;
/// `None` of other files, and where headers are malformed or sections share long names. In COFF, PE and Mach-O files, bytes before the first section are headers;
/// symbol tables are not
/// sections. A universal file has no parts beside its slices.
///
/// ```
/// use std::io::Cursor;
/// use byte_parts::Source;
/// use fat_object::{HostPartKind, host_parts};
///
/// let library = std::fs::read("../../examples/data/hip-two-units.so")?;
/// let mut source = Source::new(Cursor::new(&library))?;
/// let parts = host_parts(&mut source, &(0..library.len() as u64))?.ok_or("malformed")?;
/// let device = parts.iter().find(|part| part.kind == HostPartKind::DeviceCode);
/// assert_eq!(device.ok_or("no device code")?.name, ".hip_fatbin");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// An error of reading.
pub fn host_parts(
    source: &mut byte_parts::Source<'_>,
    window: &Range<u64>,
) -> io::Result<Option<Vec<HostPart>>> {
    let mut names = Budget::new(1 << 16);
    names.grow(Window::new(window).len(), NAMES_FOR_EACH_BYTE);
    let mut parts = Parts { all: Vec::new(), names };
    let read = source.with_headers(window, |data| match FileKind::parse(data)? {
        FileKind::Elf32 => of_elf::<elf::FileHeader32<Endianness>>(data, &mut parts),
        FileKind::Elf64 => of_elf::<elf::FileHeader64<Endianness>>(data, &mut parts),
        // Their slices are files.
        FileKind::MachOFat32 | FileKind::MachOFat64 => Ok(true),
        _ => of_other(data, &mut parts),
    })?;
    Ok(read.ok().filter(|is_whole| *is_whole).map(|_| parts.all))
}

/// The parts that were found.
struct Parts {
    all: Vec<HostPart>,
    /// Bytes of names that may still be kept: sections can share one.
    names: Budget,
}

impl Parts {
    /// Adds bytes, unless there are none. Returns `false` if names are too long.
    fn add(&mut self, name: &[u8], (start, size): (u64, u64), kind: HostPartKind) -> bool {
        // An end too large for a number lies past the end of the file, too.
        let range = start..start.saturating_add(size);
        if !range.is_empty() {
            self.all.push(HostPart { name: lossy(name), range, kind });
        }
        self.names.take(name.len() as u64)
    }
}

/// Returns what the name of a section says of it.
fn by_name(name: &[u8]) -> Option<HostPartKind> {
    const DEBUG: [&[u8]; 6] =
        [b".debug", b".zdebug", b"__debug", b".gdb_index", b".gnu_debug", b".stab"];
    if is_device_section(name) || name.starts_with(bundle_format::MAGIC_TEXT.as_bytes()) {
        Some(HostPartKind::DeviceCode)
    } else if REGISTRATION.iter().any(|other| other.as_bytes() == name) {
        Some(HostPartKind::Registration)
    } else if DEBUG.iter().any(|start| name.starts_with(start)) {
        Some(HostPartKind::Debug)
    } else {
        None
    }
}

fn of_elf<'d, Elf: FileHeader<Endian = Endianness>>(
    data: impl ReadRef<'d>,
    parts: &mut Parts,
) -> object::read::Result<bool> {
    let header = Elf::parse(data)?;
    let endian = header.endian()?;
    let table = header.sections(endian, data)?;
    let segments = header.program_headers(endian, data)?.len() as u64;
    let (segment, section) = (header.e_phentsize(endian), header.e_shentsize(endian));
    let tables = [
        (0, header.e_ehsize(endian).into()),
        (header.e_phoff(endian).into(), segments * u64::from(segment)),
        (header.e_shoff(endian).into(), table.len() as u64 * u64::from(section)),
    ];
    for range in tables {
        parts.add(b"", range, HostPartKind::Headers);
    }
    for header in table.iter() {
        let Some(range) = header.file_range(endian) else { continue };
        let name = table.section_name(endian, header)?;
        let flags = header.sh_flags(endian);
        let is = |flag: elf::SectionFlags| flags.0 & flag.0 != 0;
        let kind = match (by_name(name), header.sh_type(endian)) {
            (_, kind) if kind.0 == SHT_LLVM_OFFLOADING => HostPartKind::DeviceCode,
            (Some(kind), _) => kind,
            (
                None,
                elf::SHT_SYMTAB
                | elf::SHT_DYNSYM
                | elf::SHT_STRTAB
                | elf::SHT_SYMTAB_SHNDX
                | elf::SHT_HASH
                | elf::SHT_GNU_HASH
                | elf::SHT_GNU_VERSYM
                | elf::SHT_GNU_VERDEF
                | elf::SHT_GNU_VERNEED,
            ) => HostPartKind::Symbols,
            (None, elf::SHT_REL | elf::SHT_RELA | elf::SHT_RELR) => HostPartKind::Relocations,
            (None, _) if is(elf::SHF_EXECINSTR) => HostPartKind::Code,
            (None, _) => HostPartKind::Data,
        };
        if !parts.add(name, range, kind) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn of_other<'d>(data: impl ReadRef<'d>, parts: &mut Parts) -> object::read::Result<bool> {
    let file = object::File::parse(data)?;
    let mut first = None;
    for section in file.sections() {
        let Some(range @ (start, size)) = section.file_range() else { continue };
        if size > 0 {
            first = Some(first.map_or(start, |first: u64| first.min(start)));
        }
        let name = section.name_bytes()?;
        let kind = by_name(name).unwrap_or(match section.kind() {
            SectionKind::Text => HostPartKind::Code,
            SectionKind::Debug | SectionKind::DebugString => HostPartKind::Debug,
            _ => HostPartKind::Data,
        });
        if !parts.add(name, range, kind) {
            return Ok(false);
        }
    }
    Ok(parts.add(b"", (0, first.unwrap_or(0)), HostPartKind::Headers))
}
