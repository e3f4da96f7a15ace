//! Makers of devices.

use target_id::{Family, NvidiaArch, processor_family};

/// The maker of a device, or of the runtimes that load an image.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Vendor {
    /// AMD.
    Amd,
    /// NVIDIA.
    Nvidia,
    /// Intel's, and portable SPIR-V that names no vendor.
    Intel,
}

impl Vendor {
    /// Returns the name as people write it: `AMD`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Vendor::Amd => "AMD",
            Vendor::Nvidia => "NVIDIA",
            Vendor::Intel => "Intel",
        }
    }

    /// Returns the vendor of a processor, if its name shows it.
    #[must_use]
    pub(crate) fn of_processor(name: &str) -> Option<Vendor> {
        match processor_family(name) {
            Some(Family::AmdGcn | Family::R600 | Family::AmdSpirv) => Some(Vendor::Amd),
            Some(Family::Nvptx) => Some(Vendor::Nvidia),
            Some(Family::Intel) => Some(Vendor::Intel),
            _ if name.starts_with("gfx") => Some(Vendor::Amd),
            _ if name.starts_with("intel_gpu_") => Some(Vendor::Intel),
            _ => NvidiaArch::parse(name).ok().map(|_| Vendor::Nvidia),
        }
    }
}
