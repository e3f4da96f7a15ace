//! GPUs that can be told to pass for another one.

use crate::device::Device;

/// A setting with which ROCm for Linux treats a GPU as another one of its family, and loads code for that.
///
/// AMD does not support it. It is documented in ROCm's issue tracker only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Override {
    processor: &'static str,
    version: &'static str,
}

/// GPUs that lack little of another one of their family, by LLVM's AMDGPU usage guide: those of gfx10-3-generic differ in nothing,
/// the others in limits and in what workarounds need.
const TABLE: &[(&[&str], Override)] = &[
    (
        &["gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"],
        Override { processor: "gfx1030", version: "10.3.0" },
    ),
    (&["gfx1101", "gfx1102", "gfx1103"], Override { processor: "gfx1100", version: "11.0.0" }),
    (&["gfx1011", "gfx1012", "gfx1013"], Override { processor: "gfx1010", version: "10.1.0" }),
    (&["gfx902", "gfx909", "gfx90c"], Override { processor: "gfx900", version: "9.0.0" }),
];

impl Override {
    /// Returns the override that people use for a device; `None` without one.
    ///
    /// ```
    /// use device_select::{Device, Override};
    ///
    /// let setting = Override::of(&Device::parse("gfx1103")?).unwrap();
    /// assert_eq!((setting.processor(), setting.version()), ("gfx1100", "11.0.0"));
    /// assert_eq!(Override::of(&Device::parse("gfx90a")?), None);
    /// # Ok::<(), device_select::NotADevice>(())
    /// ```
    #[must_use]
    pub fn of(device: &Device) -> Option<Self> {
        let name = device.id().processor();
        TABLE.iter().find(|(gpus, _)| gpus.contains(&name)).map(|(_, setting)| *setting)
    }

    /// Returns the processor that the device passes for.
    #[must_use]
    pub fn processor(&self) -> &'static str {
        self.processor
    }

    /// Returns the value of `HSA_OVERRIDE_GFX_VERSION`.
    #[must_use]
    pub fn version(&self) -> &'static str {
        self.version
    }
}

#[cfg(test)]
mod tests {
    use target_id::Processor;

    use super::*;

    #[test]
    fn an_override_stays_in_its_family() {
        for (gpus, setting) in TABLE {
            let base = Processor::amdgpu(setting.processor).unwrap();
            for gpu in *gpus {
                let info = Processor::amdgpu(gpu).unwrap();
                let family = |info: &Processor| info.covered_by().map(Processor::name);
                assert_eq!(family(info), family(base), "{gpu}");
                let digits: alloc::string::String = setting.version.split('.').collect();
                assert_eq!(setting.processor, alloc::format!("gfx{digits}"));
            }
        }
    }
}
