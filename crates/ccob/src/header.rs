//! The header: reading, checking and building it.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, IntoBytes};

use crate::wire::{HeaderV1, HeaderV2, HeaderV3, Prefix};
use crate::{Error, MAGIC, Method, Version};

use alloc::vec::Vec;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// [`Error::BadMagic`], [`Error::TruncatedHeader`], [`Error::UnsupportedVersion`],
    /// [`Error::UnsupportedMethod`], [`Error::TotalSizeTooSmall`], [`Error::Truncated`].
    pub fn parse(prefix: &[u8], available: u64) -> Result<Self, Error> {
        // Of few bytes, each has to be right: what is not, no more bytes would make a compressed bundle.
        let start = prefix.get(..MAGIC.len()).unwrap_or(prefix);
        if !MAGIC.starts_with(start) {
            let mut found = [0; MAGIC.len()];
            found.iter_mut().zip(start).for_each(|(to, from)| *to = *from);
            return Err(Error::BadMagic { found });
        }
        let have = available.min(to_u64(prefix.len()));
        let truncated =
            |needed: usize| Error::TruncatedHeader { available: have, needed: to_u64(needed) };

        let (common, _) =
            Prefix::ref_from_prefix(prefix).map_err(|_| truncated(size_of::<Prefix>()))?;
        let number = common.version.get();
        let version =
            Version::from_number(number).ok_or(Error::UnsupportedVersion { version: number })?;
        let method = Method(common.method.get());
        if method.name().is_none() {
            return Err(Error::UnsupportedMethod { method });
        }

        let header_len = version.header_len();
        if have < to_u64(header_len) {
            return Err(truncated(header_len));
        }
        let (total_size, uncompressed_size, hash) = match version {
            Version::V1 => {
                let (h, _) =
                    HeaderV1::ref_from_prefix(prefix).map_err(|_| truncated(header_len))?;
                (None, u64::from(h.uncompressed_size.get()), h.hash.get())
            }
            Version::V2 => {
                let (h, _) =
                    HeaderV2::ref_from_prefix(prefix).map_err(|_| truncated(header_len))?;
                (
                    Some(u64::from(h.total_size.get())),
                    u64::from(h.uncompressed_size.get()),
                    h.hash.get(),
                )
            }
            Version::V3 => {
                let (h, _) =
                    HeaderV3::ref_from_prefix(prefix).map_err(|_| truncated(header_len))?;
                (Some(h.total_size.get()), h.uncompressed_size.get(), h.hash.get())
            }
        };

        if let Some(total_size) = total_size {
            if total_size < to_u64(header_len) {
                return Err(Error::TotalSizeTooSmall {
                    total_size,
                    header_len: to_u64(header_len),
                });
            }
            if total_size > available {
                return Err(Error::Truncated { total_size, available });
            }
        }
        Ok(Self { version, method, total_size, uncompressed_size, hash })
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
    /// [`Error::BadMagic`], [`Error::UnsupportedVersion`].
    pub fn needed(prefix: &[u8]) -> Result<usize, Error> {
        match Self::parse(prefix, u64::MAX) {
            Err(Error::TruncatedHeader { needed, .. }) => {
                Ok(usize::try_from(needed).unwrap_or(usize::MAX))
            }
            Err(error @ (Error::BadMagic { .. } | Error::UnsupportedVersion { .. })) => Err(error),
            Ok(header) => Ok(header.header_len()),
            // Other fields are for `parse` to judge.
            Err(_) => Ok(prefix.len()),
        }
    }

    /// The version.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// The compression method of the payload: zlib or Zstandard.
    #[must_use]
    pub const fn method(&self) -> Method {
        self.method
    }

    /// Bytes of header and payload together; version 1 does not record them.
    #[must_use]
    pub const fn total_size(&self) -> Option<u64> {
        self.total_size
    }

    /// Bytes that the payload expands to. A claim: nothing is checked before decompression.
    #[must_use]
    pub const fn uncompressed_size(&self) -> u64 {
        self.uncompressed_size
    }

    /// The recorded hash, see [`hash`](crate::hash()).
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// Bytes of the header, and so the offset of the payload: 20, 24 or 32.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        self.version.header_len()
    }
}

/// Checks, before any work, that data of this length fits the version.
pub(crate) fn check_uncompressed_size(version: Version, size: u64) -> Result<(), Error> {
    if version != Version::V3 && u32::try_from(size).is_err() {
        return Err(Error::UncompressedSizeLimit { version, size });
    }
    Ok(())
}

/// The bytes of a header for a container of `total_size` bytes, the header included.
pub(crate) fn header_bytes(
    version: Version,
    method: Method,
    total_size: u64,
    uncompressed_size: u64,
    hash: u64,
) -> Result<Vec<u8>, Error> {
    let prefix =
        Prefix { magic: MAGIC, version: U16::new(version.number()), method: U16::new(method.0) };
    let small_uncompressed = u32::try_from(uncompressed_size)
        .map_err(|_| Error::UncompressedSizeLimit { version, size: uncompressed_size });
    let hash = U64::new(hash);
    Ok(match version {
        Version::V1 => Vec::from(
            HeaderV1 { prefix, uncompressed_size: U32::new(small_uncompressed?), hash }.as_bytes(),
        ),
        Version::V2 => {
            let total = u32::try_from(total_size)
                .map_err(|_| Error::TotalSizeLimit { version, size: total_size })?;
            Vec::from(
                HeaderV2 {
                    prefix,
                    total_size: U32::new(total),
                    uncompressed_size: U32::new(small_uncompressed?),
                    hash,
                }
                .as_bytes(),
            )
        }
        Version::V3 => Vec::from(
            HeaderV3 {
                prefix,
                total_size: U64::new(total_size),
                uncompressed_size: U64::new(uncompressed_size),
                hash,
            }
            .as_bytes(),
        ),
    })
}

/// `usize` is never wider than 64 bits on a target Rust has.
pub(crate) fn to_u64(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUR_GIB: u64 = 1 << 32;

    #[test]
    fn what_is_written_is_read() {
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
            let error = Error::UncompressedSizeLimit { version, size: FOUR_GIB };
            assert_eq!(check_uncompressed_size(version, FOUR_GIB), Err(error.clone()));
            assert_eq!(check_uncompressed_size(version, FOUR_GIB - 1), Ok(()));
            let bytes = header_bytes(version, Method::ZSTD, 100, FOUR_GIB, 0);
            assert_eq!(bytes, Err(error));
        }
        assert_eq!(check_uncompressed_size(Version::V3, FOUR_GIB), Ok(()));

        let write = |version| header_bytes(version, Method::ZSTD, FOUR_GIB, 1, 0).map(drop);
        let error = Error::TotalSizeLimit { version: Version::V2, size: FOUR_GIB };
        assert_eq!(write(Version::V2), Err(error));
        assert_eq!(write(Version::V1), Ok(()));
        assert_eq!(write(Version::V3), Ok(()));
    }
}
