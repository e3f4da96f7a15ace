//! GPU code in build scripts: HIP, CUDA and OpenMP are compiled by clang, linked for each GPU, and their kernels are
//! registered when the program starts.
//!
//! ```no_run
//! // build.rs
//! fn main() -> Result<(), offload_build::Error> {
//!     offload_build::Build::new()
//!         .with_file("src/kernels.hip")
//!         .with_gpu("gfx90a")
//!         .with_gpu("gfx1100")
//!         .compile("kernels")
//! }
//! ```
//!
//! The host part of the files is linked into the crate as a static library. Each crate registers its own kernels
//! ([`RegisterOptions::with_private_entries`](offload_link::RegisterOptions::with_private_entries)), so that any number of crates in one
//! program can have some, and the link of the program needs no arguments.
//!
//! # Requirements
//!
//! - clang of LLVM 21 to 23, or ROCm's of these releases, with the GPU's backend: the one that [`Build::with_compiler`], the variable
//!   `CLANG_PATH` or `PATH` names. It also links device code, and finds the headers and device libraries of ROCm and CUDA by itself.
//! - A host with ELF objects: Linux, the BSDs. Others are an error.
//!
//! # What it prints
//!
//! Lines for cargo: the static library and where it is, the libraries of the runtime, and the files, headers of the host code and variables after
//! whose change the script runs again ([`Build::with_header`]: headers of device code). [`Build::with_runtime`] can leave the libraries of the runtime out.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod build;
mod compile;
mod error;
mod language;

pub use build::Build;
pub use error::{Error, ErrorKind};
pub use language::Language;
