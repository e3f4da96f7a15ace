//! Bounded, random access to the bytes of a file, or of what lies in memory.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::{Range, RangeInclusive};
use std::io::{self, Cursor, Read, Seek, SeekFrom};

use crate::{internal, len_of};

/// Anything that can be read at any position: a [`File`](std::fs::File), a [`Cursor`](std::io::Cursor), ...
pub trait ReadSeek: Read + Seek {}

impl<T: Read + Seek + ?Sized> ReadSeek for T {}

/// Sizes of the cached block after a jump: twice the bytes that are read, within these bounds. While reading goes on where
/// the block ends, it is the larger of these at least, and doubles.
const FIRST_BLOCK: RangeInclusive<usize> = 512..=4 * 1024;
const LARGEST_BLOCK: usize = 128 * 1024;

/// A reader with its length and one cached block, so that many small neighbouring reads cost one system call, and
/// one read far from all others costs little. Windows in it are ranges of its bytes.
///
/// ```
/// use std::io::Cursor;
/// use byte_parts::Source;
///
/// let mut file = Cursor::new(b"\0\0\0magic");
/// let mut source = Source::new(&mut file)?;
/// let start = source.skip_zeros(&(0..source.len()))?;
/// assert_eq!(source.peek(&(start..source.len()), 3)?, b"mag");
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Source<'r> {
    reader: Box<dyn ReadSeek + 'r>,
    len: u64,
    /// All bytes, where they are in memory anyway.
    memory: Option<Memory<'r>>,
    block_start: u64,
    block: Vec<u8>,
    /// The size that the block was to have.
    block_size: usize,
}

/// Bytes that are borrowed, or shared.
enum Memory<'r> {
    Borrowed(&'r [u8]),
    Shared(Arc<Vec<u8>>),
}

/// Bytes that are shared, for a [`Cursor`].
struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl<'r> Source<'r> {
    /// Creates a source of all bytes of a reader.
    ///
    /// # Errors
    ///
    /// An error of seeking to its end.
    pub fn new(mut reader: impl ReadSeek + 'r) -> io::Result<Self> {
        let len = reader.seek(SeekFrom::End(0))?;
        Ok(Self::with_len(reader, len))
    }

    /// Wraps a reader; only its first `len` bytes are read.
    pub fn with_len(reader: impl ReadSeek + 'r, len: u64) -> Self {
        let (reader, block) = (Box::new(reader), Vec::new());
        Source { reader, len, memory: None, block_start: 0, block, block_size: 0 }
    }

    /// Returns a source of bytes in memory.
    #[must_use]
    pub fn of_bytes(bytes: &'r [u8]) -> Self {
        let source = Self::with_len(Cursor::new(bytes), bytes.len() as u64);
        Source { memory: Some(Memory::Borrowed(bytes)), ..source }
    }

    /// Returns a source of bytes in memory that it keeps, and that others may share.
    #[must_use]
    pub fn of_shared(bytes: Arc<Vec<u8>>) -> Self {
        let len = bytes.len() as u64;
        let source = Self::with_len(Cursor::new(Shared(Arc::clone(&bytes))), len);
        Source { memory: Some(Memory::Shared(bytes)), ..source }
    }

    /// Returns the bytes of `range`, if the source is in memory and has them.
    #[must_use]
    pub fn bytes(&self, range: &Range<u64>) -> Option<&[u8]> {
        let index = |at: u64| usize::try_from(at).ok();
        let bytes = match self.memory.as_ref()? {
            Memory::Borrowed(bytes) => bytes,
            Memory::Shared(bytes) => &bytes[..],
        };
        bytes.get(index(range.start)?..index(range.end)?)
    }

    /// Returns the length in bytes.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "the length of a file, as `Metadata` has it")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns the reader, which may be moved to any position.
    pub fn reader(&mut self) -> &mut (dyn ReadSeek + 'r) {
        &mut *self.reader
    }

    /// Reads some bytes at `offset`, and returns how many: 0 at the end of the source. Interrupted reads are
    /// retried.
    ///
    /// # Errors
    ///
    /// Errors of the reader.
    pub fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        if offset >= self.len || buf.is_empty() {
            return Ok(0);
        }
        if let Some(bytes) = self.bytes(&(offset..self.len)) {
            let n = bytes.len().min(buf.len());
            if let (Some(to), Some(from)) = (buf.get_mut(..n), bytes.get(..n)) {
                to.copy_from_slice(from);
            }
            return Ok(n);
        }
        let in_block = offset.checked_sub(self.block_start);
        if in_block.is_none_or(|at| at >= self.block.len() as u64) {
            // Bytes between the block and this offset.
            let gap = in_block.and_then(|at| at.checked_sub(self.block.len() as u64));
            self.block_size = if gap.is_some_and(|gap| gap <= self.block_size as u64) {
                (self.block_size * 2).clamp(*FIRST_BLOCK.end(), LARGEST_BLOCK)
            } else {
                (buf.len() * 2).clamp(*FIRST_BLOCK.start(), *FIRST_BLOCK.end())
            };
            self.reader.seek(SeekFrom::Start(offset))?;
            if buf.len() >= self.block_size {
                self.block.clear();
                self.block_start = offset;
                let n = read_some(&mut *self.reader, buf)?;
                self.block_start = offset + n as u64;
                return Ok(n);
            }
            // The next read may start a little before this one.
            let kept = if gap == Some(0) { self.block.len().min(*FIRST_BLOCK.end()) } else { 0 };
            self.block.drain(..self.block.len() - kept);
            self.block_start = offset - kept as u64;
            self.fill_block()?;
        }
        let skip = usize::try_from(offset - self.block_start).ok();
        let available = skip.and_then(|skip| self.block.get(skip..)).ok_or_else(|| {
            io::Error::other(internal!("a block that ends before the bytes it was read for"))
        })?;
        let n = available.len().min(buf.len());
        if let (Some(to), Some(from)) = (buf.get_mut(..n), available.get(..n)) {
            to.copy_from_slice(from);
        }
        Ok(n)
    }

    /// Reads on from where the reader stands.
    fn fill_block(&mut self) -> io::Result<()> {
        let kept = self.block.len();
        self.block.resize(kept + self.block_size, 0);
        let read = read_some(&mut *self.reader, self.block.split_at_mut(kept).1);
        self.block.truncate(kept + *read.as_ref().unwrap_or(&0));
        read.map(drop)
    }

    /// Fills `buf` with the bytes at `offset`.
    ///
    /// # Errors
    ///
    /// Errors of the reader; [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if there are fewer bytes.
    pub fn read_exact_at(&mut self, mut offset: u64, mut buf: &mut [u8]) -> io::Result<()> {
        while !buf.is_empty() {
            let n = self.read_at(offset, buf)?;
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            offset += n as u64;
            (_, buf) = std::mem::take(&mut buf).split_at_mut(n);
        }
        Ok(())
    }

    /// Returns the first bytes of `window`, at most `max`; fewer if the window or the source has fewer.
    ///
    /// # Errors
    ///
    /// Errors of the reader.
    pub fn peek(&mut self, window: &Range<u64>, max: usize) -> io::Result<Vec<u8>> {
        let len = len_of(&(window.start..window.end.min(self.len))).min(max as u64);
        self.read_range(&(window.start..window.start + len))
    }

    /// Returns all bytes of `range`.
    ///
    /// # Errors
    ///
    /// Errors of the reader; [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if a part of the range lies past the
    /// end, before memory is reserved; [`OutOfMemory`](io::ErrorKind::OutOfMemory).
    pub fn read_range(&mut self, range: &Range<u64>) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.append_range(range, &mut bytes)?;
        Ok(bytes)
    }

    /// Returns all bytes of `range`: as they lie in memory where the source [has](Self::bytes) them there, else
    /// read.
    ///
    /// # Errors
    ///
    /// As [`read_range`](Self::read_range).
    pub fn range(&mut self, range: &Range<u64>) -> io::Result<Cow<'_, [u8]>> {
        if self.bytes(range).is_none() {
            return self.read_range(range).map(Cow::Owned);
        }
        let missing = || io::Error::other(internal!("bytes that were there"));
        self.bytes(range).map(Cow::Borrowed).ok_or_else(missing)
    }

    /// Appends all bytes of `range`.
    ///
    /// # Errors
    ///
    /// As [`read_range`](Self::read_range).
    pub fn append_range(&mut self, range: &Range<u64>, to: &mut Vec<u8>) -> io::Result<()> {
        let len = len_of(range);
        // A range beyond the end is a fault of the caller's bounds checks or of a file that shrank; never allocate for it.
        if range.end > self.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        to.try_reserve_exact(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        if let Some(bytes) = self.bytes(range) {
            to.extend_from_slice(bytes);
            return Ok(());
        }
        let before = to.len();
        if len < LARGEST_BLOCK {
            to.resize(before + len, 0);
            return self.read_exact_at(range.start, to.split_at_mut(before).1);
        }
        // Much at once goes into memory that nobody filled with zeros first.
        self.reader.seek(SeekFrom::Start(range.start))?;
        Read::take(&mut *self.reader, len as u64).read_to_end(to)?;
        if to.len() < before + len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    /// Returns as much of the start of the window as a parser asks for: `needed` is given what is there and the
    /// size of the window in bytes, and answers how many bytes it wants at least, or `None` once it has enough. The
    /// length read at least doubles from round to round, so that all rounds together cost two readings.
    ///
    /// # Errors
    ///
    /// Errors of the reader.
    pub fn read_prefix(
        &mut self,
        window: &Range<u64>,
        needed: impl Fn(&[u8], u64) -> Option<u64>,
    ) -> io::Result<Vec<u8>> {
        const FIRST: u64 = 512;
        let available = len_of(window);
        let mut len = FIRST.min(available);
        loop {
            let prefix = self.read_range(&(window.start..window.start + len))?;
            match needed(&prefix, available) {
                Some(needed) if len < available => {
                    len = needed.max(len * 2).min(available);
                }
                _ => return Ok(prefix),
            }
        }
    }

    /// Returns the first position in `window` that holds a byte other than zero; `window.end` if all are zero.
    ///
    /// # Errors
    ///
    /// Errors of the reader.
    pub fn skip_zeros(&mut self, window: &Range<u64>) -> io::Result<u64> {
        // Mostly there are none, or few.
        let first = self.peek(window, 64)?;
        if let Some(skip) = first.iter().position(|&b| b != 0) {
            return Ok(window.start + skip as u64);
        }
        let mut at = window.start;
        let mut buf = [0; 4096];
        while at < window.end {
            let n = self.read_at(at, &mut buf)?;
            if n == 0 && at < self.len {
                // The file became shorter while it was read: who knows what was there.
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if n == 0 {
                break;
            }
            let (chunk, _) = buf.split_at(n);
            if let Some(skip) = chunk.iter().position(|&b| b != 0) {
                return Ok((at + skip as u64).min(window.end));
            }
            at += n as u64;
        }
        Ok(window.end)
    }
}

/// Returns the position that a stream of `len` bytes, which is at `position`, seeks to.
///
/// # Errors
///
/// [`InvalidInput`](io::ErrorKind::InvalidInput) for one before the start.
pub fn seek_position(to: SeekFrom, position: u64, len: u64) -> io::Result<u64> {
    let position = match to {
        SeekFrom::Start(at) => Some(at),
        SeekFrom::End(by) => len.checked_add_signed(by),
        SeekFrom::Current(by) => position.checked_add_signed(by),
    };
    position.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// Prints the length only.
impl fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("len", &self.len).finish_non_exhaustive()
    }
}

/// Reads the bytes that are available at one time.
fn read_some(reader: &mut dyn ReadSeek, buf: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(buf) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;
    use std::vec;

    #[test]
    fn reads_across_blocks() {
        let data: Vec<u8> = (0..100_000u32).map(|i| (i % 251) as u8).collect();
        let mut cursor = Cursor::new(&data);
        let mut source = Source::new(&mut cursor).unwrap();
        assert_eq!(source.len(), 100_000);
        for range in [0..10, 16_380..16_390, 99_990..100_000, 5..90_000] {
            let bytes = source.read_range(&(range.start as u64..range.end as u64)).unwrap();
            assert_eq!(bytes, data[range.clone()]);
            let range = range.start as u64..range.end as u64;
            assert!(matches!(source.range(&range).unwrap(), Cow::Owned(read) if read == bytes));
            let mut source = Source::of_bytes(&data);
            assert!(matches!(source.range(&range).unwrap(), Cow::Borrowed(lent) if lent == bytes));
            assert!(source.range(&(range.start..100_001)).is_err());
        }
        assert!(source.read_range(&(99_990..100_001)).is_err());
        assert_eq!(source.peek(&(99_998..200_000), 10).unwrap(), data[99_998..]);
    }

    /// A reader that counts.
    struct Counted<'d>(Cursor<&'d [u8]>, usize, u64);

    impl Read for Counted<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let n = self.0.read(buf)?;
            (self.1, self.2) = (self.1 + 1, self.2 + n as u64);
            Ok(n)
        }
    }

    impl Seek for Counted<'_> {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }

    #[test]
    fn blocks_grow_while_reading_goes_on() {
        let data: Vec<u8> = (0..4_000_000u32).map(|i| (i % 251) as u8).collect();
        let read = |ranges: &mut dyn Iterator<Item = Range<usize>>| {
            let mut reader = Counted(Cursor::new(&data), 0, 0);
            let mut source = Source::new(&mut reader).unwrap();
            for range in ranges {
                let bytes = source.read_range(&(range.start as u64..range.end as u64)).unwrap();
                assert_eq!(bytes, data[range]);
            }
            drop(source);
            (reader.1, reader.2)
        };
        // On and on, with small gaps, and each read starting in the one before.
        let (reads, bytes) = read(&mut (0..4_000_000).step_by(100).map(|at| at..at + 100));
        assert!(reads < 40 && bytes == 4_000_000, "{reads} {bytes}");
        let (reads, bytes) = read(&mut (0..3_990_000).step_by(1000).map(|at| at..at + 500));
        assert!(reads < 40 && bytes <= 4_000_000, "{reads} {bytes}");
        let (reads, bytes) = read(&mut (0..3_990_000).step_by(100).map(|at| at..at + 2000));
        assert!(reads < 40 && bytes <= 4_000_000, "{reads} {bytes}");
        // Far apart, after the start.
        let (reads, bytes) = read(&mut (0..3_990_000).step_by(40_000).map(|at| at..at + 60));
        let (least, most) = (*FIRST_BLOCK.start() as u64, *FIRST_BLOCK.end() as u64);
        assert_eq!((reads, bytes), (100, most + 99 * least));
    }

    #[test]
    fn skips_zeros_to_the_next_byte_or_the_end() {
        let mut data = vec![0; 20_000];
        data[19_000] = 1;
        let mut cursor = Cursor::new(&data);
        let mut source = Source::new(&mut cursor).unwrap();
        assert_eq!(source.skip_zeros(&(0..20_000)).unwrap(), 19_000);
        assert_eq!(source.skip_zeros(&(0..500)).unwrap(), 500);
        assert_eq!(source.skip_zeros(&(19_001..20_000)).unwrap(), 20_000);
    }
}
