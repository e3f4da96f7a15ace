//! Compressed offload binaries: offload binaries of version 3 whose body is one stream.

use std::io;
use std::ops::Range;

use ccob::Method;
use offload_binary::{CompressedBinary, FormatVersion, OffloadBinary};

use crate::error::Error;
use crate::source::{Origin, Source};

/// Returns the method of a stream: Zstandard if it starts with a frame, skippable ones included, and else zlib.
///
/// LLVM takes the first frame only: to it a stream that starts with a skippable frame is not Zstandard.
fn method_of(stream: &[u8]) -> Method {
    match stream {
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Method::ZSTD,
        _ => Method::ZLIB,
    }
}

/// Decompresses an offload binary of version 3, which `data` starts with, to a plain one; an offload binary that is
/// not compressed is copied. Ignores the bytes after the offload binary.
///
/// The sizes come from the file: one that exceeds `max`, in bytes, is refused before memory is reserved, and so is one
/// that the stream cannot hold. The result is checked as every offload binary is.
///
/// ```
/// use fat_object::decompress_offload_binary;
/// use offload_binary::{CompressedBinary, FormatVersion, ImageEntry};
///
/// # if ccob::Method::default().codec().is_none() { return Ok(()); }
/// let entry = ImageEntry::new(4).with_string("arch", "gfx90a");
/// let plain = offload_binary::layout(FormatVersion::V3, &[entry])?.to_vec(&[b"code"])?;
/// let body = &plain[FormatVersion::V3.header_len() as usize..];
/// let stream = ccob::compress_stream(body, &ccob::WriteOptions::default())?;
/// let header = CompressedBinary::new(plain.len() as u64, 1, stream.len() as u64)?;
/// let compressed = [&header.header()[..], &stream].concat();
/// assert_eq!(decompress_offload_binary(&compressed, 1 << 20)?, plain);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`Error::offload_binary`] for a malformed offload binary, also one that comes out of the stream, and [`Error::ccob`]
/// for a malformed stream, for one that exceeds `max`, and without a codec.
pub fn decompress_offload_binary(data: &[u8], max: u64) -> Result<Vec<u8>, Error> {
    let mut source = Source::of_bytes(data, Origin::File);
    let window = 0..source.len();
    let Some(header) = CompressedBinary::parse_prefix(data, window.end)? else {
        return Ok(source.read_range(&(0..OffloadBinary::parse(data)?.size()))?);
    };
    let (_, plain) = read_plain(&mut source, &window, &header, max)??;
    OffloadBinary::parse(&plain)?;
    Ok(plain)
}

/// Decompresses the offload binary at the start of the window, whose header is known. Returns its method too.
pub(crate) fn read_plain(
    source: &mut Source<'_>,
    window: &Range<u64>,
    header: &CompressedBinary,
    max: u64,
) -> io::Result<Result<(Method, Vec<u8>), Error>> {
    if header.inflated_size() > max {
        let error = ccob::Error::too_large(header.inflated_size(), max);
        return Ok(Err(Error::of_offload_binary_stream(error)));
    }
    let Range { start, end } = header.stream();
    let stream = source.range(&(window.start + start..window.start + end))?;
    Ok(inflate(header, &stream))
}

/// Returns the method of the offload binary at the start of the window, by the first bytes of its stream.
pub(crate) fn peek_method(
    source: &mut Source<'_>,
    window: &Range<u64>,
    header: &CompressedBinary,
) -> io::Result<Method> {
    let Range { start, end } = header.stream();
    Ok(method_of(&source.peek(&(window.start + start..window.start + end), 4)?))
}

fn inflate(header: &CompressedBinary, stream: &[u8]) -> Result<(Method, Vec<u8>), Error> {
    let method = method_of(stream);
    let mut plain =
        ccob::decompress_stream(method, stream, header.body_size()).map_err(of_stream)?;
    let head = header.plain_header();
    let size = header.inflated_size();
    plain.try_reserve_exact(head.len()).map_err(|_| of_stream(ccob::Error::out_of_memory(size)))?;
    plain.splice(..0, head);
    Ok((method, plain))
}

/// Returns the error about a stream, with offsets from the start of the offload binary.
fn of_stream(error: ccob::Error) -> Error {
    Error::of_offload_binary_stream(error.moved(FormatVersion::V3.header_len()))
}
