//! zlib by `miniz_oxide`.

use alloc::boxed::Box;
use alloc::vec::Vec;

use miniz_oxide::DataFormat;
use miniz_oxide::deflate::core::{CompressorOxide, TDEFLFlush, TDEFLStatus, compress_to_output};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::{
    TINFL_FLAG_COMPUTE_ADLER32, TINFL_FLAG_PARSE_ZLIB_HEADER,
    TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF,
};
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

use super::{Input, reserve_total};
use crate::{Error, Fault, Method, WriteOptions};

/// The level that zlib itself and Clang take by default.
const DEFAULT_LEVEL: i32 = 6;
const MAX_LEVEL: i32 = 10;

/// The least to grow the result by.
const MIN_GROWTH: usize = 64 << 10;

pub(super) fn decode(input: &Input<'_>) -> Result<(Vec<u8>, usize), Error> {
    let flags = TINFL_FLAG_PARSE_ZLIB_HEADER
        | TINFL_FLAG_COMPUTE_ADLER32
        | TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
    let bad = |position, fault| input.bad_stream(Method::ZLIB, position, fault);

    let output_len = input.output_len()?;
    let mut inflater = Box::<DecompressorOxide>::default();
    let mut out = Vec::new();
    let mut written = 0_usize;
    let mut read = 0_usize;
    // Code compresses to about a third, so this is often enough at once; the claim caps it.
    let mut room = input.stream.len().saturating_mul(4).max(MIN_GROWTH).min(output_len);
    loop {
        reserve_total(&mut out, room)?;
        out.resize(room, 0);
        let rest = input.stream.get(read..).unwrap_or_default();
        let (status, more_read, more_written) =
            decompress(&mut inflater, rest, &mut out, written, flags);
        read = read.saturating_add(more_read);
        written = written.saturating_add(more_written);
        match status {
            TINFLStatus::Done => break,
            TINFLStatus::HasMoreOutput if room < output_len => {
                // As data arrives, never on the header's word alone.
                room = room.saturating_mul(2).min(output_len);
            }
            TINFLStatus::HasMoreOutput => {
                return Err(Error::OutputTooLong { expected: input.uncompressed_size });
            }
            TINFLStatus::NeedsMoreInput | TINFLStatus::FailedCannotMakeProgress => {
                return Err(bad(input.stream.len(), Fault::EndsEarly));
            }
            TINFLStatus::Adler32Mismatch => return Err(bad(read, Fault::Checksum)),
            _ => return Err(bad(read, Fault::Damaged)),
        }
    }
    input.check_end(Method::ZLIB, read)?;
    input.check_output(written)?;
    out.truncate(written);
    Ok((out, read))
}

pub(super) fn encode(data: &[u8], options: &WriteOptions, out: &mut Vec<u8>) -> Result<(), Error> {
    let level = options.level.unwrap_or(DEFAULT_LEVEL).clamp(0, MAX_LEVEL);
    let level = u8::try_from(level).unwrap_or_default();
    let mut deflater = Box::<CompressorOxide>::default();
    deflater.set_format_and_level(DataFormat::Zlib, level);

    let (status, _) = compress_to_output(&mut deflater, data, TDEFLFlush::Finish, |bytes| {
        out.extend_from_slice(bytes);
        true
    });
    match status {
        TDEFLStatus::Done => Ok(()),
        _ => Err(Error::EncoderFailed { method: Method::ZLIB }),
    }
}
