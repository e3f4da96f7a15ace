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
    // A compressed bundle has this before such a frame.
    let total = u32::try_from(range.end - range.start + 24).unwrap_or(u32::MAX);
    let uncompressed = u32::try_from(size).unwrap_or(u32::MAX);
    let mut bundle =
        [&b"CCOB\x02\0\x01\0"[..], &total.to_le_bytes(), &uncompressed.to_le_bytes()].concat();
    bundle.extend([0; 8]);
    bundle.extend(source.peek(range, MAX_BLOCK + 64)?);
    Ok(ccob::decompress_prefix(&bundle, FileFormat::SNIFF_LEN, u64::MAX))
}
