//! From a bundle to a compressed bundle.

use alloc::vec::Vec;

use crate::Error;
use crate::header::{check_uncompressed_size, header_bytes};
use crate::options::WriteOptions;

/// Compresses `data`, a bundle, into a container.
///
/// The same data and options give the same bytes, on every machine and with any number of threads; another codec,
/// or another version of it, may give others. With feature `std` large data is hashed on a second thread meanwhile.
/// Apart from the result, the codecs hold their tables; libzstd, from level 10 on, also a copy of the data, and for
/// large data 192 MiB for each worker plus three times as much.
///
/// # Errors
///
/// [`Method`](crate::ErrorKind::Method), [`Codec`](crate::ErrorKind::Codec), [`Limit`](crate::ErrorKind::Limit) if
/// a size exceeds 32 bits in version 1 or 2, and [`Memory`](crate::ErrorKind::Memory).
pub fn compress(data: &[u8], options: &WriteOptions) -> Result<Vec<u8>, Error> {
    let WriteOptions { version, method, .. } = *options;
    let uncompressed_size = data.len() as u64;
    check_uncompressed_size(version, uncompressed_size)?;

    // The payload is written after room for the header, so that nothing has to move later.
    let mut out = alloc::vec![0; version.header_len()];
    let (encoded, hash) = alongside_hash(data, || encode(data, options, &mut out));
    encoded?;

    let header = header_bytes(version, method, out.len() as u64, uncompressed_size, hash)?;
    if let Some(room) = out.get_mut(..header.len()) {
        room.copy_from_slice(&header);
    }
    Ok(out)
}

/// Compresses `data` to a stream without the header of a compressed bundle: other formats compress their parts in the
/// same ways. [`WriteOptions::version`] is of no consequence.
///
/// ```
/// use ccob::{Method, WriteOptions, compress_stream, decompress_stream};
///
/// # if Method::default().codec().is_none() { return Ok(()); }
/// let stream = compress_stream(b"data", &WriteOptions::default())?;
/// assert_eq!(decompress_stream(Method::default(), &stream, 4)?, b"data");
/// # Ok::<(), ccob::Error>(())
/// ```
///
/// # Errors
///
/// [`Method`](crate::ErrorKind::Method), [`Codec`](crate::ErrorKind::Codec) and
/// [`Memory`](crate::ErrorKind::Memory).
pub fn compress_stream(data: &[u8], options: &WriteOptions) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    encode(data, options, &mut out)?;
    Ok(out)
}

/// Appends `data`, compressed, to `out`.
fn encode(data: &[u8], options: &WriteOptions, out: &mut Vec<u8>) -> Result<(), Error> {
    let method = options.method;
    let codec = method.known().ok_or_else(|| Error::no_codec(method))?;
    let encoded = if options.as_clang {
        codec.compress_as_clang(data, options.level, out)
    } else {
        codec.compress_code(data, options.level, options.threads, out)
    };
    encoded.map_err(|error| Error::of_codec(method, 0, data.len() as u64, &error))
}

/// Runs `work` and hashes `data`: MD5 takes about half as long as fast compression, so at once.
#[cfg(feature = "std")]
fn alongside_hash<T>(data: &[u8], work: impl FnOnce() -> T) -> (T, u64) {
    crate::hash::GrowingHash::default().finish_beside(data, work)
}

#[cfg(not(feature = "std"))]
fn alongside_hash<T>(data: &[u8], work: impl FnOnce() -> T) -> (T, u64) {
    (work(), crate::hash(data))
}
