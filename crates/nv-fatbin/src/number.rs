//! Numbers of the format, and memory.

use alloc::vec::Vec;

use crate::error::Error;

/// Takes memory for more bytes.
pub(crate) fn reserve(bytes: &mut Vec<u8>, size: usize) -> Result<(), Error> {
    bytes.try_reserve(size).map_err(|_| Error::out_of_memory(size as u64))
}

/// Returns a size as the format has it, in 32 bits.
pub(crate) fn number(what: &'static str, size: usize) -> Result<u32, Error> {
    u32::try_from(size).map_err(|_| Error::too_large(what, size))
}
