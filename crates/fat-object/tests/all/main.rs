//! The tests of the crate, one program.

#![forbid(unsafe_code)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and says where"
)]

#[path = "../../../llvm-bitcode/tests/bits/mod.rs"]
mod bits;
#[path = "../elf_objects/mod.rs"]
mod elf_objects;
mod fatbinaries;

mod agreement;
mod api;
mod bitcode;
mod compressed_packages;
mod formats;
mod hcf;
mod hcf_format;
#[path = "../hcf_sample/mod.rs"]
mod hcf_sample;
mod image_target;
#[path = "../limits/mod.rs"]
mod limits;
mod list;
mod other;
mod passed_over;
mod question;
mod scan;
mod sycl;
#[path = "../sycl_sample/mod.rs"]
mod sycl_sample;
mod sycl_tables;
mod tables;
mod text_ends;
mod threads;
mod walk;
