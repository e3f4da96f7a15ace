//! The tests of the crate, one program.

#![forbid(unsafe_code)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and says where"
)]

mod api;
mod bitcode;
mod entries;
mod faults;
mod golden;
mod object;
mod rustc_targets;
