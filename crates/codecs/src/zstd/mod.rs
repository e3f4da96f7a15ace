//! Zstandard (RFC 8878): the headers of frames, and streams of frames.
//!
//! [`Codec::Zstd`](crate::Codec::Zstd) decompresses data of a known size, and compresses.

#[cfg_attr(
    not(all(feature = "ruzstd", feature = "stream")),
    allow(dead_code, reason = "libzstd and whole results need less of it")
)]
mod frame;
#[cfg(all(feature = "std", any(feature = "ruzstd", feature = "zstd")))]
mod io;
#[cfg(feature = "zstd")]
pub(crate) mod libzstd;
#[cfg(feature = "ruzstd")]
#[cfg_attr(feature = "zstd", allow(dead_code, reason = "libzstd is preferred; tests compare them"))]
pub(crate) mod pure;
#[cfg(feature = "ruzstd-encoder")]
#[cfg_attr(feature = "zstd", allow(dead_code, reason = "libzstd is preferred; tests compare them"))]
mod pure_encoder;
#[cfg(all(feature = "stream", any(feature = "ruzstd", feature = "zstd")))]
pub(crate) mod steps;

#[cfg(not(any(feature = "ruzstd", feature = "zstd")))]
pub(crate) use crate::absent as library;
#[cfg(feature = "zstd")]
pub(crate) use libzstd as library;
#[cfg(all(feature = "ruzstd", not(feature = "zstd")))]
pub(crate) use pure as library;

#[cfg(all(test, feature = "stream"))]
pub(crate) use frame::checksum;
pub use frame::{FrameStart, MAGIC, content_size};
#[cfg(all(feature = "std", any(feature = "ruzstd", feature = "zstd")))]
#[cfg_attr(docsrs, doc(cfg(all(feature = "std", any(feature = "ruzstd", feature = "zstd")))))]
pub use io::{Parameters, Reader, Writer};
