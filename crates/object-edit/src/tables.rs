//! Parts of files, and tables read entry by entry.

use std::io;
use std::ops::Range;

use byte_parts::Source;

use crate::error::Error;

/// About how much of a table is in memory at a time.
const CHUNK: u64 = 64 * 1024;

/// Calls `f` with every entry of the table at `range`, its number, and its offset in the walked file. Bytes after
/// the last whole entry are ignored.
pub(super) fn for_each(
    source: &mut Source<'_>,
    range: &Range<u64>,
    entry_len: u64,
    mut f: impl FnMut(&mut Source<'_>, u64, u64, &[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut at = range.start;
    let mut number = 0;
    let chunk_len = CHUNK - CHUNK % entry_len;
    while let Some(left) = range.end.checked_sub(at).filter(|&left| left >= entry_len) {
        let chunk = source.read_range(&(at..at + chunk_len.min(left)))?;
        for entry in chunk.chunks_exact(usize::try_from(entry_len).unwrap_or(1)) {
            f(source, number, at, entry)?;
            number += 1;
            at += entry_len;
        }
    }
    Ok(())
}

/// Reads bytes of an object, which are there.
pub(super) type Read<'r> = dyn FnMut(&Range<u64>) -> Result<Vec<u8>, Error> + 'r;

/// Reads from an object that starts at `base` in the walked file.
pub(super) fn in_source(
    source: &mut Source<'_>,
    base: u64,
) -> impl FnMut(&Range<u64>) -> Result<Vec<u8>, Error> {
    move |range| Ok(source.read_range(&absolute(base, range))?)
}

/// Reads from an object in memory.
pub(super) fn in_memory(object: &[u8]) -> impl FnMut(&Range<u64>) -> Result<Vec<u8>, Error> {
    move |range| {
        let range = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
        let bytes = range.and_then(|(start, end)| object.get(start..end));
        bytes
            .map(<[u8]>::to_vec)
            .ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof).into())
    }
}

/// Returns the range of `size` bytes at `start`. Headers may ask for bytes after offset 2^64: the range then ends after every file.
pub(super) fn sized(start: u64, size: u64) -> Range<u64> {
    start..start.saturating_add(size)
}

/// Returns a range of a file that starts at `base` in the walked file, there. Headers may name any: it then ends after every file.
pub(super) fn absolute(base: u64, range: &Range<u64>) -> Range<u64> {
    base.saturating_add(range.start)..base.saturating_add(range.end)
}

/// Returns a range of the walked file as one of the file in the window, for errors: a caller may have asked for one outside of
/// it, which then starts or ends where the window starts.
pub(super) fn relative(window: &Range<u64>, range: &Range<u64>) -> Range<u64> {
    range.start.saturating_sub(window.start)..range.end.saturating_sub(window.start)
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "samples are small")]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn every_entry_is_visited_once() {
        let data: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        let mut reader = Cursor::new(data);
        let mut source = Source::new(&mut reader).unwrap();
        for entry_len in [4_u64, 20, 24] {
            let mut count = 0;
            for_each(&mut source, &(4..700_003), entry_len, |_, number, at, entry| {
                assert_eq!((number, at), (count, 4 + count * entry_len));
                assert_eq!(entry.len() as u64, entry_len);
                assert_eq!(entry[..4], (at as u32 / 4).to_le_bytes());
                count += 1;
                Ok(())
            })
            .unwrap();
            assert_eq!(count, 699_999 / entry_len);
        }
    }
}
