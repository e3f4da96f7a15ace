//! Errors of archives.

use std::{fmt, io};

use fat_object::{Finding, Location};

/// An error in an archive, in a member, or in the calls made.
///
/// The text says what is wrong, where, and what was expected; [`kind`](Self::kind) and the other functions are for
/// programs.
#[derive(Debug)]
pub struct Error(Problem);

/// Kind of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input does not start as an `ar` archive does.
    NotAnArchive,
    /// The input is shorter than the magic of an `ar` archive.
    Truncated,
    /// The archive, a bundle in it, or an object file or bitcode whose symbols are needed is malformed or cut short.
    Malformed,
    /// A member of an archive of bundles is neither a bundle nor an object with sections of one.
    NotBundled,
    /// The archive exceeds what the ar format can say, or the names of an object's symbols 16 bytes for each byte of the
    /// object.
    Limit,
    /// The call is wrong: a name that is empty, or has a line break or a NUL, or not one writer for every archive.
    Usage,
    /// The input has no code for a target.
    NoCode,
    /// The input is not the one that the plan was made from.
    Changed,
    /// Reading the input failed.
    Read,
    /// Writing an archive failed.
    Write,
}

impl Error {
    /// Returns the kind of the error; for an error about a member, the kind of its cause.
    ///
    /// ```
    /// use hda_archive::{ErrorKind, Member, create};
    ///
    /// let error = create(Vec::new(), [Member::new("a.o", b"text")]).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::NotBundled);
    /// assert_eq!(error.member(), Some("a.o"));
    /// ```
    pub fn kind(&self) -> ErrorKind {
        match &self.0 {
            Problem::NotAnArchive { first } if first.len() < 8 => ErrorKind::Truncated,
            Problem::NotAnArchive { .. } => ErrorKind::NotAnArchive,
            Problem::Damaged { .. }
            | Problem::Object { .. }
            | Problem::Bitcode(_)
            | Problem::Restore(_) => ErrorKind::Malformed,
            Problem::Member { source, .. } => source.kind(),
            Problem::NotBundled => ErrorKind::NotBundled,
            Problem::TooManyNames { .. }
            | Problem::TooLarge { .. }
            | Problem::TooManySymbols { .. } => ErrorKind::Limit,
            Problem::Name | Problem::Writers { .. } => ErrorKind::Usage,
            Problem::NoCode { .. } => ErrorKind::NoCode,
            Problem::Changed { .. } => ErrorKind::Changed,
            Problem::Read(_) => ErrorKind::Read,
            Problem::Write { .. } => ErrorKind::Write,
        }
    }

    /// Returns the place of the fault, in bytes from the start of the input; of an error of
    /// [`create`](crate::create) about a member, from the start of its data. For damage, that is the start of the
    /// damaged container. `None` if the fault has no place there, as inside compressed bundles and members of thin
    /// archives.
    pub fn offset(&self) -> Option<u64> {
        match &self.0 {
            Problem::NotAnArchive { .. } => Some(0),
            Problem::Damaged { finding } => match finding.location() {
                Location::File(offset) => Some(offset),
                _ => None,
            },
            Problem::Member { source, .. } => source.offset(),
            _ => None,
        }
    }

    /// Returns the name of the member at fault; bytes that are not UTF-8 are replaced. `None` where no single member of
    /// the archive written, or of an entry read, is at fault; [`finding`](Self::finding) has the place of damage.
    pub fn member(&self) -> Option<&str> {
        match &self.0 {
            Problem::Member { member, .. } => Some(member),
            _ => None,
        }
    }

    /// Returns the finding of [`fat_object`] about the input, if that is the error.
    pub fn finding(&self) -> Option<&Finding> {
        match &self.0 {
            Problem::Damaged { finding } => Some(finding),
            Problem::Member { source, .. } => source.finding(),
            _ => None,
        }
    }

    /// Returns the archive that could not be written: its position among those written, from 0.
    pub fn archive(&self) -> Option<usize> {
        match self.0 {
            Problem::Write { archive, .. } => Some(archive),
            _ => None,
        }
    }

    /// Returns the error of reading or writing, for the kinds [`Read`](ErrorKind::Read) and
    /// [`Write`](ErrorKind::Write).
    pub fn io_error(&self) -> Option<&io::Error> {
        match &self.0 {
            Problem::Read(source) | Problem::Write { source, .. } => Some(source),
            Problem::Member { source, .. } => source.io_error(),
            _ => None,
        }
    }

    /// Returns the error of bitcode whose symbols cannot be read, or the error itself.
    pub(crate) fn into_bitcode(self) -> Result<llvm_bitcode::Error, Self> {
        match self.0 {
            Problem::Bitcode(error) => Ok(error),
            problem => Err(Error(problem)),
        }
    }

    /// Returns the same error with the name of the member.
    pub(crate) fn in_member(self, name: &[u8]) -> Self {
        let member = String::from_utf8_lossy(name).into_owned();
        Error(Problem::Member { member, source: Box::new(self) })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            Problem::Member { source, .. } => Some(&**source),
            Problem::Restore(error) => Some(error),
            Problem::Read(error) => error.source(),
            Problem::Write { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Error(problem)
    }
}

/// An error of reading, or of the caller's own in the closure that [`entries`](crate::entries()) calls. It is of the kind
/// [`Read`](ErrorKind::Read), and comes out as it went in.
impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error(Problem::Read(error))
    }
}

/// Errors of reading and writing come out as they are; others are [`InvalidData`](io::ErrorKind::InvalidData) or
/// [`InvalidInput`](io::ErrorKind::InvalidInput), with the [`Error`] inside.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        match error.0 {
            Problem::Read(source) | Problem::Write { source, .. } => source,
            problem @ (Problem::Name
            | Problem::TooLarge { .. }
            | Problem::TooManySymbols { .. }
            | Problem::NotBundled
            | Problem::Writers { .. }
            | Problem::Member { .. }) => {
                io::Error::new(io::ErrorKind::InvalidInput, Error(problem))
            }
            problem => io::Error::new(io::ErrorKind::InvalidData, Error(problem)),
        }
    }
}

/// One fault, with all that its text says.
#[derive(Debug)]
pub(crate) enum Problem {
    NotAnArchive { first: Vec<u8> },
    Damaged { finding: Box<Finding> },
    Member { member: String, source: Box<Error> },
    Object { format: &'static str, detail: String },
    TooManyNames { format: &'static str, limit: usize },
    Bitcode(llvm_bitcode::Error),
    Restore(object_edit::Error),
    Name,
    TooLarge { what: &'static str, size: u64 },
    TooManySymbols { count: u64 },
    NotBundled,
    Changed { entry: usize },
    NoCode { target: Box<str> },
    Writers { expected: usize, found: usize },
    Read(io::Error),
    Write { archive: usize, source: io::Error },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnArchive { first } => {
                write!(f, "not an ar archive (first bytes {first:02x?})")
            }
            Self::Damaged { finding } => write!(f, "{finding}"),
            Self::Member { member, source } => {
                write!(f, "archive member \"{}\": {source}", member.escape_debug())
            }
            Self::Object { format, detail } => write!(f, "malformed {format} file: {detail}"),
            Self::TooManyNames { format, limit } => write!(
                f,
                "the names of the symbols of the {format} file exceed {limit} bytes in total"
            ),
            Self::Bitcode(error) => error.fmt(f),
            Self::Restore(error) => write!(f, "the host object cannot be restored: {error}"),
            Self::Name => f.write_str("the name is empty, or has a line break or nul"),
            Self::TooLarge { what, size } => {
                write!(f, "{what} has {size} bytes: the ar format allows at most 9999999999")
            }
            Self::TooManySymbols { count } => write!(
                f,
                "the index of symbols has {count} entries: the ar format allows at most 4294967295"
            ),
            Self::NotBundled => {
                f.write_str("neither a bundle nor an object file with the sections of a bundle")
            }
            Self::Changed { entry } => {
                write!(f, "the file changed while it was read, at entry {entry}")
            }
            Self::NoCode { target } => write!(f, "no code for {}", target.escape_debug()),
            Self::Writers { expected, found } => {
                write!(f, "expected {expected} writers, one per archive, found {found}")
            }
            Self::Read(error) => error.fmt(f),
            Self::Write { archive, source } => write!(f, "writing archive {archive}: {source}"),
        }
    }
}

impl From<llvm_bitcode::Error> for Problem {
    fn from(error: llvm_bitcode::Error) -> Self {
        Self::Bitcode(error)
    }
}

impl From<object_edit::Error> for Problem {
    fn from(error: object_edit::Error) -> Self {
        Self::Restore(error)
    }
}
