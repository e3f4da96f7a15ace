//! NVIDIA's architectures, and which code runs on which GPU.

use alloc::format;
use core::fmt;

use crate::error::{Error, ErrorKind};

/// The scope of code for an NVIDIA architecture, from the suffix of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NvidiaScope {
    /// No suffix: as compute capabilities go up.
    Portable,
    /// `f`: within the family, and there as compute capabilities go up.
    Family,
    /// `a`: that compute capability alone.
    Architecture,
}

/// An NVIDIA architecture by the name that NVIDIA's tools and the containers give it: `sm_86`,
/// `sm_90a` or `sm_100f` for machine code, `compute_90` for PTX. The last digit is the minor
/// number of the compute capability, the digits before it are the major number. [`Display`](fmt::Display) gives the name back.
///
/// ```
/// use target_id::NvidiaArch;
///
/// let gpu = NvidiaArch::parse("sm_86")?;
/// assert_eq!((gpu.major(), gpu.minor()), (8, 6));
/// for (code, runs) in [("sm_80", true), ("compute_75", true), ("sm_89", false), ("sm_75", false)] {
///     assert_eq!(NvidiaArch::parse(code)?.runs_on(gpu), runs);
/// }
/// # Ok::<(), target_id::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NvidiaArch {
    major: u16,
    minor: u16,
    scope: NvidiaScope,
    ptx: bool,
}

/// The compute capabilities of Tegra: K1, X1, X2, Xavier, Orin, Thor by both its names.
const TEGRA: [(u16, u16); 7] = [(3, 2), (5, 3), (6, 2), (7, 2), (8, 7), (10, 1), (11, 0)];

impl NvidiaArch {
    /// Reads a name: `sm_` or `compute_`, two to four digits without a leading 0, and `a`, `f` or nothing. There
    /// need not be such a GPU. Letters are lower case, as NVIDIA's tools want them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotNvidiaArch`](crate::ErrorKind::NotNvidiaArch) for everything else.
    pub fn parse(name: &str) -> Result<Self, Error> {
        Self::from_name(name).ok_or_else(|| {
            let text = format!(
                "NVIDIA architecture {name:?} is not of the form \"sm_86\" or \"compute_86\", with or without \"a\" or \"f\""
            );
            Error::new(ErrorKind::NotNvidiaArch, None, text)
        })
    }

    /// Parses as [`parse`](Self::parse) does, without an error for names of other devices.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let (ptx, rest) = match name.strip_prefix("sm_") {
            Some(rest) => (false, rest),
            None => (true, name.strip_prefix("compute_")?),
        };
        let (digits, scope) = match (rest.strip_suffix('a'), rest.strip_suffix('f')) {
            (Some(digits), _) => (digits, NvidiaScope::Architecture),
            (_, Some(digits)) => (digits, NvidiaScope::Family),
            _ => (rest, NvidiaScope::Portable),
        };
        let is_number = (2..=4).contains(&digits.len())
            && digits.bytes().all(|digit| digit.is_ascii_digit())
            && !digits.starts_with('0');
        let number: u16 = digits.parse().ok().filter(|_| is_number)?;
        Some(Self { major: number / 10, minor: number % 10, scope, ptx })
    }

    /// Returns the major number of the compute capability.
    #[must_use]
    pub const fn major(self) -> u16 {
        self.major
    }

    /// Returns the minor number of the compute capability.
    #[must_use]
    pub const fn minor(self) -> u16 {
        self.minor
    }

    /// Returns whether the name has no suffix: the code is not for one architecture or family alone.
    #[must_use]
    pub const fn is_portable(self) -> bool {
        matches!(self.scope, NvidiaScope::Portable)
    }

    pub(crate) const fn scope(self) -> NvidiaScope {
        self.scope
    }

    /// Returns whether the name means PTX, which is compiled when it is loaded.
    #[must_use]
    pub const fn is_ptx(self) -> bool {
        self.ptx
    }

    /// Returns the same architecture as PTX has it: `compute_90a` for `sm_90a`. Fatbinaries and offload binaries name
    /// PTX by the architecture alone.
    #[must_use]
    pub const fn as_ptx(self) -> Self {
        Self { ptx: true, ..self }
    }

    /// Returns whether a GPU of `gpu`'s compute capability runs code for this architecture; a suffix of `gpu` says
    /// nothing more about it.
    ///
    /// As NVIDIA's CUDA Programming Guide has it ("Binary Compatibility", "PTX Compatibility",
    /// "Feature Set Compiler Targets" with the table of families) and the documentation of the CUDA
    /// compiler driver ("GPU Compilation"):
    ///
    /// - machine code runs on the same major number with the same or a higher minor one, except that machine code for
    ///   [Tegra](Self::is_tegra) runs on that compute capability alone, and no other does on Tegra ("Binary compatibility is
    ///   supported for the desktop only");
    /// - PTX on the same or any higher compute capability;
    /// - both on the family from that compute capability on with `f`, on that compute capability
    ///   alone with `a`.
    ///
    /// PTX can also be too new for the driver, which its name does not show.
    #[must_use]
    pub fn runs_on(self, gpu: Self) -> bool {
        if gpu.ptx {
            return false;
        }
        let reached = self.capability() <= gpu.capability();
        if self.capability() != gpu.capability() && self.is_apart_from(gpu) {
            return false;
        }
        match self.scope {
            NvidiaScope::Architecture => self.capability() == gpu.capability(),
            NvidiaScope::Family => reached && self.family() == gpu.family(),
            NvidiaScope::Portable => reached && (self.ptx || self.major == gpu.major),
        }
    }

    /// Returns whether it is the architecture of a Tegra GPU: Jetson, DRIVE.
    ///
    /// NVIDIA's list of CUDA GPUs; 11.0 is the name that CUDA 13 gave to 10.1.
    #[must_use]
    pub fn is_tegra(self) -> bool {
        TEGRA.contains(&self.capability())
    }

    /// Returns whether this is machine code that the other compute capability does not run, because one is Tegra's.
    pub(crate) fn is_apart_from(self, gpu: Self) -> bool {
        !self.ptx && (self.is_tegra() || gpu.is_tegra())
    }

    pub(crate) fn capability(self) -> (u16, u16) {
        (self.major, self.minor)
    }

    /// Returns the family: compute capabilities of one major number, except for 10.1, which CUDA 13 renamed to 11.0. By
    /// name, neither is code for the other.
    fn family(self) -> (u16, bool) {
        (self.major, self.capability() == (10, 1))
    }

    /// Returns the distance of this architecture below a GPU, larger for code of a wider scope; less than 0x8000.
    pub(crate) fn distance(self, gpu: Self) -> u32 {
        let number = |arch: Self| arch.major.saturating_mul(10).saturating_add(arch.minor);
        let below = u32::from(number(gpu).saturating_sub(number(self)));
        let wide = match self.scope {
            NvidiaScope::Architecture => 0,
            NvidiaScope::Family => 1,
            NvidiaScope::Portable => 2,
        };
        below.saturating_mul(3).saturating_add(wide)
    }
}

impl fmt::Display for NvidiaArch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.ptx { "compute_" } else { "sm_" })?;
        write!(f, "{}{}", self.major, self.minor)?;
        f.write_str(match self.scope {
            NvidiaScope::Portable => "",
            NvidiaScope::Family => "f",
            NvidiaScope::Architecture => "a",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn arch(name: &str) -> NvidiaArch {
        NvidiaArch::parse(name).unwrap()
    }

    #[test]
    fn names_are_read_and_written() {
        for name in ["sm_20", "sm_86", "sm_90a", "sm_100f", "compute_90", "compute_121a"] {
            assert_eq!(arch(name).to_string(), name);
        }
        assert_eq!(arch("sm_103a").capability(), (10, 3));
        assert_eq!(arch("sm_90a").as_ptx(), arch("compute_90a"));
        for bad in [
            "", "sm_", "sm_9", "sm_a", "sm_90A", "sm_090", "sm_90fa", "sm_99999", "lto_90",
            "SM_90", "gfx90a",
        ] {
            let error = NvidiaArch::parse(bad).unwrap_err();
            assert_eq!((error.kind(), error.offset()), (ErrorKind::NotNvidiaArch, None));
            let text = r#"is not of the form "sm_86" or "compute_86", with or without "a" or "f""#;
            assert_eq!(error.to_string(), format!("NVIDIA architecture {bad:?} {text}"));
        }
    }

    #[test]
    fn code_runs_on_these_gpus_only() {
        for (code, gpus) in [
            ("sm_80", &["sm_80", "sm_86", "sm_88", "sm_89"][..]),
            ("sm_86", &["sm_86", "sm_88", "sm_89"]),
            ("sm_87", &["sm_87"]),
            ("sm_88", &["sm_88", "sm_89"]),
            ("sm_90", &["sm_90"]),
            ("sm_90a", &["sm_90"]),
            ("sm_100", &["sm_100", "sm_103", "sm_107"]),
            ("sm_101", &["sm_101"]),
            (
                "compute_87",
                &[
                    "sm_87", "sm_88", "sm_89", "sm_90", "sm_100", "sm_101", "sm_103", "sm_107",
                    "sm_110", "sm_120", "sm_121",
                ],
            ),
            ("sm_100a", &["sm_100"]),
            ("sm_100f", &["sm_100", "sm_103", "sm_107"]),
            ("sm_101f", &["sm_101"]),
            ("sm_103f", &["sm_103", "sm_107"]),
            ("sm_107", &["sm_107"]),
            ("sm_107a", &["sm_107"]),
            ("sm_107f", &["sm_107"]),
            ("sm_110f", &["sm_110"]),
            ("sm_120f", &["sm_120", "sm_121"]),
            ("sm_121f", &["sm_121"]),
            (
                "compute_89",
                &[
                    "sm_89", "sm_90", "sm_100", "sm_101", "sm_103", "sm_107", "sm_110", "sm_120",
                    "sm_121",
                ],
            ),
            ("compute_90a", &["sm_90"]),
            ("compute_100f", &["sm_100", "sm_103", "sm_107"]),
            ("compute_107a", &["sm_107"]),
            ("compute_121", &["sm_121"]),
        ] {
            for gpu in [
                "sm_75", "sm_80", "sm_86", "sm_87", "sm_88", "sm_89", "sm_90", "sm_100", "sm_101",
                "sm_103", "sm_107", "sm_110", "sm_120", "sm_121",
            ] {
                assert_eq!(arch(code).runs_on(arch(gpu)), gpus.contains(&gpu), "{code} on {gpu}");
            }
        }
        assert!(
            arch("sm_90").runs_on(arch("sm_90a")),
            "a GPU is not more than its compute capability"
        );
        assert!(!arch("compute_80").runs_on(arch("compute_80")), "no GPU");
    }
}
