//! zlib by `miniz_oxide`.

use alloc::boxed::Box;
use alloc::vec::Vec;

use miniz_oxide::deflate::core::{CompressorOxide, TDEFLFlush, TDEFLStatus, compress_to_output};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::{
    TINFL_FLAG_COMPUTE_ADLER32, TINFL_FLAG_PARSE_ZLIB_HEADER,
    TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF,
};
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};
use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};

use crate::error::{Error, ErrorKind};
use crate::input::{Grown, Input, reserve_total, too_long};

/// The level that zlib itself takes by default.
const DEFAULT_LEVEL: i32 = 6;
const MAX_LEVEL: i32 = 10;

/// The least to grow the result by.
const MIN_GROWTH: usize = 64 << 10;

const FLAGS: u32 = TINFL_FLAG_PARSE_ZLIB_HEADER
    | TINFL_FLAG_COMPUTE_ADLER32
    | TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;

/// A decoder, and how far it is.
struct Inflater<'a> {
    input: &'a Input<'a>,
    inflater: Box<DecompressorOxide>,
    read: usize,
    written: usize,
}

impl<'a> Inflater<'a> {
    fn new(input: &'a Input<'a>) -> Self {
        Self { input, inflater: Box::default(), read: 0, written: 0 }
    }

    /// Decodes into the rest of `out`; whether the stream ends there.
    fn fill(&mut self, out: &mut [u8]) -> Result<bool, Error> {
        let ends_early = || Error::new(ErrorKind::EndsEarly, self.input.stream.len());
        let rest = self.input.stream.get(self.read..).ok_or_else(ends_early)?;
        let (status, more_read, more_written) =
            decompress(&mut self.inflater, rest, out, self.written, FLAGS);
        self.read += more_read;
        self.written += more_written;
        match status {
            TINFLStatus::Done => Ok(true),
            TINFLStatus::HasMoreOutput => Ok(false),
            TINFLStatus::NeedsMoreInput | TINFLStatus::FailedCannotMakeProgress => {
                Err(ends_early())
            }
            status => Err(Error::new(fault(status), self.read)),
        }
    }

    fn check_end(&self) -> Result<(), Error> {
        self.input.check_end(self.read)?;
        self.input.check_output(self.written)
    }
}

fn fault(status: TINFLStatus) -> ErrorKind {
    match status {
        TINFLStatus::Adler32Mismatch => ErrorKind::Checksum,
        _ => ErrorKind::Damaged,
    }
}

pub(crate) fn decode(input: &Input<'_>, _: Grown<'_>) -> Result<(Vec<u8>, usize), Error> {
    let output_len = input.output_len()?;
    let mut inflater = Inflater::new(input);
    let mut out = Vec::new();
    // Code compresses to about a third, so this is often enough at once; the claim caps it.
    let mut room = input.stream.len().saturating_mul(4).max(MIN_GROWTH).min(output_len);
    loop {
        reserve_total(&mut out, room)?;
        out.resize(room, 0);
        if inflater.fill(&mut out)? {
            break;
        }
        if room == output_len {
            return Err(too_long());
        }
        // As data arrives, never on the word of the caller alone.
        room = (room * 2).min(output_len);
    }
    inflater.check_end()?;
    out.truncate(inflater.written);
    Ok((out, inflater.read))
}

/// Decodes as [`decode`] does, into memory of the expected size.
pub(crate) fn decode_into(input: &Input<'_>, out: &mut [u8], _: Grown<'_>) -> Result<usize, Error> {
    let mut inflater = Inflater::new(input);
    if !inflater.fill(out)? {
        return Err(too_long());
    }
    inflater.check_end()?;
    Ok(inflater.read)
}

/// Decodes step by step.
pub(crate) struct Steps {
    state: Box<InflateState>,
    /// `true` if the last step filled its output, so that there may be more without further input.
    is_full: bool,
}

impl Steps {
    pub(crate) fn new() -> Self {
        Self { state: InflateState::new_boxed(DataFormat::Zlib), is_full: false }
    }

    /// Returns the number of bytes of input that the next step needs.
    pub(crate) fn needed(&self) -> usize {
        usize::from(!self.is_full)
    }

    /// Decodes from `input` to `out`: how many bytes were read and written, and whether the stream ended.
    pub(crate) fn step(
        &mut self,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<(usize, usize, bool), Error> {
        let result = inflate(&mut self.state, input, out, MZFlush::None);
        self.is_full = result.bytes_written == out.len();
        let ended = match result.status {
            Ok(status) => status == MZStatus::StreamEnd,
            // Without input nothing is left.
            Err(MZError::Buf) => false,
            Err(_) => {
                return Err(Error::new(fault(self.state.last_status()), result.bytes_consumed));
            }
        };
        Ok((result.bytes_consumed, result.bytes_written, ended))
    }
}

/// Compresses to a stream.
pub(crate) fn encode(data: &[u8], level: i32) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    encode_code(data, Some(level), 1, &mut out)?;
    Ok(out)
}

/// Appends a stream to `out`, by a single thread.
pub(crate) fn encode_code(
    data: &[u8],
    level: Option<i32>,
    _: u32,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let level = level.unwrap_or(DEFAULT_LEVEL).clamp(0, MAX_LEVEL) as u8;
    let mut deflater = Box::<CompressorOxide>::default();
    deflater.set_format_and_level(DataFormat::Zlib, level);

    let (status, _) = compress_to_output(&mut deflater, data, TDEFLFlush::Finish, |bytes| {
        out.extend_from_slice(bytes);
        true
    });
    match status {
        TDEFLStatus::Done => Ok(()),
        _ => Err(Error::new(ErrorKind::Encoder, 0)),
    }
}
