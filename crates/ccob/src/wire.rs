//! The header as it lies in the file: little-endian, unpadded, at any alignment.

use alloc::vec::Vec;

use crate::{MAGIC, Method, Version};

/// Bytes of magic, version and method, which all versions begin with.
pub(crate) const PREFIX_LEN: usize = 8;

/// Returns the bytes of a field, or `None` past the end of `bytes`.
fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    field(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    field(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    field(bytes, at).map(u64::from_le_bytes)
}

/// Reads the number of the version, and the method.
pub(crate) fn read_prefix(bytes: &[u8]) -> Option<(u16, Method)> {
    Some((u16_at(bytes, 4)?, Method(u16_at(bytes, 6)?)))
}

/// The fields after the prefix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fields {
    /// Version 1 has none.
    pub(crate) total_size: Option<u64>,
    pub(crate) uncompressed_size: u64,
    pub(crate) hash: u64,
}

impl Fields {
    /// Reads the fields of a header of this version, which starts with the magic.
    pub(crate) fn read(version: Version, bytes: &[u8]) -> Option<Self> {
        Some(match version {
            Version::V1 => Self {
                total_size: None,
                uncompressed_size: u32_at(bytes, 8)?.into(),
                hash: u64_at(bytes, 12)?,
            },
            Version::V2 => Self {
                total_size: Some(u32_at(bytes, 8)?.into()),
                uncompressed_size: u32_at(bytes, 12)?.into(),
                hash: u64_at(bytes, 16)?,
            },
            Version::V3 => Self {
                total_size: Some(u64_at(bytes, 8)?),
                uncompressed_size: u64_at(bytes, 16)?,
                hash: u64_at(bytes, 24)?,
            },
        })
    }
}

/// Writes the prefix; the sizes, each of 4 or 8 bytes, and the hash follow.
pub(crate) fn write(version: Version, method: Method, sizes: &[&[u8]], hash: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(version.header_len());
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&version.number().to_le_bytes());
    out.extend_from_slice(&method.0.to_le_bytes());
    out.extend_from_slice(&sizes.concat());
    out.extend_from_slice(&hash.to_le_bytes());
    out
}
