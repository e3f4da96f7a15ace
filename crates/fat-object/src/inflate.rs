//! Deflate streams without a size (RFC 1951).

use std::io;
use std::ops::Range;

use crate::source::Source;

/// A stream that was decoded.
pub(crate) struct Inflated {
    pub(crate) bytes: Vec<u8>,
    /// The number of its compressed bytes.
    pub(crate) consumed: u64,
}

/// The reason why a stream was not decoded to its end.
pub(crate) struct Fault {
    pub(crate) reason: &'static str,
    /// The number of bytes that it gave before.
    pub(crate) inflated: u64,
}

/// Returns the first bytes that a stream gives, at most `max`; fewer if `stream` ends early or is not a stream.
#[cfg(feature = "miniz_oxide")]
pub(crate) fn start(stream: &[u8], max: usize) -> Vec<u8> {
    match miniz_oxide::inflate::decompress_to_vec_with_limit(stream, max) {
        Ok(bytes) => bytes,
        Err(error) => error.output,
    }
}

#[cfg(not(feature = "miniz_oxide"))]
pub(crate) fn start(_: &[u8], _: usize) -> Vec<u8> {
    Vec::new()
}

/// Decodes the stream at the start of a window, to at most `max` bytes.
#[cfg(feature = "miniz_oxide")]
pub(crate) fn all(
    source: &mut Source<'_>,
    window: &Range<u64>,
    max: u64,
) -> io::Result<Result<Inflated, Fault>> {
    use miniz_oxide::inflate::TINFLStatus;
    use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags};

    /// Compressed bytes that are read at a time, and bytes that are made room for at first.
    const PIECE: u64 = 64 << 10;
    let mut decoder = DecompressorOxide::new();
    let mut bytes = Vec::new();
    let (mut written, mut at) = (0, window.start);
    let fault = |reason, written| Ok(Err(Fault { reason, inflated: written as u64 }));
    loop {
        let end = at + PIECE.min(window.end - at);
        let piece = source.range(&(at..end))?;
        let mut used = 0;
        loop {
            let flags = inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF
                | if end < window.end { inflate_flags::TINFL_FLAG_HAS_MORE_INPUT } else { 0 };
            let (_, input) = piece.split_at(used);
            let (status, read, wrote) = decompress(&mut decoder, input, &mut bytes, written, flags);
            used += read;
            written += wrote;
            match status {
                TINFLStatus::Done => {
                    bytes.truncate(written);
                    let consumed = at + used as u64 - window.start;
                    return Ok(Ok(Inflated { bytes, consumed }));
                }
                TINFLStatus::NeedsMoreInput if end < window.end => break,
                TINFLStatus::HasMoreOutput => {
                    let room = max.min((2 * bytes.len() as u64).max(PIECE));
                    let Ok(room) = usize::try_from(room) else {
                        return fault("there is not enough memory", written);
                    };
                    if room <= bytes.len() {
                        return fault("it gives more bytes than may be decompressed", written);
                    }
                    if bytes.try_reserve_exact(room - bytes.len()).is_err() {
                        return fault("there is not enough memory", written);
                    }
                    bytes.resize(room, 0);
                }
                TINFLStatus::NeedsMoreInput | TINFLStatus::FailedCannotMakeProgress => {
                    return fault("it ends early", written);
                }
                _ => return fault("it is malformed", written),
            }
        }
        at += used as u64;
    }
}

#[cfg(not(feature = "miniz_oxide"))]
#[expect(clippy::unnecessary_wraps, reason = "the signature with a decoder")]
pub(crate) fn all(
    _: &mut Source<'_>,
    _: &Range<u64>,
    _: u64,
) -> io::Result<Result<Inflated, Fault>> {
    Ok(Err(Fault { reason: "no decoder for deflate was built in", inflated: 0 }))
}
