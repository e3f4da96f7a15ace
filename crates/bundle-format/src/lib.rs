//! The bundles of `clang-offload-bundler`: code objects for the host and for devices in one
//! file, each with a bundle entry ID that says what it is for. HIP embeds them in programs (section
//! `.hip_fatbin`), OpenMP and HIP compilations use them for intermediate files.
//!
//! The format is described in the "Clang Offload Bundler" documentation and, for AMD GPUs, in
//! LLVM's "User Guide for AMDGPU Backend". There are two layouts. The binary one, with
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
//! And the text one, where code objects lie between comment lines: see [`TextBundle`]. An older
//! text form, with a comment line behind each code object only, is read but never written: see
//! [`text::EndMarkedBundle`].
//!
//! Start with [`Bundle::parse`] to read one binary bundle, with [`binary::bundles`] for several
//! one after the other, with [`TextBundle::parse`] for text, with [`Layout::new`] and
//! [`text::to_vec`] to write, with [`EntryId::parse`] to understand an ID. Reading copies
//! nothing: IDs and code objects are slices of the data given. Compressed bundles (`CCOB`) are
//! another format around a binary bundle and not the concern of this crate.
//!
//! ```
//! use bundle_format::{Bundle, EntryId, Layout};
//!
//! # fn main() -> Result<(), bundle_format::Error> {
//! let ids = ["host-x86_64-unknown-linux-gnu", "openmp-amdgcn-amd-amdhsa--gfx90a:xnack+"];
//! let contents: [&[u8]; 2] = [b"host code", b"device code"];
//!
//! let mut entries = Vec::new();
//! for (id, content) in ids.into_iter().zip(contents) {
//!     entries.push((EntryId::parse(id)?.standardized(), content.len() as u64));
//! }
//! let bytes = Layout::new(entries, 8)?.to_vec(&contents)?;
//!
//! let bundle = Bundle::parse(&bytes)?;
//! for (entry, content) in bundle.entries().zip(contents) {
//!     println!("{} at {:#x}", entry.id_str()?, entry.offset());
//!     assert_eq!(entry.payload(), Some(content));
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

pub mod binary;
mod composition;
mod entry_id;
mod error;
mod layout;
mod select;
pub mod text;
mod wire;

pub use binary::{Bundle, Bundles, MAGIC, bundles};
pub use composition::{CompositionFinding, composition};
pub use entry_id::EntryId;
pub use error::Error;
pub use layout::{Layout, Piece};
pub use select::Request;
pub use text::TextBundle;

/// The magic as text. It starts binary bundles, is part of the markers of text bundles, and
/// starts the names of sections that hold the entries of a bundle in an object file.
pub const MAGIC_TEXT: &str = "__CLANG_OFFLOAD_BUNDLE__";

/// A length in memory as the format counts; no platform has more than 64 bits.
fn to_u64(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}
