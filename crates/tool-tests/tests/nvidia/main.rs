//! The tools beside NVIDIA's. They fail, not skip, where these are missing.

#![forbid(unsafe_code)]
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    dead_code,
    unreachable_pub,
    reason = "a test fails by panicking, and says where"
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../edit_rig/mod.rs"]
mod edit_rig;

mod edit;
mod link;
mod retouch;
