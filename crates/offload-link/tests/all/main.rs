//! The tests of the crate, one program.

#![forbid(unsafe_code)]
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and says where"
)]

mod common;

mod api;
mod damaged;
mod faults;
mod inputs;
mod members;
mod needed;
mod plan;
mod register;
