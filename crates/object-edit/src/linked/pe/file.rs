//! A PE file of 64 bits: its headers, and where they say that what lies. After Microsoft's "PE Format".

use std::io;
use std::mem::offset_of;
use std::ops::Range;

use byte_parts::Source;
use object::pe::{
    IMAGE_DIRECTORY_ENTRY_LOAD_CONFIG, IMAGE_DOS_SIGNATURE, IMAGE_FILE_MACHINE_AMD64,
    IMAGE_FILE_MACHINE_ARM64, IMAGE_NT_OPTIONAL_HDR32_MAGIC, IMAGE_NT_OPTIONAL_HDR64_MAGIC,
    IMAGE_NT_SIGNATURE, ImageDataDirectory, ImageDosHeader, ImageFileHeader,
    ImageLoadConfigDirectory64, ImageOptionalHeader64, ImageSectionHeader, Machine,
};
use object::{LittleEndian, Pod, U16, U32};

use crate::error::Error;
use crate::linked::read;
use crate::pod::{LE, first, until_nul};
use crate::tables::sized;

const MACHINES: [Machine; 2] = [IMAGE_FILE_MACHINE_AMD64, IMAGE_FILE_MACHINE_ARM64];
/// Pages of the processors, which the alignment of sections must not be below.
pub(super) const PAGE: u64 = 4096;

/// The Windows loader takes no more sections ("PE Format", "COFF File Header").
pub(super) const MOST_SECTIONS: usize = 96;

pub(super) type Section = ImageSectionHeader;

/// The headers of the file. Offsets count from the start of the window, addresses from the image base.
pub(super) struct File {
    /// The range of the PE file in the bytes read.
    pub(super) window: Range<u64>,
    /// The offset of the COFF header.
    pub(super) coff_at: u64,
    pub(super) coff: ImageFileHeader,
    pub(super) optional: ImageOptionalHeader64,
    pub(super) directories: Vec<ImageDataDirectory>,
    /// In the order of their addresses.
    pub(super) sections: Vec<Section>,
    /// The load configuration, zeros where there is none; `None` if it is not in the file.
    pub(super) load_config: Option<ImageLoadConfigDirectory64>,
}

impl File {
    /// Reads the headers, and checks that sections overlap neither in memory nor in the file.
    pub(super) fn read(source: &mut Source<'_>, window: &Range<u64>) -> Result<Self, Error> {
        let unsupported = |what| Error::unsupported_pe(what);
        let dos: ImageDosHeader = one(source, window, "the DOS header", 0)?;
        let signature_at = u64::from(dos.e_lfanew.get(LE));
        if dos.e_magic.get(LE) != IMAGE_DOS_SIGNATURE {
            return Err(unsupported("no DOS header"));
        }
        let signature: U32<LittleEndian> = one(source, window, "the signature", signature_at)?;
        if signature.get(LE) != IMAGE_NT_SIGNATURE {
            return Err(unsupported("no signature \"PE\""));
        }
        let coff_at = signature_at + size_of_val(&signature) as u64;
        let coff: ImageFileHeader = one(source, window, "the file header", coff_at)?;
        let optional_at = coff_at + size_of::<ImageFileHeader>() as u64;
        let magic: U16<LittleEndian> = one(source, window, "the optional header", optional_at)?;
        match magic.get(LE) {
            IMAGE_NT_OPTIONAL_HDR64_MAGIC => {}
            IMAGE_NT_OPTIONAL_HDR32_MAGIC => return Err(unsupported("32 bits")),
            _ => return Err(unsupported("unknown magic of the optional header")),
        }
        if !MACHINES.contains(&coff.machine.get(LE)) {
            return Err(unsupported("neither x86-64 nor ARM64"));
        }
        let optional: ImageOptionalHeader64 =
            one(source, window, "the optional header", optional_at)?;
        let directories_at = optional_at + size_of::<ImageOptionalHeader64>() as u64;
        let count = u64::from(optional.number_of_rva_and_sizes.get(LE));
        let size = size_of::<ImageOptionalHeader64>() as u64
            + count * size_of::<ImageDataDirectory>() as u64;
        if size > u64::from(coff.size_of_optional_header.get(LE)) {
            return Err(unsupported("optional header smaller than its data directories"));
        }
        let directories = table(source, window, "the data directories", directories_at, count)?;
        let table_at = optional_at + u64::from(coff.size_of_optional_header.get(LE));
        let count = coff.number_of_sections.get(LE).into();
        let sections = table(source, window, "the section table", table_at, count)?;
        let (window, load_config) = (window.clone(), None);
        let mut file = File { window, coff_at, coff, optional, directories, sections, load_config };
        file.check()?;
        file.load_config = file.read_load_config(source)?;
        Ok(file)
    }

    fn read_load_config(
        &self,
        source: &mut Source<'_>,
    ) -> io::Result<Option<ImageLoadConfigDirectory64>> {
        let mut bytes = Vec::new();
        if let Some((start, size)) = self.load_config_directory() {
            let head = self.read_at(source, &sized(start, size_of::<u32>() as u64))?;
            let Some(own) = head.and_then(|head| first::<U32<LittleEndian>>(&head)) else {
                return Ok(None);
            };
            // Loaders of several versions go by either size.
            let most = size_of::<ImageLoadConfigDirectory64>() as u64;
            let known = sized(start, size.max(own.get(LE).into()).min(most));
            let Some(fields) = self.read_at(source, &known)? else { return Ok(None) };
            bytes = fields;
        }
        bytes.resize(size_of::<ImageLoadConfigDirectory64>(), 0);
        Ok(first(&bytes))
    }

    /// Returns the address and the size of the load configuration.
    fn load_config_directory(&self) -> Option<(u64, u64)> {
        let directory = self.directories.get(IMAGE_DIRECTORY_ENTRY_LOAD_CONFIG)?;
        let start = u64::from(directory.virtual_address.get(LE));
        (start != 0).then(|| (start, directory.size.get(LE).into()))
    }

    /// Returns the address of the section number in the load configuration, and the number.
    pub(super) fn section_number(&self) -> Option<(u64, u16)> {
        let (start, _) = self.load_config_directory()?;
        let number = self.load_config.as_ref()?.dynamic_value_reloc_table_section.get(LE);
        let field = offset_of!(ImageLoadConfigDirectory64, dynamic_value_reloc_table_section);
        (number != 0).then_some((start + field as u64, number))
    }

    fn check(&self) -> Result<(), Error> {
        let (in_memory, in_file) = (self.section_alignment(), self.file_alignment());
        if !in_memory.is_power_of_two() || in_memory < PAGE {
            return Err(Error::unsupported_pe("sections not aligned to pages"));
        }
        if !in_file.is_power_of_two() || in_file < 512 || in_file > in_memory {
            return Err(Error::unsupported_pe("unknown alignment in the file"));
        }
        if self.sections.len() > MOST_SECTIONS {
            return Err(Error::unsupported_pe("more than 96 sections"));
        }
        let inconsistent = |what| Error::inconsistent_sections(what);
        let mut end = u64::from(self.optional.size_of_headers.get(LE));
        for section in &self.sections {
            let address = u64::from(section.virtual_address.get(LE));
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
        self.optional.image_base.get(LE)
    }

    pub(super) fn section_alignment(&self) -> u64 {
        self.optional.section_alignment.get(LE).into()
    }

    pub(super) fn file_alignment(&self) -> u64 {
        self.optional.file_alignment.get(LE).into()
    }

    /// Returns the offset of the optional header.
    pub(super) fn optional_at(&self) -> u64 {
        self.coff_at + size_of::<ImageFileHeader>() as u64
    }

    /// Returns the start of the section table.
    pub(super) fn table_at(&self) -> u64 {
        self.optional_at() + u64::from(self.coff.size_of_optional_header.get(LE))
    }

    /// Returns the end of the section table.
    pub(super) fn table_end(&self) -> u64 {
        self.table_at() + (self.sections.len() * size_of::<Section>()) as u64
    }

    /// Returns the end of the section table or of the sections' contents, whichever is last.
    pub(super) fn end_of_sections(&self) -> u64 {
        let contents = self.sections.iter().map(file_range).filter(|range| !range.is_empty());
        contents.map(|range| range.end).fold(self.table_end(), u64::max)
    }

    /// Returns a data directory that is there and not empty.
    pub(super) fn directory(&self, index: usize) -> Option<Range<u64>> {
        let directory = self.directories.get(index)?;
        let start = u64::from(directory.virtual_address.get(LE));
        let size = u64::from(directory.size.get(LE));
        (start != 0 && size != 0).then(|| start..start + size)
    }

    /// Returns the section whose memory holds this address.
    pub(super) fn section_at(&self, address: u64) -> Option<&Section> {
        let next = self
            .sections
            .partition_point(|section| u64::from(section.virtual_address.get(LE)) <= address);
        let section = self.sections.get(next.checked_sub(1)?)?;
        (address < u64::from(section.virtual_address.get(LE)) + memory_size(section))
            .then_some(section)
    }

    /// Returns the file offset of the bytes at these addresses; `None` unless all of them come from one section in the
    /// file.
    pub(super) fn offset_of(&self, addresses: &Range<u64>) -> Option<u64> {
        let section = self.section_at(addresses.start)?;
        let into = addresses.start - u64::from(section.virtual_address.get(LE));
        let end = into.checked_add(addresses.end.checked_sub(addresses.start)?)?;
        (end <= self.loaded_size(section))
            .then(|| u64::from(section.pointer_to_raw_data.get(LE)) + into)
    }

    /// Returns the bytes at these addresses; none where they do not come from the file.
    pub(super) fn read_at(
        &self,
        source: &mut Source<'_>,
        addresses: &Range<u64>,
    ) -> io::Result<Option<Vec<u8>>> {
        let Some(offset) = self.offset_of(addresses) else { return Ok(None) };
        let start = self.window.start + offset;
        source.read_range(&(start..start + (addresses.end - addresses.start))).map(Some)
    }

    /// Returns the number of bytes of the file that a section has in memory. A loader maps whole pages, including
    /// bytes after the section's own that are in the file.
    pub(super) fn loaded_size(&self, section: &Section) -> u64 {
        let room = memory_size(section).next_multiple_of(self.section_alignment());
        room.min(section.size_of_raw_data.get(LE).into())
    }

    /// Returns the end of the memory of the last section, rounded up to a page.
    pub(super) fn image_end(&self) -> u64 {
        let end = match self.sections.last() {
            Some(last) => u64::from(last.virtual_address.get(LE)) + memory_size(last),
            None => self.optional.size_of_headers.get(LE).into(),
        };
        end.next_multiple_of(self.section_alignment())
    }

    /// Returns whether there is a table of symbols, as MinGW's linkers leave one.
    pub(super) fn has_symbols(&self) -> bool {
        self.coff.pointer_to_symbol_table.get(LE) != 0 && self.coff.number_of_symbols.get(LE) != 0
    }

    /// Returns whether the file has code for ARM64 and for x86-64, with `CHPEMetadataPointer`; `None` if that is not known.
    pub(super) fn is_hybrid(&self) -> Option<bool> {
        self.load_config.as_ref().map(|config| config.chpe_metadata_pointer.get(LE) != 0)
    }

    /// Returns whether the section number lies within both sizes of the load configuration: its own, and that in the
    /// directory. Past one of them may lie other bytes.
    fn has_sure_number(&self) -> bool {
        let field = offset_of!(ImageLoadConfigDirectory64, dynamic_value_reloc_table_section);
        let own = self.load_config.as_ref().map(|config| u64::from(config.size.get(LE)));
        let sizes = own.zip(self.load_config_directory());
        sizes.is_some_and(|(own, (_, size))| own.min(size) >= (field + size_of::<u16>()) as u64)
    }

    /// Returns whether something may number sections that is not corrected: symbols, the load configuration of ARM64X
    /// files for x86-64, or one that is not known, has a number that no section has, or may have one.
    pub(super) fn numbers_sections(&self) -> bool {
        let is_arm = self.coff.machine.get(LE) == IMAGE_FILE_MACHINE_ARM64;
        let is_unknown =
            |number| usize::from(number) > self.sections.len() || !self.has_sure_number();
        self.has_symbols()
            || self.is_hybrid().is_none_or(|is_hybrid| is_hybrid && is_arm)
            || self.section_number().is_some_and(|(_, number)| is_unknown(number))
    }

    /// Returns the name of a section, as the string table has it where it is too long.
    pub(super) fn name(&self, source: &mut Source<'_>, section: &Section) -> io::Result<Vec<u8>> {
        let short = until_nul(&section.name);
        let offset = short
            .strip_prefix(b"/")
            .and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<u32>().ok());
        let (Some(offset), 1..) = (offset, self.coff.pointer_to_symbol_table.get(LE)) else {
            return Ok(short.to_vec());
        };
        let symbols = u64::from(self.coff.number_of_symbols.get(LE)) * SYMBOL_SIZE;
        let start =
            u64::from(self.coff.pointer_to_symbol_table.get(LE)) + symbols + u64::from(offset);
        let name = (self.window.start + start.min(self.len()))..self.window.end;
        Ok(until_nul(&source.peek(&name, LONGEST_NAME)?).to_vec())
    }
}

/// Names that matter here are shorter.
const LONGEST_NAME: usize = 64;
/// A symbol is 18 bytes.
pub(super) const SYMBOL_SIZE: u64 = size_of::<object::pe::ImageSymbol>() as u64;

/// Returns the number of bytes of a section in memory.
pub(super) fn memory_size(section: &Section) -> u64 {
    match section.virtual_size.get(LE) {
        0 => section.size_of_raw_data.get(LE).into(),
        size => size.into(),
    }
}

/// Returns the range of a section's bytes in the file.
pub(super) fn file_range(section: &Section) -> Range<u64> {
    let start = u64::from(section.pointer_to_raw_data.get(LE));
    start..start + u64::from(section.size_of_raw_data.get(LE))
}

fn beyond_end(what: &'static str, start: u64, end: u64, available: u64) -> Error {
    Error::beyond_end(what, start, end, available)
}

/// Reads bytes of the headers.
pub(super) fn bytes(
    source: &mut Source<'_>,
    window: &Range<u64>,
    what: &'static str,
    offset: u64,
    size: u64,
) -> Result<Vec<u8>, Error> {
    table(source, window, what, offset, size)
}

fn one<T: Pod>(
    source: &mut Source<'_>,
    window: &Range<u64>,
    what: &'static str,
    offset: u64,
) -> Result<T, Error> {
    let table = table(source, window, what, offset, 1)?;
    table.first().copied().ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof).into())
}

/// Returns a table of structs.
pub(super) fn table<T: Pod>(
    source: &mut Source<'_>,
    window: &Range<u64>,
    what: &'static str,
    offset: u64,
    count: u64,
) -> Result<Vec<T>, Error> {
    // A number of up to 32 bits.
    let range = sized(offset, count * size_of::<T>() as u64);
    let beyond_end = |available| beyond_end(what, offset, range.end, available);
    read::table(source, window, &range, beyond_end)
}
