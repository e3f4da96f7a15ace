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
#[cfg(feature = "std")]
#[cfg(not(miri))]
mod faults;
mod properties;
#[path = "../read/mod.rs"]
mod read;
mod version3;
mod write;
