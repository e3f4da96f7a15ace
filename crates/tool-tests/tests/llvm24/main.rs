//! The tools beside LLVM 24's. They fail, not skip, where LLVM is missing.

#![forbid(unsafe_code)]
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and says where"
)]

#[path = "../common/mod.rs"]
mod common;

mod edit;
mod messages;
mod packager;
mod processors;
#[path = "../newer_llvm/wrapper.rs"]
mod wrapper;

/// The release of LLVM.
const RELEASE: u32 = 24;
