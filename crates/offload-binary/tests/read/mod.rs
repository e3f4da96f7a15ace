//! Reading what LLVM writes, and what nobody should have written.

mod concatenated;
mod malformed;
mod prefix;
pub(crate) mod samples;
mod valid;
