//! Names of symbols.

use alloc::vec::Vec;

use crate::error::Error;

/// Names of symbols, bounded by the length of the file they come from.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) list: Vec<Vec<u8>>,
    symbols_left: usize,
    bytes_left: usize,
    max_symbols: usize,
    max_bytes: usize,
}

impl Names {
    /// Returns an empty list with limits for a file of this length. Each symbol takes some bytes of a real file,
    /// several may share a name: modules of one file that define the same weak symbols share their string table.
    pub(crate) fn new(file_len: usize) -> Self {
        // A limit that is too large for a number is not one.
        let (max_symbols, max_bytes) = (file_len / 4, file_len.saturating_mul(16));
        let (symbols_left, bytes_left) = (max_symbols, max_bytes);
        Names { list: Vec::new(), symbols_left, bytes_left, max_symbols, max_bytes }
    }

    /// Makes sure that there may be one more symbol. Undefined symbols count as well.
    pub(crate) fn count(&mut self) -> Result<(), Error> {
        let limit = self.max_symbols;
        let too_many = || Error::too_many("symbols for its length", limit);
        self.symbols_left = self.symbols_left.checked_sub(1).ok_or_else(too_many)?;
        Ok(())
    }

    /// Adds the name that `parts` make together.
    pub(crate) fn push(&mut self, parts: &[&[u8]]) -> Result<(), Error> {
        let len = parts.iter().map(|part| part.len()).sum();
        let limit = self.max_bytes;
        let too_long = || Error::too_many("bytes of symbol names for its length", limit);
        self.bytes_left = self.bytes_left.checked_sub(len).ok_or_else(too_long)?;
        self.list.push(parts.concat());
        Ok(())
    }
}

/// Returns a part of the bytes; `None` where it lies beyond their end.
pub(crate) fn slice(bytes: &[u8], start: u64, len: u64) -> Option<&[u8]> {
    let (start, len) = (usize::try_from(start).ok()?, usize::try_from(len).ok()?);
    bytes.get(start..)?.get(..len)
}
