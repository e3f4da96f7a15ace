//! The properties by which variants of wheels name GPUs, and the devices that they are for.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use target_id::{NvidiaArch, Target, is_known_processor};

use crate::device::{Device, PtxJit};
use crate::needs::Version;
use crate::package_group::{PackageGroup, PackageLevel};
use crate::products::processors;

/// Code that a [`VariantValue`] promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Code {
    /// A code object for AMD's GPUs.
    Amd,
    /// PTX.
    Virtual,
    /// A cubin.
    Real,
}

/// A property of a variant of a wheel (PEP 825, a draft) that names GPUs: `nvidia :: sm_arch :: 90_real`,
/// `nvidia :: sm_arch :: 80_virtual`, `amd :: gfx_arch :: gfx1100`.
///
/// The names are those of the providers that installers ask: `nvidia-variant-provider` 0.0.2 and `rocm-bootstrap` 0.3.0.
///
/// ```
/// use device_select::VariantValue;
///
/// let value = VariantValue::parse("nvidia", "sm_arch", "50_real").unwrap();
/// let devices: Vec<_> = value.devices(false).iter().map(|device| device.name()).collect();
/// assert_eq!(devices, ["sm_50", "sm_52"]);
/// assert_eq!(value.to_string(), "nvidia :: sm_arch :: 50_real");
/// assert!(VariantValue::parse("nvidia", "sm_arch", "90a_real").is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VariantValue {
    code: Code,
    /// The number of NVIDIA's processor, which sorts in the order of releases, and the name of any.
    number: u16,
    processor: String,
}

impl VariantValue {
    /// Reads a property; `None` if it names no GPU that is known.
    #[must_use]
    pub fn parse(namespace: &str, feature: &str, value: &str) -> Option<Self> {
        match (namespace, feature) {
            ("nvidia", "sm_arch") => {
                let (number, code) = match value.split_once('_')? {
                    (number, "real") => (number, Code::Real),
                    (number, "virtual") => (number, Code::Virtual),
                    _ => return None,
                };
                let arch = NvidiaArch::parse(&format!("sm_{number}")).ok()?;
                let is_known = code == Code::Real || arch.minor() == 0;
                (is_known && arch.is_portable()).then(|| Self::of_nvidia(arch, code))
            }
            ("amd", "gfx_arch") => {
                let group = PackageGroup::of(value)?;
                let is_it = group.level() == PackageLevel::Target && group.key() == value;
                is_it.then(|| Self::of_amd(value))
            }
            _ => None,
        }
    }

    /// Returns the properties that an image for a target may justify: for `sm_90a` the property of `sm_90`, for a generic processor the
    /// properties of all processors that it covers, for PTX the `virtual` of the first major version that can
    /// compile it, such as `80_virtual` for `compute_75`: installers know no others. A wheel may still lack code for such GPUs in other files. Nothing for targets of
    /// other vendors.
    #[must_use]
    pub fn of_target(target: &Target) -> Vec<Self> {
        let id = target.target_id().ok();
        let name = id.as_ref().map_or_else(|| target.id(), |id| id.processor());
        if let Ok(arch) = NvidiaArch::parse(name) {
            return Self::of_arch(arch).into_iter().collect();
        }
        let info = id.as_ref().and_then(|id| id.processor_info());
        if let Some(info) = info.filter(|info| info.is_generic()) {
            return info.covers().iter().map(|name| Self::of_amd(name)).collect();
        }
        let group = PackageGroup::of(name);
        let group = group.filter(|group| group.level() == PackageLevel::Target);
        group.iter().map(|group| Self::of_amd(group.key())).collect()
    }

    fn of_arch(arch: NvidiaArch) -> Option<Self> {
        if !arch.is_ptx() {
            return Some(Self::of_nvidia(arch, Code::Real));
        }
        let major = arch.major() + u16::from(arch.minor() > 0);
        let later = NvidiaArch::parse(&format!("sm_{major}0")).ok()?;
        is_known_processor(&format!("sm_{major}0")).then(|| Self::of_nvidia(later, Code::Virtual))
    }

    fn of_nvidia(arch: NvidiaArch, code: Code) -> Self {
        let number = arch.major() * 10 + arch.minor();
        VariantValue { code, number, processor: format!("sm_{number}") }
    }

    fn of_amd(name: &str) -> Self {
        VariantValue { code: Code::Amd, number: 0, processor: name.to_owned() }
    }

    /// Returns the processor: `sm_90`, `gfx1100`.
    #[must_use]
    pub fn processor(&self) -> &str {
        &self.processor
    }

    /// Returns whether it is PTX, which GPUs of later releases compile, too.
    #[must_use]
    pub fn is_portable(&self) -> bool {
        self.code == Code::Virtual
    }

    /// Returns the namespace.
    #[must_use]
    pub fn namespace(&self) -> &'static str {
        if self.code == Code::Amd { "amd" } else { "nvidia" }
    }

    /// Returns the name of the feature.
    #[must_use]
    pub fn feature(&self) -> &'static str {
        if self.code == Code::Amd { "gfx_arch" } else { "sm_arch" }
    }

    /// Returns the value.
    #[must_use]
    pub fn value(&self) -> String {
        match self.code {
            Code::Amd => self.processor.clone(),
            Code::Real => format!("{}_real", self.number),
            Code::Virtual => format!("{}_virtual", self.number),
        }
    }

    /// Returns how far a GPU is from the one that the property names, if an installer takes a wheel with the property for it: 0 for the
    /// GPU itself, its distance in minor versions for machine code of NVIDIA's, and 10 more for PTX. Installers prefer the least.
    /// The features of a GPU (`sm_90a`, `gfx90a:xnack+`) do not count. Also for GPUs that no table has.
    ///
    /// ```
    /// use device_select::{Device, VariantValue};
    ///
    /// let value = VariantValue::parse("nvidia", "sm_arch", "90_real").unwrap();
    /// let distance = |gpu: &str| Some(value.distance(&Device::parse(gpu).ok()?));
    /// assert_eq!(distance("sm_90a"), Some(Some(0)));
    /// assert_eq!(distance("sm_100"), Some(None));
    /// ```
    #[must_use]
    pub fn distance(&self, gpu: &Device) -> Option<u16> {
        let name = gpu.id().processor();
        if self.code == Code::Amd {
            return (name == self.processor).then_some(0);
        }
        let arch = NvidiaArch::parse(name).ok()?;
        let number = arch.major() * 10 + arch.minor();
        let later = number.checked_sub(self.number).filter(|_| number / 10 == self.number / 10)?;
        Some(if self.is_portable() { later + 10 } else { later })
    }

    /// Returns the devices for which an installer takes a wheel with this property, the one that it names first: a GPU of NVIDIA's
    /// takes machine code for its own minor version and those before it. The first device compiles no PTX if the property is `real`,
    /// and nothing else if it is `virtual`. The GPUs of Jetson modules are in machines with Arm processors only, and are left out for others.
    #[must_use]
    pub fn devices(&self, on_arm: bool) -> Vec<Device> {
        let jit = match self.code {
            Code::Amd => return Device::parse(&self.processor).into_iter().collect(),
            Code::Real => PtxJit::Disabled,
            Code::Virtual => PtxJit::Forced,
        };
        let arch = |name: &str| {
            let arch = NvidiaArch::parse(name).ok()?;
            let is_device = arch.is_portable() && !arch.is_ptx() && (on_arm || !arch.is_tegra());
            is_device.then(|| arch.major() * 10 + arch.minor())
        };
        let mut numbers: Vec<u16> = processors().filter_map(|(name, _)| arch(name)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let later = |number: &u16| *number > self.number && number / 10 == self.number / 10;
        let all = [self.number].into_iter().chain(numbers.into_iter().filter(later));
        let devices = all.filter_map(|number| Device::parse(&format!("sm_{number}")).ok());
        let jit = [jit].into_iter().chain(core::iter::repeat(PtxJit::Needed));
        devices.zip(jit).map(|(device, jit)| device.with_ptx_jit(jit)).collect()
    }
}

/// `nvidia :: sm_arch :: 90_real`.
impl fmt::Display for VariantValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} :: {} :: {}", self.namespace(), self.feature(), self.value())
    }
}

/// Releases of CUDA, each with the branch of the driver that came with it (NVIDIA, "CUDA Toolkit Release Notes", driver for Linux).
const CUDA: [((u16, u16), u16); 22] = [
    ((11, 0), 450),
    ((11, 1), 455),
    ((11, 2), 460),
    ((11, 3), 465),
    ((11, 4), 470),
    ((11, 5), 495),
    ((11, 6), 510),
    ((11, 7), 515),
    ((11, 8), 520),
    ((12, 0), 525),
    ((12, 1), 530),
    ((12, 2), 535),
    ((12, 3), 545),
    ((12, 4), 550),
    ((12, 5), 555),
    ((12, 6), 560),
    ((12, 7), 565),
    ((12, 8), 570),
    ((12, 9), 575),
    ((13, 0), 580),
    ((13, 1), 590),
    ((13, 2), 595),
];

/// Returns the driver that came with a release of CUDA, as `cuda_version_lower_bound` of a variant names it: `12.8`, `12`. `None` if
/// the release is not known.
///
/// ```
/// use device_select::{Version, driver_of_cuda};
///
/// assert_eq!(driver_of_cuda("12.8"), Some(Version::new(570, 0)));
/// assert_eq!(driver_of_cuda("12"), Some(Version::new(525, 0)));
/// assert_eq!(driver_of_cuda("9.9"), None);
/// ```
#[must_use]
pub fn driver_of_cuda(release: &str) -> Option<Version> {
    let mut numbers = release.split('.').map(|number| number.parse::<u16>().ok());
    let release = (numbers.next()??, numbers.next().unwrap_or(Some(0))?);
    let found = CUDA.into_iter().find(|(known, _)| *known == release);
    found.map(|(_, branch)| Version::new(branch, 0))
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;

    use target_id::Target;

    use super::VariantValue;

    fn of(target: &str) -> Vec<String> {
        let target = Target::new(None, None, target);
        VariantValue::of_target(&target).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn targets_justify_properties() {
        assert_eq!(of("sm_90a"), ["nvidia :: sm_arch :: 90_real"]);
        assert_eq!(of("sm_100f"), ["nvidia :: sm_arch :: 100_real"]);
        assert_eq!(of("compute_75"), ["nvidia :: sm_arch :: 80_virtual"]);
        assert_eq!(of("compute_90a"), ["nvidia :: sm_arch :: 90_virtual"]);
        assert!(of("compute_121").is_empty());
        assert_eq!(of("gfx90a:xnack-"), ["amd :: gfx_arch :: gfx90a"]);
        assert_eq!(of("gfx1250"), ["amd :: gfx_arch :: gfx1250"]);
        assert_eq!(
            of("gfx9-4-generic"),
            ["amd :: gfx_arch :: gfx942", "amd :: gfx_arch :: gfx950"]
        );
        assert!(of("amdgcnspirv").is_empty() && of("bmg_g21").is_empty() && of("").is_empty());
    }

    #[test]
    fn values_are_read_as_they_are_written() {
        for target in ["sm_52", "sm_90a", "compute_120", "gfx942", "gfx11-generic"] {
            for value in VariantValue::of_target(&Target::new(None, None, target)) {
                let (name, feature, text) = (value.namespace(), value.feature(), value.value());
                assert_eq!(VariantValue::parse(name, feature, &text), Some(value));
            }
        }
        for (name, feature, value) in [
            ("nvidia", "sm_arch", "90"),
            ("nvidia", "sm_arch", "90f_real"),
            ("nvidia", "sm_arch", "90_lto"),
            ("nvidia", "sm_arch", "86_virtual"),
            ("nvidia", "gfx_arch", "gfx1100"),
            ("amd", "gfx_arch", "gfx11"),
            ("amd", "gfx_arch", "gfx9999"),
            ("x86_64", "level", "v3"),
        ] {
            assert_eq!(VariantValue::parse(name, feature, value), None, "{value}");
        }
    }
}
