//! A linked ELF file: 64 bits, little-endian.

use std::io;
use std::ops::Range;

use byte_parts::Source;
use zerocopy::{FromBytes, LittleEndian};

use crate::wire::{ElfHeader64, ElfSection64, ElfSegment64, ElfSymbol64};

pub(super) type Header = ElfHeader64<LittleEndian>;
pub(super) type ProgramHeader = ElfSegment64<LittleEndian>;
pub(super) type SectionHeader = ElfSection64<LittleEndian>;
pub(super) type Symbol = ElfSymbol64<LittleEndian>;

pub(super) const PT_LOAD: u32 = 1;
pub(super) const PF_W: u32 = 2;
pub(super) const SHT_NULL: u32 = 0;
pub(super) const SHT_NOBITS: u32 = 8;
pub(super) const SHF_WRITE: u64 = 1;
pub(super) const SHF_ALLOC: u64 = 2;
pub(super) const SHF_TLS: u64 = 0x400;
/// Many sections may have one and the same long name: looking for its end must not take long.
const LONGEST_NAME: usize = 256;

/// The multiple of `align`, a power of two, at or behind a place.
pub(super) fn up(place: u64, align: u64) -> u64 {
    down(place.saturating_add(align - 1), align)
}

/// The multiple of `align`, a power of two, at or before a place.
pub(super) fn down(place: u64, align: u64) -> u64 {
    place & !(align - 1)
}

/// The offsets of a section in the ELF file.
pub(super) fn file_range(section: &SectionHeader) -> Range<u64> {
    let start = section.offset.get();
    start..start.saturating_add(section.size.get())
}

/// The addresses of a section.
pub(super) fn addresses(section: &SectionHeader) -> Range<u64> {
    let start = section.addr.get();
    start..start.saturating_add(section.size.get())
}

/// The offsets of the file's part of a segment.
pub(super) fn segment_file_range(segment: &ProgramHeader) -> Range<u64> {
    let start = segment.offset.get();
    start..start.saturating_add(segment.filesz.get())
}

/// The addresses of a segment.
pub(super) fn segment_addresses(segment: &ProgramHeader) -> Range<u64> {
    let start = segment.vaddr.get();
    start..start.saturating_add(segment.memsz.get())
}

pub(super) fn is_allocated(section: &SectionHeader) -> bool {
    section.flags.get() & SHF_ALLOC != 0
}

/// Whether bytes of the file are its contents.
pub(super) fn has_bytes(section: &SectionHeader) -> bool {
    !matches!(section.kind.get(), SHT_NULL | SHT_NOBITS)
}

/// Whether it only describes what each thread gets: it takes up no addresses.
pub(super) fn is_thread_nobits(section: &SectionHeader) -> bool {
    section.kind.get() == SHT_NOBITS && section.flags.get() & SHF_TLS != 0
}

/// The headers of the file. Offsets in them count from the start of the window.
#[derive(Clone)]
pub(super) struct File {
    /// Where the ELF file lies in the walked file.
    pub(super) window: Range<u64>,
    pub(super) header: Header,
    pub(super) segments: Vec<ProgramHeader>,
    pub(super) sections: Vec<SectionHeader>,
    /// The section name string table.
    names: Vec<u8>,
    /// The loadable segments among all.
    loads: Vec<ProgramHeader>,
    /// Whether they are in the order of their addresses, and apart.
    in_order: bool,
}

impl File {
    /// Reads the headers.
    pub(super) fn read(source: &mut Source<'_>, window: &Range<u64>) -> Result<Self, ReadError> {
        let len = window.end - window.start;
        let header = table::<Header>(source, window, 0, 1)?.pop().ok_or(ReadError::Header)?;
        if header.ident.get(..7) != Some(b"\x7fELF\x02\x01\x01") {
            return Err(ReadError::Unsupported("not 64-bit little-endian"));
        }
        if header.phnum.get() == u16::MAX
            || (header.shoff.get() != 0 && header.shnum.get() == 0)
            || header.shstrndx.get() == u16::MAX
        {
            return Err(ReadError::Unsupported("more headers than 65,279"));
        }
        if header.phnum.get() > 0
            && usize::from(header.phentsize.get()) != size_of::<ProgramHeader>()
            || header.shnum.get() > 0
                && usize::from(header.shentsize.get()) != size_of::<SectionHeader>()
        {
            return Err(ReadError::Unsupported("headers of another size"));
        }
        let segments = table(source, window, header.phoff.get(), header.phnum.get().into())?;
        let sections: Vec<SectionHeader> =
            table(source, window, header.shoff.get(), header.shnum.get().into())?;
        let names = match sections.get(usize::from(header.shstrndx.get())) {
            Some(names) if names.kind.get() != SHT_NOBITS => {
                let end = names.offset.get().saturating_add(names.size.get());
                if end > len {
                    return Err(ReadError::Table {
                        start: names.offset.get(),
                        end,
                        available: len,
                    });
                }
                let start = window.start + names.offset.get();
                source.read_range(&(start..start + names.size.get())).map_err(ReadError::Read)?
            }
            _ => Vec::new(),
        };
        let is_load = |segment: &&ProgramHeader| segment.kind.get() == PT_LOAD;
        let loads: Vec<ProgramHeader> = segments.iter().filter(is_load).copied().collect();
        let pairs = loads.iter().zip(loads.iter().skip(1));
        let in_order = pairs.into_iter().all(|(a, b)| segment_addresses(a).end <= b.vaddr.get());
        let window = window.clone();
        Ok(File { window, header, segments, sections, names, loads, in_order })
    }

    /// The name of a section, or the start of a longer one than matters; empty where it has none.
    pub(super) fn name(&self, section: &SectionHeader) -> &[u8] {
        let start = usize::try_from(section.name.get()).unwrap_or(usize::MAX);
        let name = self.names.get(start..).unwrap_or_default();
        let name = name.get(..LONGEST_NAME).unwrap_or(name);
        name.split(|&byte| byte == 0).next().unwrap_or_default()
    }

    /// The loadable segment whose memory holds this address.
    pub(super) fn load_at(&self, address: u64) -> Option<&ProgramHeader> {
        // In order, it is the first one or none.
        let most = if self.in_order { 1 } else { self.loads.len() };
        let mut loads = self.loads_from(address).take(most);
        loads.find(|load| segment_addresses(load).contains(&address))
    }

    /// The loadable segments without those that end before an address, if they are in order.
    pub(super) fn loads_from(&self, address: u64) -> impl Iterator<Item = &ProgramHeader> {
        let before = |load: &ProgramHeader| segment_addresses(load).end <= address;
        let first = if self.in_order { self.loads.partition_point(before) } else { 0 };
        self.loads.iter().skip(first)
    }

    /// Bytes of the file.
    pub(super) fn len(&self) -> u64 {
        self.window.end - self.window.start
    }

    /// The indices of the loadable segments among all.
    pub(super) fn load_indices(&self) -> impl Iterator<Item = usize> {
        let loads = self.segments.iter().enumerate();
        loads.filter(|(_, segment)| segment.kind.get() == PT_LOAD).map(|(index, _)| index)
    }

    /// The loadable segments.
    pub(super) fn loads(&self) -> impl Iterator<Item = &ProgramHeader> {
        self.loads.iter()
    }

    /// The offset in the ELF file of what is loaded to this address; none where no byte of the file is.
    pub(super) fn offset_of(&self, address: u64) -> Option<u64> {
        let load = self.load_at(address)?;
        let into = address - load.vaddr.get();
        (into < load.filesz.get()).then(|| load.offset.get().saturating_add(into))
    }

    /// The address to which this offset of the ELF file is loaded.
    pub(super) fn address_of(&self, offset: u64) -> Option<u64> {
        let load = self.loads().find(|load| {
            let start = load.offset.get();
            (start..start.saturating_add(load.filesz.get())).contains(&offset)
        })?;
        Some(load.vaddr.get().saturating_add(offset - load.offset.get()))
    }
}

/// Why the headers cannot be read.
pub(super) enum ReadError {
    Read(io::Error),
    Header,
    Unsupported(&'static str),
    /// A table lies beyond the end of the file.
    Table {
        start: u64,
        end: u64,
        available: u64,
    },
}

/// A table of wire structs at an offset of the window.
fn table<T: FromBytes + Copy>(
    source: &mut Source<'_>,
    window: &Range<u64>,
    offset: u64,
    count: u64,
) -> Result<Vec<T>, ReadError> {
    let available = window.end - window.start;
    let end = offset.saturating_add(count.saturating_mul(size_of::<T>() as u64));
    if end > available {
        return Err(ReadError::Table { start: offset, end, available });
    }
    let start = window.start + offset;
    let bytes = source.read_range(&(start..window.start + end)).map_err(ReadError::Read)?;
    let entries = bytes.chunks_exact(size_of::<T>());
    Ok(entries.filter_map(|entry| T::read_from_bytes(entry).ok()).collect())
}
