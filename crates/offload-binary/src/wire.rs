//! The structures of the format as they lie in a file, little-endian and unaligned.

use alloc::vec::Vec;
use core::fmt;

use crate::MAGIC;

/// Length in bytes of [`Header`], which is all of it in versions 1 and 2.
pub(crate) const HEADER_LEN: u64 = 32;
/// Length in bytes of the header of version 3: [`Header`] and the inflated size.
pub(crate) const HEADER_V3_LEN: u64 = 40;
/// Length in bytes of [`EntryHeader`].
pub(crate) const ENTRY_LEN: u64 = 40;
/// Length in bytes of a string entry of version 1.
pub(crate) const STRING_V1_LEN: u64 = 16;
/// Length in bytes of a string entry of versions 2 and 3.
pub(crate) const STRING_V2_LEN: u64 = 24;

/// The most bytes all keys and values of a [`layout`] may have together: 64 MiB. Real ones have
/// a few kilobytes; the limit keeps [`convert`](crate::convert) from unfolding megabytes of
/// strings that share their bytes into gigabytes.
pub(crate) const MAX_STRING_BYTES: u64 = 1 << 26;

/// The version of the format.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum FormatVersion {
    /// One binary for each image, one after the other. LLVM 22 and older write this, and every
    /// release reads it.
    V1,
    /// All images in one binary. LLVM 23 writes this; LLVM 22 cannot read it.
    V2,
    /// All images in one binary, which may be compressed. LLVM 24 writes this; LLVM 22 and 23 cannot read it.
    V3,
}

impl FormatVersion {
    /// Returns the version with this number, if there is one.
    #[must_use]
    pub(crate) const fn from_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::V1),
            2 => Some(Self::V2),
            3 => Some(Self::V3),
            _ => None,
        }
    }

    /// Returns the number as it stands in the header: 1, 2 or 3.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
            Self::V3 => 3,
        }
    }

    /// Returns the length in bytes of the header: 32, and 40 from version 3 on.
    #[must_use]
    pub const fn header_len(self) -> u64 {
        match self {
            Self::V1 | Self::V2 => HEADER_LEN,
            Self::V3 => HEADER_V3_LEN,
        }
    }

    /// Returns the length in bytes of a string entry.
    pub(crate) const fn string_entry_len(self) -> u64 {
        match self {
            Self::V1 => STRING_V1_LEN,
            Self::V2 | Self::V3 => STRING_V2_LEN,
        }
    }
}

/// The number.
impl fmt::Display for FormatVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.number(), f)
    }
}

/// Returns the bytes of a field, or `None` past the end of `bytes`.
fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    field(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    field(bytes, at).map(u32::from_le_bytes)
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    field(bytes, at).map(u64::from_le_bytes)
}

/// Returns `count` records of `N` bytes from the start of `bytes`, or `None` when `bytes` is too short.
fn records<const N: usize>(bytes: &[u8], count: usize) -> Option<&[[u8; N]]> {
    bytes.get(..count.checked_mul(N)?).map(|bytes| bytes.as_chunks().0)
}

/// Start of every binary, after the magic.
#[derive(Clone, Copy)]
pub(crate) struct Header {
    pub(crate) version: u32,
    pub(crate) size: u64,
    pub(crate) entries_offset: u64,
    /// Version 1: size in bytes of the one entry. Versions 2 and 3: number of entries.
    pub(crate) entries_extent: u64,
}

impl Header {
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            version: u32_at(bytes, 4)?,
            size: u64_at(bytes, 8)?,
            entries_offset: u64_at(bytes, 16)?,
            entries_extent: u64_at(bytes, 24)?,
        })
    }

    /// Returns the header of version 3. The header of other versions is the same without the inflated size at its
    /// end.
    pub(crate) fn bytes(&self, inflated_size: u64) -> [u8; 40] {
        let version = self.version.to_le_bytes();
        let sizes = [self.size, self.entries_offset, self.entries_extent, inflated_size];
        let sizes = sizes.map(u64::to_le_bytes);
        let fields = MAGIC.iter().chain(&version).chain(sizes.as_flattened());
        let mut bytes = [0; 40];
        bytes.iter_mut().zip(fields).for_each(|(to, from)| *to = *from);
        bytes
    }
}

/// One device image, the same in all versions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryHeader {
    pub(crate) image_kind: u16,
    pub(crate) offload_kind: u16,
    pub(crate) flags: u32,
    pub(crate) string_offset: u64,
    pub(crate) string_count: u64,
    pub(crate) image_offset: u64,
    pub(crate) image_size: u64,
}

impl EntryHeader {
    fn read(bytes: &[u8; 40]) -> Self {
        // All fields lie inside.
        let number = |at| u64_at(bytes, at).unwrap_or_default();
        Self {
            image_kind: u16_at(bytes, 0).unwrap_or_default(),
            offload_kind: u16_at(bytes, 2).unwrap_or_default(),
            flags: u32_at(bytes, 4).unwrap_or_default(),
            string_offset: number(8),
            string_count: number(16),
            image_offset: number(24),
            image_size: number(32),
        }
    }

    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.image_kind.to_le_bytes());
        to.extend_from_slice(&self.offload_kind.to_le_bytes());
        to.extend_from_slice(&self.flags.to_le_bytes());
        for field in [self.string_offset, self.string_count, self.image_offset, self.image_size] {
            to.extend_from_slice(&field.to_le_bytes());
        }
    }
}

/// The table of entries, in memory as a whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryTable<'data>(&'data [[u8; 40]]);

impl<'data> EntryTable<'data> {
    /// Returns `count` entries at the start of `bytes`, or `None` when `bytes` is too short.
    pub(crate) fn new(bytes: &'data [u8], count: usize) -> Option<Self> {
        records(bytes, count).map(Self)
    }

    pub(crate) fn len(self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(
        self,
    ) -> impl DoubleEndedIterator<Item = EntryHeader> + ExactSizeIterator + Clone + use<'data> {
        self.0.iter().map(EntryHeader::read)
    }
}

/// The string entries of one image, whichever version they have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StringEntries<'data> {
    V1(&'data [[u8; 16]]),
    V2(&'data [[u8; 24]]),
}

/// One string entry, whichever version it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StringEntry {
    pub(crate) key_offset: u64,
    pub(crate) value_offset: u64,
    /// `None`: the value ends at its NUL.
    pub(crate) value_size: Option<u64>,
}

impl<'data> StringEntries<'data> {
    /// Returns `count` entries at the start of `bytes`, or `None` when `bytes` is too short.
    pub(crate) fn new(version: FormatVersion, bytes: &'data [u8], count: usize) -> Option<Self> {
        match version {
            FormatVersion::V1 => records(bytes, count).map(Self::V1),
            FormatVersion::V2 | FormatVersion::V3 => records(bytes, count).map(Self::V2),
        }
    }

    pub(crate) fn len(self) -> usize {
        match self {
            Self::V1(entries) => entries.len(),
            Self::V2(entries) => entries.len(),
        }
    }

    pub(crate) fn get(self, index: usize) -> Option<StringEntry> {
        let (bytes, has_size) = match self {
            Self::V1(entries) => (&entries.get(index)?[..], false),
            Self::V2(entries) => (&entries.get(index)?[..], true),
        };
        Some(StringEntry {
            key_offset: u64_at(bytes, 0)?,
            value_offset: u64_at(bytes, 8)?,
            value_size: if has_size { Some(u64_at(bytes, 16)?) } else { None },
        })
    }
}
