//! Errors of kernel packs.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

use codecs::msgpack::TooLong;

/// An error in a kernel pack, or of making one.
///
/// The text says what is wrong, where, what was expected and what was found; [`kind`](Self::kind) and
/// [`offset`](Self::offset) are for programs.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{} (at {:#x})", .0.message, .0.offset)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    kind: ErrorKind,
    offset: u64,
    message: String,
}

/// Kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The bytes are not a kernel pack.
    Magic,
    /// The version, or the scheme of compression, is not known.
    Unsupported,
    /// The file ends before something does.
    Truncated,
    /// A part of the file contradicts the format, or another part.
    Malformed,
    /// A loader would not find a code object, though the pack can be read.
    Unreachable,
    /// The table has more bytes or more targets than are read, or a text to be written has more than 4 GiB.
    Limit,
    /// A code object cannot be decompressed, or has another size than the table says.
    Codec,
}

impl Error {
    #[cold]
    pub(crate) fn new(kind: ErrorKind, offset: u64, message: impl Into<String>) -> Self {
        Error(Box::new(Inner { kind, offset, message: message.into() }))
    }

    #[cold]
    pub(crate) fn malformed(offset: u64, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Malformed, offset, message)
    }

    /// Returns the text without the place.
    #[cfg(feature = "std")]
    pub(crate) fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the kind of the error.
    ///
    /// ```
    /// let error = kpack::Kpack::parse(b"KPAK\x02\0\0\0\0\0\0\0\0\0\0\0").unwrap_err();
    /// assert_eq!(error.kind(), kpack::ErrorKind::Unsupported);
    /// assert_eq!(error.to_string(), "kernel pack: expected version 1, found 2 (at 0x4)");
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the place of the fault, in bytes from the start of the pack, or of the marker.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.0.offset
    }
}

impl From<TooLong> for Error {
    fn from(error: TooLong) -> Self {
        Self::new(ErrorKind::Limit, 0, format!("kernel pack: {error}"))
    }
}
