//! Codecs of payloads, and decompression.

use alloc::format;
use alloc::vec::Vec;

use crate::error::{Error, ErrorKind};
use crate::kinds::Codec;
use crate::to_u64;

impl Codec {
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
            return Err(Error::codec(self));
        }
        // Headers and the last block, beside what expands.
        if size > stored.saturating_mul(self.most_expansion()).saturating_add(256 << 10) {
            return Err(self.malformed(stored, size, None));
        }
        Ok(())
    }

    /// Returns the error of a payload that does not become as many bytes as it should.
    #[cold]
    fn malformed(self, stored: u64, expected: u64, found: Option<usize>) -> Error {
        let found = found.map(|found| format!(", found {found}")).unwrap_or_default();
        let message = format!(
            "malformed {self} data: expected {expected} bytes from the {stored} stored{found}"
        );
        Error::new(ErrorKind::Codec, message)
    }

    /// Decompresses a payload to `size` bytes. Memory is taken for no more than the payload can expand to.
    ///
    /// # Errors
    ///
    /// Errors of [`Entry::decompress`](crate::Entry::decompress), except the limit.
    pub fn decompress(self, payload: &[u8], size: u64) -> Result<Vec<u8>, Error> {
        let stored = to_u64(payload.len());
        self.check(stored, size)?;
        let len = usize::try_from(size).map_err(|_| Error::out_of_memory(size))?;
        let mut code = Vec::new();
        code.try_reserve_exact(len).map_err(|_| Error::out_of_memory(size))?;
        code.resize(len, 0);
        let found = match self {
            Codec::Lz4 => lz4_flex::block::decompress_into(payload, &mut code).ok(),
            Codec::Zstd => zstd(payload, &mut code)?,
            _ => zlib(payload, &mut code)?,
        };
        match found {
            Some(found) if found == len => Ok(code),
            found => Err(self.malformed(stored, size, found)),
        }
    }
}

/// Decompresses Zstandard frames; `None` if they are faulty or longer than `code`.
#[cfg(feature = "zstd")]
#[allow(clippy::unnecessary_wraps, reason = "other builds have no codec")]
fn zstd(payload: &[u8], code: &mut [u8]) -> Result<Option<usize>, Error> {
    Ok(zstd::bulk::decompress_to_buffer(payload, code).ok())
}

#[cfg(all(feature = "ruzstd", not(feature = "zstd")))]
#[allow(clippy::unnecessary_wraps, reason = "other builds have no codec")]
fn zstd(payload: &[u8], code: &mut [u8]) -> Result<Option<usize>, Error> {
    let mut decoder = ruzstd::decoding::FrameDecoder::new();
    decoder.set_max_window_size(to_u64(code.len()).max(8 << 20));
    Ok(decoder.decode_all(payload, code).ok())
}

#[cfg(not(any(feature = "ruzstd", feature = "zstd")))]
fn zstd(_: &[u8], _: &mut [u8]) -> Result<Option<usize>, Error> {
    Err(Error::codec(Codec::Zstd))
}

/// Decompresses a zlib stream; `None` if it is faulty or longer than `code`.
#[cfg(feature = "miniz_oxide")]
#[allow(clippy::unnecessary_wraps, reason = "other builds have no codec")]
fn zlib(payload: &[u8], code: &mut [u8]) -> Result<Option<usize>, Error> {
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
fn zlib(_: &[u8], _: &mut [u8]) -> Result<Option<usize>, Error> {
    Err(Error::codec(Codec::Zlib))
}
