//! The next step after a no: what to install or to build.

use std::collections::BTreeMap;

use device_select::{Device, Vendor};
use target_id::IntelGpu;

use tool_kit::report;

/// The GPUs for which something has no code, by their names.
#[derive(Default)]
pub(super) struct Advice(BTreeMap<String, String>);

impl Advice {
    /// Adds a GPU, if compilers know it.
    pub(super) fn add(&mut self, gpu: &Device) {
        if gpu.is_unknown() {
            return;
        }
        self.0.entry(gpu.name()).or_insert_with(|| flags(gpu));
    }

    /// Notes the next step for each.
    pub(super) fn report(&self) {
        for (gpu, flags) in &self.0 {
            report::note(&format_args!("for {gpu}, install a build for it, or build with {flags}"));
        }
    }
}

/// Returns the options of compilers that make code for a GPU.
fn flags(gpu: &Device) -> String {
    let name = gpu.id().processor();
    match gpu.vendor() {
        Vendor::Amd => {
            let generic = gpu.id().processor_info().and_then(|info| info.covered_by());
            match generic {
                Some(generic) => {
                    let generic = generic.name();
                    format!("--offload-arch={name}, or --offload-arch={generic}, which covers it")
                }
                None => format!("--offload-arch={name}"),
            }
        }
        Vendor::Nvidia => {
            let number = name.trim_start_matches("sm_").trim_end_matches(['a', 'f']);
            format!("-gencode arch=compute_{number},code=[sm_{number},compute_{number}]")
        }
        _ => {
            let target = match IntelGpu::find(name) {
                Some(known) => known.name(),
                None => name,
            };
            format!("-fsycl-targets={target}, or spir64 for all GPUs of Intel's")
        }
    }
}
