//! Bytes of an ELF file that change where they are.

/// Bytes to overwrite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Patch {
    /// In the ELF file as it was.
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
}

impl Patch {
    pub(super) fn word(offset: u64, value: u64) -> Self {
        Patch { offset, bytes: value.to_le_bytes().to_vec() }
    }
}
