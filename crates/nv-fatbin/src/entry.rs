//! An entry of a fatbinary.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::ops::Range;

use zerocopy::FromBytes;

use crate::error::{Error, ErrorKind};
use crate::kinds::{Architecture, Codec, Flags, Kind};
use crate::wire::{EntryHeader, OptionsHeader};

/// Bytes of the header without its extension.
pub(crate) const HEADER: usize = 64;

/// An entry of a fatbinary: code of one kind for one architecture.
#[derive(Clone, Copy)]
pub struct Entry<'data> {
    pub(crate) wire: EntryHeader,
    /// The bytes in memory, from the first byte of the entry on.
    bytes: &'data [u8],
    index: usize,
    offset: u64,
}

impl fmt::Debug for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("index", &self.index)
            .field("offset", &self.offset)
            .field("wire", &self.wire)
            .finish_non_exhaustive()
    }
}

impl<'data> Entry<'data> {
    /// Reads the header of an entry.
    ///
    /// `bytes` start with it, and need not reach beyond its first 64 bytes: what needs more says so. `index` counts the
    /// entries before it, `offset` is its place from the magic of a fatbinary with `size` bytes.
    ///
    /// # Errors
    ///
    /// [`Malformed`](crate::ErrorKind::Malformed) where sizes contradict each other.
    pub fn parse(bytes: &'data [u8], index: usize, offset: u64, size: u64) -> Result<Self, Error> {
        let malformed =
            |message: String| Error::at_entry(ErrorKind::Malformed, (index, offset), message);
        // 128 bits hold all sums.
        let beyond = |end: u128| {
            malformed(format!(" reaches to {end:#x}, beyond the end of the fatbinary at {size:#x}"))
        };
        let Ok((wire, _)) = EntryHeader::read_from_prefix(bytes) else {
            let end = u128::from(offset) + HEADER as u128;
            return Err(if end > size.into() {
                beyond(end)
            } else {
                not_in_memory((index, offset), HEADER as u64)
            });
        };
        let header_size = wire.header_size.get();
        if u64::from(header_size) < HEADER as u64 {
            let message = format!(" has a header size of {header_size}, expected at least 64");
            return Err(malformed(message));
        }
        let padded = wire.payload_size.get();
        let end = u128::from(offset) + u128::from(header_size) + u128::from(padded);
        if end > size.into() {
            return Err(beyond(end));
        }
        let entry = Entry { wire, bytes, index, offset };
        let exact = entry.stored_size();
        if exact > padded {
            let message =
                format!(" has {exact} bytes of compressed payload in a space of {padded}");
            return Err(malformed(message));
        }
        Ok(Entry { bytes: entry.bytes().unwrap_or(bytes), ..entry })
    }

    /// Returns the record of one of several images: the header of an entry without payload. `None` if that is too large
    /// for one.
    pub(crate) fn record(
        wire: &EntryHeader,
        bytes: &'data [u8],
        around: &Entry<'data>,
    ) -> Option<Self> {
        let header_size = u32::try_from(bytes.len()).ok()?.into();
        let wire = EntryHeader { header_size, payload_size: 0.into(), ..*wire };
        Some(Entry { wire, bytes, index: around.index, offset: around.offset })
    }

    /// Returns its position among the entries, from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the offset of its header from the magic of the fatbinary.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the offset of the next entry, or of the end of the fatbinary.
    #[must_use]
    pub fn end(&self) -> u64 {
        // `parse` checks it.
        self.offset + self.len()
    }

    /// Returns the size of header and payload.
    fn len(&self) -> u64 {
        u64::from(self.wire.header_size) + self.wire.payload_size.get()
    }

    /// Returns the kind of code.
    #[must_use]
    pub fn kind(&self) -> Kind {
        Kind(self.wire.kind.get())
    }

    /// Returns the flags.
    #[must_use]
    pub fn flags(&self) -> Flags {
        Flags::from_bits_retain(self.wire.flags.get())
    }

    /// Returns the architecture, by SM number and flags.
    #[must_use]
    pub fn architecture(&self) -> Architecture {
        Architecture::new(self.wire.sm.get(), self.flags())
    }

    /// Returns major and minor version of the code: of PTX its `.version`, of a cubin its ABI.
    #[must_use]
    pub fn code_version(&self) -> (u16, u16) {
        (self.wire.major.get(), self.wire.minor.get())
    }

    /// Returns the version of the entry: 0x101 in every file seen.
    #[must_use]
    pub fn version(&self) -> u16 {
        self.wire.version.get()
    }

    /// Returns the codec of the payload; `None` if it is not compressed.
    #[must_use]
    pub fn codec(&self) -> Option<Codec> {
        Codec::of(self.flags())
    }

    /// Returns the size of the code in bytes, decompressed. Code that is not compressed counts with its padding of up to 7
    /// bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        match self.codec() {
            Some(_) => self.wire.uncompressed_size.get(),
            None => self.wire.payload_size.get(),
        }
    }

    /// Returns the bytes that the payload takes; without padding if it is compressed.
    #[must_use]
    pub fn stored_size(&self) -> u64 {
        match u64::from(self.wire.compressed_size) {
            exact if exact != 0 && self.codec().is_some() => exact,
            _ => self.wire.payload_size.get(),
        }
    }

    /// Returns the place of the stored payload, from the magic of the fatbinary.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        let start = self.offset + u64::from(self.wire.header_size);
        start..start + self.stored_size()
    }

    /// Returns the payload as stored; `None` where it is not in memory.
    #[must_use]
    pub fn payload(&self) -> Option<&'data [u8]> {
        let start = usize::try_from(self.wire.header_size.get()).ok()?;
        let size = usize::try_from(self.stored_size()).ok()?;
        self.bytes.get(start..)?.get(..size)
    }

    /// Returns the bytes of the entry, header and payload; `None` where they are not in memory.
    #[must_use]
    pub fn bytes(&self) -> Option<&'data [u8]> {
        self.bytes.get(..usize::try_from(self.len()).ok()?)
    }

    /// Returns the identifier: the name of the module of relocatable PTX, or what `fatbinary --ident` was given.
    ///
    /// # Errors
    ///
    /// [`Malformed`](crate::ErrorKind::Malformed) if it lies outside of the header.
    pub fn identifier(&self) -> Result<Option<&'data [u8]>, Error> {
        match (self.wire.identifier.get(), self.wire.identifier_len.get()) {
            (0, _) => Ok(None),
            (at, len) => self.extension("identifier", at.into(), len).map(Some),
        }
    }

    /// Returns the options: of PTX those for `ptxas`, of LTO-IR those of the compiler, of a cubin with
    /// [`Flags::COMPAT`] its section `.nv.compat`. `None` where there are none.
    ///
    /// # Errors
    ///
    /// [`Malformed`](crate::ErrorKind::Malformed) if they lie outside of the header.
    pub fn options(&self) -> Result<Option<&'data [u8]>, Error> {
        let at = self.options_at();
        if at == 0 || self.kind() == Kind::CONCATENATED {
            return Ok(None);
        }
        let descriptor = OptionsHeader::read_from_bytes(self.extension("options", at.into(), 8)?);
        match descriptor.map(|place| (place.at.get(), place.len.get())) {
            // CUDA 11 writes a descriptor of zeros. The extension has 8 bytes.
            Ok((0, _)) | Err(_) => Ok(None),
            Ok((at, len)) => {
                // A byte 0 comes before the section, which the length does not count.
                let skipped = u64::from(self.flags().contains(Flags::COMPAT));
                self.extension("options", u64::from(at) + skipped, len).map(Some)
            }
        }
    }

    /// Returns bytes of the header's extension.
    pub(crate) fn extension(
        &self,
        what: &'static str,
        at: u64,
        len: u32,
    ) -> Result<&'data [u8], Error> {
        // The place is a number of 32 bits, or the next one.
        let end = at + u64::from(len);
        let header_size = self.wire.header_size.get();
        let range = usize::try_from(at).ok().zip(usize::try_from(end).ok());
        if at < HEADER as u64 || end > u64::from(header_size) {
            let message = format!(
                ": its {what} at {at:#x}..{end:#x} is not between 0x40 and the end of its header at {header_size:#x}"
            );
            let place = (self.index, self.offset);
            return Err(Error::at_entry(ErrorKind::Malformed, place, message));
        }
        let found = range.and_then(|(at, end)| self.bytes.get(at..end));
        found.ok_or_else(|| self.not_in_memory(u64::from(header_size)))
    }

    /// Returns all of its bytes.
    pub(crate) fn whole(&self) -> Result<&'data [u8], Error> {
        self.bytes().ok_or_else(|| self.not_in_memory(self.len()))
    }

    /// Returns its header with the extension.
    pub(crate) fn header(&self) -> Result<&'data [u8], Error> {
        self.start(self.wire.header_size.get())
    }

    /// Returns its first bytes.
    pub(crate) fn start(&self, len: u32) -> Result<&'data [u8], Error> {
        self.bytes.get(..len as usize).ok_or_else(|| self.not_in_memory(len.into()))
    }

    /// Returns the place of the options in the header, or of the table of images; 0 if there are none.
    pub(crate) fn options_at(&self) -> u32 {
        self.wire.options.get()
    }

    /// Returns the payload of an entry that is not compressed; of PTX without the zeros after the NUL that ends it, if these
    /// only fill it up to a multiple of 8.
    pub(crate) fn unpadded(&self) -> Result<&'data [u8], Error> {
        let payload = self.stored()?;
        let is_text = matches!(self.kind(), Kind::PTX | Kind::RELOCATABLE_PTX);
        let text = payload.iter().position(|&byte| byte == 0).filter(|_| is_text);
        Ok(match text.and_then(|nul| payload.split_at_checked(nul + 1)) {
            Some((text, padding)) if padding.len() < 8 && padding.iter().all(|&byte| byte == 0) => {
                text
            }
            _ => payload,
        })
    }

    /// Returns the payload as stored.
    fn stored(&self) -> Result<&'data [u8], Error> {
        self.payload().ok_or_else(|| self.not_in_memory(self.range().end - self.offset))
    }

    fn not_in_memory(&self, needed: u64) -> Error {
        not_in_memory((self.index, self.offset), needed)
    }

    /// Returns the code: the payload, decompressed if it is compressed. It may be `limit` bytes long.
    ///
    /// PTX ends with a NUL. Code that was not compressed has its padding of up to 7 zeros at the end.
    ///
    /// # Errors
    ///
    /// - [`Limit`](crate::ErrorKind::Limit) if the entry promises more than `limit` bytes,
    /// - [`Unsupported`](crate::ErrorKind::Unsupported) for scrambled LTO-IR and for a codec that is unknown or not built in,
    /// - [`Codec`](crate::ErrorKind::Codec) for a payload that does not decompress to as many bytes as the entry says,
    /// - [`Incomplete`](crate::ErrorKind::Incomplete) if the payload is not in memory.
    pub fn decompress(&self, limit: u64) -> Result<Cow<'data, [u8]>, Error> {
        let payload = self.stored()?;
        let Some(codec) = self.codec() else { return Ok(Cow::Borrowed(payload)) };
        let size = self.size();
        if size > limit {
            let message = format!("decompresses to {size} bytes, more than the limit of {limit}");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        codec.decompress(payload, size).map(Cow::Owned).map_err(|error| error.of_entry(self.index))
    }
}

#[cold]
fn not_in_memory(place: (usize, u64), needed: u64) -> Error {
    let message = format!(": expected its first {needed} bytes in memory");
    Error::at_entry(ErrorKind::Incomplete, place, message)
}
