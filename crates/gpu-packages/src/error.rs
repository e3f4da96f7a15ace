//! Errors in packages.

use std::{fmt, io};

/// An error in a package. The text says what is wrong, where, and what was expected.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    text: String,
    source: Option<io::Error>,
}

/// Kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The data is not of this format.
    NotThisFormat,
    /// The package is damaged, or contradicts itself.
    Malformed,
    /// A compression, an encryption or a form that is not read or written.
    Unsupported,
    /// A member is larger than the caller allows.
    Limit,
    /// An error of reading.
    Io,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Error { kind, text: text.into(), source: None }
    }

    pub(crate) fn malformed(text: impl Into<String>) -> Self {
        Error::new(ErrorKind::Malformed, text)
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the error of reading.
    #[must_use]
    pub fn io(&self) -> Option<&io::Error> {
        self.source.as_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|error| error as _)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error { kind: ErrorKind::Io, text: error.to_string(), source: Some(error) }
    }
}

impl From<rawzip::Error> for Error {
    fn from(error: rawzip::Error) -> Self {
        match error.kind() {
            rawzip::ErrorKind::IO(_) => Error::new(ErrorKind::Io, error.to_string()),
            rawzip::ErrorKind::MissingEndOfCentralDirectory => {
                Error::new(ErrorKind::NotThisFormat, "zip archive without its directory at the end")
            }
            _ => Error::malformed(format!("zip archive: {error}")),
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        match error.source {
            Some(source) => source,
            None => io::Error::new(io::ErrorKind::InvalidData, error),
        }
    }
}
