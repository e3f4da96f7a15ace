//! Several images that are compressed as one stream.

use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

use zerocopy::{FromBytes, IntoBytes};

use crate::entry::{Entry, HEADER};
use crate::error::{Error, ErrorKind};
use crate::kinds::{Architecture, Flags, Kind};
use crate::wire::{EntryHeader, OptionsHeader, TableHeader};

/// Bytes of the start of the table.
const COUNTS: u32 = 8;

/// An image in an entry of kind [`CONCATENATED`](Kind::CONCATENATED).
#[derive(Clone, Copy, Debug)]
pub struct ConcatenatedImage<'data> {
    /// Its record in the table: the header of an entry, which has no payload.
    record: Entry<'data>,
    /// The place and the size of the image, which the record has as sizes of header and payload.
    at: u32,
    size: u64,
}

impl<'data> ConcatenatedImage<'data> {
    /// Returns the kind of code.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.record.kind()
    }

    /// Returns the flags.
    #[must_use]
    pub fn flags(&self) -> Flags {
        self.record.flags()
    }

    /// Returns the architecture, by SM number and flags.
    #[must_use]
    pub fn architecture(&self) -> Architecture {
        self.record.architecture()
    }

    /// Returns the place of the image in the decompressed code of the entry.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        // It lies in the code: `images` checks that.
        let start = u64::from(self.at);
        start..start + self.size
    }

    /// Adds its record to a table, with another place in the code.
    pub(crate) fn add_to(&self, table: &mut Vec<u8>, at: u32) -> Result<(), Error> {
        let record = self.record.whole()?;
        if let Ok((header, extension)) = EntryHeader::read_from_prefix(record) {
            let header = EntryHeader { header_size: at.into(), ..header };
            table.extend_from_slice(header.as_bytes());
            table.extend_from_slice(extension);
        }
        Ok(())
    }

    /// Returns the identifier, if there is one.
    ///
    /// # Errors
    ///
    /// [`Malformed`](crate::ErrorKind::Malformed) if it lies outside of the record.
    pub fn identifier(&self) -> Result<Option<&'data [u8]>, Error> {
        self.record.identifier()
    }

    /// Returns the options, as [`Entry::options`] does.
    ///
    /// # Errors
    ///
    /// [`Malformed`](crate::ErrorKind::Malformed) if they lie outside of the record.
    pub fn options(&self) -> Result<Option<&'data [u8]>, Error> {
        self.record.options()
    }
}

/// Reads the table at an offset in the entry's header.
pub(crate) fn images<'data>(
    entry: &Entry<'data>,
    at: u32,
) -> Result<Vec<ConcatenatedImage<'data>>, Error> {
    const WHAT: &str = "table of images";
    let malformed = |record: u32, expected: &str| {
        let message = format!(": image {record} of its table: expected {expected}");
        Error::at_entry(ErrorKind::Malformed, (entry.index(), entry.offset()), message)
    };
    // The extension has 8 bytes at least.
    let counts = |bytes| TableHeader::ref_from_prefix(bytes).map_err(|_| malformed(0, "8 bytes"));
    let (header, _) = counts(entry.extension(WHAT, at.into(), COUNTS)?)?;
    let (header, mut rest) =
        counts(entry.extension(WHAT, at.into(), header.size.get().max(COUNTS))?)?;
    let (count, mut images) = (header.count.get(), Vec::new());
    for number in 0..count {
        let Ok((wire, _)) = EntryHeader::ref_from_prefix(rest) else {
            return Err(malformed(number, "64 bytes in the table"));
        };
        let len = len(wire, rest).and_then(|len| usize::try_from(len).ok());
        let cut = len.and_then(|len| rest.split_at_checked(len));
        let record = cut.and_then(|(record, _)| Entry::record(wire, record, entry));
        let Some(((_, after), record)) = cut.zip(record) else {
            return Err(malformed(number, "its identifier and options in the table"));
        };
        rest = after;
        let (at, size) = (wire.header_size.get(), wire.payload_size.get());
        if u64::from(at).checked_add(size).is_none_or(|end| end > entry.size()) {
            return Err(malformed(number, "its image in the code of the entry"));
        }
        images.push(ConcatenatedImage { record, at, size });
    }
    if !rest.is_empty() {
        return Err(malformed(count, "the end of the table"));
    }
    Ok(images)
}

/// Returns the size of a record, which ends with the identifier or the options. `None` if `table`, which starts with it, has
/// not all of the options.
fn len(wire: &EntryHeader, table: &[u8]) -> Option<u64> {
    let padded = |at: u64, len: u32| (at + u64::from(len) + 1).next_multiple_of(8);
    let mut end = HEADER as u64;
    if wire.identifier != 0 {
        end = end.max(padded(wire.identifier.into(), wire.identifier_len.get()));
    }
    if wire.options != 0 {
        let descriptor = table.get(usize::try_from(wire.options.get()).ok()?..)?;
        let (text, _) = OptionsHeader::ref_from_prefix(descriptor).ok()?;
        end = end.max(u64::from(wire.options) + 8);
        if text.at != 0 {
            let flags = Flags::from_bits_retain(wire.flags.get());
            let skipped = u64::from(flags.contains(Flags::COMPAT));
            end = end.max(padded(u64::from(text.at) + skipped, text.len.get()));
        }
    }
    Some(end)
}

impl<'data> Entry<'data> {
    /// Returns the images of an entry of kind [`CONCATENATED`](Kind::CONCATENATED), by their places in the code that
    /// [`decompress`](Self::decompress) returns; none for other kinds.
    ///
    /// # Errors
    ///
    /// [`Malformed`](crate::ErrorKind::Malformed) for a table that does not fit its header, or an image that does not lie in
    /// the code.
    pub fn concatenated(&self) -> Result<Vec<ConcatenatedImage<'data>>, Error> {
        if self.kind() != Kind::CONCATENATED {
            return Ok(Vec::new());
        }
        images(self, self.options_at())
    }
}
