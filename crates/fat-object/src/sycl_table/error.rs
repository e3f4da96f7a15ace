//! Errors of reading tables.

use std::fmt;

/// An error in the tables of SYCL images, with its place.
///
/// The text says what is wrong, where, and what was expected; [`kind`](Self::kind) and [`offset`](Self::offset) are for
/// programs. Offsets count from the start of the host file.
#[derive(Debug)]
pub struct Error(Problem);

/// Kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Addresses of 32 bits, and big-endian ones, are not read.
    Unsupported,
    /// A table, a descriptor or what it refers to is malformed, or lies outside the file.
    Malformed,
    /// Records, names or images overlap, so that they come to more than the file.
    Limit,
    /// The section `.tgtimg` lists images that no table describes.
    Undescribed,
}

impl Error {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self.0 {
            Problem::Host { .. } => ErrorKind::Unsupported,
            Problem::Array { .. }
            | Problem::Descriptor { .. }
            | Problem::Version { .. }
            | Problem::Range { .. }
            | Problem::Text { .. } => ErrorKind::Malformed,
            Problem::Records { .. } | Problem::Overlap { .. } => ErrorKind::Limit,
            Problem::Undescribed { .. } => ErrorKind::Undescribed,
        }
    }

    /// Returns the place of the table or descriptor at fault, in bytes from the start of the host file.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        match self.0 {
            Problem::Array { at, .. }
            | Problem::Descriptor { at, .. }
            | Problem::Version { at, .. }
            | Problem::Range { at, .. }
            | Problem::Text { at, .. } => Some(at),
            _ => None,
        }
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
    Host { found: &'static str },
    Array { at: u64, count: u16, address: u64 },
    Descriptor { at: u64, version: u16, kind: u8, found_version: u16, found_kind: u8 },
    Version { at: u64, version: u16 },
    Range { at: u64, what: &'static str, start: u64, end: u64 },
    Text { at: u64, what: &'static str, address: u64 },
    Records { limit: u64 },
    Overlap { limit: u64 },
    Undescribed { count: usize, address: u64 },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Problem::Host { found } => write!(
                f,
                "tables of SYCL images are not read: expected a 64-bit little-endian ELF or PE file, found {found}"
            ),
            Problem::Array { at, count, address } => write!(
                f,
                "table of SYCL images at {at:#x}: expected {count} descriptors at address {address:#x}, which the file does not hold"
            ),
            Problem::Descriptor { at, version, kind, found_version, found_kind } => write!(
                f,
                "SYCL image descriptor at {at:#x}: expected version {version} and kind {kind}, found version {found_version} and kind {found_kind}"
            ),
            Problem::Version { at, version } => write!(
                f,
                "SYCL image descriptor at {at:#x}: expected version 1, 2 or 3, found {version}"
            ),
            Problem::Range { at, what, start, end } => write!(
                f,
                "SYCL image descriptor at {at:#x}: {what} at addresses {start:#x}..{end:#x}, which the file does not hold"
            ),
            Problem::Text { at, what, address } => write!(
                f,
                "SYCL image descriptor at {at:#x}: {what} at address {address:#x} is not a string in the file"
            ),
            Problem::Records { limit } => write!(
                f,
                "tables of SYCL images overlap: their records exceed {limit} bytes in total"
            ),
            Problem::Overlap { limit } => {
                write!(f, "SYCL images overlap: they exceed the {limit} bytes of the file in total")
            }
            Problem::Undescribed { count, address } => write!(
                f,
                "section .tgtimg lists {count} SYCL images that no table describes, the first at address {address:#x}"
            ),
        }
    }
}

impl std::error::Error for Error {}
