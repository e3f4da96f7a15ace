//! Versions, compression methods and their codecs.

use core::fmt;

use codecs::Codec;

/// The version of a compressed bundle's header.
///
/// Clang wrote version 1 in LLVM 18, version 2 in LLVM 19 to 21, and writes version 3 since LLVM 22.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Version {
    /// No total size; a 32-bit uncompressed size.
    V1,
    /// Total and uncompressed size of 32 bits.
    V2,
    /// Total and uncompressed size of 64 bits.
    V3,
}

impl Version {
    /// Returns the version with this number, if there is one.
    #[must_use]
    pub const fn from_number(number: u16) -> Option<Self> {
        match number {
            1 => Some(Self::V1),
            2 => Some(Self::V2),
            3 => Some(Self::V3),
            _ => None,
        }
    }

    /// Returns the number as it stands in the header: 1, 2 or 3.
    #[must_use]
    pub const fn number(self) -> u16 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
            Self::V3 => 3,
        }
    }

    /// Returns the size of the header in bytes, which is the offset of the payload: 20, 24 or 32.
    #[must_use]
    pub const fn header_len(self) -> usize {
        match self {
            Self::V1 => 20,
            Self::V2 => 24,
            Self::V3 => 32,
        }
    }
}

/// The number.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.number(), f)
    }
}

/// The compression method of a payload: the number in the header, whether known or not.
///
/// Exhaustive: it is the number that the format stores, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method(pub u16);

impl Method {
    /// One zlib stream (RFC 1950).
    pub const ZLIB: Self = Self(0);
    /// One Zstandard frame (RFC 8878).
    pub const ZSTD: Self = Self(1);

    /// Returns the method with this [`name`](Self::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "zlib" => Some(Self::ZLIB),
            "zstd" => Some(Self::ZSTD),
            _ => None,
        }
    }

    /// Returns the name of a known method, as Clang prints it: `zlib` or `zstd`.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::ZLIB => Some("zlib"),
            Self::ZSTD => Some("zstd"),
            _ => None,
        }
    }

    /// Returns the name of the library that reads and writes this method in this build; `None` if there is none:
    ///
    /// - `miniz_oxide`: zlib in Rust, levels 0 to 10.
    /// - `ruzstd`: Zstandard in Rust. Reads everything; writes at one level, about libzstd's first.
    /// - `libzstd`: Zstandard in C, all levels, worker threads, long-distance matching; with both Zstandard codecs
    ///   compiled in, this is the one.
    #[must_use]
    pub const fn codec(self) -> Option<&'static str> {
        match self.known() {
            Some(codec) => codec.library(),
            None => None,
        }
    }

    /// Returns the codec of a known method, which a build may lack.
    pub(crate) const fn known(self) -> Option<Codec> {
        match self {
            Self::ZLIB => Some(Codec::Zlib),
            Self::ZSTD => Some(Codec::Zstd),
            _ => None,
        }
    }
}

/// Returns the default of the Clang Offload Bundler: Zstandard where it is compiled in, else zlib.
impl Default for Method {
    fn default() -> Self {
        if Self::ZSTD.codec().is_none() && Self::ZLIB.codec().is_some() {
            Self::ZLIB
        } else {
            Self::ZSTD
        }
    }
}

/// The name, or the number of a method without one.
impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => fmt::Display::fmt(&self.0, f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn numbers_and_versions_convert_in_both_directions() {
        for number in (0..=u16::MAX).take(if cfg!(miri) { 100 } else { usize::MAX }) {
            match Version::from_number(number) {
                Some(version) => assert_eq!(version.number(), number),
                None => assert!(!(1..=3).contains(&number)),
            }
        }
    }

    #[test]
    fn methods_print_their_name_or_number() {
        assert_eq!(Method::ZLIB.to_string(), "zlib");
        assert_eq!(Method::ZSTD.to_string(), "zstd");
        assert_eq!(Method(7).to_string(), "7");
        for method in (0..9).map(Method) {
            let back = method.name().and_then(Method::from_name);
            assert_eq!(back, method.name().map(|_| method));
        }
        assert_eq!(Method::from_name("ZLIB"), None);
    }

    #[test]
    fn codecs_follow_the_features() {
        assert_eq!(Method::ZLIB.codec().is_some(), cfg!(feature = "miniz_oxide"));
        assert_eq!(Method::ZSTD.codec().is_some(), cfg!(any(feature = "zstd", feature = "ruzstd")));
        #[cfg(feature = "zstd")]
        assert_eq!(Method::ZSTD.codec(), Some("libzstd"));
        assert_eq!(Method(2).codec(), None);
    }
}
