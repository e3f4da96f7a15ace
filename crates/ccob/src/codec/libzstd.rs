//! Zstandard by libzstd.

use alloc::vec::Vec;

use zstd::zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd::zstd_safe::{
    CCtx, CParameter, DCtx, DParameter, InBuffer, OutBuffer, compress_bound, max_c_level,
    min_c_level,
};

use super::zstd_frame::{Frame, damaged};
use super::{Input, reserve_total};
use crate::header::to_u64;
use crate::{Error, Fault, Method, WriteOptions};

/// libzstd's own default, which Clang takes.
const DEFAULT_LEVEL: i32 = 3;

/// The level from which on workers help. Below, one thread compresses about as fast as another one hashes, and
/// workers, who copy what they read and at the start of each job have forgotten what they saw, only cost.
const WORTH_WORKERS: i32 = 10;

/// Input bytes per job of a worker. In another job's data only the long-distance matcher finds anything, so small ones
/// compress badly. It is the job size, not the number of workers, that decides about the bytes written.
const JOB_SIZE: u32 = 192 << 20;

/// How far a job looks back beyond its start: as far as the window reaches.
const WHOLE_WINDOW: u32 = 9;

/// The shortest match that the long-distance matcher looks for with workers, where the default is 64: what is shorter
/// the ordinary matcher of these levels mostly finds as well, for fewer bits.
const LONG_MATCH: u32 = 128;

/// The least data in which the long-distance matcher is let loose by the levels that search little themselves. What is
/// smaller is, at these levels, searched as at the one that takes little time for it, and comes out smaller.
const WORTH_LONG_DISTANCES: usize = 2 << 20;
const LITTLE_SEARCH: core::ops::RangeInclusive<i32> = 3..=5;
const MORE_SEARCH: i32 = 6;

/// The levels at which the long-distance matcher takes notice of one place in so many (a power of two), by default in
/// 128. Bundles have the code for one GPU after the other, alike over long stretches with small differences. It has to
/// find the place of the other code only once: from there on the ordinary matcher goes along with it, over every
/// difference, with better matches. So bundles become smaller, and take two thirds of the time.
const OWN_DISTANCES: core::ops::RangeInclusive<i32> = 3..=9;
const LONG_DISTANCE_RATE_LOG: u32 = 12;

/// Places that it remembers (a power of two): more than its window of 128 MiB has with the rate. Left to libzstd this is
/// the difference to the rate of the window, which is less than the rate where there is little data, and becomes 8 GiB.
const LONG_DISTANCE_LOG: u32 = 18;

/// From so many bytes on, how many places it remembers whose code looks the same at first (a power of two), by default 8:
/// less of the code of other GPUs is in the window, more of it looks alike, and output would be a tenth larger. Below, it
/// would save 1 % for a tenth of the time.
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

/// The largest window, as the frame was checked to have it.
const MAX_WINDOW_LOG: u32 = 31;

/// Compressed bytes for one step.
const STEP: usize = 64 << 10;

pub(super) fn decode(
    input: &Input<'_>,
    grown: &mut dyn FnMut(&[u8]),
) -> Result<(Vec<u8>, usize), Error> {
    let frame = Frame::parse(input)?;
    let stream = input.stream.get(..frame.len).unwrap_or_default();
    let mut context =
        DCtx::try_create().ok_or(Error::OutOfMemory { size: input.uncompressed_size })?;
    let failed = |code: usize| match 0_usize.wrapping_sub(code) {
        OUTPUT_TOO_SMALL => Error::OutputTooLong { expected: input.uncompressed_size },
        CHECKSUM_WRONG => input.bad_stream(Method::ZSTD, frame.blocks_end, Fault::Checksum),
        OUT_OF_MEMORY => Error::OutOfMemory { size: frame.window },
        _ => damaged(input),
    };

    // Into memory of the final size, which the blocks of the frame have vouched for.
    let mut out = Vec::new();
    let len = input.output_len()?;
    reserve_total(&mut out, len)?;
    if len < WORTH_STEPS {
        context.decompress(&mut out, stream).map_err(failed)?;
    } else {
        // The output is the window: it stays where it is, so libzstd needs no other, and copies nothing.
        context.set_parameter(DParameter::StableOutBuffer(true)).map_err(failed)?;
        context.set_parameter(DParameter::WindowLogMax(MAX_WINDOW_LOG)).map_err(failed)?;
        let mut left = 0;
        for step in stream.chunks(STEP) {
            let mut step = InBuffer::around(step);
            while step.pos() < step.src.len() {
                let (read, written) = (step.pos(), out.len());
                let mut output = OutBuffer::around_pos(&mut out, written);
                left = context.decompress_stream(&mut output, &mut step).map_err(failed)?;
                if (step.pos(), out.len()) == (read, written) {
                    // No room for what is left.
                    return Err(Error::OutputTooLong { expected: input.uncompressed_size });
                }
            }
            // All of it is shown when nothing is found wrong with what follows.
            if out.len() < len {
                grown(&out);
            }
        }
        if left > 0 && out.len() == len {
            return Err(Error::OutputTooLong { expected: input.uncompressed_size });
        }
    }
    input.check_output(out.len())?;
    Ok((out, frame.len))
}

const FAILED: Error = Error::EncoderFailed { method: Method::ZSTD };

/// libzstd set up for so many bytes.
fn encoder(len: usize, options: &WriteOptions) -> Result<CCtx<'static>, Error> {
    // As libzstd, which takes 0 for its default.
    let level = options.level.filter(|&level| level != 0).unwrap_or(DEFAULT_LEVEL);
    let level = level.clamp(min_c_level(), max_c_level());
    let mut context = CCtx::try_create().ok_or(FAILED)?;
    let mut set = |parameter| context.set_parameter(parameter).map(drop).map_err(|_| FAILED);
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
        set(CParameter::NbWorkers(options.threads.max(1)))?;
        set(CParameter::JobSize(JOB_SIZE))?;
        set(CParameter::OverlapSizeLog(WHOLE_WINDOW))?;
    }
    // So that the frame records its size, and decoders can make room at once.
    context.set_pledged_src_size(Some(to_u64(len))).map_err(|_| FAILED)?;
    Ok(context)
}

pub(super) fn encode(data: &[u8], options: &WriteOptions, out: &mut Vec<u8>) -> Result<(), Error> {
    let mut context = encoder(data.len(), options)?;
    // With room for the worst case libzstd works on input and output themselves instead of copies
    // of its own. Memory that is not written to costs nothing.
    let mut room = compress_bound(data.len());
    let mut input = InBuffer::around(data);
    loop {
        let len = out.len();
        out.try_reserve_exact(room)
            .map_err(|_| Error::OutOfMemory { size: to_u64(len.saturating_add(room)) })?;
        let mut output = OutBuffer::around_pos(out, len);
        let left = context
            .compress_stream2(&mut output, &mut input, ZSTD_EndDirective::ZSTD_e_end)
            .map_err(|_| FAILED)?;
        if left == 0 {
            out.shrink_to_fit();
            return Ok(());
        }
        room = left.max(64 << 10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Left to itself libzstd takes 8 GiB for nothing at all, when it is to look rarely for what is far away.
    #[test]
    #[cfg_attr(miri, ignore = "Miri cannot call C")]
    fn little_data_takes_little_memory_at_any_level() {
        for level in -7..=12 {
            for data in [&b""[..], b"a", &[7; 100_000]] {
                let options = WriteOptions::default().with_level(level);
                let mut encoder = encoder(data.len(), &options).unwrap();
                let mut out = Vec::with_capacity(compress_bound(data.len()));
                encoder.compress2(&mut out, data).unwrap();
                assert!(encoder.sizeof() < 16 << 20, "{level} {} {}", data.len(), encoder.sizeof());
            }
        }
    }
}
