//! Errors of reading and writing a fatbinary.

use core::fmt;

use crate::kinds::{Architecture, Codec};

/// An error in a fatbinary, with its place.
///
/// The text says what is wrong, where, and what was expected; [`kind`](Self::kind), [`entry`](Self::entry) and
/// [`offset`](Self::offset) are for programs. Entries are numbered from 0.
#[derive(Clone, Debug)]
pub struct Error {
    problem: Problem,
    /// The start of the fatbinary in the data that was given.
    start: u64,
    entry: Option<usize>,
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
        match self.problem {
            Problem::NotAFatbin => ErrorKind::NotAFatbin,
            Problem::TruncatedHeader { .. } | Problem::BeyondEnd { .. } => ErrorKind::Truncated,
            Problem::Incomplete { .. } => ErrorKind::Incomplete,
            Problem::EntryBeyondEnd { .. }
            | Problem::EntryHeaderSize { .. }
            | Problem::CompressedSize { .. }
            | Problem::Extension { .. }
            | Problem::Record { .. }
            | Problem::NotACubin
            | Problem::OtherArchitecture { .. }
            | Problem::PtxVersion
            | Problem::NotLtoIr => ErrorKind::Malformed,
            Problem::Version { .. }
            | Problem::Codec { .. }
            | Problem::Concatenated
            | Problem::NoEncoder => ErrorKind::Unsupported,
            Problem::Stream { .. } => ErrorKind::Codec,
            Problem::TooLarge { .. } | Problem::Field { .. } => ErrorKind::Limit,
            Problem::OutOfMemory { .. } => ErrorKind::Memory,
        }
    }

    /// Returns the place of the fault, in bytes from the start of the data that was given: of the fatbinary, or of the
    /// entry. `None` for faults of a payload by itself.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        let offset = match self.problem {
            Problem::NotAFatbin
            | Problem::TruncatedHeader { .. }
            | Problem::Version { .. }
            | Problem::BeyondEnd { .. } => 0,
            Problem::Incomplete { offset, .. }
            | Problem::EntryBeyondEnd { offset, .. }
            | Problem::EntryHeaderSize { offset, .. }
            | Problem::CompressedSize { offset, .. }
            | Problem::Extension { offset, .. }
            | Problem::Record { offset, .. } => offset,
            _ => return None,
        };
        Some(self.start.saturating_add(offset))
    }

    /// Returns the number of the entry, where the error is about one.
    #[must_use]
    pub fn entry(&self) -> Option<usize> {
        match self.problem {
            Problem::Incomplete { index, .. }
            | Problem::EntryBeyondEnd { index, .. }
            | Problem::EntryHeaderSize { index, .. }
            | Problem::CompressedSize { index, .. }
            | Problem::Extension { index, .. }
            | Problem::Record { index, .. } => Some(index),
            _ => self.entry,
        }
    }

    /// The fatbinary starts there.
    pub(crate) fn moved(self, start: u64) -> Self {
        Error { start, ..self }
    }

    /// It is about the payload of this entry.
    pub(crate) fn of_entry(self, index: usize) -> Self {
        Error { entry: Some(index), ..self }
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Error { problem, start: 0, entry: None }
    }
}

/// One fault, with all that its text says. Offsets count from the magic of the fatbinary.
#[derive(Clone, Debug)]
pub(crate) enum Problem {
    NotAFatbin,
    TruncatedHeader {
        available: u64,
    },
    Version {
        version: u16,
        header_size: u16,
    },
    BeyondEnd {
        size: u64,
        available: u64,
    },
    Incomplete {
        index: usize,
        offset: u64,
        needed: u64,
    },
    EntryBeyondEnd {
        index: usize,
        offset: u64,
        end: u64,
        available: u64,
    },
    EntryHeaderSize {
        index: usize,
        offset: u64,
        header_size: u32,
    },
    CompressedSize {
        index: usize,
        offset: u64,
        exact: u64,
        padded: u64,
    },
    Extension {
        index: usize,
        offset: u64,
        what: &'static str,
        at: u32,
        end: u64,
        header_size: u32,
    },
    Record {
        index: usize,
        offset: u64,
        record: u32,
        expected: &'static str,
    },
    Codec {
        codec: Codec,
    },
    Stream {
        codec: Codec,
        stored: u64,
        expected: u64,
        found: Option<u64>,
    },
    TooLarge {
        size: u64,
        limit: u64,
    },
    OutOfMemory {
        size: u64,
    },
    NotACubin,
    OtherArchitecture {
        architecture: Architecture,
        found: u32,
    },
    PtxVersion,
    NotLtoIr,
    Concatenated,
    #[cfg_attr(feature = "zstd", allow(dead_code, reason = "other builds have no libzstd"))]
    NoEncoder,
    Field {
        what: &'static str,
        size: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(index) = self.entry {
            write!(f, "fatbinary entry {index}: ")?;
        }
        match &self.problem {
            Problem::NotAFatbin => f.write_str("expected the magic of a fatbinary, 50 ed 55 ba"),
            Problem::TruncatedHeader { available } => {
                write!(f, "fatbinary header needs 16 bytes, {available} are left")
            }
            Problem::Version { version, header_size } => write!(
                f,
                "fatbinary version {version} with a header of {header_size} bytes, expected version 1 with 16"
            ),
            Problem::BeyondEnd { size, available } => {
                write!(f, "fatbinary promises {size} bytes after its header, {available} are left")
            }
            Problem::Incomplete { index, offset, needed } => write!(
                f,
                "fatbinary entry {index} at {offset:#x}: expected its first {needed} bytes in memory"
            ),
            Problem::EntryBeyondEnd { index, offset, end, available } => write!(
                f,
                "fatbinary entry {index} at {offset:#x} reaches to {end:#x}, beyond the end of the fatbinary at {available:#x}"
            ),
            Problem::EntryHeaderSize { index, offset, header_size } => write!(
                f,
                "fatbinary entry {index} at {offset:#x} has a header size of {header_size}, expected at least 64"
            ),
            Problem::CompressedSize { index, offset, exact, padded } => write!(
                f,
                "fatbinary entry {index} at {offset:#x} has {exact} bytes of compressed payload in a space of {padded}"
            ),
            Problem::Extension { index, offset, what, at, end, header_size } => write!(
                f,
                "fatbinary entry {index} at {offset:#x}: its {what} at {at:#x}..{end:#x} is not between 0x40 and the end of its \
                 header at {header_size:#x}"
            ),
            Problem::Record { index, offset, record, expected } => write!(
                f,
                "fatbinary entry {index} at {offset:#x}: image {record} of its table: expected {expected}"
            ),
            Problem::Codec { codec: Codec::Scrambled } => {
                f.write_str("scrambled LTO-IR, which only NVIDIA's linker reads")
            }
            Problem::Codec { codec: Codec::Unknown } => {
                f.write_str("compressed by an unknown codec")
            }
            Problem::Codec { codec } => {
                write!(f, "compressed with {codec}, which this build has no codec for")
            }
            Problem::Stream { codec, stored, expected, found: None } => write!(
                f,
                "malformed {codec} data: expected {expected} bytes from the {stored} stored"
            ),
            Problem::Stream { codec, stored, expected, found: Some(found) } => write!(
                f,
                "malformed {codec} data: expected {expected} bytes from the {stored} stored, found {found}"
            ),
            Problem::TooLarge { size, limit } => {
                write!(f, "decompresses to {size} bytes, more than the limit of {limit}")
            }
            Problem::OutOfMemory { size } => {
                write!(f, "{size} bytes of code do not fit into memory")
            }
            Problem::NotACubin => {
                f.write_str("expected a cubin: a little-endian ELF file for machine 190")
            }
            Problem::OtherArchitecture { architecture, found } => {
                write!(f, "the cubin is for sm_{found}, expected one for {architecture}")
            }
            Problem::PtxVersion => {
                f.write_str("expected PTX with its version, such as .version 8.7")
            }
            Problem::NotLtoIr => f.write_str("expected LTO-IR: ed 43 4e 7f, and its version"),
            Problem::Concatenated => f.write_str(
                "several images are written from NewEntry::concatenated, and none of them is several",
            ),
            Problem::NoEncoder => {
                f.write_str("this build cannot compress with zstd: it lacks libzstd")
            }
            Problem::Field { what, size } => {
                write!(f, "its {what} would have {size} bytes, the format counts 32 bits")
            }
        }
    }
}

impl core::error::Error for Error {}
