//! Errors of reading and writing bitcode.

use alloc::vec::Vec;
use core::fmt;

/// Malformed LLVM bitcode, a limit, or an input that cannot be read.
///
/// The text says what is wrong, where, and what was expected; [`kind`](Self::kind) and [`offset`](Self::offset) are for
/// programs.
#[derive(Debug)]
pub struct Error(Problem);

/// Kind of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The magic is missing where the bitcode must start, or there is no module.
    NotBitcode,
    /// Something reaches past the end of the block, wrapper or file that holds it.
    Truncated,
    /// The bitcode breaks a rule of its format.
    Malformed,
    /// The bitcode exceeds a limit: the caller's, or one that no compiler reaches. A written block exceeds what its
    /// length field can say.
    Limit,
    /// There is not enough memory.
    Memory,
    /// The input could not be read: a [`ReadAt`](crate::ReadAt) returned [`Unreadable`](crate::Unreadable).
    Unreadable,
}

impl Error {
    /// Returns the kind of the error.
    ///
    /// ```
    /// let error = llvm_bitcode::symbols(b"BC\xc0\xde").unwrap_err();
    /// assert_eq!(error.kind(), llvm_bitcode::ErrorKind::NotBitcode);
    /// assert_eq!(error.to_string(), "bitcode ends at byte 0x4 without a module");
    /// ```
    pub fn kind(&self) -> ErrorKind {
        match self.0 {
            Problem::Magic { .. } | Problem::NoModule { .. } => ErrorKind::NotBitcode,
            Problem::TruncatedWrapper { .. }
            | Problem::WrapperBeyondEnd { .. }
            | Problem::BeyondEnd { .. }
            | Problem::BlockBeyondEnd { .. } => ErrorKind::Truncated,
            Problem::AbbreviationWidth { .. }
            | Problem::NoBlock { .. }
            | Problem::UndefinedAbbreviation { .. }
            | Problem::Abbreviation { .. }
            | Problem::NumberTooLarge { .. }
            | Problem::Record { .. }
            | Problem::SymbolName { .. }
            | Problem::Missing { .. }
            | Problem::NotBytes { .. } => ErrorKind::Malformed,
            Problem::TooMany { .. } | Problem::TooLarge { .. } | Problem::BlockTooLarge { .. } => {
                ErrorKind::Limit
            }
            Problem::OutOfMemory { .. } => ErrorKind::Memory,
            Problem::Unreadable { .. } => ErrorKind::Unreadable,
        }
    }

    /// Returns the place of the fault, in bytes from the start of the bitcode, its wrapper included; of a field that starts
    /// inside a byte, the offset of that byte. `None` if the fault has no single place.
    pub fn offset(&self) -> Option<u64> {
        match self.0 {
            Problem::TruncatedWrapper { .. } => Some(0),
            Problem::WrapperBeyondEnd { start, .. } | Problem::BlockBeyondEnd { start, .. } => {
                Some(start)
            }
            Problem::Magic { offset, .. }
            | Problem::BeyondEnd { offset, .. }
            | Problem::AbbreviationWidth { offset, .. }
            | Problem::NoBlock { offset, .. }
            | Problem::NoModule { offset }
            | Problem::UndefinedAbbreviation { offset, .. }
            | Problem::Abbreviation { offset, .. }
            | Problem::NumberTooLarge { offset }
            | Problem::Record { offset, .. }
            | Problem::NotBytes { offset, .. }
            | Problem::TooLarge { offset, .. }
            | Problem::OutOfMemory { offset }
            | Problem::Unreadable { offset } => Some(offset),
            Problem::TooMany { .. }
            | Problem::SymbolName { .. }
            | Problem::Missing { .. }
            | Problem::BlockTooLarge { .. } => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl core::error::Error for Error {}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Error(problem)
    }
}

/// One fault, with all that its text says.
#[derive(Debug)]
pub(crate) enum Problem {
    TruncatedWrapper {
        available: u64,
    },
    WrapperBeyondEnd {
        start: u64,
        end: u64,
        available: u64,
    },
    Magic {
        offset: u64,
        found: Vec<u8>,
    },
    /// A field reaches past the end of the block or file that holds it. The bits of an array or blob are those of all
    /// its elements, at the least.
    BeyondEnd {
        offset: u64,
        bits: u64,
        end: u64,
    },
    BlockBeyondEnd {
        id: u64,
        start: u64,
        end: u64,
        available: u64,
    },
    AbbreviationWidth {
        id: u64,
        offset: u64,
        width: u64,
    },
    NoBlock {
        offset: u64,
        found: u64,
    },
    NoModule {
        offset: u64,
    },
    UndefinedAbbreviation {
        offset: u64,
        id: u64,
    },
    Abbreviation {
        offset: u64,
        what: &'static str,
    },
    NumberTooLarge {
        offset: u64,
    },
    Record {
        offset: u64,
        code: u64,
        expected: &'static str,
    },
    TooMany {
        what: &'static str,
        limit: usize,
    },
    /// `available` is 0 where there is no string table.
    SymbolName {
        start: u64,
        end: u64,
        available: u64,
    },
    /// `what` is `metadata node`, `metadata operand`, `global variable` or `constant`.
    Missing {
        what: &'static str,
        id: u64,
    },
    NotBytes {
        offset: u64,
        code: u64,
    },
    /// `size` is a lower bound where the length is not recorded.
    TooLarge {
        offset: u64,
        size: u64,
        limit: u64,
    },
    BlockTooLarge {
        size: u64,
        limit: u64,
    },
    OutOfMemory {
        offset: u64,
    },
    Unreadable {
        offset: u64,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TruncatedWrapper { available } => {
                write!(f, "bitcode wrapper needs 20 bytes, {available} are there")
            }
            Self::WrapperBeyondEnd { start, end, available } => write!(
                f,
                "bitcode wrapper places the bitcode at {start:#x}..{end:#x}, beyond the end of the file at {available:#x}"
            ),
            Self::Magic { offset, found } => {
                write!(f, "bitcode at {offset:#x} starts with {found:02x?}, expected 42 43 c0 de")
            }
            Self::BeyondEnd { offset, bits, end } => write!(
                f,
                "bitcode field of {bits} bits at byte {offset:#x} reaches beyond the end of its block at {end:#x}"
            ),
            Self::BlockBeyondEnd { id, start, end, available } => write!(
                f,
                "bitcode block {id} lies at {start:#x}..{end:#x}, beyond the end of its parent block at \
                 {available:#x}"
            ),
            Self::AbbreviationWidth { id, offset, width } => write!(
                f,
                "bitcode block {id} at byte {offset:#x} has abbreviation IDs of {width} bits, expected 1 to 32"
            ),
            Self::NoBlock { offset, found } => write!(
                f,
                "bitcode has abbreviation ID {found} at byte {offset:#x}, where a block must start (1)"
            ),
            Self::NoModule { offset } => {
                write!(f, "bitcode ends at byte {offset:#x} without a module")
            }
            Self::UndefinedAbbreviation { offset, id } => write!(
                f,
                "bitcode record at byte {offset:#x} uses abbreviation {id}, which is not defined"
            ),
            Self::Abbreviation { offset, what } => {
                write!(f, "bitcode abbreviation defined before byte {offset:#x} has {what}")
            }
            Self::NumberTooLarge { offset } => {
                write!(f, "bitcode number before byte {offset:#x} does not fit into 64 bits")
            }
            Self::Record { offset, code, expected } => {
                write!(
                    f,
                    "bitcode record of code {code} before byte {offset:#x} is not a {expected}"
                )
            }
            Self::TooMany { what, limit } => write!(f, "bitcode has more than {limit} {what}"),
            Self::SymbolName { start, end, available } => write!(
                f,
                "bitcode symbol has its name at {start:#x}..{end:#x} of the string table, beyond its end at {available:#x}"
            ),
            Self::Missing { what, id } => write!(
                f,
                "bitcode metadata llvm.embedded.objects refers to {what} {id}, which does not exist"
            ),
            Self::NotBytes { offset, code } => write!(
                f,
                "bitcode global in llvm.embedded.objects is initialised by a constant of code {code} at byte {offset:#x}, expected a string of bytes"
            ),
            Self::TooLarge { offset, size, limit } => write!(
                f,
                "bitcode embeds {size} bytes of device code at byte {offset:#x}, more than the limit of {limit}"
            ),
            Self::BlockTooLarge { size, limit } => {
                write!(f, "bitcode block has {size:#x} bytes, expected at most {limit:#x}")
            }
            Self::OutOfMemory { offset } => {
                write!(f, "bitcode at byte {offset:#x} needs more memory than is available")
            }
            Self::Unreadable { offset } => write!(f, "bitcode cannot be read at byte {offset:#x}"),
        }
    }
}
