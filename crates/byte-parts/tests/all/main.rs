//! The tests of the crate, one program.

#![forbid(unsafe_code)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and says where"
)]

mod parts;
mod pipeline;
