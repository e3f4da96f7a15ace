//! A source for readers that lose errors.

use std::io::{self, Read, Seek, SeekFrom};

use crate::budget::Budget;
use crate::source::Source;

/// A [`Source`] as a stream for readers of headers. It keeps the first error of reading, which such a reader would take
/// for a malformed file. A source that ends early is an error.
///
/// Reads fail after eight times the length of the file, plus 1 MiB: the tables of an honest file do not overlap, and are
/// read at most twice. [`finish`](Self::finish) does not return this failure, because the file is malformed.
///
/// ```
/// use std::io::{Cursor, Read};
/// use byte_parts::{Source, Watched};
///
/// let mut source = Source::with_len(Cursor::new(b"short"), 100);
/// let mut watched = Watched::new(&mut source, 100);
/// let _ = watched.read_to_end(&mut Vec::new());
/// assert_eq!(watched.finish().unwrap_err().kind(), std::io::ErrorKind::UnexpectedEof);
/// ```
pub struct Watched<'a, 'r> {
    source: &'a mut Source<'r>,
    position: u64,
    budget: Budget,
    failed: Option<io::Error>,
}

impl<'a, 'r> Watched<'a, 'r> {
    /// Creates a stream at the start of the source, to read a file of this length in it.
    pub fn new(source: &'a mut Source<'r>, file_len: u64) -> Self {
        // A number that is too large limits nothing.
        let budget = Budget::new(file_len.saturating_mul(8).saturating_add(1 << 20));
        Watched { source, position: 0, budget, failed: None }
    }

    /// Ends the stream.
    ///
    /// # Errors
    ///
    /// The first error of reading.
    pub fn finish(self) -> io::Result<()> {
        self.failed.map_or(Ok(()), Err)
    }
}

impl std::fmt::Debug for Watched<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched").field("position", &self.position).finish_non_exhaustive()
    }
}

impl Read for Watched<'_, '_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if !self.budget.take(buf.len() as u64) {
            return Err(io::Error::other("header tables overlap too much"));
        }
        let ends_early = self.position < self.source.len() && !buf.is_empty();
        let error = match self.source.read_at(self.position, buf) {
            Ok(0) if ends_early => io::ErrorKind::UnexpectedEof.into(),
            Ok(n) => {
                self.position = self.position.saturating_add(n as u64);
                return Ok(n);
            }
            Err(error) => error,
        };
        let kind = error.kind();
        self.failed.get_or_insert(error);
        Err(kind.into())
    }
}

impl Seek for Watched<'_, '_> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_stops_at_the_budget() {
        let data = [0; 64];
        let mut source = Source::of_bytes(&data);
        let mut reader = Watched::new(&mut source, 64);
        let mut buf = [0; 64];
        let mut reads = 0;
        while reader.rewind().is_ok() && reader.read(&mut buf).is_ok() {
            reads += 1;
        }
        assert_eq!(reads, (8 * 64 + (1 << 20)) / 64);
        reader.finish().unwrap();
    }
}
