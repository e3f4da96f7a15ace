//! The headers as they lie in the file: little-endian, unpadded, at any alignment.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of [`Prefix`].
pub(crate) const PREFIX_LEN: usize = 8;

/// Start of the header of all versions.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Prefix {
    /// [`MAGIC`](crate::MAGIC).
    pub(crate) magic: [u8; 4],
    /// Version: 1, 2 or 3.
    pub(crate) version: U16,
    /// [`Method`](crate::Method).
    pub(crate) method: U16,
}

/// Header of version 1.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct HeaderV1 {
    pub(crate) prefix: Prefix,
    /// Bytes that the payload expands to.
    pub(crate) uncompressed_size: U32,
    /// Start of the MD5 of the uncompressed bytes.
    pub(crate) hash: U64,
}

/// Header of version 2.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct HeaderV2 {
    pub(crate) prefix: Prefix,
    /// Bytes of header and payload.
    pub(crate) total_size: U32,
    /// Bytes that the payload expands to.
    pub(crate) uncompressed_size: U32,
    /// Start of the MD5 of the uncompressed bytes.
    pub(crate) hash: U64,
}

/// Header of version 3.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct HeaderV3 {
    pub(crate) prefix: Prefix,
    /// Bytes of header and payload.
    pub(crate) total_size: U64,
    /// Bytes that the payload expands to.
    pub(crate) uncompressed_size: U64,
    /// Start of the MD5 of the uncompressed bytes.
    pub(crate) hash: U64,
}
