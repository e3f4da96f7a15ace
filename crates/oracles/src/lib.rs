//! Properties of any input: the oracles of the fuzz targets.
//!
//! A fuzz target is one call of a function here. The tests run each function over the example files with any compiler.
//! The functions panic when something does not hold.

#![forbid(unsafe_code)]
// A judge panics on failure, and runs where `usize` has 64 bits.
#![allow(
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

pub mod accounts;
pub mod agreement;
pub mod ar;
pub mod archives;
pub mod bare;
pub mod bitcode;
pub mod bundles;
pub mod compressed;
pub mod edits;
pub mod fatbins;
pub mod faults;
pub mod fields;
pub mod hcf;
pub mod hosts;
pub mod ids;
pub mod images;
pub mod kernels;
pub mod kpacks;
pub mod linked;
pub mod links;
pub mod load;
pub mod model;
pub mod objects;
pub mod package_files;
pub mod packages;
pub mod ranges;
pub mod streams;
pub mod sycl;
pub mod walks;
pub mod wrappers;

/// Parses ever longer prefixes of `data`, as long as `parse` asks for more. `parse` gets the prefix and says
/// how many bytes it needs, or `None` when it is done. Returns the last prefix and the number of calls.
fn grow_prefix(data: &[u8], parse: impl Fn(&[u8]) -> Option<u64>) -> (&[u8], usize) {
    let mut prefix = &data[..0];
    for calls in 1.. {
        let Some(needed) = parse(prefix) else {
            return (prefix, calls);
        };
        let needed = usize::try_from(needed).expect("asks for no more than there is");
        assert!(needed > prefix.len(), "asks for {needed} bytes and has {}", prefix.len());
        assert!(needed <= data.len(), "asks for {needed} bytes of {}", data.len());
        prefix = &data[..needed];
    }
    unreachable!("each call has a longer prefix");
}

/// Checks that a message is one line that a terminal shows unchanged.
fn assert_message(error: &impl std::fmt::Display) {
    let text = error.to_string();
    assert!(!text.is_empty() && !text.chars().any(char::is_control), "{text:?}");
}
