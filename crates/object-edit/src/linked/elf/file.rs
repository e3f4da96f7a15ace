//! A linked ELF file: 64 bits, little-endian.

use std::ops::Range;

use byte_parts::Source;
use object::elf::{
    FileHeader64, PN_XNUM, PT_LOAD, ProgramHeader64, SHF_ALLOC, SHF_TLS, SHN_XINDEX, SHT_NOBITS,
    SHT_NULL, SectionHeader64, Sym64,
};
use object::pod::bytes_of;
use object::{LittleEndian, Pod};

use crate::error::Error;
use crate::linked::read;
use crate::pod::{LE, rest, until_nul};
use crate::tables::sized;

pub(super) type Header = FileHeader64<LittleEndian>;
pub(super) type ProgramHeader = ProgramHeader64<LittleEndian>;
pub(super) type SectionHeader = SectionHeader64<LittleEndian>;
pub(super) type Symbol = Sym64<LittleEndian>;

/// Many sections may have one and the same long name: looking for its end must not take long.
const LONGEST_NAME: usize = 256;

/// Rounds a place up to a multiple of `align`, a power of two; to the last one near 2^64, which is after every limit.
pub(super) fn up(place: u64, align: u64) -> u64 {
    down(place.saturating_add(align - 1), align)
}

/// Returns the multiple of `align`, a power of two, at or before a place.
pub(super) fn down(place: u64, align: u64) -> u64 {
    place & !(align - 1)
}

/// Returns the offsets of a section in the ELF file.
pub(super) fn file_range(section: &SectionHeader) -> Range<u64> {
    sized(section.sh_offset.get(LE), section.sh_size.get(LE))
}

/// Returns the addresses of a section.
pub(super) fn addresses(section: &SectionHeader) -> Range<u64> {
    sized(section.sh_addr.get(LE), section.sh_size.get(LE))
}

/// Returns the offsets of the file's part of a segment.
pub(super) fn segment_file_range(segment: &ProgramHeader) -> Range<u64> {
    sized(segment.p_offset.get(LE), segment.p_filesz.get(LE))
}

/// Returns the addresses of a segment.
pub(super) fn segment_addresses(segment: &ProgramHeader) -> Range<u64> {
    sized(segment.p_vaddr.get(LE), segment.p_memsz.get(LE))
}

/// Returns the addresses of a segment for which the file has bytes.
pub(super) fn loaded(segment: &ProgramHeader) -> Range<u64> {
    sized(segment.p_vaddr.get(LE), segment.p_filesz.get(LE))
}

pub(super) fn is_allocated(section: &SectionHeader) -> bool {
    section.sh_flags.get(LE).contains(SHF_ALLOC)
}

/// Returns whether bytes of the file are its contents.
pub(super) fn has_bytes(section: &SectionHeader) -> bool {
    !matches!(section.sh_type.get(LE), SHT_NULL | SHT_NOBITS)
}

/// Returns whether it only describes the data of each thread: it takes up no addresses.
pub(super) fn is_thread_nobits(section: &SectionHeader) -> bool {
    section.sh_type.get(LE) == SHT_NOBITS && section.sh_flags.get(LE).contains(SHF_TLS)
}

/// The headers of the file. Offsets in them count from the start of the window.
#[derive(Clone)]
pub(super) struct File {
    /// The range of the ELF file in the walked file.
    pub(super) window: Range<u64>,
    pub(super) header: Header,
    pub(super) segments: Vec<ProgramHeader>,
    pub(super) sections: Vec<SectionHeader>,
    /// The section name string table.
    names: Vec<u8>,
    /// The loadable segments among all.
    loads: Vec<ProgramHeader>,
    /// `true` if they are in the order of their addresses, and apart.
    in_order: bool,
}

impl File {
    /// Reads the headers.
    pub(super) fn read(source: &mut Source<'_>, window: &Range<u64>) -> Result<Self, Error> {
        let header = table::<Header>(source, window, 0, 1)?
            .pop()
            .ok_or_else(|| Error::unsupported_elf("no header"))?;
        if !bytes_of(&header).starts_with(b"\x7fELF\x02\x01\x01") {
            return Err(Error::unsupported_elf("not 64-bit little-endian"));
        }
        if header.e_phnum.get(LE) == PN_XNUM
            || (header.e_shoff.get(LE) != 0 && header.e_shnum.get(LE) == 0)
            || header.e_shstrndx.get(LE) == SHN_XINDEX
        {
            return Err(Error::unsupported_elf("more headers than 65,279"));
        }
        if header.e_phnum.get(LE) > 0
            && usize::from(header.e_phentsize.get(LE)) != size_of::<ProgramHeader>()
            || header.e_shnum.get(LE) > 0
                && usize::from(header.e_shentsize.get(LE)) != size_of::<SectionHeader>()
        {
            return Err(Error::unsupported_elf("headers of another size"));
        }
        let segments =
            table(source, window, header.e_phoff.get(LE), header.e_phnum.get(LE).into())?;
        let sections: Vec<SectionHeader> =
            table(source, window, header.e_shoff.get(LE), header.e_shnum.get(LE).into())?;
        let names = match sections.get(usize::from(header.e_shstrndx.get(LE).0)) {
            Some(names) if names.sh_type.get(LE) != SHT_NOBITS => {
                table(source, window, names.sh_offset.get(LE), names.sh_size.get(LE))?
            }
            _ => Vec::new(),
        };
        let is_load = |segment: &&ProgramHeader| segment.p_type.get(LE) == PT_LOAD;
        let loads: Vec<ProgramHeader> = segments.iter().filter(is_load).copied().collect();
        let pairs = loads.iter().zip(loads.iter().skip(1));
        let in_order =
            pairs.into_iter().all(|(a, b)| segment_addresses(a).end <= b.p_vaddr.get(LE));
        let window = window.clone();
        Ok(File { window, header, segments, sections, names, loads, in_order })
    }

    /// Returns the name of a section, or the start of a longer one than matters; empty where it has none.
    pub(super) fn name(&self, section: &SectionHeader) -> &[u8] {
        let name = rest(&self.names, section.sh_name.get(LE).into());
        until_nul(name.get(..LONGEST_NAME).unwrap_or(name))
    }

    /// Returns the place of a name in the string table.
    pub(super) fn name_offset(&self, name: &str) -> Option<u32> {
        let ended = [name.as_bytes(), b"\0"].concat();
        let at = self.names.windows(ended.len()).position(|bytes| bytes == ended)?;
        u32::try_from(at).ok()
    }

    /// Returns the loadable segment whose memory holds this address.
    pub(super) fn load_at(&self, address: u64) -> Option<&ProgramHeader> {
        // In order, it is the first one or none.
        let most = if self.in_order { 1 } else { self.loads.len() };
        let mut loads = self.loads_from(address).take(most);
        loads.find(|load| segment_addresses(load).contains(&address))
    }

    /// Returns the loadable segments without segments that end before an address, if they are in order.
    pub(super) fn loads_from(&self, address: u64) -> impl Iterator<Item = &ProgramHeader> {
        let before = |load: &ProgramHeader| segment_addresses(load).end <= address;
        let first = if self.in_order { self.loads.partition_point(before) } else { 0 };
        self.loads.iter().skip(first)
    }

    /// Fails for a part that is not in the file.
    pub(super) fn check(&self, what: &str, part: &Range<u64>) -> Result<(), Error> {
        if part.end > self.len() {
            return Err(Error::beyond_end(what, part.start, part.end, self.len()));
        }
        Ok(())
    }

    /// Returns the offset in the walked file of an offset in the ELF file. One from a header may lie after every file.
    pub(super) fn at(&self, offset: u64) -> u64 {
        self.window.start.saturating_add(offset)
    }

    /// Returns the range of the section headers.
    pub(super) fn section_table(&self) -> Range<u64> {
        let size = size_of_val(self.sections.as_slice()) as u64;
        sized(self.header.e_shoff.get(LE), size)
    }

    /// Returns whether a part of the section headers is loaded.
    pub(super) fn loads_section_table(&self) -> bool {
        self.loaded_parts(&self.section_table()).next().is_some()
    }

    /// Returns the addresses to which parts of a range of the ELF file are loaded.
    pub(super) fn loaded_parts(&self, range: &Range<u64>) -> impl Iterator<Item = Range<u64>> {
        self.loads().filter_map(|load| {
            let part = segment_file_range(load);
            let (start, end) = (range.start.max(part.start), range.end.min(part.end));
            let size = end.checked_sub(start).filter(|&size| size > 0)?;
            Some(sized(load.p_vaddr.get(LE).checked_add(start - part.start)?, size))
        })
    }

    /// Returns the number of bytes in the file.
    pub(super) fn len(&self) -> u64 {
        self.window.end - self.window.start
    }

    /// Returns the indices of the loadable segments among all.
    pub(super) fn load_indices(&self) -> impl Iterator<Item = usize> {
        let loads = self.segments.iter().enumerate();
        loads.filter(|(_, segment)| segment.p_type.get(LE) == PT_LOAD).map(|(index, _)| index)
    }

    /// Returns the loadable segments.
    pub(super) fn loads(&self) -> impl Iterator<Item = &ProgramHeader> {
        self.loads.iter()
    }

    /// Returns the offset in the ELF file of the byte at this address; `None` if no byte of the file is loaded there.
    pub(super) fn offset_of(&self, address: u64) -> Option<u64> {
        let load = self.load_at(address)?;
        let into = address - load.p_vaddr.get(LE);
        load.p_offset.get(LE).checked_add(into).filter(|_| into < load.p_filesz.get(LE))
    }

    /// Returns the address to which this offset of the ELF file is loaded.
    pub(super) fn address_of(&self, offset: u64) -> Option<u64> {
        let load = self.loads().find(|load| segment_file_range(load).contains(&offset))?;
        load.p_vaddr.get(LE).checked_add(offset - load.p_offset.get(LE))
    }
}

/// Returns a table of structs at an offset of the window.
fn table<T: Pod>(
    source: &mut Source<'_>,
    window: &Range<u64>,
    offset: u64,
    count: u64,
) -> Result<Vec<T>, Error> {
    // A number of 16 bits, or one of bytes.
    let range = sized(offset, count * size_of::<T>() as u64);
    read::table(source, window, &range, |available| {
        Error::beyond_end("a table of the headers", offset, range.end, available)
    })
}
