//! Everything that can be wrong.

use core::fmt;

use crate::{Method, Version};

/// An error of reading or writing a compressed bundle.
///
/// The text says what is wrong, where, and what was expected; [`kind`](Self::kind) and the other functions are for
/// programs. Offsets count bytes from the start of the container, that is, from its magic.
#[derive(Clone, Debug)]
pub struct Error(Problem);

/// Kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The data is something else than a compressed bundle: it does not start with [`MAGIC`](crate::MAGIC), nor, if there
    /// are fewer bytes, with as much of it.
    NotCompressed,
    /// The data ends before the container does, so that more of it may be all that is missing. A damaged size looks the
    /// same.
    ///
    /// Every truncation of a container of version 2 or 3 gives this kind. Version 1 does not record where it ends: after
    /// its header, a truncation is a faulty stream, mostly [`EndsEarly`](Self::EndsEarly).
    Truncated,
    /// The version in the header is none of 1, 2 and 3.
    Version,
    /// The method in the header is neither zlib nor Zstandard.
    Method,
    /// A size in the header is less than the header itself, more than the payload can hold, or another than the Zstandard
    /// frame in the payload records.
    Size,
    /// The uncompressed size in the header exceeds the limit of the caller, see the limit; or a size to be
    /// written exceeds the 32 bits of its field.
    Limit,
    /// The payload expands to less or more than the header says.
    Output,
    /// The memory for the result is not as long as the header says, see [`decompress_into`](crate::decompress_into).
    Buffer,
    /// The compressed stream is faulty.
    Stream,
    /// The compressed stream ends early.
    EndsEarly,
    /// The compressed stream ends before the container does.
    TrailingData,
    /// The data is not what was compressed: its MD5 begins differently.
    Hash,
    /// This build has no codec for the method, or the codec refused to compress, for instance because it could not start a
    /// thread.
    Codec,
    /// There is not enough memory, or address space, for the data.
    Memory,
}

impl Error {
    /// Returns the error for an uncompressed size that a caller refuses: more than `max` bytes.
    #[must_use]
    pub fn too_large(uncompressed_size: u64, max: u64) -> Self {
        Problem::TooLarge { uncompressed_size, max }.into()
    }

    /// Returns the error for memory of `size` bytes that cannot be had.
    #[must_use]
    pub fn out_of_memory(size: u64) -> Self {
        Problem::OutOfMemory { size }.into()
    }

    /// Returns the same error with the stream `by` bytes further on: for streams after other headers, see
    /// [`decompress_stream`](crate::decompress_stream).
    #[must_use]
    pub fn moved(mut self, by: u64) -> Self {
        match &mut self.0 {
            Problem::BadStream { offset, .. } => *offset = offset.saturating_add(by),
            Problem::TrailingBytes { offset, end, .. } => {
                *offset = offset.saturating_add(by);
                *end = end.saturating_add(by);
            }
            _ => {}
        }
        self
    }

    /// Returns the kind of the error.
    ///
    /// ```
    /// use ccob::{ErrorKind, Header};
    ///
    /// let error = Header::parse(b"CCOB\x02\0", 6).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Truncated);
    /// assert_eq!(error.to_string(), "compressed bundle header is truncated: 6 bytes, 8 needed");
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self.0 {
            Problem::BadMagic { .. } => ErrorKind::NotCompressed,
            Problem::TruncatedHeader { .. } | Problem::Truncated { .. } => ErrorKind::Truncated,
            Problem::UnsupportedVersion { .. } => ErrorKind::Version,
            Problem::UnsupportedMethod { .. } => ErrorKind::Method,
            Problem::TotalSizeTooSmall { .. }
            | Problem::ImplausibleSize { .. }
            | Problem::FrameSizeMismatch { .. } => ErrorKind::Size,
            Problem::TooLarge { .. }
            | Problem::UncompressedSizeLimit { .. }
            | Problem::TotalSizeLimit { .. } => ErrorKind::Limit,
            Problem::OutputTooShort { .. } | Problem::OutputTooLong { .. } => ErrorKind::Output,
            Problem::OutputLength { .. } => ErrorKind::Buffer,
            Problem::BadStream { fault: Fault::EndsEarly, .. } => ErrorKind::EndsEarly,
            Problem::BadStream { .. } => ErrorKind::Stream,
            Problem::TrailingBytes { .. } => ErrorKind::TrailingData,
            Problem::HashMismatch { .. } => ErrorKind::Hash,
            Problem::CodecNotCompiled { .. } | Problem::EncoderFailed { .. } => ErrorKind::Codec,
            Problem::OutOfMemory { .. } => ErrorKind::Memory,
        }
    }

    /// Returns the place of a fault of the compressed stream, in bytes from the start of the container: the start of the
    /// stream if the codec does not know it. `None` of other errors.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        match self.0 {
            Problem::BadStream { offset, .. } | Problem::TrailingBytes { offset, .. } => {
                Some(offset)
            }
            _ => None,
        }
    }

    /// Returns the compression method, if the error is about a method, its codec or its stream.
    #[must_use]
    pub fn method(&self) -> Option<Method> {
        match self.0 {
            Problem::UnsupportedMethod { method }
            | Problem::TrailingBytes { method, .. }
            | Problem::BadStream { method, .. }
            | Problem::CodecNotCompiled { method }
            | Problem::EncoderFailed { method } => Some(method),
            _ => None,
        }
    }

    /// Returns whether the payload holds more than the header says.
    #[must_use]
    pub fn is_too_long(&self) -> bool {
        match self.0 {
            Problem::FrameSizeMismatch { uncompressed_size, frame_size } => {
                frame_size > uncompressed_size
            }
            Problem::OutputTooLong { .. } => true,
            _ => false,
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
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    not(all(feature = "miniz_oxide", any(feature = "ruzstd", feature = "zstd"))),
    allow(dead_code, reason = "some faults are those of a codec")
)]
pub(crate) enum Problem {
    BadMagic { found: [u8; 4] },
    TruncatedHeader { available: u64, needed: u64 },
    UnsupportedVersion { version: u16 },
    UnsupportedMethod { method: Method },
    TotalSizeTooSmall { total_size: u64, header_len: u64 },
    Truncated { total_size: u64, available: u64 },
    TooLarge { uncompressed_size: u64, max: u64 },
    ImplausibleSize { uncompressed_size: u64, at_most: u64 },
    FrameSizeMismatch { uncompressed_size: u64, frame_size: u64 },
    OutputTooShort { expected: u64, found: u64 },
    OutputTooLong { expected: u64 },
    OutputLength { expected: u64, found: u64 },
    TrailingBytes { method: Method, offset: u64, end: u64 },
    BadStream { method: Method, offset: u64, fault: Fault },
    HashMismatch { stored: u64, computed: u64 },
    CodecNotCompiled { method: Method },
    UncompressedSizeLimit { version: Version, size: u64 },
    TotalSizeLimit { version: Version, size: u64 },
    OutOfMemory { size: u64 },
    EncoderFailed { method: Method },
}
impl fmt::Display for Problem {
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

/// Fault of a compressed stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(all(feature = "miniz_oxide", any(feature = "ruzstd", feature = "zstd"))),
    allow(dead_code, reason = "some faults are those of a codec")
)]
pub(crate) enum Fault {
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

        let kind = match error.0 {
            Problem::UncompressedSizeLimit { .. }
            | Problem::TotalSizeLimit { .. }
            | Problem::OutputLength { .. } => ErrorKind::InvalidInput,
            Problem::OutOfMemory { .. } => ErrorKind::OutOfMemory,
            Problem::CodecNotCompiled { .. } => ErrorKind::Unsupported,
            Problem::EncoderFailed { .. } => ErrorKind::Other,
            _ => ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}

#[cfg(feature = "std")]
impl From<Problem> for std::io::Error {
    fn from(problem: Problem) -> Self {
        Error(problem).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn hash_of_leading_zeros_is_printed_in_full() {
        let error = Problem::HashMismatch { stored: 0xab, computed: u64::MAX };
        assert_eq!(
            error.to_string(),
            "compressed bundle hash mismatch: 0x00000000000000ab in the header, \
             0xffffffffffffffff computed"
        );
    }

    #[cfg(feature = "std")]
    #[test]
    fn errors_are_errors_of_io() {
        use std::io::{self, ErrorKind};

        let kind = |problem| io::Error::from(Error(problem)).kind();
        assert_eq!(kind(Problem::BadMagic { found: [0; 4] }), ErrorKind::InvalidData);
        let too_large = Problem::UncompressedSizeLimit { version: Version::V1, size: 1 << 32 };
        assert_eq!(kind(too_large), ErrorKind::InvalidInput);
        let no_codec = Problem::CodecNotCompiled { method: Method::ZLIB };
        assert_eq!(kind(no_codec.clone()), ErrorKind::Unsupported);
        let error = io::Error::from(Error(no_codec.clone()));
        assert_eq!(error.downcast::<Error>().unwrap().0, no_codec);
    }
}
