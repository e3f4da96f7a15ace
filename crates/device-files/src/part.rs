//! A part of a reader.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use byte_parts::seek_position;

/// The bytes of a range of a reader.
pub(crate) struct Part<R> {
    reader: R,
    range: Range<u64>,
    at: u64,
}

impl<R: Read + Seek> Part<R> {
    pub(crate) fn new(reader: R, range: Range<u64>) -> Self {
        Part { reader, range, at: 0 }
    }

    pub(crate) fn len(&self) -> u64 {
        self.range.end - self.range.start
    }
}

impl<R: Read + Seek> Read for Part<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        // A position may be after the end.
        let left = self.len().saturating_sub(self.at);
        if left == 0 {
            return Ok(0);
        }
        self.reader.seek(SeekFrom::Start(self.range.start + self.at))?;
        let read = self.reader.by_ref().take(left).read(buf)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl<R: Read + Seek> Seek for Part<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = seek_position(to, self.at, self.len())?;
        Ok(self.at)
    }
}
