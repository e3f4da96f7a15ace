//! The structures of tables as they lie in memory, little-endian: `sycl_device_binary` and `tgt_offload_entry` of the runtimes.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Addresses of the start and of the end of an array.
#[derive(Clone, Copy, Default, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Span {
    pub(super) start: U64,
    pub(super) end: U64,
}

/// Descriptor of a table.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Table {
    /// Version: 1.
    pub(super) version: U16,
    /// Number of images.
    pub(super) count: U16,
    pub(super) padding: [u8; 4],
    /// Address of the descriptors of images.
    pub(super) images: U64,
    /// Two null pointers.
    pub(super) entries: [U64; 2],
}

/// Start of a descriptor of an image.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Head {
    /// Version: 1, 2 or 3.
    pub(super) version: U16,
    /// Kind: 4 of Intel's toolchain, 8 of LLVM's.
    pub(super) kind: u8,
    /// Format of the image.
    pub(super) format: u8,
    pub(super) padding: [u8; 4],
}

/// The start of the descriptors of all versions.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Common {
    pub(super) head: Head,
    /// Address of the target.
    pub(super) target: U64,
    /// Address of the compile options.
    pub(super) compile_options: U64,
    /// Address of the link options.
    pub(super) link_options: U64,
}

/// Descriptor of an image, version 1.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct ImageV1 {
    pub(super) common: Common,
    pub(super) manifest: Span,
    pub(super) image: Span,
    pub(super) entries: Span,
}

/// Descriptor of an image, version 2.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct ImageV2 {
    pub(super) start: ImageV1,
    pub(super) property_sets: Span,
}

/// Descriptor of an image, version 3.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct ImageV3 {
    pub(super) common: Common,
    pub(super) image: Span,
    pub(super) entries: Span,
    pub(super) property_sets: Span,
}

/// Entry of a kernel.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Entry {
    pub(super) address: U64,
    /// Address of the name.
    pub(super) name: U64,
    pub(super) size: U64,
    pub(super) flags: U32,
    pub(super) reserved: U32,
}

/// Start of [`NewEntry`].
#[derive(Clone, Copy, PartialEq, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct NewEntryHead {
    /// 0.
    pub(super) reserved: U64,
    /// Version: 1.
    pub(super) version: U16,
    /// Kind: 8 is SYCL.
    pub(super) kind: U16,
    pub(super) flags: U32,
}

/// Entry of a kernel since LLVM 21.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct NewEntry {
    pub(super) head: NewEntryHead,
    pub(super) address: U64,
    /// Address of the name.
    pub(super) name: U64,
    pub(super) size: U64,
    pub(super) data: U64,
    pub(super) auxiliary: U64,
}

/// Property set.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct PropertySet {
    /// Address of the name.
    pub(super) name: U64,
    pub(super) properties: Span,
}

/// Property of a set.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Property {
    /// Address of the name.
    pub(super) name: U64,
    /// Address of the value.
    pub(super) value: U64,
    /// Type of the value.
    pub(super) kind: U32,
    pub(super) padding: U32,
    /// Size of the value, or a number itself.
    pub(super) size: U64,
}

/// Size of an image before compression.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct ImageSize {
    /// Address of the image.
    pub(super) address: U64,
    /// Size in bytes.
    pub(super) size: U64,
}
