//! Errors of reading and writing bundles.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::str::Utf8Error;

/// An error in a bundle, with its place.
///
/// The text says what is wrong, where, and what was expected; [`kind`](Self::kind) and the other functions are for
/// programs. Offsets in the text are in bytes from the start of the bundle (of the text, for a text bundle), unless it says
/// otherwise. Entries are numbered from 0.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.message)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    offset: Option<u64>,
    entry: Option<u64>,
    needed: Option<u64>,
    /// The fault is in an ID to be written.
    #[cfg_attr(not(feature = "std"), allow(dead_code, reason = "for `std::io::Error`"))]
    is_new_id: bool,
    /// The fault of an output. Its text is in the message.
    output: Option<byte_parts::Error>,
    message: String,
}

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
    /// Creates an error without a place.
    #[cold]
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error(Box::new(Inner {
            kind,
            offset: None,
            entry: None,
            needed: None,
            is_new_id: false,
            output: None,
            message: message.into(),
        }))
    }

    #[cold]
    pub(crate) fn at(kind: ErrorKind, offset: u64, message: impl Into<String>) -> Self {
        let mut error = Self::new(kind, message);
        error.0.offset = Some(offset);
        error
    }

    /// Creates an error of an entry.
    #[cold]
    pub(crate) fn of_entry(kind: ErrorKind, entry: u64, message: String) -> Self {
        let mut error = Self::new(kind, message);
        error.0.entry = Some(entry);
        error
    }

    /// Creates an error of an entry, with a place.
    #[cold]
    pub(crate) fn in_entry(kind: ErrorKind, entry: u64, offset: u64, message: String) -> Self {
        let mut error = Self::of_entry(kind, entry, message);
        error.0.offset = Some(offset);
        error
    }

    #[cold]
    pub(crate) fn incomplete(needed: u64) -> Self {
        let message = format!("bundle needs its first {needed:#x} bytes to be in memory");
        let mut error = Self::new(ErrorKind::Incomplete, message);
        error.0.needed = Some(needed);
        error
    }

    /// Creates the error of an entry whose descriptor or marker line lies there.
    #[cold]
    pub(crate) fn empty_id(entry: u64, offset: u64) -> Self {
        let message = format!("bundle entry {entry} at {offset:#x} has an empty ID");
        Self::in_entry(ErrorKind::Id, entry, offset, message)
    }

    /// Creates the error of an ID to be written to a text bundle.
    #[cold]
    pub(crate) fn line_break(entry: u64, at: usize) -> Self {
        let message = format!("text bundle entry {entry} has an ID with a line break at byte {at}");
        let mut error = Self::of_entry(ErrorKind::Id, entry, message);
        error.0.is_new_id = true;
        error
    }

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
        self.0.kind
    }

    /// Returns the place of the fault, in bytes from the start of the data that was read, or of the bundle to be written.
    /// `None` if the fault has no single place there, and of faults inside an ID or a content that was given, whose text says
    /// where.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// Returns the entry at fault, from 0; of two that overlap the one that starts later.
    #[must_use]
    pub fn entry(&self) -> Option<u64> {
        match self.0.output {
            Some(byte_parts::Error::InputSize { input, .. }) => Some(input as u64),
            _ => self.0.entry,
        }
    }

    /// Returns how many bytes from the start of the bundle to have in memory, when that is all that is missing.
    #[must_use]
    pub fn needed(&self) -> Option<u64> {
        self.0.needed
    }

    /// Returns the error of a bundle that starts at an offset of the data, after bundles that could be read.
    pub(crate) fn in_bundle(mut self, offset: u64) -> Self {
        let inner = &mut *self.0;
        if inner.kind != ErrorKind::NotABundle {
            inner.message.insert_str(0, &format!("at offset {offset:#x}: "));
        } else if offset > 0 {
            inner.kind = ErrorKind::TrailingData;
            inner.message =
                format!("data at offset {offset:#x} is neither a bundle nor zero padding");
        }
        inner.offset = match inner.offset {
            Some(within) => offset.checked_add(within),
            None => Some(offset),
        };
        self
    }

    #[cold]
    pub(crate) fn id_not_utf8(index: usize, error: &Utf8Error) -> Self {
        let message = format!(
            "bundle entry {index} has an ID that is not utf-8 from its byte {} on",
            error.valid_up_to()
        );
        Self::of_entry(ErrorKind::Id, index as u64, message)
    }
}

/// The inputs are contents of entries.
impl From<byte_parts::Error> for Error {
    fn from(error: byte_parts::Error) -> Self {
        let mut new = Self::new(ErrorKind::Output, format!("bundle: {error}"));
        new.0.output = Some(error);
        new
    }
}

/// [`InvalidInput`](std::io::ErrorKind::InvalidInput) if the contents cannot be written,
/// [`OutOfMemory`](std::io::ErrorKind::OutOfMemory), and else [`InvalidData`](std::io::ErrorKind::InvalidData). The error
/// itself is inside.
#[cfg(feature = "std")]
impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        use std::io;

        let kind = match (error.0.kind, &error.0.output) {
            (_, Some(byte_parts::Error::OutOfMemory { .. })) => io::ErrorKind::OutOfMemory,
            (ErrorKind::Layout | ErrorKind::MarkerInPayload | ErrorKind::Output, _) => {
                io::ErrorKind::InvalidInput
            }
            _ if error.0.is_new_id => io::ErrorKind::InvalidInput,
            _ => io::ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}
