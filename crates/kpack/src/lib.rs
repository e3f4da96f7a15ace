//! AMD's kernel packs, version 1: archives of code objects that lie beside the libraries they were split from.
//!
//! # Format
//!
//! ```text
//! header   "KPAK", version (u32, 1), offset of the table (u64), zeros up to 64
//! blob     scheme none: code objects back to back
//!          scheme zstd-per-kernel: u32 number of frames; each a u32 length and a Zstandard frame
//! table    one MessagePack map, up to the end of the file
//! ```
//!
//! Numbers are little-endian, except in MessagePack. The table maps `NAME#N` and a target to a code object: `NAME` is
//! the name of the library, and `N` the number of the wrapper that the code object was registered by.
//!
//! ```
//! use kpack::{Kpack, NewKpack, Scheme};
//!
//! let mut new = NewKpack::new("blas", "gfx942", Scheme::Plain);
//! new.add("lib/libfoo.so", 0, "gfx942", 4);
//! let bytes = new.layout(&[4])?.to_vec(|_| b"code").unwrap();
//!
//! let pack = Kpack::parse(&bytes)?;
//! let entry = &pack.toc().entries()[0];
//! assert_eq!((entry.kernel_name(), entry.index(), entry.arch()), ("lib/libfoo.so", Some(0), "gfx942"));
//! assert_eq!(pack.stored(entry), Some(&b"code"[..]));
//! # Ok::<(), kpack::Error>(())
//! ```
//!
//! [`Tables`] reads nothing of a file but the table and the lengths of compressed code objects.
//!
//! # Split libraries
//!
//! The [`Wrapper`]s of a library without its device code lead to a [`Marker`], which says where its packs are. [`search`] has the
//! order in which ROCm's loader looks for a code object.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `std` | yes | [`Tables::read`], which reads a [`byte_parts::Source`] |
//! | `ruzstd` | yes | [`compress`] and [`decompress`] in pure Rust; one level |
//! | `zstd` | no | the same by libzstd (C), preferred where both are on; all levels |
//!
//! `no_std` with `alloc` without `std` and `zstd`. Rust 1.88 or later.
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

mod codec;
mod error;
mod marker;
mod msgpack;
mod pack;
pub mod search;
mod tables;
mod toc;
mod wrapper;
mod write;

pub use codec::{compress, content_size, decompress};
pub use error::{Error, ErrorKind};
pub use marker::Marker;
pub use pack::Kpack;
pub use tables::{Blobs, Tables};
pub use toc::{Entry, HEADER, MAGIC, Scheme, Toc, toc_range};
pub use wrapper::Wrapper;
pub use write::{NewKpack, Part};

/// The code of the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
