//! Codecs of payloads, and decompression.

use alloc::format;
use alloc::vec::Vec;

use codecs::Input;

use crate::error::{Error, ErrorKind};
use crate::kinds::Codec;

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

    /// Returns the codec of a payload that can be decompressed.
    fn known(self) -> Option<codecs::Codec> {
        match self {
            Codec::Lz4 => Some(codecs::Codec::Lz4),
            Codec::Zstd => Some(codecs::Codec::Zstd),
            Codec::Zlib => Some(codecs::Codec::Zlib),
            Codec::Scrambled | Codec::Unknown => None,
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
        self.known().ok_or_else(|| Error::codec(self))?;
        // Headers and the last block, beside what expands.
        let most = u128::from(stored) * u128::from(self.most_expansion()) + (256 << 10);
        if u128::from(size) > most {
            return Err(self.malformed(stored, size, None));
        }
        Ok(())
    }

    /// Returns the error of a payload that does not become as many bytes as it should.
    #[cold]
    fn malformed(self, stored: u64, expected: u64, found: Option<u64>) -> Error {
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
        let mut code = Vec::new();
        self.decompress_into(payload, size, &mut code)?;
        Ok(code)
    }

    /// Decompresses a payload as [`decompress`](Self::decompress) does, to the start of memory that several payloads use one after
    /// the other. It grows where it is too small.
    ///
    /// # Errors
    ///
    /// Errors of [`decompress`](Self::decompress). The memory has any bytes then.
    pub fn decompress_into(
        self,
        payload: &[u8],
        size: u64,
        memory: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let stored = payload.len() as u64;
        self.check(stored, size)?;
        let codec = self.known().ok_or_else(|| Error::codec(self))?;
        let input = Input::new(payload, size);
        // Bytes after a zlib stream are ignored.
        let input = if self == Codec::Zlib { input.with_trailing() } else { input };
        let part = usize::try_from(size).ok().and_then(|size| memory.get_mut(..size));
        let decoded = match part {
            Some(part) => codec.decompress_into(&input, part, &mut |_| {}).map(drop),
            // The codec checks what the payload can expand to before it takes memory. Memory that is too small is given back first.
            None => {
                *memory = Vec::new();
                codec.decompress(&input, &mut |_| {}).map(|(code, _)| *memory = code)
            }
        };
        decoded.map_err(|error| match error.kind() {
            codecs::ErrorKind::NoCodec => Error::codec(self),
            codecs::ErrorKind::Memory(_) => Error::out_of_memory(size),
            codecs::ErrorKind::TooShort(found) => self.malformed(stored, size, Some(found)),
            codecs::ErrorKind::ContentSize(found) if found < size => {
                self.malformed(stored, size, Some(found))
            }
            _ => self.malformed(stored, size, None),
        })
    }
}
