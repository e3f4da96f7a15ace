//! Reading a file from several places at the same time.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use byte_parts::{Ranges, seek_position};

use crate::stop::Stop;

/// Bytes of files that were read by now.
static READ: AtomicU64 = AtomicU64::new(0);

/// Returns the number of bytes that all readers have read by now, to show how far work is.
pub(crate) fn read() -> u64 {
    READ.load(Ordering::Relaxed)
}

/// The ranges of a file that cannot be read.
#[derive(Debug, Default)]
pub struct Holes {
    /// In order.
    ranges: Vec<Range<u64>>,
    were_read: AtomicBool,
}

impl Holes {
    /// Creates holes from their ranges, in order.
    pub fn new(ranges: Vec<Range<u64>>) -> Self {
        Holes { ranges, were_read: false.into() }
    }

    /// Returns the ranges.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }

    /// Returns whether somebody asked for bytes of a hole.
    pub fn were_read(&self) -> bool {
        self.were_read.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes, at most `len`, that can be read at a place. Fails in a hole.
    fn readable(&self, at: u64, len: u64) -> io::Result<u64> {
        let next = self.ranges.partition_point(|hole| hole.end <= at);
        match self.ranges.get(next) {
            Some(hole) if hole.start > at => Ok(len.min(hole.start - at)),
            Some(_) if len > 0 => {
                self.were_read.store(true, Ordering::Relaxed);
                Err(io::Error::other("bytes of an image that were not kept"))
            }
            _ => Ok(len),
        }
    }
}

/// A position of its own in a file that others read, too. Moving it costs nothing.
#[derive(Clone, Copy)]
pub struct Positioned<'f> {
    /// Without, all bytes are in `head`, or are fetched.
    file: Option<&'f File>,
    ranges: Option<&'f Ranges>,
    /// The offset in the file of what is read.
    start: u64,
    /// The bytes that cannot be read.
    holes: Option<&'f Holes>,
    /// The first bytes, which were read before.
    head: &'f [u8],
    /// The size of the file, if it is known.
    len: Option<u64>,
    position: u64,
    /// The flag after which nothing can be read.
    stop: Option<&'f Stop>,
}

impl fmt::Debug for Positioned<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Positioned")
            .field("file", &self.file)
            .field("start", &self.start)
            .field("len", &self.len)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

impl<'f> Positioned<'f> {
    /// Creates the start of a file.
    pub fn new(file: &'f File) -> Self {
        Positioned { file: Some(file), ..Positioned::of_bytes(&[]) }.with_len(None)
    }

    /// Creates the start of bytes in memory.
    pub fn of_bytes(head: &'f [u8]) -> Self {
        let len = Some(head.len() as u64);
        let (file, ranges, holes, stop) = (None, None, None, None);
        Positioned { file, ranges, start: 0, holes, head, len, position: 0, stop }
    }

    /// Creates the start of a part of a file.
    pub fn of_range(file: &'f File, range: &Range<u64>) -> Self {
        let start = range.start;
        Positioned { start, ..Positioned::new(file).with_len(Some(range.end - start)) }
    }

    /// Creates the start of a part of a file whose bytes are fetched.
    pub fn of_ranges(ranges: &'f Ranges, range: &Range<u64>) -> Self {
        let len = Some(range.end - range.start);
        Positioned { ranges: Some(ranges), start: range.start, len, ..Positioned::of_bytes(&[]) }
    }

    fn with_len(self, len: Option<u64>) -> Self {
        Positioned { len, ..self }
    }

    /// Adds the first bytes, which were read before.
    pub fn with_head(self, head: &'f [u8]) -> Self {
        Positioned { head, ..self }
    }

    /// Adds a flag after which nothing can be read.
    pub(crate) fn until(self, stop: &'f Stop) -> Self {
        Positioned { stop: Some(stop), ..self }
    }

    /// Creates the start of the first `len` bytes of a file, where some are missing.
    pub fn with_holes(file: &'f File, len: u64, holes: &'f Holes) -> Self {
        Positioned { holes: Some(holes), len: Some(len), ..Positioned::new(file) }
    }

    /// Returns whether several threads may read at the same time: elsewhere reading moves the position of the file
    /// itself.
    pub fn shares() -> bool {
        cfg!(any(unix, windows))
    }
}

impl Read for Positioned<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.stop.map_or(Ok(()), Stop::check)?;
        let start = usize::try_from(self.position).ok();
        if let Some(known) =
            start.and_then(|start| self.head.get(start..)).filter(|k| !k.is_empty())
        {
            let read = known.len().min(buf.len());
            if let (Some(to), Some(from)) = (buf.get_mut(..read), known.get(..read)) {
                to.copy_from_slice(from);
            }
            self.position += read as u64;
            return Ok(read);
        }
        if self.len.is_some_and(|len| self.position >= len) {
            return Ok(0);
        }
        if self.file.is_none() && self.ranges.is_none() {
            return Ok(0);
        }
        let mut len = buf.len();
        if let Some(most) = self.len {
            let left = most - self.position;
            len = usize::try_from(left).map_or(len, |left| left.min(len));
        }
        if let Some(holes) = self.holes {
            let readable = holes.readable(self.position, len as u64)?;
            len = usize::try_from(readable).unwrap_or(len);
        }
        let place = self.start + self.position;
        let buf = buf.split_at_mut(len).0;
        let read = match (self.file, self.ranges) {
            (Some(file), _) => read_at(file, buf, place)?,
            (None, Some(ranges)) => ranges.read_at(place, buf)?,
            (None, None) => 0,
        };
        READ.fetch_add(read as u64, Ordering::Relaxed);
        self.position += read as u64;
        Ok(read)
    }
}

impl Seek for Positioned<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let len = match (to, self.len, self.file) {
            (SeekFrom::End(_), None, Some(file)) => file.metadata()?.len(),
            (_, len, _) => len.unwrap_or(0),
        };
        self.position = seek_position(to, self.position, len)?;
        Ok(self.position)
    }
}

#[cfg(unix)]
fn read_at(file: &File, buf: &mut [u8], position: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buf, position)
}

#[cfg(windows)]
fn read_at(file: &File, buf: &mut [u8], position: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buf, position)
}

#[cfg(not(any(unix, windows)))]
fn read_at(mut file: &File, buf: &mut [u8], position: u64) -> io::Result<usize> {
    file.seek(SeekFrom::Start(position))?;
    file.read(buf)
}

/// Returns the same file, read from a position of its own.
#[cfg(target_os = "linux")]
pub fn reopen(file: &File) -> Option<File> {
    File::open(crate::directory::in_proc(file)).ok()
}

/// Returns `None`: other systems cannot reopen a file.
#[cfg(not(target_os = "linux"))]
pub fn reopen(_file: &File) -> Option<File> {
    None
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn positions_are_independent() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"0123456789").unwrap();
        let (mut one, mut two) = (Positioned::new(&file), Positioned::new(&file));
        let next = |reader: &mut Positioned<'_>| {
            let mut bytes = [0; 2];
            reader.read_exact(&mut bytes).map(|()| bytes)
        };
        assert_eq!(next(&mut one).unwrap(), *b"01");
        assert_eq!(one.seek(SeekFrom::End(-4)).unwrap(), 6);
        assert_eq!(next(&mut two).unwrap(), *b"01");
        assert_eq!(next(&mut one).unwrap(), *b"67");
        assert_eq!(one.seek(SeekFrom::Current(-3)).unwrap(), 5);
        assert_eq!(next(&mut one).unwrap(), *b"56");
        assert_eq!(two.seek(SeekFrom::Start(20)).unwrap(), 20);
        assert_eq!(next(&mut two).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert!(one.seek(SeekFrom::Current(-8)).is_err());
        assert!(one.seek(SeekFrom::End(-11)).is_err());
    }
}
