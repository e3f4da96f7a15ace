//! Why device code in a file cannot be edited.

use std::{fmt, io};

use bundle_format::CompositionFinding;
use fat_object::{Disagreement, Error, FileFormat, Finding, Location, PathStep};
use target_id::Target;

/// Why an edit is refused. Nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// An input cannot be read.
    #[error("cannot be read: {0}")]
    Read(#[from] io::Error),
    /// The new file cannot be written.
    #[error("cannot write: {0}")]
    Write(io::Error),
    /// The file holds no device code.
    #[error("no device code found")]
    NoDeviceCode,
    /// The file holds device code, but no bundle and no package that could be compressed or decompressed.
    #[error("no bundle and no offload binary found")]
    NoBundle,
    /// A part of the file is damaged. Files that do not verify are not edited.
    #[error("{}", Found(path, *location, error))]
    Damaged {
        /// The containers around it, from outside in.
        path: Vec<PathStep>,
        /// Where the container that the error speaks of starts.
        location: Location,
        /// What is wrong.
        error: Box<Error>,
    },
    /// What holds the device code cannot be edited by this crate.
    #[error("{}{kind} cannot be edited", Prefix(path))]
    Unsupported {
        /// The containers around it, from outside in.
        path: Vec<PathStep>,
        /// What it is, in the plural.
        kind: &'static str,
    },
    /// The edit would leave nothing in a container.
    #[error("{}no image would be left", Prefix(path))]
    NothingLeft {
        /// The container, from outside in.
        path: Vec<PathStep>,
    },
    /// The compressed file could not be decompressed again.
    #[error("once compressed it could not be decompressed: {why}")]
    NoWayBack {
        /// Why not.
        #[source]
        why: Box<EditError>,
    },
    /// The edit speaks of an image that the file does not have.
    #[error("no image {index}: the file has {available}")]
    NoSuchImage {
        /// The index.
        index: usize,
        /// How many there are.
        available: usize,
    },
    /// The edit removes the host's entry of a bundle, which has to be allowed:
    /// [`EditOptions::remove_host`](crate::EditOptions::remove_host).
    #[error("image {index} is the host's, which is not removed with those for devices")]
    IsHost {
        /// The index.
        index: usize,
    },
    /// The edit speaks of a container that the file does not have.
    #[error("no container {container}: the file has {available}")]
    NoSuchContainer {
        /// The index.
        container: usize,
        /// How many there are.
        available: usize,
    },
    /// The edit speaks of a new image that was not given.
    #[error("no new image {number}: {available} given")]
    NoSuchNewImage {
        /// Its number.
        number: usize,
        /// How many were given.
        available: usize,
    },
    /// The file is not what it was when it was surveyed.
    #[error("the file was changed meanwhile")]
    InputChanged,
    /// A compressed bundle holds something that is no bundle, and cannot be replaced by it.
    #[error("{}the compressed bundle holds no bundle, but {format}", Prefix(path))]
    HoldsNoBundle {
        /// The compressed bundle, from outside in.
        path: Vec<PathStep>,
        /// What it holds, by its first bytes.
        format: FileFormat,
    },
    /// A compressed text bundle cannot be decompressed in its place: a text bundle ends with its file, so that
    /// nothing can follow.
    #[error("{}a text bundle can only stand alone", Prefix(path))]
    TextNotAlone {
        /// The compressed bundle, from outside in.
        path: Vec<PathStep>,
    },
    /// A new image is for another target than its entry says.
    #[error("new image {number} is not for {target}: {disagreement}")]
    Image {
        /// Its number.
        number: usize,
        /// What the entry says, or is to say.
        target: Box<Target>,
        /// What the image says.
        disagreement: Box<Disagreement>,
    },
    /// An entry cannot be added: its ID cannot be read, or another entry is for the same target.
    #[error("{}{finding}", Prefix(path))]
    Composition {
        /// The container, from outside in.
        path: Vec<PathStep>,
        /// What is wrong. Entries are numbered as they would be.
        finding: Box<CompositionFinding>,
    },
    /// The members of a thin archive are files of their own.
    #[error("{}thin archives cannot be edited, but the files that they name", Prefix(path))]
    ThinArchive {
        /// The archive, from outside in.
        path: Vec<PathStep>,
    },
    /// The container can hold no further image: a section that is one itself.
    #[error("{}no image can be added", Prefix(path))]
    CannotAdd {
        /// The container, from outside in.
        path: Vec<PathStep>,
    },
    /// The host file does not allow it, or is damaged.
    #[error(transparent)]
    Host(object_edit::Error),
    /// A file in the edited one cannot be edited: a member of an archive.
    #[error("{}{error}", Prefix(path))]
    Within {
        /// Where it lies, from outside in.
        path: Vec<PathStep>,
        /// Why.
        error: Box<EditError>,
    },
}

impl From<Finding> for EditError {
    fn from(finding: Finding) -> Self {
        let (path, location) = (finding.path().to_vec(), finding.location());
        EditError::Damaged { path, location, error: Box::new(finding.error().clone()) }
    }
}

impl EditError {
    /// The error, of the file in this place.
    pub(crate) fn within(self, path: &[PathStep]) -> Self {
        match (path, &self) {
            // It says nothing about what is there.
            ([], _) | (_, EditError::Read(_) | EditError::Write(_)) => self,
            _ => EditError::Within { path: path.to_vec(), error: Box::new(self) },
        }
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

/// A finding of the walk.
struct Found<'a>(&'a [PathStep], Location, &'a Error);

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_path(f, self.0)?;
        let space = if self.0.is_empty() { "" } else { " " };
        write!(f, "{space}at {}: {}", self.1, self.2)
    }
}

/// `section:.hip_fatbin/ccob:1`
fn write_path(f: &mut fmt::Formatter<'_>, path: &[PathStep]) -> fmt::Result {
    path.iter().enumerate().try_for_each(|(index, segment)| {
        write!(f, "{}{segment}", if index == 0 { "" } else { "/" })
    })
}

impl From<object_edit::Error> for EditError {
    fn from(error: object_edit::Error) -> Self {
        use object_edit::Error as Host;
        match error {
            Host::Read(error) => EditError::Read(error),
            Host::Write(error) => EditError::Write(error),
            Host::InputChanged => EditError::InputChanged,
            Host::NoDeviceCode => EditError::NoDeviceCode,
            Host::NothingLeft => EditError::NothingLeft { path: Vec::new() },
            Host::Unsupported { kind } => EditError::Unsupported { path: Vec::new(), kind },
            error => EditError::Host(error),
        }
    }
}

/// Errors of reading and writing come out as they are. Others are inside: as
/// [`InvalidInput`](io::ErrorKind::InvalidInput) if they are about what is wished, not about the file, else as
/// [`InvalidData`](io::ErrorKind::InvalidData) or what an [`object_edit::Error`] comes to.
impl From<EditError> for io::Error {
    fn from(error: EditError) -> Self {
        let kind = match error {
            EditError::Read(error) | EditError::Write(error) => return error,
            EditError::Host(error) => return error.into(),
            EditError::NothingLeft { .. }
            | EditError::NoSuchImage { .. }
            | EditError::NoSuchContainer { .. }
            | EditError::NoSuchNewImage { .. }
            | EditError::IsHost { .. }
            | EditError::Image { .. }
            | EditError::Composition { .. }
            | EditError::CannotAdd { .. } => io::ErrorKind::InvalidInput,
            _ => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, error)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test says no")]
mod tests {
    use super::*;
    use fat_object::{Options, list_slice};

    /// The containers around an image.
    fn path_of_a_bundle() -> Vec<PathStep> {
        let layout = bundle_format::Layout::new([("hip-amdgcn-amd-amdhsa--gfx906", 1)], 1);
        let file = layout.unwrap().to_vec(&[b"x"]).unwrap();
        list_slice(&file, &Options::default()).unwrap().images()[0].path().to_vec()
    }

    #[test]
    fn messages_about_the_file_itself_start_with_what_is_wrong() {
        let path = || Vec::new();
        let finding = bundle_format::composition(["x"]).remove(0);
        for error in [
            EditError::NothingLeft { path: path() },
            EditError::HoldsNoBundle { path: path(), format: FileFormat::Unknown },
            EditError::TextNotAlone { path: path() },
            EditError::Composition { path: path(), finding: Box::new(finding) },
            EditError::CannotAdd { path: path() },
            EditError::ThinArchive { path: path() },
            EditError::Unsupported { path: path(), kind: "files of this kind" },
        ] {
            let message = error.to_string();
            assert!(message.starts_with(char::is_alphabetic), "{message}");
        }
        let message = EditError::NothingLeft { path: path_of_a_bundle() }.to_string();
        assert_eq!(message, "bundle:0: no image would be left");
    }

    #[test]
    fn errors_of_reading_are_that_wherever_they_come_from() {
        let path = path_of_a_bundle();
        let error = EditError::Read(io::ErrorKind::HostUnreachable.into()).within(&path);
        assert!(matches!(error, EditError::Read(_)), "{error}");
        let error = EditError::Host(object_edit::Error::NoSectionHeaders).within(&path);
        assert!(matches!(error, EditError::Within { .. }), "{error}");
    }
}
