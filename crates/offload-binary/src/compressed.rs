//! Compressed binaries: their headers made and read.

use alloc::format;

use crate::compressed_header::CompressedBinary;
use crate::error::{Error, ErrorKind};
use crate::validate;
use crate::wire::HEADER_V3_LEN;

impl CompressedBinary {
    /// Creates a binary of `entries` entries and `inflated_size` bytes (header included), whose bytes after the
    /// header are compressed to `stream_len` bytes.
    ///
    /// # Errors
    ///
    /// [`Malformed`](crate::ErrorKind::Malformed) for sizes that no plain binary has,
    /// [`EmptyStream`](crate::ErrorKind::EmptyStream), and [`Limit`](crate::ErrorKind::Limit) for a stream whose end exceeds
    /// 64 bits.
    pub fn new(inflated_size: u64, entries: u64, stream_len: u64) -> Result<Self, Error> {
        let size = HEADER_V3_LEN.checked_add(stream_len).ok_or_else(|| {
            let message = format!("compressed offload binary has a stream of {stream_len} bytes");
            Error::new(ErrorKind::Limit, message + ", which no size in a header holds")
        })?;
        let binary = Self { size, inflated_size, entries };
        validate::compressed(&binary, HEADER_V3_LEN)?;
        Ok(binary)
    }

    /// Reads the header of the binary that starts with the first byte of `prefix`, the first `prefix.len()` of
    /// `available` bytes. `None` if the binary is plain, which
    /// [`OffloadBinary::parse_prefix`](crate::OffloadBinary::parse_prefix) reads.
    ///
    /// # Errors
    ///
    /// Errors of headers of [`OffloadBinary::parse_prefix`](crate::OffloadBinary::parse_prefix), and
    /// [`Incomplete`](crate::ErrorKind::Incomplete) if `prefix` does not hold the header.
    pub fn parse_prefix(prefix: &[u8], available: u64) -> Result<Option<Self>, Error> {
        validate::head(prefix, available).map(|(_, _, compressed)| compressed)
    }
}
