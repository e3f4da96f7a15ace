//! Processors by their names.

use crate::amd_processor::{Family, Processor};
use crate::amdgpu::{AMDGCN, R600};
use crate::intel::IntelGpu;
use crate::nvidia::NvidiaArch;
use crate::triple::arch::amdgpu_processor;

impl Processor {
    /// Returns the AMD GPU processor with this primary or alternative name. Names are case-sensitive.
    #[must_use]
    pub fn amdgpu(name: &str) -> Option<&'static Self> {
        // Most other names are these, and the tables are long.
        if name.starts_with("sm_") {
            return None;
        }
        // Nor has another table such names, or a processor a second one.
        if name.starts_with("gfx") {
            return AMDGCN.iter().find(|processor| processor.name == name);
        }
        Self::in_family(Family::AmdGcn, name).or_else(|| Self::in_family(Family::R600, name))
    }

    pub(crate) fn in_family(family: Family, name: &str) -> Option<&'static Self> {
        let table = match family {
            Family::AmdGcn => AMDGCN,
            Family::R600 => R600,
            Family::Nvptx | Family::Intel | Family::AmdSpirv => return None,
        };
        table.iter().find(|processor| processor.name == name || processor.aliases.contains(&name))
    }

    /// Returns the AMD GPU processor with this number, `EF_AMDGPU_MACH` of the flags in the ELF header of its code
    /// objects: see [`elf_machine`](Self::elf_machine).
    #[must_use]
    pub(crate) fn from_elf_machine(machine: u32) -> Option<&'static Self> {
        amdgpu_processors().find(|processor| processor.machine == machine)
    }

    /// Returns the processor that the architecture of a triple names: `gfx950` for `amdgpu9.50`,
    /// `gfx9-4-generic` for its family `amdgpu9.4`. LLVM 24 takes such names as `--offload-arch`. `None` for
    /// families without a generic processor, and for architectures that name no sub-architecture.
    #[must_use]
    pub fn from_architecture(arch: &str) -> Option<&'static Self> {
        Self::in_family(Family::AmdGcn, amdgpu_processor(arch)?)
    }

    /// Returns the generic processor whose code runs on this one, if there is one.
    #[must_use]
    pub fn covered_by(&self) -> Option<&'static Self> {
        AMDGCN.iter().find(|generic| generic.covers.contains(&self.name))
    }
}

/// Returns all AMD GPU processors, the retired, generic and pre-GCN ones included.
pub(crate) fn amdgpu_processors() -> impl DoubleEndedIterator<Item = &'static Processor> + Clone {
    AMDGCN.iter().chain(R600)
}

/// NVIDIA processors LLVM 24 knows. The names of 10.7 are new in LLVM 24, the others with `f` in LLVM 23.
const NVIDIA: &[&str] = &[
    "sm_20", "sm_21", "sm_30", "sm_32", "sm_35", "sm_37", "sm_50", "sm_52", "sm_53", "sm_60",
    "sm_61", "sm_62", "sm_70", "sm_72", "sm_75", "sm_80", "sm_86", "sm_87", "sm_88", "sm_89",
    "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_100f", "sm_101", "sm_101a", "sm_101f", "sm_103",
    "sm_103a", "sm_103f", "sm_107", "sm_107a", "sm_107f", "sm_110", "sm_110a", "sm_110f", "sm_120",
    "sm_120a", "sm_120f", "sm_121", "sm_121a", "sm_121f",
];

/// Intel's processors that clang has names for.
pub(crate) const INTEL: &[&str] = &["graniterapids", "bmg_g21"];

/// The processor of portable AMD code, SPIR-V that is compiled for the device when it is loaded.
pub(crate) const AMDGCNSPIRV: &str = "amdgcnspirv";

/// The processor name for no particular processor.
pub(crate) const GENERIC: &str = "generic";

/// Returns the family of a processor, by its primary or alternative name. `generic` has none.
#[must_use]
pub fn processor_family(name: &str) -> Option<Family> {
    if let Some(processor) = Processor::amdgpu(name) {
        Some(processor.family)
    } else if NVIDIA.contains(&name) {
        Some(Family::Nvptx)
    } else if INTEL.contains(&name) || IntelGpu::find(name).is_some() {
        Some(Family::Intel)
    } else if name == AMDGCNSPIRV {
        Some(Family::AmdSpirv)
    } else {
        None
    }
}

/// Returns whether this crate knows the processor: AMD's, NVIDIA's, Intel's, portable or `generic`.
#[must_use]
pub fn is_known_processor(name: &str) -> bool {
    name == GENERIC || processor_family(name).is_some()
}

/// Returns whether a processor may be called so: it is known, or newer than this crate.
///
/// ```
/// use target_id::may_be_processor;
///
/// assert!(may_be_processor("gfx90a") && may_be_processor("gfx1399") && may_be_processor("sm_200"));
/// assert!(!may_be_processor("gfx90A") && !may_be_processor("compute_90"));
/// ```
#[must_use]
pub fn may_be_processor(name: &str) -> bool {
    let is_new = |name: &str| {
        let digits = name.strip_prefix("gfx").unwrap_or_default();
        (3..=5).contains(&digits.len())
            && digits.starts_with(|c: char| c.is_ascii_digit())
            && digits.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
    };
    is_known_processor(name)
        || is_new(name)
        || name.starts_with("intel_gpu_")
        || NvidiaArch::parse(name).is_ok_and(|arch| !arch.is_ptx())
}

/// Returns the names of all processors this crate knows, without `generic`: of AMD's the alternative ones, too, of
/// Intel's GPUs one spelling each, see [`IntelGpu`].
pub fn processor_names() -> impl Iterator<Item = &'static str> + Clone {
    let amd = amdgpu_processors().flat_map(|processor| {
        core::iter::once(processor.name).chain(processor.aliases.iter().copied())
    });
    let intel = INTEL.iter().copied().chain(IntelGpu::all().map(IntelGpu::name));
    amd.chain(NVIDIA.iter().copied()).chain(intel).chain([AMDGCNSPIRV])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature::Features;
    use crate::llvm::bundler_accepts;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    #[test]
    fn names_are_unique() {
        let mut seen = BTreeSet::new();
        for processor in amdgpu_processors() {
            for name in core::iter::once(&processor.name).chain(processor.aliases) {
                assert!(seen.insert(*name), "{name} twice");
                assert_eq!(Processor::amdgpu(name), Some(processor));
                assert!(is_known_processor(name));
            }
        }
        for name in NVIDIA.iter().chain(INTEL).chain([&AMDGCNSPIRV, &GENERIC]) {
            assert!(seen.insert(name), "{name} twice");
            assert!(is_known_processor(name) && bundler_accepts(name));
        }
    }

    #[test]
    fn machines_are_unique() {
        let mut seen = BTreeSet::new();
        for processor in amdgpu_processors() {
            let machine = processor.elf_machine();
            assert!((1..=0xff).contains(&machine) && seen.insert(machine), "{machine:#x} twice");
            assert_eq!(Processor::from_elf_machine(machine), Some(processor));
        }
        assert_eq!(Processor::from_elf_machine(0), None);
        assert_eq!(Processor::from_elf_machine(0x3f).unwrap().name(), "gfx90a");
    }

    #[test]
    fn all_names_are_known() {
        assert!(processor_names().all(|name| processor_family(name).is_some()));
        for name in ["gfx90a", "tahiti", "gfx9-generic", "cayman", "sm_90a", "bmg_g21"] {
            assert!(processor_names().any(|known| known == name), "{name}");
        }
    }

    #[test]
    fn aliases_lead_to_the_primary_name() {
        for (alias, primary) in [
            ("tahiti", "gfx600"),
            ("polaris11", "gfx803"),
            ("tongapro", "gfx805"),
            ("palm", "cedar"),
        ] {
            assert_eq!(Processor::amdgpu(alias).unwrap().name(), primary);
        }
        assert_eq!(Processor::amdgpu("Tahiti"), None);
        assert_eq!(Processor::amdgpu("generic"), None);
    }

    #[test]
    fn each_covered_processor_has_one_generic_processor() {
        let mut seen = BTreeSet::new();
        for generic in amdgpu_processors().filter(|processor| processor.is_generic()) {
            assert!(generic.name().ends_with("-generic"));
            for name in generic.covers() {
                let processor = Processor::amdgpu(name).unwrap();
                assert_eq!(processor.covered_by(), Some(generic));
                assert!(!processor.is_generic() && !processor.is_retired());
                assert!(seen.insert(*name));
            }
        }
        for name in ["gfx803", "gfx908", "gfx90a", "gfx940", "gfx9-generic"] {
            assert_eq!(Processor::amdgpu(name).unwrap().covered_by(), None, "{name}");
        }
    }

    #[test]
    fn features_of_some_processors_are_known() {
        let features = |name| Processor::amdgpu(name).unwrap().features;
        assert_eq!(features("gfx906"), Features::ALL);
        assert_eq!(features("gfx940"), Features::ALL);
        assert_eq!(features("gfx90c"), Features::XNACK);
        assert_eq!(features("gfx1250"), Features::ALL);
        assert_eq!(features("gfx1250-strict"), Features::XNACK);
        assert_eq!(features("gfx12-5-generic"), Features::NONE);
        assert_eq!(features("gfx1030"), Features::NONE);
    }

    #[test]
    fn the_bundler_accepts_all_but_these_names() {
        for name in [
            "tahiti",
            "gfx940",
            "gfx941",
            "r600",
            "cayman",
            "gfx999",
            "gfx90A",
            "sm_99",
            "compute_70",
            "gfx906+xnack",
            "",
        ] {
            assert!(!bundler_accepts(name), "{name}");
        }
        let accepted: Vec<_> =
            amdgpu_processors().filter(|processor| bundler_accepts(processor.name())).collect();
        assert_eq!(accepted.len(), AMDGCN.len() - 2);
    }
}
