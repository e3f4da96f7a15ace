//! Entries in another form, and fatbinaries to be written.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use zerocopy::{FromBytes, transmute};

use crate::MAGIC;
use crate::compression::{Compression, Stored};
use crate::entry::Entry;
use crate::error::Error;
use crate::kinds::Flags;
use crate::new_entry::{NewEntry, table};
use crate::number::{number, reserve};
use crate::wire::{EntryHeader, FatbinHeader};

impl Entry<'_> {
    /// Returns the bytes of this entry with its code stored in another form. All other fields keep their values.
    ///
    /// Code that is not compressed has no exact size: the zeros that fill it up to a multiple of 8 count as a part of it, but
    /// not after PTX. So an entry that is compressed and then decompressed has the bytes that it had. One that is decompressed
    /// and then compressed has them if encoder and level are those of the tool that wrote it.
    ///
    /// `max` limits the size of the code, in bytes.
    ///
    /// ```
    /// use nv_fatbin::{Architecture, Compression, Fatbin, NewEntry, NewFatbin};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let text = b".version 8.7\n.target sm_90\n.address_size 64\n";
    /// let entry = NewEntry::ptx(Architecture::from_name("sm_90").ok_or("a name")?, text)?;
    /// let mut fatbin = NewFatbin::new();
    /// fatbin.add(&entry)?;
    /// fatbin.add(&entry.with_compression(Compression::Lz4(3)))?;
    /// let fatbin = fatbin.to_vec()?;
    /// let entries = Fatbin::parse(&fatbin)?.entries().collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(entries[0].stored_as(Compression::Lz4(3), 1 << 20)?, entries[1].bytes().unwrap());
    /// assert_eq!(entries[1].stored_as(Compression::None, 1 << 20)?, entries[0].bytes().unwrap());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Errors of [`decompress`](Self::decompress) and of [`NewFatbin::add`].
    pub fn stored_as(&self, compression: Compression, max: u64) -> Result<Vec<u8>, Error> {
        let index = self.index();
        let code = match self.codec() {
            Some(_) => self.decompress(max)?,
            None => Cow::Borrowed(self.unpadded()?),
        };
        let stored = Stored::new(&code, compression).map_err(|error| error.of_entry(index))?;
        self.assemble(self.header()?, &stored)
    }

    /// Returns the bytes of this entry of kind [`CONCATENATED`](crate::Kind::CONCATENATED) with some of its images only, in
    /// their order. `keeps` gets the position of each. `None` if none is kept.
    ///
    /// `max` limits the size of the code, in bytes.
    ///
    /// # Errors
    ///
    /// Errors of [`decompress`](Self::decompress), of [`concatenated`](Self::concatenated) and of [`NewFatbin::add`].
    pub fn with_images(
        &self,
        keeps: impl Fn(usize) -> bool,
        compression: Compression,
        max: u64,
    ) -> Result<Option<Vec<u8>>, Error> {
        let images = self.concatenated()?;
        let kept =
            || images.iter().enumerate().filter(|(at, _)| keeps(*at)).map(|(_, image)| image);
        if kept().next().is_none() {
            return Ok(None);
        }
        let old = self.decompress(max)?;
        let (mut records, mut code) = (Vec::new(), Vec::new());
        reserve(&mut code, old.len())?;
        for image in kept() {
            image.add_to(&mut records, number("concatenated code", code.len())?)?;
            // The table was checked against the size of the code.
            let Range { start, end } = image.range();
            let place = usize::try_from(start).ok().zip(usize::try_from(end).ok());
            let bytes = place.and_then(|(start, end)| old.get(start..end));
            let missing = || Error::malformed("expected the images in the code of the entry");
            code.extend_from_slice(bytes.ok_or_else(missing)?);
            code.resize(code.len().next_multiple_of(8), 0);
        }
        let mut header = self.start(self.options_at())?.to_vec();
        header.extend(table(number("table of images", kept().count())?, &records)?);
        let stored =
            Stored::new(&code, compression).map_err(|error| error.of_entry(self.index()))?;
        self.assemble(&header, &stored).map(Some)
    }

    /// Returns the bytes of this entry with another header and other code.
    fn assemble(&self, header: &[u8], stored: &Stored<'_>) -> Result<Vec<u8>, Error> {
        let flags = self.flags().difference(Flags::CODECS) | stored.codec;
        let padded = stored.payload.len().next_multiple_of(8);
        let mut bytes = Vec::new();
        reserve(&mut bytes, header.len() + padded)?;
        bytes.extend_from_slice(header);
        bytes.extend_from_slice(&stored.payload);
        bytes.resize(header.len() + padded, 0);
        if let Ok((fields, _)) = EntryHeader::mut_from_prefix(&mut bytes) {
            fields.header_size = number("header", header.len())?.into();
            fields.payload_size = (padded as u64).into();
            fields.compressed_size = stored.compressed_size.into();
            fields.flags = flags.bits().into();
            fields.uncompressed_size = stored.size.into();
        }
        Ok(bytes)
    }
}

/// A fatbinary to be written: entries of others as they are, and new ones.
///
/// An edit reads a fatbinary, keeps some of its entries, and adds others:
///
/// ```
/// use nv_fatbin::{Architecture, Fatbin, Flags, Kind, NewEntry, NewFatbin};
///
/// # fn main() -> Result<(), nv_fatbin::Error> {
/// # let mut file = NewFatbin::new();
/// # for name in ["sm_80", "sm_90"] {
/// #     let architecture = Architecture::from_name(name).unwrap();
/// #     file.add(&NewEntry::new(Kind::ELF, architecture, b"code".as_slice()))?;
/// # }
/// # let file = file.to_vec()?;
/// let mut edited = NewFatbin::new();
/// for entry in Fatbin::parse(&file)?.entries() {
///     let entry = entry?;
///     if entry.architecture().sm() >= 90 {
///         edited.keep(&entry)?;
///     }
/// }
/// let ptx = b".version 8.7\n.target sm_90\n.address_size 64\n";
/// if let Some(architecture) = Architecture::of_ptx(ptx) {
///     edited.add(&NewEntry::ptx(architecture, ptx)?.with_flags(Flags::LINUX))?;
/// }
/// let edited = edited.to_vec()?;
/// assert_eq!(Fatbin::parse(&edited)?.entries().count(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct NewFatbin<'a> {
    entries: Vec<Cow<'a, [u8]>>,
}

impl fmt::Debug for NewFatbin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewFatbin").field("entries", &self.entries.len()).finish_non_exhaustive()
    }
}

impl<'a> NewFatbin<'a> {
    /// Makes a fatbinary without entries, which is valid.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an entry of another fatbinary, byte for byte.
    ///
    /// # Errors
    ///
    /// [`Incomplete`](crate::ErrorKind::Incomplete) if it is not in memory.
    pub fn keep(&mut self, entry: &Entry<'a>) -> Result<(), Error> {
        self.entries.push(Cow::Borrowed(entry.whole()?));
        Ok(())
    }

    /// Adds a new entry, compressed now.
    ///
    /// # Errors
    ///
    /// - [`Unsupported`](crate::ErrorKind::Unsupported) for a kind that cannot be written, and for Zstandard in a build without
    ///   libzstd,
    /// - [`Limit`](crate::ErrorKind::Limit) for more bytes than the format has numbers for,
    /// - [`Memory`](crate::ErrorKind::Memory).
    pub fn add(&mut self, entry: &NewEntry<'_>) -> Result<(), Error> {
        let bytes = entry.to_vec().map_err(|error| error.of_entry(self.entries.len()))?;
        self.entries.push(Cow::Owned(bytes));
        Ok(())
    }

    /// Returns the header, which comes first in the file.
    #[must_use]
    pub fn header(&self) -> [u8; 16] {
        transmute!(FatbinHeader {
            magic: MAGIC,
            version: 1.into(),
            header_size: 16.into(),
            size: self.size().into(),
        })
    }

    /// Returns the size of the entries in bytes.
    fn size(&self) -> u64 {
        self.entries.iter().map(|entry| entry.len() as u64).sum()
    }

    /// Iterates over the bytes of each entry, which follow the header.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.entries.iter().map(|entry| &**entry)
    }

    /// Returns the fatbinary in memory.
    ///
    /// # Errors
    ///
    /// [`Memory`](crate::ErrorKind::Memory).
    pub fn to_vec(&self) -> Result<Vec<u8>, Error> {
        let header = self.header();
        let size = header.len() as u64 + self.size();
        let mut bytes = Vec::new();
        reserve(&mut bytes, usize::try_from(size).map_err(|_| Error::out_of_memory(size))?)?;
        bytes.extend(header);
        self.entries().for_each(|entry| bytes.extend_from_slice(entry));
        Ok(bytes)
    }
}
