//! Errors and findings.

use std::fmt;
use std::io;

use crate::path::MemberPath;

/// Error of reading or writing a package.
///
/// The text says what is wrong, what was expected and what was found; [`kind`](Self::kind) and
/// [`offset`](Self::offset) are for programs.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", .0.message)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    kind: ErrorKind,
    offset: Option<u64>,
    /// The kind of the error of the input or output, whose text is in the message.
    io: Option<io::ErrorKind>,
    message: String,
}

/// Kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file is not a package of a known format.
    NotAPackage,
    /// The file ends before the package does.
    Truncated,
    /// A header, a table or a record is not what it should be.
    Malformed,
    /// The package uses a feature or a codec that this build lacks.
    Unsupported,
    /// The work would exceed a limit of the caller.
    Limit,
    /// A checksum, hash or size of contents differs from the recorded one.
    Mismatch,
    /// A compressed stream is malformed.
    Codec,
    /// The change is not possible, or the caller refused it.
    Refused,
    /// The package is signed, and a change would make the signature invalid.
    Signed,
    /// The input or the output failed.
    Io,
}

impl Error {
    #[cold]
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error(Box::new(Inner { kind, offset: None, io: None, message: message.into() }))
    }

    #[cold]
    pub(crate) fn at(kind: ErrorKind, offset: u64, message: impl fmt::Display) -> Self {
        let mut error = Self::new(kind, format!("{message} (at {offset:#x})"));
        error.0.offset = Some(offset);
        error
    }

    /// Creates an error of a visitor of its own, for a [`Visitor`](crate::Visitor) that ends a walk.
    #[must_use]
    pub fn refused(text: impl Into<String>) -> Self {
        Self::new(ErrorKind::Refused, text)
    }

    /// A state that cannot be, as [`internal!`](byte_parts::internal) tells it.
    #[cold]
    pub(crate) fn internal(text: &'static str) -> Self {
        Self::from(io::Error::other(text))
    }

    /// An error of the file itself, whatever its kind.
    #[cold]
    pub(crate) fn of_file(error: io::Error) -> Self {
        let mut made = Self::from(error);
        if made.0.io.is_some() {
            made.0.kind = ErrorKind::Io;
        }
        made
    }

    /// Says what was read.
    #[must_use]
    pub(crate) fn while_reading(mut self, what: impl fmt::Display) -> Self {
        self.0.message.insert_str(0, &format!("{what}: "));
        self
    }

    /// Takes the name of a member from the start, which is said by who reports the error.
    #[must_use]
    pub(crate) fn without_name(mut self, name: impl fmt::Display) -> Self {
        if let Some(rest) = self.0.message.strip_prefix(&format!("{name}: ")) {
            self.0.message = rest.to_owned();
        }
        self
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the place of the fault in the innermost package that is not compressed, in bytes.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }
}

/// An [`Error`] that passed through a reader comes out as it was.
impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        match error.downcast::<Error>() {
            Ok(error) => error,
            Err(error) => {
                let kind = match error.kind() {
                    io::ErrorKind::UnexpectedEof => ErrorKind::Truncated,
                    _ => ErrorKind::Io,
                };
                let mut made = Self::new(kind, error.to_string());
                made.0.io = Some(error.kind());
                made
            }
        }
    }
}

impl From<byte_parts::WriteError> for Error {
    fn from(error: byte_parts::WriteError) -> Self {
        Self::from(io::Error::from(error))
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match error.kind() {
            ErrorKind::Truncated => io::ErrorKind::UnexpectedEof,
            ErrorKind::Io => error.0.io.unwrap_or(io::ErrorKind::Other),
            ErrorKind::Unsupported => io::ErrorKind::Unsupported,
            _ => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, error)
    }
}

/// Something in a package that is wrong or suspicious, with its place.
#[derive(Debug)]
#[non_exhaustive]
pub struct Finding {
    /// The member at fault; empty if it is the package.
    pub path: MemberPath,
    /// The kind of the finding.
    pub kind: FindingKind,
    /// The description.
    pub error: Error,
}

impl Finding {
    /// Returns a finding with a text of the caller.
    pub fn new(path: MemberPath, kind: FindingKind, text: impl Into<String>) -> Self {
        Finding { path, kind, error: Error::new(ErrorKind::Mismatch, text) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            fmt::Display::fmt(&self.error, f)
        } else {
            write!(f, "{}: {}", self.path, self.error)
        }
    }
}

/// Kind of a [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// A package in the package cannot be read any further, or a limit was met.
    Unread,
    /// Contents of a member are damaged, or cannot be decompressed.
    Damaged,
    /// A name is absolute, or has `..`, a backslash, a drive letter or a control character.
    UnsafeName,
    /// Two members have the same name.
    Duplicate,
    /// Members share bytes.
    Overlap,
    /// The local header of a member differs from the central directory.
    HeaderMismatch,
    /// Bytes of the file belong to no member.
    Gap,
    /// A member is encrypted.
    Encrypted,
    /// A record lacks a file, or has a wrong hash or size.
    Record,
    /// Programs that read the package differ in its members, or refuse it.
    Ambiguous,
}

impl FindingKind {
    /// Returns whether members are not read because of it, or it is unclear which ones are installed.
    #[must_use]
    pub fn hides_members(self) -> bool {
        use FindingKind::{Ambiguous, Damaged, Duplicate, Encrypted, Unread};
        matches!(self, Unread | Damaged | Encrypted | Ambiguous | Duplicate)
    }
}
