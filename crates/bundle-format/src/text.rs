//! The text layout: code objects between comment lines.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use byte_parts::internal;
use memchr::{memchr, memmem, memrchr};

use crate::error::{Error, ErrorKind};
use crate::leader::{COMMON, END, START};

pub use crate::leader::Leader;

/// Returns whether a file that starts with these bytes is a text bundle: its first line that is not empty is a
/// marker that starts an entry, after any of the comment leaders.
///
/// clang-offload-bundler writes an empty line and then the marker; 64 bytes are enough for that.
/// [`TextBundle::parse`] also finds markers further down.
#[must_use]
pub fn is_text_bundle(prefix: &[u8]) -> bool {
    let blank = prefix.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let Some((blank, line)) = prefix.split_at_checked(blank) else { return false };
    if blank.last().is_some_and(|&byte| byte != b'\n') {
        // A carriage return alone ends no line.
        return false;
    }
    Leader::ALL.iter().any(|leader| {
        line.strip_prefix(leader.as_str().as_bytes())
            .and_then(|rest| rest.strip_prefix(b" "))
            .and_then(|rest| rest.strip_prefix(START.as_bytes()))
            .is_some_and(|rest| rest.starts_with(b" "))
    })
}

/// Number of bytes from the end of a text that [`ends_in_marker`] needs. Longer marker lines are not recognised.
pub const TAIL_LEN: usize = 4096;

/// Returns whether a text that ends in these bytes may be a text bundle: its last line that is not blank ends an entry, after any of
/// the comment leaders. Something may stand before the first marker, so that [`is_text_bundle`] does not tell.
///
/// The `tail` is the whole text, or its last bytes ([`TAIL_LEN`] of them are enough); if it contains NUL, it is not text. A first line
/// that is not complete counts as one.
#[must_use]
pub fn ends_in_marker(tail: &[u8]) -> bool {
    let written = tail.trim_ascii_end();
    let start = memrchr(b'\n', written).and_then(|at| at.checked_add(1)).unwrap_or(0);
    let Some(line) = tail.get(start..) else { return false };
    let is_marker = Leader::ALL.iter().any(|leader| {
        line.strip_prefix(leader.as_str().as_bytes())
            .and_then(|rest| rest.strip_prefix(b" "))
            .and_then(|rest| rest.strip_prefix(END.as_bytes()))
            .is_some_and(|id| id.starts_with(b" "))
    });
    is_marker && memchr(0, tail).is_none()
}

/// A valid text bundle.
///
/// Each entry lies between two marker lines:
///
/// ```text
/// (empty line)
/// // __CLANG_OFFLOAD_BUNDLE____START__ host-x86_64-unknown-linux-gnu-
/// (content, as it is)(newline)
/// // __CLANG_OFFLOAD_BUNDLE____END__ host-x86_64-unknown-linux-gnu-
/// ```
///
/// The newline before the end marker is not part of the content. Text outside of entries is ignored, as in
/// clang-offload-bundler 22. Unlike there the first marker may be in the first line of the file, the end marker may
/// follow its start marker directly (nothing lies between), lines may end in CR LF, and a bundle is refused when
/// markers do not pair up.
///
/// Parsing takes time linear in the length of the data, and memory for each entry.
pub struct TextBundle<'data> {
    leader: Leader,
    entries: Vec<Entry<'data>>,
}

impl<'data> TextBundle<'data> {
    /// Reads a text bundle with whatever comment leader its first marker has.
    ///
    /// # Errors
    ///
    /// [`NotABundle`](crate::ErrorKind::NotABundle) when there is none, otherwise as [`parse_with`](Self::parse_with).
    pub fn parse(data: &'data [u8]) -> Result<Self, Error> {
        let leader = markers(data).next().ok_or_else(no_markers)?.leader;
        Self::parse_with(data, leader)
    }

    /// Reads a text bundle with this comment leader; comments with other leaders are ignored.
    ///
    /// # Errors
    ///
    /// [`NotABundle`](crate::ErrorKind::NotABundle) without any marker, [`OtherForm`](crate::ErrorKind::OtherForm)
    /// when there are only markers with other leaders, [`Truncated`](crate::ErrorKind::Truncated) without the last
    /// end marker, [`Id`](crate::ErrorKind::Id), and [`Malformed`](crate::ErrorKind::Malformed) where start and end
    /// do not match.
    pub fn parse_with(data: &'data [u8], leader: Leader) -> Result<Self, Error> {
        let mut entries = Vec::new();
        let mut open: Option<Open<'data>> = None;
        let mut other = None;
        for marker in markers(data) {
            if marker.leader != leader {
                other = other.or(Some(marker));
                continue;
            }
            let line = Line::read(&marker);
            match (open.take(), marker.is_start) {
                (None, true) => {
                    open = Some(Open::new(&marker, &line, entries.len() as u64)?);
                }
                (None, false) => {
                    let at = marker.start;
                    let message =
                        format!("text bundle has an end marker at {at:#x} without a start marker");
                    return Err(Error::at(ErrorKind::Malformed, at as u64, message));
                }
                // Content like any other.
                (Some(entry), true) => open = Some(entry),
                (Some(entry), false) => {
                    entries.push(entry.close(data, &marker, &line, entries.len())?);
                }
            }
        }
        if let Some(entry) = open {
            let (entry, offset) = (entries.len() as u64, entry.marker as u64);
            return Err(truncated(entry, offset, "no end marker"));
        }
        match other {
            _ if !entries.is_empty() => Ok(Self { leader, entries }),
            None => Err(no_markers()),
            Some(marker) => {
                let message = format!(
                    "text bundle has the comment leader \"{}\" at {:#x}, expected \"{}\"",
                    marker.leader.as_str(),
                    marker.start,
                    leader.as_str()
                );
                Err(Error::at(ErrorKind::OtherForm, marker.start as u64, message))
            }
        }
    }

    /// Returns the comment leader of the markers.
    #[must_use]
    pub fn leader(&self) -> Leader {
        self.leader
    }

    /// Returns the entries in the order of the file. There is at least one; IDs may be there more than
    /// once.
    pub fn entries(
        &self,
    ) -> impl ExactSizeIterator<Item = Entry<'data>> + DoubleEndedIterator + Clone {
        self.entries.iter().copied()
    }
}

impl fmt::Debug for TextBundle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextBundle")
            .field("leader", &self.leader)
            .field("entries", &self.entries)
            .finish()
    }
}

/// One code object of a text bundle.
#[derive(Clone, Copy)]
pub struct Entry<'data> {
    index: usize,
    id: &'data [u8],
    payload: &'data [u8],
    offset: u64,
}

impl<'data> Entry<'data> {
    /// Returns the index of the entry, from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the bundle entry ID as written, without the end of its line. Never empty.
    #[must_use]
    pub fn id(&self) -> &'data [u8] {
        self.id
    }

    /// Returns the bundle entry ID as text.
    ///
    /// # Errors
    ///
    /// [`Id`](crate::ErrorKind::Id).
    pub fn id_str(&self) -> Result<&'data str, Error> {
        core::str::from_utf8(self.id).map_err(|error| Error::id_not_utf8(self.index, &error))
    }

    /// Returns the offset of the payload, in bytes from the start of the data.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the length of the payload in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.payload.len() as u64
    }

    /// Returns the code object, source text or whatever lies between the markers.
    #[must_use]
    pub fn payload(&self) -> &'data [u8] {
        self.payload
    }
}

impl fmt::Debug for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("index", &self.index)
            .field("id", &format_args!("\"{}\"", self.id.escape_ascii()))
            .field("offset", &self.offset)
            .field("size", &self.payload.len())
            .finish()
    }
}

/// A line that is a marker with any leader.
#[derive(Clone, Copy)]
struct Marker<'data> {
    leader: Leader,
    is_start: bool,
    /// The start of the line.
    start: usize,
    /// Its ID, and what follows.
    rest: &'data [u8],
    /// The start of the ID.
    id_start: usize,
}

/// Returns all lines that are markers, in order.
fn markers(data: &[u8]) -> impl Iterator<Item = Marker<'_>> {
    memmem::find_iter(data, COMMON).filter_map(|hit| {
        let (before, after) = data.split_at_checked(hit)?;
        let leader = Leader::ALL.into_iter().find(|leader| {
            before
                .strip_suffix(leader.as_str().as_bytes())
                .is_some_and(|line| line.last().is_none_or(|&byte| byte == b'\n'))
        })?;
        let marker = after.get(1..)?;
        let start = marker.strip_prefix(START.as_bytes());
        let rest = start.or_else(|| marker.strip_prefix(END.as_bytes()))?.strip_prefix(b" ")?;
        Some(Marker {
            leader,
            is_start: start.is_some(),
            start: hit.checked_sub(leader.as_str().len())?,
            rest,
            id_start: data.len() - rest.len(),
        })
    })
}

/// The rest of a marker line.
struct Line<'data> {
    id: &'data [u8],
    /// The start of the next line, if there is one.
    next: Option<usize>,
    /// The line ends in CR LF.
    carriage_return: bool,
}

impl<'data> Line<'data> {
    fn read(marker: &Marker<'data>) -> Self {
        let rest = marker.rest;
        let newline = memchr(b'\n', rest);
        let line = newline.and_then(|at| rest.get(..at)).unwrap_or(rest);
        let id = line.strip_suffix(b"\r");
        Self {
            id: id.unwrap_or(line),
            next: newline.map(|at| marker.id_start + at + 1),
            carriage_return: id.is_some(),
        }
    }
}

/// An entry whose end marker has not been met.
struct Open<'data> {
    id: &'data [u8],
    marker: usize,
    content: usize,
    carriage_return: bool,
}

impl<'data> Open<'data> {
    fn new(marker: &Marker<'_>, line: &Line<'data>, entry: u64) -> Result<Self, Error> {
        let offset = marker.start as u64;
        if line.id.is_empty() {
            return Err(Error::empty_id(entry, offset));
        }
        let no_newline = || truncated(entry, offset, "a start marker without newline");
        Ok(Self {
            id: line.id,
            marker: marker.start,
            content: line.next.ok_or_else(no_newline)?,
            carriage_return: line.carriage_return,
        })
    }

    fn close(
        &self,
        data: &'data [u8],
        end: &Marker<'_>,
        line: &Line<'data>,
        index: usize,
    ) -> Result<Entry<'data>, Error> {
        if line.id != self.id {
            let offset = end.start as u64;
            let [start, end] = [self.id, line.id].map(String::from_utf8_lossy);
            let message = format!(
                "text bundle entry {index} starts with the ID {start:?}, but ends at {offset:#x} with the ID {end:?}"
            );
            return Err(Error::in_entry(ErrorKind::Malformed, index as u64, offset, message));
        }
        let content = data.get(self.content..end.start).ok_or_else(|| {
            let message = internal!("an end marker before its content").into();
            Error::in_entry(ErrorKind::Malformed, index as u64, end.start as u64, message)
        })?;
        // Without a newline the end marker follows the start marker directly.
        let mut content = content.strip_suffix(b"\n").unwrap_or(content);
        // In a file with CR LF, the newline before the end marker is CR LF too.
        if self.carriage_return {
            content = content.strip_suffix(b"\r").unwrap_or(content);
        }
        Ok(Entry { index, id: self.id, payload: content, offset: self.content as u64 })
    }
}

#[cold]
fn no_markers() -> Error {
    let message = format!("text bundle has no line \"<comment> {START}\"");
    Error::new(ErrorKind::NotABundle, message)
}

/// Returns the error of an entry that may go on after the end of the text.
#[cold]
fn truncated(entry: u64, offset: u64, what: &str) -> Error {
    let message = format!("text bundle entry {entry} at {offset:#x} has {what}");
    Error::in_entry(ErrorKind::Truncated, entry, offset, message)
}

/// Writes a text bundle of entries with the given IDs and contents, as clang-offload-bundler 22
/// does: byte for byte the same.
///
/// # Errors
///
/// [`MarkerInPayload`](crate::ErrorKind::MarkerInPayload) when a content has a line that is a marker with this leader, since
/// it could not be read back, [`Id`](crate::ErrorKind::Id) for an empty one or a line break in one,
/// [`Output`](crate::ErrorKind::Output).
pub fn to_vec(leader: Leader, entries: &[(&str, &[u8])]) -> Result<Vec<u8>, Error> {
    let size = check(leader, entries)?;
    let mut bytes = Vec::new();
    match usize::try_from(size).map(|size| bytes.try_reserve_exact(size)) {
        Ok(Ok(())) => {}
        _ => return Err(byte_parts::Error::OutOfMemory { size }.into()),
    }
    for (id, content) in entries {
        let [start, end] = frame(leader, id);
        start.iter().for_each(|part| bytes.extend_from_slice(part.as_bytes()));
        bytes.extend_from_slice(content);
        end.iter().for_each(|part| bytes.extend_from_slice(part.as_bytes()));
    }
    Ok(bytes)
}

/// Writes the bundle as [`to_vec`] does, and flushes the writer. Everything is checked before the first byte is
/// written.
///
/// # Errors
///
/// Errors of writing, and [`std::io::ErrorKind::InvalidInput`] with the error of [`to_vec`] inside.
#[cfg(feature = "std")]
pub fn write_to(
    mut writer: impl std::io::Write,
    leader: Leader,
    entries: &[(&str, &[u8])],
) -> std::io::Result<()> {
    check(leader, entries)
        .map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidInput, error))?;
    for (id, content) in entries {
        let [start, end] = frame(leader, id);
        start.iter().try_for_each(|part| writer.write_all(part.as_bytes()))?;
        writer.write_all(content)?;
        end.iter().try_for_each(|part| writer.write_all(part.as_bytes()))?;
    }
    writer.flush()
}

/// Returns the text before and the text after a content, in parts.
fn frame(leader: Leader, id: &str) -> [[&str; 7]; 2] {
    [START, END].map(|marker| ["\n", leader.as_str(), " ", marker, " ", id, "\n"])
}

/// Returns whether all entries can be read back; returns the length of the whole bundle.
fn check(leader: Leader, entries: &[(&str, &[u8])]) -> Result<u64, Error> {
    let mut size = 0_u64;
    for (entry, (id, content)) in (0_u64..).zip(entries) {
        if id.is_empty() {
            // The marker follows an empty line.
            return Err(Error::empty_id(entry, size + 1));
        }
        if let Some(at) = id.bytes().position(|byte| matches!(byte, b'\r' | b'\n')) {
            return Err(Error::line_break(entry, at));
        }
        if let Some(marker) = markers(content).find(|marker| marker.leader == leader) {
            let message = format!(
                "text bundle entry {entry} has a marker line in its content at {:#x}",
                marker.start
            );
            return Err(Error::of_entry(ErrorKind::MarkerInPayload, entry, message));
        }
        let parts = frame(leader, id).into_iter().flatten().map(str::len);
        // Lengths in memory: 64 bits hold their sum.
        size += parts.chain([content.len()]).map(|len| len as u64).sum::<u64>();
    }
    Ok(size)
}
