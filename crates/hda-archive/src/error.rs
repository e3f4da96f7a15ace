//! Errors of archives.

use std::io;

use fat_object::{Finding, Location};

/// An error in an archive, in a member, or in the calls made.
///
/// The text says what is wrong, where, and what was expected; [`kind`](Self::kind) and the other functions are for
/// programs.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.message)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    offset: Option<u64>,
    member: Option<String>,
    archive: Option<usize>,
    finding: Option<Finding>,
    io: Option<io::Error>,
    bitcode: Option<llvm_bitcode::Error>,
    message: String,
}

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
    #[cold]
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error(Box::new(Inner {
            kind,
            offset: None,
            member: None,
            archive: None,
            finding: None,
            io: None,
            bitcode: None,
            message: message.into(),
        }))
    }

    #[cold]
    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Malformed, message)
    }

    /// Creates the error of an input that is not an archive, from its first bytes.
    #[cold]
    pub(crate) fn not_an_archive(first: &[u8]) -> Self {
        let short = first.len() < 8;
        let kind = if short { ErrorKind::Truncated } else { ErrorKind::NotAnArchive };
        let mut error = Self::new(kind, format!("not an ar archive (first bytes {first:02x?})"));
        error.0.offset = Some(0);
        error
    }

    #[cold]
    pub(crate) fn too_large(what: &str, size: u64) -> Self {
        let text = format!("{what} has {size} bytes: the ar format allows at most 9999999999");
        Self::new(ErrorKind::Limit, text)
    }

    /// Creates the error of an input that is not the planned one, from an entry on.
    #[cold]
    pub(crate) fn changed(entry: usize) -> Self {
        let text = format!("the file was changed while it was read, at entry {entry}");
        Self::new(ErrorKind::Changed, text)
    }

    #[cold]
    pub(crate) fn write(archive: usize, source: io::Error) -> Self {
        let mut error = Self::new(ErrorKind::Write, format!("writing archive {archive}: {source}"));
        error.0.archive = Some(archive);
        error.0.io = Some(source);
        error
    }

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
        self.0.kind
    }

    /// Returns the place of the fault, in bytes from the start of the input; of an error of
    /// [`create`](crate::create) about a member, from the start of its data. For damage, that is the start of the
    /// damaged container. `None` if the fault has no place there, as inside compressed bundles and members of thin
    /// archives.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// Returns the name of the member at fault; bytes that are not UTF-8 are replaced. `None` where no single member of
    /// the archive written, or of an entry read, is at fault; [`finding`](Self::finding) has the place of damage.
    pub fn member(&self) -> Option<&str> {
        self.0.member.as_deref()
    }

    /// Returns the finding of [`fat_object`] about the input, if that is the error.
    pub fn finding(&self) -> Option<&Finding> {
        self.0.finding.as_ref()
    }

    /// Returns the archive that could not be written: its position among those written, from 0.
    pub fn archive(&self) -> Option<usize> {
        self.0.archive
    }

    /// Returns the error of reading or writing, for the kinds [`Read`](ErrorKind::Read) and
    /// [`Write`](ErrorKind::Write).
    pub fn io(&self) -> Option<&io::Error> {
        self.0.io.as_ref()
    }

    /// Returns the error of bitcode whose symbols cannot be read, or the error itself.
    pub(crate) fn into_bitcode(mut self) -> Result<llvm_bitcode::Error, Self> {
        self.0.bitcode.take().ok_or(self)
    }

    /// Returns the same error with the name of the member.
    pub(crate) fn in_member(mut self, name: &[u8]) -> Self {
        let member = String::from_utf8_lossy(name).into_owned();
        self.0.message.insert_str(0, &format!("archive member \"{}\": ", member.escape_debug()));
        self.0.member = Some(member);
        self
    }
}

/// An error of reading, or of the caller's own in the closure that [`entries`](crate::entries()) calls. It is of the kind
/// [`Read`](ErrorKind::Read), and comes out as it went in.
impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        let mut read = Self::new(ErrorKind::Read, error.to_string());
        read.0.io = Some(error);
        read
    }
}

/// Errors of reading and writing come out as they are; others are [`InvalidData`](io::ErrorKind::InvalidData) or
/// [`InvalidInput`](io::ErrorKind::InvalidInput), with the [`Error`] inside.
impl From<Error> for io::Error {
    fn from(mut error: Error) -> Self {
        let of_member = error.0.member.is_some();
        if let Some(source) = error.0.io.take_if(|_| !of_member) {
            return source;
        }
        let kind = match error.kind() {
            ErrorKind::Usage | ErrorKind::Limit | ErrorKind::NotBundled => {
                io::ErrorKind::InvalidInput
            }
            _ if of_member => io::ErrorKind::InvalidInput,
            _ => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, error)
    }
}

impl From<&Finding> for Error {
    fn from(finding: &Finding) -> Self {
        let mut error = Self::malformed(finding.to_string());
        error.0.offset = match finding.location() {
            Location::File(offset) => Some(offset),
            _ => None,
        };
        error.0.finding = Some(finding.clone());
        error
    }
}

impl From<llvm_bitcode::Error> for Error {
    fn from(bitcode: llvm_bitcode::Error) -> Self {
        let mut error = Self::malformed(bitcode.to_string());
        error.0.bitcode = Some(bitcode);
        error
    }
}
