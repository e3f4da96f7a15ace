//! Errors of reading a container.

use core::fmt;
use std::string::String;

/// An error in an HCF container, with its place.
///
/// The text says what is wrong, where, and what was expected; [`kind`](Self::kind) and [`offset`](Self::offset) are for
/// programs.
#[derive(Debug)]
pub struct Error(Problem);

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
        match self.0 {
            Problem::NoMarker { .. } => ErrorKind::NoMarker,
            Problem::Line { .. } | Problem::Missing { .. } => ErrorKind::Malformed,
            Problem::ImageBeyondEnd { .. } | Problem::Overlap { .. } => ErrorKind::Image,
        }
    }

    /// Returns the place of the fault, in bytes from the start of the container: of the line, the node or the image; without
    /// a marker the number of bytes that were searched.
    #[must_use]
    pub fn offset(&self) -> u64 {
        match self.0 {
            Problem::NoMarker { looked_at: offset }
            | Problem::Line { offset, .. }
            | Problem::Missing { offset, .. }
            | Problem::ImageBeyondEnd { offset, .. }
            | Problem::Overlap { start: offset, .. } => offset,
        }
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Error(problem)
    }
}

/// One fault, with all that its text says. Names and lines are printable.
#[derive(Debug)]
pub(crate) enum Problem {
    NoMarker {
        looked_at: u64,
    },
    Line {
        offset: u64,
        expected: &'static str,
        found: String,
    },
    Missing {
        name: String,
        offset: u64,
        expected: &'static str,
    },
    /// `start` counts from the end of the marker.
    ImageBeyondEnd {
        name: String,
        offset: u64,
        start: u64,
        size: u64,
        available: u64,
    },
    Overlap {
        name: String,
        start: u64,
        end: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed HCF container: ")?;
        match &self.0 {
            Problem::NoMarker { looked_at } => write!(
                f,
                "expected the text to end with __hipsycl_hcf_binary_appendix, found no such marker in {looked_at} bytes"
            ),
            Problem::Line { offset, expected, found } => {
                write!(f, "byte {offset:#x}: expected {expected}, found {found}")
            }
            Problem::Missing { name, offset, expected } => {
                write!(f, "node {name} at {offset:#x}: expected {expected}, found none")
            }
            Problem::ImageBeyondEnd { name, start, size, available, .. } => write!(
                f,
                "image {name} at {start} of {size} bytes: expected its end in the {available} bytes after the text"
            ),
            Problem::Overlap { name, start, end } => {
                write!(f, "image {name} at {start:#x}..{end:#x} overlaps another image")
            }
        }
    }
}

impl core::error::Error for Error {}
