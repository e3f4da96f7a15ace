//! Kind, flags and architecture of an entry.

use core::fmt;

/// The kind of code in an entry.
///
/// A number without a constant is kept as it is.
///
/// Exhaustive: it is the number that the format stores, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind(pub u16);

impl Kind {
    /// PTX, NVIDIA's assembler text; a NUL ends it.
    pub const PTX: Self = Self(1);
    /// A cubin: an ELF file for one architecture.
    pub const ELF: Self = Self(2);
    /// A cubin as text, of the first releases of CUDA.
    pub const TEXT_CUBIN: Self = Self(4);
    /// LTO-IR, which NVIDIA's linker compiles.
    pub const LTO_IR: Self = Self(8);
    /// An index, as `nvFatbinAddIndex` adds.
    pub const INDEX: Self = Self(0x20);
    /// PTX of relocatable device code, for the linker in the driver.
    pub const RELOCATABLE_PTX: Self = Self(0x40);
    /// Tile IR, since CUDA 13.1.
    pub const TILE_IR: Self = Self(0x80);
    /// Several images that are compressed as one stream: see [`Entry::concatenated`](crate::Entry::concatenated).
    pub const CONCATENATED: Self = Self(0x100);

    /// Returns the name that `fatbinary` takes or `cuobjdump` prints: `ptx`, `elf`, `cubin`, `nvvm`, `index`, `reloc`, `tileir`
    /// or `concat`. `None` for an unknown number.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::PTX => "ptx",
            Self::ELF => "elf",
            Self::TEXT_CUBIN => "cubin",
            Self::LTO_IR => "nvvm",
            Self::INDEX => "index",
            Self::RELOCATABLE_PTX => "reloc",
            Self::TILE_IR => "tileir",
            Self::CONCATENATED => "concat",
            _ => return None,
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "kind {:#x}", self.0),
        }
    }
}

bitflags::bitflags! {
    /// The flags of an entry. Bits without a name are kept.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Flags: u64 {
        /// For a host with addresses of 64 bits.
        const BITS_64 = 0x1;
        /// Has debug information (`-g`).
        const DEBUG = 0x2;
        /// Made for CUDA.
        const CUDA = 0x4;
        /// Made for OpenCL.
        const OPENCL = 0x8;
        /// For a Linux host.
        const LINUX = 0x10;
        /// For a macOS host.
        const MACOS = 0x20;
        /// For a Windows host.
        const WINDOWS = 0x40;
        /// The payload is a zlib stream.
        const ZLIB = 0x1000;
        /// The payload is an LZ4 block.
        const LZ4 = 0x2000;
        /// The payload is compressed by a codec that is not known.
        const UNKNOWN_CODEC = 0x4000;
        /// The payload is a Zstandard frame.
        const ZSTD = 0x8000;
        /// The payload is LTO-IR, scrambled after it was compressed.
        const SCRAMBLED = 0x1_0000;
        /// For this architecture only: `sm_90a`.
        const ARCHITECTURE_SPECIFIC = 0x10_0000;
        /// For this architecture and later ones of its family: `sm_100f`.
        const FAMILY_SPECIFIC = 0x20_0000;
        /// The options are a copy of the cubin's section `.nv.compat`.
        const COMPAT = 0x100_0000;

        const _ = !0;
    }
}

/// The architecture that an entry names. It prints as `sm_90a`, for PTX too, as in NVIDIA's tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Architecture {
    pub(crate) sm: u32,
    pub(crate) suffix: &'static str,
}

impl Flags {
    /// Flags that name a codec.
    pub(crate) const CODECS: Self = Self::ZLIB
        .union(Self::LZ4)
        .union(Self::UNKNOWN_CODEC)
        .union(Self::ZSTD)
        .union(Self::SCRAMBLED);
}

impl Architecture {
    /// Returns the architecture with this name; names of PTX (`compute_90`) too.
    ///
    /// ```
    /// use nv_fatbin::Architecture;
    ///
    /// let named = |name| Architecture::from_name(name).map(|found| (found.sm(), found.suffix()));
    /// assert_eq!(named("sm_90a"), Some((90, "a")));
    /// assert_eq!(named("compute_100f"), Some((100, "f")));
    /// assert_eq!(named("90"), None);
    /// ```
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.strip_prefix("sm_").or_else(|| name.strip_prefix("compute_"))?;
        let (number, suffix) = match name.strip_suffix(['a', 'f']) {
            Some(number) if name.ends_with('a') => (number, "a"),
            Some(number) => (number, "f"),
            None => (name, ""),
        };
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        Some(Architecture { sm: number.parse().ok()?, suffix })
    }

    /// Returns whether PTX with this `.target` may be stored for the architecture: the same, or an earlier one without a
    /// suffix.
    ///
    /// ```
    /// use nv_fatbin::Architecture;
    ///
    /// let takes = |name, target| Some(Architecture::from_name(name)?.takes(Architecture::from_name(target)?));
    /// assert_eq!(takes("compute_90", "sm_80"), Some(true));
    /// assert_eq!(takes("compute_90a", "sm_90a"), Some(true));
    /// assert_eq!(takes("compute_90", "sm_90a"), Some(false));
    /// assert_eq!(takes("compute_80", "sm_90"), Some(false));
    /// ```
    #[must_use]
    pub fn takes(self, target: Architecture) -> bool {
        self == target || target.suffix.is_empty() && target.sm <= self.sm
    }

    /// Returns the flag of the suffix.
    pub(crate) fn flags(self) -> Flags {
        match self.suffix {
            "a" => Flags::ARCHITECTURE_SPECIFIC,
            "f" => Flags::FAMILY_SPECIFIC,
            _ => Flags::empty(),
        }
    }

    pub(crate) fn new(sm: u32, flags: Flags) -> Self {
        let suffix = if flags.contains(Flags::ARCHITECTURE_SPECIFIC) {
            "a"
        } else if flags.contains(Flags::FAMILY_SPECIFIC) {
            "f"
        } else {
            ""
        };
        Architecture { sm, suffix }
    }

    /// Returns the SM number: 90 for `sm_90a`.
    #[must_use]
    pub fn sm(self) -> u32 {
        self.sm
    }

    /// Returns what follows the number: `a` for code that runs on this architecture only, `f` for code that runs on its
    /// family, or nothing.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        self.suffix
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}", self.sm, self.suffix)
    }
}

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
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
