//! Offload binaries as other tools wrote them, and how to change them.

use offload_binary::{Entry, Error, OffloadBinary};
use samples::hex;

/// Two binaries as yaml2obj of LLVM 22 writes them: a SPIR-V image for SYCL with an unknown flag,
/// the keys `triple` (`spirv64`) and `compile-opts` (empty) and the content 03 02; and an entry
/// with neither kinds nor strings nor content.
pub(crate) fn two() -> Vec<u8> {
    hex("10ff10ad01000000 9000000000000000 2000000000000000 2800000000000000
         0600080000000080 4800000000000000 0200000000000000 8800000000000000
         0200000000000000 7600000000000000 7d00000000000000 6900000000000000
         6800000000000000 00636f6d70696c65 2d6f707473007472 69706c6500737069
         7276363400000000 0302000000000000
         10ff10ad01000000 5000000000000000 2000000000000000 2800000000000000
         0000000000000000 4800000000000000 0000000000000000 5000000000000000
         0000000000000000 0000000000000000")
}

/// Version 2 with two entries, built by hand: `a` = `x` and an image of 2 bytes; `a` = `y NUL z`
/// and an image of 3 bytes right after it.
pub(crate) fn v2_two_entries() -> Vec<u8> {
    hex("10ff10ad02000000 b800000000000000 2000000000000000 0200000000000000
         0100040000000000 7000000000000000 0100000000000000 b000000000000000 0200000000000000
         0200010000000000 8800000000000000 0100000000000000 b200000000000000 0300000000000000
         a100000000000000 a300000000000000 0100000000000000
         a100000000000000 a500000000000000 0300000000000000
         006100780079007a 0000000000000000
         1112212223000000")
}

/// Changes a value on its way.
pub(crate) trait Tap: Sized {
    fn tap(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}
impl Tap for Vec<u8> {}

/// Writes a 64-bit field.
pub(crate) fn put(data: &mut [u8], at: usize, value: u64) {
    data[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

pub(crate) fn with(data: Vec<u8>, at: usize, value: u64) -> Vec<u8> {
    data.tap(|data| put(data, at, value))
}

pub(crate) fn error(data: &[u8]) -> Error {
    OffloadBinary::parse(data).unwrap_err()
}

pub(crate) fn only(data: &[u8]) -> Entry<'_> {
    let mut entries = OffloadBinary::parse(data).unwrap().entries();
    assert_eq!(entries.len(), 1);
    entries.next().unwrap()
}

// Fields of the samples.
pub(crate) const SIZE: usize = 8;
pub(crate) const EXTENT: usize = 24;
pub(crate) const STRING_COUNT: usize = 48;
pub(crate) const IMAGE_OFFSET: usize = 56;
pub(crate) const IMAGE_SIZE: usize = 64;
pub(crate) const KEY: usize = 72;
pub(crate) const VALUE: usize = 80;
pub(crate) const VALUE_SIZE: usize = 88;
