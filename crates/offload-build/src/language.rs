//! Languages of files with GPU code.

use std::path::Path;

/// Language of a file with GPU code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Language {
    /// HIP: `.hip`.
    Hip,
    /// CUDA: `.cu`.
    Cuda,
    /// C or C++ with OpenMP's `target` regions: all other files.
    OpenMp,
}

impl Language {
    /// Returns the language that the extension of a file names.
    #[must_use]
    pub fn of(file: &Path) -> Self {
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("hip") => Self::Hip,
            Some("cu") => Self::Cuda,
            _ => Self::OpenMp,
        }
    }

    /// Returns the arguments of clang that make objects with device code to be linked.
    pub(crate) fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Hip => &["-x", "hip", "--offload-new-driver", "-fgpu-rdc"],
            Self::Cuda => &["-x", "cuda", "--offload-new-driver", "-fgpu-rdc"],
            Self::OpenMp => &["-fopenmp"],
        }
    }

    /// Returns true if the host code of a file may need the library of C++.
    pub(crate) fn is_cpp(self, file: &Path) -> bool {
        self != Self::OpenMp || file.extension().is_none_or(|extension| extension != "c")
    }

    /// Returns the libraries that programs with registered kernels of the language need.
    pub(crate) fn libraries(self) -> &'static [&'static str] {
        match self {
            Self::Hip => &["amdhip64"],
            Self::Cuda => &["cudart"],
            Self::OpenMp => &["omp", "omptarget"],
        }
    }

    /// Returns where these libraries may be: a variable that names the directory of the toolkit, its usual place, and the directory in it.
    pub(crate) fn toolkit(self) -> Option<(&'static str, &'static str, &'static str)> {
        match self {
            Self::Hip => Some(("ROCM_PATH", "/opt/rocm", "lib")),
            Self::Cuda => Some(("CUDA_PATH", "/usr/local/cuda", "lib64")),
            Self::OpenMp => None,
        }
    }
}
