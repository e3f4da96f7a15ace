//! Kind and producer of an image.

use core::fmt;

/// The format of a device image (`ImageKind` of LLVM's offload binary).
///
/// A number without a constant is kept as it is.
///
/// Exhaustive: it is the number that the format stores, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageKind(pub u16);

impl ImageKind {
    /// No image, or nothing known about it.
    pub const NONE: Self = Self(0);
    /// A relocatable or linked object file.
    pub const OBJECT: Self = Self(1);
    /// LLVM bitcode.
    pub const BITCODE: Self = Self(2);
    /// A CUDA device object.
    pub const CUBIN: Self = Self(3);
    /// A CUDA fat binary.
    pub const FATBINARY: Self = Self(4);
    /// CUDA assembler text.
    pub const PTX: Self = Self(5);
    /// A SPIR-V module, since LLVM 21.
    pub const SPIRV: Self = Self(6);

    /// Returns the kind in one word of ours, LLVM has none: `none`, `object`, `bitcode`, `cubin`, `fatbinary`,
    /// `ptx` or `spir-v`. `None` for an unknown number.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::NONE => "none",
            Self::OBJECT => "object",
            Self::BITCODE => "bitcode",
            Self::CUBIN => "cubin",
            Self::FATBINARY => "fatbinary",
            Self::PTX => "ptx",
            Self::SPIRV => "spir-v",
            _ => return None,
        })
    }

    /// Returns the kind with this [`name`](Self::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "none" => Self::NONE,
            "object" => Self::OBJECT,
            "bitcode" => Self::BITCODE,
            "cubin" => Self::CUBIN,
            "fatbinary" => Self::FATBINARY,
            "ptx" => Self::PTX,
            "spir-v" => Self::SPIRV,
            _ => return None,
        })
    }

    /// Returns the file name extension, without the dot, that LLVM's `llvm-offload-binary` gives an
    /// extracted image of this kind; `None` where it has no extension to give.
    #[must_use]
    pub const fn extension(self) -> Option<&'static str> {
        Some(match self {
            Self::OBJECT => "o",
            Self::BITCODE => "bc",
            Self::CUBIN => "cubin",
            Self::FATBINARY => "fatbin",
            Self::PTX => "s",
            Self::SPIRV => "spv",
            _ => return None,
        })
    }

    /// Returns the kind that an image says itself by its first four bytes: [`BITCODE`](Self::BITCODE) for
    /// LLVM bitcode, raw (`BC C0 DE`) or wrapped (`DE C0 17 0B`). LLVM's packager looks for
    /// nothing else in an image, and other magics do not decide: cubins are ELF files as well.
    #[must_use]
    pub fn from_magic(prefix: &[u8]) -> Option<Self> {
        match prefix.first_chunk()? {
            b"BC\xc0\xde" | b"\xde\xc0\x17\x0b" => Some(Self::BITCODE),
            _ => None,
        }
    }
}

/// The name, or the number of a kind without one.
impl fmt::Display for ImageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display(f, self.name(), self.0)
    }
}

/// The programming model that produced a device image (`OffloadKind` of LLVM's offload binary).
///
/// A number without a constant is kept as it is. LLVM 21 turned the enumeration into a bit mask
/// and gave HIP a new number: see [`HIP_LEGACY`](Self::HIP_LEGACY).
///
/// Exhaustive: it is the number that the format stores, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OffloadKind(pub u16);

impl OffloadKind {
    /// No offloading information.
    pub const NONE: Self = Self(0);
    /// OpenMP target offloading.
    pub const OPENMP: Self = Self(1);
    /// CUDA.
    pub const CUDA: Self = Self(2);
    /// HIP as LLVM 20 and older wrote it. With the bit mask of LLVM 21 and later this number
    /// would be OpenMP and CUDA together, which no tool writes.
    pub const HIP_LEGACY: Self = Self(3);
    /// HIP.
    pub const HIP: Self = Self(4);
    /// SYCL.
    pub const SYCL: Self = Self(8);

    /// Returns the kind as the `kind=` key of LLVM's packager spells it, or `None` for an unknown number.
    /// [`HIP`](Self::HIP) and [`HIP_LEGACY`](Self::HIP_LEGACY) are both `hip`.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::NONE => "none",
            Self::OPENMP => "openmp",
            Self::CUDA => "cuda",
            Self::HIP | Self::HIP_LEGACY => "hip",
            Self::SYCL => "sycl",
            _ => return None,
        })
    }

    /// Returns the kind that LLVM's packager takes `kind=name` for, in the numbers of LLVM 21 and later.
    /// `None` for a name it does not know, which LLVM silently stores as [`NONE`](Self::NONE); the `hipv4` of bundle
    /// entry IDs is such a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "none" => Self::NONE,
            "openmp" => Self::OPENMP,
            "cuda" => Self::CUDA,
            "hip" => Self::HIP,
            "sycl" => Self::SYCL,
            _ => return None,
        })
    }

    /// Returns the kind in the numbers of LLVM 21 and later: [`HIP`](Self::HIP) instead of
    /// [`HIP_LEGACY`](Self::HIP_LEGACY).
    #[must_use]
    pub const fn current(self) -> Self {
        match self {
            Self::HIP_LEGACY => Self::HIP,
            kind => kind,
        }
    }
}

/// The name, or the number of a kind without one.
impl fmt::Display for OffloadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display(f, self.name(), self.0)
    }
}

fn display(f: &mut fmt::Formatter<'_>, name: Option<&str>, number: u16) -> fmt::Result {
    match name {
        Some(name) => f.pad(name),
        None => fmt::Display::fmt(&number, f),
    }
}

bitflags::bitflags! {
    /// Flags of an entry. Bits without a constant are kept as they are.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Flags: u32 {
        /// The entry carries strings only and has no image (LLVM 23).
        const METADATA = 1;

        const _ = !0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};

    #[test]
    fn image_kinds_have_names_and_extensions() {
        let rows = [
            (0, Some("none"), None),
            (1, Some("object"), Some("o")),
            (2, Some("bitcode"), Some("bc")),
            (3, Some("cubin"), Some("cubin")),
            (4, Some("fatbinary"), Some("fatbin")),
            (5, Some("ptx"), Some("s")),
            (6, Some("spir-v"), Some("spv")),
            (7, None, None),
            (u16::MAX, None, None),
        ];
        for (number, name, extension) in rows {
            assert_eq!(ImageKind(number).name(), name, "{number}");
            assert_eq!(ImageKind(number).extension(), extension, "{number}");
            assert_eq!(name.and_then(ImageKind::from_name), name.map(|_| ImageKind(number)));
            assert_eq!(
                ImageKind(number).to_string(),
                name.map_or(number.to_string(), String::from)
            );
        }
    }

    #[test]
    fn offload_kinds_come_from_names() {
        for kind in (0..9).map(OffloadKind) {
            let back = kind.name().and_then(OffloadKind::from_name);
            assert_eq!(back, kind.name().map(|_| kind.current()));
        }
        assert_eq!(OffloadKind::from_name("HIP"), None);
    }

    #[test]
    fn offload_kinds_have_names() {
        let rows = [
            (0, Some("none")),
            (1, Some("openmp")),
            (2, Some("cuda")),
            (3, Some("hip")),
            (4, Some("hip")),
            (5, None),
            (8, Some("sycl")),
            (u16::MAX, None),
        ];
        for (number, name) in rows {
            assert_eq!(OffloadKind(number).name(), name, "{number}");
            let text = OffloadKind(number).to_string();
            assert_eq!(text, name.map_or(number.to_string(), String::from));
        }
    }

    #[test]
    fn unknown_flags_are_kept() {
        let flags = Flags::from_bits_retain(0x8000_0001);
        assert!(flags.contains(Flags::METADATA) && !Flags::METADATA.contains(flags));
        assert_eq!(alloc::format!("{flags:?}"), "Flags(METADATA | 0x80000000)");
    }
}
