//! Heads of Metal libraries: their sizes, and the systems that they are for.
//!
//! Apple documents no format. Two published readings agree on this layout, and the bitcode in libraries for macOS 13.0, 14.0, 15.0 and
//! 26.2, iOS 18.2 and its simulator names the same systems and versions.

use core::fmt;

use zerocopy::little_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Head of a Metal library.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
struct Head {
    magic: [u8; 4],
    /// 0x8001 on macOS, 1 elsewhere.
    platform: U16,
    format_major: U16,
    format_minor: U16,
    /// Program, Core Image, dynamic library, companion of symbols.
    kind: u8,
    /// Number of the system in Mach-O files, with the highest bit set; 0 in old libraries.
    system: u8,
    system_major: U16,
    system_minor: U16,
    /// Size in bytes of the library.
    size: U64,
    /// Offset of the list of functions; its size, and three more lists follow.
    functions: U64,
}

const MAGIC: [u8; 4] = *b"MTLB";

/// Returns the size of a Metal library that `head` starts and that lies in `available` bytes.
pub(crate) fn size(head: &[u8], available: u64) -> Option<u64> {
    const HEADER: u64 = 88;
    let (header, _) = Head::ref_from_prefix(head).ok()?;
    let (size, functions) = (header.size.get(), header.functions.get());
    let is_sound = (HEADER..=available).contains(&size) && functions >= HEADER && functions < size;
    is_sound.then_some(size)
}

/// System that a Metal library is for, with its oldest version.
///
/// Its [`Display`](fmt::Display) form is a text for people: `macOS 15.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MetalPlatform {
    system: System,
    version: (u16, u16),
}

/// Number of a system in Mach-O files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum System {
    MacOs = 1,
    Ios = 2,
    TvOs = 3,
    WatchOs = 4,
    IosSimulator = 7,
    TvOsSimulator = 8,
    WatchOsSimulator = 9,
}

impl System {
    const ALL: [Self; 7] = [
        Self::MacOs,
        Self::Ios,
        Self::TvOs,
        Self::WatchOs,
        Self::IosSimulator,
        Self::TvOsSimulator,
        Self::WatchOsSimulator,
    ];

    /// Returns the system with this number in the head of a library.
    fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|system| *system as u8 | 0x80 == number)
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::MacOs => "macOS",
            Self::Ios => "iOS",
            Self::TvOs => "tvOS",
            Self::WatchOs => "watchOS",
            Self::IosSimulator => "iOS Simulator",
            Self::TvOsSimulator => "tvOS Simulator",
            Self::WatchOsSimulator => "watchOS Simulator",
        }
    }
}

impl MetalPlatform {
    /// Returns the system that a Metal library states which starts with these bytes; 32 are enough. `None` for other formats, for
    /// libraries that state none, and for systems that are not known.
    ///
    /// ```
    /// use device_code::MetalPlatform;
    ///
    /// let mut head = b"MTLB\x01\x80\x02\0\x08\0\0\x81\x0f\0\0\0".to_vec();
    /// head.resize(32, 0);
    /// assert_eq!(MetalPlatform::of(&head).unwrap().to_string(), "macOS 15.0");
    /// ```
    #[must_use]
    pub fn of(head: &[u8]) -> Option<Self> {
        const MACOS: u16 = 0x8001;
        const OTHERS: u16 = 1;
        let (header, _) = Head::ref_from_prefix(head).ok()?;
        let system = System::of(header.system)?;
        let platform = if system == System::MacOs { MACOS } else { OTHERS };
        let version = (header.system_major.get(), header.system_minor.get());
        let is_stated = header.magic == MAGIC && header.platform == platform && version.0 > 0;
        is_stated.then_some(MetalPlatform { system, version })
    }

    /// Returns the name of the system.
    #[must_use]
    pub fn system(&self) -> &'static str {
        self.system.as_str()
    }

    /// Returns major and minor version of the system.
    #[must_use]
    pub fn version(&self) -> (u16, u16) {
        self.version
    }
}

impl fmt::Display for MetalPlatform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.version;
        write!(f, "{} {major}.{minor}", self.system())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use super::*;

    /// Heads of published libraries, and the systems that their bitcode names.
    const PUBLISHED: [(&[u8; 16], &str); 6] = [
        (b"MTLB\x01\x80\x02\0\x07\0\0\x81\x0d\0\0\0", "macOS 13.0"),
        (b"MTLB\x01\x80\x02\0\x07\0\0\x81\x0e\0\0\0", "macOS 14.0"),
        (b"MTLB\x01\x80\x02\0\x08\0\0\x81\x0f\0\0\0", "macOS 15.0"),
        (b"MTLB\x01\x80\x02\0\x09\0\0\x81\x1a\0\x02\0", "macOS 26.2"),
        (b"MTLB\x01\0\x02\0\x07\0\0\x82\x12\0\x02\0", "iOS 18.2"),
        (b"MTLB\x01\0\x02\0\x07\0\0\x87\x12\0\x02\0", "iOS Simulator 18.2"),
    ];

    fn head(start: &[u8; 16]) -> Vec<u8> {
        let mut head = start.to_vec();
        head.resize(32, 0);
        head
    }

    #[test]
    fn published_libraries_state_their_systems() {
        for (start, system) in PUBLISHED {
            let platform = MetalPlatform::of(&head(start)).unwrap();
            assert_eq!(platform.to_string(), system);
            assert!(system.starts_with(platform.system()));
            assert!(platform.version().0 >= 13);
        }
    }

    #[test]
    fn nothing_is_said_of_what_is_not_known() {
        let sound = PUBLISHED[0].0;
        // Another magic, another platform, an old library without a system, a system of the future, no version.
        for (at, byte) in [(0, b'm'), (5, 0), (11, 0), (11, 0x8b), (12, 0)] {
            let mut start = *sound;
            start[at] = byte;
            assert_eq!(MetalPlatform::of(&head(&start)), None, "{at}");
        }
        assert_eq!(MetalPlatform::of(&sound[..]), None);
        assert_eq!(MetalPlatform::of(b""), None);
    }
}
