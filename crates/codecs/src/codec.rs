//! The codecs, and the library that does the work of each.

use alloc::vec::Vec;

#[cfg(not(feature = "lz4_flex"))]
use crate::absent as lz4;
#[cfg(not(feature = "miniz_oxide"))]
use crate::absent as zlib;
use crate::error::Error;
use crate::input::Input;
#[cfg(feature = "lz4_flex")]
use crate::lz4;
#[cfg(feature = "miniz_oxide")]
use crate::zlib;
use crate::zstd::library as zstd;

/// A compression of data whose size is known.
///
/// ```
/// use codecs::{Codec, Input};
///
/// # if !cfg!(any(feature = "ruzstd-encoder", feature = "zstd")) { return Ok(()); }
/// let frame = Codec::Zstd.compress(b"code code code", 3)?;
/// let (code, read) = Codec::Zstd.decompress(&Input::new(&frame, 14), &mut |_| {})?;
/// assert_eq!((&code[..], read), (&b"code code code"[..], frame.len()));
/// # Ok::<(), codecs::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Codec {
    /// One zlib stream (RFC 1950).
    Zlib,
    /// Zstandard frames (RFC 8878).
    Zstd,
    /// One LZ4 block.
    Lz4,
}

impl Codec {
    /// Returns the name of the library that reads this codec in this build: `miniz_oxide`, `libzstd`, `ruzstd` or `lz4_flex`;
    /// `None` if there is none. The two of Zstandard read the same; with both compiled in, it is libzstd.
    #[must_use]
    pub const fn library(self) -> Option<&'static str> {
        match self {
            Codec::Zlib if cfg!(feature = "miniz_oxide") => Some("miniz_oxide"),
            Codec::Zstd if cfg!(feature = "zstd") => Some("libzstd"),
            Codec::Zstd if cfg!(feature = "ruzstd") => Some("ruzstd"),
            Codec::Lz4 if cfg!(feature = "lz4_flex") => Some("lz4_flex"),
            _ => None,
        }
    }

    /// Decompresses a stream. Returns the data and the length of the stream.
    ///
    /// Memory is bounded by the size of the input, and by what its blocks can expand to. `grown` sees the data so far, if the
    /// library works in steps; it need not see all of it.
    ///
    /// # Errors
    ///
    /// [`NoCodec`](crate::ErrorKind::NoCodec), [`Memory`](crate::ErrorKind::Memory), and the kinds of faulty streams
    /// and of sizes other than the input's.
    pub fn decompress(
        self,
        input: &Input<'_>,
        grown: &mut dyn FnMut(&[u8]),
    ) -> Result<(Vec<u8>, usize), Error> {
        match self {
            Codec::Zlib => zlib::decode(input, grown),
            Codec::Zstd => zstd::decode(input, grown),
            Codec::Lz4 => lz4::decode(input, grown),
        }
    }

    /// Decompresses as [`decompress`](Self::decompress) does, into memory of the size of the input. Returns the length of the
    /// stream.
    ///
    /// # Errors
    ///
    /// Errors of [`decompress`](Self::decompress).
    pub fn decompress_into(
        self,
        input: &Input<'_>,
        out: &mut [u8],
        grown: &mut dyn FnMut(&[u8]),
    ) -> Result<usize, Error> {
        match self {
            Codec::Zlib => zlib::decode_into(input, out, grown),
            Codec::Zstd => zstd::decode_into(input, out, grown),
            Codec::Lz4 => lz4::decode_into(input, out, grown),
        }
    }

    /// Compresses data, at a level that is clamped to those of the library: 0 to 10 for zlib, up to 22 for libzstd, 3 to 12 for
    /// liblz4. `ruzstd` and `lz4_flex` have one level. A Zstandard frame has its size and no checksum.
    ///
    /// # Errors
    ///
    /// [`NoCodec`](crate::ErrorKind::NoCodec), [`Memory`](crate::ErrorKind::Memory), [`Encoder`](crate::ErrorKind::Encoder).
    pub fn compress(self, data: &[u8], level: i32) -> Result<Vec<u8>, Error> {
        match self {
            Codec::Zlib => zlib::encode(data, level),
            Codec::Zstd => zstd::encode(data, level),
            Codec::Lz4 => lz4::encode(data, level),
        }
    }

    /// Compresses code for one GPU after the other, alike over long stretches, and appends it to `out`. `None` is the level 6 for
    /// zlib and 3 for Zstandard; blocks of LZ4 are for [`compress`](Self::compress).
    ///
    /// libzstd takes parameters of ours at the levels 3 to 9, and worker threads from level 10 on, one for each 192 MiB; their
    /// number has no influence on the bytes. `ruzstd` does not write the size of the data.
    ///
    /// # Errors
    ///
    /// Errors of [`compress`](Self::compress).
    pub fn compress_code(
        self,
        data: &[u8],
        level: Option<i32>,
        threads: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        match self {
            Codec::Zlib => zlib::encode_code(data, level, threads, out),
            Codec::Zstd => zstd::encode_code(data, level, threads, out),
            Codec::Lz4 => crate::absent::encode_code(data, level, threads, out),
        }
    }

    /// Compresses as [`compress_code`](Self::compress_code) does, with clang's parameters for libzstd: the level, and matches over long
    /// distances. The same release of libzstd gives the bytes that clang gives. Other codecs have no such parameters.
    ///
    /// # Errors
    ///
    /// Errors of [`compress`](Self::compress).
    pub fn compress_as_clang(
        self,
        data: &[u8],
        level: Option<i32>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        #[cfg(feature = "zstd")]
        if self == Codec::Zstd {
            return crate::zstd::libzstd::encode_as_clang(data, level, out);
        }
        self.compress_code(data, level, 1, out)
    }
}
