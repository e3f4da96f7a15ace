//! Runtimes that load device code.

use core::fmt;

use target_id::OffloadKind;

/// The runtime that loads images of a kind.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Runtime {
    /// HIP.
    Hip,
    /// OpenMP.
    Openmp,
    /// CUDA.
    Cuda,
    /// SYCL.
    Sycl,
    /// A container of another kind, or without kind: images of the host only.
    Other,
}

impl Runtime {
    /// All runtimes that have names.
    pub const ALL: [Runtime; 4] = [Runtime::Hip, Runtime::Openmp, Runtime::Cuda, Runtime::Sycl];

    /// Returns the runtime of a [name](Self::as_str).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|runtime| runtime.as_str() == Some(name))
    }

    pub(crate) fn of(kind: Option<&OffloadKind>) -> Self {
        match kind {
            Some(OffloadKind::Hip | OffloadKind::HipV4) => Runtime::Hip,
            Some(OffloadKind::OpenMp) => Runtime::Openmp,
            Some(OffloadKind::Cuda) => Runtime::Cuda,
            Some(OffloadKind::Sycl) => Runtime::Sycl,
            _ => Runtime::Other,
        }
    }

    /// Returns the name in lower case: `hip`. `None` for [`Other`](Self::Other).
    #[must_use]
    pub fn as_str(self) -> Option<&'static str> {
        match self {
            Runtime::Hip => Some("hip"),
            Runtime::Openmp => Some("openmp"),
            Runtime::Cuda => Some("cuda"),
            Runtime::Sycl => Some("sycl"),
            Runtime::Other => None,
        }
    }
}

impl fmt::Display for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Runtime::Hip => "HIP",
            Runtime::Openmp => "OpenMP",
            Runtime::Cuda => "CUDA",
            Runtime::Sycl => "SYCL",
            Runtime::Other => "other kinds",
        })
    }
}
