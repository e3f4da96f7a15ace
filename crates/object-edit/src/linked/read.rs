//! Numbers and tables of linked files.

use std::ops::Range;

use byte_parts::{Source, Window};
use object::Pod;

use crate::error::Error;
use crate::pod::entries;
use crate::tables::absolute;

/// Returns the little-endian number at an offset; 0 where it is not.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    word.map_or(0, |word| u32::from_le_bytes(*word))
}

/// Returns the little-endian number at an offset; 0 where it is not.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    word.map_or(0, |word| u64::from_le_bytes(*word))
}

/// Reads the entries in `range`, which counts from the start of the window. `beyond_end` makes an error of the length of
/// a window that ends before the range.
pub(crate) fn table<T: Pod>(
    source: &mut Source<'_>,
    window: &Range<u64>,
    range: &Range<u64>,
    beyond_end: impl FnOnce(u64) -> Error,
) -> Result<Vec<T>, Error> {
    let available = Window::new(window).len();
    if range.end > available {
        return Err(beyond_end(available));
    }
    let bytes = source.read_range(&absolute(window.start, range))?;
    Ok(entries(&bytes).to_vec())
}
