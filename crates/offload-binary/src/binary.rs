//! Reading one binary.

use alloc::borrow::Cow;
use alloc::collections::BTreeSet;
use core::ffi::CStr;
use core::fmt;
use core::str;

use byte_parts::internal;

use crate::error::Error;
use crate::image_entry::ImageEntry;
use crate::kinds::{Flags, ImageKind, OffloadKind};
use crate::validate;
use crate::wire::{EntryHeader, FormatVersion, HEADER_LEN, StringEntries, StringEntry};

/// A valid offload binary of version 1, 2 or 3, not compressed.
///
/// Parsing checks everything the binary says about itself, so that the accessors cannot fail.
/// It takes time linear in the part of the binary that is in memory (images are not looked at),
/// apart from sorting the entries, and memory in proportion to the entries that are there.
///
/// Stricter than LLVM 22, 23 and 24, which crash on or accept some of it, a binary is refused when
/// its size is not a multiple of 8, when tables, strings and images share bytes, and when a
/// string is not ended inside the binary.
pub struct OffloadBinary<'data> {
    version: FormatVersion,
    size: u64,
    data: &'data [u8],
    entries: &'data [EntryHeader],
}

impl<'data> OffloadBinary<'data> {
    /// Reads the binary that starts with the first byte of `data`. Ignores the bytes after the binary;
    /// [`binaries`](crate::binaries) reads several.
    ///
    /// # Errors
    ///
    /// Every [`ErrorKind`](crate::ErrorKind) but those about what is written or concatenated; never
    /// [`Incomplete`](crate::ErrorKind::Incomplete). A compressed binary gives [`Compressed`](crate::ErrorKind::Compressed).
    pub fn parse(data: &'data [u8]) -> Result<Self, Error> {
        Self::parse_prefix(data, data.len() as u64)
    }

    /// Reads the binary that starts with the first byte of `prefix`, when only the first
    /// `prefix.len()` of `available` bytes are in memory. Tables and strings have to be in
    /// memory, images need not be.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse), and [`Incomplete`](crate::ErrorKind::Incomplete) when the prefix is too
    /// short: read as many bytes as [`Error::needed`] says and call again. From an empty prefix on, five calls are the most it takes.
    pub fn parse_prefix(prefix: &'data [u8], available: u64) -> Result<Self, Error> {
        let parts = validate::parse(prefix, available)?;
        Ok(Self {
            version: parts.version,
            size: parts.size,
            data: parts.data,
            entries: parts.entries,
        })
    }

    /// Returns how many bytes from its start the tables and strings of a binary reach at least, judged by `prefix`, its
    /// first bytes. Once `prefix` has as many, [`parse_prefix`](Self::parse_prefix) needs no more.
    ///
    /// It never asks for a byte past the end of a valid binary, so a caller can read a binary whose following bytes
    /// are not readable, such as one in memory.
    ///
    /// # Errors
    ///
    /// Errors of [`parse_prefix`](Self::parse_prefix), but not [`Incomplete`](crate::ErrorKind::Incomplete).
    pub fn header_needed(prefix: &'data [u8]) -> Result<u64, Error> {
        match Self::parse_prefix(prefix, u64::MAX) {
            Ok(_) => Ok(prefix.len() as u64),
            Err(error) => match error.needed() {
                // Before the header is there, a binary without entries is possible.
                Some(_) if (prefix.len() as u64) < HEADER_LEN => Ok(HEADER_LEN),
                Some(needed) => Ok(needed),
                None => Err(error),
            },
        }
    }

    /// Returns the version of the format.
    #[must_use]
    pub fn version(&self) -> FormatVersion {
        self.version
    }

    /// Returns the length of the whole binary in bytes, a multiple of 8.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the entries in stored order: one in version 1, any number in versions 2 and 3.
    pub fn entries(
        &self,
    ) -> impl DoubleEndedIterator<Item = Entry<'data>> + ExactSizeIterator + Clone + use<'data>
    {
        let Self { version, data, entries, .. } = *self;
        entries.iter().enumerate().map(move |(index, raw)| {
            let strings = validate::string_entries(version, data, raw);
            Entry { index, data, raw, strings }
        })
    }
}

impl fmt::Debug for OffloadBinary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OffloadBinary")
            .field("version", &self.version)
            .field("size", &self.size)
            .field("entries", &self.entries.len())
            .finish_non_exhaustive()
    }
}

/// One device image and what is known about it.
pub struct Entry<'data> {
    index: usize,
    data: &'data [u8],
    raw: &'data EntryHeader,
    strings: StringEntries<'data>,
}

impl<'data> Entry<'data> {
    /// Returns the index of the entry, from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the format of the image.
    #[must_use]
    pub fn image_kind(&self) -> ImageKind {
        ImageKind(self.raw.image_kind.get())
    }

    /// Returns the programming model that produced the image.
    #[must_use]
    pub fn offload_kind(&self) -> OffloadKind {
        OffloadKind(self.raw.offload_kind.get())
    }

    /// Returns the flags, unknown ones included.
    #[must_use]
    pub fn flags(&self) -> Flags {
        Flags::from_bits_retain(self.raw.flags.get())
    }

    /// Returns the offset of the image, in bytes from the start of the binary.
    #[must_use]
    pub fn image_offset(&self) -> u64 {
        self.raw.image_offset.get()
    }

    /// Returns the length of the image in bytes, without padding.
    #[must_use]
    pub fn image_size(&self) -> u64 {
        self.raw.image_size.get()
    }

    /// Returns the image, or `None` when it is not all in memory (see [`OffloadBinary::parse_prefix`]).
    #[must_use]
    pub fn image(&self) -> Option<&'data [u8]> {
        slice(self.data, self.image_offset(), self.image_size())
    }

    /// Returns the keys and values in stored order, as bytes: they are not bound to be UTF-8. A key may
    /// be there more than once.
    pub fn strings(
        &self,
    ) -> impl DoubleEndedIterator<Item = (&'data [u8], &'data [u8])> + Clone + use<'data> {
        let Self { data, strings, .. } = *self;
        (0..strings.len())
            .filter_map(move |index| strings.get(index))
            .map(move |entry| (until_nul(data, entry.key_offset), value(data, entry)))
    }

    /// Returns the value of `key`. Where a key is there more than once the last one counts, as in LLVM.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&'data [u8]> {
        let entry = (0..self.strings.len())
            .rev()
            .filter_map(|index| self.strings.get(index))
            .find(|entry| {
                // Compared in place: a key is only as long as its NUL says.
                usize::try_from(entry.key_offset)
                    .ok()
                    .and_then(|offset| self.data.get(offset..))
                    .and_then(|bytes| bytes.strip_prefix(key.as_bytes()))
                    .is_some_and(|rest| rest.first() == Some(&0))
            })?;
        Some(value(self.data, entry))
    }

    /// Returns the key of the first string entry, in stored order, whose key was there before; `None` if each is there once.
    ///
    /// No compiler writes such entries: two tools may have appended a value. Readers, LLVM's and [`get`](Self::get), take the last one.
    /// The time depends on the length of all keys together, and their number.
    #[must_use]
    pub fn repeated_key(&self) -> Option<RepeatedKey<'data>> {
        let mut known = BTreeSet::new();
        let (key, _) = self.strings().find(|(key, _)| !known.insert(*key))?;
        let equal = self.strings().enumerate().filter(|(_, (other, _))| *other == key);
        let (count, last) = equal.fold((0, 0), |(count, _), (at, _)| (count + 1, at as u64));
        let offset = self.raw.string_offset.get() + last * self.strings.entry_len();
        Some(RepeatedKey { key, count, offset })
    }

    /// Returns the value of the key `triple`: the target triple of the image. `None` without the key or when the
    /// value is not UTF-8.
    #[must_use]
    pub fn triple(&self) -> Option<&'data str> {
        str::from_utf8(self.get("triple")?).ok()
    }

    /// Returns the value of the key `arch`: the processor, or target ID, of the image. `None` without the key or
    /// when the value is not UTF-8.
    #[must_use]
    pub fn arch(&self) -> Option<&'data str> {
        str::from_utf8(self.get("arch")?).ok()
    }
}

/// A key that an entry has more than once: [`Entry::repeated_key`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepeatedKey<'data> {
    /// The key.
    pub key: &'data [u8],
    /// The number of its string entries, at least 2.
    pub count: usize,
    /// Place of the last of its string entries, which counts, in bytes from the start of the binary.
    pub offset: u64,
}

impl fmt::Debug for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("index", &self.index)
            .field("image_kind", &self.image_kind())
            .field("offload_kind", &self.offload_kind())
            .field("flags", &self.flags())
            .field("strings", &self.strings.len())
            .field("image_offset", &self.image_offset())
            .field("image_size", &self.image_size())
            .finish_non_exhaustive()
    }
}

fn value(data: &[u8], entry: StringEntry) -> &[u8] {
    match entry.value_size {
        Some(size) => slice(data, entry.value_offset, size).unwrap_or_else(missing),
        None => until_nul(data, entry.value_offset),
    }
}

fn until_nul(data: &[u8], offset: u64) -> &[u8] {
    usize::try_from(offset)
        .ok()
        .and_then(|offset| data.get(offset..))
        .and_then(|bytes| CStr::from_bytes_until_nul(bytes).ok())
        .map(CStr::to_bytes)
        .unwrap_or_else(missing)
}

fn missing<'data>() -> &'data [u8] {
    internal!("a string that was not checked");
    &[]
}

/// Returns `len` bytes at `offset`. No bytes at all are always there.
fn slice(data: &[u8], offset: u64, len: u64) -> Option<&[u8]> {
    if len == 0 {
        return Some(&[]);
    }
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(usize::try_from(len).ok()?)?;
    data.get(start..end)
}

impl<'data> Entry<'data> {
    /// Returns everything the entry says, to be written again. The strings borrow from the data that was read.
    #[must_use]
    pub fn to_image_entry(&self) -> ImageEntry<'data> {
        ImageEntry {
            image_kind: self.image_kind(),
            offload_kind: self.offload_kind(),
            flags: self.flags(),
            strings: self.strings().map(|(k, v)| (Cow::Borrowed(k), Cow::Borrowed(v))).collect(),
            size: self.image_size(),
        }
    }
}
