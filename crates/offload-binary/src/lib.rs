//! The offload binary of LLVM's packager (`llvm-offload-binary`, once `clang-offload-packager`):
//! device images with key-value strings, behind the magic bytes `10 FF 10 AD`. Clang embeds them
//! in the section `.llvm.offloading` of host object files.
//!
//! LLVM up to 22 writes version 1 with one image per binary, LLVM 23 writes version 2 with any
//! number of them; this crate reads and writes both. The format is described in the "Clang Offload
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
//! To read, start with [`OffloadBinary::parse`] for one binary and with [`binaries`] for a section
//! that may hold several. Nothing is copied: strings and images are slices of the data given.
//! To write, describe each image by an [`ImageEntry`] and make a [`Layout`] of them, which knows
//! every offset before an image is touched. [`convert`] turns one version into the other.
//!
//! ```
//! use offload_binary::{
//!     FormatVersion, ImageEntry, ImageKind, Layout, OffloadKind, binaries, convert,
//! };
//!
//! # fn main() -> Result<(), offload_binary::Error> {
//! let image = b"some image";
//! let entry = ImageEntry::new(10)
//!     .image_kind(ImageKind::OBJECT)
//!     .offload_kind(OffloadKind::HIP)
//!     .string("arch", "gfx90a")
//!     .string("triple", "amdgcn-amd-amdhsa");
//! let section = Layout::new(FormatVersion::V1, &[entry])?.to_vec(&[image])?;
//!
//! for binary in binaries(&section) {
//!     let (_offset, binary) = binary?;
//!     for entry in binary.entries() {
//!         assert_eq!(entry.offload_kind(), OffloadKind::HIP);
//!         assert_eq!(entry.image(), Some(&b"some image"[..]));
//!         assert_eq!(entry.arch(), Some("gfx90a"));
//!     }
//! }
//!
//! // For LLVM 23; and back, byte for byte.
//! let v2 = convert(&section, FormatVersion::V2)?;
//! assert_eq!(convert(&v2, FormatVersion::V1)?, section);
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
