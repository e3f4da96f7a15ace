//! COFF: like one more section of an offload binary, with several, and with a note that lets it be undone.
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

use object::pe::{IMAGE_SCN_LNK_REMOVE, IMAGE_SCN_MEM_READ};
use object::pod::bytes_of;
use object::{LittleEndian, U32};

use super::super::coff::{Addition, Moves, SECTION_HEADER_LEN, new_section};
use super::super::slice;
use super::{NewSection, NewSections};
use crate::error::Error;
use crate::objects::coff::{Header, Object, STRING_SIZE_LEN, long_name, narrow, too_large};
use crate::pod::{LE, first, rest};

pub(super) fn lay_out<'a>(
    object: &'a [u8],
    entries: &[NewSection<'_>],
) -> Result<NewSections<'a>, Error> {
    let end = object.len() as u64;
    let old = Object::of_bytes(object)?;
    let strings = rest(&old.strings, STRING_SIZE_LEN);
    if entries.is_empty() {
        let mut new = NewSections::of(object);
        new.keep(0..end);
        return Ok(new);
    }

    let mut next_contents = old.symbols.start + SECTION_HEADER_LEN * entries.len() as u64;
    let mut next_address = old.sections.last().map_or(0, |last| {
        u64::from(last.virtual_address.get(LE)) + u64::from(last.virtual_size.get(LE))
    });
    let mut new_strings = Vec::new();
    let mut added = Vec::with_capacity(entries.len());
    for entry in entries {
        let name_at = STRING_SIZE_LEN + (strings.len() + new_strings.len()) as u64;
        new_strings.extend_from_slice(entry.name);
        new_strings.push(0);
        // Nothing to point to.
        let raw_at = if entry.size == 0 { 0 } else { next_contents };
        let name = long_name(name_at).ok_or_else(|| too_large(name_at))?;
        let flags = IMAGE_SCN_LNK_REMOVE | IMAGE_SCN_MEM_READ;
        let mut section = new_section(name, entry.size, raw_at, flags)?;
        section.virtual_size = section.size_of_raw_data;
        section.virtual_address = narrow(next_address)?;
        added.push(section);
        // The header says both numbers in 32 bits each.
        next_contents += entry.size;
        next_address += entry.size;
    }

    let mut note = old.header.bytes().to_vec();
    note.extend_from_slice(bytes_of(&narrow(end)?));
    // Some tools write 0 for a table without strings; so it is for no table at all.
    let size_at = old.symbols.end..old.strings_end.min(old.symbols.end + STRING_SIZE_LEN);
    note.extend(slice(object, size_at).and_then(<[u8]>::first_chunk::<4>).unwrap_or(&[0; 4]));

    let symbols_at = next_contents + note.len() as u64;
    // Even what lies nowhere moves, or else it could not be told from what moved there.
    let end = u64::MAX;
    let addition = Addition { old, sections: added, strings: new_strings, symbols_at, end };
    addition.lay_out(object, |new| {
        entries.iter().for_each(|entry| new.add(entry.size));
        new.put(&note);
    })
}

/// Returns the object to which the last sections were added by [`lay_out`]; `None` if they were not. It is laid out
/// again to be sure.
pub(super) fn undo(object: &[u8], prefix: &[u8]) -> Option<Vec<u8>> {
    let coff = Object::of_bytes(object).ok()?;
    let header_len = coff.header.len();
    // The header, two numbers.
    let note_at = coff.symbols.start.checked_sub(header_len.checked_add(8)?)?;
    let note = slice(object, note_at..coff.symbols.start)?;
    let old_header = Header::read(note).ok().filter(|old| old.len() == header_len)?;
    let (old_header_bytes, numbers) = note.split_at_checked(usize::try_from(header_len).ok()?)?;
    let [old_len, size_field]: [U32<LittleEndian>; 2] = first(numbers)?;
    let old_len = u64::from(old_len.get(LE));

    let count = usize::try_from(old_header.sections()).ok()?;
    let (old_sections, new) = coff.sections.split_at_checked(count)?;
    let mut entries = Vec::with_capacity(new.len());
    let mut contents = 0_u64;
    for section in new {
        let name = coff.name_on(section).split(|&byte| byte == 0).next()?;
        if !name.starts_with(prefix) {
            return None;
        }
        entries.push(NewSection { name, size: section.size_of_raw_data.get(LE).into() });
        contents = contents.checked_add(section.size_of_raw_data.get(LE).into())?;
    }
    let headers = SECTION_HEADER_LEN.checked_mul(new.len() as u64)?;
    let inserted = contents.checked_add(note.len() as u64)?;
    let grown = (object.len() as u64).checked_sub(headers)?.checked_sub(inserted)?;
    let grown = grown.checked_sub(old_len)?;
    let start = note_at.checked_sub(contents)?.checked_sub(headers)?;
    // The end of the tables in the old object, from the contents after them.
    let tables_end = coff.strings_end.checked_sub(headers)?.checked_sub(inserted)?;
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
        restore(&moves, &mut section.pointer_to_raw_data)?;
        restore(&moves, &mut section.pointer_to_relocations)?;
        restore(&moves, &mut section.pointer_to_linenumbers)?;
        old.extend_from_slice(bytes_of(&section));
    }
    old.extend_from_slice(slice(object, coff.headers_end..note_at.checked_sub(contents)?)?);
    let tables_len = tables_end.checked_sub(start)?;
    let old_tables_end = coff.symbols.start.checked_add(tables_len)?;
    let tables = slice(object, coff.symbols.start..old_tables_end)?;
    let strings = usize::try_from(coff.symbols.end.checked_sub(coff.symbols.start)?).ok()?;
    old.extend_from_slice(tables.get(..strings)?);
    if let Some(strings) = tables.get(strings..).filter(|strings| !strings.is_empty()) {
        old.extend_from_slice(bytes_of(&size_field));
        old.extend_from_slice(strings.get(4..)?);
    }
    old.extend_from_slice(slice(object, coff.strings_end..object.len() as u64)?);
    let again = lay_out(&old, &entries).ok()?;
    let same = again.is_whole_layout_of(object);
    drop(again);
    same.then_some(old)
}

/// Changes a new offset back to the old one: the inverse of [`Moves::apply`].
fn restore(moves: &Moves, offset: &mut U32<LittleEndian>) -> Option<()> {
    let new = u64::from(offset.get(LE));
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
    offset.set(LE, u32::try_from(old).ok()?);
    Some(())
}
