//! The headers of an ELF file, read by its section headers.

use std::ops::Range;

use byte_parts::Source;
use object::Pod;
use object::elf::{
    ET_DYN, ET_EXEC, ET_REL, SHN_XINDEX, SHT_NOBITS, SHT_NULL, SHT_STRTAB, SymbolSection,
};

use crate::changes::Place;
use crate::elf_class::{ElfHeader, ElfSection};
use crate::embed::{EmbedError, ObjectPart};
use crate::error::Error;
use crate::pod;
use crate::tables::absolute;

pub(super) const FORMAT: &str = "ELF";

/// A file with section headers. Offsets in it count from the start of the window.
pub(super) struct Object<H: ElfHeader> {
    /// Where it lies in the walked file.
    pub(super) window: Range<u64>,
    pub(super) header: H,
    pub(super) sections: Vec<ElfSection>,
    /// Where the section headers lie.
    pub(super) table: Range<u64>,
    /// Which section holds their names.
    pub(super) names_index: usize,
    names: Vec<u8>,
}

impl<H: ElfHeader> Object<H> {
    /// Reads the headers of an object or a linked file, and checks that all sections lie in it.
    pub(super) fn read(source: &mut Source<'_>, window: &Range<u64>) -> Result<Self, Error> {
        let header_len = size_of::<H>() as u64;
        let header = read_table::<H>(source, window, ObjectPart::FileHeader, &(0..header_len))?;
        let header = *header.first().ok_or(EmbedError::NoSectionHeaders)?;
        let e = H::order();
        let e_type = header.e_type(e);
        if ![ET_REL, ET_EXEC, ET_DYN].contains(&e_type) {
            return Err(EmbedError::ElfType { found: e_type.0 }.into());
        }
        let (table, sections) = Self::headers(source, window, &header)?;
        let names_index = match header.e_shstrndx(e) {
            SHN_XINDEX => sections.first().map_or(0, |null| null.link),
            SymbolSection(index) => index.into(),
        };
        if names_index == 0 {
            return Err(EmbedError::NoSectionNames.into());
        }
        let not_names = |expected| Error::from(field("e_shstrndx", names_index.into(), expected));
        let index = usize::try_from(names_index).unwrap_or(usize::MAX);
        let section = sections.get(index).ok_or_else(|| not_names("the index of a section"))?;
        if section.kind != SHT_STRTAB {
            return Err(not_names("the index of a string table"));
        }
        let (part, range) = (ObjectPart::SectionNames, place(section));
        let names = read_table::<u8>(source, window, part, &range)?;
        if names.last().is_some_and(|&last| last != 0) {
            return Err(EmbedError::Unterminated { format: FORMAT, part, end: range.end }.into());
        }
        let program_headers =
            u64::from(header.e_phnum(e)).saturating_mul(header.e_phentsize(e).into());
        let phoff = header.e_phoff(e).into();
        let range = phoff..phoff.saturating_add(program_headers);
        inside(window, ObjectPart::ProgramHeaders, &range)?;
        let mut total = 0_u64;
        for (index, section) in sections.iter().enumerate() {
            let place = place(section);
            inside(window, ObjectPart::Section(index as u64), &place)?;
            total = total.saturating_add(place.end - place.start);
        }
        // What is done for each section is done for each byte no more than twice.
        let limit = largest(window);
        if total > limit {
            return Err(EmbedError::TooLarge { format: FORMAT, value: total, limit }.into());
        }
        Ok(Object { window: window.clone(), header, sections, table, names_index: index, names })
    }

    fn headers(
        source: &mut Source<'_>,
        window: &Range<u64>,
        header: &H,
    ) -> Result<(Range<u64>, Vec<ElfSection>), Error> {
        let e = H::order();
        let entry_len = size_of::<H::SectionHeader>() as u64;
        let shoff: u64 = header.e_shoff(e).into();
        if shoff == 0 {
            return Err(EmbedError::NoSectionHeaders.into());
        }
        if u64::from(header.e_shentsize(e)) != entry_len {
            let expected =
                if entry_len == 40 { "40 in a 32-bit file" } else { "64 in a 64-bit file" };
            return Err(field("e_shentsize", header.e_shentsize(e).into(), expected).into());
        }
        let part = ObjectPart::SectionHeaders;
        let range = |count: u64| shoff..shoff.saturating_add(count.saturating_mul(entry_len));
        // A number that does not fit the ELF header stands in the null section's.
        let null = read_table::<H::SectionHeader>(source, window, part, &range(1))?;
        let count = match header.e_shnum(e) {
            0 => null.first().map_or(0, |null| H::section(null).size),
            count => count.into(),
        };
        if count == 0 {
            return Err(EmbedError::NoSectionHeaders.into());
        }
        let table = read_table::<H::SectionHeader>(source, window, part, &range(count))?;
        Ok((range(count), table.iter().map(H::section).collect()))
    }

    /// The sections that are somewhere in the file.
    pub(super) fn places(&self) -> impl Iterator<Item = Place<'_>> {
        let sections = self.sections.iter().enumerate().skip(1);
        sections.filter(|(_, section)| section.kind != SHT_NOBITS).map(|(index, section)| {
            let name = self.name_on(section).split(|&byte| byte == 0).next().unwrap_or_default();
            Place { index, range: self.place(section), name }
        })
    }

    /// The name of a section and all names behind it, each with a zero at its end: looking for it may take long, if
    /// many sections have one name.
    pub(super) fn name_on(&self, section: &ElfSection) -> &[u8] {
        let start = usize::try_from(section.name).unwrap_or(usize::MAX);
        self.names.get(start..).unwrap_or_default()
    }

    /// Where the contents of a section lie in the walked file.
    pub(super) fn place(&self, section: &ElfSection) -> Range<u64> {
        absolute(self.window.start, &place(section))
    }
}

/// What sections together may come to, and a file made of them: alignments that the object kept fit by far.
pub(super) fn largest(window: &Range<u64>) -> u64 {
    let len = window.end.saturating_sub(window.start);
    len.saturating_mul(2).saturating_add(0x1_0000)
}

/// Where the contents of a section lie; an empty range where nothing in the file belongs to it.
pub(super) fn place(section: &ElfSection) -> Range<u64> {
    let size = if [SHT_NULL, SHT_NOBITS].contains(&section.kind) { 0 } else { section.size };
    section.offset..section.offset.saturating_add(size)
}

/// Fails for a part that is not in the file. An empty one may lie anywhere.
pub(super) fn inside(
    window: &Range<u64>,
    part: ObjectPart,
    range: &Range<u64>,
) -> Result<(), EmbedError> {
    let available = window.end.saturating_sub(window.start);
    match range.is_empty() || range.end <= available {
        true => Ok(()),
        false => Err(beyond_end(part, range, available)),
    }
}

fn beyond_end(part: ObjectPart, range: &Range<u64>, available: u64) -> EmbedError {
    let Range { start, end } = *range;
    EmbedError::BeyondEnd { format: FORMAT, part, start, end, available }
}

pub(super) fn read_table<T: Pod>(
    source: &mut Source<'_>,
    window: &Range<u64>,
    part: ObjectPart,
    range: &Range<u64>,
) -> Result<Vec<T>, Error> {
    // An empty one may lie anywhere.
    if range.is_empty() {
        return Ok(Vec::new());
    }
    pod::table(source, window, range, |available| beyond_end(part, range, available).into())
}

/// A field of a header that has another value than it can have.
pub(super) fn field(field: &'static str, found: u64, expected: &'static str) -> EmbedError {
    EmbedError::Field { format: FORMAT, field, offset: 0, found, expected }
}
