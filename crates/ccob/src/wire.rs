//! The three headers exactly as they lie in the file: little-endian, unpadded, at any alignment.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// What all versions begin with.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Prefix {
    pub(crate) magic: [u8; 4],
    pub(crate) version: U16,
    pub(crate) method: U16,
}

/// Version 1: no total size, so the payload ends where its stream ends.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct HeaderV1 {
    pub(crate) prefix: Prefix,
    pub(crate) uncompressed_size: U32,
    pub(crate) hash: U64,
}

/// Version 2: sizes of 32 bits.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct HeaderV2 {
    pub(crate) prefix: Prefix,
    pub(crate) total_size: U32,
    pub(crate) uncompressed_size: U32,
    pub(crate) hash: U64,
}

/// Version 3: sizes of 64 bits.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct HeaderV3 {
    pub(crate) prefix: Prefix,
    pub(crate) total_size: U64,
    pub(crate) uncompressed_size: U64,
    pub(crate) hash: U64,
}

const _: () = assert!(size_of::<Prefix>() == 8);
const _: () = assert!(size_of::<HeaderV1>() == 20);
const _: () = assert!(size_of::<HeaderV2>() == 24);
const _: () = assert!(size_of::<HeaderV3>() == 32);
