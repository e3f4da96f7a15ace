//! The headers of an ELF file, read by its section headers.

use std::ops::Range;

use byte_parts::{Source, Window};
use object::elf::{
    EM_MIPS, ET_DYN, ET_EXEC, ET_REL, Machine, RelocationType, SHN_XINDEX, SHT_NOBITS, SHT_NULL,
    SHT_STRTAB, SymbolSection,
};
use object::read::elf::Rela;
use object::{Endian, Pod};

use crate::error::Error;
use crate::objects::elf_class::{ElfHeader, ElfSection};
use crate::objects::error::ObjectPart;
use crate::pod::{entries, first, rest};
use crate::tables::{Read, absolute, in_memory, in_source, sized};

pub(crate) const FORMAT: &str = "ELF";

/// A file with section headers. Offsets in it count from the start of the window.
pub(crate) struct Object<H: ElfHeader> {
    /// Its range in the walked file.
    pub(crate) window: Range<u64>,
    pub(crate) header: H,
    pub(crate) sections: Vec<ElfSection>,
    /// The range of the section headers.
    pub(crate) table: Range<u64>,
    /// The index of the section with their names.
    pub(crate) names_index: usize,
    pub(crate) names: Vec<u8>,
}

impl<H: ElfHeader> Object<H> {
    /// Reads the headers of an object or a linked file, and checks that all sections lie in it.
    pub(crate) fn read(source: &mut Source<'_>, window: &Range<u64>) -> Result<Self, Error> {
        let object = Self::new(window.clone(), &mut in_source(source, window.start))?;
        // Work on all sections touches each byte at most twice. A sum that is too large for a number is too large here.
        let sizes = object.sections.iter().map(place).map(|range| range.end - range.start);
        let (value, limit) = (sizes.fold(0, u64::saturating_add), largest(window));
        if value > limit { Err(Error::too_large(FORMAT, value, limit)) } else { Ok(object) }
    }

    /// Reads the headers of a file in memory.
    pub(crate) fn of_bytes(object: &[u8]) -> Result<Self, Error> {
        Self::new(0..object.len() as u64, &mut in_memory(object))
    }

    fn new(window: Range<u64>, read: &mut Read<'_>) -> Result<Self, Error> {
        let header_len = size_of::<H>() as u64;
        let header = part::<H>(&window, read, ObjectPart::FileHeader, 0, header_len)?;
        let header = *header.first().ok_or_else(Error::no_section_headers)?;
        let e = H::order();
        let e_type = header.e_type(e);
        if ![ET_REL, ET_EXEC, ET_DYN].contains(&e_type) {
            return Err(Error::elf_type(e_type.0));
        }
        let (table, sections) = Self::headers(&window, read, &header)?;
        let names_index = match header.e_shstrndx(e) {
            SHN_XINDEX => sections.first().map_or(0, |null| null.link),
            SymbolSection(index) => index.into(),
        };
        if names_index == 0 {
            return Err(Error::cannot_change("the ELF object has no table of section names"));
        }
        let not_names = |expected| field("e_shstrndx", names_index.into(), expected);
        let found = usize::try_from(names_index).ok();
        let found = found.and_then(|index| Some((index, sections.get(index)?)));
        let (index, section) = found.ok_or_else(|| not_names("the index of a section"))?;
        if section.kind != SHT_STRTAB {
            return Err(not_names("the index of a string table"));
        }
        let kind = ObjectPart::SectionNames;
        let names = part::<u8>(&window, read, kind, section.offset, section.size)?;
        if names.last().is_some_and(|&last| last != 0) {
            let end = place(section).end;
            return Err(Error::unterminated(FORMAT, kind, end));
        }
        inside(&window, ObjectPart::ProgramHeaders, &program_headers(&header))?;
        for (index, section) in sections.iter().enumerate() {
            inside(&window, ObjectPart::Section(index as u64), &place(section))?;
        }
        Ok(Object { window, header, sections, table, names_index: index, names })
    }

    fn headers(
        window: &Range<u64>,
        read: &mut Read<'_>,
        header: &H,
    ) -> Result<(Range<u64>, Vec<ElfSection>), Error> {
        let e = H::order();
        let entry_len = size_of::<H::SectionHeader>() as u64;
        let shoff: u64 = header.e_shoff(e).into();
        if shoff == 0 {
            return Err(Error::no_section_headers());
        }
        if u64::from(header.e_shentsize(e)) != entry_len {
            let expected =
                if entry_len == 40 { "40 in a 32-bit file" } else { "64 in a 64-bit file" };
            return Err(field("e_shentsize", header.e_shentsize(e).into(), expected));
        }
        let kind = ObjectPart::SectionHeaders;
        // A number that does not fit the ELF header stands in the null section's.
        let null = part::<H::SectionHeader>(window, read, kind, shoff, entry_len)?;
        let count = match header.e_shnum(e) {
            0 => null.first().map_or(0, |null| H::section(null).size),
            count => count.into(),
        };
        if count == 0 {
            return Err(Error::no_section_headers());
        }
        // A table of more bytes than a number can say ends after every file.
        let len = count.saturating_mul(entry_len);
        let table = part::<H::SectionHeader>(window, read, kind, shoff, len)?;
        Ok((sized(shoff, len), table.iter().map(H::section).collect()))
    }

    /// Returns the name of a section and all names after it, each with a zero at its end: looking for it may take
    /// long, if many sections have one name.
    pub(crate) fn name_on(&self, section: &ElfSection) -> &[u8] {
        rest(&self.names, section.name.into())
    }

    /// Returns the range of the contents of a section in the walked file.
    pub(crate) fn place(&self, section: &ElfSection) -> Range<u64> {
        absolute(self.window.start, &place(section))
    }
}

/// Returns the limit of the total size of sections, and of a file made of them: alignments that the object kept fit
/// by far. A limit too large for a number is not a limit.
pub(super) fn largest(window: &Range<u64>) -> u64 {
    available(window).saturating_mul(2).saturating_add(0x1_0000)
}

/// Returns the range of the contents of a section; an empty range if it has no bytes in the file.
pub(crate) fn place(section: &ElfSection) -> Range<u64> {
    let size = if [SHT_NULL, SHT_NOBITS].contains(&section.kind) { 0 } else { section.size };
    sized(section.offset, size)
}

/// Fails for a part that is not in the file. An empty one may lie anywhere.
pub(super) fn inside(
    window: &Range<u64>,
    part: ObjectPart,
    range: &Range<u64>,
) -> Result<(), Error> {
    if range.is_empty() || range.end <= available(window) {
        Ok(())
    } else {
        Err(beyond_end(window, part, range))
    }
}

fn available(window: &Range<u64>) -> u64 {
    Window::new(window).len()
}

fn beyond_end(window: &Range<u64>, part: ObjectPart, range: &Range<u64>) -> Error {
    let Range { start, end } = *range;
    Error::outside(FORMAT, part, start, end, available(window))
}

/// Returns the range of the program headers.
pub(crate) fn program_headers<H: ElfHeader>(header: &H) -> Range<u64> {
    let (e, start) = (H::order(), header.e_phoff(H::order()).into());
    let size = u64::from(header.e_phnum(e)) * u64::from(header.e_phentsize(e));
    sized(start, size)
}

/// Reads a part of the file as a table.
pub(super) fn part<T: Pod>(
    window: &Range<u64>,
    read: &mut Read<'_>,
    part: ObjectPart,
    start: u64,
    len: u64,
) -> Result<Vec<T>, Error> {
    let range = sized(start, len);
    // An empty one may lie anywhere.
    if len == 0 {
        return Ok(Vec::new());
    }
    if range.end > available(window) {
        return Err(beyond_end(window, part, &range));
    }
    Ok(entries(&read(&range)?).to_vec())
}

/// Returns a field of a header that has another value than it can have.
pub(super) fn field(field: &'static str, found: u64, expected: &'static str) -> Error {
    Error::field(FORMAT, field, 0, found, expected)
}

/// Returns `r_offset`, and symbol and type in `r_info`, of an entry with or without an addend.
pub(crate) fn decode<H: ElfHeader>(
    entry: &[u8],
    machine: Machine,
) -> Option<(u64, u64, RelocationType)> {
    let e = H::order();
    let entry: H::Rela = first::<H::Rel>(entry)?.into();
    // Little-endian 64-bit MIPS has the symbol first.
    let is_mips64el = machine == EM_MIPS && e.is_little_endian();
    let symbol = entry.r_sym(e, is_mips64el).into();
    Some((entry.r_offset(e).into(), symbol, entry.r_type(e, is_mips64el)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::elf::{EM_X86_64, FileHeader64, R_MIPS_64};
    use object::{BigEndian, LittleEndian};

    #[test]
    fn relocations_have_a_symbol_and_a_type() {
        let entry = [0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 18];
        let little = decode::<FileHeader64<LittleEndian>>(&entry, EM_MIPS);
        assert_eq!(little, Some((0, 5, R_MIPS_64)));
        let little = decode::<FileHeader64<LittleEndian>>(&entry, EM_X86_64);
        assert_eq!(little, Some((0, 18 << 24, RelocationType(5))));
        let big = decode::<FileHeader64<BigEndian>>(&entry, EM_MIPS);
        assert_eq!(big, Some((0, 5 << 24, R_MIPS_64)));
        assert_eq!(decode::<FileHeader64<BigEndian>>(&entry[..15], EM_MIPS), None);
    }
}
