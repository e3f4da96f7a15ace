//! Errors of reading tables.

/// An error in the tables of SYCL images, with its place.
///
/// The text says what is wrong, where, and what was expected; [`kind`](Self::kind) and [`offset`](Self::offset) are for
/// programs. Offsets count from the start of the host file.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.message)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    offset: Option<u64>,
    message: String,
}

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
        self.0.kind
    }

    /// Returns the place of the table or descriptor at fault, in bytes from the start of the host file.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    #[cold]
    pub(crate) fn new(kind: ErrorKind, message: String) -> Self {
        Error(Box::new(Inner { kind, offset: None, message }))
    }

    /// Creates the error of a malformed table or descriptor at this place.
    #[cold]
    pub(crate) fn malformed(offset: u64, what: &str, message: &str) -> Self {
        let message = format!("{what} at {offset:#x}: {message}");
        Error(Box::new(Inner { kind: ErrorKind::Malformed, offset: Some(offset), message }))
    }
}
