//! Errors of the link step.

use std::io;

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
    /// A device linker cannot be run, fails, or does not take the code.
    Device,
    /// The linked images do not fit into the container of their kind.
    Container,
    /// No registration code can be made for the host.
    Registration,
}

/// Error of the link step.
///
/// Its text names the input, or the target, and says what is wrong.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.message)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    /// The error of another crate, whose text is in the message.
    cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// Creates an error. Control characters of names in the message are escaped: they could move a terminal's cursor.
    #[cold]
    pub(crate) fn new(kind: ErrorKind, message: impl AsRef<str>) -> Self {
        let mut line = String::new();
        for c in message.as_ref().chars() {
            if c.is_control() { line.extend(c.escape_default()) } else { line.push(c) }
        }
        Error(Box::new(Inner { kind, message: line, cause: None }))
    }

    /// An error of another crate, about a subject.
    #[cold]
    pub(crate) fn of(
        kind: ErrorKind,
        subject: &str,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        let cause = cause.into();
        let mut error = Self::new(kind, format!("{subject}: {cause}"));
        error.0.cause = Some(cause);
        error
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns what is wrong in an input, if this is the cause.
    #[must_use]
    pub fn finding(&self) -> Option<&fat_object::Finding> {
        self.0.cause.as_ref()?.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref()
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        io::Error::other(error)
    }
}
