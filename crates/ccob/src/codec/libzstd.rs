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

/// The level from which on workers help. Below, one thread compresses nearly as fast as another
/// one hashes, and workers, who copy what they read and forget at the start of each job what they
/// saw, only cost.
const WORTH_WORKERS: i32 = 10;

/// Input bytes per job of a worker. Jobs do not see each other's data, so small ones compress
/// badly: on bundles of many similar code objects the default costs a quarter. It is the job size,
/// not the number of workers, that decides about the bytes written.
const JOB_SIZE: u32 = 128 << 20;

/// The shortest match that the long-distance matcher looks for, and the level from which on this
/// is better than the default of 64: what is shorter the ordinary matcher mostly finds as well,
/// for fewer bits. Bundles become smaller, and are compressed faster.
const LONG_MATCH: (i32, u32) = (3, 128);

/// Where to look for long matches in data of so many bytes and more: only for very long ones, and from every 256th
/// place on average instead of every 128th. Bundles of that size have the code for one GPU after the other, much
/// alike over long stretches; they become smaller by it, and take two thirds of the time.
const LARGE: usize = 128 << 20;
const LARGE_LONG_MATCH: u32 = 256;
const LARGE_HASH_RATE_LOG: u32 = 8;

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

pub(super) fn encode(data: &[u8], options: &WriteOptions, out: &mut Vec<u8>) -> Result<(), Error> {
    let no_context = Error::EncoderFailed { method: Method::ZSTD };
    let failed = |_| Error::EncoderFailed { method: Method::ZSTD };
    let level = options.level.unwrap_or(DEFAULT_LEVEL).clamp(min_c_level(), max_c_level());
    let mut context = CCtx::try_create().ok_or(no_context)?;
    let mut set = |parameter| context.set_parameter(parameter).map(drop).map_err(failed);
    set(CParameter::CompressionLevel(level))?;
    set(CParameter::EnableLongDistanceMatching(true))?;
    let (from, length) = LONG_MATCH;
    if (from..WORTH_WORKERS).contains(&level) && data.len() >= LARGE {
        set(CParameter::LdmMinMatch(LARGE_LONG_MATCH))?;
        set(CParameter::LdmHashRateLog(LARGE_HASH_RATE_LOG))?;
    } else if level >= from {
        set(CParameter::LdmMinMatch(length))?;
    }
    if level >= WORTH_WORKERS {
        set(CParameter::NbWorkers(options.threads.max(1)))?;
        set(CParameter::JobSize(JOB_SIZE))?;
    }
    // So that the frame records its size, and decoders can make room at once.
    context.set_pledged_src_size(Some(to_u64(data.len()))).map_err(failed)?;

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
            .map_err(failed)?;
        if left == 0 {
            out.shrink_to_fit();
            return Ok(());
        }
        room = left.max(64 << 10);
    }
}
