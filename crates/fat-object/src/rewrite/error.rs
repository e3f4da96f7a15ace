//! Why bundles cannot be compressed or decompressed.

use std::io;

use crate::error::Error;
use crate::image_format::ImageFormat;

/// Why [`compress_bundles`](crate::compress_bundles) or [`decompress_bundles`](crate::decompress_bundles) stopped.
/// Offsets count from the start of the input.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RewriteError {
    /// The input cannot be read.
    #[error("cannot be read: {0}")]
    Read(io::Error),
    /// The output cannot be written.
    #[error("cannot write: {0}")]
    Write(io::Error),
    /// A bundle or compressed bundle is damaged, too large, or cannot be compressed as asked for.
    #[error("at byte {offset:#x}: {error}")]
    Bundle {
        /// Where it starts.
        offset: u64,
        /// What is wrong.
        error: Box<Error>,
    },
    /// Where a bundle is expected, something else that is known starts.
    #[error("at byte {offset:#x}: a bundle, compressed or not, expected, {format} found")]
    NotABundle {
        /// Where.
        offset: u64,
        /// What starts there, by its first bytes.
        format: ImageFormat,
    },
    /// Where a bundle is expected, something unknown starts.
    #[error("at byte {offset:#x}: a bundle, compressed or not, expected, found bytes {first:02x?}")]
    Unknown {
        /// Where.
        offset: u64,
        /// The first bytes found, at most eight.
        first: Vec<u8>,
    },
    /// A compressed bundle holds something that is no bundle.
    #[error("at byte {offset:#x}: the compressed bundle holds no bundle, but {format}")]
    HoldsNoBundle {
        /// Where the compressed bundle starts.
        offset: u64,
        /// What it holds, by its first bytes.
        format: ImageFormat,
    },
    /// A text bundle ends with its file, so that several cannot follow each other.
    #[error("at byte {offset:#x}: a text bundle can only stand alone")]
    TextNotAlone {
        /// Where the compressed bundle with the text starts.
        offset: u64,
    },
}

impl RewriteError {
    pub(crate) fn at(offset: u64, error: impl Into<Error>) -> Self {
        RewriteError::Bundle { offset, error: Box::new(error.into()) }
    }
}
