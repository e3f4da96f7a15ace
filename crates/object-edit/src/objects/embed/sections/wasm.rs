//! WebAssembly: every new section is a custom section at the end of the module.
//!
//! ```text
//! the old module     every byte of it
//! 00                 a custom section
//! LEB128, 5 bytes    length of what follows, as LLVM writes it
//! LEB128             length of the name
//! name
//! contents
//! ```
//!
//! Nothing in the module changes, and what is taken off again is just these sections. Where others follow, as
//! after `wasm-ld -r`, an empty section takes the place of each: relocations and symbols refer to sections by number.

use std::ops::Range;

use byte_parts::wasm::{CUSTOM, HEADER, Head, head, read_leb128};

use super::super::slice;
use super::{NewSection, NewSections, with_capacity};
use crate::error::Error;
use crate::objects::error::ObjectPart;
use crate::pod::rest;
use crate::tables::sized;

const FORMAT: &str = "WebAssembly";
const LIMIT: u64 = u32::MAX as u64;

/// Name of the empty section that takes the number of a removed one, as `llvm-objcopy` 22 calls it.
const PLACE: &[u8] = b".objcopy.removed";

pub(super) fn lay_out<'a>(
    object: &'a [u8],
    entries: &[NewSection<'_>],
) -> Result<NewSections<'a>, Error> {
    sections(object, |_| Ok(()))?;
    let too_large = |value| Error::too_large(FORMAT, value, LIMIT);
    let mut new = NewSections::of(object);
    new.keep(0..object.len() as u64);
    for entry in entries {
        let mut name = leb128(entry.name.len() as u64, 1);
        name.extend_from_slice(entry.name);
        // Asked for by the caller: a sum that is too large for a number is too large here.
        let len = (name.len() as u64).saturating_add(entry.size);
        if len > LIMIT {
            return Err(too_large(len));
        }
        new.put(&[CUSTOM]);
        new.put(&leb128(len, 5));
        new.put(&name);
        new.add(entry.size);
    }
    new.within(u64::MAX).ok_or_else(|| too_large(u64::MAX))
}

/// A section of a module.
struct Section<'a> {
    /// Name, if it is a custom section.
    name: Option<&'a [u8]>,
    /// All of it.
    bytes: &'a [u8],
}

impl Section<'_> {
    fn is_named(&self, prefix: &[u8]) -> bool {
        self.name.is_some_and(|name| name.starts_with(prefix))
    }
}

/// Removes the sections whose names start with `prefix`; `None` when there is nothing to remove.
pub(super) fn remove(object: &[u8], prefix: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    // Where the last section ends that stays.
    let mut kept_end = HEADER.len() as u64;
    let (mut end, mut found) = (kept_end, false);
    sections(object, |section| {
        end += section.bytes.len() as u64;
        if section.is_named(prefix) {
            found = true;
        } else {
            kept_end = end;
        }
        Ok(())
    })?;
    if !found {
        return Ok(None);
    }
    let mut place = vec![CUSTOM];
    place.extend(leb128(PLACE.len() as u64 + 1, 5));
    place.extend(leb128(PLACE.len() as u64, 1));
    place.extend_from_slice(PLACE);
    let mut new = with_capacity(kept_end)?;
    new.extend_from_slice(&HEADER);
    let mut at = HEADER.len() as u64;
    sections(object, |section| {
        if at < kept_end {
            new.extend_from_slice(if section.is_named(prefix) { &place } else { section.bytes });
        }
        at += section.bytes.len() as u64;
        Ok(())
    })?;
    Ok(Some(new))
}

/// Calls `f` for every section.
fn sections<'a>(
    object: &'a [u8],
    mut f: impl FnMut(Section<'a>) -> Result<(), Error>,
) -> Result<(), Error> {
    let field = |field, offset, expected| {
        let found = rest(object, offset).first().map_or(0, |&byte| byte.into());
        Error::field(FORMAT, field, offset, found, expected)
    };
    if !object.starts_with(&HEADER) {
        return Err(field("version", 4, "01 00 00 00, the version of a module"));
    }
    let (mut at, mut number) = (HEADER.len() as u64, 0_u64);
    let end = object.len() as u64;
    while at < end {
        let part = ObjectPart::Section(number);
        let beyond_end =
            |range: Range<u64>| Error::outside(FORMAT, part, range.start, range.end, end);
        let expected = "a number in at most five bytes, of 32 bits";
        let Head { id, head_len, len, .. } = slice(object, at..end)
            .and_then(head)
            .ok_or_else(|| field("section size", at + 1, expected))?;
        let contents_at = at + head_len;
        let section_end = contents_at + len;
        let contents = slice(object, contents_at..section_end);
        let contents = contents.ok_or_else(|| beyond_end(contents_at..section_end))?;
        let name = match id {
            CUSTOM => {
                let (len, leb128_len) = read_leb128(contents)
                    .ok_or_else(|| field("length of a section name", contents_at, expected))?;
                let name = slice(contents, sized(leb128_len, len));
                let expected = "at most the length of the section";
                let too_long = || field("length of a section name", contents_at, expected);
                Some(name.ok_or_else(too_long)?)
            }
            _ => None,
        };
        let bytes = slice(object, at..section_end).ok_or_else(|| beyond_end(at..section_end))?;
        f(Section { name, bytes })?;
        (at, number) = (section_end, number + 1);
    }
    Ok(())
}

/// Returns a number in as few bytes as it needs, but `min` of them.
pub(crate) fn leb128(mut value: u64, min: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = value.to_le_bytes()[0] & 0x7f;
        value >>= 7;
        if value == 0 && bytes.len() + 1 >= min {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leb128_is_written_and_read() {
        for (value, min, bytes) in [
            (0, 1, &b"\0"[..]),
            (0x7f, 1, b"\x7f"),
            (0x80, 1, b"\x80\x01"),
            (58, 5, b"\xba\x80\x80\x80\0"),
            (u64::from(u32::MAX), 1, b"\xff\xff\xff\xff\x0f"),
        ] {
            assert_eq!(leb128(value, min), bytes);
            assert_eq!(read_leb128(bytes), Some((value, bytes.len() as u64)));
            assert_eq!(read_leb128(&bytes[..bytes.len() - 1]), None);
        }
    }
}
