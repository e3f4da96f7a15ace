//! The header: reading, checking and building it.

use alloc::format;
use alloc::vec::Vec;

use codecs::{Codec, Stream};
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, IntoBytes};

use crate::wire::{HeaderV1, HeaderV2, HeaderV3, PREFIX_LEN, Prefix};
use crate::{Error, ErrorKind, MAGIC, Method, Version};

/// The header of a compressed bundle, checked.
///
/// | field                  | version 1 | version 2 | version 3 |
/// |------------------------|-----------|-----------|-----------|
/// | magic `CCOB`           | 0, 4      | 0, 4      | 0, 4      |
/// | version                | 4, 2      | 4, 2      | 4, 2      |
/// | method                 | 6, 2      | 6, 2      | 6, 2      |
/// | total size with header | –         | 8, 4      | 8, 8      |
/// | uncompressed size      | 8, 4      | 12, 4     | 16, 8     |
/// | hash                   | 12, 8     | 16, 8     | 24, 8     |
/// | payload                | 20        | 24        | 32        |
///
/// Each cell is offset and width in bytes; all numbers are little-endian.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    version: Version,
    method: Method,
    total_size: Option<u64>,
    uncompressed_size: u64,
    hash: u64,
}

impl Header {
    /// Reads and checks a header.
    ///
    /// `prefix` is the beginning of the container, at least min(32, `available`) bytes of it;
    /// `available` counts the bytes from the start of the container to the end of what it lies
    /// in: a file, a section, an archive member.
    ///
    /// # Errors
    ///
    /// [`NotCompressed`](ErrorKind::NotCompressed), [`Truncated`](ErrorKind::Truncated),
    /// [`Version`](ErrorKind::Version), [`Method`](ErrorKind::Method) and, for a total size less than the header,
    /// [`Size`](ErrorKind::Size).
    pub fn parse(prefix: &[u8], available: u64) -> Result<Self, Error> {
        let have = available.min(prefix.len() as u64);
        let truncated = |needed: usize| {
            let message =
                format!("compressed bundle header is truncated: {have} bytes, {needed} needed");
            Error::new(ErrorKind::Truncated, message)
        };

        let (version, method) = Self::start(prefix)?.ok_or_else(|| truncated(PREFIX_LEN))?;
        if method.name().is_none() {
            return Err(Error::no_codec(method));
        }

        let header_len = version.header_len();
        if have < header_len as u64 {
            return Err(truncated(header_len));
        }
        let header = Self::read(version, method, prefix).ok_or_else(|| truncated(header_len))?;
        if let Some(total_size) = header.total_size {
            if total_size < header_len as u64 {
                let message = format!(
                    "compressed bundle has a total size of {total_size} bytes, less than its header of {header_len}"
                );
                return Err(Error::new(ErrorKind::Size, message));
            }
            if total_size > available {
                return Err(Error::truncated(total_size, available));
            }
        }
        Ok(header)
    }

    /// Reads a header of this version.
    fn read(version: Version, method: Method, bytes: &[u8]) -> Option<Self> {
        let (total_size, uncompressed_size, hash) = match version {
            Version::V1 => {
                let (header, _) = HeaderV1::ref_from_prefix(bytes).ok()?;
                (None, header.uncompressed_size.into(), header.hash)
            }
            Version::V2 => {
                let (header, _) = HeaderV2::ref_from_prefix(bytes).ok()?;
                (Some(header.total_size.into()), header.uncompressed_size.into(), header.hash)
            }
            Version::V3 => {
                let (header, _) = HeaderV3::ref_from_prefix(bytes).ok()?;
                (Some(header.total_size.get()), header.uncompressed_size.get(), header.hash)
            }
        };
        Some(Self { version, method, total_size, uncompressed_size, hash: hash.get() })
    }

    /// Reads the version and the method; `None` if `prefix` ends before.
    fn start(prefix: &[u8]) -> Result<Option<(Version, Method)>, Error> {
        // Every byte of a short prefix must match: more bytes cannot make a compressed bundle of a wrong one.
        let start = prefix.get(..MAGIC.len()).unwrap_or(prefix);
        if !MAGIC.starts_with(start) {
            let mut found = [0; MAGIC.len()];
            found.iter_mut().zip(start).for_each(|(to, from)| *to = *from);
            let message =
                format!("compressed bundle starts with {found:02x?} instead of the magic \"CCOB\"");
            return Err(Error::new(ErrorKind::NotCompressed, message));
        }
        let Ok((prefix, _)) = Prefix::ref_from_prefix(prefix) else { return Ok(None) };
        let number = prefix.version.get();
        let version = Version::from_number(number).ok_or_else(|| {
            let message =
                format!("compressed bundle version {number} is unknown, expected 1, 2 or 3");
            Error::new(ErrorKind::Version, message)
        })?;
        Ok(Some((version, Method(prefix.method.get()))))
    }

    /// Returns how many bytes a header has at least that starts with `prefix`: 8 before the version is known, then
    /// those of the header. Once `prefix` has as many, [`parse`](Self::parse) needs no more.
    ///
    /// For readers that must not read past the end of the container, such as those of a pointer without a length.
    ///
    /// ```
    /// let container = [&b"CCOB\x02\0\x01\0"[..], &[0; 1000]].concat();
    /// let mut len = 0;
    /// while ccob::Header::needed(&container[..len])? > len {
    ///     len = ccob::Header::needed(&container[..len])?;
    /// }
    /// assert_eq!(len, 24);
    /// # Ok::<(), ccob::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`NotCompressed`](ErrorKind::NotCompressed) and [`Version`](ErrorKind::Version).
    pub fn needed(prefix: &[u8]) -> Result<usize, Error> {
        Ok(match Self::start(prefix)? {
            None => PREFIX_LEN,
            // A method is for `parse` to judge.
            Some((_, method)) if method.name().is_none() => prefix.len(),
            Some((version, _)) => version.header_len(),
        })
    }

    /// Returns the version.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Returns the compression method of the payload: zlib or Zstandard.
    #[must_use]
    pub const fn method(&self) -> Method {
        self.method
    }

    /// Returns the number of bytes of header and payload together; version 1 does not record it.
    #[must_use]
    pub const fn total_size(&self) -> Option<u64> {
        self.total_size
    }

    /// Returns the number of bytes that the payload expands to. This is a claim: nothing is checked before
    /// decompression.
    #[must_use]
    pub const fn uncompressed_size(&self) -> u64 {
        self.uncompressed_size
    }

    /// Returns the recorded hash, see [`hash`](crate::hash()).
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the size of the header in bytes, which is the offset of the payload: 20, 24 or 32.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        self.version.header_len()
    }

    /// Returns the codec of the payload.
    pub(crate) fn codec(&self) -> Result<Codec, Error> {
        self.method.known().ok_or_else(|| Error::no_codec(self.method))
    }

    /// Returns the error of a codec in the payload.
    pub(crate) fn fault(&self, error: &codecs::Error) -> Error {
        Error::of_codec(self.method, self.header_len() as u64, self.uncompressed_size, error)
    }

    /// Returns the payload, decompressed step by step.
    pub(crate) fn stream(&self) -> Result<Stream, Error> {
        let end = self.total_size.map(|end| end - self.header_len() as u64);
        Stream::new(self.codec()?, self.uncompressed_size, end).map_err(|error| self.fault(&error))
    }
}

/// Checks, before any work, that data of this length fits the version.
pub(crate) fn check_uncompressed_size(version: Version, size: u64) -> Result<(), Error> {
    if version != Version::V3 && u32::try_from(size).is_err() {
        return Err(Error::size_limit(version, "uncompressed", size));
    }
    Ok(())
}

/// Returns the bytes of a header for a container of `total_size` bytes, the header included.
pub(crate) fn header_bytes(
    version: Version,
    method: Method,
    total_size: u64,
    uncompressed_size: u64,
    hash: u64,
) -> Result<Vec<u8>, Error> {
    let small = |what, size| {
        u32::try_from(size).map(U32::new).map_err(|_| Error::size_limit(version, what, size))
    };
    let prefix = Prefix { magic: MAGIC, version: version.number().into(), method: method.0.into() };
    let hash = hash.into();
    Ok(match version {
        Version::V1 => {
            let uncompressed_size = small("uncompressed", uncompressed_size)?;
            HeaderV1 { prefix, uncompressed_size, hash }.as_bytes().to_vec()
        }
        Version::V2 => {
            let total_size = small("total", total_size)?;
            let uncompressed_size = small("uncompressed", uncompressed_size)?;
            HeaderV2 { prefix, total_size, uncompressed_size, hash }.as_bytes().to_vec()
        }
        Version::V3 => {
            let (total_size, uncompressed_size) = (total_size.into(), uncompressed_size.into());
            HeaderV3 { prefix, total_size, uncompressed_size, hash }.as_bytes().to_vec()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUR_GIB: u64 = 1 << 32;

    #[test]
    fn written_headers_are_read_back() {
        for version in [Version::V1, Version::V2, Version::V3] {
            for method in [Method::ZLIB, Method::ZSTD] {
                let bytes = header_bytes(version, method, 100, 5000, 0x0123_4567_89AB_CDEF);
                let bytes = bytes.unwrap();
                assert_eq!(bytes.len(), version.header_len());
                let header = Header::parse(&bytes, 100).unwrap();
                assert_eq!(header.version(), version);
                assert_eq!(header.method(), method);
                let total_size = (version != Version::V1).then_some(100);
                assert_eq!(header.total_size(), total_size);
                assert_eq!(header.uncompressed_size(), 5000);
                assert_eq!(header.hash(), 0x0123_4567_89AB_CDEF);
                assert_eq!(header.header_len(), bytes.len());
            }
        }
    }

    #[test]
    fn sizes_beyond_32_bits_need_version_3() {
        for version in [Version::V1, Version::V2] {
            let error = Error::size_limit(version, "uncompressed", FOUR_GIB);
            assert_eq!(check_uncompressed_size(version, FOUR_GIB), Err(error.clone()));
            assert_eq!(check_uncompressed_size(version, FOUR_GIB - 1), Ok(()));
            let bytes = header_bytes(version, Method::ZSTD, 100, FOUR_GIB, 0);
            assert_eq!(bytes, Err(error));
        }
        assert_eq!(check_uncompressed_size(Version::V3, FOUR_GIB), Ok(()));

        let write = |version| header_bytes(version, Method::ZSTD, FOUR_GIB, 1, 0).map(drop);
        let error = Error::size_limit(Version::V2, "total", FOUR_GIB);
        assert_eq!(write(Version::V2), Err(error));
        assert_eq!(write(Version::V1), Ok(()));
        assert_eq!(write(Version::V3), Ok(()));
    }
}
