//! Codecs of payloads, and decompression.

use alloc::vec::Vec;
use core::fmt;

use crate::error::{Error, Problem};
use crate::kinds::Flags;
use crate::to_u64;

/// The compression of an entry's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Codec {
    /// An LZ4 block: all of CUDA 11 and 12, `--compress-mode=speed` of CUDA 13.
    Lz4,
    /// A Zstandard frame: CUDA 13, and 12 since 12.8 if asked for.
    Zstd,
    /// A zlib stream. NVIDIA's tools read it; no published file has it.
    Zlib,
    /// LTO-IR that is scrambled after it was compressed. Only NVIDIA's linker reads it.
    Scrambled,
    /// A codec that is not known.
    Unknown,
}

impl Codec {
    /// Returns the codec that these flags name; `None` if the payload is not compressed.
    #[must_use]
    pub fn of(flags: Flags) -> Option<Self> {
        let codecs = [
            (Flags::SCRAMBLED, Codec::Scrambled),
            (Flags::LZ4, Codec::Lz4),
            (Flags::ZSTD, Codec::Zstd),
            (Flags::ZLIB, Codec::Zlib),
            (Flags::UNKNOWN_CODEC, Codec::Unknown),
        ];
        let compressed = Flags::CODECS.difference(Flags::SCRAMBLED);
        if !flags.intersects(compressed) {
            return None;
        }
        codecs.into_iter().find(|(flag, _)| flags.contains(*flag)).map(|(_, codec)| codec)
    }

    /// Returns the name: `lz4`, `zstd`, `zlib`, `scrambled` or `unknown`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Codec::Lz4 => "lz4",
            Codec::Zstd => "zstd",
            Codec::Zlib => "zlib",
            Codec::Scrambled => "scrambled",
            Codec::Unknown => "unknown",
        }
    }

    /// Returns the codec with this [`name`](Self::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Codec::Lz4, Codec::Zstd, Codec::Zlib, Codec::Scrambled, Codec::Unknown];
        all.into_iter().find(|codec| codec.name() == name)
    }

    /// Returns the most bytes that one stored byte can become.
    fn most_expansion(self) -> u64 {
        match self {
            Codec::Lz4 => 255,
            // A block of four bytes repeats one of them 128 KiB times.
            Codec::Zstd => 32 << 10,
            _ => 1032,
        }
    }

    /// Checks that a payload of `stored` bytes can become `size` bytes, before one of them is read.
    ///
    /// ```
    /// use nv_fatbin::Codec;
    ///
    /// assert!(Codec::Lz4.check(1000, 200_000).is_ok());
    /// assert!(Codec::Lz4.check(1000, 1 << 40).is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for what only NVIDIA decompresses, [`Codec`](crate::ErrorKind::Codec).
    pub fn check(self, stored: u64, size: u64) -> Result<(), Error> {
        if matches!(self, Codec::Scrambled | Codec::Unknown) {
            return Err(Problem::Codec { codec: self }.into());
        }
        // Headers and the last block, beside what expands.
        if size > stored.saturating_mul(self.most_expansion()).saturating_add(256 << 10) {
            return Err(Problem::Stream { codec: self, stored, expected: size, found: None }.into());
        }
        Ok(())
    }

    /// Decompresses a payload to `size` bytes. Memory is taken for no more than the payload can expand to.
    ///
    /// # Errors
    ///
    /// Those of [`Entry::decompress`](crate::Entry::decompress), but for the limit.
    pub fn decompress(self, payload: &[u8], size: u64) -> Result<Vec<u8>, Error> {
        let stored = to_u64(payload.len());
        self.check(stored, size)?;
        let len = usize::try_from(size).map_err(|_| Problem::OutOfMemory { size })?;
        let mut code = Vec::new();
        code.try_reserve_exact(len).map_err(|_| Problem::OutOfMemory { size })?;
        code.resize(len, 0);
        let found = match self {
            Codec::Lz4 => lz4_flex::block::decompress_into(payload, &mut code).ok(),
            Codec::Zstd => zstd(payload, &mut code)?,
            _ => zlib(payload, &mut code)?,
        };
        match found {
            Some(found) if found == len => Ok(code),
            found => {
                let found = found.map(to_u64);
                Err(Problem::Stream { codec: self, stored, expected: size, found }.into())
            }
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Decompresses Zstandard frames; `None` if they are faulty or longer than `code`.
#[cfg(feature = "zstd")]
#[allow(clippy::unnecessary_wraps, reason = "other builds have no codec")]
fn zstd(payload: &[u8], code: &mut [u8]) -> Result<Option<usize>, Problem> {
    Ok(zstd::bulk::decompress_to_buffer(payload, code).ok())
}

#[cfg(all(feature = "ruzstd", not(feature = "zstd")))]
#[allow(clippy::unnecessary_wraps, reason = "other builds have no codec")]
fn zstd(payload: &[u8], code: &mut [u8]) -> Result<Option<usize>, Problem> {
    let mut decoder = ruzstd::decoding::FrameDecoder::new();
    decoder.set_max_window_size(to_u64(code.len()).max(8 << 20));
    Ok(decoder.decode_all(payload, code).ok())
}

#[cfg(not(any(feature = "ruzstd", feature = "zstd")))]
fn zstd(_: &[u8], _: &mut [u8]) -> Result<Option<usize>, Problem> {
    Err(Problem::Codec { codec: Codec::Zstd })
}

/// Decompresses a zlib stream; `None` if it is faulty or longer than `code`.
#[cfg(feature = "miniz_oxide")]
#[allow(clippy::unnecessary_wraps, reason = "other builds have no codec")]
fn zlib(payload: &[u8], code: &mut [u8]) -> Result<Option<usize>, Problem> {
    use miniz_oxide::inflate::TINFLStatus;
    use miniz_oxide::inflate::core::inflate_flags::*;
    use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

    let flags = TINFL_FLAG_PARSE_ZLIB_HEADER
        | TINFL_FLAG_COMPUTE_ADLER32
        | TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
    let mut inflater = alloc::boxed::Box::<DecompressorOxide>::default();
    let (status, _, written) = decompress(&mut inflater, payload, code, 0, flags);
    Ok((status == TINFLStatus::Done).then_some(written))
}

#[cfg(not(feature = "miniz_oxide"))]
fn zlib(_: &[u8], _: &mut [u8]) -> Result<Option<usize>, Problem> {
    Err(Problem::Codec { codec: Codec::Zlib })
}
