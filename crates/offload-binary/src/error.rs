//! Errors of reading and writing offload binaries.

use alloc::boxed::Box;
use core::fmt;

use crate::compressed_header::CompressedBinary;
use crate::wire::{FormatVersion, HEADER_V3_LEN, MAX_STRING_BYTES};

/// An error in an offload binary, read or to be written, with its place.
///
/// The text says what is wrong, where, and what was expected; [`kind`](Self::kind) and the other functions are for
/// programs. Offsets in the text are in bytes from the start of the binary (its magic), unless it says otherwise. Entries and
/// strings are numbered from 0.
#[derive(Debug)]
pub struct Error(Problem);

/// Kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The data is something else than an offload binary: it does not start with [`MAGIC`](crate::MAGIC), nor, if there
    /// are fewer bytes, with as much of it.
    NotABinary,
    /// The prefix in memory ends before a table or string that lies inside the binary. Not a fault of the binary: read at
    /// least as many bytes as [`Error::needed`] says and parse again.
    Incomplete,
    /// The data ends before the binary does, so that more of it may be all that is missing. Every truncation of a binary
    /// gives this kind; a damaged size looks the same.
    Truncated,
    /// The version is not 1, 2 or 3, or not one that the caller supports.
    Version,
    /// The binary is compressed, so that its entries cannot be read before it is inflated. Not a fault of the binary:
    /// inflate its [stream](CompressedBinary::stream), and parse what [`CompressedBinary::plain_header`] and the inflated
    /// bytes make. [`Error::compressed`] describes it.
    Compressed,
    /// The stream of a compressed binary is empty.
    EmptyStream,
    /// A size, table, string or image does not lie where it can, or overlaps another.
    Malformed,
    /// Neither zeros nor another binary follow a binary, or zeros.
    TrailingData,
    /// A key to be written, or in version 1 a value, holds a NUL, which would end it.
    Nul,
    /// The keys and values to be written have more than 64 MiB, or the output
    /// would be longer than 64 bits can say.
    Limit,
    /// The images to be written are not as many as the entries, or not as long as was laid out, or the output does not
    /// fit into memory.
    Output,
}

impl Error {
    /// Returns the kind of the error.
    ///
    /// ```
    /// use offload_binary::{ErrorKind, OffloadBinary};
    ///
    /// let error = OffloadBinary::parse(b"\x10\xff\x10\xad").unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Truncated);
    /// assert_eq!(error.to_string(), "offload binary header needs 32 bytes, but only 4 are left");
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match &self.0 {
            Problem::SizeTooSmall { size: HEADER_V3_LEN, minimum }
                if *minimum == HEADER_V3_LEN + 1 =>
            {
                ErrorKind::EmptyStream
            }
            Problem::InBinary { error, .. } => error.kind(),
            Problem::Incomplete { .. } => ErrorKind::Incomplete,
            Problem::TruncatedHeader { .. } | Problem::SizeBeyondEnd { .. } => ErrorKind::Truncated,
            Problem::BadMagic { .. } => ErrorKind::NotABinary,
            Problem::UnsupportedVersion { .. } => ErrorKind::Version,
            Problem::SizeTooSmall { .. }
            | Problem::SizeNotMultipleOf8 { .. }
            | Problem::EntriesInsideHeader { .. }
            | Problem::CompressedEntriesOffset { .. }
            | Problem::InflatedSizeTooSmall { .. }
            | Problem::InflatedSizeNotMultipleOf8 { .. }
            | Problem::EntriesBeyondEnd { .. }
            | Problem::EntrySizeBeyondEnd { .. }
            | Problem::StringEntriesBeyondEnd { .. }
            | Problem::StringEntriesOverlap { .. }
            | Problem::KeyBeyondEnd { .. }
            | Problem::KeyNotTerminated { .. }
            | Problem::ValueBeyondEnd { .. }
            | Problem::ValueNotTerminated { .. }
            | Problem::StringOverlap { .. }
            | Problem::ImageBeyondEnd { .. }
            | Problem::ImageOverlapsTables { .. }
            | Problem::ImagesOverlap { .. } => ErrorKind::Malformed,
            Problem::Compressed { .. } => ErrorKind::Compressed,
            Problem::TrailingData { .. } => ErrorKind::TrailingData,
            Problem::KeyHasNul { .. } | Problem::ValueHasNul { .. } => ErrorKind::Nul,
            Problem::TooManyStringBytes | Problem::OffsetOverflow { .. } => ErrorKind::Limit,
            Problem::Output(_) => ErrorKind::Output,
        }
    }

    /// Returns the place of the fault, in bytes from the start of the data that was read. `None` if the fault has no single
    /// place there.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        match &self.0 {
            Problem::InBinary { offset, error } => {
                Some(offset.saturating_add(error.offset().unwrap_or_default()))
            }
            Problem::BadMagic { .. }
            | Problem::TruncatedHeader { .. }
            | Problem::UnsupportedVersion { .. }
            | Problem::SizeTooSmall { .. }
            | Problem::SizeNotMultipleOf8 { .. }
            | Problem::SizeBeyondEnd { .. }
            | Problem::InflatedSizeTooSmall { .. }
            | Problem::InflatedSizeNotMultipleOf8 { .. } => Some(0),
            Problem::EntriesInsideHeader { offset, .. }
            | Problem::CompressedEntriesOffset { offset, .. }
            | Problem::EntriesBeyondEnd { offset, .. }
            | Problem::EntrySizeBeyondEnd { offset, .. }
            | Problem::StringEntriesBeyondEnd { offset, .. }
            | Problem::StringEntriesOverlap { offset, .. }
            | Problem::KeyBeyondEnd { offset, .. }
            | Problem::KeyNotTerminated { offset, .. }
            | Problem::ValueBeyondEnd { offset, .. }
            | Problem::ValueNotTerminated { offset, .. }
            | Problem::StringOverlap { offset, .. }
            | Problem::ImageBeyondEnd { offset, .. }
            | Problem::ImageOverlapsTables { offset, .. }
            | Problem::ImagesOverlap { offset, .. }
            | Problem::TrailingData { offset, .. } => Some(*offset),
            Problem::Incomplete { .. }
            | Problem::Compressed { .. }
            | Problem::KeyHasNul { .. }
            | Problem::ValueHasNul { .. }
            | Problem::TooManyStringBytes
            | Problem::OffsetOverflow { .. }
            | Problem::Output(_) => None,
        }
    }

    /// Returns the entry at fault, from 0; of two whose images overlap the one that starts later.
    #[must_use]
    pub fn entry(&self) -> Option<u64> {
        match &self.0 {
            Problem::InBinary { error, .. } => error.entry(),
            Problem::Output(byte_parts::Error::InputSize { input, .. }) => {
                Some(crate::to_u64(*input))
            }
            Problem::ImagesOverlap { second: entry, .. }
            | Problem::StringEntriesBeyondEnd { entry, .. }
            | Problem::StringEntriesOverlap { entry, .. }
            | Problem::KeyBeyondEnd { entry, .. }
            | Problem::KeyNotTerminated { entry, .. }
            | Problem::ValueBeyondEnd { entry, .. }
            | Problem::ValueNotTerminated { entry, .. }
            | Problem::StringOverlap { entry, .. }
            | Problem::ImageBeyondEnd { entry, .. }
            | Problem::ImageOverlapsTables { entry, .. }
            | Problem::KeyHasNul { entry, .. }
            | Problem::ValueHasNul { entry, .. }
            | Problem::OffsetOverflow { entry, .. } => Some(*entry),
            _ => None,
        }
    }

    /// Returns how many bytes from the start of the binary must at least be in memory, when that is all that is missing.
    #[must_use]
    pub fn needed(&self) -> Option<u64> {
        match self.0 {
            Problem::Incomplete { needed } => Some(needed),
            _ => None,
        }
    }

    /// Returns how many bytes there are of a binary that ends too early ([`ErrorKind::Truncated`]).
    #[must_use]
    pub fn available(&self) -> Option<u64> {
        match &self.0 {
            Problem::InBinary { error, .. } => error.available(),
            Problem::TruncatedHeader { available, .. }
            | Problem::SizeBeyondEnd { available, .. } => Some(*available),
            _ => None,
        }
    }

    /// Returns the compressed binary as its header describes it, when the only trouble is that it is compressed.
    #[must_use]
    pub fn compressed(&self) -> Option<&CompressedBinary> {
        match &self.0 {
            Problem::Compressed { binary } => Some(binary),
            _ => None,
        }
    }

    /// Returns the error for a version that the caller cannot make use of.
    #[must_use]
    pub fn unsupported_version(version: FormatVersion) -> Self {
        Problem::UnsupportedVersion { version: version.number() }.into()
    }

    /// Returns the error of a binary that starts at an offset of the data, of which those before could be read.
    pub(crate) fn in_binary(self, offset: u64) -> Self {
        match self.0 {
            Problem::BadMagic { .. } if offset > 0 => Problem::TrailingData { offset }.into(),
            Problem::BadMagic { .. } => self,
            _ => Problem::InBinary { offset, error: Box::new(self) }.into(),
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

impl core::error::Error for Error {}

/// One fault, with all that its text says.
#[derive(Debug)]
pub(crate) enum Problem {
    Incomplete { needed: u64 },
    TruncatedHeader { needed: u64, available: u64 },
    BadMagic { found: [u8; 4] },
    UnsupportedVersion { version: u32 },
    SizeTooSmall { size: u64, minimum: u64 },
    SizeNotMultipleOf8 { size: u64 },
    SizeBeyondEnd { size: u64, available: u64 },
    EntriesInsideHeader { version: FormatVersion, offset: u64 },
    Compressed { binary: CompressedBinary },
    CompressedEntriesOffset { offset: u64, expected: u64 },
    InflatedSizeTooSmall { size: u64, minimum: u64 },
    InflatedSizeNotMultipleOf8 { size: u64 },
    EntriesBeyondEnd { offset: u64, count: u64, size: u64 },
    EntrySizeBeyondEnd { offset: u64, entry_size: u64, size: u64 },
    StringEntriesBeyondEnd { entry: u64, offset: u64, count: u64, size: u64 },
    StringEntriesOverlap { entry: u64, offset: u64 },
    KeyBeyondEnd { entry: u64, string: u64, offset: u64, size: u64 },
    KeyNotTerminated { entry: u64, string: u64, offset: u64 },
    ValueBeyondEnd { entry: u64, string: u64, offset: u64, value_size: u64, size: u64 },
    ValueNotTerminated { entry: u64, string: u64, offset: u64 },
    StringOverlap { entry: u64, string: u64, offset: u64 },
    ImageBeyondEnd { entry: u64, offset: u64, image_size: u64, size: u64 },
    ImageOverlapsTables { entry: u64, offset: u64 },
    ImagesOverlap { first: u64, second: u64, offset: u64 },
    InBinary { offset: u64, error: Box<Error> },
    TrailingData { offset: u64 },
    KeyHasNul { entry: u64, string: u64, key: Box<[u8]> },
    ValueHasNul { entry: u64, string: u64, key: Box<[u8]> },
    TooManyStringBytes,
    OffsetOverflow { entry: u64 },
    Output(byte_parts::Error),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Incomplete { needed } => {
                write!(f, "offload binary needs its first {needed:#x} bytes to be in memory")
            }
            Self::TruncatedHeader { needed, available } => write!(
                f,
                "offload binary header needs {needed} bytes, but only {available} are left"
            ),
            Self::BadMagic { found } => write!(
                f,
                "offload binary starts with bytes {found:02x?}, expected {:02x?}",
                crate::MAGIC
            ),
            Self::UnsupportedVersion { version } => {
                write!(f, "offload binary has version {version}, expected 1, 2 or 3")
            }
            Self::SizeTooSmall { size, minimum } => {
                write!(f, "offload binary has size {size}, expected at least {minimum}")
            }
            Self::SizeNotMultipleOf8 { size } => {
                write!(f, "offload binary has size {size}, expected a multiple of 8")
            }
            Self::SizeBeyondEnd { size, available } => write!(
                f,
                "offload binary has size {size:#x}, but only {available:#x} bytes are left"
            ),
            Self::EntriesInsideHeader { version, offset } => write!(
                f,
                "offload binary has its entries at {offset:#x}, inside the header of {} bytes",
                version.header_len()
            ),
            Self::Compressed { binary } => write!(
                f,
                "offload binary is compressed, {} bytes that inflate to {}",
                binary.size(),
                binary.inflated_size()
            ),
            Self::CompressedEntriesOffset { offset, expected } => write!(
                f,
                "compressed offload binary has its entries at {offset:#x}, expected {expected:#x}"
            ),
            Self::InflatedSizeTooSmall { size, minimum } => write!(
                f,
                "compressed offload binary has inflated size {size}, expected at least {minimum}"
            ),
            Self::InflatedSizeNotMultipleOf8 { size } => write!(
                f,
                "compressed offload binary has inflated size {size}, expected a multiple of 8"
            ),
            Self::EntriesBeyondEnd { offset, count, size } => write!(
                f,
                "offload binary has {count} entries at {offset:#x}, beyond its end at {size:#x}"
            ),
            Self::EntrySizeBeyondEnd { offset, entry_size, size } => write!(
                f,
                "offload binary has an entry of {entry_size:#x} bytes at {offset:#x}, \
         beyond its end at {size:#x}"
            ),
            Self::StringEntriesBeyondEnd { entry, offset, count, size } => write!(
                f,
                "offload binary entry {entry} has {count} string entries at {offset:#x}, \
         beyond the end of the binary at {size:#x}"
            ),
            Self::StringEntriesOverlap { entry, offset } => write!(
                f,
                "offload binary entry {entry} has its string entries at {offset:#x}, \
         which overlap other tables"
            ),
            Self::KeyBeyondEnd { entry, string, offset, size } => write!(
                f,
                "offload binary entry {entry} has the key of string {string} at {offset:#x}, \
         beyond the end of the binary at {size:#x}"
            ),
            Self::KeyNotTerminated { entry, string, offset } => write!(
                f,
                "offload binary entry {entry} has the key of string {string} at {offset:#x} \
         without a nul before the end of the binary"
            ),
            Self::ValueBeyondEnd { entry, string, offset, value_size, size } => write!(
                f,
                "offload binary entry {entry} has the value of string {string} at {offset:#x} \
         with {value_size:#x} bytes, beyond the end of the binary at {size:#x}"
            ),
            Self::ValueNotTerminated { entry, string, offset } => write!(
                f,
                "offload binary entry {entry} has the value of string {string} at {offset:#x} \
         without a nul before the end of the binary"
            ),
            Self::StringOverlap { entry, string, offset } => write!(
                f,
                "offload binary entry {entry} has a key or value of string {string} at {offset:#x}, \
         which overlaps a table or an image"
            ),
            Self::ImageBeyondEnd { entry, offset, image_size, size } => write!(
                f,
                "offload binary entry {entry} has an image of {image_size:#x} bytes at {offset:#x}, \
         beyond the end of the binary at {size:#x}"
            ),
            Self::ImageOverlapsTables { entry, offset } => write!(
                f,
                "offload binary entry {entry} has its image at {offset:#x}, \
         which overlaps the header or a table"
            ),
            Self::ImagesOverlap { first, second, offset } => write!(
                f,
                "offload binary entries {first} and {second} have images that overlap at {offset:#x}"
            ),
            Self::InBinary { offset, error } => {
                write!(f, "offload binary at offset {offset:#x}: {error}")
            }
            Self::TrailingData { offset } => write!(
                f,
                "data at offset {offset:#x} is neither an offload binary nor zero padding"
            ),
            Self::KeyHasNul { entry, string, key } => write!(
                f,
                "offload binary entry {entry} has the key \"{}\" in string {string}, \
         which cannot be stored with a nul",
                key.escape_ascii()
            ),
            Self::ValueHasNul { entry, string, key } => write!(
                f,
                "offload binary entry {entry} has the value of key \"{}\" in string {string} with a nul, \
         which version 1 cannot store",
                key.escape_ascii()
            ),
            Self::TooManyStringBytes => write!(
                f,
                "offload binary would have more than {MAX_STRING_BYTES} bytes of keys and values"
            ),
            Self::OffsetOverflow { entry } => {
                write!(f, "offload binary entry {entry} would end beyond the largest offset")
            }
            Self::Output(error) => write!(f, "offload binary: {error}"),
        }
    }
}

/// The inputs are the images of entries.
impl From<byte_parts::Error> for Error {
    fn from(error: byte_parts::Error) -> Self {
        Error(Problem::Output(error))
    }
}

/// [`InvalidInput`](std::io::ErrorKind::InvalidInput) if it is about what was to be written,
/// [`OutOfMemory`](std::io::ErrorKind::OutOfMemory), and else [`InvalidData`](std::io::ErrorKind::InvalidData). The error
/// itself is inside.
#[cfg(feature = "std")]
impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        use std::io::ErrorKind;

        let kind = match error.0 {
            Problem::KeyHasNul { .. }
            | Problem::ValueHasNul { .. }
            | Problem::TooManyStringBytes
            | Problem::OffsetOverflow { .. } => ErrorKind::InvalidInput,
            Problem::Output(byte_parts::Error::OutOfMemory { .. }) => ErrorKind::OutOfMemory,
            Problem::Output(_) => ErrorKind::InvalidInput,
            _ => ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}
