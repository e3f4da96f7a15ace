//! Choices of the wrapped code: the programming model, and the release of its runtime and compiler.

use std::fmt;

use offload_binary::OffloadKind;

use crate::error::{Error, Problem};

/// The programming model whose runtime is told about the images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// OpenMP target offloading: any number of images, `libomptarget`.
    OpenMp,
    /// CUDA: one fatbinary, `libcudart`.
    Cuda,
    /// HIP: one fatbinary or bundle, `libamdhip64`.
    Hip,
    /// SYCL: one offload binary of images, LLVM's SYCL runtime.
    Sycl,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::OpenMp, Self::Cuda, Self::Hip, Self::Sycl];

    /// Returns the kind that `llvm-offload-wrapper --kind=` calls `name`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownName`](crate::ErrorKind::UnknownName).
    pub fn from_name(name: &str) -> Result<Self, Error> {
        let named = Self::ALL.into_iter().find(|kind| kind.name() == name);
        named.ok_or_else(|| Problem::UnknownKind { name: name.into() }.into())
    }

    /// Returns the name, as `llvm-offload-wrapper --kind=` spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenMp => "openmp",
            Self::Cuda => "cuda",
            Self::Hip => "hip",
            Self::Sycl => "sycl",
        }
    }
}

impl Kind {
    /// Returns the kind of an offload binary's image; HIP by its number of today or that of LLVM 20 and older.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownName`](crate::ErrorKind::UnknownName) for no kind and for one that nobody knows.
    pub fn of(kind: OffloadKind) -> Result<Self, Error> {
        Ok(match kind {
            OffloadKind::OPENMP => Self::OpenMp,
            OffloadKind::CUDA => Self::Cuda,
            OffloadKind::HIP | OffloadKind::HIP_LEGACY => Self::Hip,
            OffloadKind::SYCL => Self::Sycl,
            _ => return Err(Problem::UnknownKind { name: kind.to_string().into() }.into()),
        })
    }

    /// Returns the kind in offload binaries, in the numbers of LLVM 21 and later.
    #[must_use]
    pub fn offload_kind(self) -> OffloadKind {
        match self {
            Self::OpenMp => OffloadKind::OPENMP,
            Self::Cuda => OffloadKind::CUDA,
            Self::Hip => OffloadKind::HIP,
            Self::Sycl => OffloadKind::SYCL,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The generation of registration code.
///
/// It has to be that of the compiler that made the host objects: their entries lie in a section
/// whose name, and in records whose layout, changed over time. Code of another generation links,
/// and then the runtime finds no kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Abi {
    /// AMD's AOMP compiler: [`Legacy`](Self::Legacy) and the target IDs of the images, which its
    /// runtime chooses by (the "Clang Offload Wrapper" documentation). OpenMP only.
    Aomp,
    /// LLVM 13 to 17.
    Legacy,
    /// LLVM 18.
    Llvm18,
    /// LLVM 19.
    Llvm19,
    /// LLVM 21 to 23. For SYCL and Mach-O, where these differ, it is LLVM 23.
    #[default]
    Current,
    /// LLVM 24, as of its development branch.
    Llvm24,
}

impl Abi {
    /// Every generation, oldest first.
    pub const ALL: [Self; 6] =
        [Self::Aomp, Self::Legacy, Self::Llvm18, Self::Llvm19, Self::Current, Self::Llvm24];

    /// Returns the generation called `name`: `aomp`, `legacy`, `18`, `19`, `current` or `24`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownName`](crate::ErrorKind::UnknownName).
    pub fn from_name(name: &str) -> Result<Self, Error> {
        let named = Self::ALL.into_iter().find(|abi| abi.name() == name);
        named.ok_or_else(|| Problem::UnknownAbi { name: name.into() }.into())
    }

    /// Returns the name that [`from_name`](Self::from_name) takes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Aomp => "aomp",
            Self::Legacy => "legacy",
            Self::Llvm18 => "18",
            Self::Llvm19 => "19",
            Self::Current => "current",
            Self::Llvm24 => "24",
        }
    }
}

impl fmt::Display for Abi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_name(kind.name()), Ok(kind));
            assert_eq!(Kind::of(kind.offload_kind()), Ok(kind));
            assert_eq!(kind.offload_kind().name(), Some(kind.name()));
        }
        for abi in Abi::ALL {
            assert_eq!(Abi::from_name(abi.name()), Ok(abi));
        }
        assert_eq!(Kind::from_name("HIP"), Err(Problem::UnknownKind { name: "HIP".into() }.into()));
        assert_eq!(Abi::from_name("22"), Err(Problem::UnknownAbi { name: "22".into() }.into()));
    }
}
