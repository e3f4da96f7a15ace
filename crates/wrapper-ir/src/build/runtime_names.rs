//! The names that CUDA and HIP differ in.

use super::{Name, ObjectFormat, OffloadKind};

/// The names that CUDA and HIP differ in.
pub(super) struct Names {
    /// The prefix of runtime functions.
    pub(super) runtime: &'static str,
    pub(super) register: Name,
    pub(super) unregister: Name,
    pub(super) handle: Name,
    pub(super) register_entries: Name,
    pub(super) image_section: &'static str,
    pub(super) wrapper_section: &'static str,
    pub(super) magic: u32,
    pub(super) image_align: u64,
}

impl Names {
    pub(super) fn new(kind: OffloadKind, format: ObjectFormat) -> Self {
        let mach_o = format == ObjectFormat::MachO;
        if kind == OffloadKind::HIP {
            Self {
                runtime: "__hip",
                register: ".hip.fatbin_reg".into(),
                unregister: ".hip.fatbin_unreg".into(),
                handle: ".hip.binary_handle".into(),
                register_entries: ".hip.globals_reg".into(),
                image_section: if mach_o { "__HIP,__hip_fatbin" } else { ".hip_fatbin" },
                wrapper_section: if mach_o { "__HIP,__fatbin" } else { ".hipFatBinSegment" },
                magic: 0x4849_5046, // "HIPF"
                image_align: 4096,
            }
        } else {
            Self {
                runtime: "__cuda",
                register: ".cuda.fatbin_reg".into(),
                unregister: ".cuda.fatbin_unreg".into(),
                handle: ".cuda.binary_handle".into(),
                register_entries: ".cuda.globals_reg".into(),
                image_section: if mach_o { "__NV_CUDA,__nv_fatbin" } else { ".nv_fatbin" },
                wrapper_section: if mach_o { "__NV_CUDA,__fatbin" } else { ".nvFatBinSegment" },
                magic: 0x4662_43b1,
                image_align: 8,
            }
        }
    }
}
