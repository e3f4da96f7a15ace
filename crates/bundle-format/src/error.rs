//! Errors of reading and writing bundles.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;
use core::str::Utf8Error;

use crate::leader::{Leader, START};
use crate::to_u64;
use crate::wire::HEADER_LEN;

/// An error in a bundle, with its place.
///
/// The text says what is wrong, where, and what was expected; [`kind`](Self::kind) and the other functions are for
/// programs. Offsets in the text are in bytes from the start of the bundle (of the text, for a text bundle), unless it says
/// otherwise. Entries are numbered from 0.
#[derive(Debug)]
pub struct Error(Problem);

/// Kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The data is something else than a bundle: it does not start with [`MAGIC`](crate::MAGIC), nor, if there
    /// are fewer bytes, with as much of it. Text has no line that is a marker of a text bundle.
    NotABundle,
    /// The prefix in memory ends before the descriptors do. Not a fault of the bundle: read at least as many bytes as
    /// [`Error::needed`] says and parse again.
    Incomplete,
    /// The data ends before the bundle does, so that more of it may be all that is missing. Every truncation of a binary
    /// bundle gives this kind; a damaged count, offset or size looks the same. Text that ends inside a marker line may well
    /// be a bundle, or have another fault.
    Truncated,
    /// The descriptors, or the markers of a text bundle, contradict each other.
    Malformed,
    /// Neither zeros nor another bundle follow a bundle, or zeros.
    TrailingData,
    /// A text bundle is of another form than asked for: it has another comment leader, or start markers where only
    /// end markers belong.
    OtherForm,
    /// An entry ID is empty, not UTF-8, too long, has too few fields, a control character or a line break.
    Id,
    /// The content of an entry to be written to a text bundle has a line that is a marker.
    MarkerInPayload,
    /// The bundle cannot be laid out: its alignment is 0, or it would be longer than 64 bits can say.
    Layout,
    /// The contents to be written are not as many as the entries, or not as long as the layout says, or the bundle does
    /// not fit into memory.
    Output,
}

impl Error {
    /// Returns the kind of the error.
    ///
    /// ```
    /// use bundle_format::{Bundle, ErrorKind};
    ///
    /// let error = Bundle::parse(b"__CLANG_OFFLOAD_BUNDLE__").unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Truncated);
    /// assert_eq!(error.to_string(), "bundle header needs 32 bytes, but only 24 are there");
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match &self.0 {
            Problem::Incomplete { .. } => ErrorKind::Incomplete,
            Problem::BadMagic | Problem::NoMarkers => ErrorKind::NotABundle,
            Problem::TruncatedHeader { .. }
            | Problem::TooManyEntries { .. }
            | Problem::TruncatedDescriptor { .. }
            | Problem::IdBeyondEnd { .. }
            | Problem::EntryBeyondEnd { .. }
            | Problem::StartWithoutNewline { .. }
            | Problem::MissingEnd { .. } => ErrorKind::Truncated,
            Problem::EntryInsideDescriptors { .. }
            | Problem::EntriesOverlap { .. }
            | Problem::EndMismatch { .. }
            | Problem::EndWithoutStart { .. } => ErrorKind::Malformed,
            Problem::InBundle { error, .. } => error.kind(),
            Problem::TrailingData { .. } => ErrorKind::TrailingData,
            Problem::WrongLeader { .. } => ErrorKind::OtherForm,
            Problem::EmptyId { .. }
            | Problem::IdNotUtf8 { .. }
            | Problem::IdFields { .. }
            | Problem::IdControl { .. }
            | Problem::IdTooLong { .. }
            | Problem::LineBreakInId { .. } => ErrorKind::Id,
            Problem::MarkerInPayload { .. } => ErrorKind::MarkerInPayload,
            Problem::ZeroAlignment | Problem::OffsetOverflow { .. } => ErrorKind::Layout,
            Problem::Output(_) => ErrorKind::Output,
        }
    }

    /// Returns the place of the fault, in bytes from the start of the data that was read, or of the bundle to be written.
    /// `None` if the fault has no single place there, and of faults inside an ID or a content that was given, whose text says
    /// where.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        match &self.0 {
            Problem::BadMagic
            | Problem::TruncatedHeader { .. }
            | Problem::TooManyEntries { .. } => Some(0),
            Problem::TruncatedDescriptor { offset, .. }
            | Problem::EmptyId { offset, .. }
            | Problem::IdBeyondEnd { offset, .. }
            | Problem::EntryBeyondEnd { offset, .. }
            | Problem::EntryInsideDescriptors { offset, .. }
            | Problem::EntriesOverlap { offset, .. }
            | Problem::TrailingData { offset }
            | Problem::WrongLeader { offset, .. }
            | Problem::StartWithoutNewline { offset, .. }
            | Problem::MissingEnd { offset, .. }
            | Problem::EndMismatch { offset, .. }
            | Problem::EndWithoutStart { offset } => Some(*offset),
            Problem::InBundle { offset, error } => {
                Some(offset.saturating_add(error.offset().unwrap_or_default()))
            }
            Problem::Incomplete { .. }
            | Problem::IdNotUtf8 { .. }
            | Problem::IdFields { .. }
            | Problem::IdControl { .. }
            | Problem::IdTooLong { .. }
            | Problem::NoMarkers
            | Problem::ZeroAlignment
            | Problem::OffsetOverflow { .. }
            | Problem::Output(_)
            | Problem::MarkerInPayload { .. }
            | Problem::LineBreakInId { .. } => None,
        }
    }

    /// Returns the entry at fault, from 0; of two that overlap the one that starts later.
    #[must_use]
    pub fn entry(&self) -> Option<u64> {
        match &self.0 {
            Problem::TruncatedDescriptor { entry, .. }
            | Problem::EmptyId { entry, .. }
            | Problem::IdBeyondEnd { entry, .. }
            | Problem::EntryBeyondEnd { entry, .. }
            | Problem::EntryInsideDescriptors { entry, .. }
            | Problem::EntriesOverlap { second: entry, .. }
            | Problem::IdNotUtf8 { entry, .. }
            | Problem::StartWithoutNewline { entry, .. }
            | Problem::MissingEnd { entry, .. }
            | Problem::EndMismatch { entry, .. }
            | Problem::OffsetOverflow { entry }
            | Problem::MarkerInPayload { entry, .. }
            | Problem::LineBreakInId { entry, .. } => Some(*entry),
            Problem::Output(byte_parts::Error::InputSize { input, .. }) => Some(to_u64(*input)),
            Problem::InBundle { error, .. } => error.entry(),
            _ => None,
        }
    }

    /// Returns how many bytes from the start of the bundle to have in memory, when that is all that is missing.
    #[must_use]
    pub fn needed(&self) -> Option<u64> {
        match self.0 {
            Problem::Incomplete { needed } => Some(needed),
            _ => None,
        }
    }

    /// Returns the error of a bundle that starts at an offset of the data, of which those before could be read.
    pub(crate) fn in_bundle(self, offset: u64) -> Self {
        match self.0 {
            Problem::BadMagic if offset > 0 => Problem::TrailingData { offset }.into(),
            Problem::BadMagic => self,
            _ => Problem::InBundle { offset, error: Box::new(self) }.into(),
        }
    }

    pub(crate) fn id_not_utf8(index: usize, error: &Utf8Error) -> Self {
        Problem::IdNotUtf8 { entry: to_u64(index), offset: to_u64(error.valid_up_to()) }.into()
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Error(problem)
    }
}

/// One fault, with all that its text says.
#[derive(Debug)]
pub(crate) enum Problem {
    Incomplete {
        needed: u64,
    },
    BadMagic,
    TruncatedHeader {
        available: u64,
    },
    TooManyEntries {
        count: u64,
        available: u64,
    },
    TruncatedDescriptor {
        entry: u64,
        offset: u64,
        available: u64,
    },
    /// `offset` is that of the descriptor, or of the marker line.
    EmptyId {
        entry: u64,
        offset: u64,
    },
    IdBeyondEnd {
        entry: u64,
        offset: u64,
        len: u64,
        available: u64,
    },
    EntryBeyondEnd {
        entry: u64,
        offset: u64,
        size: u64,
        available: u64,
    },
    EntryInsideDescriptors {
        entry: u64,
        offset: u64,
        header_len: u64,
    },
    /// `first` starts first, `second` at `offset`.
    EntriesOverlap {
        first: u64,
        second: u64,
        offset: u64,
    },
    /// `offset` counts from the start of the data, those of `error` from the start of the bundle.
    InBundle {
        offset: u64,
        error: Box<Error>,
    },
    TrailingData {
        offset: u64,
    },
    /// `offset` counts from the start of the ID.
    IdNotUtf8 {
        entry: u64,
        offset: u64,
    },
    IdFields {
        id: String,
        fields: usize,
    },
    IdControl {
        id: String,
        offset: usize,
    },
    IdTooLong {
        len: usize,
        max: usize,
    },
    NoMarkers,
    WrongLeader {
        offset: u64,
        found: Leader,
        expected: Leader,
    },
    StartWithoutNewline {
        entry: u64,
        offset: u64,
    },
    MissingEnd {
        entry: u64,
        offset: u64,
    },
    EndMismatch {
        entry: u64,
        offset: u64,
        start: String,
        end: String,
    },
    EndWithoutStart {
        offset: u64,
    },
    ZeroAlignment,
    OffsetOverflow {
        entry: u64,
    },
    Output(byte_parts::Error),
    /// `offset` counts from the start of the content.
    MarkerInPayload {
        entry: u64,
        offset: u64,
    },
    /// `offset` counts from the start of the ID.
    LineBreakInId {
        entry: u64,
        offset: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl core::error::Error for Error {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Incomplete { needed } => {
                write!(f, "bundle needs its first {needed:#x} bytes to be in memory")
            }
            Self::BadMagic => {
                write!(f, "bundle does not start with the magic \"{}\"", crate::MAGIC_TEXT)
            }
            Self::TruncatedHeader { available } => {
                write!(f, "bundle header needs {HEADER_LEN} bytes, but only {available} are there")
            }
            Self::TooManyEntries { count, available } => write!(
                f,
                "bundle has {count} entries, too many for the {available:#x} bytes of the container"
            ),
            Self::TruncatedDescriptor { entry, offset, available } => write!(
                f,
                "bundle entry {entry} has its descriptor at {offset:#x}, beyond the end of the container at {available:#x}"
            ),
            Self::EmptyId { entry, offset } => {
                write!(f, "bundle entry {entry} at {offset:#x} has an empty ID")
            }
            Self::IdBeyondEnd { entry, offset, len, available } => write!(
                f,
                "bundle entry {entry} has an ID of {len:#x} bytes at {offset:#x}, beyond the end of the container at {available:#x}"
            ),
            Self::EntryBeyondEnd { entry, offset, size, available } => write!(
                f,
                "bundle entry {entry} lies at {offset:#x}..{:#x}, beyond the end of the container at {available:#x}",
                u128::from(*offset) + u128::from(*size)
            ),
            Self::EntryInsideDescriptors { entry, offset, header_len } => write!(
                f,
                "bundle entry {entry} lies at {offset:#x}, inside the descriptors, which end at {header_len:#x}"
            ),
            Self::EntriesOverlap { first, second, offset } => {
                write!(f, "bundle entries {first} and {second} overlap at {offset:#x}")
            }
            Self::InBundle { offset, error } => write!(f, "at offset {offset:#x}: {error}"),
            Self::TrailingData { offset } => {
                write!(f, "data at offset {offset:#x} is neither a bundle nor zero padding")
            }
            Self::IdNotUtf8 { entry, offset } => write!(
                f,
                "bundle entry {entry} has an ID that is not utf-8 from its byte {offset} on"
            ),
            Self::IdFields { id, fields } => write!(
                f,
                "bundle entry ID {id:?} has {fields} fields between its \"-\", expected \"<kind>-<arch>-<vendor>-<os>-<environment>\" with or without \"-<target id>\""
            ),
            Self::IdControl { id, offset } => {
                write!(f, "bundle entry ID {id:?} has a control character at its byte {offset}")
            }
            Self::IdTooLong { len, max } => {
                write!(f, "bundle entry ID has {len} bytes, expected {max} at most")
            }
            Self::NoMarkers => {
                write!(f, "text bundle has no line \"<comment> {START}\"")
            }
            Self::WrongLeader { offset, found, expected } => write!(
                f,
                "text bundle has the comment leader \"{}\" at {offset:#x}, expected \"{}\"",
                found.as_str(),
                expected.as_str()
            ),
            Self::StartWithoutNewline { entry, offset } => write!(
                f,
                "text bundle entry {entry} at {offset:#x} has a start marker without newline"
            ),
            Self::MissingEnd { entry, offset } => {
                write!(f, "text bundle entry {entry} at {offset:#x} has no end marker")
            }
            Self::EndMismatch { entry, offset, start, end } => write!(
                f,
                "text bundle entry {entry} starts with the ID {start:?}, but ends at {offset:#x} with the ID {end:?}"
            ),
            Self::EndWithoutStart { offset } => {
                write!(f, "text bundle has an end marker at {offset:#x} without a start marker")
            }
            Self::ZeroAlignment => f.write_str("bundle alignment is 0, expected at least 1"),
            Self::OffsetOverflow { entry } => {
                write!(f, "bundle entry {entry} would end beyond the largest offset")
            }
            Self::Output(error) => write!(f, "bundle: {error}"),
            Self::MarkerInPayload { entry, offset } => write!(
                f,
                "text bundle entry {entry} has a marker line in its content at {offset:#x}"
            ),
            Self::LineBreakInId { entry, offset } => {
                write!(f, "text bundle entry {entry} has an ID with a line break at byte {offset}")
            }
        }
    }
}

/// The inputs are contents of entries.
impl From<byte_parts::Error> for Error {
    fn from(error: byte_parts::Error) -> Self {
        Error(Problem::Output(error))
    }
}

/// [`InvalidInput`](std::io::ErrorKind::InvalidInput) if it is about what was to be written,
/// [`OutOfMemory`](std::io::ErrorKind::OutOfMemory), and else [`InvalidData`](std::io::ErrorKind::InvalidData). The error
/// itself is inside.
#[cfg(feature = "std")]
impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        use std::io::ErrorKind;

        let kind = match error.0 {
            Problem::ZeroAlignment
            | Problem::OffsetOverflow { .. }
            | Problem::MarkerInPayload { .. }
            | Problem::LineBreakInId { .. } => ErrorKind::InvalidInput,
            Problem::Output(byte_parts::Error::OutOfMemory { .. }) => ErrorKind::OutOfMemory,
            Problem::Output(_) => ErrorKind::InvalidInput,
            _ => ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}
