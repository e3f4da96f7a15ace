//! Zstandard by `ruzstd`.

use alloc::vec::Vec;

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use ruzstd::encoding::{CompressionLevel, compress};

use super::zstd_frame::{Frame, damaged};
use super::{Input, reserve_total, xxh64};
use crate::header::to_u64;
use crate::{Error, Fault, Method, WriteOptions};

/// How much to decode before looking at the result.
const STEP: usize = 1 << 20;
/// Blocks may expand to this, so no window handed to the decoder is smaller.
const MIN_WINDOW: u64 = 128 << 10;
/// The bit in a frame's descriptor, its fifth byte, that announces a checksum.
const DESCRIPTOR_CHECKSUM: u8 = 0x04;

pub(super) fn decode(input: &Input<'_>) -> Result<(Vec<u8>, usize), Error> {
    let frame = Frame::parse(input)?;
    let output_len = input.output_len()?;
    let mut blocks = input.stream.get(frame.blocks_start..frame.blocks_end).unwrap_or_default();

    // The decoder gets a frame header of our making. It keeps a window's worth of output before it
    // hands any out, so a window beyond the size of the result would only serve to hide, and keep
    // in memory, output that is too long.
    let window = frame.window.min(input.uncompressed_size).max(MIN_WINDOW);
    let (descriptor, _) = window_descriptor(window);
    let header = [0x28, 0xB5, 0x2F, 0xFD, 0x00, descriptor];
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(u64::MAX);
    // Twice, because only the second time does it make room for the whole window, which the blocks
    // have vouched for; otherwise it would copy all of it at each doubling.
    for _ in 0..2 {
        decoder.init(header.as_slice()).map_err(|_| damaged(input))?;
    }

    let mut out = Vec::new();
    while !decoder.is_finished() {
        decoder
            .decode_blocks(&mut blocks, BlockDecodingStrategy::UptoBytes(STEP))
            .map_err(|_| damaged(input))?;
        let total = out.len().saturating_add(decoder.can_collect());
        if total > output_len {
            return Err(Error::OutputTooLong { expected: to_u64(output_len) });
        }
        // Grows with the data, and jumps to the final size once half of that is there.
        if total > out.capacity() {
            let grown = if total >= output_len / 2 { output_len } else { total.saturating_mul(2) };
            reserve_total(&mut out, grown)?;
        }
        decoder.collect_to_writer(&mut out).map_err(|_| damaged(input))?;
    }
    input.check_output(out.len())?;
    // The low half of the hash is what the format keeps.
    if let Some(stored) = frame.checksum
        && u64::from(stored) != xxh64::hash(&out) & u64::from(u32::MAX)
    {
        return Err(input.bad_stream(Method::ZSTD, frame.blocks_end, Fault::Checksum));
    }
    Ok((out, frame.len))
}

/// The smallest window that a frame header can express and that is not smaller than `size`:
/// the byte for it, and its size.
fn window_descriptor(size: u64) -> (u8, u64) {
    let mut byte = 0;
    loop {
        let log = 10 + (byte >> 3);
        let window = (1_u64 << log) + (1_u64 << (log - 3)) * u64::from(byte & 7);
        // 2^41 is the largest exponent there is; results are far smaller.
        if window >= size || byte == u8::MAX {
            return (byte, window);
        }
        byte += 1;
    }
}

/// Whatever the options say: `Fastest` is the only level that is implemented and compresses, the
/// others panic.
pub(super) fn encode(data: &[u8], _: &WriteOptions, out: &mut Vec<u8>) {
    let start = out.len();
    compress(data, &mut *out, CompressionLevel::Fastest);
    drop_checksum(out, start);
}

/// Takes away the checksum of the frame at `start`: whether `ruzstd` writes one depends on a
/// feature that any crate in the build may turn on, and the bytes written shall not.
fn drop_checksum(out: &mut Vec<u8>, start: usize) {
    let end = out.len().saturating_sub(4);
    if let Some(descriptor) = out.get_mut(start.saturating_add(4))
        && *descriptor & DESCRIPTOR_CHECKSUM != 0
    {
        *descriptor &= !DESCRIPTOR_CHECKSUM;
        out.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::{drop_checksum, window_descriptor};

    #[test]
    fn windows_cover_what_is_asked() {
        assert_eq!(window_descriptor(0), (0, 1 << 10));
        assert_eq!(window_descriptor(1024), (0, 1 << 10));
        assert_eq!(window_descriptor(1025), (1, 1024 + 128));
        assert_eq!(window_descriptor(128 << 10), (7 << 3, 128 << 10));
        let (_, window) = window_descriptor(149_000_000);
        assert!((149_000_000..170_000_000).contains(&window));
        assert!(window_descriptor(1 << 33).1 >= 1 << 33);
    }

    #[test]
    fn checksums_go() {
        // `printf abc | zstd -c` of zstd 1.5.4, behind one other byte.
        let mut out = alloc::vec![
            0xEE, // not ours
            0x28, 0xB5, 0x2F, 0xFD, 0x04, 0x58, // window 2 MiB, checksum
            0x19, 0x00, 0x00, b'a', b'b', b'c', // last block, raw, 3 bytes
            0x99, 0x09, 0x77, 0xAD, // checksum
        ];
        drop_checksum(&mut out, 1);
        let bare = [0xEE, 0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x58, 0x19, 0x00, 0x00, b'a', b'b', b'c'];
        assert_eq!(out, bare);
        drop_checksum(&mut out, 1);
        assert_eq!(out, bare);
    }
}
