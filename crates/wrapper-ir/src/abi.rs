//! The choice of the wrapped code: the release of its runtime and compiler.

use std::fmt;

use offload_binary::OffloadKind;

/// The generation of registration code.
///
/// It has to match the compiler that made the host objects: the name of the section of their
/// entries, and the layout of the records in it, changed over time. Code of another generation links,
/// and then the runtime finds no kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Abi {
    /// AMD's AOMP compiler, whose runtime chooses images by their target IDs (the "Clang Offload Wrapper"
    /// documentation). OpenMP only. Without target IDs it is the code of LLVM 13 to 17.
    Aomp,
    /// LLVM 18.
    Llvm18,
    /// LLVM 19.
    Llvm19,
    /// LLVM 21 and 22: their registration of SYCL, no Mach-O, and `.fatbin_wrapper` as these releases have it. For all else
    /// [`Current`](Self::Current) does as well.
    Llvm22,
    /// LLVM 21 to 23. For SYCL and Mach-O, where these differ, it is LLVM 23.
    Current,
    /// LLVM 24, as of its development branch.
    Llvm24,
}

impl Abi {
    /// Every generation, oldest first.
    pub const ALL: [Self; 6] =
        [Self::Aomp, Self::Llvm18, Self::Llvm19, Self::Llvm22, Self::Current, Self::Llvm24];

    /// Returns the name that [`from_name`](Self::from_name) takes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Aomp => "aomp",
            Self::Llvm18 => "18",
            Self::Llvm19 => "19",
            Self::Llvm22 => "22",
            Self::Current => "current",
            Self::Llvm24 => "24",
        }
    }

    /// Returns the section into which the compiler puts the entries of a kind in ELF, and the start of its name in COFF.
    ///
    /// ```
    /// use wrapper_ir::{Abi, OffloadKind};
    ///
    /// assert_eq!(Abi::Current.entries_section(OffloadKind::HIP), "llvm_offload_entries");
    /// assert_eq!(Abi::Llvm19.entries_section(OffloadKind::HIP), "hip_offloading_entries");
    /// ```
    #[must_use]
    pub fn entries_section(self, kind: OffloadKind) -> &'static str {
        match kind {
            _ if self.has_common_entries() => "llvm_offload_entries",
            OffloadKind::CUDA => "cuda_offloading_entries",
            OffloadKind::HIP => "hip_offloading_entries",
            _ => "omp_offloading_entries",
        }
    }

    /// Returns whether entries are in one section for all kinds, as in LLVM 21 and later.
    pub(crate) fn has_common_entries(self) -> bool {
        matches!(self, Self::Llvm22 | Self::Current | Self::Llvm24)
    }
}

impl fmt::Display for Abi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
