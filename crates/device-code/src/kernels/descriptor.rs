//! Kernel descriptors of AMD's GPUs: 64 bytes that the hardware starts a kernel by (LLVM's AMDGPU usage guide, "Kernel
//! Descriptor").

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a descriptor.
pub(super) const LEN: usize = size_of::<Descriptor>();

/// A kernel descriptor, little-endian.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Descriptor {
    /// Bytes of group memory.
    pub(super) group_segment: U32,
    /// Bytes of private memory.
    pub(super) private_segment: U32,
    /// Bytes of arguments.
    pub(super) arguments: U32,
    reserved: [u8; 4],
    /// Offset of the code from the descriptor.
    entry: U64,
    reserved_too: [u8; 20],
    rsrc3: U32,
    rsrc1: U32,
    rsrc2: U32,
    /// Properties of the code.
    properties: U16,
    /// Arguments that are loaded before the kernel starts.
    preload: U16,
    reserved_last: [u8; 4],
}

impl Descriptor {
    pub(super) fn read(bytes: &[u8]) -> Option<&Self> {
        Some(Self::ref_from_prefix(bytes).ok()?.0)
    }

    pub(super) fn wave_size(&self) -> u32 {
        const WAVEFRONT_SIZE32: u16 = 1 << 10;
        if self.properties.get() & WAVEFRONT_SIZE32 == 0 { 64 } else { 32 }
    }

    /// Returns whether the stack grows by an amount that is not known before the kernel runs.
    pub(super) fn has_dynamic_stack(&self) -> bool {
        const USES_DYNAMIC_STACK: u16 = 1 << 11;
        self.properties.get() & USES_DYNAMIC_STACK != 0
    }

    /// Returns the distance from the descriptor to the code, in two's complement. A linker writes it.
    pub(super) fn entry(&self) -> u64 {
        self.entry.get()
    }

    /// Returns the vector registers that the hardware allocates; `None` for a processor whose granule is not known.
    pub(super) fn registers(&self, processor: &str) -> Option<u32> {
        let granule = granule(processor, self.wave_size())?;
        Some(((self.rsrc1.get() & 0x3f) + 1) * granule)
    }
}

/// The start of `amd_kernel_code_t`, the descriptor of a kernel of a code object of version 2, little-endian (LLVM's
/// `AMDKernelCodeT.h`). It has 256 bytes.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct CodeHeader {
    version: U32,
    minor_version: U32,
    /// 1: a GPU.
    machine_kind: U16,
    machine_version: [u8; 6],
    /// Offset of the code from the header.
    entry: U64,
}

impl CodeHeader {
    /// Bytes of a whole header.
    pub(super) const LEN: usize = 256;

    /// Returns the header that the bytes start with; `None` if it is another one.
    pub(super) fn read(bytes: &[u8]) -> Option<&Self> {
        let (header, _) = Self::ref_from_prefix(bytes.get(..Self::LEN)?).ok()?;
        (header.version.get() == 1 && header.machine_kind.get() == 1).then_some(header)
    }

    /// Returns the offset of the code from the header, which it follows.
    pub(super) fn entry(&self) -> Option<usize> {
        usize::try_from(self.entry.get()).ok().filter(|entry| *entry >= Self::LEN)
    }
}

/// Returns the number of vector registers for one unit of the descriptor's field (the same guide,
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
