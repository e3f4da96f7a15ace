//! The example programs do what they say, on real files.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;
mod instrument;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
mod link;
#[cfg(feature = "llvm-peer")]
mod llvm;
#[path = "../../../crates/tool-tests/tests/common/machine.rs"]
mod machine;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod readme;
#[cfg(feature = "llvm-peer")]
mod rustc;
mod small;
mod split;
mod wheels;
