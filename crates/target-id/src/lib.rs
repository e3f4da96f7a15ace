//! Target IDs, triples, offload kinds and processors of GPU offloading: read them, bring
//! them to canonical form, and decide which code object runs where.
//!
//! A code object in an offload container is labelled with a bundle entry ID, which is made
//! of three parts. This crate is about the parts; taking entry IDs apart is left to the
//! crates of the container formats.
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
//! A feature that is left out may be on or off, *any*. The specifications are the *Clang
//! Offload Bundler* documentation and LLVM's *User Guide for AMDGPU Backend*; where these
//! leave something open, this crate does as `clang-offload-bundler` of LLVM 22 and 23 does,
//! or says that it does not.
//!
//! ```
//! use target_id::{OffloadKind, Target, Triple, compatible};
//!
//! let entry = |id| Target::new(Some(OffloadKind::HipV4), Some(Triple::parse("amdgcn-amd-amdhsa")), id);
//! // What somebody asks for: no kind, no triple.
//! let device = Target::new(None, None, "gfx90a:xnack+:sramecc-");
//!
//! assert!(compatible(&entry("gfx90a:xnack+"), &device).is_compatible());
//! let no = compatible(&entry("gfx90a:xnack-"), &device);
//! assert_eq!(no.to_string(), "needs xnack off, the device has it on");
//! ```
//!
//! Start with [`TargetId`] to read one ID, with [`Target`] and [`compatible`] to match, with
//! [`conflicts`] to check what goes into one bundle. [`Processor`] is the table behind them.
//! Unknown names of any sort are kept, and compare by their text.
//!
//! Reading, comparing and writing one ID takes time and memory linear in its length, apart from sorting its features,
//! however long it is.
//!
//! The crate is `no_std` (with `alloc`) if the feature `std`, on by default, is off.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

extern crate alloc;

mod amdgpu;
mod compatible;
mod conflict;
mod error;
mod feature;
mod kind;
mod nvidia;
mod processor;
#[cfg(feature = "serde")]
mod serialize;
mod target;
mod target_id;
mod triple;
mod verdict;

pub use compatible::{Options, compatible, compatible_with_options, generic_covers};
pub use conflict::{Conflict, ConflictKind, conflicts};
pub use error::Error;
pub use feature::{Feature, Features, Setting};
pub use kind::OffloadKind;
pub use nvidia::{NvidiaArch, NvidiaScope};
pub use processor::{
    Family, Processor, amdgpu_processors, bundler_accepts, is_known_processor, processor_family,
    processor_names,
};
pub use target::Target;
pub use target_id::TargetId;
pub use triple::Triple;
pub use verdict::{Side, Verdict};
