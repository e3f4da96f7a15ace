//! An output as a list of parts: bytes, zeros, and ranges of inputs.
//!
//! A writer of a format first lays out its output, from the sizes of its inputs alone, then writes it. The inputs may
//! be gigabytes: they are never held in memory, and from file to file the kernel copies.
//!
//! - [`Parts`] is such an output. It can be sliced and edited before a byte of it is written.
//! - [`Layout`] is an output that takes each of its inputs once, in order: the layout of a container.
//! - [`concatenated`] goes through containers that lie one after the other.
//! - [`in_order`] runs jobs on several threads and returns their results in order, within bounds of memory.
//! - `Ranges` reads a file whose bytes a caller fetches, over a network for example (feature `std`).
//! - [`is_like`] compares names with patterns.
//! - [`elf`] and [`wasm`] have numbers of host files that several readers and writers need.
//!
//! ```
//! use byte_parts::Layout;
//!
//! let mut layout = Layout::new([3, 2]);
//! layout.push_bytes(b"<");
//! layout.push_input(0, 0..3);
//! layout.pad_to(6);
//! layout.push_input(1, 0..2);
//! assert_eq!((layout.offset(1), layout.size()), (Some(6), 8));
//! assert_eq!(layout.to_vec(&[b"abc", b"de"])?, b"<abc\0\0de");
//! # Ok::<(), byte_parts::Error>(())
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod budget;
mod concatenated;
pub mod elf;
mod error;
#[cfg(feature = "object")]
mod headers;
mod internal;
mod layout;
mod parts;
#[cfg(feature = "std")]
mod pipeline;
#[cfg(feature = "std")]
mod ranges;
#[cfg(feature = "std")]
mod source;
pub mod wasm;
mod wildcards;
mod window;
#[cfg(feature = "std")]
mod write;

pub use budget::Budget;
pub use concatenated::concatenated;
pub use error::Error;
#[cfg(feature = "std")]
pub use error::WriteError;
#[cfg(feature = "object")]
pub use headers::Headers;
pub use layout::Layout;
pub use parts::{Part, Parts};
#[cfg(feature = "std")]
pub use pipeline::{Bounds, in_order};
#[cfg(feature = "std")]
pub use ranges::{Fetch, Ranges, RangesReader};
#[cfg(feature = "std")]
pub use source::{ReadSeek, Source, seek_position};
pub use wildcards::is_like;
pub use window::Window;
#[cfg(feature = "std")]
pub use write::{Inputs, Streams, copy_range};

/// Returns the number of bytes in a range: none if it ends before it starts.
fn len_of(range: &core::ops::Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}
