//! New zip files, written from the first member to the last.

use std::collections::HashSet;
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::num::NonZeroUsize;

use byte_parts::internal;
use zerocopy::{FromZeros, IntoBytes};

use super::check::is_long;
use super::deflate::{Sums, deflate_to, search_of, store_to};
use super::extra::with_zip64;
use super::fields::short;
use super::wire::{CentralRecord, EndOfDirectory, Fields, LocalHeader, Zip64End, Zip64Locator};
use super::{DESCRIPTOR, Zip};
use crate::error::{Error, ErrorKind};
use crate::hash::{Algorithm, Hash, hash_reader};
use crate::path::Shown;

/// The first of January 1980, the earliest time that a zip file can have: the same contents give the same file.
pub(super) const TIME: u32 = 1 << 21 | 1 << 16;

/// Names are UTF-8.
pub(super) const UTF8: u16 = 1 << 11;

/// Made by a Unix system, with version 4.5 of the specification.
pub(super) const MADE_BY: u16 = 3 << 8 | 45;

/// The form in which a member is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Storing {
    /// As it is.
    Plain,
    /// Deflated at a level from 1 to 9, as zlib has it.
    Deflated(u32),
}

/// A zip file in the making. Members are written one after the other, and read once.
///
/// ```
/// use std::io::Cursor;
/// use std::num::NonZeroUsize;
/// use gpu_packages::{NewZip, Storing, Zip};
///
/// let mut zip = NewZip::new(Cursor::new(Vec::new()))?;
/// let hash = zip.add("pkg/__init__.py", 0o644, &b"x = 1\n"[..], 6, Storing::Deflated(6), NonZeroUsize::MIN)?;
/// assert_eq!(hash.to_base64().len(), 43);
/// let bytes = zip.finish()?.into_inner();
/// assert_eq!(Zip::read(Cursor::new(&bytes))?.members().len(), 1);
/// # Ok::<(), gpu_packages::Error>(())
/// ```
pub struct NewZip<W> {
    out: W,
    /// The start of the zip file in the output.
    base: u64,
    directory: Vec<u8>,
    names: HashSet<Vec<u8>>,
}

impl<W> fmt::Debug for NewZip<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewZip").field("members", &self.names.len()).finish_non_exhaustive()
    }
}

impl<W: Write + Seek> NewZip<W> {
    /// Starts a zip file where the output is.
    ///
    /// # Errors
    ///
    /// Errors of the output.
    pub fn new(mut out: W) -> Result<Self, Error> {
        let base = out.stream_position()?;
        Ok(NewZip { out, base, directory: Vec::new(), names: HashSet::new() })
    }

    /// Adds a member with these contents of `size` bytes, and returns their SHA-256. `mode` has the permissions of Unix.
    ///
    /// # Errors
    ///
    /// Errors of reading and writing; [`Mismatch`](ErrorKind::Mismatch) if the contents have another size;
    /// [`Refused`](ErrorKind::Refused) for a name of more than 65,535 bytes, or one that a member has: readers take the first or the
    /// last of two.
    pub fn add(
        &mut self,
        name: &str,
        mode: u16,
        contents: impl Read,
        size: u64,
        storing: Storing,
        threads: NonZeroUsize,
    ) -> Result<Hash, Error> {
        let name_len = u16::try_from(name.len()).map_err(|_| {
            let text = format!("a name of {} bytes is longer than zip files can have", name.len());
            Error::new(ErrorKind::Refused, text)
        })?;
        self.take_name(name.as_bytes())?;
        // Deflated data may be a little longer than the contents.
        let is_zip64 = size.checked_add((size >> 10) + (1 << 16)).is_none_or(is_long);
        let (method, search) = match storing {
            Storing::Plain => (0, 0),
            Storing::Deflated(level) => (8, search_of(level)),
        };
        let mut fields = Fields {
            version: if is_zip64 { 45 } else { 20 }.into(),
            flags: (UTF8 | search).into(),
            method: method.into(),
            time: TIME.into(),
            name_len: name_len.into(),
            ..Fields::new_zeroed()
        };
        let offset = self.position()?;
        let header = |fields: Fields, sizes: [u64; 2]| {
            let extra = if is_zip64 { with_zip64(&[], &sizes) } else { Vec::new() };
            let fields = Fields { extra_len: extra_len(&extra), ..fields };
            let header = LocalHeader { signature: *b"PK\x03\x04", fields };
            [header.as_bytes(), name.as_bytes(), &extra].concat()
        };
        // Written again when the sizes are known.
        self.out.write_all(&header(fields, [0, 0]))?;
        let start = self.position()?;
        let sums = self.write(contents, storing, threads)?;
        if sums.size != size {
            let found = sums.size;
            let text = format!("expected contents of {size} bytes, found {found}");
            return Err(Error::new(ErrorKind::Mismatch, text).while_reading(Shown(name.as_bytes())));
        }
        let end = self.position()?;
        let stored_size = end - start;
        fields.crc32 = sums.crc32.into();
        if is_long(stored_size) && !is_zip64 {
            return Err(Error::internal(internal!("deflated data that are far longer")));
        }
        (fields.size, fields.stored_size) = (short(size, is_zip64), short(stored_size, is_zip64));
        self.out.seek(SeekFrom::Start(self.base + offset))?;
        self.out.write_all(&header(fields, [size, stored_size]))?;
        self.out.seek(SeekFrom::Start(self.base + end))?;
        // A regular file.
        let attributes = u32::from(0o100_000 | mode) << 16;
        let made = (MADE_BY, attributes);
        self.list((name.as_bytes(), made, fields), [size, stored_size, offset], is_zip64);
        Ok(sums.sha256)
    }

    /// Adds a member of another zip file as it is stored there, with its time, its attributes and the system that made it, and returns the SHA-256 of its
    /// contents, which are compared with their size and checksum. Extra fields and comments are left out.
    ///
    /// # Errors
    ///
    /// Errors of [`Zip::open`] and of reading the member; errors of the output; [`Refused`](ErrorKind::Refused) for a name that a
    /// member has.
    pub fn copy<R: Read + Seek>(
        &mut self,
        zip: &Zip,
        index: usize,
        mut reader: R,
    ) -> Result<Hash, Error> {
        let mut contents = zip.open(index, &mut reader)?;
        let (_, hash) = hash_reader(Algorithm::Sha256, &mut contents)?;
        drop(contents);
        let member = zip.members().get(index);
        let member = member.ok_or_else(|| Error::internal(internal!("a member that was read")))?;
        self.take_name(member.name())?;
        let (record, _, _) = zip.central(member)?;
        let (size, stored_size) = (member.size(), member.stored_size());
        let is_zip64 = is_long(size) || is_long(stored_size);
        let fields = Fields {
            version: if is_zip64 { 45.into() } else { record.fields.version },
            // Sizes and checksum are in the header.
            flags: (record.fields.flags.get() & !DESCRIPTOR).into(),
            size: short(size, is_zip64),
            stored_size: short(stored_size, is_zip64),
            ..record.fields
        };
        let extra = if is_zip64 { with_zip64(&[], &[size, stored_size]) } else { Vec::new() };
        let offset = self.position()?;
        let local = Fields { extra_len: extra_len(&extra), ..fields };
        let header = LocalHeader { signature: *b"PK\x03\x04", fields: local };
        self.out.write_all(&[header.as_bytes(), member.name(), &extra].concat())?;
        let place = zip.place_of(member, &mut reader)?;
        reader.seek(SeekFrom::Start(place.start))?;
        let copied = io::copy(&mut reader.take(stored_size), &mut self.out)?;
        if copied != stored_size {
            return Err(Error::of_file(io::ErrorKind::UnexpectedEof.into()));
        }
        // The system that made it says how the attributes are read.
        let made = (record.made_by.get(), record.attributes.get());
        self.list((member.name(), made, fields), [size, stored_size, offset], is_zip64);
        Ok(hash)
    }

    /// Fails if a member has this name.
    fn take_name(&mut self, name: &[u8]) -> Result<(), Error> {
        if self.names.insert(name.to_vec()) {
            return Ok(());
        }
        let text = format!("{}: a member has this name", Shown(name));
        Err(Error::new(ErrorKind::Refused, text))
    }

    /// Adds the record of a member to the central directory.
    fn list(
        &mut self,
        (name, (made_by, attributes), fields): (&[u8], (u16, u32), Fields),
        [size, stored_size, offset]: [u64; 3],
        is_zip64: bool,
    ) {
        let is_far = is_long(offset);
        let mut values = Vec::new();
        values.extend([size, stored_size].iter().filter(|_| is_zip64));
        values.extend(Some(offset).filter(|_| is_far));
        let extra = if values.is_empty() { Vec::new() } else { with_zip64(&[], &values) };
        let version = if values.is_empty() { fields.version } else { 45.into() };
        let record = CentralRecord {
            signature: *b"PK\x01\x02",
            made_by: made_by.into(),
            fields: Fields { extra_len: extra_len(&extra), version, ..fields },
            attributes: attributes.into(),
            offset: short(offset, is_far),
            ..CentralRecord::new_zeroed()
        };
        self.directory.extend([record.as_bytes(), name, &extra].concat());
    }

    fn write(
        &mut self,
        contents: impl Read,
        storing: Storing,
        threads: NonZeroUsize,
    ) -> Result<Sums, Error> {
        let out = |block: &[u8]| Ok(self.out.write_all(block)?);
        match storing {
            Storing::Plain => store_to(contents, out),
            Storing::Deflated(level) => deflate_to(contents, level, threads, out),
        }
    }

    /// Writes the central directory, and returns the output.
    ///
    /// # Errors
    ///
    /// Errors of the output.
    pub fn finish(mut self) -> Result<W, Error> {
        let (offset, size, count) =
            (self.position()?, self.directory.len() as u64, self.names.len() as u64);
        let mut ends = std::mem::take(&mut self.directory);
        if count >= u64::from(u16::MAX) || is_long(size) || is_long(offset) {
            let mut end = Zip64End { made_by: MADE_BY.into(), ..Zip64End::new() };
            end.set(count, size, offset);
            let locator = Zip64Locator::new(offset + size);
            ends.extend([end.as_bytes(), locator.as_bytes()].concat());
        }
        let count = u16::try_from(count).unwrap_or(u16::MAX);
        let end = EndOfDirectory {
            signature: *b"PK\x05\x06",
            volume_count: count.into(),
            count: count.into(),
            directory_size: short(size, is_long(size)),
            directory_offset: short(offset, is_long(offset)),
            ..EndOfDirectory::new_zeroed()
        };
        ends.extend(end.as_bytes());
        self.out.write_all(&ends)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn position(&mut self) -> Result<u64, Error> {
        Ok(self.out.stream_position()? - self.base)
    }
}

/// Returns the size of extra fields that hold a few numbers.
pub(super) fn extra_len(extra: &[u8]) -> zerocopy::little_endian::U16 {
    u16::try_from(extra.len()).unwrap_or(0).into()
}
