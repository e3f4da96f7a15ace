//! Blocks of LZ4.

use alloc::vec::Vec;

use crate::error::{Error, ErrorKind};
use crate::input::{Grown, Input, reserve_total};

/// The most bytes that one byte of a block expands to.
const MOST_EXPANSION: u64 = 255;

pub(crate) fn decode(input: &Input<'_>, grown: Grown<'_>) -> Result<(Vec<u8>, usize), Error> {
    // No memory has 2^56 bytes.
    let at_most = input.stream.len() as u64 * MOST_EXPANSION;
    if input.size > at_most {
        return Err(Error::new(ErrorKind::AtMost(at_most), 0));
    }
    let mut out = zeros(input.output_len()?)?;
    let read = decode_into(input, &mut out, grown)?;
    Ok((out, read))
}

pub(crate) fn decode_into(input: &Input<'_>, out: &mut [u8], _: Grown<'_>) -> Result<usize, Error> {
    let written = lz4_flex::block::decompress_into(input.stream, out);
    input.check_output(written.map_err(|_| Error::new(ErrorKind::Damaged, 0))?)?;
    Ok(input.stream.len())
}

/// Compresses to a block.
pub(crate) fn encode(data: &[u8], level: i32) -> Result<Vec<u8>, Error> {
    let failed = || Error::new(ErrorKind::Encoder, 0);
    #[cfg(feature = "lz4")]
    let (out, len) = {
        use lz4::block::{CompressionMode, compress_bound, compress_to_buffer};

        let mut out = zeros(compress_bound(data.len()).map_err(|_| failed())?)?;
        let mode = CompressionMode::HIGHCOMPRESSION(level.clamp(3, 12));
        let len = compress_to_buffer(data, Some(mode), false, &mut out);
        (out, len.map_err(|_| failed())?)
    };
    #[cfg(not(feature = "lz4"))]
    let (out, len) = {
        let _ = level;
        let mut out = zeros(lz4_flex::block::get_maximum_output_size(data.len()))?;
        let len = lz4_flex::block::compress_into(data, &mut out).map_err(|_| failed())?;
        (out, len)
    };
    let mut out = out;
    out.truncate(len);
    Ok(out)
}

/// Returns memory of this size.
fn zeros(len: usize) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    reserve_total(&mut out, len)?;
    out.resize(len, 0);
    Ok(out)
}
