//! The first bytes of a compressed image.

use std::io;
use std::ops::Range;

use device_code::FileFormat;

use crate::source::Source;

/// Bytes that a block of a zstd frame can hold.
pub(super) const MAX_BLOCK: usize = 128 << 10;

/// Decompresses the first block of an image that is a zstd frame.
pub(super) fn inflated_head(
    source: &mut Source<'_>,
    range: &Range<u64>,
    size: u64,
) -> io::Result<Result<Vec<u8>, ccob::Error>> {
    // A compressed bundle of version 3 has this before such a frame.
    let total = range.end - range.start + 32;
    let mut bundle = [&b"CCOB\x03\0\x01\0"[..], &total.to_le_bytes(), &size.to_le_bytes()].concat();
    bundle.extend([0; 8]);
    bundle.extend(source.peek(range, MAX_BLOCK + 64)?);
    // No more than the first block is decompressed.
    let options = ccob::ReadOptions::default().with_max_decompressed(u64::MAX);
    Ok(ccob::decompress_prefix(&bundle, FileFormat::SNIFF_LEN, &options))
}
