//! One module per codec, and the choice between them.

#![cfg_attr(
    not(any(feature = "miniz_oxide", feature = "ruzstd", feature = "zstd")),
    allow(
        dead_code,
        unreachable_code,
        unused_imports,
        unused_variables,
        clippy::ptr_arg,
        reason = "without codecs nothing is decoded"
    )
)]

use alloc::vec::Vec;

use crate::error::{Error, Fault};
use crate::header::to_u64;
use crate::method::Codec;
use crate::{Method, WriteOptions};

#[cfg(feature = "zstd")]
mod libzstd;
#[cfg(feature = "ruzstd")]
mod pure_zstd;
mod stream;
#[cfg(feature = "miniz_oxide")]
mod zlib;
#[cfg(any(feature = "ruzstd", feature = "zstd"))]
mod zstd_frame;
#[cfg(any(feature = "ruzstd", feature = "zstd"))]
mod zstd_steps;

pub(crate) use stream::Stream;

/// A compressed stream and what the header says of it.
pub(crate) struct Input<'a> {
    /// The stream, and in version 1 whatever follows it.
    pub(crate) stream: &'a [u8],
    /// Offset of the stream in the container.
    pub(crate) offset: u64,
    /// `true` if the stream has to end with `stream`.
    pub(crate) exact: bool,
    /// Expected length of the result; within the caller's limits.
    pub(crate) uncompressed_size: u64,
}

impl Input<'_> {
    /// Returns a position in the stream, from the start of the container.
    pub(crate) fn at(&self, position: usize) -> u64 {
        self.offset.saturating_add(to_u64(position))
    }

    fn bad_stream(&self, method: Method, position: usize, fault: Fault) -> Error {
        Error::of_stream(method, self.at(position), fault)
    }

    /// Checks where the stream ends.
    fn check_end(&self, method: Method, position: usize) -> Result<(), Error> {
        if self.exact && position != self.stream.len() {
            let fault = Fault::TrailingBytes { end: self.at(self.stream.len()) };
            return Err(self.bad_stream(method, position, fault));
        }
        Ok(())
    }

    /// Checks that exactly as much came out as the header says.
    fn check_output(&self, len: usize) -> Result<(), Error> {
        let found = to_u64(len);
        let expected = self.uncompressed_size;
        match found.cmp(&expected) {
            core::cmp::Ordering::Less => Err(Error::output_too_short(expected, found)),
            core::cmp::Ordering::Equal => Ok(()),
            core::cmp::Ordering::Greater => Err(Error::output_too_long(expected)),
        }
    }

    /// Returns the size of the result as this machine counts memory.
    fn output_len(&self) -> Result<usize, Error> {
        let size = self.uncompressed_size;
        usize::try_from(size).map_err(|_| Error::out_of_memory(size))
    }
}

/// Makes room for `total` bytes in total.
fn reserve_total(out: &mut Vec<u8>, total: usize) -> Result<(), Error> {
    out.try_reserve_exact(total.saturating_sub(out.len()))
        .map_err(|_| Error::out_of_memory(to_u64(total)))
}

/// Decodes one stream; returns the data and the length of the stream. A codec that works in steps
/// shows what there is after each to `grown`.
#[cfg_attr(not(feature = "zstd"), allow(unused_variables, reason = "only libzstd works in steps"))]
pub(crate) fn decode(
    method: Method,
    input: &Input<'_>,
    grown: &mut dyn FnMut(&[u8]),
) -> Result<(Vec<u8>, usize), Error> {
    match method.library() {
        #[cfg(feature = "miniz_oxide")]
        Some(Codec::MinizOxide) => zlib::decode(input),
        #[cfg(feature = "ruzstd")]
        Some(Codec::Ruzstd) => pure_zstd::decode(input),
        #[cfg(feature = "zstd")]
        Some(Codec::Libzstd) => libzstd::decode(input, grown),
        _ => Err(Error::no_codec(method)),
    }
}

/// Decodes as [`decode`] does, into `out`, which has the length of the result. Returns the length of the stream.
#[cfg_attr(not(feature = "zstd"), allow(unused_variables, reason = "only libzstd works in steps"))]
pub(crate) fn decode_into(
    method: Method,
    input: &Input<'_>,
    out: &mut [u8],
    grown: &mut dyn FnMut(&[u8]),
) -> Result<usize, Error> {
    match method.library() {
        #[cfg(feature = "miniz_oxide")]
        Some(Codec::MinizOxide) => zlib::decode_into(input, out),
        #[cfg(feature = "ruzstd")]
        Some(Codec::Ruzstd) => pure_zstd::decode_into(input, out),
        #[cfg(feature = "zstd")]
        Some(Codec::Libzstd) => libzstd::decode_into(input, out, grown),
        _ => Err(Error::no_codec(method)),
    }
}

/// Appends `data`, compressed, to `out`.
pub(crate) fn encode(
    method: Method,
    data: &[u8],
    options: &WriteOptions,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    match method.library() {
        #[cfg(feature = "miniz_oxide")]
        Some(Codec::MinizOxide) => zlib::encode(data, options, out),
        #[cfg(feature = "ruzstd")]
        Some(Codec::Ruzstd) => {
            pure_zstd::encode(data, options, out);
            Ok(())
        }
        #[cfg(feature = "zstd")]
        Some(Codec::Libzstd) => libzstd::encode(data, options, out),
        _ => Err(Error::no_codec(method)),
    }
}

#[cfg(test)]
mod tests;
