//! Headers of host files, for readers of the crate `object`.

use core::cell::Cell;
use core::fmt;
use core::ops::Range;
use std::io::{self, Read, Seek, SeekFrom};

use object::read::{ReadCache, ReadCacheRange, ReadRef};

use crate::budget::Budget;
use crate::len_of;
use crate::source::{Source, seek_position};

impl<'r> Source<'r> {
    /// Runs `f` over the bytes of `window`, read as it asks for them.
    ///
    /// Reads fail after eight times the length of the window, plus 1 MiB: the tables of an honest file do not overlap,
    /// and are read at most twice. This is not an error here, because the file is malformed.
    ///
    /// ```
    /// use std::io::Cursor;
    /// use byte_parts::Source;
    /// use object::read::ReadRef;
    ///
    /// let mut source = Source::new(Cursor::new(b"header"))?;
    /// let first = source.with_headers(&(4..6), |headers| headers.read_at::<u8>(0).copied())?;
    /// assert_eq!(first, Ok(b'e'));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The first error of the reader, whatever `f` makes of it; [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if it
    /// ends early.
    pub fn with_headers<T>(
        &mut self,
        window: &Range<u64>,
        f: impl for<'a, 'b> FnOnce(Headers<'a, 'b, 'r>) -> T,
    ) -> io::Result<T> {
        if let Some(bytes) = self.bytes(window) {
            return Ok(f(Headers(Bytes::Memory(bytes))));
        }
        let len = len_of(window);
        let cache = ReadCache::new(HeaderReader::new(self, len));
        let strings = Cell::new((0, &[][..]));
        let out = f(Headers(Bytes::Cache(cache.range(window.start, len), &strings)));
        cache.into_inner().finish()?;
        Ok(out)
    }
}

/// The bytes of a window as the crate `object` reads them: memory, or a cache, whose own strings end at 4096 bytes; here
/// they have any length.
#[derive(Clone, Copy)]
pub struct Headers<'a, 'b, 'r>(Bytes<'a, 'b, 'r>);

#[derive(Clone, Copy)]
enum Bytes<'a, 'b, 'r> {
    Memory(&'a [u8]),
    /// The cache, which looks blocks up, and the block of strings that was read last: its start and its bytes.
    Cache(ReadCacheRange<'a, HeaderReader<'b, 'r>>, &'a Cell<(u64, &'a [u8])>),
}

impl fmt::Debug for Headers<'_, '_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Headers").finish_non_exhaustive()
    }
}

impl<'a> Headers<'a, '_, '_> {
    /// Returns the bytes of the window, if they are in memory.
    #[must_use]
    pub fn in_memory(self) -> Option<&'a [u8]> {
        match self.0 {
            Bytes::Memory(bytes) => Some(bytes),
            Bytes::Cache(..) => None,
        }
    }
}

/// Strings are read in blocks of this size: a table has many, and they are looked up in any order.
const STRINGS: u64 = 32 << 10;

impl<'a> ReadRef<'a> for Headers<'a, '_, '_> {
    fn len(self) -> Result<u64, ()> {
        match self.0 {
            Bytes::Memory(bytes) => ReadRef::len(bytes),
            Bytes::Cache(cache, _) => cache.len(),
        }
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        match self.0 {
            Bytes::Memory(bytes) => bytes.read_bytes_at(offset, size),
            Bytes::Cache(cache, _) => cache.read_bytes_at(offset, size),
        }
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        let (cache, last) = match self.0 {
            Bytes::Memory(bytes) => return bytes.read_bytes_at_until(range, delimiter),
            Bytes::Cache(cache, last) => (cache, last),
        };
        // The cache itself compares with the end of what lies around.
        if range.end > cache.len()? || range.end < range.start {
            return Err(());
        }
        let skip = range.start % STRINGS;
        let start = range.start - skip;
        let len = STRINGS.min(range.end - start);
        if last.get().0 != start || (last.get().1.len() as u64) < len {
            last.set((start, cache.read_bytes_at(start, len)?));
        }
        if let Ok(bytes) = last.get().1.read_bytes_at_until(skip..len, delimiter) {
            return Ok(bytes);
        }
        // It is in two blocks, or longer.
        if let Ok(bytes) = cache.read_bytes_at_until(range.clone(), delimiter) {
            return Ok(bytes);
        }
        let all = range.end.checked_sub(range.start).ok_or(())?;
        let mut len = 4096;
        while len < all {
            len = all.min(len * 2);
            let bytes = cache.read_bytes_at(range.start, len)?;
            if let Some(end) = bytes.iter().position(|&byte| byte == delimiter) {
                return bytes.get(..end).ok_or(());
            }
        }
        Err(())
    }
}

/// A [`Source`] as a stream with a budget. It keeps the first error of reading, which the crate `object` takes for a
/// malformed file. A source that ends early is an error.
struct HeaderReader<'a, 'r> {
    source: &'a mut Source<'r>,
    position: u64,
    budget: Budget,
    failed: Option<io::Error>,
}

impl<'a, 'r> HeaderReader<'a, 'r> {
    /// Creates a stream at the start of the source, to read a file of this length in it.
    fn new(source: &'a mut Source<'r>, file_len: u64) -> Self {
        let mut budget = Budget::new(1 << 20);
        budget.grow(file_len, 8);
        HeaderReader { source, position: 0, budget, failed: None }
    }

    /// Returns the first error of reading.
    fn finish(self) -> io::Result<()> {
        self.failed.map_or(Ok(()), Err)
    }
}

impl Read for HeaderReader<'_, '_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let ends_early = self.position < self.source.len() && !buf.is_empty();
        let error = match self.source.read_at(self.position, buf) {
            Ok(0) if ends_early => io::ErrorKind::UnexpectedEof.into(),
            // Only bytes that were read count: a source may return fewer than it is asked for, any number of times.
            Ok(n) if !self.budget.take(n as u64) => {
                return Err(io::Error::other("header tables overlap too much"));
            }
            Ok(n) => {
                // Bytes were read up to there.
                self.position += n as u64;
                return Ok(n);
            }
            Err(error) => error,
        };
        let kind = error.kind();
        self.failed.get_or_insert(error);
        Err(kind.into())
    }
}

impl Seek for HeaderReader<'_, '_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = seek_position(to, self.position, self.source.len())?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use std::io::Cursor;

    #[test]
    fn reading_stops_at_the_budget() {
        let data = [0; 64];
        let mut source = Source::of_bytes(&data);
        let mut reader = HeaderReader::new(&mut source, 64);
        let mut buf = [0; 64];
        let mut reads = 0;
        while reader.rewind().is_ok() && reader.read(&mut buf).is_ok() {
            reads += 1;
        }
        assert_eq!(reads, (8 * 64 + (1 << 20)) / 64);
        reader.finish().unwrap();
    }

    #[test]
    fn a_source_that_ends_early_is_an_error() {
        let mut source = Source::with_len(Cursor::new(b"short"), 100);
        let read = source.with_headers(&(0..100), |headers| headers.read_bytes_at(90, 8).is_err());
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn strings_have_any_length() {
        let data = [&[b'n'; 10_000][..], b"\0"].concat();
        for mut source in [Source::of_bytes(&data), Source::new(Cursor::new(&data)).unwrap()] {
            let read = |headers: Headers<'_, '_, '_>| {
                headers.read_bytes_at_until(10..10_001, 0).map(<[u8]>::len)
            };
            assert_eq!(source.with_headers(&(0..10_001), read).unwrap(), Ok(9990));
        }
    }

    /// A source that returns a byte at a time.
    struct Slow(Cursor<Vec<u8>>);

    impl Read for Slow {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let len = buf.len().min(1);
            self.0.read(&mut buf[..len])
        }
    }

    impl Seek for Slow {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }

    #[test]
    fn short_reads_cost_what_they_return() {
        let data = b"name\0".repeat(600);
        let all = 0..data.len() as u64;
        let mut slow = Slow(Cursor::new(data));
        let mut source = Source::new(&mut slow).unwrap();
        for start in [0, 5, 2_995] {
            let until = |headers: Headers<'_, '_, '_>| {
                headers.read_bytes_at_until(start..all.end, 0).map(<[u8]>::to_vec)
            };
            assert_eq!(source.with_headers(&all, until).unwrap(), Ok(b"name".to_vec()));
        }
    }

    #[test]
    fn strings_end_in_any_block() {
        let mut data = b"n".repeat(3 * 32_768);
        for end in [100, 32_767, 32_768, 33_000, 66_000] {
            data[end] = 0;
        }
        let all = 0..data.len() as u64;
        for mut source in [Source::of_bytes(&data), Source::new(Cursor::new(&data)).unwrap()] {
            let mut len = |start: u64| {
                let until = |headers: Headers<'_, '_, '_>| {
                    headers.read_bytes_at_until(start..all.end, 0).map(<[u8]>::len)
                };
                source.with_headers(&all, until).unwrap()
            };
            assert_eq!([len(0), len(101), len(32_768), len(32_769)], [100, 32_666, 0, 231].map(Ok));
            assert_eq!([len(32_700), len(33_001), len(66_001)], [Ok(67), Ok(32_999), Err(())]);
        }
    }
}
