//! Errors of reading and writing bitcode.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

/// Malformed LLVM bitcode, a limit, or an input that cannot be read.
///
/// The text says what is wrong, where, and what was expected; [`kind`](Self::kind) and [`offset`](Self::offset) are for
/// programs.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", .0.message)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    kind: ErrorKind,
    offset: Option<u64>,
    message: String,
}

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
    #[cold]
    pub(crate) fn new(kind: ErrorKind, offset: impl Into<Option<u64>>, message: String) -> Self {
        Error(Box::new(Inner { kind, offset: offset.into(), message }))
    }

    #[cold]
    pub(crate) fn no_module(offset: u64) -> Self {
        let message = format!("bitcode ends at byte {offset:#x} without a module");
        Self::new(ErrorKind::NotBitcode, offset, message)
    }

    #[cold]
    pub(crate) fn record(offset: u64, code: u64, expected: &str) -> Self {
        let message =
            format!("bitcode record of code {code} before byte {offset:#x} is not a {expected}");
        Self::new(ErrorKind::Malformed, offset, message)
    }

    #[cold]
    pub(crate) fn too_many(what: &str, limit: usize) -> Self {
        Self::new(ErrorKind::Limit, None, format!("bitcode has more than {limit} {what}"))
    }

    /// Creates the error of a name that lies past the end of a string table; a missing table is empty.
    #[cold]
    pub(crate) fn symbol_name(start: u64, len: u64, strings: &[u8]) -> Self {
        let (end, available) = (u128::from(start) + u128::from(len), strings.len());
        let message = format!(
            "bitcode symbol has its name at {start:#x}..{end:#x} of the string table, beyond its end at {available:#x}"
        );
        Self::new(ErrorKind::Malformed, None, message)
    }

    #[cold]
    pub(crate) fn unreadable(offset: u64) -> Self {
        let message = format!("bitcode cannot be read at byte {offset:#x}");
        Self::new(ErrorKind::Unreadable, offset, message)
    }

    /// Returns the kind of the error.
    ///
    /// ```
    /// let error = llvm_bitcode::symbols(b"BC\xc0\xde").unwrap_err();
    /// assert_eq!(error.kind(), llvm_bitcode::ErrorKind::NotBitcode);
    /// assert_eq!(error.to_string(), "bitcode ends at byte 0x4 without a module");
    /// ```
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the place of the fault, in bytes from the start of the bitcode, its wrapper included; of a field that starts
    /// inside a byte, the offset of that byte. `None` if the fault has no single place.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }
}
