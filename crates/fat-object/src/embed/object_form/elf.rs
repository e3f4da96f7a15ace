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

use zerocopy::{FromBytes, IntoBytes};

use super::super::elf::{
    ET_DYN, ET_EXEC, ET_REL, FORMAT, SHF_EXCLUDE, SHN_LORESERVE, change_header, kept, outside,
    sections,
};
use super::super::error::{EmbedError, ObjectPart};
use super::super::{Pieces, SECTION_ALIGNMENT, slice};
use super::{Entry, ObjectBundle, PREFIX};
use crate::edit::string_at;
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
/// again to be sure.
pub(super) fn undo<H: ElfHeader>(object: &[u8]) -> Option<Vec<u8>> {
    let header_len = size_of::<H>() as u64;
    let (header, _) = H::ref_from_prefix(object).ok()?;
    let fields = header.fields();
    check_type(&fields).ok()?;
    let sections = sections::<H>(object, &fields).ok()?;
    let old_header_range = fields.shoff.checked_sub(header_len)?..fields.shoff;
    let old_header = slice(object, old_header_range.clone())?;
    let old_fields = H::ref_from_bytes(old_header).ok()?.fields();
    let mut old_count = u64::from(old_fields.shnum);
    if old_count == 0 {
        let null_end = old_fields.shoff.checked_add(size_of::<H::Section>() as u64)?;
        let null = slice(object, old_fields.shoff..null_end)?;
        old_count = H::Section::ref_from_bytes(null).ok()?.fields().size;
    }
    let new = sections.table.get(usize::try_from(old_count).ok()?..)?;
    let old_len = new.first()?.fields().offset;
    if old_len > old_header_range.start {
        return None;
    }
    let mut entries = Vec::with_capacity(new.len());
    for section in new {
        let section = section.fields();
        let id = string_at(sections.names, section.name.into())?.strip_prefix(PREFIX)?;
        entries.push(Entry { id, size: section.size });
    }
    let mut old = old_header.to_vec();
    old.extend_from_slice(slice(object, header_len..old_len)?);
    let again = lay_out::<H>(&old, &entries).ok()?;
    let same = again.is_layout_of(object);
    drop(again);
    same.then_some(old)
}
