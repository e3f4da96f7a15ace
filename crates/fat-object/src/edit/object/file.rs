//! The headers of an ELF object.

use std::io;
use std::ops::Range;

use zerocopy::FromBytes;

use crate::edit::EditError;
use crate::edit::host::SectionEdit;
use crate::embed::{EmbedError, ObjectPart};
use crate::source::Source;
use crate::wire::{ElfFields, ElfHeader, ElfSection, ElfSectionHeader, Wire};

const FORMAT: &str = "ELF";
const ET_REL: u16 = 1;
const SHN_XINDEX: u16 = 0xffff;
const SHT_NULL: u32 = 0;
pub(super) const SHT_NOBITS: u32 = 8;

/// How much of a table is in memory at a time.
const CHUNK: u64 = 64 * 1024;

/// A relocatable object. Offsets in it count from the start of the window.
pub(super) struct Object<H: ElfHeader> {
    /// Where it lies in the walked file.
    pub(super) window: Range<u64>,
    pub(super) header: H,
    pub(super) sections: Vec<ElfSection>,
    /// Where the section headers lie.
    pub(super) table: Range<u64>,
    /// The section name string table.
    names: Vec<u8>,
}

impl<H: ElfHeader> Object<H> {
    /// Reads the headers, and checks that everything lies in the object.
    pub(super) fn read(source: &mut Source<'_>, window: &Range<u64>) -> Result<Self, EditError> {
        let header_len = size_of::<H>() as u64;
        let header = read_table::<H>(source, window, ObjectPart::FileHeader, &(0..header_len))?;
        let header = *header.first().ok_or(EmbedError::NoSectionHeaders)?;
        let fields = header.fields();
        if fields.e_type != ET_REL {
            return Err(EmbedError::ElfType { found: fields.e_type }.into());
        }
        if fields.phnum != 0 {
            return Err(EditError::UnsupportedElf { what: "relocatable with program headers" });
        }
        let (table, sections) = Self::headers(source, window, &fields)?;
        let null = sections.first().ok_or(EmbedError::NoSectionHeaders)?;
        let names_index = match fields.shstrndx {
            SHN_XINDEX => null.link,
            index => index.into(),
        };
        for (index, section) in sections.iter().enumerate() {
            let place = place(section);
            if !place.is_empty() {
                inside(window, ObjectPart::Section(index as u64), &place)?;
            }
        }
        let names = usize::try_from(names_index).ok().and_then(|index| sections.get(index));
        let names = match names {
            Some(names) if !place(names).is_empty() => {
                source.read_range(&absolute(window, &place(names)))?
            }
            _ => Vec::new(),
        };
        Ok(Object { window: window.clone(), header, sections, table, names })
    }

    fn headers(
        source: &mut Source<'_>,
        window: &Range<u64>,
        fields: &ElfFields,
    ) -> Result<(Range<u64>, Vec<ElfSection>), EditError> {
        let entry_len = size_of::<H::Section>() as u64;
        if fields.shoff == 0 {
            return Err(EmbedError::NoSectionHeaders.into());
        }
        if u64::from(fields.shentsize) != entry_len {
            let expected =
                if entry_len == 40 { "40 in a 32-bit file" } else { "64 in a 64-bit file" };
            return Err(EmbedError::Field {
                format: FORMAT,
                field: "e_shentsize",
                offset: 0,
                found: fields.shentsize.into(),
                expected,
            }
            .into());
        }
        let part = ObjectPart::SectionHeaders;
        let range =
            |count: u64| fields.shoff..fields.shoff.saturating_add(count.saturating_mul(entry_len));
        // A number that does not fit the ELF header stands in the null section's.
        let count = match fields.shnum {
            0 => {
                let null = read_table::<H::Section>(source, window, part, &range(1))?;
                null.first().map_or(0, |null| null.fields().size)
            }
            count => count.into(),
        };
        let table = read_table::<H::Section>(source, window, part, &range(count))?;
        Ok((range(count), table.iter().map(ElfSectionHeader::fields).collect()))
    }

    /// The section that the edit is about: with these contents and this name, and not among those that are taken.
    pub(super) fn find(&self, edit: &SectionEdit, taken: &[usize]) -> Option<usize> {
        self.sections
            .iter()
            .enumerate()
            .skip(1)
            .position(|(index, section)| {
                section.kind != SHT_NOBITS
                    && self.absolute(&self.place(section)) == edit.range
                    && String::from_utf8_lossy(self.name(section)) == edit.name
                    && !taken.contains(&index)
            })
            .map(|position| position + 1)
    }

    /// The name of a section; empty where it has none.
    pub(super) fn name(&self, section: &ElfSection) -> &[u8] {
        let start = usize::try_from(section.name).unwrap_or(usize::MAX);
        let name = self.names.get(start..).unwrap_or_default();
        name.split(|&byte| byte == 0).next().unwrap_or_default()
    }

    /// Where the contents of a section lie; an empty range where nothing in the file belongs to it.
    pub(super) fn place(&self, section: &ElfSection) -> Range<u64> {
        place(section)
    }

    /// A range of the walked file.
    pub(super) fn absolute(&self, range: &Range<u64>) -> Range<u64> {
        absolute(&self.window, range)
    }

    /// Calls `f` with every entry of a table, its number, and its offset in the walked file.
    pub(super) fn for_each(
        &self,
        source: &mut Source<'_>,
        section: &ElfSection,
        entry_len: u64,
        mut f: impl FnMut(&mut Source<'_>, u64, u64, &[u8]) -> Result<(), EditError>,
    ) -> Result<(), EditError> {
        let mut range = self.absolute(&self.place(section));
        let mut index = 0;
        let chunk_len = CHUNK - CHUNK % entry_len;
        while range.end.saturating_sub(range.start) >= entry_len {
            let end = range.end.min(range.start.saturating_add(chunk_len));
            let chunk = source.read_range(&(range.start..end))?;
            for entry in chunk.chunks_exact(usize::try_from(entry_len).unwrap_or(1)) {
                f(source, index, range.start, entry)?;
                index += 1;
                range.start += entry_len;
            }
            if end == range.end {
                break;
            }
        }
        Ok(())
    }
}

fn place(section: &ElfSection) -> Range<u64> {
    let size = if [SHT_NULL, SHT_NOBITS].contains(&section.kind) { 0 } else { section.size };
    section.offset..section.offset.saturating_add(size)
}

fn absolute(window: &Range<u64>, range: &Range<u64>) -> Range<u64> {
    window.start.saturating_add(range.start)..window.start.saturating_add(range.end)
}

fn inside(window: &Range<u64>, part: ObjectPart, range: &Range<u64>) -> Result<(), EmbedError> {
    let available = window.end - window.start;
    if range.end <= available {
        return Ok(());
    }
    let Range { start, end } = *range;
    Err(EmbedError::BeyondEnd { format: FORMAT, part, start, end, available })
}

fn read_table<T: Wire>(
    source: &mut Source<'_>,
    window: &Range<u64>,
    part: ObjectPart,
    range: &Range<u64>,
) -> Result<Vec<T>, EditError> {
    inside(window, part, range)?;
    let bytes = source.read_range(&absolute(window, range))?;
    let table = bytes.chunks_exact(size_of::<T>()).map(T::read_from_bytes);
    table.collect::<Result<_, _>>().map_err(|_| io::Error::from(io::ErrorKind::InvalidData).into())
}
