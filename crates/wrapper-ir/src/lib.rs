//! Registration code for GPU device images, without LLVM.

#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

mod build;
mod data_layouts;
pub mod description;
mod error;
mod escape;
mod image;
mod ir;
mod kinds;
mod layout;
mod target;
mod wrapper;

pub use description::Module;
pub use error::Error;
pub use image::Image;
pub use kinds::{Abi, Kind};
pub use layout::{Layout, Piece};
pub use target::{Endian, ObjectFormat, Target};
pub use wrapper::{ImageInfo, ManagedCall, Wrapper};

/// A length in memory as formats count; no platform has more than 64 bits.
fn to_u64(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}
