//! Reading fatbinaries that are made here, field by field, and damaged ones; writing them.

#![forbid(unsafe_code)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "samples are small, and a test fails by panicking"
)]

mod concatenated;
mod damage;
mod decompress;
mod entries;
mod write;
