//! Numbers in ELF files that the crate `object` does not name.

/// Machine of Intel's GPUs.
pub const EM_INTELGT: u16 = 205;
/// Type of a section with offload binaries (LLVM's `ELF.h`).
pub const SHT_LLVM_OFFLOADING: u32 = 0x6fff_4c0b;
