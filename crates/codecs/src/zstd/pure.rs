//! Zstandard by `ruzstd`.

use alloc::vec::Vec;
use core::ops::Range;

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use ruzstd::io::Read;
use twox_hash::XxHash64;

use super::frame::{Frames, MAX_BLOCK, Walk, checksum, damaged, plain_header};
use crate::error::{Error, ErrorKind};
use crate::input::{Grown, Input, reserve_total, too_long};

#[cfg(not(feature = "ruzstd-encoder"))]
#[cfg_attr(feature = "zstd", allow(unused_imports, reason = "libzstd is preferred"))]
pub(crate) use crate::absent::{encode, encode_code};

#[cfg(feature = "ruzstd-encoder")]
#[cfg_attr(feature = "zstd", allow(unused_imports, reason = "libzstd is preferred"))]
pub(crate) use super::pure_encoder::{encode, encode_code};

/// Number of bytes to decode before looking at the result.
const STEP: usize = 1 << 20;

/// Returns a decoder for the blocks of one frame, with a header of our making, and its window. The decoder keeps a
/// window's worth of output before it hands any out, so a window larger than the result would only hide, and keep in
/// memory, output that is too long.
pub(super) fn decoder(window: u64, size: u64) -> Result<(FrameDecoder, [u8; 6], u64), Error> {
    let (header, window) = plain_header(window.min(size).max(MAX_BLOCK as u64));
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
        let total = written + decoder.can_collect();
        if total > output_len {
            return Err(too_long());
        }
        // Grows with the data, and jumps to the final size once half of that is there.
        if total > out.capacity() {
            let grown = if total >= output_len / 2 { output_len } else { total * 2 };
            reserve_total(&mut out, grown)?;
        }
        decoder.collect_to_writer(&mut out).map_err(damaged)?;
        Ok(total)
    })
    .and_then(|checks| checks.check(&out))?;
    Ok((out, frames.stream.len()))
}

/// Decodes as [`decode`] does, into memory of the expected size.
pub(crate) fn decode_into(input: &Input<'_>, out: &mut [u8], _: Grown<'_>) -> Result<usize, Error> {
    let frames = Frames::parse(input)?;
    decode_frames(input, &frames, |decoder, written| {
        let room = out.get_mut(written..).ok_or_else(too_long)?;
        if decoder.can_collect() > room.len() {
            return Err(too_long());
        }
        let more = decoder.read(room).map_err(damaged)?;
        Ok(written + more)
    })
    .and_then(|checks| checks.check(out))?;
    Ok(frames.stream.len())
}

/// Decodes all frames. `collect` takes what there is, and returns how much was taken by then.
fn decode_frames(
    input: &Input<'_>,
    frames: &Frames<'_>,
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
        let mut blocks = frame.blocks;
        while !decoder.is_finished() {
            decoder
                .decode_blocks(&mut blocks, BlockDecodingStrategy::UptoBytes(STEP))
                .map_err(damaged)?;
            written = collect(&mut decoder, written)?;
        }
        let content = (written - start) as u64;
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
            let found = out.get(range.clone()).map(|content| XxHash64::oneshot(0, content));
            if found.map(checksum) != Some(*stored) {
                return Err(Error::new(ErrorKind::Checksum, *position));
            }
        }
        Ok(())
    }
}
