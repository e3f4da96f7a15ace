//! What an image is and who produced it.

/// The format of a device image (`ImageKind` of LLVM's offload binary).
///
/// A number without a constant is kept as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

    /// The kind in words, or `None` for an unknown number.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
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

    /// The file name extension, without the dot, that LLVM's `llvm-offload-binary` gives an
    /// extracted image of this kind; `None` where it has no extension to give.
    #[must_use]
    pub fn extension(self) -> Option<&'static str> {
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
}

/// The programming model that produced a device image (`OffloadKind` of LLVM's offload binary).
///
/// A number without a constant is kept as it is. LLVM 21 turned the enumeration into a bit mask
/// and gave HIP a new number: see [`HIP_LEGACY`](Self::HIP_LEGACY).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

    /// The kind as the `kind=` key of LLVM's packager spells it, or `None` for an unknown number.
    /// [`HIP`](Self::HIP) and [`HIP_LEGACY`](Self::HIP_LEGACY) are both `hip`.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::NONE => "none",
            Self::OPENMP => "openmp",
            Self::CUDA => "cuda",
            Self::HIP | Self::HIP_LEGACY => "hip",
            Self::SYCL => "sycl",
            _ => return None,
        })
    }
}

bitflags::bitflags! {
    /// Flags of an entry. Bits without a constant are kept as they are.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct Flags: u32 {
        /// The entry carries strings only and has no image (LLVM 23).
        const METADATA = 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        }
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
        }
    }

    #[test]
    fn unknown_flags_survive() {
        let flags = Flags::from_bits_retain(0x8000_0001);
        assert!(flags.contains(Flags::METADATA));
        assert_eq!(flags.bits(), 0x8000_0001);
    }
}
