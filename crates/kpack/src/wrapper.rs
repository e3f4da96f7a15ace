//! The wrappers of a library, by which it registers its device code.

use alloc::format;

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
        let Some(bytes) = bytes.first_chunk::<{ Wrapper::SIZE }>() else {
            let text = format!("wrapper: expected {} bytes, found {}", Self::SIZE, bytes.len());
            return Err(Error::new(ErrorKind::Truncated, 0, text));
        };
        let [m0, m1, m2, m3, v0, v1, v2, v3, rest @ ..] = *bytes;
        let is_split = match [m0, m1, m2, m3] {
            Self::SPLIT => true,
            Self::FAT => false,
            other => {
                let other = u32::from_le_bytes(other);
                let text = format!("wrapper: expected the magic HIPF or HIPK, found {other:#010x}");
                return Err(Error::new(ErrorKind::Magic, 0, text));
            }
        };
        let [p0, p1, p2, p3, p4, p5, p6, p7, last @ ..] = rest;
        Ok(Wrapper {
            is_split,
            version: u32::from_le_bytes([v0, v1, v2, v3]),
            pointer: u64::from_le_bytes([p0, p1, p2, p3, p4, p5, p6, p7]),
            last: u64::from_le_bytes(last),
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
        let mut bytes = [0; Self::SIZE];
        let magic = if self.is_split { Self::SPLIT } else { Self::FAT };
        let fields = magic.into_iter().chain(self.version.to_le_bytes());
        let fields = fields.chain(self.pointer.to_le_bytes()).chain(self.last.to_le_bytes());
        bytes.iter_mut().zip(fields).for_each(|(to, from)| *to = from);
        bytes
    }
}
