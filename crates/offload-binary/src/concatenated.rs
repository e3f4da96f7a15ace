//! Reading several binaries one after the other.

use core::iter::FusedIterator;

use crate::binary::OffloadBinary;
use crate::error::Error;

/// Reads binaries that lie one after the other in `data`, as a linker leaves them when it puts
/// sections of several object files together.
///
/// Each comes with the offset in bytes of its start in `data`. Zeros before, between and after
/// binaries are skipped, whatever their number; anything else ends the walk with an error, and
/// after an error there is nothing but `None`. Each step costs what
/// [`parse`](OffloadBinary::parse) does, and all together no more than one reading of `data`.
///
/// # Errors
///
/// As [`OffloadBinary::parse`] for a damaged binary, with its place; for bytes that are neither zero nor a binary,
/// [`NotABinary`](crate::ErrorKind::NotABinary) at the start of `data` and
/// [`TrailingData`](crate::ErrorKind::TrailingData) after it.
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub fn binaries(data: &[u8]) -> impl FusedIterator<Item = Result<(u64, OffloadBinary<'_>), Error>> {
    byte_parts::concatenated(data, |rest, offset| {
        let binary = OffloadBinary::parse(rest).map_err(|error| error.in_binary(offset))?;
        let size = binary.size();
        Ok((binary, size))
    })
}
