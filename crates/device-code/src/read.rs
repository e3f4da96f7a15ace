//! Reads of a part of a source.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use byte_parts::Window;
use llvm_bitcode::{ReadAt, Unreadable};

/// Bytes of PTX and SPIR-V that are read: directives and capabilities stand first, after comments and names.
pub const HEAD: usize = 16 << 10;

/// Returns the first bytes of `window`, at most `max`.
pub(crate) fn peek(
    source: &mut dyn ReadAt,
    window: &Range<u64>,
    max: usize,
) -> Result<Vec<u8>, Unreadable> {
    let len = Window::new(window).len().min(max as u64);
    read_range(source, &(window.start..window.start + len))
}

/// Returns all bytes of `range`, none of one that ends before its start. Callers bound its length.
pub(crate) fn read_range(
    source: &mut dyn ReadAt,
    range: &Range<u64>,
) -> Result<Vec<u8>, Unreadable> {
    let len = usize::try_from(Window::new(range).len()).map_err(|_| Unreadable)?;
    let mut bytes = vec![0; len];
    source.read_exact_at(range.start, &mut bytes)?;
    Ok(bytes)
}
