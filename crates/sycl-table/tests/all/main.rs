//! The tests of the crate, one program.

#![forbid(unsafe_code)]
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and says where"
)]

mod api;
mod tables;
