//! The offload binary of LLVM's packager (`llvm-offload-binary`, once `clang-offload-packager`): device images with
//! key-value strings, after the magic bytes `10 FF 10 AD`. Clang embeds them in the section `.llvm.offloading` of
//! host object files.
//!
//! # The format
//!
//! LLVM up to 22 writes version 1 with one image per binary, LLVM 23 version 2 with any number of them, and LLVM 24
//! version 3, which may be compressed; this crate reads and writes all three. The format is described in the ["Clang Offload
//! Packager"][packager] documentation of LLVM up to 21, and since then in the documentation of
//! [`llvm-offload-binary`][binary]. All integers are little-endian, all offsets count from the magic.
//!
//! ```text
//!   0  magic 10 FF 10 AD
//!   4  version           u32   1, 2 or 3
//!   8  size              u64   of the whole binary, a multiple of 8
//!  16  entries offset    u64
//!  24  v1: entry size    u64   40; there is one entry
//!      v2, v3: count     u64   of entries
//!  32  v3: inflated size u64   0 in a plain binary
//!      ---- an entry, 40 bytes ----
//!  +0  image kind        u16   ImageKind
//!  +2  offload kind      u16   OffloadKind
//!  +4  flags             u32   Flags
//!  +8  string offset     u64   of the string entries
//! +16  string count      u64
//! +24  image offset      u64
//! +32  image size        u64
//!      ---- a string entry, v1: 16 bytes, v2 and v3: 24 bytes ----
//!  +0  key offset        u64   the key is ended by NUL
//!  +8  value offset      u64   v1: the value is ended by NUL
//! +16  value size        u64   v2 and v3
//!      ---- strings, images, zeros up to a multiple of 8 ----
//! ```
//!
//! A binary of version 3 whose inflated size is not 0 is compressed: one stream of zstd or zlib holds all that follows
//! the header, and `size` counts header and stream without padding. [`CompressedBinary`] reads and writes its header;
//! the codec is the caller's.
//!
//! [packager]: https://releases.llvm.org/21.1.0/tools/clang/docs/ClangOffloadPackager.html
//! [binary]: https://llvm.org/docs/CommandGuide/llvm-offload-binary.html
//!
//! # Reading
//!
//! Start with [`OffloadBinary::parse`] for one binary, with [`binaries`] for a section that may hold several, and with
//! [`OffloadBinary::parse_prefix`] when only the start of a file is in memory. Nothing is copied: strings and images are
//! slices of the data given, and live as long as it does.
//!
//! ```
//! use offload_binary::{OffloadKind, binaries};
//!
//! // LLVM 22.1: llvm-offload-binary -o package.bin --image=file=image,triple=amdgcn-amd-amdhsa,arch=gfx90a,kind=hip
//! let section = [
//!     &b"\x10\xff\x10\xad\x01\0\0\0\x98\0\0\0\0\0\0\0"[..], // magic, version 1, size 152
//!     b"\x20\0\0\0\0\0\0\0\x28\0\0\0\0\0\0\0",            // the entry: at 32, size 40
//!     b"\0\0\x04\0\0\0\0\0",                             // no image kind, HIP, no flags
//!     b"\x48\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0",            // string entries: at 72, two
//!     b"\x90\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0",            // image: at 144, size 4
//!     b"\x69\0\0\0\0\0\0\0\x87\0\0\0\0\0\0\0",            // key at 105, value at 135
//!     b"\x6e\0\0\0\0\0\0\0\x75\0\0\0\0\0\0\0",            // key at 110, value at 117
//!     b"\0arch\0triple\0amdgcn-amd-amdhsa\0gfx90a\0\0\0",   // strings from 104 on
//!     b"code\0\0\0\0",                                    // the image, and padding
//! ]
//! .concat();
//!
//! for binary in binaries(&section) {
//!     let (_offset, binary) = binary?;
//!     for entry in binary.entries() {
//!         assert_eq!(entry.offload_kind(), OffloadKind::HIP);
//!         assert_eq!(entry.triple(), Some("amdgcn-amd-amdhsa"));
//!         assert_eq!(entry.arch(), Some("gfx90a"));
//!         assert_eq!(entry.image(), Some(&b"code"[..]));
//!     }
//! }
//! # Ok::<(), offload_binary::Error>(())
//! ```
//!
//! Everything is checked before anything is handed out, in time linear in the tables and strings, except that entries
//! are sorted: no overlap, nothing outside of the binary, no string without end. No input makes this crate panic.
//! [`Error`] says what is wrong, where, and what was expected; [`ErrorKind`] is for programs.
//!
//! # Writing
//!
//! Describe each image by an [`ImageEntry`] and make a [`layout`] of them, which knows every offset before an image is
//! touched; then it is written to memory, to a writer, or as parts by writers with ways of their own
//! ([`byte_parts::Layout`]). The bytes are those of LLVM's tool. [`convert`] turns one version into the other.
//!
//! ```
//! use offload_binary::{FormatVersion, ImageEntry, ImageKind, OffloadKind, convert};
//!
//! let image = b"some image";
//! let entry = ImageEntry::new(10)
//!     .with_image_kind(ImageKind::OBJECT)
//!     .with_offload_kind(OffloadKind::HIP)
//!     .with_string("arch", "gfx90a")
//!     .with_string("triple", "amdgcn-amd-amdhsa");
//! let v1 = offload_binary::layout(FormatVersion::V1, &[entry])?.to_vec(&[image])?;
//!
//! // For LLVM 23; and back, byte for byte.
//! let v2 = convert(&v1, FormatVersion::V2)?;
//! assert_eq!(convert(&v2, FormatVersion::V1)?, v1);
//! # Ok::<(), offload_binary::Error>(())
//! ```
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `std` | yes | layouts stream images from `std::io` readers; errors as `std::io::Error` |
//! | `target-id` | no | `Entry::target` and `ImageEntry::with_target`, in the types of `target-id` |
//!
//! # `no_std`, Rust version, stability
//!
//! Without `std` the crate needs only `alloc`. Rust 1.88 or later; that rises with a minor version only. Its version
//! follows semantic versioning: enums that can grow and errors are `#[non_exhaustive]`, unknown numbers are kept. The
//! bytes that are written are those of a release of LLVM, and change with it only.
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod binary;
mod compressed;
mod compressed_header;
mod concatenated;
mod convert;
mod error;
mod image_entry;
mod kinds;
mod layout;
pub mod llvm;
mod string_table;
#[cfg(feature = "target-id")]
mod target;
mod validate;
mod wire;

pub use binary::{Entry, OffloadBinary, RepeatedKey};
pub use compressed_header::CompressedBinary;
pub use concatenated::binaries;
pub use convert::convert;
pub use error::{Error, ErrorKind};
pub use image_entry::{ImageEntry, StringPair};
pub use kinds::{Flags, ImageKind, OffloadKind};
pub use layout::layout;
pub use wire::FormatVersion;

/// The bytes every offload binary starts with.
pub const MAGIC: [u8; 4] = [0x10, 0xff, 0x10, 0xad];

/// The code of the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
