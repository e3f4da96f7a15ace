//! Errors of editing host files.

use std::io;

use byte_parts::WriteError;

/// The reason why a host file cannot be edited, or a section not be added.
///
/// The text says what is wrong, where, and what was expected; [`kind`](Self::kind) is for programs. Offsets in the text count
/// from the start of the file, or of the object in it; addresses are as in the program.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.message)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    /// The kind of files or sections that cannot be edited, in the plural.
    unsupported: Option<&'static str>,
    /// The error of reading or writing, or of the memory, whose text is in the message.
    io: Option<io::Error>,
    message: String,
}

/// Kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An input cannot be read. The error of reading comes out by `io::Error::from`.
    Read,
    /// The new file cannot be written. The error of writing comes out by `io::Error::from`.
    Write,
    /// The file is not what it was when the edit was planned.
    InputChanged,
    /// The file is of a format in which sections cannot be added or removed.
    Format,
    /// The format is known, but files or sections of this kind are not edited.
    Unsupported,
    /// A header, table or pointer contradicts another, or lies past the end of the file.
    Malformed,
    /// A section has to move or go, and what refers to it cannot follow; or the device code was moved to another file; or the
    /// new file, read again, is not what it should be.
    Refused,
    /// The new contents are larger than their place. [`Options::with_grow`](crate::Options::with_grow) allows a new one.
    NoRoom,
    /// A field, a table or the memory is too small for the result.
    Limit,
    /// The edit would make a signature invalid. [`Options::with_drop_signature`](crate::Options::with_drop_signature)
    /// removes it.
    Signed,
    /// The file has no device code.
    NoDeviceCode,
    /// The edit would leave nothing in a container.
    NothingLeft,
    /// New contents are not as many or as long as was laid out, or the name of a new section cannot be written.
    Contents,
}

impl Error {
    #[cold]
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error(Box::new(Inner { kind, unsupported: None, io: None, message: message.into() }))
    }

    #[cold]
    fn of_io(kind: ErrorKind, io: io::Error, message: String) -> Self {
        Error(Box::new(Inner { kind, unsupported: None, io: Some(io), message }))
    }

    /// Creates the error of a whole kind of files or sections, by its name in the plural.
    #[cold]
    pub(crate) fn unsupported_kind(kind: &'static str) -> Self {
        let mut error = Self::new(ErrorKind::Unsupported, format!("{kind} cannot be edited"));
        error.0.unsupported = Some(kind);
        error
    }

    #[cold]
    pub(crate) fn input_changed() -> Self {
        Self::new(ErrorKind::InputChanged, "the file was changed during the edit")
    }

    #[cold]
    pub(crate) fn out_of_memory(size: u64) -> Self {
        let message = format!("no memory for an object of {size} bytes");
        Self::of_io(ErrorKind::Limit, io::ErrorKind::OutOfMemory.into(), message)
    }

    /// Creates the error of parts of a file that share bytes, and cannot change or move.
    #[cold]
    pub(crate) fn shared_bytes(start: u64, end: u64) -> Self {
        let message =
            format!("parts of the object at {start:#x}..{end:#x} share bytes with others");
        Self::new(ErrorKind::Malformed, message)
    }

    /// Returns the kind of the error.
    ///
    /// ```
    /// use object_edit::{NewSections, ErrorKind};
    ///
    /// let error = NewSections::offloading(b"\xcf\xfa\xed\xfe", 8).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Unsupported);
    /// assert_eq!(error.to_string(), "cannot change sections: Mach-O objects are not edited");
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the name of the kind of files or sections that cannot be edited, in the plural, if the whole kind cannot
    /// be edited.
    #[must_use]
    pub fn unsupported(&self) -> Option<&'static str> {
        self.0.unsupported
    }
}

#[cfg(test)]
impl PartialEq<(ErrorKind, &str)> for Error {
    fn eq(&self, (kind, message): &(ErrorKind, &str)) -> bool {
        self.0.kind == *kind && self.0.message == *message
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        let message = format!("cannot be read: {error}");
        Self::of_io(ErrorKind::Read, error, message)
    }
}

impl From<WriteError> for Error {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Read(error) => error.into(),
            WriteError::Write(error) => {
                let message = format!("cannot write: {error}");
                Self::of_io(ErrorKind::Write, error, message)
            }
            _ => Self::input_changed(),
        }
    }
}

/// Errors of reading and writing come out as they are. Others are inside: as
/// [`InvalidInput`](io::ErrorKind::InvalidInput) if the new contents are at fault, as
/// [`OutOfMemory`](io::ErrorKind::OutOfMemory), else as [`InvalidData`](io::ErrorKind::InvalidData).
impl From<Error> for io::Error {
    fn from(mut error: Error) -> Self {
        let kind = match (error.0.kind, error.0.io.take()) {
            (ErrorKind::Read | ErrorKind::Write, Some(error)) => return error,
            (_, Some(error)) => error.kind(),
            (ErrorKind::Contents, None) => io::ErrorKind::InvalidInput,
            _ => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, error)
    }
}
