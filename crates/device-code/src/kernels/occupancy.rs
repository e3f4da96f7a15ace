//! The most waves that the registers of a kernel allow.
//!
//! AMD: the limits follow LLVM's `AMDGPUSubtarget` (`getVGPRAllocGranule`, `getTotalNumVGPRs`, `getMaxWavesPerEU`). They were compared
//! with the line `; Occupancy:` of clang 22's assembly.
//!
//! NVIDIA: the limits are those of "CUDA C++ Programming Guide", "Technical Specifications per Compute Capability", and of
//! `cuda_occupancy.h` and `arch_traits.h` of CUDA 13. No GPU was measured.

use target_id::{NvidiaArch, Processor};

use super::Kernel;

/// An upper bound of the waves that run at once, by registers alone. NVIDIA's word for a wave is warp.
///
/// Memory of a work-group and the size of a launch may lower it further; the image does not tell these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Occupancy {
    /// Waves of a SIMD (AMD), or of a multiprocessor (NVIDIA).
    pub waves: u32,
    /// The registers of a work-item that the bound follows from.
    pub registers: u32,
    /// The limits of the processor that the bound follows from.
    pub limits: RegisterLimits,
}

/// The limits of a processor on waves by their vector registers.
///
/// A wave gets [`granule`](Self::granule) registers or a multiple, out of the [`total`](Self::total) of a part. There are
/// [`parts`](Self::parts), and not more than [`max_waves`](Self::max_waves).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegisterLimits {
    /// Registers of a work-item that are allocated at once.
    pub granule: u32,
    /// Registers of each lane in one part.
    pub total: u32,
    /// Parts with registers of their own: 1 SIMD (AMD), the partitions of a multiprocessor (NVIDIA).
    pub parts: u32,
    /// The most waves, whatever they use.
    pub max_waves: u32,
}

impl RegisterLimits {
    /// Returns the limits of a processor for waves of a size; `None` for a processor or a size that is not in the tables.
    ///
    /// `processor` may be a target ID; the features have no influence.
    ///
    /// ```
    /// use device_code::RegisterLimits;
    ///
    /// let limits = RegisterLimits::of("gfx90a:xnack+", 64).ok_or("unknown")?;
    /// assert_eq!((limits.granule, limits.total, limits.max_waves), (8, 512, 8));
    /// assert_eq!(limits.waves(84), Some(5));
    /// assert_eq!(RegisterLimits::of("gfx9999", 64), None);
    /// # Ok::<(), &str>(())
    /// ```
    #[must_use]
    pub fn of(processor: &str, wave_size: u32) -> Option<Self> {
        let name = processor.split(':').next().unwrap_or(processor);
        match NvidiaArch::parse(name) {
            Ok(arch) if !arch.is_ptx() && wave_size == 32 => {
                nvidia(u32::from(arch.major()) * 10 + u32::from(arch.minor()))
            }
            Ok(_) => None,
            Err(_) => amd(Processor::amdgpu(name)?.name(), wave_size),
        }
    }

    /// Returns the most waves with this number of registers in each work-item; `None` if a wave cannot have so many.
    #[must_use]
    pub fn waves(&self, registers: u32) -> Option<u32> {
        let allocated = registers.max(1).checked_next_multiple_of(self.granule)?;
        let waves = self.total.checked_div(allocated).filter(|waves| *waves > 0)?;
        Some(waves.saturating_mul(self.parts).min(self.max_waves))
    }
}

impl Kernel<'_> {
    /// Returns the most waves that run at once on a processor by the kernel's registers, with the limits of that bound; `None` if the
    /// image does not state the registers, or if the processor is not in the tables.
    ///
    /// `processor` may be a target ID. The bound of AMD's kernels follows from [allocated](Kernel::registers_allocated)
    /// registers where they are known. They were compared with LLVM's; the limits of NVIDIA's GPUs are from NVIDIA's documentation.
    ///
    /// ```
    /// use device_code::Kernel;
    ///
    /// let mut kernel = Kernel::default();
    /// assert_eq!(kernel.occupancy("gfx90a"), None);
    /// (kernel.registers, kernel.wave_size) = (Some(84), Some(64));
    /// let bound = kernel.occupancy("gfx90a").ok_or("unknown")?;
    /// assert_eq!((bound.waves, bound.limits.total, bound.limits.max_waves), (5, 512, 8));
    /// # Ok::<(), &str>(())
    /// ```
    #[must_use]
    pub fn occupancy(&self, processor: &str) -> Option<Occupancy> {
        let limits = RegisterLimits::of(processor, self.wave_size?)?;
        let registers = self.registers_allocated.or(self.registers)?;
        Some(Occupancy { waves: limits.waves(registers)?, registers, limits })
    }
}

/// Returns the limits of a SIMD. Names of generic processors stand for the smallest register file of theirs.
fn amd(name: &str, wave_size: u32) -> Option<RegisterLimits> {
    let (granule, total, max_waves) = match name {
        "gfx600" | "gfx601" | "gfx602" | "gfx700" | "gfx701" | "gfx702" | "gfx703" | "gfx704"
        | "gfx705" | "gfx801" | "gfx803" | "gfx810" | "gfx900" | "gfx902" | "gfx904" | "gfx906"
        | "gfx908" | "gfx909" | "gfx90c" | "gfx9-generic" => (4, 256, 10),
        // Each wave has 96 scalar registers there, which allow 8 waves.
        "gfx802" | "gfx805" => (4, 256, 8),
        "gfx90a" | "gfx942" | "gfx950" | "gfx9-4-generic" => (8, 512, 8),
        "gfx1010" | "gfx1011" | "gfx1012" | "gfx1013" | "gfx10-1-generic" => (8, 1024, 20),
        "gfx1030" | "gfx1031" | "gfx1032" | "gfx1033" | "gfx1034" | "gfx1035" | "gfx1036"
        | "gfx1102" | "gfx1103" | "gfx1150" | "gfx1152" | "gfx1153" | "gfx1250" | "gfx1251"
        | "gfx10-3-generic" | "gfx11-generic" => (16, 1024, 16),
        "gfx1100" | "gfx1101" | "gfx1151" | "gfx1200" | "gfx1201" | "gfx12-generic" => {
            (24, 1536, 16)
        }
        _ => return None,
    };
    // A wave of 64 takes two of these registers for each of its own, where there are waves of 32.
    let per_register = match (name, wave_size) {
        ("gfx1250" | "gfx1251", 64) => return None,
        (_, 32) if name.starts_with("gfx1") => 1,
        (_, 64) if name.starts_with("gfx1") => 2,
        (_, 64) => 1,
        _ => return None,
    };
    let (granule, total) = (granule / per_register, total / per_register);
    Some(RegisterLimits { granule, total, parts: 1, max_waves })
}

/// Returns the limits of a multiprocessor. A warp gets multiples of 256 registers out of 65,536, which are divided among the parts.
fn nvidia(capability: u32) -> Option<RegisterLimits> {
    let max_waves = match capability {
        50 | 52 | 53 | 60 | 61 | 62 | 70 | 80 | 90 | 100 | 103 => 64,
        86 | 87 | 88 | 89 | 110 | 120 | 121 => 48,
        75 => 32,
        _ => return None,
    };
    let parts = if capability == 60 { 2 } else { 4 };
    Some(RegisterLimits { granule: 256 / 32, total: 65_536 / 32 / parts, parts, max_waves })
}
