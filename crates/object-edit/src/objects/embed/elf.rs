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

use byte_parts::elf::SHT_LLVM_OFFLOADING;
use object::elf::{ET_REL, SHF_EXCLUDE, SHN_LORESERVE, SectionType};
use object::pod::{bytes_of, bytes_of_slice};

use super::{NewSections, SECTION_ALIGNMENT, SECTION_NAME, find_name, slice};
use crate::error::Error;
use crate::objects::elf_class::{ElfHeader, ElfSection};
use crate::objects::elf_object::{FORMAT, Object, place, program_headers};
use crate::objects::error::ObjectPart;
use crate::pod::first;

pub(super) fn lay_out<H: ElfHeader>(
    object: &[u8],
    contents_len: u64,
) -> Result<NewSections<'_>, Error> {
    let e = H::order();
    let header_len = size_of::<H>() as u64;
    let header = header::<H>(object)?;
    if header.e_type(e) != ET_REL {
        return Err(Error::elf_type(header.e_type(e).0));
    }
    let elf = Object::<H>::of_bytes(object)?;
    let known_name = find_name(&elf.names);
    let kept = kept(object, &elf, known_name.is_some());

    let too_large = |value| Error::too_large(FORMAT, value, H::LIMIT);
    let add = |a: u64, b: u64| a.checked_add(b).ok_or_else(|| too_large(u64::MAX));
    let align = |offset: u64| {
        offset.checked_next_multiple_of(SECTION_ALIGNMENT).ok_or_else(|| too_large(u64::MAX))
    };
    let contents_at = align(kept)?;
    let size = align(contents_len)?;
    let names_at = add(contents_at, size)?;
    let mut names = Vec::new();
    let name = known_name.unwrap_or_else(|| {
        names.extend_from_slice(&elf.names);
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

    let mut sections = elf.sections;
    if known_name.is_none()
        && let Some(section) = sections.get_mut(elf.names_index)
    {
        (section.offset, section.size) = (names_at, names.len() as u64);
    }
    sections.push(ElfSection {
        name: u32::try_from(name).map_err(|_| too_large(name as u64))?,
        kind: SectionType(SHT_LLVM_OFFLOADING),
        flags: SHF_EXCLUDE,
        addr: 0,
        offset: contents_at,
        size,
        link: 0,
        info: 0,
        align: SECTION_ALIGNMENT,
        entsize: 0,
    });
    let (header, table) =
        headers(header, &mut sections, table_at).ok_or_else(|| too_large(table_at))?;

    let mut new = NewSections::of(object);
    new.put(bytes_of(&header));
    new.keep(header_len..kept);
    new.pad_to(contents_at);
    new.add(contents_len);
    new.pad_to(names_at);
    new.put(&names);
    new.pad_to(table_at);
    new.put(bytes_of_slice(&table));
    new.within(H::LIMIT).ok_or_else(|| too_large(table_at))
}

/// Reads the file header.
pub(super) fn header<H: ElfHeader>(object: &[u8]) -> Result<H, Error> {
    let (end, available) = (size_of::<H>() as u64, object.len() as u64);
    let outside = || Error::outside(FORMAT, ObjectPart::FileHeader, 0, end, available);
    first(object).ok_or_else(outside)
}

/// Returns the file header and the section headers of these sections, which lie at `table_at`; `None` where a
/// number does not fit.
pub(super) fn headers<H: ElfHeader>(
    mut header: H,
    sections: &mut [ElfSection],
    table_at: u64,
) -> Option<(H, Vec<H::SectionHeader>)> {
    let e = H::order();
    let count = sections.len() as u64;
    // A number that does not fit the file header stands in the null section's.
    let short = u16::try_from(count).ok().filter(|&count| count < SHN_LORESERVE);
    let short = short.filter(|_| header.e_shnum(e) != 0);
    header.set_table(table_at, short.unwrap_or(0), header.e_shstrndx(e))?;
    if let Some(null) = sections.first_mut().filter(|_| short.is_none()) {
        null.size = count;
    }
    let table = sections.iter().map(H::section_header).collect::<Option<_>>()?;
    Some((header, table))
}

/// Returns the end of the bytes that stay as they are: the end of the object, or the start of the section header table
/// and the names if nothing follows them.
fn kept<H: ElfHeader>(object: &[u8], elf: &Object<H>, keep_names: bool) -> u64 {
    let mut kept = size_of::<H>() as u64;
    let mut names = 0..0;
    for (index, section) in elf.sections.iter().enumerate() {
        let place = place(section);
        if index == elf.names_index && !place.is_empty() {
            names = place.clone();
        }
        if !place.is_empty() && (index != elf.names_index || keep_names) {
            kept = kept.max(place.end);
        }
    }
    let program_headers = program_headers(&elf.header);
    if !program_headers.is_empty() {
        kept = kept.max(program_headers.end);
    }
    let mut rewritten = [&elf.table, &names];
    rewritten.sort_by_key(|range| range.start);
    let zeros = |range| slice(object, range).is_some_and(|bytes| bytes.iter().all(|&b| b == 0));
    let mut at = kept;
    for range in rewritten {
        if range.start > at && !zeros(at..range.start) {
            return object.len() as u64;
        }
        at = at.max(range.end);
    }
    if zeros(at..object.len() as u64) { kept } else { object.len() as u64 }
}
