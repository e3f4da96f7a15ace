//! Records of one size, one after the other.

use zerocopy::{FromBytes, Immutable, Unaligned};

/// Returns the records that bytes consist of, without the bytes of an incomplete one.
pub(crate) fn records<T: FromBytes + Immutable + Unaligned>(bytes: &[u8]) -> &[T] {
    let count = bytes.len() / size_of::<T>();
    <[T]>::ref_from_prefix_with_elems(bytes, count).map_or(&[], |(records, _)| records)
}
