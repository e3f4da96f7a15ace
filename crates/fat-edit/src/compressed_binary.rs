//! Offload binaries of version 3, compressed: their body becomes one stream.

use byte_parts::Source;
use ccob::{Method, WriteOptions};
use fat_object::Error;
use offload_binary::{CompressedBinary, FormatVersion, OffloadBinary};

/// The level at which LLVM compresses offload binaries with Zstandard if none is asked for.
const DEFAULT_ZSTD_LEVEL: i32 = 5;

/// Compresses an uncompressed offload binary of version 3, which `plain` starts with. The result is padded to a multiple of 8 bytes, so
/// that another offload binary can follow it. It decompresses to the same bytes, unless entries do not follow the header
/// directly: such an offload binary, which no tool writes, is laid out again.
///
/// ```
/// use fat_edit::compress_offload_binary;
/// use fat_object::decompress_offload_binary;
/// use offload_binary::{FormatVersion, ImageEntry};
///
/// # if ccob::Method::default().codec().is_none() { return Ok(()); }
/// let entry = ImageEntry::new(4).with_string("arch", "gfx90a");
/// let plain = offload_binary::layout(FormatVersion::V3, &[entry])?.to_vec(&[b"code"])?;
/// let compressed = compress_offload_binary(&plain, &ccob::WriteOptions::default())?;
/// assert_eq!(decompress_offload_binary(&compressed, 1 << 20)?, plain);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Without a level, Zstandard has 5, as in LLVM, and zlib 6. The version of the options means nothing here.
///
/// # Errors
///
/// [`Error::offload_binary`] if `plain` is not such an offload binary:
/// [`Version`](offload_binary::ErrorKind::Version) of another version,
/// [`Compressed`](offload_binary::ErrorKind::Compressed) of a compressed one. [`Error::ccob`] if the codec fails, or
/// is not compiled in.
pub fn compress_offload_binary(plain: &[u8], options: &WriteOptions) -> Result<Vec<u8>, Error> {
    let binary = OffloadBinary::parse(plain)?;
    let version = binary.version();
    if version != FormatVersion::V3 {
        return Err(offload_binary::Error::unsupported_version(version).into());
    }
    let mut source = Source::of_bytes(plain);
    let entries_at =
        plain.get(16..24).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
    if entries_at != Some(version.header_len()) {
        // The header of a compressed offload binary cannot say that entries start elsewhere.
        let plain = offload_binary::convert(&source.range(&(0..binary.size()))?, version)?;
        return compress_offload_binary(&plain, options);
    }
    let body = source.range(&(version.header_len()..binary.size()))?;
    let mut options = options.clone();
    if options.method() == Method::ZSTD {
        let level = options.level().unwrap_or(DEFAULT_ZSTD_LEVEL);
        options = options.with_level(level);
    }
    let stream = ccob::compress_stream(&body, &options)
        .map_err(|error| Error::of_offload_binary_stream(error.moved(version.header_len())))?;
    let (entries, stream_len) = (binary.entries().len() as u64, stream.len() as u64);
    let header = CompressedBinary::new(binary.size(), entries, stream_len)?;
    let mut out = header.header().to_vec();
    out.extend_from_slice(&stream);
    out.resize(out.len().next_multiple_of(8), 0);
    Ok(out)
}
