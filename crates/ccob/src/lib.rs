//! Compressed clang offload bundles: `CCOB` versions 1, 2 and 3.
//!
//! `clang --offload-compress` and `clang-offload-bundler --compress` put a bundle, binary or text,
//! into one compressed container. HIP programs and ROCm libraries hold many of them back to back
//! in their section `.hip_fatbin`. The Clang Offload Bundler documentation describes the format
//! under "Compression and Decompression". All numbers are little-endian:
//!
//! ```text
//!            0        4    6    8        12       16       20       24              32
//! version 1  | "CCOB" | 1  | M  | uncomp. | hash            | payload ...
//! version 2  | "CCOB" | 2  | M  | total   | uncomp. | hash            | payload ...
//! version 3  | "CCOB" | 3  | M  | total             | uncompressed    | hash          | payload ...
//! ```
//!
//! - *M* is the [`Method`]: 0 for one zlib stream, 1 for one Zstandard frame.
//! - *total* counts the bytes of header and payload. Version 1 lacks it: there the end of the
//!   stream is the end of the container.
//! - *hash* is the first 8 bytes of the MD5 digest of the uncompressed data. LLVM writes it and
//!   never checks it; [`decompress`] does.
//!
//! ```
//! use ccob::{Limits, WriteOptions};
//!
//! # fn main() -> Result<(), ccob::Error> {
//! # if ccob::Method::default().codec().is_none() { return Ok(()); }
//! let bundle = b"__CLANG_OFFLOAD_BUNDLE__\0\0\0\0\0\0\0\0";
//! let mut section = ccob::compress(bundle, &WriteOptions::default())?;
//! section.extend_from_slice(&[0; 100]); // padding
//!
//! let found = ccob::decompress(&section, &Limits::default())?;
//! assert_eq!(found.data, bundle);
//! assert_eq!(found.consumed, section.len() as u64 - 100);
//! # Ok(())
//! # }
//! ```
//!
//! # Codecs
//!
//! zlib is `miniz_oxide`; Zstandard is `ruzstd`, in Rust, or libzstd, in C, which feature `zstd`
//! compiles in and which is preferred then. Without any of them headers can still be read. Both
//! Zstandard codecs accept the same: one frame with data, no dictionary, and a window of less than
//! 2^32 bytes, with nothing behind it in the payload of version 2 and 3. Of damage inside a
//! compressed block each finds what it finds; the hash finds the rest.
//!
//! # Hostile input
//!
//! No input makes this crate panic, and none makes it use memory that is out of proportion to
//! what the payload can hold or the [`Limits`] allow.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod codec;
mod compress;
mod decompress;
mod error;
mod hash;
mod header;
mod md5;
mod method;
mod wire;

pub use compress::{WriteOptions, compress};
pub use decompress::{Decompressed, Limits, decompress, decompress_growing, decompress_unverified};
pub use error::{Error, Fault};
pub use hash::hash;
pub use header::Header;
pub use method::{Codec, Method, Version};

/// What a compressed bundle starts with.
pub const MAGIC: [u8; 4] = *b"CCOB";
