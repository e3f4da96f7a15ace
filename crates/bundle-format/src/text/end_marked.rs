//! The text form of the first proposal: one marker after each code object.
//!
//! The RFC that proposed clang-offload-bundler gave text files this form:
//!
//! ```text
//! (content of the first entry, as it is)
//! // __CLANG_OFFLOAD_BUNDLE____END__ (ID of the first entry, any text)
//! (content of the second entry, as it is)
//! // __CLANG_OFFLOAD_BUNDLE____END__ (ID of the second entry)
//! ```
//!
//! Byte by byte, for the content `nop` with a newline and the ID `dev`:
//!
//! ```text
//!  0  6e 6f 70 0a                      content "nop\n": up to the start of the marker line
//!  4  2f 2f 20                         comment leader and a space
//!  7  5f 5f 43 ... 5f 5f 20            "__CLANG_OFFLOAD_BUNDLE____END__" and a space
//! 39  64 65 76                         the ID, up to the end of the line
//! 42  0a                               newline, which the last marker need not have
//! ```
//!
//! The RFC spells the marker with the name that it gives to the magic, so `OFFLOAD_BUNDLER_MAGIC_STR__END__` is
//! read, too. Today's form also has a marker before each entry ([`TextBundle`]); a text with
//! such a marker is not of this form. No release of LLVM reads this form, and nothing here writes it.

use alloc::vec::Vec;

use memchr::{memchr, memmem, memrchr};

use super::{END, Entry, Leader, Line, TextBundle, markers};
use crate::error::{Error, Problem};
use crate::to_u64;

/// The marker as the RFC spells it, where it stands for the magic by a name.
const END_BY_NAME: &str = "OFFLOAD_BUNDLER_MAGIC_STR__END__";
/// The common end of both spellings.
const COMMON: &[u8] = b"__END__ ";

/// Number of bytes from the end of a text that [`ends_in_marker`] needs. Longer marker lines are not recognised.
pub const TAIL_LEN: usize = 4096;

/// Returns whether a text that ends in these bytes may be a bundle of the form of the first proposal: its last line
/// that is not blank is an end marker, after any of the comment leaders.
///
/// The form has nothing at its start by which to tell it, so this is for texts that are nothing else by their first
/// bytes. Today's text bundles end so, too: [`TextBundle::parse_end_marked`] returns
/// [`OtherForm`](crate::ErrorKind::OtherForm) for them. The `tail` is the whole text, or its last bytes
/// ([`TAIL_LEN`] of them are enough); if it contains NUL, it is not text. A first line that is not complete counts
/// as one.
#[must_use]
pub fn ends_in_marker(tail: &[u8]) -> bool {
    let written = tail.trim_ascii_end();
    let start = memrchr(b'\n', written).and_then(|at| at.checked_add(1)).unwrap_or(0);
    let Some(line) = tail.get(start..) else { return false };
    let is_marker = Leader::ALL.iter().any(|leader| {
        line.strip_prefix(leader.as_str().as_bytes())
            .and_then(|rest| rest.strip_prefix(b" "))
            .is_some_and(|rest| {
                let end = |marker: &str| rest.strip_prefix(marker.as_bytes());
                [END, END_BY_NAME].into_iter().filter_map(end).any(|id| id.starts_with(b" "))
            })
    });
    is_marker && memchr(0, tail).is_none()
}

impl<'data> TextBundle<'data> {
    /// Reads a bundle of the form of the first proposal of clang-offload-bundler: one marker line after each entry, see
    /// the example. The comment leader is that of the last marker: that of the others may be that of the contents.
    ///
    /// The content of an entry starts after the marker line of the previous entry and ends at its own marker line,
    /// including its last newline; IDs are any text. Lines may end in CR LF. Only blank lines follow the last marker.
    ///
    /// Parsing takes time linear in the length of the data, and memory for each entry.
    ///
    /// ```
    /// use bundle_format::text::TextBundle;
    ///
    /// # fn main() -> Result<(), bundle_format::Error> {
    /// let text = "\
    /// define void @main() { ret void }
    /// ; __CLANG_OFFLOAD_BUNDLE____END__ the host
    /// define amdgpu_kernel void @kernel() { ret void }
    /// ; __CLANG_OFFLOAD_BUNDLE____END__ my gpu
    /// ";
    /// let bundle = TextBundle::parse_end_marked(text.as_bytes())?;
    /// let ids: Vec<_> = bundle.entries().map(|entry| entry.id()).collect();
    /// assert_eq!(ids, [&b"the host"[..], b"my gpu"]);
    /// assert!(bundle.entries().all(|entry| entry.payload().ends_with(b"}\n")));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`NotABundle`](crate::ErrorKind::NotABundle) when there is none, [`OtherForm`](crate::ErrorKind::OtherForm) with a
    /// marker that starts an entry, after any leader, [`Id`](crate::ErrorKind::Id),
    /// [`Truncated`](crate::ErrorKind::Truncated).
    pub fn parse_end_marked(data: &'data [u8]) -> Result<Self, Error> {
        refuse_start(data)?;
        let leader = end_markers(data).last().ok_or(Problem::NoEndMarkers)?.leader;
        let mut entries = Vec::new();
        let mut content_start = 0;
        for marker in end_markers(data).filter(|marker| marker.leader == leader) {
            let line = Line::read(data, marker.id_start);
            if line.id.is_empty() {
                let (entry, offset) = (to_u64(entries.len()), to_u64(marker.start));
                return Err(Problem::EmptyId { entry, offset }.into());
            }
            entries.push(Entry {
                index: entries.len(),
                id: line.id,
                payload: data.get(content_start..marker.start).unwrap_or_default(),
                offset: to_u64(content_start),
            });
            content_start = line.next.unwrap_or(data.len());
        }
        let rest = data.get(content_start..).unwrap_or_default();
        if !rest.trim_ascii().is_empty() {
            let (entry, offset) = (to_u64(entries.len()), to_u64(content_start));
            return Err(Problem::PayloadWithoutEnd { entry, offset }.into());
        }
        Ok(Self { leader, entries })
    }
}

/// Refuses a text with a marker that starts an entry: it is of today's form, damaged or not.
fn refuse_start(data: &[u8]) -> Result<(), Error> {
    match markers(data).find(|marker| marker.is_start) {
        Some(marker) => Err(Problem::StartMarker { offset: to_u64(marker.start) }.into()),
        None => Ok(()),
    }
}

/// A line that is a marker of this form.
struct EndMarker {
    leader: Leader,
    /// The start of the line.
    start: usize,
    /// The start of its ID.
    id_start: usize,
}

/// Returns all lines that are end markers in either spelling, in order.
fn end_markers(data: &[u8]) -> impl Iterator<Item = EndMarker> + '_ {
    memmem::find_iter(data, COMMON).filter_map(|hit| {
        let id_start = hit.checked_add(COMMON.len())?;
        let line = data.get(..id_start)?.strip_suffix(b" ")?;
        let before = [END, END_BY_NAME]
            .iter()
            .find_map(|marker| line.strip_suffix(marker.as_bytes()))?
            .strip_suffix(b" ")?;
        Leader::ALL.into_iter().find_map(|leader| {
            let before = before.strip_suffix(leader.as_str().as_bytes())?;
            let at_line_start = before.last().is_none_or(|&byte| byte == b'\n');
            at_line_start.then_some(EndMarker { leader, start: before.len(), id_start })
        })
    })
}
