//! The offload link step: what happens between compiling a program with GPU code and linking it for the host.
//!
//! Compilers store device code in host objects. Before the host link, this code is collected, grouped by target, linked
//! for each target, put into the container that the runtime wants, and wrapped in code that registers it when the
//! program starts. LLVM's tool for it is `clang-linker-wrapper`, which runs other tools. This crate is the same
//! as a library: a linker or compiler calls it with bytes, and gets an object to link.
//!
//! ```text
//! Inputs ──► Plan ──► DeviceLinker ──► Images ──► RegisterOptions ──► object
//! a.o            which images,  yours: clang,     offload binary,       registers
//! libb.a         of which code  lld, in process   bundle, fatbinary     all of them
//! ```
//!
//! ```
//! use std::convert::Infallible;
//!
//! use offload_link::{DeviceLinker, Group, Inputs, Parts, Plan, PlanOptions, RegisterOptions};
//!
//! /// Takes the only input of an image for the image. A real one calls a linker.
//! struct First;
//!
//! impl DeviceLinker for First {
//!     type Error = Infallible;
//!
//!     fn link(&mut self, group: &Group<'_>) -> Result<Parts, Infallible> {
//!         let code = group.inputs().first().and_then(|input| input.code().bytes());
//!         Ok(code.unwrap_or_default().to_vec().into())
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let object = std::fs::read("../../examples/data/hip-packager.o")?;
//! let mut inputs = Inputs::new();
//! inputs.add("hip-packager.o", &object)?;
//! let plan = Plan::new(&inputs, &PlanOptions::default())?;
//! for group in plan.groups() {
//!     println!("{}: {} inputs", group.target(), group.inputs().len());
//! }
//! let images = plan.link(&mut First)?;
//! let registration = images.object(&RegisterOptions::new("x86_64-unknown-linux-gnu"))?;
//! assert!(registration.is_some_and(|object| object.starts_with(b"\x7fELF")));
//! # Ok(())
//! # }
//! ```
//!
//! # Rules
//!
//! - Device code lies in sections whose names start with `.llvm.offloading` (ELF, COFF), in the globals of bitcode that
//!   become them, or in a file that is an offload binary. Shared libraries are passed over.
//! - Objects demand an image for each target, a triple and a target ID. Members of archives demand images only for
//!   the targets of [`PlanOptions::with_should_extract`]; other members complete the images that exist. All members for a
//!   target are linked, whether or not their symbols are needed, as LLVM 22 does.
//! - Code for different programming models and one target is linked together. The image is registered with the runtime
//!   of each.
//! - `generic` code goes into every image of its triple.
//! - Code for `gfx90a` goes into images for `gfx90a:xnack+` and `gfx90a:xnack-`; it demands an image of its own only
//!   without them. Code for `gfx90a:xnack+` goes into no image for `gfx90a`, which promises to run without.
//! - A member that an archive gives twice, because the archive is named twice, is linked once.
//!
//! The last two are not those of LLVM 22, where the order of the inputs decides, and where such links fail.
//!
//! # Bounds
//!
//! Inputs are walked by [`fat_object`], which checks every bound. Code of inputs in memory is borrowed; code from
//! files stays there, as long as it is stored as it is; that of thin archives, bitcode and compressed offload binaries is
//! copied. A linked image is a list of parts, bytes or ranges of files of yours, and so are bundles, offload binaries and
//! objects made of them: nothing but tables is in memory. Compressed bundles, fatbinaries and images of SYCL are.
//!
//! # Errors
//!
//! One [`Error`] with an [`ErrorKind`]. A [`DeviceLinker`] has its own.
//!
//! # Other crates in this API
//!
//! Lists of parts are those of [`byte_parts`], kinds those of [`offload_binary`], registration code is that of [`wrapper_ir`], compression that of [`ccob`],
//! readers of thin members are [`fat_object::ReadSeek`]. Add these crates to your dependencies to name their types.
//!
//! # Features and stability
//!
//! Features `ruzstd` and `miniz_oxide` (default) are codecs in pure Rust, `zstd` is libzstd, in C. Needs `std`. Minimum
//! supported Rust version: 1.88; it rises in a minor version only. Semantic versioning; enums that can grow are
//! `#[non_exhaustive]`. Messages are for people and may change.

#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod clang;
mod error;
mod images;
mod input;
mod intel;
mod plan;
mod register;
mod target;

pub use byte_parts::Parts;
pub use clang::{ClangOptions, LinkFiles};
pub use error::{Error, ErrorKind};
pub use images::{DeviceLinker, Images, LinkedImage};
pub use input::{DeviceCode, Inputs, is_library};
pub use plan::{Group, LeftOut, Linked, Plan, PlanOptions, Reason};
pub use register::{RegisterOptions, Registration, bundle_ids, container};
pub use target::{Fit, LinkTarget};
