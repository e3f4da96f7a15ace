//! ELF: the new section, its name and the section header table go to the end of the file.
//!
//! ```text
//! before                               after
//! ELF header                           ELF header: e_shoff, e_shnum
//! contents, symbols, relocations ...   the same bytes at the same offsets
//! section names                        contents of the new section
//! section header table                 section names, with one more
//!                                      section header table, with one more
//! ```
//!
//! Names and header table are left out of the first part when nothing but them is at the end of the file, as
//! compilers and assemblers write it; otherwise their old bytes stay where they are, referred to by nothing.

use std::ops::Range;

use zerocopy::{FromBytes, IntoBytes};

use super::error::{EmbedError, ObjectPart};
use super::{Embedding, Pieces, SECTION_ALIGNMENT, SECTION_NAME, find_name, slice};
use crate::wire::{ElfFields, ElfHeader, ElfSection, ElfSectionHeader};

pub(super) const FORMAT: &str = "ELF";

pub(super) const ET_REL: u16 = 1;
pub(super) const ET_EXEC: u16 = 2;
pub(super) const ET_DYN: u16 = 3;
pub(super) const SHN_LORESERVE: u64 = 0xff00;
pub(super) const SHN_XINDEX: u16 = 0xffff;
pub(super) const SHT_NULL: u32 = 0;
pub(super) const SHT_STRTAB: u32 = 3;
pub(super) const SHT_NOBITS: u32 = 8;
/// LLVM's `ELF.h`.
const SHT_LLVM_OFFLOADING: u32 = 0x6fff_4c0b;
pub(super) const SHF_EXCLUDE: u64 = 0x8000_0000;

/// The section header table and the section that holds the names.
pub(super) struct Sections<'a, S> {
    pub(super) table: &'a [S],
    pub(super) table_range: Range<u64>,
    pub(super) names_index: usize,
    pub(super) names: &'a [u8],
    pub(super) names_range: Range<u64>,
}

pub(super) fn lay_out<H: ElfHeader>(
    object: &[u8],
    contents_len: u64,
) -> Result<Embedding<'_>, EmbedError> {
    let header_len = size_of::<H>() as u64;
    let beyond_end = || outside(object, ObjectPart::FileHeader, &(0..header_len));
    let (&header, _) = H::ref_from_prefix(object).map_err(|_| beyond_end())?;
    let fields = header.fields();
    if fields.e_type != ET_REL {
        return Err(EmbedError::ElfType { found: fields.e_type });
    }
    let sections = sections::<H>(object, &fields)?;
    let known_name = find_name(sections.names);
    let kept = kept::<H>(object, &fields, &sections, known_name.is_some())?;

    let too_large = |value| EmbedError::TooLarge { format: FORMAT, value, limit: H::LIMIT };
    let add = |a: u64, b: u64| a.checked_add(b).ok_or_else(|| too_large(u64::MAX));
    let align = |offset: u64| {
        offset.checked_next_multiple_of(SECTION_ALIGNMENT).ok_or_else(|| too_large(u64::MAX))
    };
    let contents_at = align(kept)?;
    let size = align(contents_len)?;
    let names_at = add(contents_at, size)?;
    let mut names = Vec::new();
    let name = known_name.unwrap_or_else(|| {
        names.extend_from_slice(sections.names);
        if names.is_empty() {
            names.push(0);
        }
        let name = names.len();
        names.extend_from_slice(SECTION_NAME);
        names.push(0);
        name
    });
    let names_end = add(names_at, names.len() as u64)?;
    let table_at = align(names_end)?;

    let count = add(sections.table.len() as u64, 1)?;
    let extended = fields.shnum == 0 || count >= SHN_LORESERVE;
    // Fits: the largest count that is not extended is below SHN_LORESERVE.
    let shnum = if extended { 0 } else { u16::try_from(count).unwrap_or(0) };
    let mut header = header;
    header.set_table(table_at, shnum).ok_or_else(|| too_large(table_at))?;

    let mut table = sections.table.to_vec();
    let mut change = |index: usize, change: &dyn Fn(&mut ElfSection), value: u64| {
        change_header(&mut table, index, change).ok_or_else(|| too_large(value))
    };
    if extended {
        change(0, &|null| null.size = count, count)?;
    }
    if known_name.is_none() {
        let rewritten = |section: &mut ElfSection| {
            section.offset = names_at;
            section.size = names.len() as u64;
        };
        change(sections.names_index, &rewritten, names_end)?;
    }
    let new = ElfSection {
        name: u32::try_from(name).map_err(|_| too_large(name as u64))?,
        kind: SHT_LLVM_OFFLOADING,
        flags: SHF_EXCLUDE,
        addr: 0,
        offset: contents_at,
        size,
        link: 0,
        info: 0,
        align: SECTION_ALIGNMENT,
        entsize: 0,
    };
    table.push(H::Section::new(&new).ok_or_else(|| too_large(names_at))?);

    let mut before = Pieces::default();
    before.put(header.as_bytes());
    before.keep(slice(object, header_len..kept).unwrap_or_default());
    before.pad(kept, contents_at);
    let mut after = Pieces::default();
    after.put(names);
    after.pad(names_end, table_at);
    after.put(table.as_bytes());
    Embedding::from_pieces(before, contents_len, size, after)
        .filter(|embedding| embedding.total_size <= H::LIMIT)
        .ok_or_else(|| too_large(table_at))
}

pub(super) fn sections<'a, H: ElfHeader>(
    object: &'a [u8],
    fields: &ElfFields,
) -> Result<Sections<'a, H::Section>, EmbedError> {
    let entry_len = size_of::<H::Section>() as u64;
    if fields.shoff == 0 {
        return Err(EmbedError::NoSectionHeaders);
    }
    let field = |field, found, expected| EmbedError::Field {
        format: FORMAT,
        field,
        offset: 0,
        found,
        expected,
    };
    if u64::from(fields.shentsize) != entry_len {
        let expected = if entry_len == 40 { "40 in a 32-bit file" } else { "64 in a 64-bit file" };
        return Err(field("e_shentsize", fields.shentsize.into(), expected));
    }
    let null = {
        let bytes = part(object, ObjectPart::SectionHeaders, fields.shoff, entry_len)?;
        H::Section::ref_from_bytes(bytes).map_err(|_| EmbedError::NoSectionHeaders)?.fields()
    };
    // Numbers that do not fit the ELF header stand in the null section's.
    let count = if fields.shnum == 0 { null.size } else { fields.shnum.into() };
    if count == 0 {
        return Err(EmbedError::NoSectionHeaders);
    }
    let table_len = count.saturating_mul(entry_len);
    let bytes = part(object, ObjectPart::SectionHeaders, fields.shoff, table_len)?;
    let table = <[H::Section]>::ref_from_bytes(bytes).map_err(|_| EmbedError::NoSectionHeaders)?;

    let index = if fields.shstrndx == SHN_XINDEX { null.link } else { fields.shstrndx.into() };
    if index == 0 {
        return Err(EmbedError::NoSectionNames);
    }
    let names_index = usize::try_from(index).unwrap_or(usize::MAX);
    let section = table
        .get(names_index)
        .map(ElfSectionHeader::fields)
        .ok_or_else(|| field("e_shstrndx", index.into(), "the index of a section"))?;
    if section.kind != SHT_STRTAB {
        return Err(field("e_shstrndx", index.into(), "the index of a string table"));
    }
    let names = part(object, ObjectPart::SectionNames, section.offset, section.size)?;
    let names_start = if names.is_empty() { 0 } else { section.offset };
    let names_range = names_start..names_start.saturating_add(section.size);
    if names.last().is_some_and(|&last| last != 0) {
        let (part, end) = (ObjectPart::SectionNames, names_range.end);
        return Err(EmbedError::Unterminated { format: FORMAT, part, end });
    }
    let table_range = fields.shoff..fields.shoff.saturating_add(table_len);
    Ok(Sections { table, table_range, names_index, names, names_range })
}

/// Up to where the object stays as it is: to its end, or without the section header table and the names if
/// nothing but them is there.
pub(super) fn kept<H: ElfHeader>(
    object: &[u8],
    fields: &ElfFields,
    sections: &Sections<'_, H::Section>,
    keep_names: bool,
) -> Result<u64, EmbedError> {
    let program_headers = u64::from(fields.phnum).saturating_mul(fields.phentsize.into());
    part(object, ObjectPart::ProgramHeaders, fields.phoff, program_headers)?;
    let mut kept = size_of::<H>() as u64;
    if program_headers > 0 {
        kept = kept.max(fields.phoff.saturating_add(program_headers));
    }
    for (index, header) in sections.table.iter().enumerate() {
        let section = header.fields();
        if [SHT_NULL, SHT_NOBITS].contains(&section.kind) || section.size == 0 {
            continue;
        }
        part(object, ObjectPart::Section(index as u64), section.offset, section.size)?;
        if index != sections.names_index || keep_names {
            kept = kept.max(section.offset.saturating_add(section.size));
        }
    }
    let mut rewritten = [&sections.table_range, &sections.names_range];
    rewritten.sort_by_key(|range| range.start);
    let zeros = |range| slice(object, range).is_some_and(|bytes| bytes.iter().all(|&b| b == 0));
    let mut at = kept;
    for range in rewritten {
        if range.start > at && !zeros(at..range.start) {
            return Ok(object.len() as u64);
        }
        at = at.max(range.end);
    }
    Ok(if zeros(at..object.len() as u64) { kept } else { object.len() as u64 })
}

/// A part of the object. An empty one may lie anywhere.
pub(super) fn part(
    object: &[u8],
    part: ObjectPart,
    start: u64,
    len: u64,
) -> Result<&[u8], EmbedError> {
    if len == 0 {
        return Ok(&[]);
    }
    let range = start..start.saturating_add(len);
    slice(object, range.clone()).ok_or_else(|| outside(object, part, &range))
}

/// Changes a section header, if there is one of this number; `None` when it has no room for what it becomes.
pub(super) fn change_header<S: ElfSectionHeader>(
    table: &mut [S],
    index: usize,
    change: &dyn Fn(&mut ElfSection),
) -> Option<()> {
    let Some(header) = table.get_mut(index) else { return Some(()) };
    let mut fields = header.fields();
    change(&mut fields);
    *header = S::new(&fields)?;
    Some(())
}

pub(super) fn outside(object: &[u8], part: ObjectPart, range: &Range<u64>) -> EmbedError {
    EmbedError::beyond_end(FORMAT, object, part, range)
}
