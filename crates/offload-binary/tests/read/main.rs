//! Reading what LLVM writes, and what nobody should have written.
#![forbid(unsafe_code)]
#![cfg(test)]

#[path = "../common/mod.rs"]
mod common;
mod concatenated;
mod malformed_entries;
mod malformed_header;
mod prefix;
mod samples;
mod valid;
