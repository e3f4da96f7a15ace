//! Errors of reading and writing offload binaries.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

use crate::compressed_header::CompressedBinary;
use crate::wire::FormatVersion;

/// An error in an offload binary, read or to be written, with its place.
///
/// The text says what is wrong, where, and what was expected; [`kind`](Self::kind) and the other functions are for
/// programs. Offsets in the text are in bytes from the start of the binary (its magic), unless it says otherwise. Entries and
/// strings are numbered from 0.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.message)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    offset: Option<u64>,
    entry: Option<u64>,
    needed: Option<u64>,
    available: Option<u64>,
    compressed: Option<CompressedBinary>,
    /// The fault of an output. Its text is in the message.
    output: Option<byte_parts::Error>,
    message: String,
}

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
    /// Creates an error without a place.
    #[cold]
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error(Box::new(Inner {
            kind,
            offset: None,
            entry: None,
            needed: None,
            available: None,
            compressed: None,
            output: None,
            message: message.into(),
        }))
    }

    #[cold]
    pub(crate) fn at(kind: ErrorKind, offset: u64, message: impl Into<String>) -> Self {
        let mut error = Self::new(kind, message);
        error.0.offset = Some(offset);
        error
    }

    #[cold]
    pub(crate) fn malformed(offset: u64, message: impl Into<String>) -> Self {
        Self::at(ErrorKind::Malformed, offset, message)
    }

    /// Creates an error of an entry to be written.
    #[cold]
    pub(crate) fn of_entry(kind: ErrorKind, entry: u64, message: &str) -> Self {
        let mut error = Self::new(kind, format!("offload binary entry {entry} {message}"));
        error.0.entry = Some(entry);
        error
    }

    /// Creates the error of an entry that was read.
    #[cold]
    pub(crate) fn in_entry(entry: u64, offset: u64, message: &str) -> Self {
        let mut error = Self::of_entry(ErrorKind::Malformed, entry, message);
        error.0.offset = Some(offset);
        error
    }

    #[cold]
    pub(crate) fn images_overlap(first: u64, second: u64, offset: u64) -> Self {
        let message = format!(
            "offload binary entries {first} and {second} have images that overlap at {offset:#x}"
        );
        let mut error = Self::malformed(offset, message);
        error.0.entry = Some(second);
        error
    }

    #[cold]
    pub(crate) fn incomplete(needed: u64) -> Self {
        let message = format!("offload binary needs its first {needed:#x} bytes to be in memory");
        let mut error = Self::new(ErrorKind::Incomplete, message);
        error.0.needed = Some(needed);
        error
    }

    #[cold]
    pub(crate) fn truncated(available: u64, message: String) -> Self {
        let mut error = Self::at(ErrorKind::Truncated, 0, message);
        error.0.available = Some(available);
        error
    }

    #[cold]
    pub(crate) fn version(number: u32) -> Self {
        let message = format!("offload binary has version {number}, expected 1, 2 or 3");
        Self::at(ErrorKind::Version, 0, message)
    }

    #[cold]
    pub(crate) fn of_compressed(binary: CompressedBinary) -> Self {
        let (size, inflated) = (binary.size, binary.inflated_size);
        let message =
            format!("offload binary is compressed, {size} bytes that inflate to {inflated}");
        let mut error = Self::new(ErrorKind::Compressed, message);
        error.0.compressed = Some(binary);
        error
    }

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
        self.0.kind
    }

    /// Returns the place of the fault, in bytes from the start of the data that was read. `None` if the fault has no single
    /// place there.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// Returns the entry at fault, from 0; of two whose images overlap the one that starts later.
    #[must_use]
    pub fn entry(&self) -> Option<u64> {
        match self.0.output {
            Some(byte_parts::Error::InputSize { input, .. }) => Some(input as u64),
            _ => self.0.entry,
        }
    }

    /// Returns how many bytes from the start of the binary must at least be in memory, when that is all that is missing.
    #[must_use]
    pub fn needed(&self) -> Option<u64> {
        self.0.needed
    }

    /// Returns how many bytes there are of a binary that ends too early ([`ErrorKind::Truncated`]).
    #[must_use]
    pub fn available(&self) -> Option<u64> {
        self.0.available
    }

    /// Returns the compressed binary as its header describes it, when the only trouble is that it is compressed.
    #[must_use]
    pub fn compressed(&self) -> Option<&CompressedBinary> {
        self.0.compressed.as_ref()
    }

    /// Returns the error for a version that the caller cannot make use of.
    #[must_use]
    pub fn unsupported_version(version: FormatVersion) -> Self {
        Self::version(version.number())
    }

    /// Returns the error of a binary that starts at an offset of the data, after binaries that could be read.
    pub(crate) fn in_binary(mut self, offset: u64) -> Self {
        let inner = &mut *self.0;
        if inner.kind != ErrorKind::NotABinary {
            inner.message.insert_str(0, &format!("offload binary at offset {offset:#x}: "));
            inner.compressed = None;
        } else if offset > 0 {
            inner.kind = ErrorKind::TrailingData;
            inner.message =
                format!("data at offset {offset:#x} is neither an offload binary nor zero padding");
        }
        inner.offset = match inner.offset {
            Some(within) => offset.checked_add(within),
            None => Some(offset),
        };
        self
    }
}

/// The inputs are the images of entries.
impl From<byte_parts::Error> for Error {
    fn from(error: byte_parts::Error) -> Self {
        let mut new = Self::new(ErrorKind::Output, format!("offload binary: {error}"));
        new.0.output = Some(error);
        new
    }
}

/// [`InvalidInput`](std::io::ErrorKind::InvalidInput) if the contents cannot be written,
/// [`OutOfMemory`](std::io::ErrorKind::OutOfMemory), and else [`InvalidData`](std::io::ErrorKind::InvalidData). The error
/// itself is inside.
#[cfg(feature = "std")]
impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        use std::io;

        let kind = match (error.0.kind, &error.0.output) {
            (_, Some(byte_parts::Error::OutOfMemory { .. })) => io::ErrorKind::OutOfMemory,
            (ErrorKind::Nul | ErrorKind::Limit | ErrorKind::Output, _) => {
                io::ErrorKind::InvalidInput
            }
            _ => io::ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}
