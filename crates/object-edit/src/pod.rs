//! Structs of `object`, read from bytes and from tables in files.

use std::ops::Range;

use byte_parts::Source;
use object::{LittleEndian, Pod, pod};

use crate::error::Error;
use crate::tables::absolute;

/// The byte order of COFF and PE files, and of linked ELF files that can be edited.
pub(crate) const LE: LittleEndian = LittleEndian;

/// Returns the struct at the start of the bytes; `None` if there are too few.
pub(crate) fn first<T: Pod>(bytes: &[u8]) -> Option<T> {
    const { assert!(align_of::<T>() == 1) };
    pod::from_bytes(bytes).ok().map(|(first, _)| *first)
}

/// Returns the whole entries of a table. Bytes after the last one do not count.
pub(crate) fn entries<T: Pod>(bytes: &[u8]) -> &[T] {
    const { assert!(align_of::<T>() == 1) };
    let count = bytes.len() / size_of::<T>();
    pod::slice_from_bytes(bytes, count).map_or(&[], |(entries, _)| entries)
}

/// Returns the little-endian number at an offset; 0 where it is not.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    u32::from_le_bytes(word.copied().unwrap_or_default())
}

/// Returns the little-endian number at an offset; 0 where it is not.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    u64::from_le_bytes(word.copied().unwrap_or_default())
}

/// Reads the entries in `range`, which counts from the start of the window. `beyond_end` makes an error of the length of
/// a window that ends before the range.
pub(crate) fn table<T: Pod>(
    source: &mut Source<'_>,
    window: &Range<u64>,
    range: &Range<u64>,
    beyond_end: impl FnOnce(u64) -> Error,
) -> Result<Vec<T>, Error> {
    let available = window.end.saturating_sub(window.start);
    if range.end > available {
        return Err(beyond_end(available));
    }
    let bytes = source.read_range(&absolute(window.start, range))?;
    Ok(entries(&bytes).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::U32;

    #[test]
    fn entries_may_be_unaligned_and_end_short() {
        let bytes = [9, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0];
        let words: &[U32<LittleEndian>] = entries(&bytes[1..]);
        assert_eq!(words.iter().map(|word| word.get(LE)).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(first::<U32<LittleEndian>>(&bytes[5..]).map(|word| word.get(LE)), Some(2));
        assert!(first::<U32<LittleEndian>>(&bytes[8..]).is_none());
        assert!(entries::<U32<LittleEndian>>(&bytes[8..]).is_empty());
    }
}
