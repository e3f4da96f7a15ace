//! Offload kinds: the runtime that manages a code object.

use alloc::string::String;
use core::fmt;

/// The runtime a code object is for: first part of a bundle entry ID.
///
/// The Clang Offload Bundler documentation defines `host`, `openmp`, `hip` and `hipv4`;
/// `cuda` and `sycl` occur in offload binaries. Kinds found in files are not limited
/// to these, so any other text is kept in [`Other`](Self::Other).
///
/// Spelling is case-sensitive: `HIP` is not [`Hip`](Self::Hip).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OffloadKind {
    /// `host`: the host's own code.
    Host,
    /// `openmp`: OpenMP target offloading.
    OpenMp,
    /// `hip`: HIP; in fat binaries, code objects before ABI version V4.
    Hip,
    /// `hipv4`: HIP, code objects of ABI version V4 and later.
    HipV4,
    /// `cuda`: CUDA.
    Cuda,
    /// `sycl`: SYCL.
    Sycl,
    /// Any other text, as written. Made by [`parse`](Self::parse), it never holds a known name.
    Other(String),
}

impl OffloadKind {
    /// Returns the kind a text names. Never fails: unknown text is kept as [`Other`](Self::Other).
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text {
            "host" => Self::Host,
            "openmp" => Self::OpenMp,
            "hip" => Self::Hip,
            "hipv4" => Self::HipV4,
            "cuda" => Self::Cuda,
            "sycl" => Self::Sycl,
            other => Self::Other(other.into()),
        }
    }

    /// Returns the kind as it is written in files.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Host => "host",
            Self::OpenMp => "openmp",
            Self::Hip => "hip",
            Self::HipV4 => "hipv4",
            Self::Cuda => "cuda",
            Self::Sycl => "sycl",
            Self::Other(text) => text,
        }
    }

    /// Returns whether `clang-offload-bundler` takes this kind on its command line: `host`, `openmp`, `hip` and
    /// `hipv4`.
    #[must_use]
    pub fn is_bundler_kind(&self) -> bool {
        matches!(self, Self::Host | Self::OpenMp | Self::Hip | Self::HipV4)
    }

    /// Returns whether a code object of one kind fits a target of the other; symmetric.
    ///
    /// Equal kinds do, and `hip` with `hipv4` (Clang Offload Bundler documentation, table of
    /// offload kinds). With `hip_openmp`, as with the bundler's `--hip-openmp-compatible`,
    /// `openmp` also matches everything that starts with `hip`, whatever its letter case.
    #[must_use]
    pub fn compatible_with(&self, other: &Self, hip_openmp: bool) -> bool {
        let hip_pair = |a: &Self, b: &Self| *a == Self::Hip && *b == Self::HipV4;
        let mixed = |a: &Self, b: &Self| a.starts_like_hip() && *b == Self::OpenMp;
        self == other
            || hip_pair(self, other)
            || hip_pair(other, self)
            || (hip_openmp && (mixed(self, other) || mixed(other, self)))
    }

    fn starts_like_hip(&self) -> bool {
        self.as_str().as_bytes().get(..3).is_some_and(|start| start.eq_ignore_ascii_case(b"hip"))
    }
}

/// The text, see [`as_str`](OffloadKind::as_str).
impl fmt::Display for OffloadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn every_name_is_kept() {
        for name in ["host", "openmp", "hip", "hipv4", "cuda", "sycl", "HIP", "", "hip v5", "é"] {
            assert_eq!(OffloadKind::parse(name).as_str(), name);
            assert_eq!(OffloadKind::parse(name).to_string(), name);
        }
        assert_eq!(OffloadKind::parse("HIP"), OffloadKind::Other("HIP".into()));
    }

    #[test]
    fn the_bundler_accepts_four_kinds() {
        let known: alloc::vec::Vec<bool> =
            ["host", "openmp", "hip", "hipv4", "cuda", "sycl", "Host", ""]
                .iter()
                .map(|name| OffloadKind::parse(name).is_bundler_kind())
                .collect();
        assert_eq!(known, [true, true, true, true, false, false, false, false]);
    }

    #[test]
    fn hip_versions_go_together() {
        let fits = |a: &str, b: &str, option| {
            OffloadKind::parse(a).compatible_with(&OffloadKind::parse(b), option)
        };
        for option in [false, true] {
            assert!(fits("hip", "hip", option));
            assert!(fits("hip", "hipv4", option));
            assert!(fits("hipv4", "hip", option));
            assert!(fits("odd", "odd", option));
            assert!(!fits("hip", "hipv5", option));
            assert!(!fits("host", "openmp", option));
            assert!(!fits("hip", "cuda", option));
        }
    }

    #[test]
    fn hip_and_openmp_go_together_on_request() {
        let fits = |a: &str, b: &str, option| {
            OffloadKind::parse(a).compatible_with(&OffloadKind::parse(b), option)
        };
        for hip in ["hip", "hipv4", "HIP", "hiPfoo"] {
            assert!(fits(hip, "openmp", true));
            assert!(fits("openmp", hip, true));
            assert!(!fits(hip, "openmp", false));
            assert!(!fits("openmp", hip, false));
        }
        assert!(!fits("hi", "openmp", true));
        assert!(!fits("hié", "openmp", true));
        assert!(!fits("hip", "OpenMP", true));
    }
}
