//! Random access to the bytes that are being walked: a file, a thin archive's member, or decompressed data.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use object::read::{ReadCacheRange, ReadRef};

/// Anything that can be read at any position: a [`File`](std::fs::File), a [`Cursor`](std::io::Cursor), ...
pub trait ReadSeek: Read + Seek {}

impl<T: Read + Seek + ?Sized> ReadSeek for T {}

/// Where the bytes of a [`Source`] come from, which decides what an offset in it means to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The file given to the walk.
    File,
    /// The decompressed contents of a compressed bundle.
    Decompressed,
    /// A file named by a thin archive.
    ThinMember,
    /// The data of a global variable in LLVM bitcode.
    Bitcode,
}

/// The cached block behind a jump: a few headers. It doubles as long as reading goes on where the block ends.
const FIRST_BLOCK: usize = 4 * 1024;
const LARGEST_BLOCK: usize = 128 * 1024;

/// What is copied at a time.
const PIECE: usize = 256 * 1024;

/// A reader with its length and one cached block, so that many small neighbouring reads cost one system call, and
/// one read far from all others costs little.
pub(crate) struct Source<'r> {
    reader: &'r mut dyn ReadSeek,
    len: u64,
    origin: Origin,
    /// All bytes, where they are in memory anyway.
    bytes: Option<&'r [u8]>,
    /// `true` if only the start can be read.
    is_start: bool,
    block_start: u64,
    block: Vec<u8>,
    /// The size that the block was to have.
    block_size: usize,
}

impl<'r> Source<'r> {
    pub(crate) fn new(reader: &'r mut dyn ReadSeek, origin: Origin) -> io::Result<Self> {
        let len = reader.seek(SeekFrom::End(0))?;
        Ok(Source {
            reader,
            len,
            origin,
            bytes: None,
            is_start: false,
            block_start: 0,
            block: Vec::new(),
            block_size: 0,
        })
    }

    /// The start of something of which no more can be read.
    pub(crate) fn of_start(reader: &'r mut dyn ReadSeek, len: u64, origin: Origin) -> Self {
        let (bytes, block) = (None, Vec::new());
        Source { reader, len, origin, bytes, is_start: true, block_start: 0, block, block_size: 0 }
    }

    /// Returns whether only the start can be read.
    pub(crate) fn is_start(&self) -> bool {
        self.is_start
    }

    /// What is in memory, and a reader of the same.
    pub(crate) fn of_bytes(reader: &'r mut dyn ReadSeek, bytes: &'r [u8], origin: Origin) -> Self {
        let (len, bytes) = (bytes.len() as u64, Some(bytes));
        let block = Vec::new();
        Source { reader, len, origin, bytes, is_start: false, block_start: 0, block, block_size: 0 }
    }

    /// The bytes of `range`, if the source is in memory and has them.
    pub(crate) fn bytes(&self, range: &Range<u64>) -> Option<&'r [u8]> {
        let index = |at: u64| usize::try_from(at).ok();
        self.bytes?.get(index(range.start)?..index(range.end)?)
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// What is read from, which may be moved to any position.
    pub(crate) fn reader(&mut self) -> &mut dyn ReadSeek {
        &mut *self.reader
    }

    /// Reads some bytes at `offset`; 0 at the end of the source. Interruptions are no errors.
    pub(crate) fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
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
        let end = self.block_start.saturating_add(self.block.len() as u64);
        if !(self.block_start..end).contains(&offset) {
            let goes_on = (end..=end.saturating_add(self.block_size as u64)).contains(&offset);
            self.block_size = match goes_on {
                true => self.block_size.saturating_mul(2).clamp(FIRST_BLOCK, LARGEST_BLOCK),
                false => FIRST_BLOCK,
            };
            self.reader.seek(SeekFrom::Start(offset))?;
            if buf.len() >= self.block_size {
                self.block.clear();
                self.block_start = offset;
                let n = read_some(self.reader, buf)?;
                self.block_start = offset.saturating_add(n as u64);
                return Ok(n);
            }
            // The next read may start a little before this one.
            let kept = if offset == end { self.block.len().min(FIRST_BLOCK) } else { 0 };
            self.block.drain(..self.block.len() - kept);
            self.block_start = offset - kept as u64;
            self.fill_block()?;
        }
        let skip = usize::try_from(offset - self.block_start).unwrap_or(usize::MAX);
        let available = self.block.get(skip..).unwrap_or_default();
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
        let read = read_some(self.reader, self.block.get_mut(kept..).unwrap_or_default());
        self.block.truncate(kept + *read.as_ref().unwrap_or(&0));
        read.map(drop)
    }

    pub(crate) fn read_exact_at(&mut self, mut offset: u64, mut buf: &mut [u8]) -> io::Result<()> {
        while !buf.is_empty() {
            let n = self.read_at(offset, buf)?;
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            offset += n as u64;
            buf = buf.get_mut(n..).unwrap_or_default();
        }
        Ok(())
    }

    /// The first bytes of `window`, at most `max`.
    pub(crate) fn peek(&mut self, window: &Range<u64>, max: usize) -> io::Result<Vec<u8>> {
        let end = window.end.min(self.len).min(window.start.saturating_add(max as u64));
        self.read_range(&(window.start..end.max(window.start)))
    }

    /// All bytes of `range`, which must lie inside the source.
    pub(crate) fn read_range(&mut self, range: &Range<u64>) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.append_range(range, &mut bytes)?;
        Ok(bytes)
    }

    /// Appends all bytes of `range`, which must lie inside the source.
    pub(crate) fn append_range(&mut self, range: &Range<u64>, to: &mut Vec<u8>) -> io::Result<()> {
        let len = range.end.saturating_sub(range.start);
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
            return self.read_exact_at(range.start, to.get_mut(before..).unwrap_or_default());
        }
        // Much at once goes into memory that nobody filled with zeros first.
        self.reader.seek(SeekFrom::Start(range.start))?;
        Read::take(&mut *self.reader, len as u64).read_to_end(to)?;
        if to.len() < before + len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    /// The first position in `window` that holds a byte other than zero; `window.end` when all are zero.
    pub(crate) fn skip_zeros(&mut self, window: &Range<u64>) -> io::Result<u64> {
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
            let chunk = buf.get(..n).unwrap_or_default();
            if let Some(skip) = chunk.iter().position(|&b| b != 0) {
                return Ok((at + skip as u64).min(window.end));
            }
            at += n as u64;
        }
        Ok(window.end)
    }
}

/// Reads what there is to be had at one time.
fn read_some(reader: &mut dyn ReadSeek, buf: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(buf) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// [`Read`] over a part of a [`Source`].
pub(crate) struct SourceReader<'a, 'r> {
    source: &'a mut Source<'r>,
    window: Range<u64>,
}

impl<'a, 'r> SourceReader<'a, 'r> {
    pub(crate) fn new(source: &'a mut Source<'r>, window: Range<u64>) -> Self {
        SourceReader { source, window }
    }

    /// Hands out all bytes, in pieces: in one, if they are in memory.
    pub(crate) fn pieces(
        &mut self,
        each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        if let Some(bytes) = self.source.bytes(&self.window) {
            return each(bytes);
        }
        let left = self.window.end.saturating_sub(self.window.start);
        let mut buffer = vec![0; usize::try_from(left).unwrap_or(PIECE).min(PIECE)];
        while self.window.start < self.window.end {
            let n = self.read(&mut buffer)?;
            each(buffer.get(..n).unwrap_or_default())?;
        }
        Ok(())
    }
}

impl Read for SourceReader<'_, '_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.window.end.saturating_sub(self.window.start))
            .unwrap_or(usize::MAX);
        let want = left.min(buf.len());
        if want > 0 && self.source.is_start {
            let error = "images of compressed bundles are not read by a walk of tables only";
            return Err(io::Error::new(io::ErrorKind::Unsupported, error));
        }
        let n = self.source.read_at(self.window.start, buf.get_mut(..want).unwrap_or_default())?;
        if n == 0 && want > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.window.start += n as u64;
        Ok(n)
    }
}

/// A view of a window for the `object` crate, which reads headers and names through it.
///
/// It stops after `budget` bytes: an honest file's headers are read once or twice, only a hostile one makes
/// its tables overlap so that reading them costs (and caches) a multiple of the file.
pub(crate) struct HeaderReader<'a, 'r> {
    source: &'a mut Source<'r>,
    position: u64,
    budget: u64,
    /// The first error of the source itself: `object` reports it as a malformed file, which it is not.
    pub(crate) failed: Option<io::Error>,
}

impl<'a, 'r> HeaderReader<'a, 'r> {
    pub(crate) fn new(source: &'a mut Source<'r>, window_len: u64) -> Self {
        let budget = window_len.saturating_mul(8).saturating_add(1 << 20);
        HeaderReader { source, position: 0, budget, failed: None }
    }
}

impl Read for HeaderReader<'_, '_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.budget = self
            .budget
            .checked_sub(buf.len() as u64)
            .ok_or_else(|| io::Error::other("header tables overlap too much"))?;
        let inside = self.position < self.source.len() && !buf.is_empty();
        match self.source.read_at(self.position, buf) {
            Ok(0) if inside => {
                // The file became shorter while it was read.
                self.failed.get_or_insert(io::ErrorKind::UnexpectedEof.into());
                Ok(0)
            }
            Ok(n) => {
                self.position += n as u64;
                Ok(n)
            }
            Err(e) => {
                let kind = e.kind();
                self.failed.get_or_insert(e);
                Err(kind.into())
            }
        }
    }
}

impl Seek for HeaderReader<'_, '_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.source.len().checked_add_signed(by),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
        }
        .ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

/// The bytes that the `object` crate reads: memory, or a cache, whose own strings end at 4096 bytes; here they
/// have any length.
#[derive(Clone, Copy)]
pub(crate) enum Headers<'a, 'b, 'r> {
    Memory(&'a [u8]),
    Cache(ReadCacheRange<'a, HeaderReader<'b, 'r>>),
}

impl<'a> ReadRef<'a> for Headers<'a, '_, '_> {
    fn len(self) -> Result<u64, ()> {
        match self {
            Headers::Memory(bytes) => ReadRef::len(bytes),
            Headers::Cache(cache) => cache.len(),
        }
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        match self {
            Headers::Memory(bytes) => bytes.read_bytes_at(offset, size),
            Headers::Cache(cache) => cache.read_bytes_at(offset, size),
        }
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        let cache = match self {
            Headers::Memory(bytes) => return bytes.read_bytes_at_until(range, delimiter),
            Headers::Cache(cache) => cache,
        };
        // The cache itself compares with the end of what lies around.
        if range.end > cache.len()? {
            return Err(());
        }
        if let Ok(bytes) = cache.read_bytes_at_until(range.clone(), delimiter) {
            return Ok(bytes);
        }
        let all = range.end.saturating_sub(range.start);
        let mut len = 4096;
        while len < all {
            len = all.min(len.saturating_mul(2));
            let bytes = cache.read_bytes_at(range.start, len)?;
            if let Some(end) = bytes.iter().position(|&byte| byte == delimiter) {
                return bytes.get(..end).ok_or(());
            }
        }
        Err(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn reads_across_blocks() {
        let data: Vec<u8> = (0..100_000u32).map(|i| (i % 251) as u8).collect();
        let mut cursor = Cursor::new(&data);
        let mut source = Source::new(&mut cursor, Origin::File).unwrap();
        assert_eq!(source.len(), 100_000);
        for range in [0..10, 16_380..16_390, 99_990..100_000, 5..90_000] {
            let bytes = source.read_range(&(range.start as u64..range.end as u64)).unwrap();
            assert_eq!(bytes, data[range]);
        }
        assert!(source.read_range(&(99_990..100_001)).is_err());
        assert_eq!(source.peek(&(99_998..200_000), 10).unwrap(), data[99_998..]);
        let mut all = Vec::new();
        SourceReader::new(&mut source, 7..70_000).read_to_end(&mut all).unwrap();
        assert_eq!(all, data[7..70_000]);
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
            let mut source = Source::new(&mut reader, Origin::File).unwrap();
            for range in ranges {
                let bytes = source.read_range(&(range.start as u64..range.end as u64)).unwrap();
                assert_eq!(bytes, data[range]);
            }
            (reader.1, reader.2)
        };
        // On and on, with small gaps, and each read starting in the one before.
        let (reads, bytes) = read(&mut (0..4_000_000).step_by(100).map(|at| at..at + 100));
        assert!(reads < 40 && bytes == 4_000_000, "{reads} {bytes}");
        let (reads, bytes) = read(&mut (0..3_990_000).step_by(1000).map(|at| at..at + 500));
        assert!(reads < 40 && bytes <= 4_000_000, "{reads} {bytes}");
        let (reads, bytes) = read(&mut (0..3_990_000).step_by(100).map(|at| at..at + 2000));
        assert!(reads < 40 && bytes <= 4_000_000, "{reads} {bytes}");
        // Far apart.
        let (reads, bytes) = read(&mut (0..3_990_000).step_by(40_000).map(|at| at..at + 60));
        assert_eq!((reads, bytes), (100, 100 * FIRST_BLOCK as u64));
    }

    #[test]
    fn skips_zeros_to_the_next_byte_or_the_end() {
        let mut data = vec![0; 20_000];
        data[19_000] = 1;
        let mut cursor = Cursor::new(&data);
        let mut source = Source::new(&mut cursor, Origin::File).unwrap();
        assert_eq!(source.skip_zeros(&(0..20_000)).unwrap(), 19_000);
        assert_eq!(source.skip_zeros(&(0..500)).unwrap(), 500);
        assert_eq!(source.skip_zeros(&(19_001..20_000)).unwrap(), 20_000);
    }

    #[test]
    fn header_reader_stops_at_its_budget() {
        let data = [0u8; 64];
        let mut cursor = Cursor::new(&data);
        let mut source = Source::new(&mut cursor, Origin::File).unwrap();
        let mut reader = HeaderReader::new(&mut source, 64);
        let mut buf = [0; 64];
        let mut reads = 0;
        while reader.seek(SeekFrom::Start(0)).is_ok() && reader.read(&mut buf).is_ok() {
            reads += 1;
        }
        assert_eq!(reads, (8 * 64 + (1 << 20)) / 64);
    }
}
