//! Several images that are compressed as one stream.

use alloc::vec::Vec;
use core::ops::Range;

use crate::entry::{Entry, HEADER, Wire};
use crate::error::{Error, Problem};
use crate::kinds::{Architecture, Flags, Kind};
use crate::{field, to_u64};

/// Bytes before the first record: the number of records, and the size of the table.
const COUNTS: u32 = 8;

/// An image in an entry of kind [`CONCATENATED`](Kind::CONCATENATED).
#[derive(Clone, Copy, Debug)]
pub struct ConcatenatedImage<'data> {
    wire: Wire,
    /// Its record in the table.
    bytes: &'data [u8],
    identifier: Option<&'data [u8]>,
}

impl<'data> ConcatenatedImage<'data> {
    /// Returns the kind of code.
    #[must_use]
    pub fn kind(&self) -> Kind {
        Kind(self.wire.kind)
    }

    /// Returns the flags.
    #[must_use]
    pub fn flags(&self) -> Flags {
        Flags::from_bits_retain(self.wire.flags)
    }

    /// Returns the architecture, by SM number and flags.
    #[must_use]
    pub fn architecture(&self) -> Architecture {
        Architecture::new(self.wire.sm, self.flags())
    }

    /// Returns the place of the image in the decompressed code of the entry.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        let start = u64::from(self.wire.header_size);
        start..start.saturating_add(self.wire.payload_size)
    }

    /// Adds its record to a table, with another place in the code.
    pub(crate) fn add_to(&self, table: &mut Vec<u8>, at: u32) {
        let (before, after) = (self.bytes.get(..4), self.bytes.get(8..));
        table.extend_from_slice(before.unwrap_or_default());
        table.extend(at.to_le_bytes());
        table.extend_from_slice(after.unwrap_or_default());
    }

    /// Returns the identifier, if there is one.
    #[must_use]
    pub fn identifier(&self) -> Option<&'data [u8]> {
        self.identifier
    }
}

/// Reads the table at an offset in the entry's header.
pub(crate) fn images<'data>(
    entry: &Entry<'data>,
    at: u32,
) -> Result<Vec<ConcatenatedImage<'data>>, Error> {
    const WHAT: &str = "table of images";
    let counts = entry.extension(WHAT, at, COUNTS)?;
    let number = |at| field(counts, at).map(u32::from_le_bytes).unwrap_or_default();
    let (count, size) = (number(0), number(4));
    let table = entry.extension(WHAT, at, size.max(COUNTS))?;
    let malformed = |record: u32, expected: &'static str| Problem::Record {
        index: entry.index(),
        offset: entry.offset(),
        record,
        expected,
    };
    let mut images = Vec::new();
    let mut rest = table.get(usize::try_from(COUNTS).unwrap_or_default()..).unwrap_or_default();
    for record in 0..count {
        let Some(wire) = Wire::read(rest) else {
            return Err(malformed(record, "64 bytes in the table").into());
        };
        let start = rest;
        rest = rest.get(HEADER..).unwrap_or_default();
        let mut identifier = None;
        if wire.identifier != 0 {
            let len = usize::try_from(wire.identifier_len).unwrap_or(usize::MAX);
            let padded = len.checked_add(1).and_then(|len| len.checked_next_multiple_of(8));
            let split = padded.and_then(|padded| rest.split_at_checked(padded));
            let Some((text, after)) = split else {
                return Err(malformed(record, "its identifier in the table").into());
            };
            identifier = text.get(..len);
            rest = after;
        }
        let bytes = start.get(..start.len() - rest.len()).unwrap_or_default();
        let image = ConcatenatedImage { wire, bytes, identifier };
        if image.range().end > entry.size() {
            return Err(malformed(record, "its image in the code of the entry").into());
        }
        images.push(image);
    }
    if !rest.is_empty() {
        return Err(malformed(count, "the end of the table").into());
    }
    debug_assert!(to_u64(images.len()) == u64::from(count));
    Ok(images)
}
