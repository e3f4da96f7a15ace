//! A PE file of 64 bits: its headers, and where they say that what lies. After Microsoft's "PE Format".

use std::io;
use std::ops::Range;

use byte_parts::Source;
use zerocopy::FromBytes;

use crate::error::Error;
use crate::wire::{CoffHeader, CoffSection, PeDirectory, PeOptionalHeader64};

const DOS_HEADER_SIZE: u64 = 64;
/// Where the DOS header says where the signature "PE\0\0" lies.
const SIGNATURE_AT: u64 = 0x3c;
const SIGNATURE_SIZE: u64 = 4;
const OPTIONAL_MAGIC_32: u16 = 0x10b;
const OPTIONAL_MAGIC_64: u16 = 0x20b;
pub(super) const MACHINE_X86_64: u16 = 0x8664;
pub(super) const MACHINE_ARM64: u16 = 0xaa64;
const MACHINES: [u16; 2] = [MACHINE_X86_64, MACHINE_ARM64];
/// Pages of the processors, which the alignment of sections must not be below.
pub(super) const PAGE: u64 = 4096;

/// The Windows loader takes no more sections ("PE Format", "COFF File Header").
pub(super) const MOST_SECTIONS: usize = 96;

pub(super) const DIRECTORY_EXPORT: usize = 0;
pub(super) const DIRECTORY_EXCEPTION: usize = 3;
pub(super) const DIRECTORY_CERTIFICATE: usize = 4;
pub(super) const DIRECTORY_RELOCATION: usize = 5;
pub(super) const DIRECTORY_DEBUG: usize = 6;

pub(super) const SECTION_CODE: u32 = 0x20;
pub(super) const SECTION_INITIALIZED: u32 = 0x40;
pub(super) const SECTION_EXECUTABLE: u32 = 0x2000_0000;
/// `IMAGE_FILE_RELOCS_STRIPPED`
pub(super) const FILE_RELOCATIONS_STRIPPED: u16 = 1;

/// The headers of the file. Offsets count from the start of the window, addresses from the image base.
pub(super) struct File {
    /// Where the PE file lies in what is read.
    pub(super) window: Range<u64>,
    /// Where the COFF header lies.
    pub(super) coff_at: u64,
    pub(super) coff: CoffHeader,
    pub(super) optional: PeOptionalHeader64,
    pub(super) directories: Vec<PeDirectory>,
    /// In the order of their addresses.
    pub(super) sections: Vec<CoffSection>,
}

impl File {
    /// Reads the headers, and checks that sections overlap neither in memory nor in the file.
    pub(super) fn read(source: &mut Source<'_>, window: &Range<u64>) -> Result<Self, Error> {
        let unsupported = |what| Error::UnsupportedPe { what };
        let dos = bytes(source, window, "the DOS header", 0, DOS_HEADER_SIZE)?;
        let signature_at = u64::from(field_u32(&dos, SIGNATURE_AT));
        if !dos.starts_with(b"MZ") {
            return Err(unsupported("no DOS header"));
        }
        let signature = bytes(source, window, "the signature", signature_at, SIGNATURE_SIZE)?;
        if signature != b"PE\0\0" {
            return Err(unsupported("no signature \"PE\""));
        }
        let coff_at = signature_at + SIGNATURE_SIZE;
        let coff: CoffHeader = one(source, window, "the file header", coff_at)?;
        let optional_at = coff_at + size_of::<CoffHeader>() as u64;
        let magic =
            bytes(source, window, "the optional header", optional_at, size_of::<u16>() as u64)?;
        match u16::read_from_bytes(&magic).map(u16::from_le) {
            Ok(OPTIONAL_MAGIC_64) => {}
            Ok(OPTIONAL_MAGIC_32) => return Err(unsupported("32 bits")),
            _ => return Err(unsupported("unknown magic of the optional header")),
        }
        if !MACHINES.contains(&coff.machine.get()) {
            return Err(unsupported("neither x86-64 nor ARM64"));
        }
        let optional: PeOptionalHeader64 = one(source, window, "the optional header", optional_at)?;
        let directories_at = optional_at + size_of::<PeOptionalHeader64>() as u64;
        let count = u64::from(optional.directories.get());
        let size = size_of::<PeOptionalHeader64>() as u64 + count * size_of::<PeDirectory>() as u64;
        if size > u64::from(coff.optional_header_size.get()) {
            return Err(unsupported("optional header smaller than its data directories"));
        }
        let directories = table(source, window, "the data directories", directories_at, count)?;
        let table_at = optional_at + u64::from(coff.optional_header_size.get());
        let count = coff.sections.get().into();
        let sections = table(source, window, "the section table", table_at, count)?;
        let file = File { window: window.clone(), coff_at, coff, optional, directories, sections };
        file.check()?;
        Ok(file)
    }

    fn check(&self) -> Result<(), Error> {
        let (in_memory, in_file) = (self.section_alignment(), self.file_alignment());
        if !in_memory.is_power_of_two() || in_memory < PAGE {
            return Err(Error::UnsupportedPe { what: "sections not aligned to pages" });
        }
        if !in_file.is_power_of_two() || in_file < 512 || in_file > in_memory {
            return Err(Error::UnsupportedPe { what: "unknown alignment in the file" });
        }
        if self.sections.len() > MOST_SECTIONS {
            return Err(Error::UnsupportedPe { what: "more than 96 sections" });
        }
        let inconsistent = |what| Error::InconsistentSections { what };
        let mut end = u64::from(self.optional.headers_size.get());
        for section in &self.sections {
            let address = u64::from(section.virtual_address.get());
            if address % in_memory != 0 {
                return Err(inconsistent("an address is not aligned"));
            }
            if address < end {
                return Err(inconsistent("they overlap, or are not in the order of addresses"));
            }
            end = address + memory_size(section);
        }
        let mut in_file: Vec<_> = self.sections.iter().map(file_range).collect();
        in_file.retain(|range| !range.is_empty());
        in_file.sort_unstable_by_key(|range| range.start);
        let mut end = self.table_end();
        for Range { start, end: next } in in_file {
            if start < end {
                return Err(inconsistent("they overlap in the file"));
            }
            if next > self.len() {
                return Err(beyond_end("a section", start, next, self.len()));
            }
            end = next;
        }
        Ok(())
    }

    pub(super) fn len(&self) -> u64 {
        self.window.end - self.window.start
    }

    pub(super) fn image_base(&self) -> u64 {
        self.optional.image_base.get()
    }

    pub(super) fn section_alignment(&self) -> u64 {
        self.optional.section_alignment.get().into()
    }

    pub(super) fn file_alignment(&self) -> u64 {
        self.optional.file_alignment.get().into()
    }

    /// Where the optional header lies.
    pub(super) fn optional_at(&self) -> u64 {
        self.coff_at + size_of::<CoffHeader>() as u64
    }

    /// Where the section table starts.
    pub(super) fn table_at(&self) -> u64 {
        self.optional_at() + u64::from(self.coff.optional_header_size.get())
    }

    /// Where the section table ends.
    pub(super) fn table_end(&self) -> u64 {
        self.table_at() + (self.sections.len() * size_of::<CoffSection>()) as u64
    }

    /// Where the last of the section table and the contents of sections ends.
    pub(super) fn end_of_sections(&self) -> u64 {
        let contents = self.sections.iter().map(file_range).filter(|range| !range.is_empty());
        contents.map(|range| range.end).fold(self.table_end(), u64::max)
    }

    /// A data directory that is there and not empty.
    pub(super) fn directory(&self, index: usize) -> Option<Range<u64>> {
        let directory = self.directories.get(index)?;
        let start = u64::from(directory.address.get());
        let size = u64::from(directory.size.get());
        (start != 0 && size != 0).then(|| start..start + size)
    }

    /// The section whose memory holds this address.
    pub(super) fn section_at(&self, address: u64) -> Option<&CoffSection> {
        let next = self
            .sections
            .partition_point(|section| u64::from(section.virtual_address.get()) <= address);
        let section = self.sections.get(next.checked_sub(1)?)?;
        (address < u64::from(section.virtual_address.get()) + memory_size(section))
            .then_some(section)
    }

    /// The offset of what is loaded to these addresses; none where not all of it comes from one section in the file.
    pub(super) fn offset_of(&self, addresses: &Range<u64>) -> Option<u64> {
        let section = self.section_at(addresses.start)?;
        let into = addresses.start - u64::from(section.virtual_address.get());
        let end = into.checked_add(addresses.end.checked_sub(addresses.start)?)?;
        (end <= self.loaded_size(section)).then(|| u64::from(section.raw_at.get()) + into)
    }

    /// The bytes at these addresses; none where they do not come from the file.
    pub(super) fn read_at(
        &self,
        source: &mut Source<'_>,
        addresses: &Range<u64>,
    ) -> io::Result<Option<Vec<u8>>> {
        let Some(offset) = self.offset_of(addresses) else { return Ok(None) };
        let start = self.window.start + offset;
        source.read_range(&(start..start + (addresses.end - addresses.start))).map(Some)
    }

    /// How many bytes of the file a section has in memory. A loader maps whole pages: also those bytes behind the
    /// section's own that are in the file.
    pub(super) fn loaded_size(&self, section: &CoffSection) -> u64 {
        let room = memory_size(section).next_multiple_of(self.section_alignment());
        room.min(section.raw_size.get().into())
    }

    /// Where the memory of the last section ends, to the next page.
    pub(super) fn image_end(&self) -> u64 {
        let end = match self.sections.last() {
            Some(last) => u64::from(last.virtual_address.get()) + memory_size(last),
            None => self.optional.headers_size.get().into(),
        };
        end.next_multiple_of(self.section_alignment())
    }

    /// Whether there is a table of symbols, as MinGW's linkers leave one.
    pub(super) fn has_symbols(&self) -> bool {
        self.coff.symbols_at.get() != 0 && self.coff.symbols.get() != 0
    }

    /// The name of a section, as the string table has it where it is too long.
    pub(super) fn name(
        &self,
        source: &mut Source<'_>,
        section: &CoffSection,
    ) -> io::Result<Vec<u8>> {
        let short = until_nul(&section.name);
        let offset = short
            .strip_prefix(b"/")
            .and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<u32>().ok());
        let (Some(offset), 1..) = (offset, self.coff.symbols_at.get()) else {
            return Ok(short.to_vec());
        };
        let symbols = u64::from(self.coff.symbols.get()) * SYMBOL_SIZE;
        let start = u64::from(self.coff.symbols_at.get()) + symbols + u64::from(offset);
        let name = (self.window.start + start.min(self.len()))..self.window.end;
        Ok(until_nul(&source.peek(&name, LONGEST_NAME)?).to_vec())
    }
}

/// Names that matter here are shorter.
const LONGEST_NAME: usize = 64;
/// A symbol is 18 bytes.
pub(super) const SYMBOL_SIZE: u64 = size_of::<crate::wire::CoffSymbol>() as u64;

/// Bytes that a section takes in memory.
pub(super) fn memory_size(section: &CoffSection) -> u64 {
    match section.virtual_size.get() {
        0 => section.raw_size.get().into(),
        size => size.into(),
    }
}

/// Where the bytes of a section lie in the file.
pub(super) fn file_range(section: &CoffSection) -> Range<u64> {
    let start = u64::from(section.raw_at.get());
    start..start + u64::from(section.raw_size.get())
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// The little-endian number at an offset; 0 where it is not.
pub(super) fn field_u32(bytes: &[u8], offset: u64) -> u32 {
    let tail = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..));
    tail.and_then(|tail| tail.first_chunk()).map_or(0, |field| u32::from_le_bytes(*field))
}

/// The little-endian number at an offset; 0 where it is not.
pub(super) fn field_u64(bytes: &[u8], offset: u64) -> u64 {
    let tail = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..));
    tail.and_then(|tail| tail.first_chunk()).map_or(0, |field| u64::from_le_bytes(*field))
}

fn beyond_end(what: &'static str, start: u64, end: u64, available: u64) -> Error {
    Error::BeyondEnd { what, start, end, available }
}

/// Bytes of the headers.
pub(super) fn bytes(
    source: &mut Source<'_>,
    window: &Range<u64>,
    what: &'static str,
    offset: u64,
    size: u64,
) -> Result<Vec<u8>, Error> {
    let available = window.end - window.start;
    let end = offset.saturating_add(size);
    if end > available {
        return Err(beyond_end(what, offset, end, available));
    }
    Ok(source.read_range(&(window.start + offset..window.start + end))?)
}

fn one<T: FromBytes>(
    source: &mut Source<'_>,
    window: &Range<u64>,
    what: &'static str,
    offset: u64,
) -> Result<T, Error> {
    let bytes = bytes(source, window, what, offset, size_of::<T>() as u64)?;
    T::read_from_bytes(&bytes).map_err(|_| Error::Read(io::ErrorKind::UnexpectedEof.into()))
}

/// A table of wire structs.
pub(super) fn table<T: FromBytes>(
    source: &mut Source<'_>,
    window: &Range<u64>,
    what: &'static str,
    offset: u64,
    count: u64,
) -> Result<Vec<T>, Error> {
    let bytes = bytes(source, window, what, offset, count.saturating_mul(size_of::<T>() as u64))?;
    let entries = bytes.chunks_exact(size_of::<T>());
    Ok(entries.filter_map(|entry| T::read_from_bytes(entry).ok()).collect())
}
