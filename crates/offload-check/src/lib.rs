//! Policies for GPU code, as `offload check` reads them from `offload.toml`: which targets a file must have and may have, how much
//! device code, what kernels may do, which drivers must be enough. A policy judges facts, and makes [`Violation`]s with codes.
//!
//! ```
//! use offload_check::{Policy, Subject};
//!
//! let policy = Policy::parse(
//!     r#"
//!     [targets]
//!     only = ["gfx1100"]
//!     [budget]
//!     device_code = "1K"
//!     "#,
//! )?;
//! let mut subject = Subject::new(&policy, "hip.o");
//! let file = std::fs::File::open("../../examples/data/hip.o")?;
//! let listing = fat_object::list(file, &fat_object::Options::default())?;
//! subject.add_file(listing.size());
//! listing.images().iter().for_each(|image| subject.add_image("hip.o", image));
//! let codes: Vec<_> = subject.judge().iter().map(|one| one.code).collect();
//! assert_eq!(codes, ["targets/unwanted", "targets/unwanted", "targets/unwanted", "size/budget"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `device_select::FileSet` answers for all files of a package together: [`Targets::require`] has the GPUs to ask about.
//!
//! With the feature `variants`, [`VariantSet`] judges what variants of wheels declare against their code, and against each other.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod policy;
mod subject;
mod values;
#[cfg(feature = "variants")]
mod variant;

pub use policy::{Budget, Error, Files, KernelPolicy, Needs, Policy, Targets, Unknown, Verify};
pub use subject::{Level, Subject, Violation, growth};
pub use values::{Bytes, DeviceCode, Percent};
#[cfg(feature = "variants")]
pub use variant::{
    INDEX_END, JustifiedValue, VariantAnswer, VariantAnswers, VariantCode, VariantDeclaration,
    VariantLevel, VariantPart, VariantSet, declared,
};
