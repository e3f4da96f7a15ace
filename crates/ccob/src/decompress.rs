//! From a compressed bundle to the bundle inside it.

use alloc::format;
#[cfg(feature = "std")]
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use codecs::Input;

use crate::{Error, ErrorKind, Header, Method, ReadOptions};

/// The result of [`decompress`].
#[non_exhaustive]
pub struct Decompressed {
    /// The uncompressed data: a bundle, binary or text.
    pub data: Vec<u8>,
    /// Bytes of input that the container takes, its header included. Padding or the next
    /// container may start here.
    pub consumed: u64,
    /// The header.
    pub header: Header,
}

/// Decompresses the container that `data` starts with, and verifies its hash unless the options say otherwise.
///
/// `data` may continue after the container, with padding or another one:
/// [`Decompressed::consumed`] says where. A container of version 2 or 3 ends where its total size
/// says, and its stream has to end there too; one of version 1 ends with its stream,
/// which is all frames that follow each other if it is Zstandard.
///
/// Memory is bounded by the limit, and by what the payload can expand to: a header that promises more than the
/// blocks of its frame can hold is refused before anything is allocated, and zlib output grows as it arrives. Apart
/// from the result, libzstd needs less than 1 MiB; `ruzstd` keeps the frame's window, which in frames like Clang's
/// is as large as the result, up to 128 MiB. Time grows with the payload and what it expands to. With feature `std`
/// libzstd's large results are hashed on a second thread while they grow, by way of 4 MiB of copies.
///
/// # Errors
///
/// Errors of [`Header::parse`]; of the kinds [`Limit`](ErrorKind::Limit), [`Codec`](ErrorKind::Codec),
/// [`Memory`](ErrorKind::Memory); and for payloads that are damaged or do not fit the header of
/// [`Stream`](ErrorKind::Stream), [`EndsEarly`](ErrorKind::EndsEarly), [`TrailingData`](ErrorKind::TrailingData),
/// [`Size`](ErrorKind::Size), [`Output`](ErrorKind::Output) and [`Hash`](ErrorKind::Hash).
pub fn decompress(data: &[u8], options: &ReadOptions) -> Result<Decompressed, Error> {
    if options.verify_hash {
        verified(data, options, None)
    } else {
        decode(data, options, &mut |_| {})
    }
}

/// Decompresses as [`decompress`] does, and calls `grown` with the data so far while it grows, and once with all
/// data at the end. So it can be used while it is still being hashed, with feature `std` on a second thread.
///
/// The data that `grown` sees is not verified before this returns: discard everything derived from it if this
/// fails. It sees the whole only of a stream without fault, so then no error is left but one of the kind
/// [`Hash`](ErrorKind::Hash). Parts it sees only of libzstd, and only when there is much to do.
///
/// # Errors
///
/// Errors of [`decompress`].
pub fn decompress_growing(
    data: &[u8],
    options: &ReadOptions,
    grown: &mut dyn FnMut(&[u8]),
) -> Result<Decompressed, Error> {
    if options.verify_hash {
        return verified(data, options, Some(grown));
    }
    let decompressed = decode(data, options, grown)?;
    grown(&decompressed.data);
    Ok(decompressed)
}

/// Decompresses as [`decompress`] does, but returns the data while a second thread still hashes it. Needs feature
/// `std`.
///
/// Discard everything derived from the data if [`HashCheck::finish`] fails. The hash is always verified.
///
/// ```
/// # if ccob::Method::default().codec().is_none() { return Ok(()); }
/// let container = ccob::compress(b"bundle", &ccob::WriteOptions::default())?;
/// let (data, hash) = ccob::decompress_early(&container, &ccob::ReadOptions::default())?;
/// assert_eq!(data[..], b"bundle"[..]);
/// hash.finish()?; // it was that indeed
/// # Ok::<(), ccob::Error>(())
/// ```
///
/// # Errors
///
/// Errors of [`decompress`], except a hash that differs.
#[cfg(feature = "std")]
pub fn decompress_early(
    data: &[u8],
    options: &ReadOptions,
) -> Result<(Arc<Vec<u8>>, HashCheck), Error> {
    let mut hash = crate::hash::GrowingHash::default();
    let decompressed = decode(data, options, &mut |data| hash.grown(data))?;
    let stored = decompressed.header.hash();
    let data = Arc::new(decompressed.data);
    let computed = hash.finish_later(Arc::clone(&data));
    Ok((data, HashCheck { stored, computed }))
}

/// A comparison of data with the hash in its header that is still going on.
#[cfg(feature = "std")]
#[derive(Debug)]
pub struct HashCheck {
    stored: u64,
    computed: crate::hash::LaterHash,
}

#[cfg(feature = "std")]
impl HashCheck {
    /// Waits for the end of the comparison.
    ///
    /// # Errors
    ///
    /// The error of [`decompress`] for data with another hash than its header says.
    pub fn finish(self) -> Result<(), Error> {
        check_hash(self.stored, self.computed.finish())
    }
}

/// A function that sees the data while it grows.
type Grown<'g> = &'g mut dyn FnMut(&[u8]);

#[cfg(feature = "std")]
fn verified(
    data: &[u8],
    options: &ReadOptions,
    mut grown: Option<Grown<'_>>,
) -> Result<Decompressed, Error> {
    let mut hash = crate::hash::GrowingHash::default();
    let decompressed = decode(data, options, &mut |data| {
        hash.grown(data);
        if let Some(grown) = &mut grown {
            grown(data);
        }
    })?;
    let computed = match grown {
        Some(grown) => {
            let data = &decompressed.data;
            let ((), computed) = hash.finish_beside(data, || grown(data));
            computed
        }
        None => hash.finish(&decompressed.data),
    };
    check_hash(decompressed.header.hash(), computed)?;
    Ok(decompressed)
}

#[cfg(not(feature = "std"))]
fn verified(
    data: &[u8],
    options: &ReadOptions,
    mut grown: Option<Grown<'_>>,
) -> Result<Decompressed, Error> {
    let decompressed = decode(data, options, &mut |data| {
        if let Some(grown) = &mut grown {
            grown(data);
        }
    })?;
    if let Some(grown) = grown {
        grown(&decompressed.data);
    }
    let computed = crate::hash(&decompressed.data);
    check_hash(decompressed.header.hash(), computed)?;
    Ok(decompressed)
}

/// The data by its length.
impl fmt::Debug for Decompressed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decompressed")
            .field("data", &format_args!("{} bytes", self.data.len()))
            .field("consumed", &self.consumed)
            .field("header", &self.header)
            .finish()
    }
}

/// Compares the hash in a header with the hash of the data.
pub(crate) fn check_hash(stored: u64, computed: u64) -> Result<(), Error> {
    if stored != computed {
        let message = format!(
            "compressed bundle hash mismatch: {stored:#018x} in the header, {computed:#018x} computed"
        );
        return Err(Error::new(ErrorKind::Hash, message));
    }
    Ok(())
}

/// Decompresses a stream without the header of a compressed bundle: other formats compress their parts in the same ways.
///
/// `size` is the length of the result, which is allocated at once: check it before. Offsets in errors count from the
/// start of the stream.
///
/// ```
/// use ccob::{Header, Method, WriteOptions, compress, decompress_stream};
///
/// # if Method::default().codec().is_none() { return Ok(()); }
/// let container = compress(b"data", &WriteOptions::default())?;
/// let header = Header::parse(&container, container.len() as u64)?;
/// let stream = &container[header.header_len()..];
/// assert_eq!(decompress_stream(Method::default(), stream, 4)?, b"data");
/// # Ok::<(), ccob::Error>(())
/// ```
///
/// # Errors
///
/// Errors of [`decompress`] for payloads, and of the kind [`Codec`](ErrorKind::Codec).
pub fn decompress_stream(method: Method, stream: &[u8], size: u64) -> Result<Vec<u8>, Error> {
    let codec = method.known().ok_or_else(|| Error::no_codec(method))?;
    let decoded = codec.decompress(&Input::new(stream, size), &mut |_| {});
    Ok(decoded.map_err(|error| Error::of_codec(method, 0, size, &error))?.0)
}

/// Decompresses. Calls `grown` repeatedly with the result so far, if the codec works in steps; the last call need not
/// have all of it.
fn decode(
    data: &[u8],
    options: &ReadOptions,
    grown: &mut dyn FnMut(&[u8]),
) -> Result<Decompressed, Error> {
    let header = Header::parse(data, data.len() as u64)?;
    check_limit(&header, options)?;
    let decoded = header.codec()?.decompress(&input(&header, data)?, grown);
    let (data, stream_len) = decoded.map_err(|error| header.fault(&error))?;
    let consumed = (header.header_len() + stream_len) as u64;
    Ok(Decompressed { data, consumed, header })
}

pub(crate) fn check_limit(header: &Header, options: &ReadOptions) -> Result<(), Error> {
    let (uncompressed_size, max) = (header.uncompressed_size(), options.max_decompressed);
    if uncompressed_size > max { Err(Error::too_large(uncompressed_size, max)) } else { Ok(()) }
}

/// Returns the stream of the container at the start of `data`.
fn input<'d>(header: &Header, data: &'d [u8]) -> Result<Input<'d>, Error> {
    let available = data.len() as u64;
    let end = header.total_size().unwrap_or(available);
    let stream = usize::try_from(end)
        .ok()
        .and_then(|end| data.get(header.header_len()..end))
        .ok_or_else(|| Error::truncated(end, available))?;
    let input = Input::new(stream, header.uncompressed_size());
    Ok(if header.total_size().is_some() { input } else { input.with_trailing() })
}

/// Decompresses the container that `data` starts with into `out`, which is as long as the
/// [uncompressed size](Header::uncompressed_size) in its header, and verifies its hash. Returns the header.
///
/// The same as [`decompress`], without an allocation for the result: for loaders with memory of their own. Where this
/// fails, anything may be in `out`.
///
/// ```
/// use ccob::{Header, WriteOptions, compress, decompress_into};
///
/// # if ccob::Method::default().codec().is_none() { return Ok(()); }
/// let container = compress(b"bundle", &WriteOptions::default())?;
/// let header = Header::parse(&container, container.len() as u64)?;
/// let mut out = vec![0; header.uncompressed_size() as usize]; // check it before
/// decompress_into(&container, &mut out)?;
/// assert_eq!(out, b"bundle");
/// # Ok::<(), ccob::Error>(())
/// ```
///
/// # Errors
///
/// Errors of [`decompress`] except [`Limit`](ErrorKind::Limit), and of the kind [`Buffer`](ErrorKind::Buffer) if `out`
/// is of another length.
pub fn decompress_into(data: &[u8], out: &mut [u8]) -> Result<Header, Error> {
    let header = Header::parse(data, data.len() as u64)?;
    let (expected, found) = (header.uncompressed_size(), out.len() as u64);
    if expected != found {
        let message = format!(
            "output buffer for a compressed bundle: expected {expected} bytes, found {found}"
        );
        return Err(Error::new(ErrorKind::Buffer, message));
    }
    let computed = into_hashed(&header, &input(&header, data)?, out)?;
    check_hash(header.hash(), computed)?;
    Ok(header)
}

#[cfg(feature = "std")]
fn into_hashed(header: &Header, input: &Input<'_>, out: &mut [u8]) -> Result<u64, Error> {
    let mut hash = crate::hash::GrowingHash::default();
    let decoded = header.codec()?.decompress_into(input, out, &mut |data| hash.grown(data));
    decoded.map_err(|error| header.fault(&error))?;
    Ok(hash.finish(out))
}

#[cfg(not(feature = "std"))]
fn into_hashed(header: &Header, input: &Input<'_>, out: &mut [u8]) -> Result<u64, Error> {
    let decoded = header.codec()?.decompress_into(input, out, &mut |_| {});
    decoded.map_err(|error| header.fault(&error))?;
    Ok(crate::hash(out))
}
