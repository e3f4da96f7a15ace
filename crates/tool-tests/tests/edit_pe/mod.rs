//! PE files with device code, and who loads them.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "included by tests; a panic fails the test"
)]

pub mod dlls;
pub mod loader;
pub mod wine;
