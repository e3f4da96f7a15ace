//! Bounds of the work on a package.

use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, ErrorKind};

/// Bounds of the work on a package. [`Default`] suits files from anywhere.
///
/// ```
/// use gpu_packages::Options;
///
/// let options = Options::default().with_max_decompressed(16 << 30).with_max_depth(2);
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) max_decompressed: u64,
    pub(crate) max_expansion: u64,
    pub(crate) max_depth: usize,
    max_held: Option<u64>,
}

impl Options {
    /// Sets the most bytes that are decompressed in total, over all levels: 256 GiB by default.
    #[must_use]
    pub fn with_max_decompressed(self, bytes: u64) -> Self {
        Options { max_decompressed: bytes, ..self }
    }

    /// Sets the most bytes that are decompressed in total for each byte of the file, after the first gigabyte: 1100 by
    /// default, slightly more than deflate can reach.
    #[must_use]
    pub fn with_max_expansion(self, factor: u64) -> Self {
        Options { max_expansion: factor, ..self }
    }

    /// Sets the most packages in each other, the outermost included: 8 by default.
    #[must_use]
    pub fn with_max_depth(self, depth: usize) -> Self {
        Options { max_depth: depth, ..self }
    }

    /// Sets the most bytes that are held in memory at one time, over all levels: zip files in other packages, and
    /// records. By default 256 MiB, and 256 bytes for each byte of the file, but not more than 2 GiB.
    #[must_use]
    pub fn with_max_held(self, bytes: u64) -> Self {
        Options { max_held: Some(bytes), ..self }
    }

    /// Returns the most bytes that are held in memory at one time, for a file of this length.
    #[must_use]
    pub fn held_of(&self, len: u64) -> u64 {
        // Saturates far above what it is clamped to.
        let default = || len.saturating_mul(256).saturating_add(256 << 20).min(2 << 30);
        self.max_held.unwrap_or_else(default)
    }
}

impl Options {
    /// Returns the most bytes that are decompressed of a file of this length.
    pub(crate) fn most_of(&self, len: u64) -> u64 {
        // A factor of the caller may allow more than there can be.
        let expanded = len.saturating_mul(self.max_expansion).saturating_add(1 << 30);
        self.max_decompressed.min(expanded)
    }
}

impl Default for Options {
    fn default() -> Self {
        Options { max_decompressed: 256 << 30, max_expansion: 1100, max_depth: 8, max_held: None }
    }
}

/// A number of decompressed bytes that are left, shared by threads.
#[derive(Debug)]
pub(crate) struct Allowance {
    limit: u64,
    left: AtomicU64,
}

impl Allowance {
    pub(crate) fn new(limit: u64) -> Self {
        Allowance { limit, left: AtomicU64::new(limit) }
    }

    pub(crate) fn of(options: &Options, len: u64) -> Self {
        Self::new(options.most_of(len))
    }

    fn take(&self, bytes: u64) -> Result<(), Error> {
        let taken = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        match taken {
            Ok(_) => Ok(()),
            Err(_) => {
                let text =
                    format!("decompressing more would exceed the limit of {} bytes", self.limit);
                Err(Error::new(ErrorKind::Limit, text))
            }
        }
    }

    /// Returns the bytes that are left.
    pub(crate) fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// Counts what is read.
    pub(crate) fn count<R: Read>(&self, reader: R) -> Counted<'_, R> {
        Counted { reader, allowance: self }
    }
}

/// A reader of decompressed bytes.
pub(crate) struct Counted<'a, R> {
    reader: R,
    allowance: &'a Allowance,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buf)?;
        self.allowance.take(read as u64)?;
        Ok(read)
    }
}
