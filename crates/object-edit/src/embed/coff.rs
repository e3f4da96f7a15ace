//! COFF: the new section header follows the others, the contents come in front of the symbol table, as if the
//! compiler had written them last, and the name goes to the end of the string table.
//!
//! ```text
//! before                    after
//! file header               file header: number of sections, place of the symbol table
//! section headers           section headers, with one more; the offsets in them moved
//! contents, relocations     the same bytes, 40 further
//!                           contents of the new section
//! symbols                   the same bytes
//! string table              string table, with one more
//! ```

use std::ops::Range;

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, IntoBytes};

use super::error::{EmbedError, ObjectPart};
use super::{Embedding, Pieces, SECTION_ALIGNMENT, SECTION_NAME, find_name, slice};
use crate::wire::{BigCoffHeader, CoffHeader, CoffSection};

pub(super) const FORMAT: &str = "COFF";

/// First bytes of everything whose header is not the plain one.
const ANONYMOUS: [u8; 4] = [0, 0, 0xff, 0xff];
/// `ClassID` of large objects: D1BAA1C7-BAEE-4BA9-AF20-FAF66AA4DCB8.
const BIG_CLASS_ID: [u8; 16] = [
    0xc7, 0xa1, 0xba, 0xd1, 0xee, 0xba, 0xa9, 0x4b, 0xaf, 0x20, 0xfa, 0xf6, 0x6a, 0xa4, 0xdc, 0xb8,
];
/// Section numbers above are reserved; larger objects need the other header.
const MAX_SECTIONS: u64 = 0xfeff;
const BIG_MAX_SECTIONS: u64 = i32::MAX as u64;
pub(super) const LIMIT: u64 = u32::MAX as u64;
pub(super) const SECTION_HEADER_LEN: u64 = size_of::<CoffSection>() as u64;
const RELOCATION_LEN: u64 = 10;
const LINE_NUMBER_LEN: u64 = 6;
/// The size in front of the string table, which counts itself.
pub(super) const STRING_SIZE_LEN: u64 = 4;

const IMAGE_FILE_EXECUTABLE_IMAGE: u16 = 0x0002;
const IMAGE_SCN_CNT_UNINITIALIZED_DATA: u32 = 0x0000_0080;
const IMAGE_SCN_LNK_REMOVE: u32 = 0x0000_0800;
const IMAGE_SCN_ALIGN_8BYTES: u32 = 0x0040_0000;
const IMAGE_SCN_LNK_NRELOC_OVFL: u32 = 0x0100_0000;
const IMAGE_SCN_MEM_DISCARDABLE: u32 = 0x0200_0000;

/// The header of a COFF object.
#[derive(Clone, Copy)]
pub(crate) enum Header {
    Plain(CoffHeader),
    Big(BigCoffHeader),
}

impl Header {
    pub(crate) fn read(object: &[u8]) -> Result<Self, EmbedError> {
        let beyond_end = |len| outside(object, ObjectPart::FileHeader, &(0..len));
        let field = |field, offset, found, expected| EmbedError::Field {
            format: FORMAT,
            field,
            offset,
            found,
            expected,
        };
        if object.starts_with(&ANONYMOUS) {
            let (&header, _) =
                BigCoffHeader::ref_from_prefix(object).map_err(|_| beyond_end(56))?;
            if header.class_id != BIG_CLASS_ID {
                let found = u32::from_le_bytes([
                    header.class_id[0],
                    header.class_id[1],
                    header.class_id[2],
                    header.class_id[3],
                ]);
                return Err(field("ClassID", 12, found.into(), "0xd1baa1c7 (bigobj) at first"));
            }
            return Ok(Header::Big(header));
        }
        let (&header, _) = CoffHeader::ref_from_prefix(object).map_err(|_| beyond_end(20))?;
        if header.characteristics.get() & IMAGE_FILE_EXECUTABLE_IMAGE != 0 {
            return Err(EmbedError::PeImage);
        }
        if header.optional_header_size.get() != 0 {
            let found = header.optional_header_size.get().into();
            return Err(field("SizeOfOptionalHeader", 16, found, "0 in an object"));
        }
        Ok(Header::Plain(header))
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Header::Plain(_) => size_of::<CoffHeader>() as u64,
            Header::Big(_) => size_of::<BigCoffHeader>() as u64,
        }
    }

    pub(crate) fn sections(&self) -> u64 {
        match self {
            Header::Plain(header) => header.sections.get().into(),
            Header::Big(header) => header.sections.get().into(),
        }
    }

    /// Offset and size of the symbol table.
    pub(crate) fn symbols(&self) -> (u64, u64) {
        match self {
            Header::Plain(header) => {
                (header.symbols_at.get().into(), u64::from(header.symbols.get()) * 18)
            }
            Header::Big(header) => {
                (header.symbols_at.get().into(), u64::from(header.symbols.get()) * 20)
            }
        }
    }

    /// The header with so many sections and the symbol table elsewhere.
    pub(crate) fn changed(&self, new: u64, symbols_at: u32) -> Result<Vec<u8>, EmbedError> {
        let found = self.sections();
        match *self {
            Header::Plain(mut header) => {
                let (format, limit) = (FORMAT, MAX_SECTIONS);
                let count = u16::try_from(new).ok().filter(|_| new <= limit);
                header.sections =
                    count.ok_or(EmbedError::TooManySections { format, found, limit })?.into();
                header.symbols_at = symbols_at.into();
                Ok(header.as_bytes().to_vec())
            }
            Header::Big(mut header) => {
                let (format, limit) = ("bigobj COFF", BIG_MAX_SECTIONS);
                let count = u32::try_from(new).ok().filter(|_| new <= limit);
                header.sections =
                    count.ok_or(EmbedError::TooManySections { format, found, limit })?.into();
                header.symbols_at = symbols_at.into();
                Ok(header.as_bytes().to_vec())
            }
        }
    }
}

/// Symbol table and string table, which are one behind the other. Where an object has none, they are empty at
/// its end.
pub(super) struct Tables<'a> {
    pub(super) start: u64,
    /// Where the string table starts.
    pub(super) strings_at: u64,
    /// What the string table holds after its size.
    pub(super) strings: &'a [u8],
    pub(super) end: u64,
}

/// What moves how far.
pub(super) struct Moves {
    pub(super) headers_end: u64,
    pub(super) tables: Range<u64>,
    /// Length of the new section headers.
    pub(super) headers: u64,
    /// What comes between old contents and tables.
    pub(super) inserted: u64,
    /// How much the string table grows.
    pub(super) grown: u64,
    /// Where the object ended.
    pub(super) end: u64,
}

impl Moves {
    pub(super) fn apply(&self, offset: u64) -> Result<u32, EmbedError> {
        let mut to = offset;
        for (from, by) in [
            (self.headers_end, self.headers),
            (self.tables.start, self.inserted),
            (self.tables.end, self.grown),
        ] {
            if offset >= from {
                to = to.saturating_add(by);
            }
        }
        u32::try_from(to).map_err(|_| too_large(to))
    }

    /// Changes an offset in a header. Zero stands for nothing; what lies in the headers or beyond the end is
    /// empty.
    pub(super) fn adjust(&self, offset: &mut U32) -> Result<(), EmbedError> {
        if offset.get() != 0 && u64::from(offset.get()) <= self.end {
            *offset = U32::new(self.apply(offset.get().into())?);
        }
        Ok(())
    }
}

pub(super) fn lay_out(object: &[u8], contents_len: u64) -> Result<Embedding<'_>, EmbedError> {
    let end = object.len() as u64;
    let header = Header::read(object)?;
    let headers_end = header.sections().saturating_mul(SECTION_HEADER_LEN) + header.len();
    let headers_range = header.len()..headers_end;
    let sections = slice(object, headers_range.clone())
        .and_then(|bytes| <[CoffSection]>::ref_from_bytes(bytes).ok())
        .ok_or_else(|| outside(object, ObjectPart::SectionHeaders, &headers_range))?;
    let tables = tables(object, &header, headers_end)?;
    for (number, section) in (1..).zip(sections) {
        check_section(object, number, section, headers_end, &tables)?;
    }

    let known_name = find_name(tables.strings);
    let mut new_strings = Vec::new();
    if known_name.is_none() {
        new_strings.extend_from_slice(SECTION_NAME);
        new_strings.push(0);
    }
    let name_at = STRING_SIZE_LEN + known_name.unwrap_or(tables.strings.len()) as u64;
    let strings_len = STRING_SIZE_LEN + (tables.strings.len() + new_strings.len()) as u64;

    let old_end = tables.start + SECTION_HEADER_LEN;
    let align = |offset: u64| {
        offset.checked_next_multiple_of(SECTION_ALIGNMENT).ok_or_else(|| too_large(u64::MAX))
    };
    let contents_at = align(old_end)?;
    let size = align(contents_len)?;
    let moves = Moves {
        headers_end,
        headers: SECTION_HEADER_LEN,
        tables: tables.start..tables.end,
        inserted: (contents_at - old_end).saturating_add(size),
        grown: (tables.strings_at + strings_len) - tables.end,
        end,
    };

    let mut changed = sections.to_vec();
    for section in &mut changed {
        moves.adjust(&mut section.raw_at)?;
        moves.adjust(&mut section.relocations_at)?;
        moves.adjust(&mut section.lines_at)?;
    }
    changed.push(CoffSection {
        name: long_name(name_at).ok_or_else(|| too_large(name_at))?,
        virtual_size: U32::ZERO,
        virtual_address: U32::ZERO,
        raw_size: U32::new(u32::try_from(size).map_err(|_| too_large(size))?),
        raw_at: U32::new(u32::try_from(contents_at).map_err(|_| too_large(contents_at))?),
        relocations_at: U32::ZERO,
        lines_at: U32::ZERO,
        relocations: U16::ZERO,
        lines: U16::ZERO,
        characteristics: U32::new(
            IMAGE_SCN_LNK_REMOVE | IMAGE_SCN_ALIGN_8BYTES | IMAGE_SCN_MEM_DISCARDABLE,
        ),
    });

    let mut before = Pieces::default();
    let symbols_at = contents_at.saturating_add(size);
    before.put(header.changed(
        header.sections() + 1,
        u32::try_from(symbols_at).map_err(|_| too_large(symbols_at))?,
    )?);
    before.put(changed.as_bytes());
    before.keep(slice(object, headers_end..tables.start).unwrap_or_default());
    before.pad(old_end, contents_at);
    let mut after = Pieces::default();
    after.keep(slice(object, tables.start..tables.strings_at).unwrap_or_default());
    after.put(u32::try_from(strings_len).map_err(|_| too_large(strings_len))?.to_le_bytes());
    after.keep(tables.strings);
    after.put(new_strings);
    after.keep(slice(object, tables.end..end).unwrap_or_default());
    Embedding::from_pieces(before, contents_len, size, after)
        .filter(|embedding| embedding.total_size <= LIMIT)
        .ok_or_else(|| too_large(contents_at.saturating_add(size)))
}

pub(super) fn tables<'a>(
    object: &'a [u8],
    header: &Header,
    headers_end: u64,
) -> Result<Tables<'a>, EmbedError> {
    let end = object.len() as u64;
    let (start, symbols_len) = header.symbols();
    if start == 0 {
        if symbols_len > 0 {
            let (offset, found) = match header {
                Header::Plain(header) => (12, header.symbols.get()),
                Header::Big(header) => (52, header.symbols.get()),
            };
            return Err(EmbedError::Field {
                format: FORMAT,
                field: "NumberOfSymbols",
                offset,
                found: found.into(),
                expected: "0 without a symbol table",
            });
        }
        return Ok(Tables { start: end, strings_at: end, strings: &[], end });
    }
    let strings_at = start + symbols_len;
    if strings_at > end {
        return Err(outside(object, ObjectPart::SymbolTable, &(start..strings_at)));
    }
    if start < headers_end {
        let (part, other) = (ObjectPart::SymbolTable, ObjectPart::SectionHeaders);
        return Err(EmbedError::Overlap { part, start, end: strings_at, other });
    }
    if strings_at == end {
        return Ok(Tables { start, strings_at, strings: &[], end });
    }
    let size_range = strings_at..strings_at + STRING_SIZE_LEN;
    let size = slice(object, size_range.clone())
        .and_then(|bytes| U32::ref_from_bytes(bytes).ok())
        .ok_or_else(|| outside(object, ObjectPart::StringTable, &size_range))?;
    // cvtres writes 0 for an empty table.
    let strings_end = strings_at + u64::from(size.get()).max(STRING_SIZE_LEN);
    let strings = slice(object, size_range.end..strings_end)
        .ok_or_else(|| outside(object, ObjectPart::StringTable, &(strings_at..strings_end)))?;
    if strings.last().is_some_and(|&last| last != 0) {
        let part = ObjectPart::StringTable;
        return Err(EmbedError::Unterminated { format: FORMAT, part, end: strings_end });
    }
    Ok(Tables { start, strings_at, strings, end: strings_end })
}

/// Whether contents, relocations and line numbers of a section lie inside the object, and none of them partly
/// in what moves and partly in what does not.
pub(super) fn check_section(
    object: &[u8],
    number: u64,
    section: &CoffSection,
    headers_end: u64,
    tables: &Tables<'_>,
) -> Result<(), EmbedError> {
    let flags = section.characteristics.get();
    let mut raw_size = u64::from(section.raw_size.get());
    if flags & IMAGE_SCN_CNT_UNINITIALIZED_DATA != 0 {
        raw_size = 0;
    }
    let relocations_at = u64::from(section.relocations_at.get());
    let mut relocations = u64::from(section.relocations.get());
    if relocations == 0xffff && flags & IMAGE_SCN_LNK_NRELOC_OVFL != 0 {
        // The first relocation holds their number, itself included, where others hold an address.
        relocations = slice(object, relocations_at..relocations_at + 4)
            .and_then(|bytes| U32::ref_from_bytes(bytes).ok())
            .map_or(relocations, |count| count.get().into());
        // A number that lies in the headers would change with them.
        relocations = relocations.max(1);
    }
    let line_numbers = u64::from(section.lines.get());
    for (part, start, len) in [
        (ObjectPart::Section(number), u64::from(section.raw_at.get()), raw_size),
        (ObjectPart::Relocations(number), relocations_at, relocations * RELOCATION_LEN),
        (
            ObjectPart::LineNumbers(number),
            section.lines_at.get().into(),
            line_numbers * LINE_NUMBER_LEN,
        ),
    ] {
        if start == 0 || len == 0 {
            continue;
        }
        let range = start..start + len;
        if range.end > object.len() as u64 {
            return Err(outside(object, part, &range));
        }
        let other = if range.start < headers_end {
            ObjectPart::SectionHeaders
        } else if range.start < tables.end && range.end > tables.start {
            ObjectPart::SymbolTable
        } else {
            continue;
        };
        return Err(EmbedError::Overlap { part, start: range.start, end: range.end, other });
    }
    Ok(())
}

/// A section name in the string table: `/` and the decimal offset, or `//` and the offset in base 64 where seven
/// digits are too few.
pub(crate) fn long_name(offset: u64) -> Option<[u8; 8]> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut name = [0; 8];
    if offset < 10_000_000 {
        for (to, from) in name.iter_mut().zip(format!("/{offset}").bytes()) {
            *to = from;
        }
        return Some(name);
    }
    let mut rest = offset;
    for to in name.iter_mut().rev().take(6) {
        *to = usize::try_from(rest % 64).ok().and_then(|digit| DIGITS.get(digit).copied())?;
        rest /= 64;
    }
    name[0] = b'/';
    name[1] = b'/';
    (rest == 0).then_some(name)
}

pub(super) fn too_large(value: u64) -> EmbedError {
    EmbedError::TooLarge { format: FORMAT, value, limit: LIMIT }
}

pub(super) fn outside(object: &[u8], part: ObjectPart, range: &Range<u64>) -> EmbedError {
    EmbedError::beyond_end(FORMAT, object, part, range)
}
