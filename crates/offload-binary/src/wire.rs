//! The structures of the format as they lie in a file, little-endian and unaligned.

use zerocopy::byteorder::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::image_entry::FormatVersion;

/// Length in bytes of [`Header`], which is all of it in versions 1 and 2.
pub(crate) const HEADER_LEN: u64 = 32;
/// Length in bytes of the header of version 3: [`Header`] and the inflated size.
pub(crate) const HEADER_V3_LEN: u64 = 40;
/// Length in bytes of [`EntryHeader`].
pub(crate) const ENTRY_LEN: u64 = 40;
/// Length in bytes of [`StringEntryV1`].
pub(crate) const STRING_V1_LEN: u64 = 16;
/// Length in bytes of [`StringEntryV2`].
pub(crate) const STRING_V2_LEN: u64 = 24;

/// Start of every binary.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Header {
    pub(crate) magic: [u8; 4],
    pub(crate) version: U32,
    pub(crate) size: U64,
    pub(crate) entries_offset: U64,
    /// Version 1: size in bytes of the one entry. Versions 2 and 3: number of entries.
    pub(crate) entries_extent: U64,
}

/// One device image, the same in all versions.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct EntryHeader {
    pub(crate) image_kind: U16,
    pub(crate) offload_kind: U16,
    pub(crate) flags: U32,
    pub(crate) string_offset: U64,
    pub(crate) string_count: U64,
    pub(crate) image_offset: U64,
    pub(crate) image_size: U64,
}

/// Key and value of version 1, both ended by NUL.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct StringEntryV1 {
    pub(crate) key_offset: U64,
    pub(crate) value_offset: U64,
}

/// Key and value of versions 2 and 3: the key is ended by NUL, the value has a size.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct StringEntryV2 {
    pub(crate) key_offset: U64,
    pub(crate) value_offset: U64,
    pub(crate) value_size: U64,
}

const _: () = assert!(size_of::<Header>() as u64 == HEADER_LEN);
const _: () = assert!(size_of::<EntryHeader>() as u64 == ENTRY_LEN);
const _: () = assert!(size_of::<StringEntryV1>() as u64 == STRING_V1_LEN);
const _: () = assert!(size_of::<StringEntryV2>() as u64 == STRING_V2_LEN);

/// The string entries of one image, whichever version they have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StringEntries<'data> {
    V1(&'data [StringEntryV1]),
    V2(&'data [StringEntryV2]),
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
    /// `count` entries at the start of `bytes`, or `None` when `bytes` is too short.
    pub(crate) fn new(version: FormatVersion, bytes: &'data [u8], count: usize) -> Option<Self> {
        match version {
            FormatVersion::V1 => {
                let entries = <[StringEntryV1]>::ref_from_prefix_with_elems(bytes, count);
                entries.ok().map(|(entries, _)| Self::V1(entries))
            }
            FormatVersion::V2 | FormatVersion::V3 => {
                let entries = <[StringEntryV2]>::ref_from_prefix_with_elems(bytes, count);
                entries.ok().map(|(entries, _)| Self::V2(entries))
            }
        }
    }

    pub(crate) fn len(self) -> usize {
        match self {
            Self::V1(entries) => entries.len(),
            Self::V2(entries) => entries.len(),
        }
    }

    pub(crate) fn get(self, index: usize) -> Option<StringEntry> {
        match self {
            Self::V1(entries) => entries.get(index).map(|entry| StringEntry {
                key_offset: entry.key_offset.get(),
                value_offset: entry.value_offset.get(),
                value_size: None,
            }),
            Self::V2(entries) => entries.get(index).map(|entry| StringEntry {
                key_offset: entry.key_offset.get(),
                value_offset: entry.value_offset.get(),
                value_size: Some(entry.value_size.get()),
            }),
        }
    }
}
