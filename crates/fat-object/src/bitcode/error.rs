//! What can be wrong with LLVM bitcode.

use std::io;

/// Malformed LLVM bitcode. Offsets are bytes from the start of the file, member or entry that is bitcode, its
/// wrapper included; of a field that starts inside a byte, the offset of that byte.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file ends inside the wrapper's header.
    #[error("bitcode wrapper needs 20 bytes, {available} are there")]
    TruncatedWrapper {
        /// Bytes that are there.
        available: u64,
    },
    /// The wrapper places the bitcode beyond the end of the file.
    #[error(
        "bitcode wrapper places the bitcode at {start:#x}..{end:#x}, beyond the end of the file at {available:#x}"
    )]
    WrapperBeyondEnd {
        /// The wrapper's offset field.
        start: u64,
        /// The offset plus the wrapper's size field.
        end: u64,
        /// Length of the file.
        available: u64,
    },
    /// No raw bitcode starts where it must.
    #[error("bitcode at {offset:#x} starts with {found:02x?}, expected 42 43 c0 de")]
    Magic {
        /// Where the bitcode should start.
        offset: u64,
        /// The bytes found there, at most four.
        found: Vec<u8>,
    },
    /// A field reaches beyond the end of the block or file that holds it.
    #[error(
        "bitcode field of {bits} bits at byte {offset:#x} reaches beyond the end of its block at {end:#x}"
    )]
    BeyondEnd {
        /// Where the field starts.
        offset: u64,
        /// Its width; for an array or blob of all its elements, at the least.
        bits: u64,
        /// Where the block or file ends.
        end: u64,
    },
    /// A block is longer than what holds it.
    #[error(
        "bitcode block {id} reaches from {start:#x} to {end:#x}, beyond the end of the block around it at {available:#x}"
    )]
    BlockBeyondEnd {
        /// The block's ID.
        id: u64,
        /// Where its contents start.
        start: u64,
        /// Where they end, by its length field.
        end: u64,
        /// Where the block or file around it ends.
        available: u64,
    },
    /// A block announces abbreviation IDs of an impossible width.
    #[error(
        "bitcode block {id} at byte {offset:#x} has abbreviation IDs of {width} bits, expected 1 to 32"
    )]
    AbbreviationWidth {
        /// The block's ID.
        id: u64,
        /// Where its header ends.
        offset: u64,
        /// The width found.
        width: u64,
    },
    /// Outside all blocks there is something other than a block.
    #[error(
        "bitcode has abbreviation ID {found} at byte {offset:#x}, where a block must start (1)"
    )]
    NoBlock {
        /// Where it is.
        offset: u64,
        /// The abbreviation ID found.
        found: u64,
    },
    /// There is no module: the file is cut short, or was never bitcode.
    #[error("bitcode ends at byte {offset:#x} without a module")]
    NoModule {
        /// Where the last block ends.
        offset: u64,
    },
    /// A record uses an abbreviation that its block does not define.
    #[error("bitcode record at byte {offset:#x} uses abbreviation {id}, which is not defined")]
    UndefinedAbbreviation {
        /// Where the record starts.
        offset: u64,
        /// The abbreviation's ID.
        id: u64,
    },
    /// The definition of an abbreviation breaks a rule of the format.
    #[error("bitcode abbreviation defined before byte {offset:#x} has {what}")]
    Abbreviation {
        /// Where reading it stopped.
        offset: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A number of variable width does not fit into 64 bits.
    #[error("bitcode number before byte {offset:#x} does not fit into 64 bits")]
    NumberTooLarge {
        /// Where reading it stopped.
        offset: u64,
    },
    /// A record that is needed lacks operands, or has the wrong ones.
    #[error("bitcode record of code {code} before byte {offset:#x} is no {expected}")]
    Record {
        /// Where reading it stopped.
        offset: u64,
        /// The record's code.
        code: u64,
        /// What it must be.
        expected: &'static str,
    },
    /// More of something than any compiler writes, and than would be held in memory.
    #[error("bitcode has more than {limit} {what}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// A symbol's name lies beyond the end of the string table, or there is none.
    #[error(
        "bitcode symbol has its name at {start:#x}..{end:#x} of the string table, beyond its end at {available:#x}"
    )]
    SymbolName {
        /// Where the name starts in the string table.
        start: u64,
        /// Where it ends.
        end: u64,
        /// Length of the string table; 0 where there is none.
        available: u64,
    },
    /// Something that leads to the embedded data is referred to, but does not exist.
    #[error("bitcode metadata llvm.embedded.objects leads to {what} {id}, which does not exist")]
    Missing {
        /// `metadata node`, `metadata operand`, `global variable` or `constant`.
        what: &'static str,
        /// Its number in the module.
        id: u64,
    },
    /// A global variable listed as embedded device code is not initialised by a string of bytes.
    #[error(
        "bitcode global in llvm.embedded.objects is initialised by a constant of code {code} at byte {offset:#x}, expected a string of bytes"
    )]
    NotBytes {
        /// Where the constant's operands start.
        offset: u64,
        /// The code of the constant's record.
        code: u64,
    },
    /// Embedded data would take more memory than the walk may hold.
    #[error(
        "bitcode embeds {size} bytes of device code at byte {offset:#x}, more than the limit of {limit}"
    )]
    TooLarge {
        /// Where the data starts.
        offset: u64,
        /// Its length in bytes; at least, where it is not recorded.
        size: u64,
        /// What may still be held.
        limit: u64,
    },
}

/// Why reading bitcode stopped: the source failed, or the bitcode is malformed.
#[derive(Debug)]
pub(super) enum Fault {
    Io(io::Error),
    Malformed(Error),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Fault::Io(error)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::Malformed(error)
    }
}
