//! Bundles of `clang-offload-bundler`.

use crate::longs;

/// The first bytes of a binary bundle, and the start of names of sections.
pub const MAGIC: &str = "__CLANG_OFFLOAD_BUNDLE__";
/// Entry ID of an x86-64 host.
pub const HOST: &str = "host-x86_64-unknown-linux-gnu-";
/// Entry ID of a GPU of AMD.
pub const GFX906: &str = "hipv4-amdgcn-amd-amdhsa--gfx906";
/// Entry ID of another GPU of AMD.
pub const GFX90A: &str = "hipv4-amdgcn-amd-amdhsa--gfx90a";
/// Entry ID of a third GPU of AMD.
pub const GFX1100: &str = "hipv4-amdgcn-amd-amdhsa--gfx1100";

/// Returns a binary bundle of these entries, each at a multiple of `align`.
#[must_use]
pub fn bundle(entries: &[(&str, &[u8])], align: usize) -> Vec<u8> {
    bundle_of(entries, align)
}

/// Returns the table of a bundle: ID, offset and size of each entry.
#[must_use]
pub fn header(entries: &[(&str, u64, u64)]) -> Vec<u8> {
    let mut bytes = [MAGIC.as_bytes(), &longs(&[entries.len() as u64])].concat();
    for &(id, offset, size) in entries {
        bytes.extend(longs(&[offset, size, id.len() as u64]));
        bytes.extend(id.bytes());
    }
    bytes
}

/// Returns a [`bundle`] of entries of any types.
#[must_use]
pub fn bundle_of<I: AsRef<[u8]>, C: AsRef<[u8]>>(entries: &[(I, C)], align: usize) -> Vec<u8> {
    let entries = entries.iter().map(|(id, contents)| (id.as_ref(), contents.as_ref()));
    let table: usize = entries.clone().map(|(id, _)| 24 + id.len()).sum();
    let mut bytes = [MAGIC.as_bytes(), &longs(&[entries.len() as u64])].concat();
    let mut at = 32 + table;
    for (id, contents) in entries.clone() {
        at = at.next_multiple_of(align);
        bytes.extend(longs(&[at, contents.len(), id.len()].map(|number| number as u64)));
        bytes.extend(id);
        at += contents.len();
    }
    for (_, contents) in entries {
        bytes.resize(bytes.len().next_multiple_of(align), 0);
        bytes.extend(contents);
    }
    bytes
}

/// Returns a bundle without entries.
#[must_use]
pub fn empty() -> Vec<u8> {
    bundle(&[], 1)
}

/// Returns an entry of a text bundle.
#[must_use]
pub fn text_entry(id: &str, contents: &str) -> String {
    let marker = |which: &str| format!("\n# {MAGIC}__{which}__ {id}\n");
    format!("{}{contents}{}", marker("START"), marker("END"))
}
