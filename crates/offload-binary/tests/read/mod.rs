//! Reading what LLVM writes, and what nobody should have written.

mod concatenated;
mod malformed_entries;
mod malformed_header;
mod prefix;
mod samples;
mod valid;
