//! A source for readers that lose errors.

use std::io::{self, Read, Seek, SeekFrom};

use crate::source::Source;

/// A [`Source`] as a stream that keeps the first error of reading it, where a reader of headers would call the file
/// malformed. A source that ends early is an error.
///
/// ```
/// use std::io::{Cursor, Read};
/// use byte_parts::{Source, Watched};
///
/// let mut source = Source::with_len(Cursor::new(b"short"), 100);
/// let mut watched = Watched::new(&mut source);
/// let _ = watched.read_to_end(&mut Vec::new());
/// assert_eq!(watched.finish().unwrap_err().kind(), std::io::ErrorKind::UnexpectedEof);
/// ```
pub struct Watched<'a, 'r> {
    source: &'a mut Source<'r>,
    position: u64,
    failed: Option<io::Error>,
}

impl<'a, 'r> Watched<'a, 'r> {
    /// Creates a stream at the start of the source.
    pub fn new(source: &'a mut Source<'r>) -> Self {
        Watched { source, position: 0, failed: None }
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
