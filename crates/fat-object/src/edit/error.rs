//! Why device code in a file cannot be edited.

use std::{fmt, io};

use crate::embed::EmbedError;
use bundle_format::CompositionFinding;
use target_id::Target;

use crate::agreement::Disagreement;
use crate::error::Error;
use crate::image_format::ImageFormat;
use crate::listing::ListedFinding;
use crate::model::{Location, Segment, write_finding, write_path};

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
        path: Vec<Segment>,
        /// Where the container that the error speaks of starts.
        location: Location,
        /// What is wrong.
        error: Box<Error>,
    },
    /// What holds the device code cannot be edited by this crate.
    #[error("{}{kind} cannot be edited", Prefix(path))]
    Unsupported {
        /// The containers around it, from outside in.
        path: Vec<Segment>,
        /// What it is, in the plural.
        kind: &'static str,
    },
    /// The edit would leave nothing in a container.
    #[error("{}no image would be left", Prefix(path))]
    NothingLeft {
        /// The container, from outside in.
        path: Vec<Segment>,
    },
    /// The device code is elsewhere: the section is `NOBITS`, or the wrappers say so by their magic `HIPK`.
    #[error("device code was moved out of this file ({how})")]
    MovedOut {
        /// By what it is seen.
        how: &'static str,
    },
    /// A linked ELF file without section headers.
    #[error("no section headers: cannot tell what follows the device code")]
    NoSectionHeaders,
    /// An ELF file of a kind that is not edited.
    #[error("unsupported ELF: {what}")]
    UnsupportedElf {
        /// What about it.
        what: &'static str,
    },
    /// The program headers of an ELF file contradict each other or the section headers.
    #[error("inconsistent program headers: {what}")]
    InconsistentSegments {
        /// How.
        what: &'static str,
    },
    /// A table of the file's headers lies beyond its end.
    #[error("{what} lies at {start:#x}..{end:#x}, beyond the end of the file at {available:#x}")]
    BeyondEnd {
        /// The table.
        what: &'static str,
        /// Offset of its first byte.
        start: u64,
        /// Offset of its end.
        end: u64,
        /// Length of the file.
        available: u64,
    },
    /// The pointer of a wrapper leads to something that is no bundle.
    #[error("wrapper {wrapper} at {address:#x}: points to {target:#x}, where no bundle starts")]
    WrapperTarget {
        /// Its position in its section, from 0.
        wrapper: usize,
        /// Its address.
        address: u64,
        /// The address it holds.
        target: u64,
    },
    /// A bundle has to move, and a pointer to it is of a form that is not understood.
    #[error(
        "bundle {bundle} must move, but the relocation at {address:#x} (type {kind}) is not understood"
    )]
    PointerForm {
        /// Its position in the file, from 0.
        bundle: usize,
        /// Where the pointer lies: an address.
        address: u64,
        /// The type of the relocation.
        kind: u32,
    },
    /// A bundle has to move, and something that is no wrapper may refer to it.
    #[error("bundle {bundle} must move, but {address:#x} may refer to it")]
    ForeignReference {
        /// Its position in the file, from 0.
        bundle: usize,
        /// Where the reference lies: an address.
        address: u64,
    },
    /// The compressed file could not be decompressed again.
    #[error("once compressed it could not be decompressed: {why}")]
    NoWayBack {
        /// Why not.
        #[source]
        why: Box<EditError>,
    },
    /// The new device code is larger than its place.
    #[error(
        "needs {needed:#x} bytes, {available:#x} available; it can get a new place if the file may grow"
    )]
    NoRoom {
        /// Bytes of the new device code.
        needed: u64,
        /// Bytes of its place.
        available: u64,
    },
    /// A signature would become invalid.
    #[error("file is signed; the signature would become invalid")]
    Signed,
    /// A PE file needs a further section, and there is no room for its header.
    #[error("no room for another section header")]
    NoRoomForSectionHeader,
    /// The new file, read again, is not what it was to be: a fault of this crate.
    #[error("self-check failed at address {address:#x}: {what}")]
    SelfCheck {
        /// Where the first difference lies.
        address: u64,
        /// What differs.
        what: &'static str,
    },
    /// A section of wrappers does not hold whole ones.
    #[error("wrappers at {address:#x}: {size} bytes, not a multiple of the 24 bytes of a wrapper")]
    WrapperSection {
        /// The address of the section.
        address: u64,
        /// Its bytes in the file.
        size: u64,
    },
    /// A wrapper is no such one as is known.
    #[error(
        "wrapper {wrapper} at {address:#x}: magic {magic:#010x} and version {version}, expected 0x48495046 and 1"
    )]
    WrapperForm {
        /// Its position among all, from 0.
        wrapper: usize,
        /// Its address.
        address: u64,
        /// What it starts with.
        magic: u32,
        /// The version it names.
        version: u32,
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
        path: Vec<Segment>,
        /// What it holds, by its first bytes.
        format: ImageFormat,
    },
    /// A compressed text bundle cannot be decompressed in its place: a text bundle ends with its file, so that
    /// nothing can follow.
    #[error("{}a text bundle can only stand alone", Prefix(path))]
    TextNotAlone {
        /// The compressed bundle, from outside in.
        path: Vec<Segment>,
    },
    /// A PE file of a kind that is not edited.
    #[error("unsupported PE: {what}")]
    UnsupportedPe {
        /// What about it.
        what: &'static str,
    },
    /// The section headers of a PE file contradict each other or what else the file says.
    #[error("inconsistent section headers: {what}")]
    InconsistentSections {
        /// How.
        what: &'static str,
    },
    /// Between device code lies something that is neither device code nor zeros.
    #[error("unknown bytes at {offset:#x}, between device code")]
    UnknownBytes {
        /// Offset in the file.
        offset: u64,
    },
    /// A bundle has to move, and nothing is known to refer to it, so that nothing could follow.
    #[error("bundle {bundle} must move, but no wrapper leads to it")]
    NoWrapper {
        /// Its position in the file, from 0.
        bundle: usize,
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
        path: Vec<Segment>,
        /// What is wrong. Entries are numbered as they would be.
        finding: Box<CompositionFinding>,
    },
    /// The members of a thin archive are files of their own.
    #[error("{}thin archives cannot be edited, but the files that they name", Prefix(path))]
    ThinArchive {
        /// The archive, from outside in.
        path: Vec<Segment>,
    },
    /// The container can hold no further image: a section that is one itself.
    #[error("{}no image can be added", Prefix(path))]
    CannotAdd {
        /// The container, from outside in.
        path: Vec<Segment>,
    },
    /// A file in the edited one cannot be edited: a member of an archive.
    #[error("{}{error}", Prefix(path))]
    Within {
        /// Where it lies, from outside in.
        path: Vec<Segment>,
        /// Why.
        error: Box<EditError>,
    },
    /// An object that is damaged, or out of which a section cannot be taken.
    #[error(transparent)]
    Object(#[from] EmbedError),
    /// Parts of an object share bytes, and some of them would change or move.
    #[error("parts of the object at {start:#x}..{end:#x} share bytes with others")]
    SharedBytes {
        /// Offset of the first byte in the object.
        start: u64,
        /// Offset of the end.
        end: u64,
    },
    /// A relocation of an object is at a place that its section does not have.
    #[error("relocation {index} of section {section} applies to {place:#x}, where nothing is")]
    RelocationPlace {
        /// The number of the section, from 0 in ELF and from 1 in COFF.
        section: u64,
        /// Which of its relocations, from 0.
        index: u64,
        /// The offset in the section.
        place: u64,
    },
    /// A field of an archive has too few digits or bits.
    #[error("{what} would be {value}, and the archive has room for no more than {limit}")]
    ArchiveField {
        /// Which field, with what it is for.
        what: &'static str,
        /// What it would hold.
        value: u64,
        /// The largest value.
        limit: u64,
    },
    /// A linked ELF file needs a further program header, and what lies behind them cannot move.
    #[error("no room for another program header")]
    NoRoomForProgramHeader,
}

impl From<ListedFinding> for EditError {
    fn from(finding: ListedFinding) -> Self {
        let (path, location) = (finding.path().to_vec(), finding.location());
        EditError::Damaged { path, location, error: Box::new(finding.error().clone()) }
    }
}

impl EditError {
    /// The error, of the file in this place.
    pub(crate) fn within(self, path: &[Segment]) -> Self {
        match (path, &self) {
            // It says nothing about what is there.
            ([], _) | (_, EditError::Read(_) | EditError::Write(_)) => self,
            _ => EditError::Within { path: path.to_vec(), error: Box::new(self) },
        }
    }
}

/// The place of something, as messages start with it; empty for the file itself.
struct Prefix<'a>(&'a [Segment]);

impl fmt::Display for Prefix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_path(f, self.0)?;
        f.write_str(if self.0.is_empty() { "" } else { ": " })
    }
}

/// A finding of the walk.
struct Found<'a>(&'a [Segment], Location, &'a Error);

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_finding(f, self.0, self.1, self.2)
    }
}

/// Errors of reading and writing come out as they are. Others are inside: as
/// [`InvalidInput`](io::ErrorKind::InvalidInput) if they are about what is wished, not about the file, else as
/// [`InvalidData`](io::ErrorKind::InvalidData) or what an [`EmbedError`] comes to.
impl From<EditError> for io::Error {
    fn from(error: EditError) -> Self {
        let kind = match error {
            EditError::Read(error) | EditError::Write(error) => return error,
            EditError::Object(error) => return error.into(),
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
mod tests {
    use super::*;
    use crate::model::ContainerKind;

    #[test]
    fn messages_about_the_file_itself_start_with_what_is_wrong() {
        let path = || Vec::new();
        let finding = bundle_format::composition(["x"]).remove(0);
        for error in [
            EditError::NothingLeft { path: path() },
            EditError::HoldsNoBundle { path: path(), format: ImageFormat::Unknown },
            EditError::TextNotAlone { path: path() },
            EditError::Composition { path: path(), finding: Box::new(finding) },
            EditError::CannotAdd { path: path() },
            EditError::ThinArchive { path: path() },
            EditError::Unsupported { path: path(), kind: "files of this kind" },
        ] {
            let message = error.to_string();
            assert!(message.starts_with(char::is_alphabetic), "{message}");
        }
        let path = vec![Segment::new(ContainerKind::Bundle, "1")];
        let message = EditError::NothingLeft { path }.to_string();
        assert_eq!(message, "bundle:1: no image would be left");
    }

    #[test]
    fn errors_of_reading_are_that_wherever_they_come_from() {
        let path = [Segment::new(ContainerKind::Member, "a.o")];
        let error = EditError::Read(io::ErrorKind::HostUnreachable.into()).within(&path);
        assert!(matches!(error, EditError::Read(_)), "{error}");
        let error = EditError::NoSectionHeaders.within(&path);
        assert!(matches!(error, EditError::Within { .. }), "{error}");
    }
}
