//! The offload binary of LLVM's packager (`llvm-offload-binary`, once `clang-offload-packager`):
//! device images with key-value strings, behind the magic bytes `10 FF 10 AD`. Clang embeds them
//! in the section `.llvm.offloading` of host object files.
//!
//! LLVM up to 22 writes version 1 with one image per binary, LLVM 23 writes version 2 with any
//! number of them; this crate reads both. The format is described in the "Clang Offload
//! Packager" documentation. All integers are little-endian, all offsets count from the magic.
//!
//! ```text
//!   0  magic 10 FF 10 AD
//!   4  version           u32   1 or 2
//!   8  size              u64   of the whole binary, a multiple of 8
//!  16  entries offset    u64
//!  24  v1: entry size    u64   40; there is one entry
//!      v2: entry count   u64
//!      ---- an entry, 40 bytes ----
//!  +0  image kind        u16   ImageKind
//!  +2  offload kind      u16   OffloadKind
//!  +4  flags             u32   Flags
//!  +8  string offset     u64   of the string entries
//! +16  string count      u64
//! +24  image offset      u64
//! +32  image size        u64
//!      ---- a string entry, v1: 16 bytes, v2: 24 bytes ----
//!  +0  key offset        u64   the key is ended by NUL
//!  +8  value offset      u64   v1: the value is ended by NUL
//! +16  value size        u64   v2 only
//!      ---- strings, images, zeros up to a multiple of 8 ----
//! ```
//!
//! Start with [`OffloadBinary::parse`] for one binary and with [`binaries`] for a section that
//! may hold several. Nothing is copied: strings and images are slices of the data given.
//!
//! ```
//! use offload_binary::{ImageKind, OffloadKind, binaries};
//!
//! # fn main() -> Result<(), offload_binary::Error> {
//! let mut section = Vec::new();
//! section.extend(b"\x10\xff\x10\xad\x01\0\0\0\x60\0\0\0\0\0\0\0"); // magic, version, size
//! section.extend(b"\x20\0\0\0\0\0\0\0\x28\0\0\0\0\0\0\0"); // entry offset and size
//! section.extend(b"\x01\0\x04\0\0\0\0\0"); // object, HIP, no flags
//! section.extend(b"\x48\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"); // no strings
//! section.extend(b"\x50\0\0\0\0\0\0\0\x0a\0\0\0\0\0\0\0"); // image offset and size
//! section.extend(b"\0\0\0\0\0\0\0\0some image\0\0\0\0\0\0");
//!
//! for binary in binaries(&section) {
//!     let (_offset, binary) = binary?;
//!     for entry in binary.entries() {
//!         assert_eq!(entry.image_kind(), ImageKind::OBJECT);
//!         assert_eq!(entry.offload_kind(), OffloadKind::HIP);
//!         assert_eq!(entry.image(), Some(&b"some image"[..]));
//!         assert_eq!(entry.triple(), None);
//!     }
//! }
//! # Ok(())
//! # }
//! ```

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod binary;
mod concatenated;
mod convert;
mod error;
mod image_entry;
mod kinds;
mod layout;
mod llvm22_hash;
mod llvm_order;
mod string_table;
mod validate;
mod wire;

pub use binary::{Entries, Entry, OffloadBinary, Strings};
pub use concatenated::{Binaries, binaries};
pub use convert::convert;
pub use error::Error;
pub use image_entry::{FormatVersion, ImageEntry, StringPair};
pub use kinds::{Flags, ImageKind, OffloadKind};
pub use layout::{Layout, MAX_STRING_BYTES, Piece};
pub use llvm_order::{LlvmRelease, llvm_order};

/// The bytes every offload binary starts with.
pub const MAGIC: [u8; 4] = [0x10, 0xff, 0x10, 0xad];

/// A length in memory as the format counts; no platform has more than 64 bits.
fn to_u64(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}
