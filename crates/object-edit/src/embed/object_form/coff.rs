//! COFF: like one more section of a package, with several, and with a note that lets it be undone.
//!
//! ```text
//! file header               number of sections, place of the symbol table
//! section headers           with the new ones; the offsets in them moved
//! contents, relocations     the same bytes, further back
//!                           contents of the new sections
//!                           the old file header, length of the old object, size field of the old string table
//! symbols                   the same bytes
//! string table              with the new names
//! ```

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, IntoBytes};

use super::super::coff::{
    Header, LIMIT, Moves, SECTION_HEADER_LEN, STRING_SIZE_LEN, Tables, check_section, long_name,
    outside, tables, too_large,
};
use super::super::error::{EmbedError, ObjectPart};
use super::super::{Pieces, slice};
use super::{Entry, ObjectBundle, PREFIX};
use crate::strings::string_at;
use crate::wire::CoffSection;

const IMAGE_SCN_LNK_REMOVE: u32 = 0x0000_0800;
const IMAGE_SCN_MEM_READ: u32 = 0x4000_0000;

/// A COFF object, checked.
pub(super) struct Coff<'a> {
    pub(super) header: Header,
    pub(super) headers_end: u64,
    pub(super) sections: &'a [CoffSection],
    pub(super) tables: Tables<'a>,
}

impl<'a> Coff<'a> {
    pub(super) fn read(object: &'a [u8]) -> Result<Self, EmbedError> {
        let header = Header::read(object)?;
        let headers_end =
            header.sections().saturating_mul(SECTION_HEADER_LEN).saturating_add(header.len());
        let range = header.len()..headers_end;
        let sections = slice(object, range.clone())
            .and_then(|bytes| <[CoffSection]>::ref_from_bytes(bytes).ok())
            .ok_or_else(|| outside(object, ObjectPart::SectionHeaders, &range))?;
        let tables = tables(object, &header, headers_end)?;
        for (number, section) in (1..).zip(sections) {
            check_section(object, number, section, headers_end, &tables)?;
        }
        Ok(Coff { header, headers_end, sections, tables })
    }

    /// Name of a section, as it stands in its header or in the string table.
    pub(super) fn name<'s>(&'s self, section: &'s CoffSection) -> Option<&'s [u8]> {
        match name_offset(section) {
            Some(offset) => string_at(self.tables.strings, offset?.checked_sub(STRING_SIZE_LEN)?),
            None => section.name.split(|&b| b == 0).next(),
        }
    }
}

/// Where in the string table the name of a section is, if it is there; no offset when it cannot be read.
#[allow(clippy::option_option, reason = "elsewhere, or nowhere")]
pub(crate) fn name_offset(section: &CoffSection) -> Option<Option<u64>> {
    match section.name {
        [b'/', b'/', ref digits @ ..] => {
            Some(digits.iter().try_fold(0_u64, |value, &digit| Some(value * 64 + base64(digit)?)))
        }
        [b'/', ref digits @ ..] => {
            let digits = digits.split(|&b| b == 0).next();
            let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
            Some(digits.and_then(|digits| digits.parse::<u64>().ok()))
        }
        _ => None,
    }
}

fn base64(digit: u8) -> Option<u64> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value.into())
}

fn narrow(value: u64) -> Result<u32, EmbedError> {
    u32::try_from(value).map_err(|_| too_large(value))
}

pub(super) fn lay_out<'a>(
    object: &'a [u8],
    entries: &[Entry<'_>],
) -> Result<ObjectBundle<'a>, EmbedError> {
    let end = object.len() as u64;
    let coff = Coff::read(object)?;
    let Coff { header, headers_end, sections, tables } = &coff;
    let mut before = Pieces::default();
    let mut after = Pieces::default();
    if entries.is_empty() {
        before.keep(object);
        return ObjectBundle::from_pieces(before, entries, after)
            .ok_or_else(|| too_large(u64::MAX));
    }

    let count = header.sections().saturating_add(entries.len() as u64);
    let headers = SECTION_HEADER_LEN.saturating_mul(entries.len() as u64);
    let contents_at = tables.start.saturating_add(headers);
    let mut next_contents = contents_at;
    let mut next_address = sections.last().map_or(0, |last| {
        u64::from(last.virtual_address.get()).saturating_add(last.virtual_size.get().into())
    });
    let mut new_strings = Vec::new();
    let mut new = Vec::with_capacity(entries.len());
    for entry in entries {
        let name_at = STRING_SIZE_LEN
            .saturating_add(tables.strings.len() as u64)
            .saturating_add(new_strings.len() as u64);
        new_strings.extend_from_slice(PREFIX);
        new_strings.extend_from_slice(entry.id);
        new_strings.push(0);
        let size = U32::new(narrow(entry.size)?);
        // Nothing to point to.
        let raw_at = if entry.size == 0 { 0 } else { next_contents };
        new.push(CoffSection {
            name: long_name(name_at).ok_or_else(|| too_large(name_at))?,
            virtual_size: size,
            virtual_address: U32::new(narrow(next_address)?),
            raw_size: size,
            raw_at: U32::new(narrow(raw_at)?),
            relocations_at: U32::ZERO,
            lines_at: U32::ZERO,
            relocations: U16::ZERO,
            lines: U16::ZERO,
            characteristics: U32::new(IMAGE_SCN_LNK_REMOVE | IMAGE_SCN_MEM_READ),
        });
        next_contents = next_contents.saturating_add(entry.size);
        next_address = next_address.saturating_add(entry.size);
    }

    let mut note = slice(object, 0..header.len()).unwrap_or_default().to_vec();
    note.extend_from_slice(&narrow(end)?.to_le_bytes());
    // Some tools write 0 for a table without strings; so it is for no table at all.
    let size_at =
        tables.strings_at..tables.strings_at.saturating_add(STRING_SIZE_LEN).min(tables.end);
    let size_field = slice(object, size_at).and_then(|bytes| U32::ref_from_bytes(bytes).ok());
    note.extend_from_slice(size_field.map_or(&[0; 4], U32::as_bytes));

    let strings_len = STRING_SIZE_LEN
        .saturating_add(tables.strings.len() as u64)
        .saturating_add(new_strings.len() as u64);
    let symbols_at = next_contents.saturating_add(note.len() as u64);
    let moves = Moves {
        headers_end: *headers_end,
        headers,
        tables: tables.start..tables.end,
        inserted: symbols_at.saturating_sub(contents_at),
        grown: tables.strings_at.saturating_add(strings_len).saturating_sub(tables.end),
        // Even what lies nowhere moves, or else it could not be told from what moved there.
        end: u64::MAX,
    };
    let mut changed = sections.to_vec();
    for section in &mut changed {
        moves.adjust(&mut section.raw_at)?;
        moves.adjust(&mut section.relocations_at)?;
        moves.adjust(&mut section.lines_at)?;
    }
    changed.extend(new);

    before.put(header.changed(count, narrow(symbols_at)?)?);
    before.put(changed.as_bytes());
    before.keep(slice(object, *headers_end..tables.start).unwrap_or_default());
    after.put(note);
    after.keep(slice(object, tables.start..tables.strings_at).unwrap_or_default());
    after.put(narrow(strings_len)?.to_le_bytes());
    after.keep(tables.strings);
    after.put(new_strings);
    after.keep(slice(object, tables.end..end).unwrap_or_default());
    ObjectBundle::from_pieces(before, entries, after)
        .filter(|bundle| bundle.total_size <= LIMIT)
        .ok_or_else(|| too_large(symbols_at))
}

/// The object to which the last sections were added by [`lay_out`]; `None` if they were not. It is laid out
/// again to be sure.
pub(super) fn undo(object: &[u8]) -> Option<Vec<u8>> {
    let coff = Coff::read(object).ok()?;
    let header_len = coff.header.len();
    // The header, two numbers.
    let note_at = coff.tables.start.checked_sub(header_len.checked_add(8)?)?;
    let note = slice(object, note_at..coff.tables.start)?;
    let old_header = Header::read(note).ok().filter(|old| old.len() == header_len)?;
    let (old_header_bytes, numbers) = note.split_at_checked(usize::try_from(header_len).ok()?)?;
    let ([old_len, size_field], _) = <[U32; 2]>::ref_from_prefix(numbers).ok()?;
    let old_len = u64::from(old_len.get());

    let count = usize::try_from(old_header.sections()).ok()?;
    let (old_sections, new) = coff.sections.split_at_checked(count)?;
    let mut entries = Vec::with_capacity(new.len());
    let mut contents = 0_u64;
    for section in new {
        let id = coff.name(section)?.strip_prefix(PREFIX)?;
        entries.push(Entry { id, size: section.raw_size.get().into() });
        contents = contents.checked_add(section.raw_size.get().into())?;
    }
    let headers = SECTION_HEADER_LEN.checked_mul(new.len() as u64)?;
    let inserted = contents.checked_add(note.len() as u64)?;
    let grown = (object.len() as u64).checked_sub(headers)?.checked_sub(inserted)?;
    let grown = grown.checked_sub(old_len)?;
    let start = note_at.checked_sub(contents)?.checked_sub(headers)?;
    // Where the tables ended in the old object, by what comes behind them.
    let tables_end = coff.tables.end.checked_sub(headers)?.checked_sub(inserted)?;
    let tables_end = tables_end.checked_sub(grown)?;

    let mut old = old_header_bytes.to_vec();
    let moves = Moves {
        headers_end: coff.headers_end.checked_sub(headers)?,
        headers,
        tables: start..tables_end,
        inserted,
        grown,
        end: u64::MAX,
    };
    for section in old_sections {
        let mut section = *section;
        restore(&moves, &mut section.raw_at)?;
        restore(&moves, &mut section.relocations_at)?;
        restore(&moves, &mut section.lines_at)?;
        old.extend_from_slice(section.as_bytes());
    }
    old.extend_from_slice(slice(object, coff.headers_end..note_at.checked_sub(contents)?)?);
    let tables_len = tables_end.checked_sub(start)?;
    let old_tables_end = coff.tables.start.checked_add(tables_len)?;
    let tables = slice(object, coff.tables.start..old_tables_end)?;
    let strings = usize::try_from(coff.tables.strings_at.checked_sub(coff.tables.start)?).ok()?;
    old.extend_from_slice(tables.get(..strings)?);
    if let Some(strings) = tables.get(strings..).filter(|strings| !strings.is_empty()) {
        old.extend_from_slice(size_field.as_bytes());
        old.extend_from_slice(strings.get(4..)?);
    }
    old.extend_from_slice(slice(object, coff.tables.end..object.len() as u64)?);
    let again = lay_out(&old, &entries).ok()?;
    let same = again.is_whole_layout_of(object);
    drop(again);
    same.then_some(old)
}

/// The other way round than [`Moves::apply`].
fn restore(moves: &Moves, offset: &mut U32) -> Option<()> {
    let new = u64::from(offset.get());
    if new == 0 {
        return Some(());
    }
    let steps = [
        (moves.tables.end, moves.headers.checked_add(moves.inserted)?.checked_add(moves.grown)?),
        (moves.tables.start, moves.headers.checked_add(moves.inserted)?),
        (moves.headers_end, moves.headers),
    ];
    let old = steps.iter().find_map(|&(from, by)| new.checked_sub(by).filter(|&old| old >= from));
    let old = old.or((new < moves.headers_end).then_some(new))?;
    offset.set(u32::try_from(old).ok()?);
    Some(())
}
