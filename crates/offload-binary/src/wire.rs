//! The structures of the format as they lie in a file, little-endian and unaligned.

use core::fmt;

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Length in bytes of [`Header`].
pub(crate) const HEADER_LEN: u64 = 32;
/// Length in bytes of [`HeaderV3`].
pub(crate) const HEADER_V3_LEN: u64 = 40;
/// Length in bytes of [`EntryHeader`].
pub(crate) const ENTRY_LEN: u64 = 40;
/// Length in bytes of [`StringV1`].
pub(crate) const STRING_V1_LEN: u64 = 16;
/// Length in bytes of [`StringV2`].
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

/// Start of every binary, which is the whole header in versions 1 and 2.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Header {
    /// [`MAGIC`](crate::MAGIC).
    pub(crate) magic: [u8; 4],
    /// Version: 1, 2 or 3.
    pub(crate) version: U32,
    /// Size in bytes of the whole binary.
    pub(crate) size: U64,
    /// Offset of the entries.
    pub(crate) entries_offset: U64,
    /// Version 1: size in bytes of the one entry. Versions 2 and 3: number of entries.
    pub(crate) entries_extent: U64,
}

/// Header of version 3.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct HeaderV3 {
    /// Header of versions 1 and 2.
    pub(crate) start: Header,
    /// Size in bytes of the binary once inflated; 0 in a plain binary.
    pub(crate) inflated_size: U64,
}

/// One device image, the same in all versions.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct EntryHeader {
    /// [`ImageKind`](crate::ImageKind).
    pub(crate) image_kind: U16,
    /// [`OffloadKind`](crate::OffloadKind).
    pub(crate) offload_kind: U16,
    /// [`Flags`](crate::Flags).
    pub(crate) flags: U32,
    /// Offset of the string entries.
    pub(crate) string_offset: U64,
    /// Number of string entries.
    pub(crate) string_count: U64,
    /// Offset of the image.
    pub(crate) image_offset: U64,
    /// Size in bytes of the image.
    pub(crate) image_size: U64,
}

/// A string entry of version 1.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct StringV1 {
    /// Offset of the key, which a NUL ends.
    pub(crate) key_offset: U64,
    /// Offset of the value, which a NUL ends in version 1.
    pub(crate) value_offset: U64,
}

/// A string entry of versions 2 and 3.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct StringV2 {
    /// Offsets of key and value.
    pub(crate) offsets: StringV1,
    /// Size in bytes of the value.
    pub(crate) value_size: U64,
}

/// Returns `count` records at an offset of `bytes`, or `None` past the end.
pub(crate) fn records<T>(bytes: &[u8], offset: u64, count: u64) -> Option<&[T]>
where
    T: FromBytes + Immutable + KnownLayout + Unaligned,
{
    let bytes = bytes.get(usize::try_from(offset).ok()?..)?;
    let (records, _) =
        <[T]>::ref_from_prefix_with_elems(bytes, usize::try_from(count).ok()?).ok()?;
    Some(records)
}

/// The string entries of one image, whichever version they have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StringEntries<'data> {
    V1(&'data [StringV1]),
    V2(&'data [StringV2]),
}

/// One string entry, whichever version it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StringEntry {
    pub(crate) key_offset: u64,
    pub(crate) value_offset: u64,
    /// `None`: the value ends at its NUL.
    pub(crate) value_size: Option<u64>,
}

impl StringEntries<'_> {
    /// Returns the bytes of each.
    pub(crate) fn entry_len(self) -> u64 {
        match self {
            Self::V1(_) => STRING_V1_LEN,
            Self::V2(_) => STRING_V2_LEN,
        }
    }

    pub(crate) fn len(self) -> usize {
        match self {
            Self::V1(entries) => entries.len(),
            Self::V2(entries) => entries.len(),
        }
    }

    pub(crate) fn get(self, index: usize) -> Option<StringEntry> {
        let (StringV1 { key_offset, value_offset }, value_size) = match self {
            Self::V1(entries) => (*entries.get(index)?, None),
            Self::V2(entries) => {
                let entry = entries.get(index)?;
                (entry.offsets, Some(entry.value_size.get()))
            }
        };
        let (key_offset, value_offset) = (key_offset.get(), value_offset.get());
        Some(StringEntry { key_offset, value_offset, value_size })
    }
}
