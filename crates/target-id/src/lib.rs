//! Target IDs, triples, offload kinds and processors of GPU offloading: read them, bring
//! them to canonical form, and decide which code object runs where.
//!
//! # The format
//!
//! A code object in an offload container is labelled with a bundle entry ID, which is made of three parts. This
//! crate reads the parts; the crates of the container formats split entry IDs.
//!
//! ```text
//! hip-amdgcn-amd-amdhsa--gfx90a:sramecc-:xnack+
//! └┬┘ └───────┬────────┘ └──┬─┘ └──┬───┘ └─┬──┘
//! offload   triple      processor target  target
//! kind      (empty                feature feature
//!           environment) └──────────┬─────────┘
//!                               target ID
//! ```
//!
//! A feature that is left out may be on or off, *any*. The specifications are the [*Clang Offload
//! Bundler*][bundler] documentation and LLVM's [*User Guide for AMDGPU Backend*][amdgpu], for NVIDIA's
//! architectures the CUDA Programming Guide; where these leave something open, this crate behaves as
//! `clang-offload-bundler` of LLVM 22 and 23, or documents the difference.
//!
//! [bundler]: https://clang.llvm.org/docs/ClangOffloadBundler.html
//! [amdgpu]: https://llvm.org/docs/AMDGPUUsage.html
//!
//! # Where to start
//!
//! | for | see |
//! |---|---|
//! | one target ID: read, checked, in canonical form | [`TargetId`] |
//! | does this code object run there, and why not | [`Target`], [`compatible`], [`Verdict`] |
//! | which of several is the best | [`Verdict::rank`] |
//! | does a linker take this image for that one | [`provides`], [`Provision`] |
//! | what must not be in one bundle together | [`conflicts`] |
//! | triples in LLVM's normal form | [`Triple`] |
//! | the table of AMD's processors: aliases, features, numbers in ELF headers | [`Processor`] |
//! | what runs on which NVIDIA GPU | [`NvidiaArch`] |
//! | Intel's GPUs: names, IP versions, what runs on which | [`IntelGpu`] |
//! | "did you mean": names near to what was typed | [`near`] |
//!
//! ```
//! use target_id::{OffloadKind, Target, Triple, compatible};
//!
//! // The entries of a bundle.
//! let entries = ["gfx90a:xnack-", "gfx90a", "gfx9-generic", "gfx90a:xnack+"]
//!     .map(|id| Target::new(Some(OffloadKind::HipV4), Some(Triple::parse("amdgcn-amd-amdhsa")), id));
//! // What somebody asks for: no kind, no triple.
//! let device = Target::new(None, None, "gfx90a:xnack+:sramecc-");
//!
//! let no = compatible(&entries[0], &device);
//! assert_eq!(no.to_string(), "needs xnack off, the device has it on");
//!
//! let fitting = entries.iter().filter(|entry| compatible(entry, &device).is_compatible());
//! let best = fitting.min_by_key(|entry| compatible(entry, &device).rank());
//! assert_eq!(best.map(Target::id), Some("gfx90a:xnack+"));
//! ```
//!
//! Unknown names of any sort are kept, and compare by their text. Reading, comparing and writing one ID takes time and
//! memory linear in its length, apart from sorting its features, however long it is. Nothing panics.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `std` | yes | nothing yet; the API is the same without it |
//! | `serde` | no | `Serialize`, without macros and without `std` |
//!
//! With `serde`, [`OffloadKind`], [`Triple`] and [`TargetId`] are strings, as [`Display`](core::fmt::Display) writes them.
//! [`Target`] has the fields `kind`, `triple` and `target`, each a string or nothing, as in `offload ls --json`; [`Verdict`] has
//! `compatible`, `strict` and `reason`.
//!
//! # `no_std`, Rust version, stability
//!
//! The crate is `no_std` and needs `alloc`, whatever its features. Rust 1.88 or later; that rises with a minor version
//! only. Its version follows semantic versioning: enums that can grow, errors and options are `#[non_exhaustive]`; new
//! processors and names of triples, and the words of messages and verdicts, come with patch versions.
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

extern crate alloc;

mod amd_processor;
mod amdgpu;
mod common;
mod compatible;
mod conflict;
mod error;
mod feature;
mod intel;
mod kind;
pub mod llvm;
pub mod near;
mod nvidia;
mod processor;
mod provides;
#[cfg(feature = "serde")]
mod serialize;
mod target;
mod target_id;
mod triple;
mod verdict;

pub use amd_processor::{Family, Processor};
pub use compatible::{Options, compatible, compatible_with_options};
pub use conflict::{Conflict, conflicts};
pub use error::{Error, ErrorKind};
pub use feature::{Feature, Setting};
pub use intel::IntelGpu;
pub use kind::OffloadKind;
pub use nvidia::NvidiaArch;
pub use processor::{is_known_processor, may_be_processor, processor_family, processor_names};
pub use provides::{Provision, provides};
pub use target::Target;
pub use target_id::TargetId;
pub use triple::Triple;
pub use verdict::Verdict;

/// The code of the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
