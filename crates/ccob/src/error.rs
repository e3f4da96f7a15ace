//! Everything that can be wrong.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

use crate::{Method, Version};

/// An error of reading or writing a compressed bundle.
///
/// The text says what is wrong, where, and what was expected; [`kind`](Self::kind) and the other functions are for
/// programs. Offsets count bytes from the start of the container, that is, from its magic.
#[derive(Clone, Debug, thiserror::Error)]
#[cfg_attr(test, derive(PartialEq))]
#[error("{}", .0.message)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
#[cfg_attr(test, derive(PartialEq))]
struct Inner {
    kind: ErrorKind,
    method: Option<Method>,
    /// The fault of a stream, and its place.
    fault: Option<(u64, codecs::ErrorKind)>,
    is_too_long: bool,
    /// `true` of what was to be written.
    #[cfg_attr(not(feature = "std"), allow(dead_code, reason = "errors of io tell it"))]
    is_of_writing: bool,
    message: String,
}

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
    #[cold]
    pub(crate) fn new(kind: ErrorKind, message: String) -> Self {
        Error(Box::new(Inner {
            kind,
            method: None,
            fault: None,
            is_too_long: false,
            is_of_writing: false,
            message,
        }))
    }

    #[cold]
    fn of_method(kind: ErrorKind, method: Method, message: String) -> Self {
        let mut error = Self::new(kind, message);
        error.0.method = Some(method);
        error
    }

    fn of_writing(mut self) -> Self {
        self.0.is_of_writing = true;
        self
    }

    fn too_long(mut self, is_too_long: bool) -> Self {
        self.0.is_too_long = is_too_long;
        self
    }

    #[cold]
    pub(crate) fn truncated(total_size: u64, available: u64) -> Self {
        let message = format!(
            "compressed bundle is truncated: total size of {total_size} bytes, {available} there"
        );
        Self::new(ErrorKind::Truncated, message)
    }

    /// Creates the error of a method without a codec in this build.
    #[cold]
    pub(crate) fn no_codec(method: Method) -> Self {
        let (kind, what) = match method.name() {
            Some(_) => (ErrorKind::Codec, "is not compiled in"),
            None => (ErrorKind::Method, "is unknown, expected 0 (zlib) or 1 (zstd)"),
        };
        Self::of_method(kind, method, format!("compressed bundle method {method} {what}"))
    }

    /// Creates the error of a size, `total` or `uncompressed`, that the header to be written has no room for.
    #[cold]
    pub(crate) fn size_limit(version: Version, which: &str, size: u64) -> Self {
        let message = format!(
            "{which} size of {size} bytes exceeds the 32-bit limit of compressed bundle version {version}"
        );
        Self::new(ErrorKind::Limit, message).of_writing()
    }

    /// Returns the error for an uncompressed size that a caller refuses: more than `max` bytes.
    #[cold]
    #[must_use]
    pub fn too_large(uncompressed_size: u64, max: u64) -> Self {
        let message = format!(
            "compressed bundle expands to {uncompressed_size} bytes, more than the limit of {max}"
        );
        Self::new(ErrorKind::Limit, message)
    }

    /// Returns the error for memory of `size` bytes that cannot be had.
    #[cold]
    #[must_use]
    pub fn out_of_memory(size: u64) -> Self {
        let message =
            format!("compressed bundle needs {size} bytes of memory that are not available");
        Self::new(ErrorKind::Memory, message)
    }

    /// Returns the same error with the stream `by` bytes further on: for streams after other headers, see
    /// [`decompress_stream`](crate::decompress_stream).
    #[must_use]
    pub fn moved(self, by: u64) -> Self {
        let (Some(method), Some((offset, mut fault))) = (self.0.method, self.0.fault) else {
            return self;
        };
        if let codecs::ErrorKind::TrailingData(end) = &mut fault {
            // The distance is the caller's word, and may be any number.
            *end = end.saturating_add(by);
        }
        Self::of_stream(method, offset.saturating_add(by), fault)
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
        self.0.kind
    }

    /// Returns the place of a fault of the compressed stream, in bytes from the start of the container: the start of the
    /// stream if the codec does not know it. `None` of other errors.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        self.0.fault.map(|(offset, _)| offset)
    }

    /// Returns the compression method, if a method, its codec or its stream is at fault.
    #[must_use]
    pub fn method(&self) -> Option<Method> {
        self.0.method
    }

    /// Returns whether the payload holds more than the header says.
    #[must_use]
    pub fn is_too_long(&self) -> bool {
        self.0.is_too_long
    }
}

/// Errors of codecs.
impl Error {
    /// Creates the error that a codec found in a stream, at an offset, that should expand to `expected` bytes.
    #[cold]
    pub(crate) fn of_codec(
        method: Method,
        offset: u64,
        expected: u64,
        error: &codecs::Error,
    ) -> Self {
        match error.kind() {
            codecs::ErrorKind::NoCodec => Self::no_codec(method),
            codecs::ErrorKind::ContentSize(size) => {
                Self::claim(expected, "zstd frame", size).too_long(size > expected)
            }
            codecs::ErrorKind::AtMost(size) => Self::claim(expected, "payload holds at most", size),
            codecs::ErrorKind::TooShort(found) => {
                let message = format!(
                    "compressed bundle expands to {found} bytes, less than the {expected} in its header"
                );
                Self::new(ErrorKind::Output, message)
            }
            codecs::ErrorKind::TooLong => {
                let message = format!(
                    "compressed bundle expands to more than the {expected} bytes in its header"
                );
                Self::new(ErrorKind::Output, message).too_long(true)
            }
            codecs::ErrorKind::Memory(size) => Self::out_of_memory(size),
            codecs::ErrorKind::Encoder => {
                let message =
                    format!("compressed bundle cannot be written: the {method} encoder failed");
                Self::of_method(ErrorKind::Codec, method, message).of_writing()
            }
            fault => Self::of_stream(method, error.offset(), fault).moved(offset),
        }
    }

    /// Creates the error of a stream with a fault at this place.
    #[cold]
    pub(crate) fn of_stream(method: Method, offset: u64, fault: codecs::ErrorKind) -> Self {
        let has = match fault {
            codecs::ErrorKind::TrailingData(_) => {
                format!("bytes after its {method} stream, which ends at {offset:#x}; {fault}")
            }
            _ => format!("a faulty {method} stream at {offset:#x}: {fault}"),
        };
        let kind = match fault {
            codecs::ErrorKind::EndsEarly => ErrorKind::EndsEarly,
            codecs::ErrorKind::TrailingData(_) => ErrorKind::TrailingData,
            _ => ErrorKind::Stream,
        };
        let message = format!("compressed bundle payload has {has}");
        let mut error = Self::of_method(kind, method, message);
        error.0.fault = Some((offset, fault));
        error
    }

    /// Creates the error of an uncompressed size that is not in the payload: what that has instead.
    #[cold]
    fn claim(uncompressed_size: u64, its: &str, size: u64) -> Self {
        let message = format!(
            "compressed bundle claims an uncompressed size of {uncompressed_size} bytes, its {its} {size}"
        );
        Self::new(ErrorKind::Size, message)
    }
}

/// [`InvalidInput`](std::io::ErrorKind::InvalidInput) if the contents cannot be written,
/// [`OutOfMemory`](std::io::ErrorKind::OutOfMemory), [`Unsupported`](std::io::ErrorKind::Unsupported) without a codec,
/// [`Other`](std::io::ErrorKind::Other) if the codec refused, and else [`InvalidData`](std::io::ErrorKind::InvalidData).
/// The error itself is inside.
#[cfg(feature = "std")]
impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        use std::io::ErrorKind;

        let kind = match (error.0.kind, error.0.is_of_writing) {
            (super::ErrorKind::Limit, true) | (super::ErrorKind::Buffer, _) => {
                ErrorKind::InvalidInput
            }
            (super::ErrorKind::Memory, _) => ErrorKind::OutOfMemory,
            (super::ErrorKind::Codec, false) => ErrorKind::Unsupported,
            (super::ErrorKind::Codec, true) => ErrorKind::Other,
            _ => ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    #[test]
    fn hash_of_leading_zeros_is_printed_in_full() {
        let error = crate::decompress::check_hash(0xab, u64::MAX).unwrap_err();
        assert_eq!(
            error.to_string(),
            "compressed bundle hash mismatch: 0x00000000000000ab in the header, \
             0xffffffffffffffff computed"
        );
    }

    #[cfg(feature = "std")]
    #[test]
    fn errors_are_errors_of_io() {
        use super::*;
        use std::io::{self, ErrorKind};

        let kind = |error| io::Error::from(error).kind();
        let of_reading = Error::new(super::ErrorKind::NotCompressed, String::new());
        assert_eq!(kind(of_reading), ErrorKind::InvalidData);
        assert_eq!(kind(Error::too_large(2, 1)), ErrorKind::InvalidData);
        let too_large = Error::size_limit(Version::V1, "total", 1 << 32);
        assert_eq!(kind(too_large), ErrorKind::InvalidInput);
        let refused = Error::of_method(super::ErrorKind::Codec, Method::ZLIB, String::new());
        assert_eq!(kind(refused.of_writing()), ErrorKind::Other);
        let no_codec = Error::no_codec(Method::ZLIB);
        assert_eq!(kind(no_codec.clone()), ErrorKind::Unsupported);
        let error = io::Error::from(no_codec.clone());
        assert_eq!(error.downcast::<Error>().unwrap(), no_codec);
    }
}
