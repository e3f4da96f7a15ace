//! The structures of the binary layout as they lie in a file, little-endian and unaligned.

use zerocopy::byteorder::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Length in bytes of [`Header`].
pub(crate) const HEADER_LEN: u64 = 32;
/// Length in bytes of [`Descriptor`].
pub(crate) const DESCRIPTOR_LEN: u64 = 24;

/// Start of a bundle.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Header {
    pub(crate) magic: [u8; 24],
    pub(crate) entry_count: U64,
}

/// One entry; its ID follows.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Descriptor {
    pub(crate) offset: U64,
    pub(crate) size: U64,
    pub(crate) id_len: U64,
}

const _: () = assert!(size_of::<Header>() as u64 == HEADER_LEN);
const _: () = assert!(size_of::<Descriptor>() as u64 == DESCRIPTOR_LEN);
