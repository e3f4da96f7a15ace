//! Zstandard by `ruzstd`.

use alloc::vec::Vec;
use core::ops::Range;

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use ruzstd::encoding::{CompressionLevel, compress};
use ruzstd::io::{self, Read};
use twox_hash::XxHash64;

use super::frame::{Frames, MAX_BLOCK, Walk, checksum, damaged, plain_header};
use crate::error::{Error, ErrorKind, to_u64};
use crate::input::{Grown, Input, reserve_total, too_long};

/// Number of bytes to decode before looking at the result.
const STEP: usize = 1 << 20;
/// The bit in a frame's descriptor, its fifth byte, that announces a checksum.
const DESCRIPTOR_CHECKSUM: u8 = 0x04;

/// Returns a decoder for the blocks of one frame, with a header of our making, and its window. The decoder keeps a
/// window's worth of output before it hands any out, so a window larger than the result would only hide, and keep in
/// memory, output that is too long.
fn decoder(window: u64, size: u64) -> Result<(FrameDecoder, [u8; 6], u64), Error> {
    let (header, window) = plain_header(window.min(size).max(MAX_BLOCK));
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(u64::MAX);
    decoder.init(header.as_slice()).map_err(damaged)?;
    Ok((decoder, header, window))
}

pub(crate) fn decode(input: &Input<'_>, _: Grown<'_>) -> Result<(Vec<u8>, usize), Error> {
    let frames = Frames::parse(input)?;
    let output_len = input.output_len()?;
    let mut out = Vec::new();
    decode_frames(input, &frames, |decoder, written| {
        let total = written.saturating_add(decoder.can_collect());
        if total > output_len {
            return Err(too_long());
        }
        // Grows with the data, and jumps to the final size once half of that is there.
        if total > out.capacity() {
            let grown = if total >= output_len / 2 { output_len } else { total.saturating_mul(2) };
            reserve_total(&mut out, grown)?;
        }
        decoder.collect_to_writer(&mut out).map_err(damaged)?;
        Ok(total)
    })
    .and_then(|checks| checks.check(&out))?;
    Ok((out, frames.len))
}

/// Decodes as [`decode`] does, into memory of the expected size.
pub(crate) fn decode_into(input: &Input<'_>, out: &mut [u8], _: Grown<'_>) -> Result<usize, Error> {
    let frames = Frames::parse(input)?;
    decode_frames(input, &frames, |decoder, written| {
        let room = out.get_mut(written..).unwrap_or_default();
        if decoder.can_collect() > room.len() {
            return Err(too_long());
        }
        let more = decoder.read(room).map_err(damaged)?;
        Ok(written.saturating_add(more))
    })
    .and_then(|checks| checks.check(out))?;
    Ok(frames.len)
}

/// Decodes all frames. `collect` takes what there is, and returns how much was taken by then.
fn decode_frames(
    input: &Input<'_>,
    frames: &Frames,
    mut collect: impl FnMut(&mut FrameDecoder, usize) -> Result<usize, Error>,
) -> Result<Checks, Error> {
    let (mut decoder, header, _) = decoder(frames.window, input.size)?;
    let (mut written, mut checks) = (0, Checks(Vec::new()));
    let mut walk = Walk::new(input);
    for _ in 0..frames.count {
        let Some(frame) = walk.next()? else { break };
        // Once more: only the second time it makes room for the whole window, which the blocks have vouched for.
        // Otherwise it would copy all of it at each doubling.
        decoder.init(header.as_slice()).map_err(damaged)?;
        let start = written;
        let mut blocks = input.stream.get(frame.blocks_start..frame.blocks_end).unwrap_or_default();
        while !decoder.is_finished() {
            decoder
                .decode_blocks(&mut blocks, BlockDecodingStrategy::UptoBytes(STEP))
                .map_err(damaged)?;
            written = collect(&mut decoder, written)?;
        }
        let content = to_u64(written.saturating_sub(start));
        if frames.count > 1 && frame.header.content_size.is_some_and(|size| size != content) {
            return Err(damaged(()));
        }
        if let Some(checksum) = frame.checksum {
            checks.0.push((start..written, checksum, frame.blocks_end));
        }
    }
    input.check_output(written)?;
    Ok(checks)
}

/// The checksums of frames: of what in the output, their values, and where they lie in the stream.
struct Checks(Vec<(Range<usize>, u32, usize)>);

impl Checks {
    fn check(&self, out: &[u8]) -> Result<(), Error> {
        for (range, stored, position) in &self.0 {
            let content = out.get(range.clone()).unwrap_or_default();
            if *stored != checksum(XxHash64::oneshot(0, content)) {
                return Err(Error::new(ErrorKind::Checksum, *position));
            }
        }
        Ok(())
    }
}

/// Decodes block by block.
///
/// The decoder hands out only what lies before its window, as long as there are further blocks, so each block is
/// said to be the last. Then it hands out everything: what it holds is looked at, and taken only as far as no
/// further block can refer to it. From then on its contents are not inspected any more, as they lie in two parts;
/// the output lags by a window.
pub(super) struct Blocks {
    decoder: FrameDecoder,
    window: usize,
    /// Bytes of the frame that were taken out of the decoder.
    taken: usize,
    /// Bytes of the frame that were handed out.
    given: usize,
    /// `true` if the last block was decoded.
    ended: bool,
    /// A block with a header that says it is the last.
    block: Vec<u8>,
}

impl Blocks {
    /// Returns a decoder for the blocks of a frame with this window and at most this much output.
    pub(super) fn new(window: u64, size: u64) -> Result<Self, Error> {
        let (decoder, _, window) = decoder(window, size)?;
        let window =
            usize::try_from(window).map_err(|_| Error::new(ErrorKind::WindowTooLarge, 0))?;
        Ok(Self { decoder, window, taken: 0, given: 0, ended: false, block: Vec::new() })
    }

    /// Decodes a block, header and body, and appends to `out` what it gave, if that can be seen.
    pub(super) fn decode(
        &mut self,
        block: &[u8],
        is_last: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.block.clear();
        self.block.extend_from_slice(block);
        if let Some(first) = self.block.first_mut() {
            *first |= 1;
        }
        self.decoder
            .decode_blocks(self.block.as_slice(), BlockDecodingStrategy::UptoBlocks(1))
            .map_err(damaged)?;
        self.ended = is_last;
        let held = self.decoder.can_collect();
        if self.taken > 0 {
            return Ok(());
        }
        let before = out.len();
        // Fails, as it is to, so that the decoder keeps everything.
        let _ = self.decoder.collect_to_writer(Peek { skip: self.given, out });
        if self.decoder.can_collect() != held || out.len() - before != held - self.given {
            return Err(damaged(()));
        }
        self.given = held;
        Ok(())
    }

    /// Appends to `out` what can be had without another block, up to a block's worth.
    pub(super) fn more(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        let len = usize::try_from(MAX_BLOCK).unwrap_or(usize::MAX);
        let kept = if self.ended { 0 } else { self.window };
        let can_take = self.decoder.can_collect().saturating_sub(kept);
        // Skip the bytes that were handed out before.
        let known = self.given.saturating_sub(self.taken);
        let take = can_take.min(known.saturating_add(len));
        if take == 0 {
            return Ok(());
        }
        let mut taken = alloc::vec![0; take];
        let read = self.decoder.read(&mut taken).map_err(damaged)?;
        if read != take {
            return Err(damaged(()));
        }
        out.extend_from_slice(taken.get(known..).unwrap_or_default());
        self.taken = self.taken.saturating_add(take);
        self.given = self.given.max(self.taken);
        Ok(())
    }
}

/// Copies what is written but for the first bytes, and takes nothing.
struct Peek<'o> {
    skip: usize,
    out: &'o mut Vec<u8>,
}

impl io::Write for Peek<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, io::Error> {
        self.out.extend_from_slice(bytes.get(self.skip..).unwrap_or_default());
        Err(io::Error::from(io::ErrorKind::Other))
    }

    fn flush(&mut self) -> Result<(), io::Error> {
        Ok(())
    }
}

/// Compresses to one frame with its size.
pub(crate) fn encode(data: &[u8], level: i32) -> Result<Vec<u8>, Error> {
    let mut frame = Vec::new();
    encode_code(data, Some(level), 1, &mut frame)?;
    Ok(with_size(&frame, to_u64(data.len())))
}

/// Appends a frame without its size to `out`. `Fastest` is the only level that is implemented and compresses, the others
/// panic.
#[allow(clippy::unnecessary_wraps, reason = "the signature of all libraries")]
pub(crate) fn encode_code(
    data: &[u8],
    _: Option<i32>,
    _: u32,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let start = out.len();
    compress(data, &mut *out, CompressionLevel::Fastest);
    drop_checksum(out, start);
    Ok(())
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

/// Puts the size of the contents into the header of a frame that lacks it (RFC 8878, 3.1.1.1).
fn with_size(frame: &[u8], size: u64) -> Vec<u8> {
    const HAS_SIZE: u8 = 0b1110_0000;
    match frame {
        [m0, m1, m2, m3, descriptor, window, rest @ ..] if descriptor & HAS_SIZE == 0 => {
            let mut new = Vec::from([*m0, *m1, *m2, *m3, descriptor | 0b1100_0000, *window]);
            new.extend(size.to_le_bytes());
            new.extend_from_slice(rest);
            new
        }
        _ => frame.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::drop_checksum;

    #[test]
    fn checksums_are_removed() {
        // `printf abc | zstd -c` of zstd 1.5.4, after one other byte.
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
