//! The headers of a COFF object.

use std::ops::Range;

use byte_parts::{Source, Window};
use object::pe::{
    IMAGE_SCN_CNT_UNINITIALIZED_DATA, IMAGE_SCN_LNK_NRELOC_OVFL, ImageLinenumber, ImageRelocation,
};
use object::{LittleEndian, U32};

use super::FORMAT;
use super::header::{Header, Section, name_offset};
use crate::error::Error;
use crate::objects::error::ObjectPart;
use crate::pod::{LE, entries, first, rest};
use crate::tables::{Read, in_memory, in_source, sized};

type Word = U32<LittleEndian>;

/// The size before the string table, which counts itself.
pub(crate) const STRING_SIZE_LEN: u64 = size_of::<Word>() as u64;

/// An object. Offsets in it count from the start of the window.
pub(crate) struct Object {
    /// Its range in the walked file.
    pub(crate) window: Range<u64>,
    pub(crate) header: Header,
    pub(crate) headers_end: u64,
    pub(crate) sections: Vec<Section>,
    /// The parts of each section.
    pub(crate) parts: Vec<Parts>,
    /// The symbol table. The strings follow.
    pub(crate) symbols: Range<u64>,
    pub(crate) strings_end: u64,
    /// The string table with its size; empty where there is none.
    pub(crate) strings: Vec<u8>,
}

/// The ranges of the parts of a section; empty where there are none.
pub(crate) struct Parts {
    pub(crate) contents: Range<u64>,
    pub(crate) relocations: Range<u64>,
    pub(crate) lines: Range<u64>,
}

/// Reads a part of an object, unless it is not all there.
type ReadPart<'r> = dyn FnMut(ObjectPart, &Range<u64>) -> Result<Vec<u8>, Error> + 'r;

impl Object {
    /// Reads the headers and the string table, and checks that everything lies in the object.
    pub(crate) fn read(source: &mut Source<'_>, window: &Range<u64>) -> Result<Self, Error> {
        let mut read = in_source(source, window.start);
        let object = Object::new(window.clone(), &mut read)?;
        // Work on all sections touches each byte at most twice. A sum that is too large for a number is too large here,
        // and a limit that is one is not a limit.
        let value = object.parts.iter().fold(0, |sum: u64, parts| sum.saturating_add(parts.size()));
        let limit = Window::new(window).len().saturating_mul(2);
        if value > limit { Err(Error::too_large(FORMAT, value, limit)) } else { Ok(object) }
    }

    /// Reads the headers of an object in memory.
    pub(crate) fn of_bytes(object: &[u8]) -> Result<Self, Error> {
        Object::new(0..object.len() as u64, &mut in_memory(object))
    }

    fn new(window: Range<u64>, read: &mut Read<'_>) -> Result<Self, Error> {
        let available = Window::new(&window).len();
        let header = Header::read(&read(&(0..available.min(64)))?)?;
        let headers_end = header.len() + header.sections() * size_of::<Section>() as u64;
        let mut part = |part: ObjectPart, range: &Range<u64>| {
            inside(available, part, range)?;
            read(range)
        };
        let table = part(ObjectPart::SectionHeaders, &(header.len()..headers_end))?;
        let sections: Vec<Section> = entries(&table).to_vec();
        let symbols = symbols(available, &header, headers_end)?;
        let (strings, strings_end) = strings(available, symbols.end, &mut part)?;
        let mut parts = Vec::with_capacity(sections.len());
        for (number, section) in (1..).zip(&sections) {
            let parts_of = Parts::of(number, section, &mut part)?;
            parts_of.check(number, available, headers_end, &(symbols.start..strings_end))?;
            parts.push(parts_of);
        }
        Ok(Object { window, header, headers_end, sections, parts, symbols, strings_end, strings })
    }

    /// Returns the name of a section, from its header or from the string table, there with all names after it:
    /// looking for its end may take long, if many sections have one name.
    pub(crate) fn name_on<'o>(&'o self, section: &'o Section) -> &'o [u8] {
        match name_offset(section) {
            Some(offset) => offset.map_or(&[], |offset| rest(&self.strings, offset)),
            None => &section.name,
        }
    }
}

impl Parts {
    fn of(number: u64, section: &Section, read: &mut ReadPart<'_>) -> Result<Self, Error> {
        let flags = section.characteristics.get(LE);
        let range = |start: &Word, len: u64| {
            let start = u64::from(start.get(LE));
            sized(start, if start == 0 { 0 } else { len })
        };
        let uninitialized = flags.contains(IMAGE_SCN_CNT_UNINITIALIZED_DATA);
        let size = if uninitialized { 0 } else { section.size_of_raw_data.get(LE).into() };
        let contents = range(&section.pointer_to_raw_data, size);
        let table = &section.pointer_to_relocations;
        let mut count = u64::from(section.number_of_relocations.get(LE));
        if count == 0xffff && flags.contains(IMAGE_SCN_LNK_NRELOC_OVFL) {
            // The first relocation holds their number, itself included, where others hold a place.
            let bytes = read(ObjectPart::Relocations(number), &range(table, 4))?;
            count = first::<Word>(&bytes).map_or(count, |count| count.get(LE).into());
            // A number that lies in the headers would change with them.
            count = count.max(1);
        }
        let relocations = range(table, count * size_of::<ImageRelocation>() as u64);
        let count = u64::from(section.number_of_linenumbers.get(LE));
        let len = count * size_of::<ImageLinenumber>() as u64;
        let lines = range(&section.pointer_to_linenumbers, len);
        Ok(Parts { contents, relocations, lines })
    }

    /// Returns the number of bytes of all parts.
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

    /// Fails if they are not all in the object, or share bytes with the headers or the tables after them.
    fn check(
        &self,
        number: u64,
        available: u64,
        headers_end: u64,
        tables: &Range<u64>,
    ) -> Result<(), Error> {
        for (part, range) in self.named(number) {
            if range.is_empty() {
                continue;
            }
            inside(available, part, range)?;
            let Range { start, end } = *range;
            let other = match () {
                () if start < headers_end => ObjectPart::SectionHeaders,
                () if start < tables.end && end > tables.start => ObjectPart::SymbolTable,
                () => continue,
            };
            return Err(Error::overlap(part, start, end, other));
        }
        Ok(())
    }
}

/// Returns the range of the symbol table: an empty one at the end of the file, if there is none.
fn symbols(available: u64, header: &Header, headers_end: u64) -> Result<Range<u64>, Error> {
    let (start, count) = header.symbols();
    let start = u64::from(start);
    if start == 0 && count > 0 {
        return Err(Error::field(
            FORMAT,
            "NumberOfSymbols",
            if header.is_big() { 52 } else { 12 },
            count.into(),
            "0 without a symbol table",
        ));
    }
    if start == 0 {
        return Ok(available..available);
    }
    let (part, other) = (ObjectPart::SymbolTable, ObjectPart::SectionHeaders);
    let range = sized(start, u64::from(count) * header.symbol_len() as u64);
    inside(available, part, &range)?;
    if start < headers_end {
        return Err(Error::overlap(part, start, range.end, other));
    }
    Ok(range)
}

/// Returns the string table with its size, and where it ends.
fn strings(available: u64, start: u64, read: &mut ReadPart<'_>) -> Result<(Vec<u8>, u64), Error> {
    if start >= available {
        return Ok((Vec::new(), start));
    }
    let part = ObjectPart::StringTable;
    let size = read(part, &sized(start, STRING_SIZE_LEN))?;
    // Some tools write 0 for an empty table.
    let size = first::<Word>(&size).map_or(0, |size| size.get(LE).into()).max(STRING_SIZE_LEN);
    let end = start + size;
    let strings = read(part, &(start..end))?;
    if size > STRING_SIZE_LEN && strings.last().is_some_and(|&last| last != 0) {
        return Err(Error::unterminated(FORMAT, part, end));
    }
    Ok((strings, end))
}

fn inside(available: u64, part: ObjectPart, range: &Range<u64>) -> Result<(), Error> {
    let Range { start, end } = *range;
    if end <= available { Ok(()) } else { Err(Error::outside(FORMAT, part, start, end, available)) }
}
