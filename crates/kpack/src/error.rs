//! Errors of kernel packs.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

/// An error in a kernel pack, or of making one.
///
/// The text says what is wrong, where, what was expected and what was found; [`kind`](Self::kind) and
/// [`offset`](Self::offset) are for programs.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    offset: u64,
    text: String,
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
    /// The table has more bytes or more targets than are read.
    Limit,
    /// A code object cannot be decompressed, or has another size than the table says.
    Codec,
}

impl Error {
    #[cold]
    pub(crate) fn new(kind: ErrorKind, offset: u64, text: impl Into<String>) -> Self {
        Error(Box::new(Inner { kind, offset, text: text.into() }))
    }

    #[cold]
    pub(crate) fn malformed(offset: u64, text: impl Into<String>) -> Self {
        Self::new(ErrorKind::Malformed, offset, text)
    }

    /// Returns the text without the place.
    #[cfg(all(feature = "std", any(feature = "ruzstd", feature = "zstd")))]
    pub(crate) fn text(&self) -> &str {
        &self.0.text
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

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at {:#x})", self.0.text, self.0.offset)
    }
}

impl core::error::Error for Error {}
