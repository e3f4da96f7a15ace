//! The tests of the crate, one program.

#![forbid(unsafe_code)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and says where"
)]

#[path = "../bundling/mod.rs"]
mod bundling;
#[path = "../editing/mod.rs"]
mod editing;
#[path = "../registered/mod.rs"]
mod registered;

mod api;
mod bundles;
mod edit_archives;
mod edit_bundles;
mod edit_coff;
mod edit_compressed;
mod edit_compressed_binaries;
mod edit_elf;
mod edit_fatbinaries;
mod edit_hosts;
mod edit_in_place;
mod edit_limits;
mod edit_model;
mod edit_objects;
mod edit_offload_binaries;
mod edit_registered;
mod edit_registered_pe;
mod edit_restore;
mod embed;
mod faults;
mod moved_out;
mod object_form;
mod object_form_wasm;
mod properties;
mod uneditable;
