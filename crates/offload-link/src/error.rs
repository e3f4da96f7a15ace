//! Errors of the link step.

use std::{fmt, io};

/// Kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An input cannot be read, or holds a malformed container.
    Input,
    /// No device linker is known for the architecture of a target.
    Architecture,
    /// The kinds of the code for one target cannot be linked together.
    Kinds,
    /// The code is for too many targets.
    Targets,
    /// The linked images do not fit into the container of their kind.
    Container,
    /// No registration code can be made for the host.
    Registration,
}

/// Error of the link step.
///
/// Its text names the input, or the target, and says what is wrong.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    text: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Error { kind, text: text.into(), source: None }
    }

    /// An error of another crate, about a subject.
    pub(crate) fn of(
        kind: ErrorKind,
        subject: &str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        let source = source.into();
        Error { kind, text: format!("{subject}: {source}"), source: Some(source) }
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns what is wrong in an input, if this is the cause.
    #[must_use]
    pub fn finding(&self) -> Option<&fat_object::Finding> {
        self.source.as_ref()?.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| &**source as _)
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        io::Error::other(error)
    }
}
