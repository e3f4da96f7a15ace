//! Codecs that formats of device code are stored with: zstd, zlib and LZ4 with one bounded interface, MD5, and
//! MessagePack.
//!
//! [`Codec`] decompresses data of a known size, and never writes more; [`Stream`] does so step by step, on demand.
//! Both check what a stream records before memory is taken: a stream that cannot expand to the expected size is refused.
//! [`zstd`] has the headers of frames, and readers and writers of streams whose size is not known. [`Md5`] hashes, and
//! [`msgpack`] reads and writes MessagePack.
//!
//! ```
//! use codecs::{Codec, Input};
//!
//! # if Codec::Zstd.library().is_none() { return Ok(()); }
//! let frame = [
//!     0x28, 0xB5, 0x2F, 0xFD, 0x20, 3, // single segment of 3 bytes
//!     0x19, 0, 0, b'a', b'b', b'c',    // the last block, raw
//!     9, 9, 9,                         // something else
//! ];
//! let input = Input::new(&frame, 3).with_trailing();
//! assert_eq!(Codec::Zstd.decompress(&input, &mut |_| {})?, (b"abc".to_vec(), 12));
//! # Ok::<(), codecs::Error>(())
//! ```
//!
//! # Hostile input
//!
//! No input makes this crate panic. Memory is bounded by the expected size and by what the blocks of a stream can hold.
//! [`Error`] says what is wrong and where.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `ruzstd` | yes | Zstandard in Rust: reads everything |
//! | `ruzstd-encoder` | yes | Zstandard written in Rust: at one level, about libzstd's first |
//! | `stream` | yes | [`Stream`] |
//! | `miniz_oxide` | no | zlib in Rust |
//! | `lz4_flex` | no | blocks of LZ4 in Rust |
//! | `zstd` | no | Zstandard by libzstd, in C: all levels, threads, long-distance matching. Preferred over `ruzstd`; needs `std` |
//! | `lz4` | no | blocks of LZ4 written by liblz4, in C, which makes them smaller; needs `std` |
//! | `std` | no | `zstd::Reader` and `zstd::Writer` |
//!
//! Both Zstandard libraries accept the same: one or more frames without dictionary, with a window of less than 2^32 bytes
//! each; skippable frames before, between and after them. They may report different errors for damage inside a compressed
//! block. No type of theirs is a part of this interface.
//!
//! `no_std` with `alloc` without `std`, `zstd` and `lz4`. Rust 1.88 or later.

#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]
#![cfg_attr(
    not(any(feature = "miniz_oxide", feature = "ruzstd", feature = "zstd")),
    allow(
        dead_code,
        unreachable_code,
        unused_variables,
        clippy::ptr_arg,
        reason = "without codecs nothing is decoded"
    )
)]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

mod absent;
mod codec;
mod error;
mod input;
#[cfg(feature = "lz4_flex")]
mod lz4;
mod md5;
pub mod msgpack;
#[cfg(feature = "stream")]
mod stream;
#[cfg(test)]
#[cfg(feature = "stream")]
mod tests;
#[cfg(feature = "miniz_oxide")]
#[cfg_attr(not(feature = "stream"), allow(dead_code, reason = "steps are for streams"))]
mod zlib;
pub mod zstd;

pub use codec::Codec;
pub use error::{Error, ErrorKind};
pub use input::Input;
pub use md5::Md5;
#[cfg(feature = "stream")]
#[cfg_attr(docsrs, doc(cfg(feature = "stream")))]
pub use stream::Stream;

/// The code of the README compiles and runs.
#[cfg(all(doctest, any(feature = "ruzstd-encoder", feature = "zstd")))]
#[doc = include_str!("../README.md")]
struct Readme;
