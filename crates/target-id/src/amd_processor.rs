//! Facts about an AMD GPU processor.

use crate::feature::{Feature, Features};

/// The instruction set family of a processor.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Family {
    /// AMD GPUs from GCN on, triples `amdgcn` and `amdgpu`.
    AmdGcn,
    /// AMD GPUs before GCN, triple `r600`.
    R600,
    /// NVIDIA GPUs, triples `nvptx` and `nvptx64`.
    Nvptx,
    /// Intel processors.
    Intel,
    /// Portable SPIR-V for AMD GPUs, `amdgcnspirv`.
    AmdSpirv,
}

/// An AMD GPU processor of LLVM 24's AMDGPU usage guide, or a retired one.
///
/// ```
/// use target_id::Processor;
///
/// let tahiti = Processor::amdgpu("tahiti").ok_or("unknown")?;
/// assert_eq!((tahiti.name(), tahiti.elf_machine()), ("gfx600", 0x20));
/// let generic = Processor::amdgpu("gfx1103").and_then(|processor| processor.covered_by());
/// assert_eq!(generic.map(|generic| generic.name()), Some("gfx11-generic"));
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, PartialEq)]
pub struct Processor {
    pub(crate) machine: u32,
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) family: Family,
    pub(crate) features: Features,
    pub(crate) covers: &'static [&'static str],
    pub(crate) retired: bool,
}

impl Processor {
    /// Returns the number that the ELF headers of its code objects have in the low eight bits of `e_flags`, which
    /// LLVM's AMDGPU usage guide calls `EF_AMDGPU_MACH`.
    #[must_use]
    pub const fn elf_machine(&self) -> u32 {
        self.machine
    }

    /// Returns the primary name, the one canonical target IDs use.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the alternative names.
    #[must_use]
    pub const fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }

    /// Returns the family: [`AmdGcn`](Family::AmdGcn) or [`R600`](Family::R600).
    #[must_use]
    pub const fn family(&self) -> Family {
        self.family
    }

    /// Returns the target features its target IDs may have, in alphabetical order.
    ///
    /// ```
    /// use target_id::{Feature, Processor};
    ///
    /// let processor = Processor::amdgpu("gfx90a").unwrap();
    /// assert!(processor.features().eq([Feature::Sramecc, Feature::Xnack]));
    /// ```
    pub fn features(&self) -> impl Iterator<Item = Feature> + use<> {
        self.features.iter()
    }

    /// Returns whether its target IDs may have this feature.
    #[must_use]
    pub fn supports(&self, feature: &Feature) -> bool {
        let flag = feature.flag();
        !flag.is_empty() && self.features.contains(flag)
    }

    /// Returns whether this is a generic processor, code for which runs on several real ones.
    #[must_use]
    pub const fn is_generic(&self) -> bool {
        !self.covers.is_empty()
    }

    /// Returns the processors that code for this generic one runs on; empty if it is not generic.
    ///
    /// As the AMDGPU usage guide has it: such code objects need code object V6 and carry a
    /// version, which must be at least the one in which the processor joined. The version
    /// is in the code object, not in the target ID.
    #[must_use]
    pub const fn covers(&self) -> &'static [&'static str] {
        self.covers
    }

    /// Returns whether LLVM has dropped the processor (`gfx940`, `gfx941`). Older libraries carry it.
    #[must_use]
    pub const fn is_retired(&self) -> bool {
        self.retired
    }
}
