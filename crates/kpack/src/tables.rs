//! The tables of a pack: which code objects it has, and where they lie.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
#[cfg(feature = "std")]
use core::fmt;
use core::ops::Range;
#[cfg(feature = "std")]
use std::io;

#[cfg(feature = "std")]
use byte_parts::{Source, Window};

use crate::error::{Error, ErrorKind};
use crate::toc::{Entry, Scheme, Toc};
#[cfg(feature = "std")]
use crate::toc::{SAYS, toc_range};

/// The largest code object that is read.
#[cfg(feature = "std")]
const MOST_OF_CODE: u64 = 2 << 30;

/// The table of a pack, and the places of its code objects.
#[derive(Clone, Debug)]
pub struct Tables {
    toc: Toc,
    blobs: Blobs,
}

impl Tables {
    /// Reads the tables of the pack in a window of a file: its header, its table, and the lengths of frames, but no code objects.
    ///
    /// ```
    /// use byte_parts::Source;
    /// use kpack::{NewKpack, Scheme, Tables};
    ///
    /// let mut new = NewKpack::new("blas", "gfx942", Scheme::Plain);
    /// new.add("lib/libfoo.so", 0, "gfx942", 4);
    /// let bytes = new.layout(&[4])?.to_vec(|_| b"code").unwrap();
    ///
    /// let mut source = Source::of_bytes(&bytes);
    /// let tables = Tables::read(&mut source, &(0..bytes.len() as u64))??;
    /// let place = tables.blobs().range(&tables.toc().entries()[0]).ok_or("no code")?;
    /// assert_eq!(source.read_range(&place)?, b"code");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Errors of reading; within, errors of [`toc_range`] and [`Toc::parse`], and
    /// [`Malformed`](crate::ErrorKind::Malformed): a frame reaches past the end of the blob. Offsets count from the start of the
    /// window.
    #[cfg(feature = "std")]
    #[cfg_attr(docsrs, doc(cfg(feature = "std")))]
    pub fn read(source: &mut Source<'_>, window: &Range<u64>) -> io::Result<Result<Self, Error>> {
        let head = source.peek(window, SAYS)?;
        let table = match toc_range(&head, Window::new(window).len()) {
            Ok(table) => table,
            Err(error) => return Ok(Err(error)),
        };
        let at = |offset: u64| window.start + offset;
        let bytes = source.read_range(&(at(table.start)..window.end))?;
        Self::parse(&bytes, table.start, |offset| {
            let mut number = [0; 4];
            source.read_exact_at(at(offset), &mut number)?;
            Ok(number)
        })
    }

    /// Parses the table at an offset of the pack; `length` reads four bytes at another one. Errors of that are outside.
    pub(crate) fn parse<E>(
        table: &[u8],
        offset: u64,
        mut length: impl FnMut(u64) -> Result<[u8; 4], E>,
    ) -> Result<Result<Self, Error>, E> {
        let toc = match Toc::parse(table, offset) {
            Ok(toc) => toc,
            Err(error) => return Ok(Err(error)),
        };
        let mut blobs = Blobs::new(&toc);
        while let Some(at) = blobs.next_length() {
            if let Err(error) = blobs.set_length(u32::from_le_bytes(length(at)?)) {
                return Ok(Err(error));
            }
        }
        Ok(Ok(Tables { toc, blobs }))
    }

    /// Reads the code object of an entry: as it is stored, or decompressed.
    ///
    /// # Errors
    ///
    /// Errors of reading; within, [`Codec`](ErrorKind::Codec): it is missing, is damaged, has another size than the table says, or
    /// more than 2 GiB.
    #[cfg(feature = "std")]
    #[cfg_attr(docsrs, doc(cfg(feature = "std")))]
    pub fn code(
        &self,
        source: &mut Source<'_>,
        entry: &Entry,
    ) -> io::Result<Result<Vec<u8>, Error>> {
        let size = entry.original_size();
        let failed = |at, text: &dyn fmt::Display| {
            let text = format!("{}: {text}", entry.name());
            Ok(Err(Error::new(ErrorKind::Codec, at, text)))
        };
        let Some(range) = self.blobs.range(entry) else { return failed(0, &"no code") };
        if size > MOST_OF_CODE {
            let text = format!("{size} bytes of code: at most {MOST_OF_CODE} are read");
            return failed(range.start, &text);
        }
        let stored = source.read_range(&range)?;
        let code = match self.toc.scheme() {
            Scheme::Plain => stored,
            Scheme::Zstd => match crate::codec::decompress(&stored, size) {
                Ok(code) => code,
                Err(error) => return failed(range.start, &error.message()),
            },
        };
        match code.len() as u64 {
            found if found == size => Ok(Ok(code)),
            found => {
                let text = format!("expected {size} bytes of code, found {found}");
                failed(range.start, &text)
            }
        }
    }

    /// Returns the table.
    #[must_use]
    pub fn toc(&self) -> &Toc {
        &self.toc
    }

    /// Returns the table alone.
    #[must_use]
    pub fn into_toc(self) -> Toc {
        self.toc
    }

    /// Returns the places of the code objects.
    #[must_use]
    pub fn blobs(&self) -> &Blobs {
        &self.blobs
    }
}

/// The places of the code objects of a pack.
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
    /// Starts to look for the code objects of a pack with this table: each frame says how long it is. Frames of the
    /// scheme without compression are known at once.
    pub(crate) fn new(toc: &Toc) -> Self {
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
    pub(crate) fn next_length(&self) -> Option<u64> {
        self.walk.map(|walk| walk.at)
    }

    /// Takes the number at the place that [`next_length`](Self::next_length) gave.
    ///
    /// # Errors
    ///
    /// [`Malformed`](ErrorKind::Malformed): a frame reaches past the end of the blob.
    pub(crate) fn set_length(&mut self, number: u32) -> Result<(), Error> {
        let Some(Walk { at, left }) = self.walk.take() else { return Ok(()) };
        let start = at + 4;
        let Some(left) = left else {
            // Each frame has a length at least.
            let room = (self.end - start) / 4;
            if u64::from(number) > room {
                let text = format!("kernel pack: {number} frames do not fit in the blob");
                return Err(Error::malformed(at, text));
            }
            self.walk = (number > 0).then_some(Walk { at: start, left: Some(number) });
            self.rest = Some(start);
            return Ok(());
        };
        let end = start + u64::from(number);
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
        let left = left - 1;
        if left > 0 {
            if end + 4 > self.end {
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

impl Toc {
    /// Returns all that is wrong with a pack that can be read: entries without code, or whose size contradicts it; keys and targets
    /// that are there twice; targets that a loader does not look for; keys without a number; code that overlaps, or that no entry
    /// names; bytes after the last frame. Faults that only keep code from being used are [`Unreachable`](ErrorKind::Unreachable).
    #[must_use]
    pub fn check(&self, blobs: &Blobs) -> Vec<Error> {
        let mut faults = Vec::new();
        let ranges = blobs.ranges();
        for (offset, name) in &self.doubled {
            faults.push(Error::malformed(*offset, format!("toc: {name} is there twice")));
        }
        let mut named = vec![false; ranges.len()];
        for entry in &self.entries {
            let fault = |kind, text: String| {
                Error::new(kind, entry.offset, format!("toc: {}: {text}", entry.name()))
            };
            let place = usize::try_from(entry.ordinal).unwrap_or(usize::MAX);
            match (ranges.get(place), named.get_mut(place)) {
                (Some(range), Some(named)) => {
                    *named = true;
                    let stored = range.end - range.start;
                    if self.scheme == Scheme::Plain && stored != entry.original_size {
                        let text =
                            format!("expected {} bytes, found {stored}", entry.original_size);
                        faults.push(fault(ErrorKind::Malformed, text));
                    }
                }
                _ => {
                    let text = format!(
                        "expected an ordinal below {}, found {}",
                        ranges.len(),
                        entry.ordinal
                    );
                    faults.push(fault(ErrorKind::Malformed, text));
                }
            }
            if entry.index().is_none() {
                let text = "expected a key that ends in # and a number".to_string();
                faults.push(fault(ErrorKind::Unreachable, text));
            }
            if !entry.is_listed {
                let text = "gfx_arches lacks the target, so that no loader looks here".to_string();
                faults.push(fault(ErrorKind::Unreachable, text));
            }
        }
        let mut sorted: Vec<&Range<u64>> =
            ranges.iter().filter(|range| !range.is_empty()).collect();
        sorted.sort_by_key(|range| range.start);
        for (one, other) in sorted.iter().zip(sorted.iter().skip(1)) {
            if other.start < one.end {
                let text =
                    format!("kernel pack: code at {:#x} shares bytes with other code", other.start);
                faults.push(Error::malformed(other.start, text));
            }
        }
        for (ordinal, range) in
            ranges.iter().enumerate().filter(|(at, _)| named.get(*at) == Some(&false))
        {
            let text = format!("kernel pack: no entry names code {ordinal}");
            faults.push(Error::new(ErrorKind::Unreachable, range.start, text));
        }
        if let Some(rest) = blobs.rest().filter(|rest| *rest < self.offset) {
            let text = format!(
                "kernel pack: expected the table after the last frame, found {} more bytes",
                self.offset - rest
            );
            faults.push(Error::new(ErrorKind::Unreachable, rest, text));
        }
        faults
    }
}
