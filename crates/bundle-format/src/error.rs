//! What can be wrong with a bundle, read or to be written.

use alloc::boxed::Box;
use alloc::string::String;
use core::str::Utf8Error;

use crate::text::Leader;
use crate::to_u64;
use crate::wire::HEADER_LEN;

/// What is wrong with a bundle, and where.
///
/// Offsets are in bytes from the start of the bundle (of the text, for a text bundle), except in
/// [`InBundle`](Self::InBundle) and [`TrailingData`](Self::TrailingData), which count from the
/// start of the data given to [`bundles`](crate::binary::bundles), and where it is said that they count from the start of
/// an ID or a payload. Entries are numbered from 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The prefix ends before the descriptors do. Not a fault of the bundle: read at least
    /// `needed` bytes and parse again.
    #[error("bundle needs its first {needed:#x} bytes to be in memory")]
    Incomplete {
        /// How many bytes from the start of the bundle to have in memory.
        needed: u64,
    },

    /// The data does not start with [`MAGIC`](crate::binary::MAGIC), nor, if there are fewer bytes, with as much of it.
    #[error("bundle does not start with the magic \"{}\"", crate::MAGIC_TEXT)]
    BadMagic,

    /// There are too few bytes for a header.
    #[error("bundle header needs {HEADER_LEN} bytes, but only {available} are there")]
    TruncatedHeader {
        /// Bytes there are.
        available: u64,
    },

    /// There is no room for as many descriptors as the header counts.
    #[error("bundle has {count} entries, too many for the {available:#x} bytes of the container")]
    TooManyEntries {
        /// The number of entries in the header.
        count: u64,
        /// Bytes there are.
        available: u64,
    },

    /// A descriptor reaches beyond the end of the container.
    #[error(
        "bundle entry {entry} has its descriptor at {offset:#x}, \
         beyond the end of the container at {available:#x}"
    )]
    TruncatedDescriptor {
        /// Which entry.
        entry: u64,
        /// Where its descriptor starts.
        offset: u64,
        /// Bytes there are.
        available: u64,
    },

    /// An entry has an ID without any characters.
    #[error("bundle entry {entry} at {offset:#x} has an empty ID")]
    EmptyId {
        /// Which entry.
        entry: u64,
        /// Where its descriptor, or its marker line in a text bundle, starts.
        offset: u64,
    },

    /// An ID reaches beyond the end of the container.
    #[error(
        "bundle entry {entry} has an ID of {len:#x} bytes at {offset:#x}, \
         beyond the end of the container at {available:#x}"
    )]
    IdBeyondEnd {
        /// Which entry.
        entry: u64,
        /// Where the ID starts.
        offset: u64,
        /// The ID length field.
        len: u64,
        /// Bytes there are.
        available: u64,
    },

    /// A code object reaches beyond the end of the container.
    #[error(
        "bundle entry {entry} lies at {offset:#x}..{:#x}, \
         beyond the end of the container at {available:#x}",
        u128::from(*.offset) + u128::from(*.size)
    )]
    EntryBeyondEnd {
        /// Which entry.
        entry: u64,
        /// The offset field.
        offset: u64,
        /// The size field.
        size: u64,
        /// Bytes there are.
        available: u64,
    },

    /// A code object that is not empty starts before the descriptors end.
    #[error(
        "bundle entry {entry} lies at {offset:#x}, \
         inside the descriptors, which end at {header_len:#x}"
    )]
    EntryInsideDescriptors {
        /// Which entry.
        entry: u64,
        /// The offset field.
        offset: u64,
        /// Where the descriptors end.
        header_len: u64,
    },

    /// Two code objects share bytes.
    #[error("bundle entries {first} and {second} overlap at {offset:#x}")]
    EntriesOverlap {
        /// The entry that starts first.
        first: u64,
        /// The entry that starts inside it.
        second: u64,
        /// Where the second entry starts.
        offset: u64,
    },

    /// One of several bundles is damaged.
    #[error("at offset {offset:#x}: {error}")]
    InBundle {
        /// Where the bundle starts, from the start of the data.
        offset: u64,
        /// What is wrong with it.
        error: Box<Error>,
    },

    /// Neither zeros nor another bundle follow a bundle, or zeros. Where there is nothing before, that is
    /// [`BadMagic`](Self::BadMagic).
    #[error("data at offset {offset:#x} is neither a bundle nor zero padding")]
    TrailingData {
        /// Where, from the start of the data.
        offset: u64,
    },

    /// The bytes of an ID are not UTF-8.
    #[error("bundle entry {entry} has an ID that is not utf-8 from its byte {offset} on")]
    IdNotUtf8 {
        /// Which entry.
        entry: u64,
        /// Where the first byte is that is not, from the start of the ID.
        offset: u64,
    },

    /// An ID has too few fields.
    #[error(
        "bundle entry ID {id:?} has {fields} fields between its \"-\", expected \
         \"<kind>-<arch>-<vendor>-<os>-<environment>\" with or without \"-<target id>\""
    )]
    IdFields {
        /// The ID.
        id: String,
        /// How many fields it has.
        fields: usize,
    },

    /// An ID has a control character, which no compiler writes, see [`composition`](crate::composition()).
    #[error("bundle entry ID {id:?} has a control character at its byte {offset}")]
    IdControl {
        /// The ID.
        id: String,
        /// Where, from the start of the ID.
        offset: usize,
    },

    /// An ID is longer than those that are compared, see [`composition`](crate::composition()).
    #[error("bundle entry ID has {len} bytes, expected {max} at most")]
    IdTooLong {
        /// Its length in bytes.
        len: usize,
        /// The longest that is compared.
        max: usize,
    },

    /// No line is a marker of a text bundle.
    #[error("text bundle has no line \"<comment> {}\"", crate::text::START)]
    NoMarkers,

    /// The markers are behind the comment leader of another kind of file.
    #[error(
        "text bundle has markers behind \"{}\" from offset {offset:#x} on, expected \"{}\"",
        .found.as_str(), .expected.as_str()
    )]
    WrongLeader {
        /// Where the first such line starts.
        offset: u64,
        /// The leader in the file.
        found: Leader,
        /// The leader asked for.
        expected: Leader,
    },

    /// A start marker is not ended by a newline.
    #[error("text bundle entry {entry} at {offset:#x} has a start marker without newline")]
    StartWithoutNewline {
        /// Which entry.
        entry: u64,
        /// Where the marker line starts.
        offset: u64,
    },

    /// An entry has no end marker.
    #[error("text bundle entry {entry} at {offset:#x} has no end marker")]
    MissingEnd {
        /// Which entry.
        entry: u64,
        /// Where the line of its start marker starts.
        offset: u64,
    },

    /// The end marker of an entry has another ID than its start marker.
    #[error(
        "text bundle entry {entry} starts with the ID {start:?}, \
         but ends at {offset:#x} with the ID {end:?}"
    )]
    EndMismatch {
        /// Which entry.
        entry: u64,
        /// Where the line of the end marker starts.
        offset: u64,
        /// The ID of the start marker, bytes that are not UTF-8 replaced.
        start: String,
        /// The ID of the end marker, bytes that are not UTF-8 replaced.
        end: String,
    },

    /// There is an end marker without a start marker. Without any start marker, the text may be
    /// of the form that [`EndMarkedBundle`](crate::text::EndMarkedBundle) reads.
    #[error("text bundle has an end marker at {offset:#x} without a start marker")]
    EndWithoutStart {
        /// Where the line of the marker starts.
        offset: u64,
    },

    /// No line is a marker of a text bundle with end markers only.
    #[error("text bundle has no line \"<comment> {}\"", crate::text::END)]
    NoEndMarkers,

    /// A text bundle that should have end markers only has a start marker: it is of today's form.
    #[error("text bundle with end markers only has a start marker at {offset:#x}")]
    StartMarker {
        /// Where the line of the marker starts.
        offset: u64,
    },

    /// In a text bundle with end markers only, something follows the last marker.
    #[error("text bundle entry {entry} at {offset:#x} lies behind the last end marker")]
    PayloadWithoutEnd {
        /// Which entry it would be.
        entry: u64,
        /// Where it starts.
        offset: u64,
    },

    /// A layout cannot have alignment 0.
    #[error("bundle alignment is 0, expected at least 1")]
    ZeroAlignment,

    /// The bundle would be longer than 64 bits can say.
    #[error("bundle entry {entry} would end beyond the largest offset")]
    OffsetOverflow {
        /// Which entry.
        entry: u64,
    },

    /// The bundle does not fit into memory.
    #[error("bundle of {size:#x} bytes does not fit into memory")]
    OutOfMemory {
        /// Its size in bytes.
        size: u64,
    },

    /// There are more or fewer contents than entries.
    #[error("bundle has {expected} entries, but contents for {found}")]
    PayloadCount {
        /// Number of entries.
        expected: u64,
        /// Number of contents, or one more than `expected` when there are more.
        found: u64,
    },

    /// The content of an entry is not as long as the layout says.
    #[error("bundle entry {entry} has content of {found} bytes, expected {expected}")]
    PayloadSize {
        /// Which entry.
        entry: u64,
        /// The size in the layout.
        expected: u64,
        /// Bytes there are, or one more than `expected` when there are more.
        found: u64,
    },

    /// The content of an entry of a text bundle has a line that is a marker.
    #[error("text bundle entry {entry} has a marker line in its content at {offset:#x}")]
    MarkerInPayload {
        /// Which entry.
        entry: u64,
        /// Where the line starts, from the start of the content.
        offset: u64,
    },

    /// The ID of an entry of a text bundle has a line break.
    #[error("text bundle entry {entry} has an ID with a line break at byte {offset}")]
    LineBreakInId {
        /// Which entry.
        entry: u64,
        /// Where, from the start of the ID.
        offset: u64,
    },
}

impl Error {
    /// Whether the data is something else than a bundle, as its first bytes show: [`BadMagic`](Self::BadMagic), also
    /// inside [`InBundle`](Self::InBundle). Text has no magic; there it is [`NoMarkers`](Self::NoMarkers) and
    /// [`NoEndMarkers`](Self::NoEndMarkers).
    ///
    /// Data that ends inside the magic, but is right so far, is truncated instead. Not
    /// [`TrailingData`](Self::TrailingData): there, other things follow what has been read.
    #[must_use]
    pub fn is_bad_magic(&self) -> bool {
        matches!(self.innermost(), Self::BadMagic | Self::NoMarkers | Self::NoEndMarkers)
    }

    /// Whether the data ends before the bundle does, so that more of it may be all that is missing:
    /// [`TruncatedHeader`](Self::TruncatedHeader), [`TooManyEntries`](Self::TooManyEntries),
    /// [`TruncatedDescriptor`](Self::TruncatedDescriptor), [`IdBeyondEnd`](Self::IdBeyondEnd) and
    /// [`EntryBeyondEnd`](Self::EntryBeyondEnd), also inside [`InBundle`](Self::InBundle). Every truncation of a binary
    /// bundle gives one of them; a damaged offset or size looks the same.
    ///
    /// Of text [`StartWithoutNewline`](Self::StartWithoutNewline), [`MissingEnd`](Self::MissingEnd) and
    /// [`PayloadWithoutEnd`](Self::PayloadWithoutEnd). Text that ends inside a marker line may well be a bundle, or
    /// have another fault.
    ///
    /// Not [`Incomplete`](Self::Incomplete), which is about what is in memory: see [`needed`](Self::needed).
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        matches!(
            self.innermost(),
            Self::TruncatedHeader { .. }
                | Self::TooManyEntries { .. }
                | Self::TruncatedDescriptor { .. }
                | Self::IdBeyondEnd { .. }
                | Self::EntryBeyondEnd { .. }
                | Self::StartWithoutNewline { .. }
                | Self::MissingEnd { .. }
                | Self::PayloadWithoutEnd { .. }
        )
    }

    fn innermost(&self) -> &Self {
        let mut error = self;
        while let Self::InBundle { error: inner, .. } = error {
            error = inner;
        }
        error
    }

    pub(crate) fn id_not_utf8(index: usize, error: &Utf8Error) -> Self {
        Self::IdNotUtf8 { entry: to_u64(index), offset: to_u64(error.valid_up_to()) }
    }

    /// How many bytes from the start of the bundle to have in memory, when that is all that is
    /// missing.
    #[must_use]
    pub fn needed(&self) -> Option<u64> {
        match self {
            Self::Incomplete { needed } => Some(*needed),
            _ => None,
        }
    }
}

/// The inputs are contents of entries.
impl From<byte_parts::Error> for Error {
    fn from(error: byte_parts::Error) -> Self {
        use byte_parts::Error::{InputCount, InputSize, OutOfMemory};

        match error {
            InputCount { expected, found } => Error::PayloadCount { expected, found },
            InputSize { input, expected, found } => {
                Error::PayloadSize { entry: to_u64(input), expected, found }
            }
            OutOfMemory { size } => Error::OutOfMemory { size },
        }
    }
}

/// [`InvalidInput`](std::io::ErrorKind::InvalidInput) if it is about what was to be written,
/// [`OutOfMemory`](std::io::ErrorKind::OutOfMemory), and else [`InvalidData`](std::io::ErrorKind::InvalidData). The error
/// itself is inside.
#[cfg(feature = "std")]
impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        use std::io::ErrorKind;

        let kind = match error {
            Error::ZeroAlignment
            | Error::OffsetOverflow { .. }
            | Error::PayloadCount { .. }
            | Error::PayloadSize { .. }
            | Error::MarkerInPayload { .. }
            | Error::LineBreakInId { .. } => ErrorKind::InvalidInput,
            Error::OutOfMemory { .. } => ErrorKind::OutOfMemory,
            _ => ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}
