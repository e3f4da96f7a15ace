//! Compressed clang offload bundles: `CCOB` versions 1, 2 and 3.
//!
//! `clang --offload-compress` and `clang-offload-bundler --compress` put a bundle, binary or text,
//! into one compressed container. HIP programs and ROCm libraries hold many of them back to back
//! in their section `.hip_fatbin`.
//!
//! # The format
//!
//! The [Clang Offload Bundler][bundler] documentation describes it under "Compression and Decompression". All numbers are
//! little-endian:
//!
//! ```text
//!            0        4    6    8        12       16       20       24              32
//! version 1  | "CCOB" | 1  | M  | uncomp. | hash            | payload ...
//! version 2  | "CCOB" | 2  | M  | total   | uncomp. | hash            | payload ...
//! version 3  | "CCOB" | 3  | M  | total             | uncompressed    | hash          | payload ...
//! ```
//!
//! - *M* is the [`Method`]: 0 for one zlib stream (RFC 1950), 1 for Zstandard (RFC 8878): one frame, or several in
//!   versions 2 and 3.
//! - *total* counts the bytes of header and payload. Version 1 lacks it: there the end of the
//!   stream is the end of the container.
//! - *uncompressed* is the length of the uncompressed data, in bytes.
//! - *hash* is the first 8 bytes of the MD5 digest of the uncompressed data. LLVM writes it and
//!   never checks it; [`decompress`] does.
//!
//! [bundler]: https://clang.llvm.org/docs/ClangOffloadBundler.html
//!
//! # Where to start
//!
//! [`decompress`] reads the container at the start of its input, [`Header::parse`] its header alone, at most 32 bytes;
//! [`compress`] writes one. The result is a bundle, for the crate `bundle-format` to read.
//!
//! The table of a bundle's entries lies at its start: [`decompress_prefix`] and [`Decoder`], a [`Read`](std::io::Read),
//! decompress no more than is asked for. [`decompress_into`] decompresses into memory of the caller.
//!
//! ```
//! use ccob::{Header, Method, ReadOptions, Version, decompress};
//!
//! // LLVM 22.1, host and GPU object of nothing but "code":
//! // clang-offload-bundler -compress -type=o -input=host.o -input=device.o -output=bundle.o
//! //     -targets=host-x86_64-unknown-linux-gnu,hip-amdgcn-amd-amdhsa--gfx90a:xnack+
//! let section = [
//!     &b"CCOB\x03\0\x01\0"[..],          // version 3, Zstandard
//!     b"\x9b\0\0\0\0\0\0\0",            // 155 bytes in all
//!     b"\x96\0\0\0\0\0\0\0",            // 150 bytes uncompressed
//!     b"\xce\xb0\x6c\xb6\xcb\xf6\x0d\x06", // hash
//!     b"\x28\xb5\x2f\xfd\x20\x96\x95\x03\0\xd4\x05__CLANG_OFFLOAD_BUNDLE__\x02\0\x92\0\x1e\0",
//!     b"host-x86_64-unknown-linux-gnu-\x04\x24ip-amdgcnhsa--gfx90a:xnack+code",
//!     b"\x08\0\xbb\0\x2a\xe1\0\x39\x90\x99Y\x91\x0c\x86\x06\x64\x13\x03\x78",
//!     &[0; 100], // padding, or the next container
//! ]
//! .concat();
//!
//! let header = Header::parse(&section, section.len() as u64)?;
//! assert_eq!((header.version(), header.method()), (Version::V3, Method::ZSTD));
//! assert_eq!((header.total_size(), header.uncompressed_size()), (Some(155), 150));
//!
//! # if Method::ZSTD.codec().is_none() { return Ok(()); }
//! let found = decompress(&section, &ReadOptions::default())?;
//! assert!(found.data.starts_with(b"__CLANG_OFFLOAD_BUNDLE__\x02\0\0\0\0\0\0\0"));
//! assert!(found.data.ends_with(b"hip-amdgcn-amd-amdhsa--gfx90a:xnack+code"));
//! assert_eq!(found.consumed, 155);
//! # Ok::<(), ccob::Error>(())
//! ```
//!
//! And the other way:
//!
//! ```
//! use ccob::{ReadOptions, Version, WriteOptions, compress, decompress};
//!
//! # if ccob::Method::default().codec().is_none() { return Ok(()); }
//! let bundle = b"__CLANG_OFFLOAD_BUNDLE__\0\0\0\0\0\0\0\0";
//! let options = WriteOptions::default().with_version(Version::V2); // for LLVM 19 to 21
//! let container = compress(bundle, &options)?;
//! assert_eq!(decompress(&container, &ReadOptions::default())?.data, bundle);
//! # Ok::<(), ccob::Error>(())
//! ```
//!
//! # Hostile input
//!
//! This crate does not panic on any input, and its memory is bounded by the payload and the limit of [`ReadOptions`]. [`Error`]
//! says what is wrong, where, and what was expected.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `miniz_oxide` | yes | zlib in Rust, levels 0 to 10 |
//! | `ruzstd` | yes | Zstandard in Rust: reads everything, writes at one level, about libzstd's first |
//! | `zstd` | no | Zstandard by libzstd, in C: all levels, threads, long-distance matching. Preferred over `ruzstd`; needs `std` |
//! | `std` | yes | hashing on a second thread while compressing and decompressing; errors as `std::io::Error` |
//!
//! Without codecs, headers can still be read. Both Zstandard codecs accept the same: one or more frames without
//! dictionary, with a window of less than 2^32 bytes each; skippable frames before, between and after them. Nothing
//! may follow in the payload of version 2 and 3; version 1, which does not record its end, ends with its last
//! frame. The codecs may report different errors for damage inside a compressed block; the hash finds the rest. No
//! type of theirs is a part of this interface.
//!
//! # `no_std`, Rust version, stability
//!
//! Without `std` and `zstd` the crate needs only `alloc`. Rust 1.88 or later; that rises with a minor version only.
//! Its version follows semantic versioning: enums that can grow, errors and options are `#[non_exhaustive]`. The
//! compressed bytes of a level may change with any version. The same version of this crate with the same codec
//! writes the same bytes everywhere.

#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod compress;
mod decompress;
mod error;
mod hash;
mod header;
mod method;
mod options;
mod stream;
mod wire;

pub use compress::{compress, compress_stream};
pub use decompress::{
    Decompressed, decompress, decompress_growing, decompress_into, decompress_stream,
};
#[cfg(feature = "std")]
pub use decompress::{HashCheck, decompress_early};
pub use error::{Error, ErrorKind};
pub use hash::hash;
pub use header::Header;
pub use method::{Method, Version};
pub use options::{MAX_UNCOMPRESSED, ReadOptions, WriteOptions};
#[cfg(feature = "std")]
pub use stream::Decoder;
pub use stream::decompress_prefix;

/// The start of a compressed bundle.
pub const MAGIC: [u8; 4] = *b"CCOB";

/// The code of the README compiles and runs.
#[cfg(all(doctest, any(feature = "ruzstd", feature = "zstd", feature = "miniz_oxide")))]
#[doc = include_str!("../README.md")]
struct Readme;
