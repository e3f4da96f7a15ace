//! The structures of the format as they lie in a file, little-endian and unaligned.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Header of a fatbinary; the entries follow.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct FatbinHeader {
    /// [`MAGIC`](crate::MAGIC).
    pub(crate) magic: [u8; 4],
    /// Version: 1.
    pub(crate) version: U16,
    /// Size in bytes of this header.
    pub(crate) header_size: U16,
    /// Size in bytes of the entries.
    pub(crate) size: U64,
}

/// Header of an entry without its extension.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct EntryHeader {
    /// [`Kind`](crate::Kind).
    pub(crate) kind: U16,
    /// Version of the entry: 0x101.
    pub(crate) version: U16,
    /// Size in bytes of the header with its extension. In the record of one of several images: place of its code.
    pub(crate) header_size: U32,
    /// Size in bytes of the payload with padding, a multiple of 8.
    pub(crate) payload_size: U64,
    /// Exact size in bytes of a compressed payload; 0 if not compressed.
    pub(crate) compressed_size: U32,
    /// Offset of the options; 0 if there are none.
    pub(crate) options: U32,
    /// Minor version of the code.
    pub(crate) minor: U16,
    /// Major version of the code.
    pub(crate) major: U16,
    /// SM number.
    pub(crate) sm: U32,
    /// Offset of the identifier; 0 if there is none.
    pub(crate) identifier: U32,
    /// Length in bytes of the identifier without its NUL.
    pub(crate) identifier_len: U32,
    /// [`Flags`](crate::Flags).
    pub(crate) flags: U64,
    /// Seed of scrambled LTO-IR.
    pub(crate) seed: U64,
    /// Exact size in bytes of the decompressed code; 0 if not compressed.
    pub(crate) uncompressed_size: U64,
}

/// Place of the text of options.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct OptionsHeader {
    /// Offset from the start of the entry; 0 if there are none.
    pub(crate) at: U32,
    /// Length in bytes without NUL.
    pub(crate) len: U32,
}

/// Start of a table of images; the records follow.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct TableHeader {
    /// Number of records.
    pub(crate) count: U32,
    /// Size in bytes of this header and the records.
    pub(crate) size: U32,
}
