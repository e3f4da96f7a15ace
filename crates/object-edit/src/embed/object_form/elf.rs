//! ELF: everything new goes behind the old object, whose section header table and names stay where they are.
//!
//! ```text
//! ELF header                           e_shoff, e_shnum changed
//! the old object                       every byte of it
//! contents of the new sections         one behind the other
//! section names                        the old ones and the new ones
//! old ELF header                       what the first bytes were; no section covers it
//! section header table                 the old one and the new sections
//! ```
//!
//! So a linked file runs as before: its segments stay where they are.

use std::io;
use std::ops::Range;

use byte_parts::Source;
use zerocopy::{FromBytes, IntoBytes};

use super::super::elf::{
    ET_DYN, ET_EXEC, ET_REL, FORMAT, SHF_EXCLUDE, SHN_LORESERVE, change_header, kept, outside,
    sections,
};
use super::super::error::{EmbedError, ObjectPart};
use super::super::{Pieces, SECTION_ALIGNMENT, slice};
use super::{Entry, ObjectBundle, PREFIX};
use crate::output::{self, Input, Output};
use crate::strings::string_at;
use crate::wire::{ElfFields, ElfHeader, ElfSection, ElfSectionHeader};

const SHT_PROGBITS: u32 = 1;

pub(super) fn lay_out<'a, H: ElfHeader>(
    object: &'a [u8],
    entries: &[Entry<'_>],
) -> Result<ObjectBundle<'a>, EmbedError> {
    let header_len = size_of::<H>() as u64;
    let beyond_end = || outside(object, ObjectPart::FileHeader, &(0..header_len));
    let (&old_header, _) = H::ref_from_prefix(object).map_err(|_| beyond_end())?;
    let fields = old_header.fields();
    check_type(&fields)?;
    let sections = sections::<H>(object, &fields)?;
    // Only for what it checks.
    kept::<H>(object, &fields, &sections, true)?;

    let too_large = |value| EmbedError::TooLarge { format: FORMAT, value, limit: H::LIMIT };
    let add = |a: u64, b: u64| a.checked_add(b).ok_or_else(|| too_large(u64::MAX));
    let mut before = Pieces::default();
    let mut after = Pieces::default();
    if entries.is_empty() {
        before.keep(object);
        return ObjectBundle::from_pieces(before, entries, after)
            .ok_or_else(|| too_large(u64::MAX));
    }

    let mut names = sections.names.to_vec();
    if names.is_empty() {
        names.push(0);
    }
    let mut table = sections.table.to_vec();
    let mut end = object.len() as u64;
    for entry in entries {
        let name = names.len() as u64;
        names.extend_from_slice(PREFIX);
        names.extend_from_slice(entry.id);
        names.push(0);
        let new = ElfSection {
            name: u32::try_from(name).map_err(|_| too_large(name))?,
            kind: SHT_PROGBITS,
            flags: SHF_EXCLUDE,
            addr: 0,
            offset: end,
            size: entry.size,
            link: 0,
            info: 0,
            align: 1,
            entsize: 0,
        };
        end = add(end, entry.size)?;
        table.push(H::Section::new(&new).ok_or_else(|| too_large(end))?);
    }
    let names_at = end;
    let names_end = add(names_at, names.len() as u64)?;
    let table_at = add(names_end, header_len)?
        .checked_next_multiple_of(SECTION_ALIGNMENT)
        .ok_or_else(|| too_large(u64::MAX))?;

    let count = table.len() as u64;
    let extended = fields.shnum == 0 || count >= SHN_LORESERVE;
    // Fits: the largest count that is not extended is below SHN_LORESERVE.
    let shnum = if extended { 0 } else { u16::try_from(count).unwrap_or(0) };
    let mut header = old_header;
    header.set_table(table_at, shnum).ok_or_else(|| too_large(table_at))?;
    let mut change = |index: usize, change: &dyn Fn(&mut ElfSection), value: u64| {
        change_header(&mut table, index, change).ok_or_else(|| too_large(value))
    };
    if extended {
        change(0, &|null| null.size = count, count)?;
    }
    let rewritten = |section: &mut ElfSection| {
        section.offset = names_at;
        section.size = names.len() as u64;
    };
    change(sections.names_index, &rewritten, names_end)?;

    before.put(header.as_bytes());
    before.keep(slice(object, header_len..object.len() as u64).unwrap_or_default());
    after.put(names);
    after.pad(names_end, table_at.saturating_sub(header_len));
    after.put(old_header.as_bytes());
    after.put(table.as_bytes());
    ObjectBundle::from_pieces(before, entries, after)
        .filter(|bundle| bundle.total_size <= H::LIMIT)
        .ok_or_else(|| too_large(table_at))
}

/// Linked files take sections that are not loaded, as well.
pub(super) fn check_type(fields: &ElfFields) -> Result<(), EmbedError> {
    match fields.e_type {
        ET_REL | ET_EXEC | ET_DYN => Ok(()),
        found => Err(EmbedError::ElfType { found }),
    }
}

/// The object to which the last sections were added by [`lay_out`]; `None` if they were not. It is laid out
/// again to be sure. What the added sections hold is not read.
pub(super) fn undo<H: ElfHeader>(
    source: &mut Source<'_>,
    window: &Range<u64>,
) -> io::Result<Option<Output>> {
    let Some(ends) = find_ends::<H>(source, window)? else { return Ok(None) };
    let Some(front) = read(source, window, 0..ends.old_len)? else { return Ok(None) };
    if !is_layout::<H>(&front, &ends) {
        return Ok(None);
    }
    let mut old = output::of_bytes(ends.old_header);
    let start = window.start;
    old.push_input(Input::File, start + size_of::<H>() as u64..start + ends.old_len);
    Ok(Some(old))
}

/// What may be the two ends of a file around the contents of added sections.
struct Ends<S> {
    /// Length of the object that they were added to, which has another file header now.
    old_len: u64,
    old_header: Vec<u8>,
    added: Vec<S>,
    /// Names, the old file header and the section header table.
    tail: Vec<u8>,
}

fn find_ends<H: ElfHeader>(
    source: &mut Source<'_>,
    window: &Range<u64>,
) -> io::Result<Option<Ends<H::Section>>> {
    let header_len = size_of::<H>() as u64;
    let entry_len = size_of::<H::Section>() as u64;
    let len = window.end - window.start;
    let mut file_header = |at: u64| {
        let range = at..at.saturating_add(header_len);
        let header = read(source, window, range)?.filter(|bytes| bytes.starts_with(b"\x7fELF"));
        let fields = header.as_deref().and_then(|bytes| H::ref_from_bytes(bytes).ok());
        io::Result::Ok(fields.map(H::fields).zip(header))
    };
    let Some((fields, _)) = file_header(0)? else { return Ok(None) };
    let Some(old_header_at) = fields.shoff.checked_sub(header_len) else { return Ok(None) };
    let Some((old_fields, old_header)) = file_header(old_header_at)? else { return Ok(None) };
    let mut count_at = |fields: &ElfFields| match fields.shnum {
        0 => {
            let range = fields.shoff..fields.shoff.saturating_add(entry_len);
            let null = read(source, window, range)?;
            let null = null.as_deref().and_then(|bytes| H::Section::ref_from_bytes(bytes).ok());
            Ok(null.map_or(0, |null| null.fields().size))
        }
        shnum => io::Result::Ok(shnum.into()),
    };
    let (count, old_count) = (count_at(&fields)?, count_at(&old_fields)?);
    // Nothing follows the table, or it is not ours: so little is read of other files.
    let added = old_count.checked_mul(entry_len).and_then(|len| fields.shoff.checked_add(len));
    let (Some(added), Some(table_len)) = (added, count.checked_mul(entry_len)) else {
        return Ok(None);
    };
    if count <= old_count || fields.shoff.checked_add(table_len) != Some(len) {
        return Ok(None);
    }
    let Some(added) = read(source, window, added..len)? else { return Ok(None) };
    let added = <[H::Section]>::ref_from_bytes(&added).map(<[_]>::to_vec).unwrap_or_default();
    let Some(old_len) = added.first().map(|first| first.fields().offset) else { return Ok(None) };
    let sizes = added.iter().map(|section| section.fields().size);
    let names_at = sizes.fold(old_len, u64::saturating_add);
    let Some(tail) = read(source, window, names_at..len)? else { return Ok(None) };
    Ok(Some(Ends { old_len, old_header, added, tail }))
}

/// Whether [`lay_out`] made this of the object that was there before.
fn is_layout<H: ElfHeader>(front: &[u8], ends: &Ends<H::Section>) -> bool {
    let mut entries = Vec::with_capacity(ends.added.len());
    for section in &ends.added {
        let section = section.fields();
        let name = string_at(&ends.tail, section.name.into());
        let Some(id) = name.and_then(|name| name.strip_prefix(PREFIX)) else { return false };
        entries.push(Entry { id, size: section.size });
    }
    let mut old = front.to_vec();
    match old.get_mut(..ends.old_header.len()) {
        Some(header) => header.copy_from_slice(&ends.old_header),
        None => return false,
    }
    lay_out::<H>(&old, &entries).is_ok_and(|again| again.is_layout_of(front, &ends.tail))
}

/// These bytes of the window; `None` if some are not there.
fn read(
    source: &mut Source<'_>,
    window: &Range<u64>,
    range: Range<u64>,
) -> io::Result<Option<Vec<u8>>> {
    let end = window.start.checked_add(range.end).filter(|&end| end <= window.end);
    match end.filter(|_| range.start <= range.end) {
        Some(end) => source.read_range(&(window.start + range.start..end)).map(Some),
        None => Ok(None),
    }
}
