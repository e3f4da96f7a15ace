//! Zstandard by libzstd.

use alloc::vec::Vec;

use ::zstd::zstd_safe::zstd_sys::ZSTD_EndDirective;
use ::zstd::zstd_safe::{
    CCtx, CParameter, DCtx, DParameter, InBuffer, OutBuffer, WriteBuf, compress_bound, max_c_level,
    min_c_level,
};

use super::frame::{Frames, MAX_WINDOW_LOG, damaged};
use crate::error::{Error, ErrorKind};
use crate::input::{Grown, Input, reserve_total, too_long};

/// libzstd's own default, which Clang takes.
const DEFAULT_LEVEL: i32 = 3;

/// The level from which on workers help. Below, one thread compresses about as fast as another one hashes, and
/// workers, who copy what they read and at the start of each job have forgotten what they saw, only cost.
const WORTH_WORKERS: i32 = 10;

/// Input bytes per job of a worker. In another job's data only the long-distance matcher finds anything, so small ones
/// compress badly. It is the job size, not the number of workers, that decides about the bytes written.
const JOB_SIZE: u32 = 192 << 20;

/// A job looks back beyond its start by at most the size of the window.
const WHOLE_WINDOW: u32 = 9;

/// The shortest match that the long-distance matcher looks for with workers, where the default is 64: what is shorter
/// the ordinary matcher of these levels mostly finds as well, for fewer bits.
const LONG_MATCH: u32 = 128;

/// The least data for which levels that search little use the long-distance matcher. Smaller data is searched at
/// these levels as at level [`MORE_SEARCH`], which takes little time for it and compresses better.
const WORTH_LONG_DISTANCES: usize = 2 << 20;
const LITTLE_SEARCH: core::ops::RangeInclusive<i32> = 3..=5;
const MORE_SEARCH: i32 = 6;

/// The levels at which the long-distance matcher notices one place in a given number (a power of two), by default
/// in
/// 128. Bundles have the code for one GPU after the other, alike over long stretches with small differences. It has to
/// find the place of the other code only once: from there on the ordinary matcher goes along with it, over every
/// difference, with better matches. So bundles become smaller, and take two thirds of the time.
const OWN_DISTANCES: core::ops::RangeInclusive<i32> = 3..=9;
const LONG_DISTANCE_RATE_LOG: u32 = 12;

/// Places that it remembers (a power of two): more than its window of 128 MiB has with the rate. Left to libzstd this is
/// the difference to the rate of the window, which is less than the rate where there is little data, and becomes 8 GiB.
const LONG_DISTANCE_LOG: u32 = 18;

/// The size from which the matcher remembers more places whose code looks the same at first (a power of two, by
/// default 8): the window holds less of the code of other GPUs, more of it looks alike, and output would be a tenth
/// larger. Below, it would save 1 % for a tenth of the time.
const LARGE: usize = 384 << 20;
const LARGE_BUCKET_LOG: u32 = 6;

/// Places that the ordinary matcher remembers at the default level (a power of two), instead of 2^17: for the rest of
/// the code, which is not alike. More would find more, but not fit in a cache beside what hashes.
const REMEMBERED_LOG: u32 = 18;

/// libzstd's code for a checksum that does not match, `ZSTD_error_checksum_wrong`.
const CHECKSUM_WRONG: usize = 22;
/// `ZSTD_error_memory_allocation`.
const OUT_OF_MEMORY: usize = 64;
/// `ZSTD_error_dstSize_tooSmall`.
const OUTPUT_TOO_SMALL: usize = 70;

/// The least result worth decoding in steps, so that it can be hashed meanwhile.
const WORTH_STEPS: usize = 1 << 20;

/// Compressed bytes for one step.
const STEP: usize = 64 << 10;

pub(crate) fn decode(input: &Input<'_>, grown: Grown<'_>) -> Result<(Vec<u8>, usize), Error> {
    let frames = Frames::parse(input)?;
    // Memory of the final size, which the blocks of the frames have vouched for.
    let mut out = Vec::new();
    reserve_total(&mut out, input.output_len()?)?;
    decode_frames(input, &frames, &mut out, grown)?;
    Ok((out, frames.stream.len()))
}

/// Decodes as [`decode`] does, into memory of the expected size.
pub(crate) fn decode_into(
    input: &Input<'_>,
    out: &mut [u8],
    grown: Grown<'_>,
) -> Result<usize, Error> {
    let frames = Frames::parse(input)?;
    decode_frames(input, &frames, out, grown)?;
    Ok(frames.stream.len())
}

/// Decodes all frames into `out`, which has room for the expected size.
fn decode_frames<C: WriteBuf + ?Sized>(
    input: &Input<'_>,
    frames: &Frames<'_>,
    out: &mut C,
    grown: Grown<'_>,
) -> Result<(), Error> {
    let mut context =
        DCtx::try_create().ok_or_else(|| Error::new(ErrorKind::Memory(input.size), 0))?;
    let failed = |code: usize| match error_code(code) {
        OUTPUT_TOO_SMALL => too_long(),
        CHECKSUM_WRONG => {
            // If there are several frames, it does not tell which.
            let position = if frames.count == 1 { frames.first.blocks_end } else { 0 };
            Error::new(ErrorKind::Checksum, position)
        }
        OUT_OF_MEMORY => Error::new(ErrorKind::Memory(frames.window), 0),
        _ => damaged(code),
    };

    let len = input.output_len()?;
    if len < WORTH_STEPS || frames.count > 1 {
        let written = context.decompress(out, frames.stream).map_err(failed)?;
        return input.check_output(written);
    }
    // The output is the window: it stays where it is, so libzstd needs no other, and copies nothing.
    context.set_parameter(DParameter::StableOutBuffer(true)).map_err(failed)?;
    context.set_parameter(DParameter::WindowLogMax(MAX_WINDOW_LOG)).map_err(failed)?;
    let (mut left, mut written) = (0, 0);
    for step in frames.stream.chunks(STEP) {
        let mut step = InBuffer::around(step);
        while step.pos() < step.src.len() {
            let before = (step.pos(), written);
            let mut output = OutBuffer::around_pos(out, written);
            left = context.decompress_stream(&mut output, &mut step).map_err(failed)?;
            written = output.pos();
            if (step.pos(), written) == before {
                // No room for what is left.
                return Err(too_long());
            }
        }
        // All of it is shown when nothing is found wrong with what follows.
        if written < len
            && let Some(data) = out.as_slice().get(..written)
        {
            grown(data);
        }
    }
    if left > 0 && written == len {
        return Err(too_long());
    }
    input.check_output(written)
}

/// Returns libzstd's number of an error.
fn error_code(code: usize) -> usize {
    0_usize.wrapping_sub(code)
}

fn failed() -> Error {
    Error::new(ErrorKind::Encoder, 0)
}

/// Returns libzstd set up for `len` bytes of code.
fn encoder(len: usize, level: Option<i32>, threads: u32) -> Result<CCtx<'static>, Error> {
    // As libzstd, which takes 0 for its default.
    let level = level.filter(|&level| level != 0).unwrap_or(DEFAULT_LEVEL);
    let level = level.clamp(min_c_level(), max_c_level());
    let mut context = CCtx::try_create().ok_or_else(failed)?;
    let mut set = |parameter| context.set_parameter(parameter).map(drop).map_err(|_| failed());
    let is_small = len < WORTH_LONG_DISTANCES;
    if is_small && LITTLE_SEARCH.contains(&level) {
        set(CParameter::CompressionLevel(MORE_SEARCH))?;
    } else {
        set(CParameter::CompressionLevel(level))?;
        set(CParameter::EnableLongDistanceMatching(true))?;
        if !is_small && OWN_DISTANCES.contains(&level) {
            set(CParameter::LdmHashRateLog(LONG_DISTANCE_RATE_LOG))?;
            set(CParameter::LdmHashLog(LONG_DISTANCE_LOG))?;
            if len >= LARGE {
                set(CParameter::LdmBucketSizeLog(LARGE_BUCKET_LOG))?;
            }
        }
        if !is_small && level == DEFAULT_LEVEL {
            set(CParameter::HashLog(REMEMBERED_LOG))?;
        }
    }
    if level >= WORTH_WORKERS {
        set(CParameter::LdmMinMatch(LONG_MATCH))?;
        set(CParameter::NbWorkers(threads.max(1)))?;
        set(CParameter::JobSize(JOB_SIZE))?;
        set(CParameter::OverlapSizeLog(WHOLE_WINDOW))?;
    }
    // So that the frame records its size, and decoders can make room at once.
    context.set_pledged_src_size(Some(len as u64)).map_err(|_| failed())?;
    Ok(context)
}

/// Appends code, compressed, to `out`.
pub(crate) fn encode_code(
    data: &[u8],
    level: Option<i32>,
    threads: u32,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    encode_by(encoder(data.len(), level, threads)?, data, out)
}

/// Appends code, compressed with clang's parameters (LLVM 22, `llvm::compression::zstd::compress`), to `out`.
pub(crate) fn encode_as_clang(
    data: &[u8],
    level: Option<i32>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    encode_by(encoder_as_clang(data.len(), level)?, data, out)
}

/// Returns libzstd set up for `len` bytes as clang does it.
fn encoder_as_clang(len: usize, level: Option<i32>) -> Result<CCtx<'static>, Error> {
    let mut context = CCtx::try_create().ok_or_else(failed)?;
    let mut set = |parameter| context.set_parameter(parameter).map(drop).map_err(|_| failed());
    set(CParameter::EnableLongDistanceMatching(true))?;
    set(CParameter::CompressionLevel(level.unwrap_or(DEFAULT_LEVEL)))?;
    context.set_pledged_src_size(Some(len as u64)).map_err(|_| failed())?;
    Ok(context)
}

/// Appends data, compressed with these parameters, to `out`.
fn encode_by(mut context: CCtx<'static>, data: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    // With room for the worst case libzstd works on input and output themselves instead of copies
    // of its own. Memory that is not written to costs nothing.
    let mut room = compress_bound(data.len());
    let mut input = InBuffer::around(data);
    loop {
        let len = out.len();
        out.try_reserve_exact(room).map_err(|_| Error::new(ErrorKind::Memory(room as u64), 0))?;
        let mut output = OutBuffer::around_pos(out, len);
        let left = context
            .compress_stream2(&mut output, &mut input, ZSTD_EndDirective::ZSTD_e_end)
            .map_err(|_| failed())?;
        if left == 0 {
            out.shrink_to_fit();
            return Ok(());
        }
        room = left.max(64 << 10);
    }
}

/// Compresses to one frame with its size, by the parameters of libzstd.
pub(crate) fn encode(data: &[u8], level: i32) -> Result<Vec<u8>, Error> {
    let most = compress_bound(data.len());
    let no_memory = || Error::new(ErrorKind::Memory(most as u64), 0);
    let mut context = CCtx::try_create().ok_or_else(no_memory)?;
    let parameter = CParameter::CompressionLevel(level);
    context.set_parameter(parameter).map_err(|_| no_memory())?;
    let mut out = Vec::new();
    reserve_total(&mut out, most)?;
    context.compress2(&mut out, data).map_err(|_| no_memory())?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By itself, libzstd takes 8 GiB for no data when it is to look rarely for distant matches.
    #[test]
    #[cfg_attr(miri, ignore = "Miri cannot call C")]
    fn little_data_needs_little_memory_at_any_level() {
        let check = |mut encoder: CCtx<'_>, level: i32, data: &[u8]| {
            let mut out = Vec::with_capacity(compress_bound(data.len()));
            encoder.compress2(&mut out, data).unwrap();
            assert!(encoder.sizeof() < 16 << 20, "{level} {} {}", data.len(), encoder.sizeof());
        };
        for data in [&b""[..], b"a", &[7; 100_000]] {
            for level in -7..=12 {
                check(encoder(data.len(), Some(level), 1).unwrap(), level, data);
            }
            for level in -7..=22 {
                check(encoder_as_clang(data.len(), Some(level)).unwrap(), level, data);
            }
        }
    }
}
