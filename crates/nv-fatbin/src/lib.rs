//! NVIDIA fatbinaries: device code for several GPUs in one piece, as CUDA's `fatbinary` writes it. Libraries have them in
//! the sections `.nv_fatbin` and `__nv_relfatbin`, one after the other.
//!
//! # Format
//!
//! NVIDIA does not document the format. The fields were observed with its tools (`fatbinary`, `cuobjdump` and libnvfatbin of
//! CUDA 12.9 and 13.5) and in libraries of CUDA 10.2 to 13. Numbers are little-endian. Offsets in an entry count from its
//! first byte.
//!
//! ```text
//!   0  magic              50 ED 55 BA
//!   4  version            u16   1
//!   6  header size        u16   16
//!   8  size               u64   of the entries, which follow
//!      ---- an entry ----
//!  +0  kind               u16   Kind
//!  +2  entry version      u16   0x101
//!  +4  header size        u32   64 and the extension
//!  +8  payload size       u64   with padding, a multiple of 8
//! +16  compressed size    u32   exact; 0 if not compressed
//! +20  options offset     u32   0 if there are none
//! +24  minor, major       u16   of the code: of PTX its `.version`
//! +28  SM number          u32   90 for sm_90, sm_90a and compute_90
//! +32  identifier offset  u32   0 if there is none
//! +36  identifier length  u32   without NUL
//! +40  flags              u64   Flags
//! +48  seed               u64   of scrambled LTO-IR
//! +56  uncompressed size  u64   exact; 0 if not compressed
//! +64  extension                identifier, options: each with NUL, padded to a multiple of 8
//!      payload
//! ```
//!
//! # Reading
//!
//! Start with [`Fatbin::parse`] for one fatbinary, with [`fatbins`] for a section, and with [`Fatbin::parse_prefix`] and
//! [`Entry::parse`] when only some bytes of a file are in memory. Nothing is copied but what is
//! [decompressed](Entry::decompress).
//!
//! ```
//! use nv_fatbin::{Fatbin, Flags, Kind};
//!
//! let mut file = b"\x50\xed\x55\xba\x01\0\x10\0\x50\0\0\0\0\0\0\0".to_vec(); // 80 bytes follow
//! file.extend(b"\x02\0\x01\x01\x40\0\0\0\x10\0\0\0\0\0\0\0"); // ELF, header of 64 bytes, payload of 16
//! file.extend(b"\0\0\0\0\0\0\0\0\x07\0\x01\0\x5a\0\0\0"); // not compressed, version 1.7, SM number 90
//! file.extend(b"\0\0\0\0\0\0\0\0\x01\0\x10\0\0\0\0\0"); // no identifier; 64 bits, for this architecture only
//! file.extend([0; 16]);
//! file.extend(b"\x7fELF and so on..");
//!
//! let fatbin = Fatbin::parse(&file)?;
//! for entry in fatbin.entries() {
//!     let entry = entry?;
//!     assert_eq!((entry.kind(), entry.architecture().to_string()), (Kind::ELF, "sm_90a".to_owned()));
//!     assert!(entry.flags().contains(Flags::BITS_64));
//!     assert_eq!(entry.decompress(1 << 20)?, &b"\x7fELF and so on.."[..]);
//! }
//! # Ok::<(), nv_fatbin::Error>(())
//! ```
//!
//! # Writing
//!
//! A [`NewFatbin`] takes entries of other fatbinaries as they are, and [`NewEntry`]s. The bytes are those of
//! `fatbinary` 13.5; only compressed LTO-IR differs: it is not scrambled.
//!
//! ```
//! use nv_fatbin::{Architecture, Flags, Kind, NewEntry, NewFatbin};
//!
//! let architecture = Architecture::from_name("sm_90a").ok_or("unknown architecture")?;
//! let mut fatbin = NewFatbin::new();
//! fatbin.add(&NewEntry::new(Kind::ELF, architecture, &b"\x7fELF and so on"[..]).with_flags(Flags::BITS_64))?;
//! assert_eq!(fatbin.to_vec()?.len(), 16 + 64 + 16);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Robustness
//!
//! Sizes and offsets are checked before they are used; no input makes this crate panic, or take more memory than a caller
//! allows. [`Error`] says what is wrong, where, and what was expected.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `ruzstd` | yes | zstd in pure Rust |
//! | `miniz_oxide` | yes | zlib in pure Rust |
//! | `zstd` | no | zstd by libzstd (C), preferred where both are on, and the only one that writes; needs `std` |
//! | `lz4` | no | LZ4 written by liblz4 (C), which makes it smaller, and as `fatbinary` does; needs `std` |
//!
//! LZ4 is always there, in pure Rust. Without `zstd` and `lz4` the crate needs only `alloc`. Rust 1.88 or later.
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

extern crate alloc;

mod codec;
mod compression;
mod concatenated;
mod cubin;
mod entry;
mod error;
mod fatbin;
mod kinds;
mod new_entry;
mod number;
mod ptx;
mod wire;
mod write;

pub use compression::{Compression, CompressionMode};
pub use concatenated::ConcatenatedImage;
pub use entry::Entry;
pub use error::{Error, ErrorKind};
pub use fatbin::{Fatbin, fatbins};
pub use kinds::{Architecture, Codec, Flags, Kind};
pub use new_entry::{NewEntry, concatenate};
pub use write::NewFatbin;

/// The first bytes of a fatbinary.
pub const MAGIC: [u8; 4] = [0x50, 0xed, 0x55, 0xba];

/// The code of the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
