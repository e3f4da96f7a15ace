//! The structures of the binary layout as they lie in a file, little-endian and unaligned.

use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Length in bytes of [`Header`].
pub(crate) const HEADER_LEN: u64 = 32;
/// Length in bytes of [`Descriptor`].
pub(crate) const DESCRIPTOR_LEN: u64 = 24;

/// Start of a bundle; the descriptors follow.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Header {
    /// [`MAGIC`](crate::MAGIC).
    pub(crate) magic: [u8; 24],
    /// Number of entries.
    pub(crate) count: U64,
}

/// One entry; its ID follows.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Descriptor {
    /// Offset of the code object from the start of the bundle.
    pub(crate) offset: U64,
    /// Size in bytes of the code object.
    pub(crate) size: U64,
    /// Length in bytes of the ID.
    pub(crate) id_len: U64,
}
