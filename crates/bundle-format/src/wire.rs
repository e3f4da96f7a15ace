//! The structures of the binary layout as they lie in a file, little-endian and unaligned.

use alloc::vec::Vec;

/// Length in bytes of the header: the magic and the number of entries.
pub(crate) const HEADER_LEN: u64 = 32;
/// Offset of the number of entries.
pub(crate) const COUNT_AT: usize = 24;
/// Length in bytes of [`Descriptor`].
pub(crate) const DESCRIPTOR_LEN: u64 = 24;

/// Reads the number at an offset; `None` past the end of `bytes`.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().copied().map(u64::from_le_bytes)
}

/// One entry; its ID follows.
#[derive(Clone, Copy)]
pub(crate) struct Descriptor {
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) id_len: u64,
}

impl Descriptor {
    /// Reads the descriptor at the start of `bytes`.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (offset, size) = (u64_at(bytes, 0)?, u64_at(bytes, 8)?);
        Some(Self { offset, size, id_len: u64_at(bytes, 16)? })
    }

    pub(crate) fn write(self, to: &mut Vec<u8>) {
        for field in [self.offset, self.size, self.id_len] {
            to.extend_from_slice(&field.to_le_bytes());
        }
    }
}
