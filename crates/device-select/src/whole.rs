//! Does a file run on a device: the answer about all its units.

use fat_object::FileFormat;

use crate::answer::{Answer, Selection};
use crate::candidate::Candidate;
use crate::device::Device;
use crate::support::Support;
use crate::unit::Unit;

impl Selection {
    /// Returns whether a file that nobody named, such as one of a directory, is for devices of this vendor: it has code that is
    /// loaded as it is, and not only for the features of others. LLVM bitcode is a library for compilers; a linker makes code of
    /// LTO-IR. A file without kernels is ignored.
    #[must_use]
    pub fn concerns(&self, units: &[Unit], gpu: &Device) -> bool {
        let is_for = |unit: &Unit| {
            !unit.is_graphics() && unit.vendor().is_none_or(|vendor| vendor == gpu.vendor())
        };
        let is_code =
            |image: &Candidate| !matches!(image.format(), FileFormat::Bitcode | FileFormat::Mlir);
        let is_loaded = |unit: &Unit| unit.candidates().iter().any(is_code);
        let is_elsewhere = self.support() >= Support::Unknown
            && units.iter().all(|unit| unit.is_lto_ir() || unit.is_specific());
        self.answers().iter().any(Answer::counts)
            && !is_elsewhere
            && units.iter().any(|unit| is_for(unit) && is_loaded(unit))
    }
}

/// Returns the answer about the units of one file.
///
/// HIP, OpenMP and SYCL load what is registered: all of it must be there. The CUDA driver loads a container when a kernel of it
/// is asked for, and programs choose kernels by device. Containers that were built alike, for one list of targets, run
/// on the same devices; if some run on this one and others do not, they were built unlike, on purpose. Nothing
/// registers images outside of containers: programs hand them to the driver themselves, of any vendor.
pub(crate) fn of_file(units: &[Unit], answers: &[Answer], gpu: &Device) -> Support {
    let counted = || units.iter().zip(answers).filter(|(_, answer)| answer.counts());
    // A linker in the program makes code of it, or nobody does.
    if counted().next().is_some() && counted().all(|(unit, _)| unit.is_lto_ir()) {
        let is_foreign = |unit: &Unit| unit.is_foreign(gpu);
        return if units.iter().any(is_foreign) { Support::No } else { Support::Unknown };
    }
    let (mut result, mut some_serve, mut some_lack) = (Support::No, false, false);
    for (unit, answer) in counted() {
        let is_chosen = unit.is_chosen_by_program();
        match answer.lacks_code() {
            true if !is_chosen => return Support::No,
            true => some_lack = true,
            false => {
                some_serve |= is_chosen;
                result = Support::Yes;
            }
        }
    }
    match (some_lack, some_serve) {
        (true, true) => Support::Partly,
        (true, false) => Support::No,
        (false, _) => result,
    }
}
