//! Analysis of one device image: its format, the target that it states itself, its extent, and whether it holds
//! code.
//!
//! - [`FileFormat::sniff`] tells the format from the first bytes.
//! - [`image_target`] returns the target that an image states about itself, whatever the container around it says;
//!   [`image_target_at`] does so without holding the image.
//! - [`kernels`] lists the kernels of an image with the resources that they use; [`Kernel::occupancy`] bounds the waves that run at
//!   once. A [`KernelCollector`] lists those of many images, [`KernelPair`] and [`KernelTotals`] are the difference of two lists, a
//!   [`KernelGate`] applies rules to them.
//! - [`extent`] finds the end of PTX, SPIR-V and ELF images that lie among other bytes.
//! - [`elf_holds_code`] detects images without kernels, [`check_spirv`] and [`check_intel`] detect damaged SPIR-V modules and ELF files for Intel's GPUs.
//!
//! ```
//! use device_code::{FileFormat, image_target};
//!
//! let image = b".version 8.0\n.target sm_90a\n.address_size 64\n";
//! assert_eq!(FileFormat::sniff(image), FileFormat::Ptx);
//! assert_eq!(image_target(image).unwrap().id(), "sm_90a");
//! ```
//!
//! A source is a [`ReadAt`](llvm_bitcode::ReadAt): bytes in memory, or a file through a type of the caller. Only headers, tables and
//! notes are read, in pieces of bounded size. Reading never panics; malformed images state nothing.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]
#![no_std]

extern crate alloc;

mod bitcode;
mod code;
#[cfg(feature = "demangle")]
mod demangle;
mod elf;
mod extent;
mod fault;
mod format;
mod intel;
mod kernels;
mod metal;
mod notes;
mod read;
#[cfg(feature = "serde")]
mod serialize;
mod spirv;
mod target;
mod version;

pub use bitcode::is_device;
pub use code::elf_holds_code;
#[cfg(feature = "demangle")]
pub use demangle::demangled;
pub use extent::{Candidate, extent};
pub use fault::Fault;
pub use format::{FileFormat, elf_type};
pub use intel::check_intel;
pub use kernels::{
    Argument, GateFault, Kernel, KernelCollector, KernelGate, KernelKind, KernelList, KernelPair,
    KernelRecord, KernelRule, KernelTotals, Kernels, ListedArgument, ListedImage, ListedKernel,
    Measure, NotARule, Occupancy, RegisterLimits, Stored, Version, kernels, places_of_target,
};
pub use metal::MetalPlatform;
pub use read::HEAD;
pub use spirv::check_spirv;
pub use target::{image_target, image_target_at};
pub use version::code_version;

/// The code of the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
