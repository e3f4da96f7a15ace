//! ELF: everything new goes after the old object, whose section header table and names stay where they are.
//!
//! ```text
//! ELF header                           e_shoff, e_shnum changed
//! the old object                       every byte of it
//! contents of the new sections         one after the other
//! section names                        the old ones and the new ones
//! old ELF header                       what the first bytes were; no section covers it
//! section header table                 the old one and the new sections
//! ```
//!
//! So a linked file runs as before: its segments stay where they are.

use std::io;
use std::ops::Range;

use byte_parts::Source;
use object::elf::{SHF_EXCLUDE, SHT_PROGBITS};
use object::pod::{bytes_of, bytes_of_slice};

use super::super::SECTION_ALIGNMENT;
use super::super::elf::{header, headers};
use super::{NewSection, NewSections};
use crate::error::Error;
use crate::objects::elf_class::{ElfHeader, ElfSection};
use crate::objects::elf_object::{FORMAT, Object};
use crate::objects::strings::string_at;
use crate::output::{self, Input, Output};
use crate::pod::{entries as table_of, first};
use crate::tables::sized;

pub(super) fn lay_out<'a, H: ElfHeader>(
    object: &'a [u8],
    entries: &[NewSection<'_>],
) -> Result<NewSections<'a>, Error> {
    let header_len = size_of::<H>() as u64;
    let old_header = header::<H>(object)?;
    let elf = Object::<H>::of_bytes(object)?;

    let too_large = |value| Error::too_large(FORMAT, value, H::LIMIT);
    let add = |a: u64, b: u64| a.checked_add(b).ok_or_else(|| too_large(u64::MAX));
    let mut new = NewSections::of(object);
    if entries.is_empty() {
        new.keep(0..object.len() as u64);
        return Ok(new);
    }

    let mut names = elf.names;
    if names.is_empty() {
        names.push(0);
    }
    let mut sections = elf.sections;
    let mut end = object.len() as u64;
    for entry in entries {
        let name = names.len() as u64;
        names.extend_from_slice(entry.name);
        names.push(0);
        let section = ElfSection {
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
        H::section_header(&section).ok_or_else(|| too_large(end))?;
        sections.push(section);
    }
    let names_at = end;
    let names_end = add(names_at, names.len() as u64)?;
    let table_at = add(names_end, header_len)?
        .checked_next_multiple_of(SECTION_ALIGNMENT)
        .ok_or_else(|| too_large(u64::MAX))?;

    if let Some(section) = sections.get_mut(elf.names_index) {
        (section.offset, section.size) = (names_at, names.len() as u64);
    }
    let (header, table) =
        headers(old_header, &mut sections, table_at).ok_or_else(|| too_large(table_at))?;
    new.put(bytes_of(&header));
    new.keep(header_len..object.len() as u64);
    entries.iter().for_each(|entry| new.add(entry.size));
    new.put(&names);
    new.pad_to(table_at - header_len);
    new.put(bytes_of(&old_header));
    new.put(bytes_of_slice(&table));
    new.within(H::LIMIT).ok_or_else(|| too_large(table_at))
}

/// Returns the object to which the last sections were added by [`lay_out`]; `None` if they were not. It is laid out
/// again to be sure. The contents of the added sections are not read.
pub(super) fn undo<H: ElfHeader>(
    source: &mut Source<'_>,
    window: &Range<u64>,
    prefix: &[u8],
) -> io::Result<Option<Output>> {
    let Some(ends) = find_ends::<H>(source, window)? else { return Ok(None) };
    let Some(front) = read(source, window, 0..ends.old_len)? else { return Ok(None) };
    if !is_layout::<H>(&front, &ends, prefix) {
        return Ok(None);
    }
    let mut old = output::of_bytes(ends.old_header);
    let start = window.start;
    old.push_input(Input::File, start + size_of::<H>() as u64..start + ends.old_len);
    Ok(Some(old))
}

/// The possible two ends of a file around the contents of added sections.
struct Ends {
    /// Length of the object that they were added to, which has another file header now.
    old_len: u64,
    old_header: Vec<u8>,
    added: Vec<ElfSection>,
    /// Names, the old file header and the section header table.
    tail: Vec<u8>,
}

fn find_ends<H: ElfHeader>(
    source: &mut Source<'_>,
    window: &Range<u64>,
) -> io::Result<Option<Ends>> {
    let header_len = size_of::<H>() as u64;
    let entry_len = size_of::<H::SectionHeader>() as u64;
    let len = window.end - window.start;
    let mut file_header = |at: u64| {
        let range = sized(at, header_len);
        let bytes = read(source, window, range)?.filter(|bytes| bytes.starts_with(b"\x7fELF"));
        let header = bytes.as_deref().and_then(first::<H>);
        io::Result::Ok(header.zip(bytes))
    };
    let Some((header, _)) = file_header(0)? else { return Ok(None) };
    let (e, shoff) = (H::order(), header.e_shoff(H::order()).into());
    let Some(old_header_at) = shoff.checked_sub(header_len) else { return Ok(None) };
    let Some((old, old_header)) = file_header(old_header_at)? else { return Ok(None) };
    let mut count_at = |header: &H| match header.e_shnum(e) {
        0 => {
            let shoff = header.e_shoff(e).into();
            let null = read(source, window, sized(shoff, entry_len))?;
            let null = null.as_deref().and_then(first).as_ref().map(H::section);
            Ok(null.map_or(0, |null| null.size))
        }
        shnum => io::Result::Ok(shnum.into()),
    };
    let (count, old_count) = (count_at(&header)?, count_at(&old)?);
    // Nothing follows the table, or it is not ours: so little is read of other files.
    let added = old_count.checked_mul(entry_len).and_then(|len| shoff.checked_add(len));
    let (Some(added), Some(table_len)) = (added, count.checked_mul(entry_len)) else {
        return Ok(None);
    };
    if count <= old_count || shoff.checked_add(table_len) != Some(len) {
        return Ok(None);
    }
    let Some(added) = read(source, window, added..len)? else { return Ok(None) };
    let added: Vec<_> = table_of(&added).iter().map(H::section).collect();
    let Some(old_len) = added.first().map(|first| first.offset) else { return Ok(None) };
    let mut sizes = added.iter().map(|section| section.size);
    let Some(names_at) = sizes.try_fold(old_len, u64::checked_add) else { return Ok(None) };
    let Some(tail) = read(source, window, names_at..len)? else { return Ok(None) };
    Ok(Some(Ends { old_len, old_header, added, tail }))
}

/// Returns whether [`lay_out`] made this of the object that was there before.
fn is_layout<H: ElfHeader>(front: &[u8], ends: &Ends, prefix: &[u8]) -> bool {
    let mut entries = Vec::with_capacity(ends.added.len());
    for section in &ends.added {
        let name = string_at(&ends.tail, section.name.into());
        let Some(name) = name.filter(|name| name.starts_with(prefix)) else { return false };
        entries.push(NewSection { name, size: section.size });
    }
    let mut old = front.to_vec();
    match old.get_mut(..ends.old_header.len()) {
        Some(header) => header.copy_from_slice(&ends.old_header),
        None => return false,
    }
    lay_out::<H>(&old, &entries).is_ok_and(|again| again.is_layout_of(front, &ends.tail))
}

/// Reads these bytes of the window; `None` if some are missing.
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
