//! `ar` archives: members replaced, with everything that depends on where they lie.
//!
//! ```text
//! !<arch>\n
//! header, symbol index      names of symbols, and for each the offset of the header of its member
//! header, long names
//! header, member            60 bytes with name, date, owner, mode and size in ASCII; data; a line feed if it is odd
//! ...
//! ```
//!
//! The index is `/` or `/SYM64/` in System V's and GNU's form (big-endian), `__.SYMDEF` and its variants in BSD's,
//! two times `/` in Microsoft's ("PE Format", "Archive (Library) File Format"). Which symbols are in it does not
//! change with device code, so its length does not, either.

mod index;

use std::collections::BTreeMap;
use std::ops::Range;

use byte_parts::Source;

use crate::error::{Error, ErrorKind};
use crate::output::{self, Input, Output, Part};
use crate::patches::Patches;
use crate::tables::{absolute, relative, sized};

/// The first bytes of an archive.
pub(super) const MAGIC: &[u8] = b"!<arch>\n";
pub(super) const THIN_MAGIC: &[u8] = b"!<thin>\n";
const HEADER_LEN: u64 = 60;
const NAME: Range<usize> = 0..16;
const SIZE: Range<usize> = 48..58;
/// The largest number that has room in ten digits.
const MAX_SIZE: u64 = 9_999_999_999;
/// Alignment of the data of members where LLVM and Apple write archives in BSD's form.
const BSD_ALIGNMENT: u64 = 8;

/// A member of the archive. Offsets count from the start of the archive.
struct Member {
    header_at: u64,
    header: Vec<u8>,
    /// Length of a name before the data, as in BSD's form.
    name_len: u64,
    /// The name from the header, or the one before the data; without padding.
    name: Vec<u8>,
    data: Range<u64>,
    /// The start of the next header.
    end: u64,
}

/// Lays out the `ar` archive in the window with other data for some members, and with an index that fits. A member is known by the
/// range of its data in the walked file.
///
/// # Errors
///
/// [`Malformed`](crate::ErrorKind::Malformed), [`Unsupported`](crate::ErrorKind::Unsupported) for thin archives,
/// [`Limit`](crate::ErrorKind::Limit) where a field is too short, [`Read`](crate::ErrorKind::Read).
pub fn edit_archive(
    source: &mut Source<'_>,
    window: &Range<u64>,
    members: Vec<(Range<u64>, Output)>,
) -> Result<Output, Error> {
    let mut edits = BTreeMap::new();
    for (range, new) in members {
        if !output::is_copy_of(&new, &range) {
            edits.insert((range.start, range.end), new);
        }
    }
    if edits.is_empty() {
        return Ok(output::copy_of(window));
    }
    let all = read(source, window)?;
    let style = Style::of(&all);
    let mut splices = Output::new();
    splices.push_input(Input::File, sized(window.start, MAGIC.len() as u64));
    let mut moved = BTreeMap::new();
    for member in &all {
        let range = absolute(window.start, &member.data);
        moved.insert(member.header_at, splices.size());
        let new = edits.remove(&(range.start, range.end));
        if new.is_none() && splices.size() == member.header_at {
            splices
                .push_input(Input::File, absolute(window.start, &(member.header_at..member.end)));
            continue;
        }
        let new = match new {
            Some(new) if style.padded_data => repadded(source, &range, &new)?,
            Some(new) => new,
            None => output::copy_of(&range),
        };
        let is_last = member.end == window.end - window.start;
        push(&mut splices, member, &new, &style, is_last)?;
    }
    if let Some((&(start, end), _)) = edits.first_key_value() {
        let inside = relative(window, &(start..end));
        return Err(Error::shared_bytes(inside.start, inside.end));
    }
    let mut patches = Patches::default();
    index::update(source, window, &all, &moved, &mut patches)?;
    patches.apply(splices).ok_or_else(|| Error::shared_bytes(0, window.end - window.start))
}

/// The data of a member, in the walked file.
pub(super) enum MemberData {
    /// The names in a table of symbols, each with a zero.
    Index(Vec<u8>),
    /// The place of all others.
    Other(Range<u64>),
}

/// Returns the data of all members.
pub(super) fn members(
    source: &mut Source<'_>,
    window: &Range<u64>,
) -> Result<Vec<MemberData>, Error> {
    let mut found = Vec::new();
    let mut is_second = false;
    for member in read(source, window)? {
        let range = absolute(window.start, &member.data);
        if !index::is_index(&member.name) {
            found.push(MemberData::Other(range));
            continue;
        }
        let index = source.read_range(&range)?;
        let names = index::names(&index, &member.name, is_second);
        let names = names.ok_or_else(|| damaged(window, "the symbol index is cut short"))?;
        found.push(MemberData::Index(names.to_vec()));
        is_second = true;
    }
    Ok(found)
}

/// Choices of the archive's writer.
struct Style {
    /// Names before data are padded with zeros that align the data.
    padded_names: bool,
    /// Data is followed by line feeds that count as a part of it, up to the alignment.
    padded_data: bool,
}

impl Style {
    fn of(members: &[Member]) -> Self {
        let aligned = |at: u64| at.is_multiple_of(BSD_ALIGNMENT);
        // The index may have a short name.
        let named = members.iter().all(|m| m.name_len > 0 || m.name.starts_with(b"__.SYMDEF"));
        let padded = |member: &Member| member.name_len == 0 || aligned(member.data.start);
        Style {
            padded_names: named && members.iter().all(padded),
            padded_data: named
                && members.iter().all(|m| aligned(m.header_at) && aligned(m.data.end)),
        }
    }
}

/// Returns new data for a member that has its padding within: without the padding of the old data, and with its own.
fn repadded(source: &mut Source<'_>, old: &Range<u64>, new: &Output) -> Result<Output, Error> {
    let longest = (BSD_ALIGNMENT - 1).min(old.end - old.start);
    let tail = source.read_range(&(old.end - longest..old.end))?;
    let padding = tail.iter().rev().take_while(|&&byte| byte == b'\n').count() as u64;
    let kept = match new.iter().last() {
        Some(Part::Input(Input::File, range)) if range.end == old.end => {
            new.size() - padding.min(range.end - range.start)
        }
        _ => new.size(),
    };
    let mut new = new.slice(0..kept);
    let missing = kept.next_multiple_of(BSD_ALIGNMENT) - kept;
    new.push_bytes(&(0..missing).map(|_| b'\n').collect::<Vec<_>>());
    Ok(new)
}

/// Adds a member that has other data, or is elsewhere.
fn push(
    splices: &mut Output,
    member: &Member,
    data: &Output,
    style: &Style,
    is_last: bool,
) -> Result<(), Error> {
    let mut header = member.header.clone();
    let mut name = Vec::new();
    if member.name_len > 0 {
        name = member.name.clone();
        let behind = splices.size() + HEADER_LEN;
        let len = if style.padded_names {
            (behind + name.len() as u64).next_multiple_of(BSD_ALIGNMENT) - behind
        } else {
            member.name_len
        };
        name.resize(usize::try_from(len).unwrap_or(name.len()), 0);
        write_field(&mut header, NAME, &format!("#1/{len}"));
    }
    // Sizes of outputs do not grow past the largest number.
    let size = data.size().saturating_add(name.len() as u64);
    if size > MAX_SIZE {
        let what = "size of a member";
        return Err(Error::archive_field(what, size, MAX_SIZE));
    }
    write_field(&mut header, SIZE, &size.to_string());
    splices.push_vec([header, name].concat());
    splices.append(data);
    // Some writers leave out the last one.
    let was_left_out = is_last && !member.end.is_multiple_of(2);
    if !splices.size().is_multiple_of(2) && !was_left_out {
        splices.push_bytes(b"\n");
    }
    Ok(())
}

fn write_field(header: &mut [u8], field: Range<usize>, text: &str) {
    let text = text.bytes().chain(std::iter::repeat(b' '));
    for (to, from) in header.get_mut(field).into_iter().flatten().zip(text) {
        *to = from;
    }
}

/// Reads the headers of all members.
fn read(source: &mut Source<'_>, window: &Range<u64>) -> Result<Vec<Member>, Error> {
    let magic = source.peek(window, MAGIC.len())?;
    if magic == THIN_MAGIC {
        let kind = "thin archives (edit the files they name)";
        return Err(Error::unsupported_kind(kind));
    }
    if magic != MAGIC {
        let kind = "archives of AIX and z/OS";
        return Err(Error::unsupported_kind(kind));
    }
    let damaged = |what: &'static str| damaged(window, what);
    let len = window.end - window.start;
    let mut members = Vec::new();
    let mut at = MAGIC.len() as u64;
    while at < len {
        let header_end = at + HEADER_LEN;
        if header_end > len {
            return Err(damaged("a member's header is cut short"));
        }
        let header = source.read_range(&(window.start + at..window.start + header_end))?;
        if !header.ends_with(b"`\n") {
            return Err(damaged("a member's header does not end in its mark"));
        }
        let fields = header.get(NAME).zip(header.get(SIZE).and_then(decimal));
        let (name, size) = fields.ok_or_else(|| damaged("a member has no size"))?;
        let name = name.trim_ascii_end();
        let data_end = header_end + size;
        if data_end > len {
            return Err(damaged("a member ends after the archive"));
        }
        let name_len = match name.strip_prefix(b"#1/") {
            Some(digits) => decimal(digits).ok_or_else(|| damaged("a name has no length"))?,
            None => 0,
        };
        if name_len > size {
            return Err(damaged("a name is longer than its member"));
        }
        let data_start = header_end + name_len;
        let name = match name_len {
            0 => name.to_vec(),
            _ => {
                let range = window.start + header_end..window.start + data_start;
                let mut name = source.read_range(&range)?;
                let len = name.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
                name.truncate(len);
                name
            }
        };
        // An even offset, or the end.
        let end = data_end.next_multiple_of(2).min(len);
        members.push(Member {
            header_at: at,
            name_len,
            name,
            data: data_start..data_end,
            end,
            header,
        });
        at = end;
    }
    Ok(members)
}

/// Parses an ASCII number, followed by blanks.
fn decimal(field: &[u8]) -> Option<u64> {
    std::str::from_utf8(field).ok()?.trim_end_matches(' ').parse().ok()
}

/// Returns the error about a part of the archive that only this module reads.
fn damaged(window: &Range<u64>, what: &'static str) -> Error {
    let text = format!("at {:#x}: malformed archive: {what}", window.start);
    Error::new(ErrorKind::Malformed, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// Returns an archive of two members, of 4 and 2 bytes, with the second one in its index, which this is the
    /// start of.
    fn edited(index: &[u8], name: &str, new: u64) -> Result<Output, Error> {
        let header = |name: &str, size: usize| {
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644)
        };
        let second = 8 + 60 + index.len() as u64 + 60 + 4;
        let mut file = b"!<arch>\n".to_vec();
        file.extend(header(name, index.len()).bytes());
        let index_at = file.len();
        file.extend(index);
        file.extend([header("a/", 4).as_bytes(), b"aaaa"].concat());
        let data = file.len() as u64 - 4..file.len() as u64;
        file.extend([header("b/", 2).as_bytes(), b"bb"].concat());
        // The offset follows the number of symbols.
        let width = if name == "/" { 4 } else { 8 };
        let offset = second.to_be_bytes();
        file[index_at + width..index_at + 2 * width].copy_from_slice(&offset[8 - width..]);
        let window = 0..file.len() as u64;
        let mut reader = Cursor::new(file);
        let mut source = Source::new(&mut reader).unwrap();
        let mut splices = Output::new();
        splices.push_zeros(new);
        edit_archive(&mut source, &window, vec![(data, splices)])
    }

    #[test]
    fn numbers_too_large_for_a_field_are_errors() {
        let (four, eight) = (b"\0\0\0\x01____b\0", b"\0\0\0\0\0\0\0\x01________b\0");
        let before = 8 + 60 + 10 + 60;
        // An even offset.
        let most = (1 << 32) - 2 - before;
        assert_eq!(edited(four, "/", most).unwrap().size(), (1 << 32) - 2 + 62);
        let error = edited(four, "/", most + 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "offset of a member in the symbol index would be 4294967296, exceeding the archive's limit of 4294967295"
        );
        edited(eight, "/SYM64/", most + 1).unwrap();
        edited(eight, "/SYM64/", MAX_SIZE).unwrap();
        let error = edited(eight, "/SYM64/", MAX_SIZE + 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "size of a member would be 10000000000, exceeding the archive's limit of \
             9999999999"
        );
    }
}
