//! The headers of a COFF object.

use std::ops::Range;

use byte_parts::Source;
use zerocopy::FromBytes;
use zerocopy::little_endian::U32;

use super::super::changes::Place;
use super::super::tables::absolute;
use super::FORMAT;
use crate::embed::{CoffFile, EmbedError, ObjectPart, coff_name_offset};
use crate::error::Error;
use crate::wire::CoffSection;

const RELOCATION_LEN: u64 = 10;
const LINE_NUMBER_LEN: u64 = 6;
const IMAGE_SCN_CNT_UNINITIALIZED_DATA: u32 = 0x0000_0080;
const IMAGE_SCN_LNK_NRELOC_OVFL: u32 = 0x0100_0000;

/// An object. Offsets in it count from the start of the window.
pub(super) struct Object {
    /// Where it lies in the walked file.
    pub(super) window: Range<u64>,
    pub(super) header: CoffFile,
    pub(super) headers_end: u64,
    pub(super) sections: Vec<CoffSection>,
    /// What belongs to each section.
    pub(super) parts: Vec<Parts>,
    /// The symbol table. The strings follow.
    pub(super) symbols: Range<u64>,
    pub(super) strings_end: u64,
    /// The string table with its size.
    pub(super) strings: Vec<u8>,
}

/// Where things of a section lie; empty ranges where there are none.
pub(super) struct Parts {
    pub(super) contents: Range<u64>,
    pub(super) relocations: Range<u64>,
    pub(super) lines: Range<u64>,
}

impl Object {
    /// Reads the headers and the string table, and checks that everything lies in the object.
    pub(super) fn read(source: &mut Source<'_>, window: &Range<u64>) -> Result<Self, Error> {
        let header = CoffFile::read(&source.peek(window, 64)?)?;
        let headers = header.sections().saturating_mul(size_of::<CoffSection>() as u64);
        let headers_end = header.len().saturating_add(headers);
        let table = read(source, window, ObjectPart::SectionHeaders, &(header.len()..headers_end))?;
        let table = table.chunks_exact(size_of::<CoffSection>());
        let sections: Vec<_> =
            table.filter_map(|entry| CoffSection::read_from_bytes(entry).ok()).collect();
        let mut parts = Vec::with_capacity(sections.len());
        for (number, section) in (1..).zip(&sections) {
            parts.push(Parts::of(source, window, number, section)?);
        }
        // What is done for each section is done for each byte no more than twice.
        let value = parts.iter().fold(0, |sum: u64, parts| sum.saturating_add(parts.size()));
        let limit = window.end.saturating_sub(window.start).saturating_mul(2);
        if value > limit {
            return Err(EmbedError::TooLarge { format: FORMAT, value, limit }.into());
        }
        let symbols = symbols(window, &header, headers_end)?;
        let (strings, strings_end) = strings(source, window, symbols.end)?;
        for (number, parts) in (1..).zip(&parts) {
            parts.check_apart(number, headers_end, &(symbols.start..strings_end))?;
        }
        Ok(Object {
            window: window.clone(),
            header,
            headers_end,
            sections,
            parts,
            symbols,
            strings_end,
            strings,
        })
    }

    /// The sections that are somewhere in the file.
    pub(super) fn places(&self) -> impl Iterator<Item = Place<'_>> {
        let sections = self.sections.iter().zip(&self.parts).enumerate();
        let in_file = |section: &CoffSection| {
            section.characteristics.get() & IMAGE_SCN_CNT_UNINITIALIZED_DATA == 0
        };
        sections.filter(move |(_, (section, _))| in_file(section)).map(
            |(index, (section, parts))| {
                let name = self.name_on(section);
                let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
                Place { index, range: absolute(self.window.start, &parts.contents), name }
            },
        )
    }

    /// The name of a section, as it stands in its header or in the string table, there with all names behind it:
    /// looking for its end may take long, if many sections have one name.
    pub(super) fn name_on<'o>(&'o self, section: &'o CoffSection) -> &'o [u8] {
        match coff_name_offset(section) {
            Some(offset) => {
                let start = offset.and_then(|offset| usize::try_from(offset).ok());
                start.and_then(|start| self.strings.get(start..)).unwrap_or_default()
            }
            None => &section.name,
        }
    }

    /// Length of an entry of the symbol table.
    pub(super) fn symbol_len(&self) -> u64 {
        match self.header {
            CoffFile::Plain(_) => 18,
            CoffFile::Big(_) => 20,
        }
    }

    pub(super) fn machine(&self) -> u16 {
        match self.header {
            CoffFile::Plain(header) => header.machine.get(),
            CoffFile::Big(header) => header.machine.get(),
        }
    }
}

impl Parts {
    fn of(
        source: &mut Source<'_>,
        window: &Range<u64>,
        number: u64,
        section: &CoffSection,
    ) -> Result<Self, Error> {
        let flags = section.characteristics.get();
        let range = |start: &U32, len: u64| {
            let start = u64::from(start.get());
            start..start.saturating_add(if start == 0 { 0 } else { len })
        };
        let uninitialized = flags & IMAGE_SCN_CNT_UNINITIALIZED_DATA != 0;
        let size = if uninitialized { 0 } else { section.raw_size.get().into() };
        let contents = range(&section.raw_at, size);
        let mut count = u64::from(section.relocations.get());
        if count == 0xffff && flags & IMAGE_SCN_LNK_NRELOC_OVFL != 0 {
            // The first relocation holds their number, itself included, where others hold a place.
            let first = range(&section.relocations_at, 4);
            let first = read(source, window, ObjectPart::Relocations(number), &first)?;
            count = U32::read_from_bytes(&first).map_or(count, |count| count.get().into());
            // A number that lies in the headers would change with them.
            count = count.max(1);
        }
        let relocations = range(&section.relocations_at, count * RELOCATION_LEN);
        let lines = range(&section.lines_at, u64::from(section.lines.get()) * LINE_NUMBER_LEN);
        let parts = Parts { contents, relocations, lines };
        for (part, range) in parts.named(number) {
            if !range.is_empty() {
                inside(window, part, range)?;
            }
        }
        Ok(parts)
    }

    /// Bytes of all of them.
    fn size(&self) -> u64 {
        let ranges = [&self.contents, &self.relocations, &self.lines];
        ranges.into_iter().map(|range| range.end - range.start).sum()
    }

    fn named(&self, number: u64) -> [(ObjectPart, &Range<u64>); 3] {
        [
            (ObjectPart::Section(number), &self.contents),
            (ObjectPart::Relocations(number), &self.relocations),
            (ObjectPart::LineNumbers(number), &self.lines),
        ]
    }

    /// Fails where they share bytes with the headers or the tables behind them.
    fn check_apart(
        &self,
        number: u64,
        headers_end: u64,
        tables: &Range<u64>,
    ) -> Result<(), EmbedError> {
        for (part, range) in self.named(number) {
            let Range { start, end } = *range;
            let other = match () {
                () if range.is_empty() => continue,
                () if start < headers_end => ObjectPart::SectionHeaders,
                () if start < tables.end && end > tables.start => ObjectPart::SymbolTable,
                () => continue,
            };
            return Err(EmbedError::Overlap { part, start, end, other });
        }
        Ok(())
    }
}

/// Where the symbol table lies: an empty one at the end of the file, where there is none.
fn symbols(
    window: &Range<u64>,
    header: &CoffFile,
    headers_end: u64,
) -> Result<Range<u64>, EmbedError> {
    let (start, len) = header.symbols();
    if start == 0 && len > 0 {
        let (offset, found) = match header {
            CoffFile::Plain(header) => (12, header.symbols.get()),
            CoffFile::Big(header) => (52, header.symbols.get()),
        };
        return Err(EmbedError::Field {
            format: FORMAT,
            field: "NumberOfSymbols",
            offset,
            found: found.into(),
            expected: "0 without a symbol table",
        });
    }
    if start == 0 {
        let end = window.end.saturating_sub(window.start);
        return Ok(end..end);
    }
    let (part, other) = (ObjectPart::SymbolTable, ObjectPart::SectionHeaders);
    let range = start..start.saturating_add(len);
    inside(window, part, &range)?;
    if start < headers_end {
        return Err(EmbedError::Overlap { part, start, end: range.end, other });
    }
    Ok(range)
}

/// The string table with its size, and where it ends.
fn strings(
    source: &mut Source<'_>,
    window: &Range<u64>,
    start: u64,
) -> Result<(Vec<u8>, u64), Error> {
    let available = window.end.saturating_sub(window.start);
    if start >= available {
        return Ok((Vec::new(), start));
    }
    let part = ObjectPart::StringTable;
    let size = read(source, window, part, &(start..start.saturating_add(4)))?;
    // Some tools write 0 for an empty table.
    let size = U32::read_from_bytes(&size).map_or(0, |size| size.get().into()).max(4);
    let end = start.saturating_add(size);
    let strings = read(source, window, part, &(start..end))?;
    if size > 4 && strings.last().is_some_and(|&last| last != 0) {
        return Err(EmbedError::Unterminated { format: FORMAT, part, end }.into());
    }
    Ok((strings, end))
}

/// Alignment of the contents of a section in memory.
pub(super) fn alignment(section: &CoffSection) -> u64 {
    match section.characteristics.get() >> 20 & 0xf {
        0 | 15 => 16,
        n => 1 << (n - 1),
    }
}

fn inside(window: &Range<u64>, part: ObjectPart, range: &Range<u64>) -> Result<(), EmbedError> {
    let available = window.end.saturating_sub(window.start);
    if range.end <= available {
        return Ok(());
    }
    let Range { start, end } = *range;
    Err(EmbedError::BeyondEnd { format: FORMAT, part, start, end, available })
}

fn read(
    source: &mut Source<'_>,
    window: &Range<u64>,
    part: ObjectPart,
    range: &Range<u64>,
) -> Result<Vec<u8>, Error> {
    inside(window, part, range)?;
    Ok(source.read_range(&absolute(window.start, range))?)
}
