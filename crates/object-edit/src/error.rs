//! Why a host file cannot be edited.

use std::io;

use byte_parts::WriteError;

use crate::embed::EmbedError;

/// Why a host file cannot be edited. Nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
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
    /// The file is not what it was when it was surveyed.
    #[error("the file was changed meanwhile")]
    InputChanged,
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
    /// An object that is damaged, or out of which a section cannot be taken.
    #[error(transparent)]
    Object(#[from] EmbedError),
    /// An archive is damaged.
    #[error("at {offset:#x}: malformed archive: {what}")]
    Archive {
        /// Where the archive starts in the file.
        offset: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// An input cannot be read.
    #[error("cannot be read: {0}")]
    Read(#[from] io::Error),
    /// The new file cannot be written.
    #[error("cannot write: {0}")]
    Write(io::Error),
    /// The edit would leave nothing in a container.
    #[error("no image would be left")]
    NothingLeft,
    /// What holds the device code cannot be edited by this crate.
    #[error("{kind} cannot be edited")]
    Unsupported {
        /// What it is, in the plural.
        kind: &'static str,
    },
    /// The file holds no device code.
    #[error("no device code found")]
    NoDeviceCode,
}

impl From<WriteError> for Error {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Read(error) => Error::Read(error),
            WriteError::Write(error) => Error::Write(error),
            _ => Error::InputChanged,
        }
    }
}

/// Errors of reading and writing come out as they are. Others are inside, as
/// [`InvalidData`](io::ErrorKind::InvalidData) or what an [`EmbedError`] comes to.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Read(error) | Error::Write(error) => error,
            Error::Object(error) => error.into(),
            error => io::Error::new(io::ErrorKind::InvalidData, error),
        }
    }
}
