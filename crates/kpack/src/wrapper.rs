//! The wrappers of a library, by which it registers its device code.

use alloc::format;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute};

use crate::error::{Error, ErrorKind};

/// A wrapper: 24 bytes in `.hipFatBinSegment` or `.hipFatB`, which a constructor hands to HIP's runtime.
///
/// ```text
/// offset  size  fat                     split
/// 0       4     "FPIH"                  "HIPK"
/// 4       4     version, 1              the same
/// 8       8     address of the bundle   address of the marker
/// 16      8     0                       number of the code objects
/// ```
///
/// Numbers are little-endian. Source: `hip_fatbin.cpp` and `hip_platform.cpp` of ROCm's CLR (2026).
///
/// ```
/// use kpack::Wrapper;
///
/// let bytes = Wrapper::split(0x3000, 2).to_bytes();
/// assert!(bytes.starts_with(b"HIPK\x01\0\0\0"));
/// assert_eq!(Wrapper::parse(&bytes)?.index(), Some(2));
/// # Ok::<(), kpack::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrapper {
    is_split: bool,
    version: u32,
    pointer: u64,
    last: u64,
}

/// A wrapper as it lies in a file.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
struct Fields {
    /// [`Wrapper::FAT`] or [`Wrapper::SPLIT`].
    magic: [u8; 4],
    /// Version: 1.
    version: U32,
    /// Address of the bundle or marker.
    pointer: U64,
    /// Number of the code objects in packs; 0 if they are in a bundle.
    last: U64,
}

impl Wrapper {
    /// The bytes of a wrapper.
    pub const SIZE: usize = 24;
    /// The first bytes of a wrapper that leads to a bundle: the number `0x48495046`, "HIPF".
    pub const FAT: [u8; 4] = *b"FPIH";
    /// The first bytes of a wrapper that leads to a marker: the number `0x4B504948`.
    pub const SPLIT: [u8; 4] = *b"HIPK";

    /// Creates the wrapper of a bundle at this address.
    #[must_use]
    pub fn fat(bundle: u64) -> Self {
        Wrapper { is_split: false, version: 1, pointer: bundle, last: 0 }
    }

    /// Creates a wrapper whose code objects have this number in packs, of a library with its marker at this address.
    #[must_use]
    pub fn split(marker: u64, index: u32) -> Self {
        Wrapper { is_split: true, version: 1, pointer: marker, last: index.into() }
    }

    /// Parses the wrapper at the start of the bytes. Any version is read, and kept.
    ///
    /// # Errors
    ///
    /// [`Truncated`](ErrorKind::Truncated); [`Magic`](ErrorKind::Magic) for neither of the magics.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let Ok((fields, _)) = Fields::ref_from_prefix(bytes) else {
            let text = format!("wrapper: expected {} bytes, found {}", Self::SIZE, bytes.len());
            return Err(Error::new(ErrorKind::Truncated, 0, text));
        };
        let is_split = match fields.magic {
            Self::SPLIT => true,
            Self::FAT => false,
            other => {
                let other = u32::from_le_bytes(other);
                let text = format!("wrapper: expected the magic HIPF or HIPK, found {other:#010x}");
                return Err(Error::new(ErrorKind::Magic, 0, text));
            }
        };
        Ok(Wrapper {
            is_split,
            version: fields.version.get(),
            pointer: fields.pointer.get(),
            last: fields.last.get(),
        })
    }

    /// Returns whether its device code is in packs.
    #[must_use]
    pub fn is_split(&self) -> bool {
        self.is_split
    }

    /// Returns the version; the runtime refuses others than 1.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Returns the address of the bundle or marker, before relocations.
    #[must_use]
    pub fn pointer(&self) -> u64 {
        self.pointer
    }

    /// Returns the number of its code objects in packs; `None` if they are not in packs. The runtime ignores the upper half of
    /// the last word, and so does this function.
    #[must_use]
    pub fn index(&self) -> Option<u32> {
        let [a, b, c, d, ..] = self.last.to_le_bytes();
        self.is_split.then_some(u32::from_le_bytes([a, b, c, d]))
    }

    /// Returns the last word; [`index`](Self::index) is its lower half.
    #[must_use]
    pub fn last_word(&self) -> u64 {
        self.last
    }

    /// Returns the bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        transmute!(Fields {
            magic: if self.is_split { Self::SPLIT } else { Self::FAT },
            version: self.version.into(),
            pointer: self.pointer.into(),
            last: self.last.into(),
        })
    }
}
