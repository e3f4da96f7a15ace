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
//!   the targets of [`PlanOptions::with_should_extract`]; other members complete the images that exist.
//! - All members for a target are linked, as LLVM 22 does, or only [needed](#needed-members) ones. A host linker can
//!   [say](Inputs::add_member) which it loaded.
//! - Code for different programming models and one target is linked together. The image is registered with the runtime
//!   of each.
//! - `generic` code goes into every image of its triple.
//! - Code for `gfx90a` goes into images for `gfx90a:xnack+` and `gfx90a:xnack-`; it demands an image of its own only
//!   without them. Code for `gfx90a:xnack+` goes into no image for `gfx90a`, which promises to run without.
//! - A member that an archive gives twice, because the archive is named twice, is linked once.
//!
//! The last two are not those of LLVM 22, where the order of the inputs decides, and where such links fail.
//!
//! # Needed members
//!
//! With [`Members::Needed`], a member of an archive is linked
//!
//! - into all images that it fits, if the host linker takes it: objects, shared libraries, other such members or
//!   [`PlanOptions::with_roots`] refer to a symbol that it defines. `main` and other entries count as references;
//! - into one image, if its device code defines a symbol that code in this image refers to, and no code in it defines.
//!
//! A weak reference does not count in ELF files and their bitcode. A common symbol is a definition and a reference. If
//! several members define a symbol on the host, all of them are linked: the order of inputs does not matter. Functions
//! that registration code calls are needed, and if the host link generates code, so are those of runtime libraries
//! (`memcpy`, `__divti3`).
//!
//! Symbols are those of ELF, COFF and Mach-O files, and of the `SYMTAB` block of bitcode. An object without known
//! references makes all members needed: bitcode without this block, other formats, GCC's objects for link-time
//! optimisation, linker scripts, an offload binary in place of its object. [`Need`] tells the reason for each member.
//!
//! Two things are not seen: libraries that the host linker finds on its own, and options that the caller does not turn
//! into roots, as [`HostOptions`] does. [`LinkerScript`] has the files and names in the place of an input.
//!
//! # Bounds
//!
//! Inputs are walked by [`fat_object`], which checks every bound. Code of inputs in memory is borrowed; code from
//! files stays there, as long as it is stored as it is; code of thin archives, bitcode and compressed offload binaries
//! is copied. A linked image is a list of parts, bytes or ranges of files of yours, and so are bundles, offload
//! binaries and objects made of them: nothing but tables is in memory. Compressed bundles, fatbinaries and images of
//! SYCL are.
//!
//! Objects and members without device code are passed over by their headers: in memory, they cost little more than the parse of
//! these headers by the crate `object`. Symbols of files are read with them, for every input, and their names kept; those of inputs in
//! memory for a [`Plan`], where there is device code in members of archives. `cargo bench -p offload-benches --bench inputs` prints the
//! ratios.
//!
//! To read symbols, a COFF or Mach-O object or bitcode is held in memory, one at a time and up to 256 MiB; of an ELF file,
//! only its tables. The names of an object have at most 16 bytes for each of its bytes. Past these limits, its symbols
//! are unknown.
//!
//! # Errors
//!
//! One [`Error`] with an [`ErrorKind`]. A [`DeviceLinker`] has its own.
//!
//! # Other crates in this API
//!
//! Lists of parts come from [`byte_parts`], kinds from [`offload_binary`], registration code from [`wrapper_ir`],
//! compression from [`ccob`]; readers of thin members are [`fat_object::ReadSeek`]. Add these crates to your
//! dependencies to name their types.
//!
//! # Features and stability
//!
//! Feature `run` adds [`CommandLinker`], which runs device linkers. Features `ruzstd` and `miniz_oxide` (default) are codecs in pure
//! Rust, `zstd` is libzstd, in C. Needs `std`. Minimum
//! supported Rust version: 1.88; it rises in a minor version only. Semantic versioning; enums that can grow are
//! `#[non_exhaustive]`. Messages are for people and may change.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod clang;
#[cfg(feature = "run")]
mod command;
mod error;
mod host_line;
mod hosts;
mod images;
mod input;
mod intel;
mod lld;
mod needed;
mod plan;
mod ptxas;
mod register;
mod runtime;
mod symbols;
mod target;

pub use byte_parts::Parts;
pub use clang::{ClangOptions, DeviceArgument, LinkFiles, response_file};
#[cfg(feature = "run")]
pub use command::CommandLinker;
pub use error::{Error, ErrorKind};
pub use host_line::{HostOptions, LinkerScript};
pub use images::{DeviceLinker, Images, LinkedImage};
pub use input::{DeviceCode, Inputs, is_library};
pub use lld::LldOptions;
pub use needed::{Members, Need};
pub use plan::{Group, LeftOut, Linked, Plan, PlanOptions, Reason};
pub use ptxas::PtxasOptions;
pub use register::{RegisterOptions, Registration, bundle_ids, container};
pub use target::{Fit, LinkTarget};
