//! The bundles of `clang-offload-bundler`: code objects for the host and for devices in one
//! file, each with a bundle entry ID that says what it is for. HIP embeds them in programs (section
//! `.hip_fatbin`), OpenMP and HIP compilations use them for intermediate files.
//!
//! # The format
//!
//! It is described in the ["Clang Offload Bundler"][bundler] documentation and, for AMD GPUs, in
//! LLVM's ["User Guide for AMDGPU Backend"][amdgpu]. There are two layouts. The binary one, with
//! little-endian integers and offsets from the start of the bundle:
//!
//! ```text
//!  0  magic "__CLANG_OFFLOAD_BUNDLE__"
//! 24  number of entries   u64
//!     ---- for each entry, a descriptor ----
//! +0  offset              u64   of the code object
//! +8  size                u64   of the code object
//! +16 ID length           u64
//! +24 bundle entry ID           without NUL
//!     ---- code objects, with zeros in between as alignment demands ----
//! ```
//!
//! And the text one, where code objects lie between comment lines: see [`text::TextBundle`].
//! Compressed bundles (`CCOB`) are another format around a bundle and not the concern of this crate.
//!
//! [bundler]: https://clang.llvm.org/docs/ClangOffloadBundler.html
//! [amdgpu]: https://llvm.org/docs/AMDGPUUsage.html
//!
//! # Reading
//!
//! Start with [`Bundle::parse`] for one binary bundle, with [`bundles`] for several one after the other, as in a section
//! of a linked program, with [`Bundle::parse_prefix`] when only the start of a file is in memory, with
//! [`text::TextBundle::parse`] for text, and with [`EntryId::parse`] to understand an ID. Nothing is copied: IDs and code objects
//! are slices of the data given, and live as long as it does.
//!
//! ```
//! use target_id::OffloadKind;
//! use bundle_format::{EntryId, bundles};
//!
//! // LLVM 22.1: clang-offload-bundler -type=o -input=host.o -input=device.o -output=bundle.o
//! //     -targets=host-x86_64-unknown-linux-gnu,hip-amdgcn-amd-amdhsa--gfx90a:xnack+
//! let section = [
//!     &b"__CLANG_OFFLOAD_BUNDLE__\x02\0\0\0\0\0\0\0"[..],     // two entries
//!     b"\x92\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x1e\0\0\0\0\0\0\0", // at 146, empty, ID of 30 bytes
//!     b"host-x86_64-unknown-linux-gnu-",
//!     b"\x92\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\x24\0\0\0\0\0\0\0", // at 146, 4 bytes, ID of 36
//!     b"hip-amdgcn-amd-amdhsa--gfx90a:xnack+",
//!     b"code",
//!     &[0; 3950], // padding, as linkers leave it
//! ]
//! .concat();
//!
//! for bundle in bundles(&section) {
//!     let (_offset, bundle) = bundle?;
//!     for entry in bundle.entries() {
//!         let id = EntryId::parse(entry.id_str()?)?;
//!         if id.kind() == OffloadKind::Hip {
//!             assert_eq!((id.triple(), id.target_id()), ("amdgcn-amd-amdhsa-", "gfx90a:xnack+"));
//!             assert_eq!(entry.payload(), Some(&b"code"[..]));
//!         }
//!     }
//! }
//! # Ok::<(), bundle_format::Error>(())
//! ```
//!
//! Everything is checked before anything is handed out, in time linear in the descriptors, or in the text, plus the
//! time to sort the entries. Bundles inside of payloads do not mislead [`bundles`]. No input makes this crate panic.
//! [`Error`] says what is wrong, where, and what was expected; [`ErrorKind`] is for programs.
//!
//! # Writing
//!
//! The [`layout`] of IDs and sizes knows every offset before a code object is touched; then it is written to memory, to a
//! writer, or as parts by writers with ways of their own ([`byte_parts::Layout`]). [`text::to_vec`] writes text. The
//! bytes are those of `clang-offload-bundler` 22.
//!
//! ```
//! use bundle_format::{Bundle, EntryId};
//!
//! # fn main() -> Result<(), bundle_format::Error> {
//! let ids = ["host-x86_64-unknown-linux-gnu", "openmp-amdgcn-amd-amdhsa--gfx90a:xnack+"];
//! let payloads: [&[u8]; 2] = [b"host code", b"device code"];
//!
//! let mut entries = Vec::new();
//! for (id, payload) in ids.into_iter().zip(payloads) {
//!     entries.push((EntryId::parse(id)?.standardized(), payload.len() as u64));
//! }
//! let bytes = bundle_format::layout(entries, 8)?.to_vec(&payloads)?;
//!
//! let bundle = Bundle::parse(&bytes)?;
//! assert!(bundle.entries().map(|entry| entry.payload()).eq(payloads.map(Some)));
//! # Ok(())
//! # }
//! ```
//!
//! # Rules
//!
//! [`composition`] tells which entries must not be in one bundle together, and [`Request`] which entry is for a target.
//! Both need the meaning of IDs, which is the concern of [`target_id`]. Its types are a part of this interface
//! ([`EntryId::kind`], [`EntryId::target`], [`Request::verdict`], [`CompositionFinding`]): add it to your dependencies to name them, and `byte-parts` for layouts.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `std` | yes | layouts and `text::write_to` write to `std::io` writers; errors as `std::io::Error` |
//!
//! # `no_std`, Rust version, stability
//!
//! Without `std` the crate needs only `alloc`. Rust 1.88 or later; that rises with a minor version only. Its version
//! follows semantic versioning, and a new major version of `target-id` is one of this crate, too: enums that can grow and
//! errors are `#[non_exhaustive]`. The bytes that are written are those of a release of LLVM, and change with it only.
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod binary;
mod composition;
mod entry_id;
mod error;
mod layout;
mod leader;
mod near;
mod select;
pub mod text;
mod unneeded;
mod wire;

pub use binary::{Bundle, Entry, MAGIC, bundles};
pub use composition::{CompositionFinding, composition};
pub use entry_id::EntryId;
pub use error::{Error, ErrorKind};
pub use layout::{HIP_ALIGN, HIP_HOST_ID, layout};
pub use select::{Choice, Request};
pub use unneeded::unneeded;

/// The magic as text. It starts binary bundles, is part of the markers of text bundles, and
/// starts the names of sections that hold the entries of a bundle in an object file.
pub const MAGIC_TEXT: &str = "__CLANG_OFFLOAD_BUNDLE__";

/// The code of the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
