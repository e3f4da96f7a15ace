//! The archive: its header, and the places of the code objects.

use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

use crate::error::{Error, ErrorKind};
use crate::toc::{Entry, Scheme, Toc};

/// The first bytes of a kernel pack.
pub const MAGIC: [u8; 4] = *b"KPAK";
/// The bytes of the header; the blob starts after them.
pub const HEADER: u64 = 64;
/// The bytes of the header that say something.
const SAYS: usize = 16;

/// Returns the range of the table in a pack of this length. `head` is its start: 16 bytes are enough.
///
/// # Errors
///
/// [`Magic`](ErrorKind::Magic), [`Unsupported`](ErrorKind::Unsupported) for versions other than 1,
/// [`Truncated`](ErrorKind::Truncated) and [`Malformed`](ErrorKind::Malformed): the table lies in the header, or after the end.
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
    Ok(offset..len)
}

/// The places of the code objects of a pack, found one after the other: each frame says how long it is.
///
/// [`next_length`](Self::next_length) says where a length lies that is needed, and [`set_length`](Self::set_length) takes it.
#[derive(Clone, Debug)]
pub struct Blobs {
    ranges: Vec<Range<u64>>,
    /// `None` when all are known.
    walk: Option<Walk>,
    /// The end of the last frame that is known.
    rest: Option<u64>,
    end: u64,
}

#[derive(Clone, Copy, Debug)]
struct Walk {
    at: u64,
    /// `None` before the number of frames is known.
    left: Option<u32>,
}

impl Blobs {
    /// Starts to look for the code objects of a pack with this table. Those of the scheme without compression are known at once.
    #[must_use]
    pub fn new(toc: &Toc) -> Self {
        match toc.scheme() {
            Scheme::Plain => {
                Blobs { ranges: toc.blobs.clone(), walk: None, rest: None, end: toc.offset }
            }
            Scheme::Zstd => {
                let walk = Walk { at: toc.zstd.start, left: None };
                Blobs { ranges: Vec::new(), walk: Some(walk), rest: None, end: toc.zstd.end }
            }
        }
    }

    /// Returns the place of the next length: a `u32` in the pack; `None` when all code objects are known.
    #[must_use]
    pub fn next_length(&self) -> Option<u64> {
        self.walk.map(|walk| walk.at)
    }

    /// Takes the number at the place that [`next_length`](Self::next_length) gave.
    ///
    /// # Errors
    ///
    /// [`Malformed`](ErrorKind::Malformed): a frame reaches past the end of the blob. No more are found then.
    pub fn set_length(&mut self, number: u32) -> Result<(), Error> {
        let Some(Walk { at, left }) = self.walk.take() else { return Ok(()) };
        let start = at.saturating_add(4);
        let Some(left) = left else {
            // Each frame has a length at least.
            let room = self.end.saturating_sub(start) / 4;
            if u64::from(number) > room {
                let text = format!("kernel pack: {number} frames do not fit in the blob");
                return Err(Error::malformed(at, text));
            }
            self.walk = (number > 0).then_some(Walk { at: start, left: Some(number) });
            self.rest = Some(start);
            return Ok(());
        };
        let end = start.saturating_add(number.into());
        if end > self.end {
            let text = format!(
                "kernel pack: frame {} of {number} bytes ends after the blob, at {:#x}",
                self.ranges.len(),
                self.end
            );
            return Err(Error::malformed(at, text));
        }
        self.ranges.push(start..end);
        self.rest = Some(end);
        let left = left.saturating_sub(1);
        if left > 0 {
            if end.saturating_add(4) > self.end {
                let text =
                    format!("kernel pack: expected {left} more frames before {:#x}", self.end);
                return Err(Error::malformed(end, text));
            }
            self.walk = Some(Walk { at: end, left: Some(left) });
        }
        Ok(())
    }

    /// Returns where the last frame ends; `None` while frames are missing, and for code that is not compressed.
    pub(crate) fn rest(&self) -> Option<u64> {
        self.rest.filter(|_| self.walk.is_none())
    }

    /// Returns the ranges that are known, by ordinal.
    #[must_use]
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }

    /// Returns the range of the stored bytes of an entry; `None` if there are none.
    #[must_use]
    pub fn range(&self, entry: &Entry) -> Option<Range<u64>> {
        self.ranges.get(usize::try_from(entry.ordinal()).ok()?).cloned()
    }
}

/// A pack in memory.
#[derive(Clone, Debug)]
pub struct Kpack<'d> {
    data: &'d [u8],
    toc: Toc,
    blobs: Blobs,
}

impl<'d> Kpack<'d> {
    /// Parses a pack: its header, its table, and the lengths of frames.
    ///
    /// # Errors
    ///
    /// Those of [`toc_range`], [`Toc::parse`] and [`Blobs`].
    pub fn parse(data: &'d [u8]) -> Result<Self, Error> {
        let table = toc_range(data, data.len() as u64)?;
        let start = usize::try_from(table.start).unwrap_or(usize::MAX);
        let toc = Toc::parse(data.get(start..).unwrap_or_default(), table.start)?;
        let mut blobs = Blobs::new(&toc);
        while let Some(at) = blobs.next_length() {
            let number =
                slice(data, &(at..at.saturating_add(4))).and_then(|bytes| bytes.first_chunk());
            let number = number.ok_or_else(|| {
                Error::new(ErrorKind::Truncated, at, "kernel pack: expected the length of a frame")
            })?;
            blobs.set_length(u32::from_le_bytes(*number))?;
        }
        Ok(Kpack { data, toc, blobs })
    }

    /// Returns the table.
    #[must_use]
    pub fn toc(&self) -> &Toc {
        &self.toc
    }

    /// Returns the places of the code objects.
    #[must_use]
    pub fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    /// Returns the code object of an entry as it is stored; `None` if the pack lacks it.
    #[must_use]
    pub fn stored(&self, entry: &Entry) -> Option<&'d [u8]> {
        slice(self.data, &self.blobs.range(entry)?)
    }

    /// Returns all that is wrong with the pack: see [`Toc::check`]. Also reads the headers of compressed code objects: each is a
    /// Zstandard frame, and says the size that the table has. Nothing is decompressed.
    #[must_use]
    pub fn check(&self) -> Vec<Error> {
        let mut faults = self.toc.check(&self.blobs);
        if self.toc.scheme() == Scheme::Zstd {
            for entry in self.toc.entries() {
                let frame = self.blobs.range(entry);
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
