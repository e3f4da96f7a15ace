//! The next step after a no: what to install or to build.

use std::collections::BTreeMap;

use device_select::Device;

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
        self.0.entry(gpu.name()).or_insert_with(|| gpu.compiler_options());
    }

    /// Notes the next step for each.
    pub(super) fn report(&self) {
        for (gpu, flags) in &self.0 {
            report::note(&format_args!("for {gpu}, install a build for it, or build with {flags}"));
        }
    }
}
