//! From one version of the format to another.

use alloc::vec::Vec;

use byte_parts::internal;

use crate::concatenated::binaries;
use crate::error::Error;
use crate::layout::{StringBudget, layout};
use crate::wire::FormatVersion;

/// Reads all binaries in `data`, as [`binaries`] does, and writes their entries in `version`: one
/// binary for each entry in version 1, one binary with all entries in versions 2 and 3.
///
/// Images, strings and their order, unknown kinds and flags stay as they are. So does
/// [`HIP_LEGACY`](crate::OffloadKind::HIP_LEGACY), the HIP of LLVM 20 and older; see
/// [`OffloadKind::current`](crate::OffloadKind::current). An entry that only carries strings
/// ([`Flags::METADATA`](crate::Flags::METADATA)) becomes an empty image that keeps the flag in
/// version 1, where LLVM 22 does not look at flags.
///
/// Time grows as n log n with the strings, and memory with the entries, the strings (at most 64 MiB) and the result.
///
/// To copy images from file to file instead, read with [`binaries`], turn each
/// [`Entry`](crate::Entry) into an [`ImageEntry`](crate::ImageEntry) and make a [`layout`] of them.
///
/// # Errors
///
/// Errors of [`binaries`], so [`Compressed`](crate::ErrorKind::Compressed) for a compressed one;
/// [`Nul`](crate::ErrorKind::Nul) when version 1 cannot store a value, and the others of [`layout`] and of
/// writing it. Their entry numbers count over all of `data`.
pub fn convert(data: &[u8], version: FormatVersion) -> Result<Vec<u8>, Error> {
    let mut entries = Vec::new();
    let mut images = Vec::new();
    let mut budget = StringBudget::default();
    for binary in binaries(data) {
        let (_, binary) = binary?;
        for entry in binary.entries() {
            // Before anything is kept: strings may share their bytes.
            for (key, value) in entry.strings() {
                budget.spend(key, value)?;
            }
            entries.push(entry.to_image_entry());
            // All of the binary is in memory.
            let missing = || Error::malformed(entry.image_offset(), internal!("a missing image"));
            images.push(entry.image().ok_or_else(missing)?);
        }
    }
    Ok(layout(version, &entries)?.to_vec(&images)?)
}
