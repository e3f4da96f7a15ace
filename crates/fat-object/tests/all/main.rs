//! The tests of the crate, one program.

#![forbid(unsafe_code)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and says where"
)]

mod fatbinaries;

mod agreement;
mod api;
mod bitcode;
mod compressed_packages;
mod formats;
mod hcf;
mod hcf_format;
mod image_target;
#[path = "../limits/mod.rs"]
mod limits;
mod list;
mod other;
mod passed_over;
mod question;
mod scan;
mod sycl;
mod sycl_tables;
mod tables;
mod text_ends;
mod threads;
mod walk;
