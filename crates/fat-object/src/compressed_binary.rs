//! Compressed offload binaries: offload binaries of version 3 whose body is one stream.

use std::io;
use std::ops::Range;

use ccob::{Method, WriteOptions};
use offload_binary::{CompressedBinary, FormatVersion, OffloadBinary};

use crate::error::{Error, Problem};
use crate::source::Source;

/// The level at which LLVM compresses offload binaries with Zstandard if none is asked for.
const DEFAULT_ZSTD_LEVEL: i32 = 5;

/// Returns the method of a stream: Zstandard if it starts with a frame, skippable ones included, and else zlib.
///
/// LLVM takes the first frame only: to it a stream that starts with a skippable frame is not Zstandard.
fn method_of(stream: &[u8]) -> Method {
    match stream {
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Method::ZSTD,
        _ => Method::ZLIB,
    }
}

/// Decompresses an offload binary of version 3, which `data` starts with, to a plain one; an offload binary that is not compressed is
/// copied. What follows the offload binary is not looked at.
///
/// The sizes come from the file: one that exceeds `max`, in bytes, is refused before memory is reserved, and so is one
/// that the stream cannot hold. The result is checked as every offload binary is.
///
/// ```
/// use fat_object::offload_binary::{FormatVersion, ImageEntry, Layout};
/// use fat_object::{ccob, compress_offload_binary, decompress_offload_binary};
///
/// # if ccob::Method::default().codec().is_none() { return Ok(()); }
/// let entry = ImageEntry::new(4).string("arch", "gfx90a");
/// let plain = Layout::new(FormatVersion::V3, &[entry])?.to_vec(&[b"code"])?;
/// let compressed = compress_offload_binary(&plain, &ccob::WriteOptions::default())?;
/// assert_eq!(decompress_offload_binary(&compressed, 1 << 20)?, plain);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`Error::offload_binary`] for a malformed offload binary, also one that comes out of the stream, and [`Error::ccob`]
/// for a malformed stream, for one that exceeds `max`, and without a codec.
pub fn decompress_offload_binary(data: &[u8], max: u64) -> Result<Vec<u8>, Error> {
    let available = data.len() as u64;
    let Some(header) = CompressedBinary::parse_prefix(data, available)? else {
        let size = OffloadBinary::parse(data)?.size();
        return Ok(usize::try_from(size)
            .ok()
            .and_then(|end| data.get(..end))
            .map_or_else(Vec::new, <[u8]>::to_vec));
    };
    let stream = header.stream();
    let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    let stream = data.get(index(stream.start)..index(stream.end)).unwrap_or_default();
    let (_, plain) = inflate(&header, stream, max)?;
    OffloadBinary::parse(&plain)?;
    Ok(plain)
}

/// Compresses a plain offload binary of version 3, which `plain` starts with. The result is padded to a multiple of 8 bytes, so
/// that another offload binary can follow it. It decompresses to the same bytes, unless entries do not follow the header
/// directly: such an offload binary, which no tool writes, is laid out again.
///
/// Without a level, Zstandard has 5, as in LLVM, and zlib 6. [`WriteOptions::version`] is of no consequence.
///
/// # Errors
///
/// [`Error::offload_binary`] if `plain` is not such an offload binary:
/// [`Version`](offload_binary::ErrorKind::Version) of another version,
/// [`Compressed`](offload_binary::ErrorKind::Compressed) of a compressed one. [`Error::ccob`] if the codec fails, or
/// is not compiled in.
pub fn compress_offload_binary(plain: &[u8], options: &WriteOptions) -> Result<Vec<u8>, Error> {
    let package = OffloadBinary::parse(plain)?;
    let version = package.version();
    if version != FormatVersion::V3 {
        return Err(offload_binary::Error::unsupported_version(version).into());
    }
    let end = usize::try_from(package.size()).unwrap_or(usize::MAX);
    let start = usize::try_from(version.header_len()).unwrap_or(usize::MAX);
    let entries_at =
        plain.get(16..24).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
    if entries_at != Some(version.header_len()) {
        // The header of a compressed offload binary cannot say that entries start elsewhere.
        let plain = offload_binary::convert(plain.get(..end).unwrap_or_default(), version)?;
        return compress_offload_binary(&plain, options);
    }
    let body = plain.get(start..end).unwrap_or_default();
    let mut options = options.clone();
    if options.method == Method::ZSTD {
        options.level = options.level.or(Some(DEFAULT_ZSTD_LEVEL));
    }
    let stream = ccob::compress_stream(body, &options).map_err(of_stream)?;
    let (entries, stream_len) = (package.entries().len() as u64, stream.len() as u64);
    let header = CompressedBinary::new(package.size(), entries, stream_len)?;
    let mut out = header.header().to_vec();
    out.extend_from_slice(&stream);
    out.resize(out.len().next_multiple_of(8), 0);
    Ok(out)
}

/// Decompresses the offload binary at the start of the window, whose header is known. Returns its method with it.
pub(crate) fn read_plain(
    source: &mut Source<'_>,
    window: &Range<u64>,
    header: &CompressedBinary,
    max: u64,
) -> io::Result<Result<(Method, Vec<u8>), Problem>> {
    if header.inflated_size() > max {
        return Ok(Err(too_large(header, max)));
    }
    let Range { start, end } = header.stream();
    let stream = source.read_range(&(window.start + start..window.start + end))?;
    Ok(inflate(header, &stream, max))
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

fn inflate(
    header: &CompressedBinary,
    stream: &[u8],
    max: u64,
) -> Result<(Method, Vec<u8>), Problem> {
    if header.inflated_size() > max {
        return Err(too_large(header, max));
    }
    let method = method_of(stream);
    let mut plain =
        ccob::decompress_stream(method, stream, header.body_size()).map_err(of_stream)?;
    let head = header.plain_header();
    let size = header.inflated_size();
    plain.try_reserve_exact(head.len()).map_err(|_| of_stream(ccob::Error::out_of_memory(size)))?;
    plain.splice(..0, head);
    Ok((method, plain))
}

fn too_large(header: &CompressedBinary, max: u64) -> Problem {
    Problem::PackageStream(ccob::Error::too_large(header.inflated_size(), max))
}

/// The error about a stream, with offsets from the start of the offload binary.
fn of_stream(error: ccob::Error) -> Problem {
    Problem::PackageStream(error.moved(FormatVersion::V3.header_len()))
}
