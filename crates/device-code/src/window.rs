//! Reads of a part of a source.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use llvm_bitcode::{ReadAt, Unreadable};

/// Bytes of PTX and SPIR-V that are read: directives and capabilities stand first, after comments and names.
pub const HEAD: usize = 16 << 10;

/// Returns the first bytes of `window`, at most `max`.
pub(crate) fn peek(
    source: &mut dyn ReadAt,
    window: &Range<u64>,
    max: usize,
) -> Result<Vec<u8>, Unreadable> {
    read_range(source, &(window.start..window.start + len(window).min(max as u64)))
}

/// Returns the place of `size` bytes at an offset in the window; `None` if they do not lie in it.
pub(crate) fn part(window: &Range<u64>, offset: u64, size: u64) -> Option<Range<u64>> {
    let start = window.start.checked_add(offset)?;
    let end = start.checked_add(size).filter(|&end| end <= window.end)?;
    Some(start..end)
}

/// Returns the bytes from an offset in the window on; `None` if there are none.
pub(crate) fn rest(window: &Range<u64>, offset: u64) -> Option<Range<u64>> {
    let start = window.start.checked_add(offset).filter(|&start| start < window.end)?;
    Some(start..window.end)
}

/// Returns the number of bytes in a range: none if it ends before it starts.
fn len(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

/// Returns all bytes of `range`, none of one that ends before its start. Callers bound its length.
pub(crate) fn read_range(
    source: &mut dyn ReadAt,
    range: &Range<u64>,
) -> Result<Vec<u8>, Unreadable> {
    let mut bytes = vec![0; usize::try_from(len(range)).map_err(|_| Unreadable)?];
    source.read_exact_at(range.start, &mut bytes)?;
    Ok(bytes)
}
