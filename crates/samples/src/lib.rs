//! The one maker of test files, and streams that fail: for the tests of all crates.
//!
//! Everything here is made by hand from the specifications, without a crate of ours: so a file is a second opinion on the
//! readers, and equal bytes one on the writers. Where a test only needs some file, and not an opinion, it may call our
//! writers.
//!
//! | module | makes |
//! |---|---|
//! | [`elf`] | ELF objects of both widths and byte orders |
//! | [`linked`], [`linked_pe`] | ELF and PE libraries with registered device code, and a loader's view of them |
//! | [`device`] | code for GPUs: code objects, cubins, zebins, SPIR-V, and their kernels |
//! | [`bits`] | LLVM bitcode, bit by bit |
//! | [`bundle`], [`binary`], [`fatbin`], [`hcf`], [`sycl`] | containers of device code |
//! | [`ar`] | archives |
//! | `packages`, `images` (a feature) | wheels, zip, tar, deb, rpm, conda; images of containers |
//! | [`damage`] | copies of a file, cut short and changed |
//! | [`table`] | numbers put into fields of a file, and the errors that follow, one row each |
//! | [`server`] | a web server on loopback that counts, and lies as it is told |
//! | [`faulty`] | streams that fail at any call, and what must hold then |

#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and its files are small"
)]

use std::path::{Path, PathBuf};

mod api;
pub mod ar;
pub mod binary;
pub mod bits;
pub mod bundle;
pub mod damage;
pub mod device;
pub mod elf;
pub mod fatbin;
pub mod faulty;
pub mod hcf;
#[cfg(feature = "packages")]
pub mod images;
pub mod linked;
pub mod linked_pe;
#[cfg(feature = "packages")]
pub mod packages;
pub mod server;
pub mod sycl;
pub mod table;

/// Returns numbers of 64 bits, the lowest byte first.
#[must_use]
pub fn longs(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Returns numbers of 32 bits, the lowest byte first.
#[must_use]
pub fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Copies bytes over others from an offset on.
pub fn put(bytes: &mut [u8], at: usize, new: &[u8]) {
    bytes[at..at + new.len()].copy_from_slice(new);
}

/// Returns bytes with others over them from an offset on.
#[must_use]
pub fn with(bytes: &[u8], at: usize, new: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    put(&mut bytes, at, new);
    bytes
}

/// Returns the bytes of a hexadecimal dump.
#[must_use]
pub fn hex(text: &str) -> Vec<u8> {
    let digits = text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16).unwrap() as u8);
    digits.collect::<Vec<_>>().chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Returns the offset of the first place where these bytes are.
#[must_use]
pub fn find(bytes: &[u8], wanted: &[u8]) -> usize {
    bytes.windows(wanted.len()).position(|window| window == wanted).unwrap()
}

/// Returns the path of a file of `examples/data`.
#[must_use]
pub fn example_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data").join(name)
}

/// Returns a file of `examples/data`, which compilers made.
#[must_use]
pub fn example(name: &str) -> Vec<u8> {
    std::fs::read(example_path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns bytes that do not compress, the same every time.
#[must_use]
pub fn noise(seed: u32, len: usize) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// Returns the name and the bytes of each file of `examples/data`, by name.
#[must_use]
pub fn examples() -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(example_path("")).unwrap().map(|entry| entry.unwrap());
    let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
    let names = files.map(|file| file.file_name().into_string().unwrap());
    let mut examples: Vec<_> = names.map(|name| (name.clone(), example(&name))).collect();
    examples.sort();
    assert!(examples.len() > 25, "files are missing");
    examples
}
