//! Errors of editing device code in a file.

use std::{fmt, io};

use bundle_format::CompositionFinding;
use fat_object::{Disagreement, FileFormat, Finding, Location, PathStep};
use target_id::Target;

/// Error of a survey, a plan or of writing.
///
/// The text says what is wrong, where, and what was expected; [`kind`](Self::kind) and the other functions are for
/// programs. Until a plan is written, nothing is.
#[derive(Debug)]
pub struct Error(Problem);

/// Kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An input cannot be read.
    Read,
    /// The new file cannot be written.
    Write,
    /// The file is not the one that was surveyed.
    InputChanged,
    /// The file holds no device code.
    NoDeviceCode,
    /// The file holds device code, but no bundle, offload binary or fatbinary that could be compressed or decompressed.
    NoBundle,
    /// A part of the file is damaged, or a compressed bundle holds something else than a bundle that could take its place.
    Damaged,
    /// This crate does not edit containers of this kind, or in this place.
    Unsupported,
    /// The host file does not allow it, or is damaged: [`Error::host`].
    Host,
    /// The edit names an image or a container that is missing.
    Missing,
    /// The edit would leave no image in a container, or removes the host's entry of a bundle, which
    /// [`EditOptions::with_allow_empty`](crate::EditOptions::with_allow_empty) and
    /// [`EditOptions::with_remove_host`](crate::EditOptions::with_remove_host) allow; or an entry cannot be added, or a new image
    /// is for another target than its entry ([`Error::mismatch`]), or the compressed file could not be decompressed again,
    /// or the new file would not hold exactly the expected images.
    Refused,
}

impl Error {
    /// Returns the kind of the error, also of an error in a member of an archive.
    ///
    /// ```
    /// use std::io::Cursor;
    /// use fat_edit::{Edit, ErrorKind, survey};
    /// use fat_object::Options;
    ///
    /// let mut file = Cursor::new(b"no device code here");
    /// let surveyed = survey(&mut file, &Options::default())?;
    /// let error = surveyed.plan(&mut file, &Edit::default()).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::NoDeviceCode);
    /// # Ok::<(), fat_edit::Error>(())
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self.0.cause() {
            Problem::Read(_) => ErrorKind::Read,
            Problem::Write(_) => ErrorKind::Write,
            Problem::InputChanged => ErrorKind::InputChanged,
            Problem::NoDeviceCode => ErrorKind::NoDeviceCode,
            Problem::NoBundle => ErrorKind::NoBundle,
            Problem::Damaged { .. }
            | Problem::Fatbin { .. }
            | Problem::Pack(_)
            | Problem::HoldsNoBundle { .. }
            | Problem::TextNotAlone { .. } => ErrorKind::Damaged,
            Problem::Unsupported { .. } | Problem::ThinArchive { .. } => ErrorKind::Unsupported,
            Problem::Host(_) | Problem::Within { .. } => ErrorKind::Host,
            Problem::NoSuchImage { .. }
            | Problem::NoSuchContainer { .. }
            | Problem::NoSuchNewImage { .. } => ErrorKind::Missing,
            Problem::NothingLeft { .. } | Problem::IsHost { .. } => ErrorKind::Refused,
            Problem::Composition { .. }
            | Problem::CannotAdd { .. }
            | Problem::CannotMoveOut { .. }
            | Problem::NoArchitecture { .. }
            | Problem::Concatenated { .. }
            | Problem::EntryId { .. }
            | Problem::EmptyEntryId { .. } => ErrorKind::Refused,
            Problem::Image { .. } => ErrorKind::Refused,
            Problem::NoWayBack { .. } | Problem::NotAsExpected { .. } => ErrorKind::Refused,
        }
    }

    /// Returns the place of the fault: the containers around it, from outside in. Empty for the file itself.
    #[must_use]
    pub fn path(&self) -> &[PathStep] {
        match &self.0 {
            Problem::Damaged { path, .. }
            | Problem::Fatbin { path, .. }
            | Problem::NoArchitecture { path }
            | Problem::Concatenated { path }
            | Problem::Unsupported { path, .. }
            | Problem::NothingLeft { path }
            | Problem::HoldsNoBundle { path, .. }
            | Problem::TextNotAlone { path }
            | Problem::Composition { path, .. }
            | Problem::ThinArchive { path }
            | Problem::CannotAdd { path }
            | Problem::CannotMoveOut { path, .. }
            | Problem::NotAsExpected { path, .. }
            | Problem::Within { path, .. } => path,
            _ => &[],
        }
    }

    /// Returns the damage, as a walk finds it.
    #[must_use]
    pub fn damage(&self) -> Option<&fat_object::Error> {
        match self.0.cause() {
            Problem::Damaged { error, .. } => Some(error),
            _ => None,
        }
    }

    /// Returns the reason why the [host file](ErrorKind::Host) cannot be edited.
    #[must_use]
    pub fn host(&self) -> Option<&object_edit::Error> {
        match self.0.cause() {
            Problem::Host(error) => Some(error),
            _ => None,
        }
    }

    /// Returns the error of the stream that cannot be [read](ErrorKind::Read) or [written](ErrorKind::Write).
    #[must_use]
    pub fn io(&self) -> Option<&io::Error> {
        match self.0.cause() {
            Problem::Read(error) | Problem::Write(error) => Some(error),
            _ => None,
        }
    }

    /// Returns the number of a new image, the target that its entry names, and how the image disagrees with it.
    #[must_use]
    pub fn mismatch(&self) -> Option<(usize, &Target, &Disagreement)> {
        match self.0.cause() {
            Problem::Image { number, target, disagreement } => {
                Some((*number, target, disagreement))
            }
            _ => None,
        }
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Error(problem)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.0)
    }
}

/// One fault, with all that its text says. The containers of a `path` go from outside in.
#[derive(Debug)]
pub(crate) enum Problem {
    Read(io::Error),
    Write(io::Error),
    NoDeviceCode,
    NoBundle,
    Damaged {
        path: Vec<PathStep>,
        /// Start of the container that the error speaks of.
        location: Location,
        error: Box<fat_object::Error>,
    },
    Unsupported {
        path: Vec<PathStep>,
        /// Its name, in the plural.
        kind: &'static str,
    },
    NothingLeft {
        path: Vec<PathStep>,
    },
    NoWayBack {
        why: Box<Problem>,
    },
    /// The new file, read before it is written, lacks an image, or has one too many.
    NotAsExpected {
        path: Vec<PathStep>,
        /// The name of the image, without control characters; `None` for a container.
        name: Option<String>,
        what: &'static str,
    },
    NoSuchImage {
        index: usize,
        available: usize,
    },
    IsHost {
        index: usize,
    },
    NoSuchContainer {
        container: usize,
        available: usize,
    },
    NoSuchNewImage {
        number: usize,
        available: usize,
    },
    InputChanged,
    HoldsNoBundle {
        path: Vec<PathStep>,
        /// Format of what it holds, by its first bytes.
        format: FileFormat,
    },
    /// A text bundle ends with its file, so that nothing can follow it.
    TextNotAlone {
        path: Vec<PathStep>,
    },
    Image {
        number: usize,
        target: Box<Target>,
        disagreement: Box<Disagreement>,
    },
    /// `offset` counts from the start of the ID.
    EntryId {
        index: usize,
        offset: usize,
    },
    EmptyEntryId {
        index: usize,
    },
    Composition {
        path: Vec<PathStep>,
        /// Entries are numbered as they would be.
        finding: Box<CompositionFinding>,
    },
    ThinArchive {
        path: Vec<PathStep>,
    },
    /// An entry of a fatbinary that is damaged, or cannot be made.
    Fatbin {
        path: Vec<PathStep>,
        /// Start of the fatbinary.
        location: Location,
        error: nv_fatbin::Error,
    },
    /// The ID of an entry to be added to a fatbinary names no architecture.
    NoArchitecture {
        path: Vec<PathStep>,
    },
    /// An image is to be replaced that is compressed as one with others.
    Concatenated {
        path: Vec<PathStep>,
    },
    /// A section that is an image itself.
    CannotAdd {
        path: Vec<PathStep>,
    },
    /// Device code that no loader would find outside of the file.
    CannotMoveOut {
        path: Vec<PathStep>,
        why: &'static str,
    },
    /// In a kernel pack, or in what would be made of its code objects.
    #[cfg_attr(
        not(any(feature = "ruzstd", feature = "zstd")),
        allow(dead_code, reason = "splitting and joining need a codec")
    )]
    Pack(String),
    Host(object_edit::Error),
    /// In a member of an archive.
    Within {
        path: Vec<PathStep>,
        error: Box<Problem>,
    },
}

impl Problem {
    /// Returns the problem, of the file in this place.
    pub(crate) fn within(self, path: &[PathStep]) -> Self {
        match (path, &self) {
            // It says nothing about what is there.
            ([], _) | (_, Problem::Read(_) | Problem::Write(_)) => self,
            _ => Problem::Within { path: path.to_vec(), error: Box::new(self) },
        }
    }

    /// Returns the innermost problem, without the containers around it.
    fn cause(&self) -> &Self {
        match self {
            Problem::Within { error, .. } => error.cause(),
            problem => problem,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "cannot be read: {error}"),
            Self::Write(error) => write!(f, "cannot write: {error}"),
            Self::NoDeviceCode => f.write_str("no device code found"),
            Self::NoBundle => f.write_str("no bundle, offload binary or fatbinary found"),
            Self::Damaged { path, location, error } => write_fault(f, path, *location, error),
            Self::Fatbin { path, location, error } => write_fault(f, path, *location, error),
            Self::Concatenated { path } => write!(
                f,
                "{}an image that is compressed as one with others cannot be replaced",
                Prefix(path)
            ),
            Self::NoArchitecture { path } => write!(
                f,
                "{}the entry names no architecture of NVIDIA, expected sm_90 or compute_90 in its place",
                Prefix(path)
            ),
            Self::Unsupported { path, kind } => {
                write!(f, "{}{kind} cannot be edited", Prefix(path))
            }
            Self::NothingLeft { path } => write!(f, "{}no image would be left", Prefix(path)),
            Self::NoWayBack { why } => {
                write!(f, "the compressed file could not be decompressed: {why}")
            }
            Self::NotAsExpected { path, name: Some(name), what } => {
                write!(f, "{}self-check failed: image {name} {what}", Prefix(path))
            }
            Self::NotAsExpected { path, name: None, what } => {
                write!(f, "{}self-check failed: the container {what}", Prefix(path))
            }
            Self::NoSuchImage { index, available } => {
                write!(f, "no image {index}: the file has {available}")
            }
            Self::IsHost { index } => {
                write!(f, "image {index} is host code; removing it needs remove_host")
            }
            Self::NoSuchContainer { container, available } => {
                write!(f, "no container {container}: the file has {available}")
            }
            Self::NoSuchNewImage { number, available } => {
                write!(f, "no new image {number}: {available} given")
            }
            Self::InputChanged => f.write_str("the file was changed during the edit"),
            Self::HoldsNoBundle { path, format } => {
                write!(
                    f,
                    "{}compressed bundle: expected a bundle inside, found {format}",
                    Prefix(path)
                )
            }
            Self::TextNotAlone { path } => {
                write!(f, "{}a text bundle can only stand alone", Prefix(path))
            }
            Self::Image { number, target, disagreement } => {
                write!(f, "new image {number} is not for {target}: {disagreement}")
            }
            Self::EntryId { index, offset } => write!(
                f,
                "bundle entry ID {index} has a zero byte at {offset}, which a section name cannot hold"
            ),
            Self::EmptyEntryId { index } => write!(
                f,
                "bundle entry ID {index} is empty, which the bundle of a Mach-O object cannot hold"
            ),
            Self::Composition { path, finding } => write!(f, "{}{finding}", Prefix(path)),
            Self::ThinArchive { path } => write!(
                f,
                "{}thin archives cannot be edited; edit the files they reference",
                Prefix(path)
            ),
            Self::CannotAdd { path } => write!(f, "{}no image can be added", Prefix(path)),
            Self::CannotMoveOut { path, why } => {
                write!(f, "{}device code cannot be moved out: {why}", Prefix(path))
            }
            Self::Pack(text) => f.write_str(text),
            Self::Host(error) => error.fmt(f),
            Self::Within { path, error } => write!(f, "{}{error}", Prefix(path)),
        }
    }
}

impl std::error::Error for Problem {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) => Some(error),
            Self::NoWayBack { why } => Some(why),
            Self::Host(error) => std::error::Error::source(error),
            _ => None,
        }
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Problem::Read(error)
    }
}

impl From<Finding> for Problem {
    fn from(finding: Finding) -> Self {
        let (path, location) = (finding.path().to_vec(), finding.location());
        Problem::Damaged { path, location, error: Box::new(finding.error().clone()) }
    }
}

impl From<object_edit::Error> for Problem {
    fn from(error: object_edit::Error) -> Self {
        use object_edit::ErrorKind as Host;
        match (error.kind(), error.unsupported()) {
            (Host::Read, _) => Problem::Read(error.into()),
            (Host::Write, _) => Problem::Write(error.into()),
            (Host::InputChanged, _) => Problem::InputChanged,
            (Host::NoDeviceCode, _) => Problem::NoDeviceCode,
            (Host::NothingLeft, _) => Problem::NothingLeft { path: Vec::new() },
            (_, Some(kind)) => Problem::Unsupported { path: Vec::new(), kind },
            _ => Problem::Host(error),
        }
    }
}

/// Errors of reading and writing come out as they are. Others are inside: as
/// [`InvalidInput`](io::ErrorKind::InvalidInput) if they are about what is wished, not about the file, else as
/// [`InvalidData`](io::ErrorKind::InvalidData) or what an [`object_edit::Error`] comes to.
impl From<Error> for io::Error {
    fn from(Error(problem): Error) -> Self {
        let kind = match problem {
            Problem::Read(error) | Problem::Write(error) => return error,
            Problem::Host(error) => return error.into(),
            Problem::NothingLeft { .. }
            | Problem::NoSuchImage { .. }
            | Problem::NoSuchContainer { .. }
            | Problem::NoSuchNewImage { .. }
            | Problem::IsHost { .. }
            | Problem::Image { .. }
            | Problem::Composition { .. }
            | Problem::EntryId { .. }
            | Problem::EmptyEntryId { .. }
            | Problem::NoArchitecture { .. }
            | Problem::Concatenated { .. }
            | Problem::CannotAdd { .. } => io::ErrorKind::InvalidInput,
            _ => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, Error(problem))
    }
}

/// The place of something, as messages start with it; empty for the file itself.
struct Prefix<'a>(&'a [PathStep]);

impl fmt::Display for Prefix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_path(f, self.0)?;
        f.write_str(if self.0.is_empty() { "" } else { ": " })
    }
}

/// Writes a fault and the place of the container that it is in.
fn write_fault(
    f: &mut fmt::Formatter<'_>,
    path: &[PathStep],
    location: Location,
    error: &dyn fmt::Display,
) -> fmt::Result {
    write_path(f, path)?;
    let space = if path.is_empty() { "" } else { " " };
    write!(f, "{space}at {location}: {error}")
}

/// Writes a path like `section:.hip_fatbin/ccob:1`.
fn write_path(f: &mut fmt::Formatter<'_>, path: &[PathStep]) -> fmt::Result {
    path.iter().enumerate().try_for_each(|(index, segment)| {
        write!(f, "{}{segment}", if index == 0 { "" } else { "/" })
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]
mod tests {
    use super::*;
    use fat_object::{Options, list_slice};

    /// Returns the containers around an image.
    fn path_of_a_bundle() -> Vec<PathStep> {
        let layout = bundle_format::layout([("hip-amdgcn-amd-amdhsa--gfx906", 1)], 1);
        let file = layout.unwrap().to_vec(&[b"x"]).unwrap();
        list_slice(&file, &Options::default()).unwrap().images()[0].path().to_vec()
    }

    #[test]
    fn messages_about_the_whole_file_start_with_the_problem() {
        let path = || Vec::new();
        let finding = bundle_format::composition(["x"]).remove(0);
        for error in [
            Problem::NothingLeft { path: path() },
            Problem::HoldsNoBundle { path: path(), format: FileFormat::Unknown },
            Problem::TextNotAlone { path: path() },
            Problem::Composition { path: path(), finding: Box::new(finding) },
            Problem::CannotAdd { path: path() },
            Problem::CannotMoveOut { path: path(), why: "it is not a bundle" },
            Problem::ThinArchive { path: path() },
            Problem::Unsupported { path: path(), kind: "files of this kind" },
        ] {
            let message = error.to_string();
            assert!(message.starts_with(char::is_alphabetic), "{message}");
        }
        let message = Problem::NothingLeft { path: path_of_a_bundle() }.to_string();
        assert_eq!(message, "bundle:0: no image would be left");
    }

    #[test]
    fn read_errors_get_no_path() {
        let path = path_of_a_bundle();
        let error = Problem::Read(io::ErrorKind::HostUnreachable.into()).within(&path);
        assert!(matches!(error, Problem::Read(_)), "{error}");
        let error = Problem::NoDeviceCode.within(&path);
        assert!(matches!(error, Problem::Within { .. }), "{error}");
    }
}
