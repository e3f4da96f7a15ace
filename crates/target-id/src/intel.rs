//! Intel's GPUs: their names, IP versions, and which code runs on which of them.

use core::fmt;

/// The spelling of DPC++'s `-fsycl-targets`, and of `compile_target` in SYCL images.
const SYCL_PREFIX: &str = "intel_gpu_";

/// The spelling of LLVM's `offload-arch`, as it is compared: `-` and `_` are equal.
const LLVM_PREFIX: &str = "xe_";

/// An Intel GPU, or a name for several of them.
///
/// Each has an IP version, the number that drivers report, and names in three spellings: `intel_gpu_bmg_g21` (DPC++,
/// SYCL images), `xe-bmg-g21` (LLVM) and `bmg-g21` (the offline compiler `ocloc`). Its IP version is a name, too:
/// `intel_gpu_20_1_4`, `xe_20.1.4` and `20.1.4`. The tables come from LLVM 24, DPC++ and Intel's compute runtime.
///
/// [`Display`](fmt::Display) gives [`name`](Self::name).
///
/// ```
/// use target_id::IntelGpu;
///
/// let gpu = IntelGpu::find("xe-bmg-g21").ok_or("unknown")?;
/// assert_eq!(gpu.name(), "intel_gpu_bmg_g21");
/// for name in ["bmg-g21", "bmg_g21", "intel_gpu_bmg_g21", "intel_gpu_20_1_4", "xe_20.1.4", "20.1.4"] {
///     assert_eq!(IntelGpu::find(name), Some(gpu));
/// }
/// assert_eq!(IntelGpu::from_ip_version(0x0500_4004), Some(gpu));
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, PartialEq)]
pub struct IntelGpu {
    /// Architecture, release and revision; `None` for a name of several GPUs.
    ip: Option<[u8; 3]>,
    name: &'static str,
    /// Other names, without prefix, with `_`.
    aliases: &'static [&'static str],
    /// Names without prefix of the further GPUs that run its code.
    runs_on: &'static [&'static str],
}

const fn gpu(ip: [u8; 3], name: &'static str, aliases: &'static [&'static str]) -> IntelGpu {
    IntelGpu { ip: Some(ip), name, aliases, runs_on: &[] }
}

/// Returns a GPU whose code runs on others, too: `compatibilityMapping` of Intel's compute runtime.
const fn first_of(
    ip: [u8; 3],
    name: &'static str,
    aliases: &'static [&'static str],
    runs_on: &'static [&'static str],
) -> IntelGpu {
    IntelGpu { ip: Some(ip), name, aliases, runs_on }
}

/// Returns a compatibility name.
const fn several(name: &'static str, runs_on: &'static [&'static str]) -> IntelGpu {
    IntelGpu { ip: None, name, aliases: &[], runs_on }
}

/// GPUs by IP version, then the names of several.
static GPUS: &[IntelGpu] = &[
    gpu([8, 0, 0], "intel_gpu_bdw", &[]),
    gpu([9, 0, 9], "intel_gpu_skl", &[]),
    gpu([9, 1, 9], "intel_gpu_kbl", &[]),
    gpu([9, 2, 9], "intel_gpu_cfl", &[]),
    gpu([9, 3, 0], "intel_gpu_apl", &["bxt"]),
    gpu([9, 4, 0], "intel_gpu_glk", &[]),
    gpu([9, 5, 0], "intel_gpu_whl", &[]),
    gpu([9, 6, 0], "intel_gpu_aml", &[]),
    gpu([9, 7, 0], "intel_gpu_cml", &[]),
    gpu([11, 0, 0], "intel_gpu_icllp", &["icl"]),
    gpu([11, 2, 0], "intel_gpu_ehl", &["jsl"]),
    gpu([12, 0, 0], "intel_gpu_tgllp", &["tgl"]),
    gpu([12, 1, 0], "intel_gpu_rkl", &[]),
    gpu([12, 2, 0], "intel_gpu_adl_s", &["rpl_s"]),
    gpu([12, 3, 0], "intel_gpu_adl_p", &["rpl_p"]),
    gpu([12, 4, 0], "intel_gpu_adl_n", &[]),
    gpu([12, 10, 0], "intel_gpu_dg1", &[]),
    first_of([12, 55, 8], "intel_gpu_acm_g10", &["dg2_g10", "ats_m150"], &["acm_g11", "acm_g12"]),
    gpu([12, 56, 5], "intel_gpu_acm_g11", &["dg2_g11", "ats_m75"]),
    gpu([12, 57, 0], "intel_gpu_acm_g12", &["dg2_g12"]),
    gpu([12, 60, 7], "intel_gpu_pvc", &["pvc_sdv"]),
    gpu([12, 61, 7], "intel_gpu_pvc_vg", &[]),
    first_of([12, 70, 4], "intel_gpu_mtl_u", &["mtl_s", "mtl_m", "arl_u", "arl_s"], &["mtl_h"]),
    gpu([12, 71, 4], "intel_gpu_mtl_h", &["mtl_p"]),
    gpu([12, 74, 4], "intel_gpu_arl_h", &[]),
    first_of([20, 1, 4], "intel_gpu_bmg_g21", &[], &["bmg_g31", "lnl_m"]),
    gpu([20, 2, 0], "intel_gpu_bmg_g31", &[]),
    gpu([20, 4, 4], "intel_gpu_lnl_m", &[]),
    first_of([30, 0, 4], "intel_gpu_ptl_h", &[], &["ptl_u", "wcl"]),
    gpu([30, 1, 1], "intel_gpu_ptl_u", &[]),
    gpu([30, 3, 0], "intel_gpu_wcl", &[]),
    gpu([30, 4, 0], "intel_gpu_nvl_s", &["nvl_hx", "nvl_ul"]),
    gpu([30, 5, 0], "intel_gpu_nvl_u", &["nvl_h"]),
    gpu([35, 10, 0], "intel_gpu_nvl_p", &[]),
    gpu([35, 11, 0], "intel_gpu_cri", &[]),
    several("intel_gpu_dg2", &["acm_g10", "acm_g11", "acm_g12"]),
    several("intel_gpu_mtl", &["mtl_u", "mtl_h"]),
    several("intel_gpu_bmg", &["bmg_g21", "bmg_g31", "lnl_m"]),
    several("intel_gpu_ptl", &["ptl_h", "ptl_u", "wcl"]),
];

impl IntelGpu {
    /// Returns the GPU with this name, in any spelling; `_` and `-` are equal. Names are case-sensitive, and the revision
    /// in a numeric one does not matter.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        let rest = if starts_with(name, SYCL_PREFIX) {
            name.get(SYCL_PREFIX.len()..)?
        } else if starts_with(name, LLVM_PREFIX) {
            name.get(LLVM_PREFIX.len()..)?
        } else {
            name
        };
        if rest.starts_with(|first: char| first.is_ascii_digit()) {
            Self::with_release(numbers(rest)?)
        } else {
            Self::all().find(|gpu| gpu.is_called(rest))
        }
    }

    /// Returns the GPU with this IP version, as Level Zero and `ocloc` give it: architecture in bits 22 to 31, release in
    /// bits 14 to 21, revision in bits 0 to 5. The revision does not matter.
    #[must_use]
    pub fn from_ip_version(ip_version: u32) -> Option<&'static Self> {
        let architecture = u8::try_from(ip_version >> 22).ok()?;
        let release = u8::try_from(ip_version >> 14 & 0xff).ok()?;
        Self::with_release([architecture, release])
    }

    /// Returns the GPU, or the name for several, with this number of a family of products (`PRODUCT_FAMILY` of Intel's
    /// compilers and drivers, which older images state instead of an IP version). Numbers of GPUs before DG1 are not known.
    #[must_use]
    pub fn from_product_family(number: u32) -> Option<&'static Self> {
        let name = match number {
            1210 => "dg1",
            1270 => "dg2",
            1271 => "pvc",
            1272 => "mtl",
            1273 => "arl_h",
            1274 => "bmg",
            1275 => "lnl_m",
            1300 => "ptl",
            _ => return None,
        };
        Self::find(name)
    }

    /// Returns all GPUs by IP version, then the names of several.
    pub fn all() -> impl DoubleEndedIterator<Item = &'static Self> + ExactSizeIterator + Clone {
        GPUS.iter()
    }

    fn with_release(wanted: [u8; 2]) -> Option<&'static Self> {
        Self::all().find(|gpu| matches!(gpu.ip, Some([a, r, _]) if [a, r] == wanted))
    }

    /// Returns the name as in SYCL images: `intel_gpu_pvc`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the name without `intel_gpu_`, as `-device` of `ocloc` takes it with `-` for `_`: `bmg_g21`.
    #[must_use]
    pub(crate) fn short_name(&self) -> &'static str {
        self.name.strip_prefix(SYCL_PREFIX).unwrap_or(self.name)
    }

    /// Returns the alternative names, without `intel_gpu_`.
    #[must_use]
    pub const fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }

    /// Returns the IP version with the revision that compilers mean by the name; see
    /// [`from_ip_version`](Self::from_ip_version). `None` for a name of several GPUs.
    #[must_use]
    pub fn ip_version(&self) -> Option<u32> {
        self.ip.map(|[architecture, release, revision]| {
            u32::from(architecture) << 22 | u32::from(release) << 14 | u32::from(revision)
        })
    }

    /// Returns whether it is a name of several GPUs (`intel_gpu_bmg`): for code that runs on all of them.
    #[must_use]
    pub const fn is_generic(&self) -> bool {
        self.ip.is_none()
    }

    /// Returns whether `gpu` runs code for this one: the same GPU, or one to which `compatibilityMapping` of Intel's
    /// compute runtime leads. Not symmetric: code for `bmg_g21` runs on `lnl_m`, and not the reverse.
    ///
    /// The SYCL runtime is stricter: it compares names.
    #[must_use]
    pub fn runs_on(&self, gpu: &Self) -> bool {
        (self.name == gpu.name || self.runs_on.contains(&gpu.short_name())) && !gpu.is_generic()
    }

    fn is_called(&self, name: &str) -> bool {
        equal(self.short_name(), name) || self.aliases.iter().any(|alias| equal(alias, name))
    }
}

fn equal(known: &str, name: &str) -> bool {
    known.len() == name.len() && starts_with(name, known)
}

/// Returns whether a text starts so, with `-` for `_` as well.
fn starts_with(text: &str, start: &str) -> bool {
    text.len() >= start.len()
        && (text.bytes().zip(start.bytes())).all(|(a, b)| a == b || (a, b) == (b'-', b'_'))
}

/// Returns architecture and release of `12.60.7` or `12_60_7`.
fn numbers(text: &str) -> Option<[u8; 2]> {
    let mut parts = text.split(['.', '_', '-']);
    let mut number = || {
        let digits = parts.next()?;
        let is_number = digits.bytes().all(|digit| digit.is_ascii_digit())
            && (digits.len() == 1 || !digits.starts_with('0'));
        digits.parse::<u8>().ok().filter(|_| is_number)
    };
    let (architecture, release, _revision) = (number()?, number()?, number()?);
    parts.next().is_none().then_some([architecture, release])
}

/// The [`name`](IntelGpu::name).
impl fmt::Display for IntelGpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned;

    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::format;
    use alloc::string::ToString;

    fn find(name: &str) -> &'static IntelGpu {
        IntelGpu::find(name).unwrap()
    }

    #[test]
    fn every_name_is_read_in_every_spelling() {
        let mut seen = BTreeSet::new();
        for gpu in IntelGpu::all() {
            assert_eq!(IntelGpu::find(&gpu.to_string()), Some(gpu));
            for name in core::iter::once(gpu.short_name()).chain(gpu.aliases().iter().copied()) {
                assert!(seen.insert(name), "{name} twice");
                let dashes = name.replace('_', "-");
                for spelling in [
                    name.to_owned(),
                    format!("intel_gpu_{name}"),
                    format!("xe-{name}"),
                    format!("xe-{dashes}"),
                    dashes,
                ] {
                    assert_eq!(find(&spelling), gpu, "{spelling}");
                }
            }
            for further in gpu.runs_on {
                assert!(!find(further).is_generic(), "{further}");
            }
            let Some([architecture, release, revision]) = gpu.ip else { continue };
            assert_eq!(IntelGpu::from_ip_version(gpu.ip_version().unwrap()), Some(gpu));
            for spelling in [
                format!("intel_gpu_{architecture}_{release}_{revision}"),
                format!("xe_{architecture}.{release}.{revision}"),
                format!("{architecture}.{release}.0"),
            ] {
                assert_eq!(find(&spelling), gpu, "{spelling}");
            }
        }
        assert_eq!(seen.len(), 59);
    }

    #[test]
    fn ip_versions_name_gpus() {
        for (name, ip_version) in [
            ("bdw", 0x0200_0000),
            ("skl", 0x0240_0009),
            ("cfl", 0x0240_8009),
            ("ehl", 0x02c0_8000),
            ("dg1", 0x0302_8000),
            ("acm-g10", 0x030d_c008),
            ("pvc", 0x030f_0007),
            ("mtl-h", 0x0311_c004),
            ("arl-h", 0x0312_8004),
            ("lnl-m", 0x0501_0004),
            ("wcl", 0x0780_c000),
            ("nvl-p", 0x08c2_8000),
            ("xe_35.11.0", 0x08c2_c000),
        ] {
            assert_eq!(find(name).ip_version(), Some(ip_version), "{name}");
        }
        assert_eq!(IntelGpu::from_ip_version(0x030f_0001).unwrap().short_name(), "pvc");
        for ip_version in [0, 0x030f_8000, u32::MAX] {
            assert_eq!(IntelGpu::from_ip_version(ip_version), None);
        }
        assert_eq!(find("bmg").ip_version(), None);
    }

    #[test]
    fn product_families_name_gpus() {
        let named = |number| IntelGpu::from_product_family(number).map(IntelGpu::short_name);
        for (number, name) in [(1210, "dg1"), (1270, "dg2"), (1271, "pvc"), (1300, "ptl")] {
            assert_eq!(named(number), Some(name), "{number}");
        }
        assert_eq!((1200..1400).filter_map(named).count(), 8);
        assert_eq!(named(0), None);
    }

    #[test]
    fn other_names_are_unknown() {
        for name in [
            "",
            "intel_gpu_",
            "xe-",
            "PVC",
            "intel-gpu-",
            "intel_gpu_new",
            "xe-xe-pvc",
            "intel_gpu_xe_pvc",
            "12.60",
            "8.6",
            "12.60.7.1",
            "12.60.x",
            "012.60.7",
            "300.0.0",
            "12.+60.7",
            "99.0.0",
            "bmg_g21 ",
            "gfx90a",
        ] {
            assert_eq!(IntelGpu::find(name), None, "{name}");
        }
    }

    #[test]
    fn code_runs_on_these_gpus_only() {
        for (code, gpus) in [
            ("dg2-g10", &["acm-g10", "acm-g11", "acm-g12"][..]),
            ("acm-g11", &["acm-g11"]),
            ("mtl-u", &["mtl-u", "arl-s", "mtl-h"]),
            ("bmg-g21", &["bmg-g21", "bmg-g31", "lnl-m"]),
            ("lnl-m", &["lnl-m"]),
            ("ptl-h", &["ptl-h", "ptl-u", "wcl"]),
            ("pvc", &["pvc", "pvc-sdv"]),
            ("dg2", &["acm-g10", "acm-g11", "acm-g12"]),
            ("mtl", &["mtl-u", "mtl-h", "arl-u"]),
            ("bmg", &["bmg-g21", "bmg-g31", "lnl-m"]),
            ("ptl", &["ptl-h", "ptl-u", "wcl"]),
        ] {
            let expected: BTreeSet<_> = gpus.iter().map(|name| find(name).name()).collect();
            let found = IntelGpu::all().filter(|gpu| find(code).runs_on(gpu));
            assert_eq!(found.map(IntelGpu::name).collect::<BTreeSet<_>>(), expected, "{code}");
        }
    }
}
