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
mod faults;
mod layout;
mod properties;
mod second_opinion;
mod unbundle;
