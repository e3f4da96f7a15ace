//! The archive: its header, and the places of the code objects.

use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

use crate::error::{Error, ErrorKind};
use crate::tables::{Blobs, Tables};
use crate::toc::{Entry, Scheme, Toc};

/// The first bytes of a kernel pack.
pub const MAGIC: [u8; 4] = *b"KPAK";
/// The bytes of the header; the blob starts after them.
pub const HEADER: u64 = 64;
/// The bytes of the header that say something.
pub(crate) const SAYS: usize = 16;
/// The largest table that is read.
const MOST_OF_TABLE: u64 = 256 << 20;

/// Returns the range of the table in a pack of this length. `head` is its start: 16 bytes are enough.
///
/// # Errors
///
/// [`Magic`](ErrorKind::Magic), [`Unsupported`](ErrorKind::Unsupported) for versions other than 1,
/// [`Truncated`](ErrorKind::Truncated) and [`Malformed`](ErrorKind::Malformed): the table lies in the header, or after the end;
/// [`Limit`](ErrorKind::Limit): it has more than 256 MiB.
pub fn toc_range(head: &[u8], len: u64) -> Result<Range<u64>, Error> {
    if !head.starts_with(&MAGIC) {
        return Err(Error::new(ErrorKind::Magic, 0, "kernel pack: expected the magic KPAK"));
    }
    let Some((_, numbers)) = head.get(..SAYS).and_then(|head| head.split_first_chunk::<4>()) else {
        let text = format!("kernel pack: expected a header of {SAYS} bytes, found {}", head.len());
        return Err(Error::new(ErrorKind::Truncated, 0, text));
    };
    let (version, offset) = numbers.split_at(4);
    let version = version.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    if version != 1 {
        let text = format!("kernel pack: expected version 1, found {version}");
        return Err(Error::new(ErrorKind::Unsupported, 4, text));
    }
    let offset = offset.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    if offset < SAYS as u64 || offset >= len {
        let text =
            format!("kernel pack: expected a table between {SAYS} and {len}, found {offset}");
        let kind = if offset >= len { ErrorKind::Truncated } else { ErrorKind::Malformed };
        return Err(Error::new(kind, 8, text));
    }
    let size = len - offset;
    if size > MOST_OF_TABLE {
        let text =
            format!("kernel pack: the table has {size} bytes: at most {MOST_OF_TABLE} are read");
        return Err(Error::new(ErrorKind::Limit, offset, text));
    }
    Ok(offset..len)
}

/// A pack in memory.
#[derive(Clone, Debug)]
pub struct Kpack<'d> {
    data: &'d [u8],
    tables: Tables,
}

impl<'d> Kpack<'d> {
    /// Parses a pack: its header, its table, and the lengths of frames.
    ///
    /// # Errors
    ///
    /// Those of [`toc_range`] and [`Toc::parse`]; [`Malformed`](ErrorKind::Malformed): a frame reaches past the end of the blob.
    pub fn parse(data: &'d [u8]) -> Result<Self, Error> {
        let table = toc_range(data, data.len() as u64)?;
        let bytes = slice(data, &table).unwrap_or_default();
        let length = |at: u64| {
            let number =
                slice(data, &(at..at.saturating_add(4))).and_then(|bytes| bytes.first_chunk());
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
