//! Kernel descriptors of AMD's GPUs: 64 bytes that the hardware starts a kernel by (LLVM's AMDGPU usage guide, "Kernel
//! Descriptor").

/// Bytes of a descriptor.
pub(super) const LEN: usize = 64;

/// The fields of a descriptor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Descriptor {
    pub(super) group_segment: u32,
    pub(super) private_segment: u32,
    pub(super) arguments: u32,
    rsrc1: u32,
    properties: u16,
}

impl Descriptor {
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; LEN] = bytes.first_chunk()?;
        let number =
            |at: usize| bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        Some(Descriptor {
            group_segment: number(0)?,
            private_segment: number(4)?,
            arguments: number(8)?,
            rsrc1: number(48)?,
            properties: u16::from_le_bytes(*bytes.get(56..)?.first_chunk()?),
        })
    }

    pub(super) fn wave_size(self) -> u32 {
        const WAVEFRONT_SIZE32: u16 = 1 << 10;
        if self.properties & WAVEFRONT_SIZE32 == 0 { 64 } else { 32 }
    }

    /// Returns whether the stack grows by an amount that is not known before the kernel runs.
    pub(super) fn has_dynamic_stack(self) -> bool {
        const USES_DYNAMIC_STACK: u16 = 1 << 11;
        self.properties & USES_DYNAMIC_STACK != 0
    }

    /// Returns the vector registers that the hardware allocates; `None` for a processor whose granule is not known.
    pub(super) fn registers(self, processor: &str) -> Option<u32> {
        let granule = granule(processor, self.wave_size())?;
        Some(((self.rsrc1 & 0x3f) + 1) * granule)
    }
}

/// Returns the number of vector registers that one unit of the descriptor's field stands for (the same guide,
/// "compute_pgm_rsrc1": GRANULATED_WORKITEM_VGPR_COUNT).
fn granule(processor: &str, wave_size: u32) -> Option<u32> {
    let is_of = |families: &[&str]| families.iter().any(|family| processor.starts_with(family));
    match wave_size {
        _ if is_of(&["gfx90a", "gfx94", "gfx950", "gfx9-4-generic"]) => Some(8),
        32 if is_of(&["gfx125"]) => Some(16),
        _ if is_of(&["gfx125"]) => None,
        32 if is_of(&["gfx10", "gfx11", "gfx12"]) => Some(8),
        _ if is_of(&["gfx6", "gfx7", "gfx8", "gfx9", "gfx10", "gfx11", "gfx12"]) => Some(4),
        _ => None,
    }
}
