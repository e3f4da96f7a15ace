//! Structs of `object`, read from bytes.

use object::{LittleEndian, Pod, pod};

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

/// Returns the bytes from an offset on; none where it lies after them, as offsets of names may.
pub(crate) fn rest(bytes: &[u8], from: u64) -> &[u8] {
    usize::try_from(from).ok().and_then(|from| bytes.get(from..)).unwrap_or_default()
}

/// Returns the bytes before the first zero, all if there is none.
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or(bytes)
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
