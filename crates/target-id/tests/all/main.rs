//! The tests of the crate, one program.

#![forbid(unsafe_code)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and says where"
)]

mod api;
mod compatible;
mod conflicts;
#[cfg(feature = "serde")]
mod serde;
mod specification;
