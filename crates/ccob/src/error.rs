//! Everything that can be wrong, as data.

use core::fmt;

use crate::{Method, Version};

/// What is wrong with a compressed bundle, or why one cannot be written.
///
/// Offsets count bytes from the start of the container, that is, from its magic.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Error {
    /// The data does not start with [`MAGIC`](crate::MAGIC), nor, if there are fewer bytes, with as much of it.
    BadMagic {
        /// The first four bytes; zeros in place of those that are not there.
        found: [u8; 4],
    },

    /// The data ends inside the header.
    TruncatedHeader {
        /// Bytes there are.
        available: u64,
        /// Bytes needed to read on: 8 before the version is known, then the header's length.
        needed: u64,
    },

    /// The version in the header is none of 1, 2 and 3.
    UnsupportedVersion {
        /// The version in the header.
        version: u16,
    },

    /// The method in the header is neither zlib nor Zstandard.
    UnsupportedMethod {
        /// The method in the header.
        method: Method,
    },

    /// The total size in the header does not even cover the header.
    TotalSizeTooSmall {
        /// The total size in the header.
        total_size: u64,
        /// The length of the header.
        header_len: u64,
    },

    /// The container reaches beyond the end of what it lies in.
    Truncated {
        /// The total size in the header.
        total_size: u64,
        /// Bytes from the start of the container to the end of the data.
        available: u64,
    },

    /// The header promises more data than the caller allows, see [`Limits`](crate::Limits).
    TooLarge {
        /// The uncompressed size in the header.
        uncompressed_size: u64,
        /// The limit.
        max: u64,
    },

    /// The header promises more data than the payload can possibly hold.
    ImplausibleSize {
        /// The uncompressed size in the header.
        uncompressed_size: u64,
        /// The most that the blocks of the payload can expand to.
        at_most: u64,
    },

    /// The header and the Zstandard frame in the payload record different sizes.
    FrameSizeMismatch {
        /// The uncompressed size in the header of the compressed bundle.
        uncompressed_size: u64,
        /// The content size in the header of the frame.
        frame_size: u64,
    },

    /// The payload expands to less than the header says.
    OutputTooShort {
        /// The uncompressed size in the header.
        expected: u64,
        /// What came out.
        found: u64,
    },

    /// The payload expands to more than the header says.
    OutputTooLong {
        /// The uncompressed size in the header.
        expected: u64,
    },

    /// The memory for the result is not as long as the header says, see
    /// [`decompress_into`](crate::decompress_into).
    OutputLength {
        /// The uncompressed size in the header.
        expected: u64,
        /// The length of the buffer.
        found: u64,
    },

    /// The compressed stream ends before the container does.
    TrailingBytes {
        /// The compression method.
        method: Method,
        /// Where the stream ends.
        offset: u64,
        /// Where the container ends.
        end: u64,
    },

    /// The compressed stream is faulty.
    BadStream {
        /// The compression method.
        method: Method,
        /// Where the fault lies; the start of the stream if the codec does not know.
        offset: u64,
        /// What the fault is.
        fault: Fault,
    },

    /// The data is not what was compressed: its MD5 begins differently.
    HashMismatch {
        /// The hash in the header.
        stored: u64,
        /// The hash of the decompressed data.
        computed: u64,
    },

    /// The method is known, but this build has no codec for it.
    CodecNotCompiled {
        /// The method.
        method: Method,
    },

    /// The data is too long for the version's 32-bit uncompressed size.
    UncompressedSizeLimit {
        /// The version asked for.
        version: Version,
        /// The length of the data.
        size: u64,
    },

    /// The container becomes too long for the version's 32-bit total size.
    TotalSizeLimit {
        /// The version asked for.
        version: Version,
        /// The length of header and payload.
        size: u64,
    },

    /// There is not enough memory, or address space, for the data.
    OutOfMemory {
        /// The size of the allocation that failed.
        size: u64,
    },

    /// The codec refused to compress, for instance because it could not start a thread.
    EncoderFailed {
        /// The compression method.
        method: Method,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadMagic { found } => write!(
                f,
                "compressed bundle starts with {found:02x?} instead of the magic \"CCOB\""
            ),
            Self::TruncatedHeader { available, needed } => write!(
                f,
                "compressed bundle header is truncated: {available} bytes, {needed} needed"
            ),
            Self::UnsupportedVersion { version } => {
                write!(f, "compressed bundle version {version} is unknown, expected 1, 2 or 3")
            }
            Self::UnsupportedMethod { method } => write!(
                f,
                "compressed bundle method {} is unknown, expected 0 (zlib) or 1 (zstd)",
                method.0
            ),
            Self::TotalSizeTooSmall { total_size, header_len } => write!(
                f,
                "compressed bundle has a total size of {total_size} bytes, less than its header of {header_len}"
            ),
            Self::Truncated { total_size, available } => write!(
                f,
                "compressed bundle is truncated: total size of {total_size} bytes, {available} there"
            ),
            Self::TooLarge { uncompressed_size, max } => write!(
                f,
                "compressed bundle expands to {uncompressed_size} bytes, more than the limit of {max}"
            ),
            Self::ImplausibleSize { uncompressed_size, at_most } => write!(
                f,
                "compressed bundle claims an uncompressed size of {uncompressed_size} bytes, its payload holds at most {at_most}"
            ),
            Self::FrameSizeMismatch { uncompressed_size, frame_size } => write!(
                f,
                "compressed bundle claims an uncompressed size of {uncompressed_size} bytes, its zstd frame {frame_size}"
            ),
            Self::OutputTooShort { expected, found } => write!(
                f,
                "compressed bundle expands to {found} bytes, less than the {expected} in its header"
            ),
            Self::OutputTooLong { expected } => write!(
                f,
                "compressed bundle expands to more than the {expected} bytes in its header"
            ),
            Self::OutputLength { expected, found } => write!(
                f,
                "output buffer for a compressed bundle: expected {expected} bytes, found {found}"
            ),
            Self::TrailingBytes { method, offset, end } => write!(
                f,
                "compressed bundle payload has bytes after its {method} stream, which ends at {offset:#x}; expected the end at {end:#x}"
            ),
            Self::BadStream { method, offset, fault } => write!(
                f,
                "compressed bundle payload has a faulty {method} stream at {offset:#x}: {fault}"
            ),
            Self::HashMismatch { stored, computed } => write!(
                f,
                "compressed bundle hash mismatch: {stored:#018x} in the header, {computed:#018x} computed"
            ),
            Self::CodecNotCompiled { method } => {
                write!(f, "compressed bundle method {method} is not compiled in")
            }
            Self::UncompressedSizeLimit { version, size } => write!(
                f,
                "uncompressed size of {size} bytes exceeds the 32-bit limit of compressed bundle version {version}"
            ),
            Self::TotalSizeLimit { version, size } => write!(
                f,
                "total size of {size} bytes exceeds the 32-bit limit of compressed bundle version {version}"
            ),
            Self::OutOfMemory { size } => {
                write!(f, "compressed bundle needs {size} bytes of memory that are not available")
            }
            Self::EncoderFailed { method } => {
                write!(f, "compressed bundle cannot be written: the {method} encoder failed")
            }
        }
    }
}

impl core::error::Error for Error {}

impl Error {
    /// Whether the data is something else than a compressed bundle, as its first bytes show: [`BadMagic`](Self::BadMagic).
    ///
    /// Data that ends inside the magic, but is right so far, is truncated instead.
    #[must_use]
    pub fn is_bad_magic(&self) -> bool {
        matches!(self, Self::BadMagic { .. })
    }

    /// Whether the data ends before the container does, so that more of it may be all that is missing:
    /// [`TruncatedHeader`](Self::TruncatedHeader) and [`Truncated`](Self::Truncated). A damaged size looks the same.
    ///
    /// Every truncation of a container of version 2 or 3 gives one of them. Version 1 does not record where it ends:
    /// behind its header, a truncation is a faulty payload ([`Fault::EndsEarly`], mostly), and this says `false`.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        matches!(self, Self::TruncatedHeader { .. } | Self::Truncated { .. })
    }
}

/// What is wrong with a compressed stream, see [`Error::BadStream`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// The stream does not start as one of its method does.
    BadMagic,
    /// Nothing but skippable Zstandard frames, where one with data is expected.
    SkippableFrame,
    /// A bit that RFC 8878 reserves is set in the frame header.
    ReservedBit,
    /// The frame needs a dictionary, and compressed bundles have none.
    Dictionary,
    /// The frame asks for a window of 2^32 bytes or more, which libzstd does not read either.
    WindowTooLarge,
    /// A block of the reserved type 3.
    ReservedBlock,
    /// A block larger than the format allows: the smaller of the window and 128 KiB.
    BlockTooLarge,
    /// The stream ends early.
    EndsEarly,
    /// The stream's own checksum (Adler-32 or XXH64) does not match the data.
    Checksum,
    /// Any other damage that the codec finds.
    Damaged,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::BadMagic => "bad magic",
            Self::SkippableFrame => "skippable frame",
            Self::ReservedBit => "reserved bit set in the frame header",
            Self::Dictionary => "dictionary required",
            Self::WindowTooLarge => "window too large",
            Self::ReservedBlock => "reserved block type",
            Self::BlockTooLarge => "block too large",
            Self::EndsEarly => "stream ends early",
            Self::Checksum => "checksum mismatch",
            Self::Damaged => "damaged data",
        })
    }
}

/// [`InvalidInput`](std::io::ErrorKind::InvalidInput) if it is about what was to be written,
/// [`OutOfMemory`](std::io::ErrorKind::OutOfMemory), [`Unsupported`](std::io::ErrorKind::Unsupported) without a codec,
/// [`Other`](std::io::ErrorKind::Other) if the codec refused, and else [`InvalidData`](std::io::ErrorKind::InvalidData).
/// The error itself is inside.
#[cfg(feature = "std")]
impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        use std::io::ErrorKind;

        let kind = match error {
            Error::UncompressedSizeLimit { .. }
            | Error::TotalSizeLimit { .. }
            | Error::OutputLength { .. } => ErrorKind::InvalidInput,
            Error::OutOfMemory { .. } => ErrorKind::OutOfMemory,
            Error::CodecNotCompiled { .. } => ErrorKind::Unsupported,
            Error::EncoderFailed { .. } => ErrorKind::Other,
            _ => ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}
