//! Options of compression and decompression.

use crate::method::{Method, Version};

/// The most bytes that a compressed bundle may expand to by default: 2 GiB.
pub const MAX_UNCOMPRESSED: u64 = 2 << 30;

/// Options of [`compress`](crate::compress()).
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
    pub(crate) as_clang: bool,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            version: Version::V3,
            method: Method::default(),
            level: None,
            threads: 1,
            as_clang: false,
        }
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

    /// Takes clang's parameters of libzstd in place of ours, on one thread: the same release of libzstd gives the bytes that clang
    /// gives. `false` by default.
    #[must_use]
    pub fn with_clang_parameters(mut self, as_clang: bool) -> Self {
        self.as_clang = as_clang;
        self
    }

    /// Returns whether clang's parameters of libzstd are taken in place of ours.
    ///
    /// ```
    /// let options = ccob::WriteOptions::default();
    /// assert!(!options.clang_parameters());
    /// assert!(options.with_clang_parameters(true).clang_parameters());
    /// ```
    #[must_use]
    pub fn clang_parameters(&self) -> bool {
        self.as_clang
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

/// Options of [`decompress`](crate::decompress()).
///
/// ```
/// use ccob::ReadOptions;
///
/// let options = ReadOptions::default().with_max_decompressed(64 << 20);
/// assert!(options.verify_hash());
/// ```
#[derive(Clone, Debug)]
pub struct ReadOptions {
    pub(crate) max_decompressed: u64,
    pub(crate) verify_hash: bool,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { max_decompressed: MAX_UNCOMPRESSED, verify_hash: true }
    }
}

impl ReadOptions {
    /// Sets the most bytes that a compressed bundle may expand to. Default: [`MAX_UNCOMPRESSED`].
    ///
    /// A container of a few kilobytes may honestly expand to gigabytes, so the limit is the caller's choice. It is
    /// checked before anything is allocated.
    #[must_use]
    pub fn with_max_decompressed(mut self, max_decompressed: u64) -> Self {
        self.max_decompressed = max_decompressed;
        self
    }

    /// Sets whether data with another hash than its header says is an error. Default: `true`. LLVM ignores the hash.
    ///
    /// Without, callers can compare [`hash`](crate::hash()) with [`Header::hash`](crate::Header::hash) themselves.
    #[must_use]
    pub fn with_verify_hash(mut self, verify_hash: bool) -> Self {
        self.verify_hash = verify_hash;
        self
    }

    /// Returns the most bytes that a compressed bundle may expand to.
    #[must_use]
    pub fn max_decompressed(&self) -> u64 {
        self.max_decompressed
    }

    /// Returns whether data with another hash than its header says is an error.
    #[must_use]
    pub fn verify_hash(&self) -> bool {
        self.verify_hash
    }
}
