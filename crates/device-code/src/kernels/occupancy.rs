//! The most waves that the registers of a kernel allow.
//!
//! AMD: the limits follow LLVM's `AMDGPUSubtarget` (`getVGPRAllocGranule`, `getTotalNumVGPRs`, `getMaxWavesPerEU`). They were compared
//! with the line `; Occupancy:` of clang 22's assembly.
//!
//! NVIDIA: the limits are those of "CUDA C++ Programming Guide", "Technical Specifications per Compute Capability", and of
//! `cuda_occupancy.h` and `arch_traits.h` of CUDA 13. No GPU was measured.

use core::fmt;

use target_id::{NvidiaArch, Processor};

use super::Kernel;

/// An upper bound of the waves that run at once, by vector registers alone. NVIDIA's word for a wave is warp.
///
/// Scalar registers, memory of a work-group and the size of a launch may lower it further; the image does not tell these.
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

/// The limits in words: `a SIMD has 512 registers in granules of 8, and 8 waves`.
impl fmt::Display for RegisterLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RegisterLimits { granule, total, parts, max_waves } = self;
        match parts {
            1 => f.write_str("a SIMD")?,
            _ => write!(f, "each of {parts} parts of a multiprocessor")?,
        }
        write!(f, " has {total} registers in granules of {granule}, and ")?;
        match parts {
            1 => write!(f, "{max_waves} waves"),
            _ => write!(f, "all {max_waves} warps"),
        }
    }
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

    /// Returns the most waves with this number of registers in each work-item; `None` for more than a
    /// wave can have.
    #[must_use]
    pub fn waves(&self, registers: u32) -> Option<u32> {
        let allocated = registers.max(1).checked_next_multiple_of(self.granule)?;
        let waves = self.total.checked_div(allocated).filter(|waves| *waves > 0)?;
        // Any numbers can be in the fields.
        Some(waves.saturating_mul(self.parts).min(self.max_waves))
    }
}

impl Kernel<'_> {
    /// Returns the most waves that run at once on a processor by the kernel's vector registers, with the limits of that bound; `None` if the
    /// image does not state the registers, or if the processor is not in the tables.
    ///
    /// `processor` may be a target ID. The bound of AMD's kernels follows from [allocated](Kernel::registers_allocated)
    /// registers where they are known, and was compared with LLVM's; the limits of NVIDIA's GPUs are from NVIDIA's documentation.
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

/// Returns the limits of a SIMD. A generic processor has the smallest register file of the processors that it covers.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Each row has processors, the size of a wave, and the waves of measured numbers of registers, from the first to the last.
    fn check(rows: &[(&str, u32, &str)]) {
        for (processors, wave_size, points) in rows {
            for processor in processors.split(' ') {
                let limits = RegisterLimits::of(processor, *wave_size).expect(processor);
                for point in points.split(' ') {
                    let (registers, waves) = point.split_once(':').expect(point);
                    for registers in registers.split('-') {
                        let found = limits.waves(registers.parse().expect(point));
                        assert_eq!(found, waves.parse().ok(), "{processor} {wave_size} {point}");
                    }
                }
            }
        }
    }

    /// The line `; Occupancy:` of clang 22, which was read at 45 numbers of registers, and at 18 more that include accumulation registers,
    /// for each processor: kernels of work-groups of 1 to 64 items that clobber the last register.
    #[test]
    fn bounds_are_those_of_llvm() {
        check(&[
            (
                "gfx10-1-generic gfx1010 gfx1011 gfx1012 gfx1013",
                32,
                "1-48:20 49-56:18 60-64:16 65-72:14 73-80:12 84-88:11 96:10 97-112:9 120-128:8 \
                 129-144:7 160-168:6 169-193:5 216-256:4",
            ),
            (
                "gfx10-3-generic gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036 \
                 gfx11-generic gfx1102 gfx1103 gfx1150 gfx1152 gfx1153 gfx1250 gfx1251",
                32,
                "1-64:16 65-80:12 84-96:10 97-112:9 120-128:8 129-144:7 160:6 168-192:5 \
                 193-256:4",
            ),
            (
                "gfx1100 gfx1101 gfx1151 gfx12-generic gfx1200 gfx1201",
                32,
                "1-96:16 97-120:12 121-144:10 160-168:9 169-192:8 193-216:7 240:6 255-256:5",
            ),
            (
                "gfx600 gfx601 gfx602 gfx700 gfx701 gfx702 gfx703 gfx704 gfx705 gfx801 gfx803 \
                 gfx810 gfx9-generic gfx900 gfx902 gfx904 gfx906 gfx908 gfx909 gfx90c",
                64,
                "1-24:10 25-28:9 32:8 33-36:7 40:6 41-48:5 49-64:4 65-84:3 85-128:2 129-256:1",
            ),
            ("gfx802 gfx805", 64, "1-32:8 33-36:7 40:6 41-48:5 49-64:4 65-84:3 85-128:2 129-256:1"),
            (
                "gfx9-4-generic gfx90a gfx942 gfx950",
                64,
                "1-64:8 65-72:7 73-80:6 84-96:5 97-128:4 129-168:3 169-256:2 257-512:1",
            ),
            (
                "gfx10-1-generic gfx1010 gfx1011 gfx1012 gfx1013",
                64,
                "1-24:20 25-28:18 32:16 33-36:14 40:12 41:11 48:10 49-56:9 60-64:8 65-72:7 \
                 73-84:6 85-97:5 104-128:4 129-168:3 169-256:2",
            ),
            (
                "gfx10-3-generic gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036 \
                 gfx11-generic gfx1102 gfx1103 gfx1150 gfx1152 gfx1153",
                64,
                "1-32:16 33-40:12 41-48:10 49-56:9 60-64:8 65-72:7 73-80:6 84-96:5 97-128:4 \
                 129-168:3 169-256:2",
            ),
            (
                "gfx1100 gfx1101 gfx1151 gfx12-generic gfx1200 gfx1201",
                64,
                "1-48:16 49-60:12 64-72:10 73-84:9 85-96:8 97-104:7 112-120:6 121-144:5 \
                 160-192:4 193-240:3 255-256:2",
            ),
        ]);
    }

    /// `cudaOccMaxBlocksPerSMRegsLimit` of CUDA 13.5's `cuda_occupancy.h`, which was called with blocks of 32 for 1 to 255 registers.
    #[test]
    fn bounds_are_those_of_nvidia() {
        check(&[
            (
                "sm_50 sm_52 sm_53 sm_61 sm_62 sm_70 sm_80 sm_90 sm_100 sm_103",
                32,
                "1-32:64 33-40:48 41-48:40 49-56:36 57-64:32 65-72:28 73-80:24 81-96:20 \
                 97-128:16 129-168:12 169-255:8",
            ),
            (
                "sm_60",
                32,
                "1-32:64 33-40:50 41-48:42 49-56:36 57-64:32 65-72:28 73-80:24 81-88:22 \
                 89-96:20 97-112:18 113-128:16 129-144:14 145-168:12 169-200:10 201-255:8",
            ),
            ("sm_75", 32, "1-64:32 65-72:28 73-80:24 81-96:20 97-128:16 129-168:12 169-255:8"),
            (
                "sm_86 sm_87 sm_88 sm_89 sm_110 sm_120 sm_121",
                32,
                "1-40:48 41-48:40 49-56:36 57-64:32 65-72:28 73-80:24 81-96:20 97-128:16 \
                 129-168:12 169-255:8",
            ),
        ]);
    }

    #[test]
    fn other_processors_have_no_bound() {
        for (processor, wave_size) in [
            ("gfx940", 64),
            ("gfx1250", 64),
            ("gfx900", 32),
            ("gfx1100", 16),
            ("gfx1310", 32),
            ("gfx12-5-generic", 32),
            ("sm_35", 32),
            ("sm_101", 32),
            ("sm_90", 64),
            ("compute_90", 32),
            ("", 32),
        ] {
            assert_eq!(RegisterLimits::of(processor, wave_size), None, "{processor} {wave_size}");
        }
        assert_eq!(RegisterLimits::of("hawaii:xnack-", 64), RegisterLimits::of("gfx701", 64));
        assert_eq!(RegisterLimits::of("sm_90a", 32), RegisterLimits::of("sm_90", 32));
        let limits = RegisterLimits::of("gfx90a", 64).unwrap();
        assert_eq!(
            [0, 512, 513, u32::MAX].map(|n| limits.waves(n)),
            [Some(8), Some(1), None, None]
        );
    }

    #[test]
    fn allocated_registers_come_first() {
        let used = Kernel { registers: Some(47), wave_size: Some(64), ..Kernel::default() };
        let allocated = Kernel { registers_allocated: Some(64), ..used.clone() };
        assert_eq!(used.occupancy("gfx900").map(|bound| bound.waves), Some(5));
        let bound = allocated.occupancy("gfx900").unwrap();
        assert_eq!((bound.waves, bound.registers), (4, 64));
        assert_eq!(Kernel { wave_size: None, ..used }.occupancy("gfx900"), None);
    }
}
