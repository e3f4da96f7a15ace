//! Errors of reading and writing a fatbinary.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::fmt;

use crate::kinds::Codec;

/// An error in a fatbinary, with its place.
///
/// The text says what is wrong, where, and what was expected; [`kind`](Self::kind), [`entry`](Self::entry) and
/// [`offset`](Self::offset) are for programs. Entries are numbered from 0.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", .0.message)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    kind: ErrorKind,
    offset: Option<u64>,
    entry: Option<usize>,
    message: String,
}

/// Kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The data does not start with [`MAGIC`](crate::MAGIC).
    NotAFatbin,
    /// The data ends before the fatbinary does.
    Truncated,
    /// The bytes that are asked for are not in memory. Not a fault of the fatbinary: give more of its bytes.
    Incomplete,
    /// A size or an offset does not lie where it can; or the code of a new entry is not what it should be.
    Malformed,
    /// A version, a kind or a codec that this build does not read or write.
    Unsupported,
    /// A payload does not decompress to what the entry says.
    Codec,
    /// The code is larger than the caller allows, or a part of a new entry larger than the format does.
    Limit,
    /// The code does not fit into memory.
    Memory,
}

impl Error {
    /// Creates an error without a place.
    #[cold]
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error(Box::new(Inner { kind, offset: None, entry: None, message: message.into() }))
    }

    #[cold]
    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Malformed, message)
    }

    /// Creates an error of the header of the fatbinary.
    #[cold]
    pub(crate) fn of_header(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::new(kind, message).at(0)
    }

    /// Creates an error of an entry, which starts at an offset from the magic of the fatbinary.
    #[cold]
    pub(crate) fn at_entry(
        kind: ErrorKind,
        (index, offset): (usize, u64),
        message: impl fmt::Display,
    ) -> Self {
        let message = format!("fatbinary entry {index} at {offset:#x}{message}");
        Error(Box::new(Inner { kind, offset: Some(offset), entry: Some(index), message }))
    }

    #[cold]
    pub(crate) fn out_of_memory(size: u64) -> Self {
        Self::new(ErrorKind::Memory, format!("{size} bytes of code do not fit into memory"))
    }

    /// Creates the error of a part of a new entry that is larger than the format allows.
    #[cold]
    pub(crate) fn too_large(what: &str, size: usize) -> Self {
        let size = size as u64;
        let message = format!("its {what} would have {size} bytes, the format counts 32 bits");
        Self::new(ErrorKind::Limit, message)
    }

    /// Creates the error of a payload that this build does not decompress.
    #[cold]
    pub(crate) fn codec(codec: Codec) -> Self {
        let message = match codec {
            Codec::Scrambled => "scrambled LTO-IR, which only NVIDIA's linker reads".into(),
            Codec::Unknown => "compressed by an unknown codec".into(),
            codec => format!("compressed with {codec}, which this build has no codec for"),
        };
        Self::new(ErrorKind::Unsupported, message)
    }

    /// Returns the kind of the error.
    ///
    /// ```
    /// use nv_fatbin::{ErrorKind, Fatbin};
    ///
    /// let error = Fatbin::parse(b"\x50\xed\x55\xba\x01\0").unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Truncated);
    /// assert_eq!(error.to_string(), "fatbinary header needs 16 bytes, 6 are left");
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the place of the fault, in bytes from the start of the data that was given: of the fatbinary, or of the
    /// entry. `None` for faults of a payload by itself.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// Returns the number of the entry at fault, if it is one.
    #[must_use]
    pub fn entry(&self) -> Option<usize> {
        self.0.entry
    }

    /// Returns the same error of the header of a fatbinary that starts there.
    pub(crate) fn at(mut self, start: u64) -> Self {
        self.0.offset = Some(start);
        self
    }

    /// The payload of this entry is at fault.
    pub(crate) fn of_entry(mut self, index: usize) -> Self {
        self.0.entry = Some(index);
        self.0.message.insert_str(0, &format!("fatbinary entry {index}: "));
        self
    }
}
