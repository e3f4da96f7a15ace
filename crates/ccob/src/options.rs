//! Options of compression.

use crate::method::{Method, Version};

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
