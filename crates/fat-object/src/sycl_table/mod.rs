//! Images that Intel's SYCL toolchain links into host files, and the tables that describe them.
//!
//! A linked file registers one table or several: a descriptor of 32 bytes, an array of descriptors of images, and for each
//! image strings, sets of properties, and the names of kernels. All refer to each other by address
//! (intel/llvm: `sycl/source/detail/compiler.hpp`, `SYCLOffloadWrapper.cpp`).
//!
//! [`Tables::read`] finds and reads them. Images without a table, such as those of libraries of device code, lie back to
//! back: [`image_end`] finds the end of one, [`content_size`] the size of a compressed one.

mod error;
mod found;
mod image;
mod memory;
mod reader;
mod stored;
mod tables;
mod wire;

pub use error::{Error, ErrorKind};
pub use found::Tables;
pub use image::{SyclImage, SyclProperty, SyclValue, aspect_name};
pub use stored::{content_size, image_end, is_spirv_header};
