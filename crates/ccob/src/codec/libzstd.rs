//! Zstandard by libzstd.

use alloc::vec::Vec;

use zstd::zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd::zstd_safe::{CCtx, CParameter, DCtx, InBuffer, OutBuffer, max_c_level, min_c_level};

use super::zstd_frame::{Frame, damaged};
use super::{Input, reserve_total};
use crate::header::to_u64;
use crate::{Error, Fault, Method, WriteOptions};

/// libzstd's own default, which Clang takes.
const DEFAULT_LEVEL: i32 = 3;

/// Input bytes per job. Jobs do not see each other's data, so small ones compress badly: on
/// bundles of many similar code objects the default costs a quarter, and this nothing. It is the
/// job size, not the number of workers, that decides about the bytes written.
const JOB_SIZE: u32 = 64 << 20;

/// libzstd's code for a checksum that does not match, `ZSTD_error_checksum_wrong`.
const CHECKSUM_WRONG: usize = 22;
/// `ZSTD_error_dstSize_tooSmall`.
const OUTPUT_TOO_SMALL: usize = 70;

pub(super) fn decode(input: &Input<'_>) -> Result<(Vec<u8>, usize), Error> {
    let frame = Frame::parse(input)?;
    let stream = input.stream.get(..frame.len).unwrap_or_default();
    let mut context =
        DCtx::try_create().ok_or(Error::OutOfMemory { size: input.uncompressed_size })?;

    // At once into memory of the final size, which the blocks of the frame have vouched for: no
    // window, no copy.
    let mut out = Vec::new();
    reserve_total(&mut out, input.output_len()?)?;
    context.decompress(&mut out, stream).map_err(|code| match 0_usize.wrapping_sub(code) {
        OUTPUT_TOO_SMALL => Error::OutputTooLong { expected: input.uncompressed_size },
        CHECKSUM_WRONG => input.bad_stream(Method::ZSTD, frame.blocks_end, Fault::Checksum),
        _ => damaged(input),
    })?;
    input.check_output(out.len())?;
    Ok((out, frame.len))
}

pub(super) fn encode(data: &[u8], options: &WriteOptions, out: &mut Vec<u8>) -> Result<(), Error> {
    let no_context = Error::EncoderFailed { method: Method::ZSTD };
    let failed = |_| Error::EncoderFailed { method: Method::ZSTD };
    let level = options.level.unwrap_or(DEFAULT_LEVEL).clamp(min_c_level(), max_c_level());
    let mut context = CCtx::try_create().ok_or(no_context)?;
    for parameter in [
        CParameter::CompressionLevel(level),
        CParameter::EnableLongDistanceMatching(true),
        CParameter::NbWorkers(options.threads.max(1)),
        CParameter::JobSize(JOB_SIZE),
    ] {
        context.set_parameter(parameter).map_err(failed)?;
    }
    // So that the frame records its size, and decoders can make room at once.
    context.set_pledged_src_size(Some(to_u64(data.len()))).map_err(failed)?;

    let mut input = InBuffer::around(data);
    loop {
        let len = out.len();
        let room = (data.len() / 8).clamp(64 << 10, 8 << 20);
        out.try_reserve(room)
            .map_err(|_| Error::OutOfMemory { size: to_u64(len.saturating_add(room)) })?;
        let mut output = OutBuffer::around_pos(out, len);
        let left = context
            .compress_stream2(&mut output, &mut input, ZSTD_EndDirective::ZSTD_e_end)
            .map_err(failed)?;
        if left == 0 {
            return Ok(());
        }
    }
}
