//! Errors of reading a container.

use std::boxed::Box;
use std::format;
use std::string::String;

/// An error in an HCF container, with its place.
///
/// The text says what is wrong, where, and what was expected; [`kind`](Self::kind) and [`offset`](Self::offset) are for
/// programs.
#[derive(Debug, thiserror::Error)]
#[error("malformed HCF container: {}", .0.message)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    offset: u64,
    message: String,
}

/// Kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No marker ends the text.
    NoMarker,
    /// A line of the text is malformed, or a node lacks a key or its end.
    Malformed,
    /// An image lies beyond the end, or overlaps another. Other images can be read.
    Image,
}

impl Error {
    /// Returns the kind of the error.
    ///
    /// ```
    /// let error = fat_object::hcf::text(b"object-id=1\n", 12).unwrap_err();
    /// assert_eq!(error.kind(), fat_object::hcf::ErrorKind::NoMarker);
    /// assert_eq!(error.offset(), 12);
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the place of the fault, in bytes from the start of the container: of the line, the node or the image; without
    /// a marker the number of bytes that were searched.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.0.offset
    }

    #[cold]
    pub(crate) fn new(kind: ErrorKind, offset: u64, message: String) -> Self {
        Error(Box::new(Inner { kind, offset, message }))
    }

    /// Creates the error of a line, with a printable form of what is there.
    #[cold]
    pub(crate) fn of_line(offset: u64, expected: &str, found: &str) -> Self {
        let message = format!("byte {offset:#x}: expected {expected}, found {found}");
        Self::new(ErrorKind::Malformed, offset, message)
    }
}
