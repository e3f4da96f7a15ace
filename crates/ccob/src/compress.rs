//! From a bundle to a compressed bundle.

use alloc::vec::Vec;

use crate::header::{check_uncompressed_size, header_bytes, to_u64};
use crate::{Error, Method, Version, codec};

/// Options of [`compress`].
///
/// ```
/// use ccob::{Version, WriteOptions};
///
/// let options = WriteOptions::default().with_version(Version::V2).with_level(19);
/// ```
#[derive(Clone, Debug)]
pub struct WriteOptions {
    pub(crate) version: Version,
    pub(crate) method: Method,
    pub(crate) level: Option<i32>,
    pub(crate) threads: u32,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self { version: Version::V3, method: Method::default(), level: None, threads: 1 }
    }
}

impl WriteOptions {
    /// Sets the version of the header; 3 by default.
    #[must_use]
    pub fn with_version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    /// Sets the compression method; by default Zstandard where it is compiled in, else zlib.
    #[must_use]
    pub fn with_method(mut self, method: Method) -> Self {
        self.method = method;
        self
    }

    /// Sets the compression level; `None`, the default, is what Clang takes: 3 for Zstandard, 6 for zlib.
    ///
    /// A level beyond the codec's range is moved into it, as libzstd does by itself: `miniz_oxide` has 0 to 10,
    /// libzstd from far below zero to 22. For libzstd's levels 3 to 9 the parameters are ours, chosen for code that
    /// is alike from GPU to GPU. `ruzstd` has one level, about libzstd's first, and takes it whatever is asked for;
    /// [`Method::codec`] tells which codec is at work.
    #[must_use]
    pub fn with_level(mut self, level: impl Into<Option<i32>>) -> Self {
        self.level = level.into();
        self
    }

    /// Sets the number of worker threads for libzstd, at least one; 1 by default. It uses them from level 10 on, where
    /// they pay, one for each 192 MiB; the other codecs never do. It has no influence on the bytes
    /// written.
    #[must_use]
    pub fn with_threads(mut self, threads: u32) -> Self {
        self.threads = threads;
        self
    }

    /// Returns the compression method.
    #[must_use]
    pub fn method(&self) -> Method {
        self.method
    }

    /// Returns the number of worker threads.
    #[must_use]
    pub fn threads(&self) -> u32 {
        self.threads
    }

    /// Returns the version of the header.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the compression level, if one was asked for.
    #[must_use]
    pub fn level(&self) -> Option<i32> {
        self.level
    }
}

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
    let uncompressed_size = to_u64(data.len());
    check_uncompressed_size(version, uncompressed_size)?;

    // The payload is written after room for the header, so that nothing has to move later.
    let mut out = alloc::vec![0; version.header_len()];
    let (encoded, hash) = alongside_hash(data, || codec::encode(method, data, options, &mut out));
    encoded?;

    let header = header_bytes(version, method, to_u64(out.len()), uncompressed_size, hash)?;
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
    codec::encode(options.method, data, options, &mut out)?;
    Ok(out)
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
