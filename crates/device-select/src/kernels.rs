//! Judgement of SYCL images whose kernels are known: the runtime chooses one for each kernel.

use alloc::vec::Vec;
use std::collections::{HashMap, HashSet};

use crate::answer::{Answer, Condition, Given, Judged, Note};
use crate::device::Device;
use crate::fit::Fit;
use crate::reason::Why;
use crate::runtime::Runtime;
use crate::unit::Unit;

/// Judges a unit whose images have tables that name kernels; `None` for others.
///
/// Among the images with a kernel the runtime takes machine code for the GPU, else the last with portable code (`sycl-rt`:
/// `getDeviceImage`, `urDeviceSelectBinary`).
pub(crate) fn judge(unit: &Unit, gpu: &Device, fits: &[Fit]) -> Option<Answer> {
    if unit.runtime != Runtime::Sycl {
        return None;
    }
    let mut images: HashMap<&str, Vec<usize>> = HashMap::new();
    for (n, candidate) in unit.candidates.iter().enumerate() {
        for kernel in candidate.kernels().into_iter().flatten() {
            images.entry(kernel).or_default().push(n);
        }
    }
    if images.is_empty() {
        return None;
    }
    let mut picked = HashSet::new();
    let (mut states, mut may_fit, mut has_some) = (gpu.all_states(), false, false);
    for images in images.values() {
        let fitting = || images.iter().filter_map(|&n| Some((n, fits.get(n)?)));
        let found = fitting().fold(0, |states, (_, fit)| states | fit.states);
        let best = fitting().filter(|(_, fit)| fit.states != 0);
        let best = best.min_by_key(|(n, fit)| (fit.tier(), if fit.tier() == 2 { !n } else { *n }));
        picked.extend(best.map(|(n, _)| n));
        has_some |= found != 0;
        // Machine code for GPUs that nothing names may do for this kernel.
        match found {
            0 if fitting().any(|(_, fit)| fit.may_fit) => may_fit = true,
            found => states &= found,
        }
    }
    let given = match Given::in_states(gpu, states) {
        Given::No => Given::No,
        _ if may_fit => Given::If(Condition::machine_code()),
        given => given,
    };
    let is_if = matches!(given, Given::If(_)) && may_fit;
    let judged = fits.iter().zip(&unit.candidates).enumerate().map(|(n, (fit, candidate))| {
        // Images without kernels hold functions and variables that others import.
        let has_kernels = candidate.kernels().is_some_and(|kernels| !kernels.is_empty());
        match (fit.states, !has_kernels || picked.contains(&n)) {
            (0, true) if is_if && fit.may_fit => {
                let given = Given::If(Condition::machine_code());
                Judged { given, why: fit.why_not(gpu) }
            }
            (0, _) => Judged { given: Given::No, why: fit.why_not(gpu) },
            (states, true) => Judged { given: Given::in_states(gpu, states), why: fit.why(states) },
            (_, false) => Judged { given: Given::No, why: Why::KernelsElsewhere },
        }
    });
    let lacks_some = given == Given::No && has_some;
    let note = lacks_some.then_some(Note::SomeKernels);
    Some(Answer::new(given, judged.collect(), note))
}
