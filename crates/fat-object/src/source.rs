//! Sources of a walk: a file, a thin archive's member, or decompressed data.

use std::io::{self, Cursor, Read};
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

pub use byte_parts::ReadSeek;
use byte_parts::Window;
use llvm_bitcode::{ReadAt, Unreadable};

/// The origin of the bytes of a [`Source`], which decides what an offset in it means to the user.
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

/// The size of the copied pieces.
const PIECE: usize = 256 * 1024;

/// The bytes of a walk, and where they come from.
pub(crate) struct Source<'r> {
    bytes: byte_parts::Source<'r>,
    origin: Origin,
    /// `true` if only the start can be read.
    is_start: bool,
}

impl<'r> Source<'r> {
    pub(crate) fn new(reader: impl ReadSeek + 'r, origin: Origin) -> io::Result<Self> {
        Ok(Source { bytes: byte_parts::Source::new(reader)?, origin, is_start: false })
    }

    /// Returns the start of something; no more of it can be read.
    pub(crate) fn of_start(start: Vec<u8>, len: u64, origin: Origin) -> Self {
        let bytes = byte_parts::Source::with_len(Cursor::new(start), len);
        Source { bytes, origin, is_start: true }
    }

    /// Returns a source of bytes in memory.
    pub(crate) fn of_bytes(bytes: &'r [u8], origin: Origin) -> Self {
        Source { bytes: byte_parts::Source::of_bytes(bytes), origin, is_start: false }
    }

    /// Returns a source of bytes in memory that it keeps.
    pub(crate) fn of_shared(bytes: Arc<Vec<u8>>, origin: Origin) -> Self {
        Source { bytes: byte_parts::Source::of_shared(bytes), origin, is_start: false }
    }

    /// Returns whether only the start can be read.
    pub(crate) fn is_start(&self) -> bool {
        self.is_start
    }

    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }
}

impl<'r> Deref for Source<'r> {
    type Target = byte_parts::Source<'r>;

    fn deref(&self) -> &Self::Target {
        &self.bytes
    }
}

impl DerefMut for Source<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.bytes
    }
}

/// A source that keeps why it could not be read.
pub(crate) struct Lent<'a, 'r> {
    source: &'a mut Source<'r>,
    failed: Option<io::Error>,
}

impl ReadAt for Lent<'_, '_> {
    fn read_exact_at(&mut self, offset: u64, to: &mut [u8]) -> Result<(), Unreadable> {
        self.source.read_exact_at(offset, to).map_err(|error| {
            self.failed = Some(error);
            Unreadable
        })
    }
}

/// Lends a source to a reader that reads by offsets. A fault of the source is the error, whatever `read` returns; if
/// there is none, a failure of `read` is a lack of memory.
pub(crate) fn lend<T>(
    source: &mut Source<'_>,
    read: impl FnOnce(&mut Lent<'_, '_>) -> Result<T, Unreadable>,
) -> io::Result<T> {
    let mut lent = Lent { source, failed: None };
    let result = read(&mut lent);
    match (lent.failed, result) {
        (Some(error), _) => Err(error),
        (None, result) => result.map_err(|Unreadable| io::ErrorKind::OutOfMemory.into()),
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
        let left = Window::new(&self.window).len();
        let mut buffer = vec![0; usize::try_from(left).unwrap_or(PIECE).min(PIECE)];
        while self.window.start < self.window.end {
            let n = self.read(&mut buffer)?;
            each(buffer.split_at(n).0)?;
        }
        Ok(())
    }
}

impl Read for SourceReader<'_, '_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = Window::new(&self.window).len();
        let want = usize::try_from(left).map_or(buf.len(), |left| left.min(buf.len()));
        if want > 0 && self.source.is_start {
            let error = "images of compressed bundles are not read by a walk of tables only";
            return Err(io::Error::new(io::ErrorKind::Unsupported, error));
        }
        let n = self.source.read_at(self.window.start, buf.split_at_mut(want).0)?;
        if n == 0 && want > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.window.start += n as u64;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn reads_a_window() {
        let data: Vec<u8> = (0..100_000u32).map(|i| (i % 251) as u8).collect();
        let mut cursor = Cursor::new(&data);
        let mut source = Source::new(&mut cursor, Origin::File).unwrap();
        let mut all = Vec::new();
        SourceReader::new(&mut source, 7..70_000).read_to_end(&mut all).unwrap();
        assert_eq!(all, data[7..70_000]);
    }
}
