//! The tests of the crate, one program.

#![forbid(unsafe_code)]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking, and says where")]

#[cfg(feature = "files")]
mod cases;
#[cfg(feature = "files")]
mod fatbinaries;
mod faults;
#[cfg(feature = "files")]
mod loose;
mod memory;
mod packs;
