//! COFF: the new section header follows the others, the contents precede the symbol table, as if the compiler had
//! written them last, and the name goes to the end of the string table.
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

use object::pe::{
    IMAGE_SCN_ALIGN_8BYTES, IMAGE_SCN_LNK_REMOVE, IMAGE_SCN_MEM_DISCARDABLE, SectionFlags,
};
use object::pod::{bytes_of, bytes_of_slice};
use object::{LittleEndian, U32};

use super::{NewSections, SECTION_ALIGNMENT, SECTION_NAME, find_name};
use crate::error::Error;
use crate::objects::coff::{LIMIT, Object, STRING_SIZE_LEN, Section, long_name, narrow, too_large};
use crate::pod::{LE, rest};

pub(super) const SECTION_HEADER_LEN: u64 = size_of::<Section>() as u64;

/// The distances that parts move.
pub(super) struct Moves {
    pub(super) headers_end: u64,
    pub(super) tables: Range<u64>,
    /// Length of the new section headers.
    pub(super) headers: u64,
    /// The bytes between old contents and tables.
    pub(super) inserted: u64,
    /// The growth of the string table.
    pub(super) grown: u64,
    /// The end of the old object.
    pub(super) end: u64,
}

impl Moves {
    pub(super) fn apply(&self, offset: u64) -> Result<u32, Error> {
        let mut to = offset;
        for (from, by) in [
            (self.headers_end, self.headers),
            (self.tables.start, self.inserted),
            (self.tables.end, self.grown),
        ] {
            if offset >= from {
                // Lengths of parts in memory, and sizes that fit section headers.
                to += by;
            }
        }
        u32::try_from(to).map_err(|_| too_large(to))
    }

    /// Adjusts an offset in a header. Zero means nothing; a part in the headers or past the end is empty.
    pub(super) fn adjust(&self, offset: &mut U32<LittleEndian>) -> Result<(), Error> {
        if offset.get(LE) != 0 && u64::from(offset.get(LE)) <= self.end {
            *offset = U32::new(LE, self.apply(offset.get(LE).into())?);
        }
        Ok(())
    }
}

pub(super) fn lay_out(object: &[u8], contents_len: u64) -> Result<NewSections<'_>, Error> {
    let end = object.len() as u64;
    let old = Object::of_bytes(object)?;
    let strings = rest(&old.strings, STRING_SIZE_LEN);

    let known_name = find_name(strings);
    let mut new_strings = Vec::new();
    if known_name.is_none() {
        new_strings.extend_from_slice(SECTION_NAME);
        new_strings.push(0);
    }
    let name_at = STRING_SIZE_LEN + known_name.unwrap_or(strings.len()) as u64;

    let align = |offset: u64| {
        offset.checked_next_multiple_of(SECTION_ALIGNMENT).ok_or_else(|| too_large(u64::MAX))
    };
    let contents_at = align(old.symbols.start + SECTION_HEADER_LEN)?;
    let size = align(contents_len)?;
    let name = long_name(name_at).ok_or_else(|| too_large(name_at))?;
    let flags = IMAGE_SCN_LNK_REMOVE | IMAGE_SCN_ALIGN_8BYTES | IMAGE_SCN_MEM_DISCARDABLE;
    let sections = vec![new_section(name, size, contents_at, flags)?];
    let symbols_at = contents_at + size;
    let addition = Addition { old, sections, strings: new_strings, symbols_at, end };
    addition.lay_out(object, |new| {
        new.pad_to(contents_at);
        new.add(contents_len);
        new.pad_to(symbols_at);
    })
}

/// An object, and what is added to it.
pub(super) struct Addition {
    pub(super) old: Object,
    /// The headers of the new sections.
    pub(super) sections: Vec<Section>,
    /// The new end of the string table.
    pub(super) strings: Vec<u8>,
    /// The new place of the symbol table, directly after the new contents.
    pub(super) symbols_at: u64,
    /// The limit of the offsets that move.
    pub(super) end: u64,
}

impl Addition {
    /// Lays out the object. `put` adds the new contents.
    pub(super) fn lay_out<'a>(
        self,
        object: &'a [u8],
        put: impl FnOnce(&mut NewSections<'a>),
    ) -> Result<NewSections<'a>, Error> {
        let Addition { old, sections: added, strings: new_strings, symbols_at, end } = self;
        let Object { header, headers_end, sections, symbols, strings, strings_end, .. } = old;
        let headers = SECTION_HEADER_LEN * added.len() as u64;
        let old_strings = rest(&strings, STRING_SIZE_LEN);
        let strings_len = STRING_SIZE_LEN + (old_strings.len() + new_strings.len()) as u64;
        let moves = Moves {
            headers_end,
            headers,
            tables: symbols.start..strings_end,
            inserted: symbols_at - (symbols.start + headers),
            grown: symbols.end + strings_len - strings_end,
            end,
        };
        let count = header.sections() + added.len() as u64;
        let mut changed = sections;
        for section in &mut changed {
            moves.adjust(&mut section.pointer_to_raw_data)?;
            moves.adjust(&mut section.pointer_to_relocations)?;
            moves.adjust(&mut section.pointer_to_linenumbers)?;
        }
        changed.extend(added);

        let mut new = NewSections::of(object);
        new.put(&header.changed(count, narrow(symbols_at)?.get(LE))?);
        new.put(bytes_of_slice(&changed));
        new.keep(headers_end..symbols.start);
        put(&mut new);
        new.keep(symbols.start..symbols.end);
        new.put(bytes_of(&narrow(strings_len)?));
        new.keep(symbols.end + STRING_SIZE_LEN..strings_end);
        new.put(&new_strings);
        new.keep(strings_end..object.len() as u64);
        new.within(LIMIT).ok_or_else(|| too_large(symbols_at))
    }
}

/// Returns the header of a section with these contents, without addresses and relocations.
pub(super) fn new_section(
    name: [u8; 8],
    size: u64,
    contents_at: u64,
    flags: SectionFlags,
) -> Result<Section, Error> {
    Ok(Section {
        name,
        size_of_raw_data: narrow(size)?,
        pointer_to_raw_data: narrow(contents_at)?,
        characteristics: U32::new(LE, flags),
        ..Section::default()
    })
}
