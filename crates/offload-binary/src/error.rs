//! What can be wrong with an offload binary.

use alloc::boxed::Box;
use core::fmt;

use crate::compressed::CompressedBinary;
use crate::image_entry::FormatVersion;
use crate::layout::MAX_STRING_BYTES;

/// What is wrong with an offload binary, read or to be written, and where.
///
/// Offsets are in bytes from the start of the binary (its magic), except in
/// [`InBinary`](Self::InBinary) and [`TrailingData`](Self::TrailingData), which count from the
/// start of the data given to [`binaries`](crate::binaries). Entries and strings are numbered
/// from 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Error {
    /// The prefix ends before a table or string that lies inside the binary. Not a fault of the
    /// binary: read at least `needed` bytes and parse again.
    Incomplete {
        /// How many bytes from the start of the binary must at least be in memory.
        needed: u64,
    },

    /// There are too few bytes for a header.
    TruncatedHeader {
        /// Length of the header: 32, and 40 from version 3 on.
        needed: u64,
        /// Bytes there are.
        available: u64,
    },

    /// The data does not start with [`MAGIC`](crate::MAGIC), nor, if there are fewer bytes, with as much of it.
    BadMagic {
        /// The bytes in its place; zeros for those that are not there.
        found: [u8; 4],
    },

    /// The version is not 1, 2 or 3.
    UnsupportedVersion {
        /// The version field.
        version: u32,
    },

    /// The size field is too small for the header and what must follow it.
    SizeTooSmall {
        /// The size field.
        size: u64,
        /// The smallest size of a binary of this version.
        minimum: u64,
    },

    /// The size field is not a multiple of 8, so that the next binary could not be found.
    SizeNotMultipleOf8 {
        /// The size field.
        size: u64,
    },

    /// The size field says more than there is.
    SizeBeyondEnd {
        /// The size field.
        size: u64,
        /// Bytes there are.
        available: u64,
    },

    /// The entries start inside the header.
    EntriesInsideHeader {
        /// The version of the binary, which tells the length of the header.
        version: FormatVersion,
        /// The entries offset field.
        offset: u64,
    },

    /// The binary is compressed, so that its entries cannot be read before it is inflated. Not a fault of the binary:
    /// inflate its [stream](CompressedBinary::stream), and parse what
    /// [`CompressedBinary::plain_header`] and the inflated bytes make.
    Compressed {
        /// The compressed binary as its header describes it.
        binary: CompressedBinary,
    },

    /// The entries of a compressed binary do not start right after its header.
    CompressedEntriesOffset {
        /// The entries offset field.
        offset: u64,
        /// The length of the header.
        expected: u64,
    },

    /// The inflated size of a compressed binary is too small for the header and what must follow it.
    InflatedSizeTooSmall {
        /// The inflated size field.
        size: u64,
        /// The smallest size of a plain binary of this version.
        minimum: u64,
    },

    /// The inflated size of a compressed binary is not a multiple of 8, as the size of each plain binary is.
    InflatedSizeNotMultipleOf8 {
        /// The inflated size field.
        size: u64,
    },

    /// The entries do not fit into the binary.
    EntriesBeyondEnd {
        /// The entries offset field.
        offset: u64,
        /// Number of entries, always 1 in version 1.
        count: u64,
        /// The size of the binary, inflated if it is compressed.
        size: u64,
    },

    /// The entry size of a version 1 header reaches beyond the binary.
    EntrySizeBeyondEnd {
        /// The entry offset field.
        offset: u64,
        /// The entry size field.
        entry_size: u64,
        /// The size of the binary.
        size: u64,
    },

    /// The string entries of an entry do not fit into the binary.
    StringEntriesBeyondEnd {
        /// Which entry.
        entry: u64,
        /// The string offset field.
        offset: u64,
        /// The string count field.
        count: u64,
        /// The size of the binary.
        size: u64,
    },

    /// The string entries of an entry share bytes with the header, the entries or the string
    /// entries of another entry.
    StringEntriesOverlap {
        /// Which entry.
        entry: u64,
        /// The string offset field.
        offset: u64,
    },

    /// A key starts outside the binary.
    KeyBeyondEnd {
        /// Which entry.
        entry: u64,
        /// Which string of the entry.
        string: u64,
        /// The key offset field.
        offset: u64,
        /// The size of the binary.
        size: u64,
    },

    /// A key has no NUL before the end of the binary.
    KeyNotTerminated {
        /// Which entry.
        entry: u64,
        /// Which string of the entry.
        string: u64,
        /// The key offset field.
        offset: u64,
    },

    /// A value starts, or with its size ends, outside the binary.
    ValueBeyondEnd {
        /// Which entry.
        entry: u64,
        /// Which string of the entry.
        string: u64,
        /// The value offset field.
        offset: u64,
        /// The value size field, 0 in version 1, which has none.
        value_size: u64,
        /// The size of the binary.
        size: u64,
    },

    /// A value of version 1 has no NUL before the end of the binary.
    ValueNotTerminated {
        /// Which entry.
        entry: u64,
        /// Which string of the entry.
        string: u64,
        /// The value offset field.
        offset: u64,
    },

    /// A key or value shares bytes with the header, a table or an image.
    StringOverlap {
        /// Which entry.
        entry: u64,
        /// Which string of the entry.
        string: u64,
        /// The key or value offset field.
        offset: u64,
    },

    /// An image does not lie inside the binary.
    ImageBeyondEnd {
        /// Which entry.
        entry: u64,
        /// The image offset field.
        offset: u64,
        /// The image size field.
        image_size: u64,
        /// The size of the binary.
        size: u64,
    },

    /// An image shares bytes with the header, the entries or string entries.
    ImageOverlapsTables {
        /// Which entry.
        entry: u64,
        /// The image offset field.
        offset: u64,
    },

    /// Two images share bytes.
    ImagesOverlap {
        /// The entry whose image starts first.
        first: u64,
        /// The entry whose image starts inside it.
        second: u64,
        /// Where the second image starts.
        offset: u64,
    },

    /// One of several binaries is damaged.
    InBinary {
        /// Where the binary starts, from the start of the data.
        offset: u64,
        /// What is wrong with it.
        error: Box<Error>,
    },

    /// Neither zeros nor another binary follow a binary, or zeros. Where there is nothing before, that is
    /// [`BadMagic`](Self::BadMagic).
    TrailingData {
        /// Where, from the start of the data.
        offset: u64,
    },

    /// A key to be written holds a NUL, which would end it.
    KeyHasNul {
        /// Which entry.
        entry: u64,
        /// Which string of the entry.
        string: u64,
        /// The key.
        key: Box<[u8]>,
    },

    /// A value to be written in version 1 holds a NUL, which would end it. Versions 2 and 3 can store it.
    ValueHasNul {
        /// Which entry.
        entry: u64,
        /// Which string of the entry.
        string: u64,
        /// The key of the value.
        key: Box<[u8]>,
    },

    /// The keys and values to be written have more bytes together than
    /// [`MAX_STRING_BYTES`](crate::MAX_STRING_BYTES).
    TooManyStringBytes,

    /// The output would be longer than 64 bits can say.
    OffsetOverflow {
        /// Which entry.
        entry: u64,
    },

    /// The output does not fit into memory.
    OutOfMemory {
        /// Its size in bytes.
        size: u64,
    },

    /// There are more or fewer images than entries were laid out.
    ImageCount {
        /// Number of entries.
        expected: u64,
        /// Number of images, or one more than `expected` when there are more.
        found: u64,
    },

    /// An image is not as long as was laid out.
    ImageSize {
        /// Which entry.
        entry: u64,
        /// The size that was laid out.
        expected: u64,
        /// Bytes there are, or one more than `expected` when there are more.
        found: u64,
    },
}

impl fmt::Display for Error {
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
            Self::OutOfMemory { size } => {
                write!(f, "offload binary of {size:#x} bytes does not fit into memory")
            }
            Self::ImageCount { expected, found } => {
                write!(f, "offload binary has {expected} entries, but images for {found}")
            }
            Self::ImageSize { entry, expected, found } => write!(
                f,
                "offload binary entry {entry} has an image of {found} bytes, expected {expected}"
            ),
        }
    }
}

impl core::error::Error for Error {}

impl Error {
    /// Whether the data is something else than an offload binary, as its first bytes show: [`BadMagic`](Self::BadMagic),
    /// also inside [`InBinary`](Self::InBinary).
    ///
    /// Data that ends inside the magic, but is right so far, is truncated instead. Not
    /// [`TrailingData`](Self::TrailingData): there, other things follow what has been read.
    #[must_use]
    pub fn is_bad_magic(&self) -> bool {
        matches!(self.innermost(), Self::BadMagic { .. })
    }

    /// Whether the data ends before the binary does, so that more of it may be all that is missing:
    /// [`TruncatedHeader`](Self::TruncatedHeader) and [`SizeBeyondEnd`](Self::SizeBeyondEnd), also inside
    /// [`InBinary`](Self::InBinary). Every truncation of a binary gives one of them; a damaged size looks the same.
    ///
    /// Not [`Incomplete`](Self::Incomplete), which is about what is in memory: see [`needed`](Self::needed).
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        matches!(self.innermost(), Self::TruncatedHeader { .. } | Self::SizeBeyondEnd { .. })
    }

    fn innermost(&self) -> &Self {
        let mut error = self;
        while let Self::InBinary { error: inner, .. } = error {
            error = inner;
        }
        error
    }

    /// How many bytes from the start of the binary must at least be in memory, when that is all
    /// that is missing.
    #[must_use]
    pub fn needed(&self) -> Option<u64> {
        match self {
            Self::Incomplete { needed } => Some(*needed),
            _ => None,
        }
    }
}

/// The inputs are the images of entries.
impl From<byte_parts::Error> for Error {
    fn from(error: byte_parts::Error) -> Self {
        use byte_parts::Error::{InputCount, InputSize, OutOfMemory};

        match error {
            InputCount { expected, found } => Error::ImageCount { expected, found },
            InputSize { input, expected, found } => {
                Error::ImageSize { entry: crate::to_u64(input), expected, found }
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
            Error::KeyHasNul { .. }
            | Error::ValueHasNul { .. }
            | Error::TooManyStringBytes
            | Error::OffsetOverflow { .. }
            | Error::ImageCount { .. }
            | Error::ImageSize { .. } => ErrorKind::InvalidInput,
            Error::OutOfMemory { .. } => ErrorKind::OutOfMemory,
            _ => ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}
