//! The archive in memory.

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use crate::error::{Error, ErrorKind};
use crate::tables::{Blobs, Tables};
use crate::toc::{Entry, Scheme, Toc, toc_range};

/// A pack in memory.
#[derive(Clone)]
pub struct Kpack<'d> {
    data: &'d [u8],
    tables: Tables,
}

impl fmt::Debug for Kpack<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kpack")
            .field("data", &self.data.len())
            .field("tables", &self.tables)
            .finish_non_exhaustive()
    }
}

impl<'d> Kpack<'d> {
    /// Parses a pack: its header, its table, and the lengths of frames.
    ///
    /// # Errors
    ///
    /// Errors of [`toc_range`] and [`Toc::parse`]; [`Malformed`](ErrorKind::Malformed): a frame reaches past the end of the blob.
    pub fn parse(data: &'d [u8]) -> Result<Self, Error> {
        let table = toc_range(data, data.len() as u64)?;
        let bytes = slice(data, &table).unwrap_or_default();
        let length = |at: u64| {
            let end = at.checked_add(4);
            let number = end.and_then(|end| slice(data, &(at..end))?.first_chunk());
            number.copied().ok_or_else(|| {
                Error::new(ErrorKind::Truncated, at, "kernel pack: expected the length of a frame")
            })
        };
        let tables = Tables::parse(bytes, table.start, length).and_then(|tables| tables)?;
        Ok(Kpack { data, tables })
    }

    /// Returns the table.
    #[must_use]
    pub fn toc(&self) -> &Toc {
        self.tables.toc()
    }

    /// Returns the places of the code objects.
    #[must_use]
    pub fn blobs(&self) -> &Blobs {
        self.tables.blobs()
    }

    /// Returns the code object of an entry as it is stored; `None` if the pack lacks it.
    #[must_use]
    pub fn stored(&self, entry: &Entry) -> Option<&'d [u8]> {
        slice(self.data, &self.blobs().range(entry)?)
    }

    /// Returns all that is wrong with the pack: see [`Toc::check`]. Also reads the headers of compressed code objects: each is a
    /// Zstandard frame, and says the size that the table has. Nothing is decompressed.
    #[must_use]
    pub fn check(&self) -> Vec<Error> {
        let (toc, blobs) = (self.toc(), self.blobs());
        let mut faults = toc.check(blobs);
        if toc.scheme() == Scheme::Zstd {
            for entry in toc.entries() {
                let frame = blobs.range(entry);
                let frame = frame.and_then(|range| Some((range.start, slice(self.data, &range)?)));
                faults.extend(frame.and_then(|(at, frame)| entry.frame_fault(at, frame)));
            }
        }
        faults
    }
}

fn slice<'d>(data: &'d [u8], range: &Range<u64>) -> Option<&'d [u8]> {
    let index = |at: u64| usize::try_from(at).ok();
    data.get(index(range.start)?..index(range.end)?)
}
