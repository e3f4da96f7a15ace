//! The forms in which code is stored, and compression.

use alloc::borrow::Cow;
use alloc::string::ToString;
use alloc::vec::Vec;

use codecs::Codec;

use crate::error::{Error, ErrorKind};
use crate::kinds::{Flags, Kind};
use crate::number::number;

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
            Compression::Lz4(level) => (Cow::Owned(compress(Codec::Lz4, code, level)?), Flags::LZ4),
            Compression::Zstd(level) => (Cow::Owned(zstd(code, level)?), Flags::ZSTD),
        };
        let (compressed_size, size) = if codec.is_empty() {
            (0, 0)
        } else {
            (number("compressed code", payload.len())?, code.len() as u64)
        };
        Ok(Stored { payload, codec, compressed_size, size })
    }
}

/// Compresses to a block of LZ4, or to one Zstandard frame with its size and without a checksum.
fn compress(codec: Codec, code: &[u8], level: i32) -> Result<Vec<u8>, Error> {
    codec.compress(code, level).map_err(|error| match error.kind() {
        codecs::ErrorKind::Encoder => Error::too_large("code", code.len()),
        codecs::ErrorKind::Memory(size) => Error::out_of_memory(size),
        kind => Error::new(ErrorKind::Unsupported, kind.to_string()),
    })
}

fn zstd(code: &[u8], level: i32) -> Result<Vec<u8>, Error> {
    if Codec::Zstd.library() != Some("libzstd") {
        let message = "this build cannot compress with zstd: it lacks libzstd";
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    compress(Codec::Zstd, code, level)
}
