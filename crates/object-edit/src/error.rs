//! Errors of editing host files.

mod object;

use std::{fmt, io};

use byte_parts::WriteError;

pub(crate) use self::object::{ObjectPart, ObjectProblem};

/// The reason why a host file cannot be edited, or a section not be added.
///
/// The text says what is wrong, where, and what was expected; [`kind`](Self::kind) is for programs. Offsets in the text count
/// from the start of the file, or of the object in it; addresses are those of the program.
#[derive(Debug)]
pub struct Error(Problem);

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
        match &self.0 {
            Problem::Read(_) => ErrorKind::Read,
            Problem::Write(_) => ErrorKind::Write,
            Problem::InputChanged => ErrorKind::InputChanged,
            Problem::Object(problem) => problem.kind(),
            Problem::Unsupported { .. }
            | Problem::UnsupportedElf { .. }
            | Problem::UnsupportedPe { .. }
            | Problem::NoSectionHeaders => ErrorKind::Unsupported,
            Problem::InconsistentSegments { .. }
            | Problem::InconsistentSections { .. }
            | Problem::BeyondEnd { .. }
            | Problem::WrapperTarget { .. }
            | Problem::WrapperSection { .. }
            | Problem::WrapperForm { .. }
            | Problem::UnknownBytes { .. }
            | Problem::SharedBytes { .. }
            | Problem::RelocationPlace { .. }
            | Problem::Archive { .. } => ErrorKind::Malformed,
            Problem::PointerForm { .. }
            | Problem::ForeignReference { .. }
            | Problem::NoWrapper { .. } => ErrorKind::Refused,
            Problem::NoRoom { .. } => ErrorKind::NoRoom,
            Problem::NoRoomForProgramHeader
            | Problem::NoRoomForSectionHeader
            | Problem::ArchiveField { .. } => ErrorKind::Limit,
            Problem::Signed => ErrorKind::Signed,
            Problem::NoDeviceCode => ErrorKind::NoDeviceCode,
            Problem::MovedOut { .. } => ErrorKind::Refused,
            Problem::NothingLeft => ErrorKind::NothingLeft,
            Problem::SelfCheck { .. } => ErrorKind::Refused,
        }
    }

    /// Returns the name of the kind of files or sections that cannot be edited, in the plural, if the error is about a whole
    /// kind of them.
    #[must_use]
    pub fn unsupported(&self) -> Option<&'static str> {
        match self.0 {
            Problem::Unsupported { kind } => Some(kind),
            _ => None,
        }
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Error(problem)
    }
}

impl From<ObjectProblem> for Error {
    fn from(problem: ObjectProblem) -> Self {
        Error(Problem::Object(problem))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {}

/// Errors of reading and writing come out as they are. Others are inside: as
/// [`InvalidInput`](io::ErrorKind::InvalidInput) if they are about what was to be written, as
/// [`OutOfMemory`](io::ErrorKind::OutOfMemory), else as [`InvalidData`](io::ErrorKind::InvalidData).
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match error.0 {
            Problem::Read(error) | Problem::Write(error) => return error,
            Problem::Object(ObjectProblem::OutOfMemory { .. }) => io::ErrorKind::OutOfMemory,
            _ if error.kind() == ErrorKind::Contents => io::ErrorKind::InvalidInput,
            _ => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, error)
    }
}

/// One fault, with all that its text says.
#[derive(Debug)]
pub(crate) enum Problem {
    MovedOut { how: &'static str },
    NoSectionHeaders,
    UnsupportedElf { what: &'static str },
    InconsistentSegments { what: &'static str },
    BeyondEnd { what: &'static str, start: u64, end: u64, available: u64 },
    WrapperTarget { wrapper: usize, address: u64, target: u64 },
    PointerForm { bundle: usize, address: u64, kind: u32 },
    ForeignReference { bundle: usize, address: u64 },
    NoRoom { needed: u64, available: u64 },
    Signed,
    NoRoomForSectionHeader,
    SelfCheck { address: u64, what: &'static str },
    WrapperSection { address: u64, size: u64, what: &'static str },
    WrapperForm { wrapper: usize, address: u64, magic: u32, version: u32, expected: String },
    InputChanged,
    UnsupportedPe { what: &'static str },
    InconsistentSections { what: &'static str },
    UnknownBytes { offset: u64 },
    NoWrapper { bundle: usize },
    SharedBytes { start: u64, end: u64 },
    RelocationPlace { section: u64, index: u64, place: u64 },
    ArchiveField { what: &'static str, value: u64, limit: u64 },
    NoRoomForProgramHeader,
    Object(ObjectProblem),
    Archive { offset: u64, what: &'static str },
    Read(io::Error),
    Write(io::Error),
    NothingLeft,
    Unsupported { kind: &'static str },
    NoDeviceCode,
}

impl From<ObjectProblem> for Problem {
    fn from(problem: ObjectProblem) -> Self {
        Problem::Object(problem)
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Problem::Read(error)
    }
}

impl From<WriteError> for Problem {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Read(error) => Problem::Read(error),
            WriteError::Write(error) => Problem::Write(error),
            _ => Problem::InputChanged,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MovedOut { how } => write!(f, "device code was moved out of this file ({how})"),
            Self::NoSectionHeaders => {
                f.write_str("no section headers: cannot tell what follows the device code")
            }
            Self::UnsupportedElf { what } => write!(f, "unsupported ELF: {what}"),
            Self::InconsistentSegments { what } => {
                write!(f, "inconsistent program headers: {what}")
            }
            Self::BeyondEnd { what, start, end, available } => write!(
                f,
                "{what} lies at {start:#x}..{end:#x}, beyond the end of the file at {available:#x}"
            ),
            Self::WrapperTarget { wrapper, address, target } => write!(
                f,
                "wrapper {wrapper} at {address:#x}: points to {target:#x}, where no bundle starts"
            ),
            Self::PointerForm { bundle, address, kind } => write!(
                f,
                "bundle {bundle} must move, but the relocation at {address:#x} has the unknown type {kind}"
            ),
            Self::ForeignReference { bundle, address } => {
                write!(f, "bundle {bundle} must move, but {address:#x} may refer to it")
            }
            Self::NoRoom { needed, available } => write!(
                f,
                "needs {needed:#x} bytes, {available:#x} available; allow the file to grow to move it"
            ),
            Self::Signed => f.write_str("file is signed; the signature would become invalid"),
            Self::NoRoomForSectionHeader => f.write_str("no room for another section header"),
            Self::SelfCheck { address, what } => {
                write!(f, "self-check failed at address {address:#x}: {what}")
            }
            Self::WrapperSection { address, size, what } => {
                write!(f, "wrappers at {address:#x}: {size} bytes, {what}")
            }
            Self::WrapperForm { wrapper, address, magic, version, expected } => write!(
                f,
                "wrapper {wrapper} at {address:#x}: magic {magic:#010x} and version {version}, expected {expected}"
            ),
            Self::InputChanged => f.write_str("the file was changed during the edit"),
            Self::UnsupportedPe { what } => write!(f, "unsupported PE: {what}"),
            Self::InconsistentSections { what } => {
                write!(f, "inconsistent section headers: {what}")
            }
            Self::UnknownBytes { offset } => {
                write!(f, "unknown bytes at {offset:#x}, between device code")
            }
            Self::NoWrapper { bundle } => {
                write!(f, "bundle {bundle} must move, but no wrapper leads to it")
            }
            Self::SharedBytes { start, end } => {
                write!(f, "parts of the object at {start:#x}..{end:#x} share bytes with others")
            }
            Self::RelocationPlace { section, index, place } => write!(
                f,
                "relocation {index} of section {section} applies to {place:#x}, outside of any contents"
            ),
            Self::ArchiveField { what, value, limit } => {
                write!(f, "{what} would be {value}, exceeding the archive's limit of {limit}")
            }
            Self::NoRoomForProgramHeader => f.write_str("no room for another program header"),
            Self::Object(error) => error.fmt(f),
            Self::Archive { offset, what } => {
                write!(f, "at {offset:#x}: malformed archive: {what}")
            }
            Self::Read(error) => write!(f, "cannot be read: {error}"),
            Self::Write(error) => write!(f, "cannot write: {error}"),
            Self::NothingLeft => f.write_str("no image would be left"),
            Self::Unsupported { kind } => write!(f, "{kind} cannot be edited"),
            Self::NoDeviceCode => f.write_str("no device code found"),
        }
    }
}
