//! Errors of a build.

use std::fmt;
use std::io;
use std::path::Path;

/// Kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The build is not complete: it has no file or GPU, or a variable that cargo sets for build scripts is missing.
    Incomplete,
    /// The compiler cannot be run, or fails.
    Compiler,
    /// The files have no device code.
    NoDeviceCode,
    /// Device code cannot be linked or registered.
    Link,
    /// A file cannot be read or written.
    File,
}

/// Error of a build. Its text names the file, or the program.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    #[cold]
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error { kind, message: message.into() }
    }

    #[cold]
    pub(crate) fn of_file(path: &Path, error: impl fmt::Display) -> Self {
        Self::new(ErrorKind::File, format!("{}: {error}", path.display()))
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl From<offload_link::Error> for Error {
    fn from(error: offload_link::Error) -> Self {
        Self::new(ErrorKind::Link, error.to_string())
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        io::Error::other(error)
    }
}
