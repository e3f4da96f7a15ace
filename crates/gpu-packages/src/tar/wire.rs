//! The header of a member as it lies in a tar file (POSIX.1-1988, "ustar Interchange Format"). Numbers are texts.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Header of a member.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Block {
    pub(super) name: [u8; 100],
    pub(super) mode: [u8; 8],
    pub(super) owner: [u8; 8],
    pub(super) group: [u8; 8],
    pub(super) size: [u8; 12],
    /// Time of the last change.
    pub(super) time: [u8; 12],
    pub(super) checksum: [u8; 8],
    /// Type of the member.
    pub(super) type_flag: u8,
    /// Target of a link.
    pub(super) link: [u8; 100],
    /// `ustar` and NUL, or `ustar` and blanks in GNU's own format.
    pub(super) magic: [u8; 6],
    pub(super) version: [u8; 2],
    pub(super) owner_name: [u8; 32],
    pub(super) group_name: [u8; 32],
    /// Numbers of a device.
    pub(super) device: [[u8; 8]; 2],
    /// Start of the name.
    pub(super) prefix: [u8; 155],
    pub(super) padding: [u8; 12],
}

/// A part of a sparse file: offset and size.
pub(super) type Part = [[u8; 12]; 2];

/// Header of a sparse file in GNU's own format.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct SparseBlock {
    /// As in [`Block`], up to the numbers of a device.
    pub(super) start: [u8; 345],
    /// Times of the last access and of the last change of the header.
    pub(super) times: [[u8; 12]; 2],
    /// Offset in a file of several volumes.
    pub(super) offset: [u8; 12],
    pub(super) unused: [u8; 5],
    pub(super) parts: [Part; 4],
    /// 1 if a block of more parts follows.
    pub(super) has_more: u8,
    /// Size of the file with its holes.
    pub(super) real_size: [u8; 12],
    pub(super) padding: [u8; 17],
}

/// Block of more parts.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct PartsBlock {
    pub(super) parts: [Part; 21],
    /// 1 if another one follows.
    pub(super) has_more: u8,
    pub(super) padding: [u8; 7],
}
