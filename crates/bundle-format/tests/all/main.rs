//! The tests of the crate, one program.

#![forbid(unsafe_code)]
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and says where"
)]

#[path = "../common/mod.rs"]
mod common;

mod api;
mod binary;
#[cfg(feature = "std")]
#[cfg(not(miri))]
mod faults;
mod ids;
mod properties;
mod select;
mod text;
