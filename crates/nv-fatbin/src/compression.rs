//! The forms in which code is stored, and compression.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use crate::error::Error;
use crate::kinds::{Flags, Kind};
use crate::number::{number, reserve};
use crate::to_u64;

/// The form in which the code of an entry is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// As it is.
    #[default]
    None,
    /// As an LZ4 block, which every driver for CUDA 11 and later reads, of a level from 3 to 12; others are clamped. With liblz4
    /// (feature `lz4`) those of level 3 are the bytes of `fatbinary` 13.5. Without it there is one level, and larger blocks.
    Lz4(i32),
    /// As a Zstandard frame of this level, which drivers for CUDA 12.4 and later read. With libzstd 1.5.7 the bytes are those of
    /// `fatbinary` 13.5. Needs the feature `zstd`.
    Zstd(i32),
}

/// The modes of `fatbinary --compress-mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompressionMode {
    /// Zstandard of level 5, for all but most cubins: `default` and `balance`.
    #[default]
    Default,
    /// Zstandard of level 19, for everything.
    Size,
    /// LZ4 of level 3, for all but most cubins.
    Speed,
    /// Nothing is compressed.
    None,
}

impl CompressionMode {
    /// Returns how `fatbinary` 13.5 stores code of a kind. A cubin is compressed with [`Flags::DEBUG`] (`-g`), and where `all`
    /// are: with `--compress-all`, and as relocatable code (`-c`).
    ///
    /// ```
    /// use nv_fatbin::{Compression, CompressionMode, Flags, Kind};
    ///
    /// let mode = CompressionMode::Default;
    /// assert_eq!(mode.compression(Kind::PTX, Flags::empty(), false), Compression::Zstd(5));
    /// assert_eq!(mode.compression(Kind::ELF, Flags::empty(), false), Compression::None);
    /// assert_eq!(mode.compression(Kind::ELF, Flags::empty(), true), Compression::Zstd(5));
    /// ```
    #[must_use]
    pub fn compression(self, kind: Kind, flags: Flags, all: bool) -> Compression {
        let is_plain_cubin = kind == Kind::ELF && !flags.contains(Flags::DEBUG) && !all;
        match self {
            CompressionMode::Size => Compression::Zstd(19),
            CompressionMode::Default if !is_plain_cubin => Compression::Zstd(5),
            CompressionMode::Speed if !is_plain_cubin => Compression::Lz4(3),
            _ => Compression::None,
        }
    }
}

/// Code as an entry stores it.
pub(crate) struct Stored<'c> {
    pub(crate) payload: Cow<'c, [u8]>,
    /// The flag of the codec; none for code that is not compressed.
    pub(crate) codec: Flags,
    pub(crate) compressed_size: u32,
    pub(crate) size: u64,
}

impl<'c> Stored<'c> {
    pub(crate) fn new(code: &'c [u8], compression: Compression) -> Result<Self, Error> {
        let (payload, codec) = match compression {
            Compression::None => (Cow::Borrowed(code), Flags::empty()),
            Compression::Lz4(level) => (Cow::Owned(lz4(code, level)?), Flags::LZ4),
            Compression::Zstd(level) => (Cow::Owned(zstd(code, level)?), Flags::ZSTD),
        };
        let (compressed_size, size) = if codec.is_empty() {
            (0, 0)
        } else {
            (number("compressed code", payload.len())?, to_u64(code.len()))
        };
        Ok(Stored { payload, codec, compressed_size, size })
    }
}

/// Compresses to a block.
#[cfg(feature = "lz4")]
fn lz4(code: &[u8], level: i32) -> Result<Vec<u8>, Error> {
    use lz4::block::{CompressionMode, compress_bound, compress_to_buffer};

    let too_large = || Error::too_large("code", code.len());
    let most = compress_bound(code.len()).map_err(|_| too_large())?;
    let mut payload = room(most)?;
    let mode = CompressionMode::HIGHCOMPRESSION(level.clamp(3, 12));
    let len = compress_to_buffer(code, Some(mode), false, &mut payload).map_err(|_| too_large())?;
    payload.truncate(len);
    Ok(payload)
}

#[cfg(not(feature = "lz4"))]
fn lz4(code: &[u8], _: i32) -> Result<Vec<u8>, Error> {
    let most = lz4_flex::block::get_maximum_output_size(code.len());
    let mut payload = room(most)?;
    let len = lz4_flex::block::compress_into(code, &mut payload)
        .map_err(|_| Error::out_of_memory(to_u64(most)))?;
    payload.truncate(len);
    Ok(payload)
}

/// Returns a buffer of this size.
fn room(size: usize) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    reserve(&mut bytes, size)?;
    bytes.resize(size, 0);
    Ok(bytes)
}

/// Compresses to one frame with its size and without a checksum.
#[cfg(feature = "zstd")]
fn zstd(code: &[u8], level: i32) -> Result<Vec<u8>, Error> {
    let most = zstd::zstd_safe::compress_bound(code.len());
    let mut payload = room(most)?;
    let len = zstd::bulk::compress_to_buffer(code, &mut payload, level)
        .map_err(|_| Error::out_of_memory(to_u64(most)))?;
    payload.truncate(len);
    Ok(payload)
}

#[cfg(not(feature = "zstd"))]
fn zstd(_: &[u8], _: i32) -> Result<Vec<u8>, Error> {
    let message = "this build cannot compress with zstd: it lacks libzstd";
    Err(Error::new(crate::error::ErrorKind::Unsupported, message))
}
