//! The choice: what a device gets of each unit, and why it does not get the rest.

use alloc::borrow::ToOwned;
use alloc::vec::Vec;
use std::collections::{HashMap, HashSet};

use fat_object::ContainerKind;
use target_id::Verdict;

use crate::answer::{Answer, Condition, Given, Judged, Note, Selection};
use crate::candidate::Candidate;
use crate::device::Device;
use crate::fit::Fit;
use crate::kernels;
use crate::order::{Order, pick};
use crate::reason::{Before, Why};
use crate::runtime::Runtime;
use crate::unit::Unit;
use crate::whole;

/// Returns the images that a device loads from each unit of one file, and the units it needs.
///
/// Units for other vendors do not count if there are any others; neither do units without kernels, relocatable CUDA code
/// that was linked, and code for the features of other NVIDIA GPUs (`sm_90a`) or LTO-IR if another unit has code for this one.
pub fn select(units: &[Unit], device: &Device) -> Selection {
    let mut answers: Vec<_> = units.iter().map(|unit| judge(unit, device)).collect();
    lose(units, &mut answers);
    link(units, &mut answers);
    leave_out_metadata(units, &mut answers);
    leave_out_foreign(units, device, &mut answers);
    leave_out_others(units, &mut answers);
    let support = whole::of_file(units, &answers, device);
    Selection::new(answers, support)
}

/// Returns the images that a device gets from a unit.
///
/// - HIP: native code before generic code before SPIR-V; of equals the first in a plain bundle, and the one that leaves
///   the fewest features open in a compressed bundle (HIP's `ExtractFatBinaryUsingCOMGR`, Comgr's `lookUpCodeObject`).
/// - OpenMP: the first that fits, in offload binaries (`registerLib` of LLVM's libomptarget).
/// - CUDA: machine code before PTX, each with the highest compute capability (NVIDIA's compatibility guides).
/// - Otherwise what fits best.
fn judge(unit: &Unit, gpu: &Device) -> Answer {
    let order = order(unit);
    let fits: Vec<Fit> =
        unit.candidates.iter().map(|candidate| Fit::new(&candidate.code(), gpu)).collect();
    if let Some(answer) = kernels::judge(unit, gpu, &fits) {
        return answer;
    }
    let verdict = |image: usize, state: usize| fits.get(image)?.fitting(state);
    let picked = pick(order, gpu, fits.len(), verdict);
    let union = picked.values().fold(0, |union, states| union | states);
    let mut given = Given::in_states(gpu, union);
    let is_unnamed = given == Given::No && fits.iter().any(|fit| fit.may_fit);
    if is_unnamed {
        given = Given::If(Condition::machine_code());
    }
    let judged = fits.iter().enumerate().map(|(n, fit)| {
        let states = picked.get(&n).copied().unwrap_or(0);
        let given = if is_unnamed && fit.may_fit {
            Given::If(Condition::machine_code())
        } else {
            Given::in_states(gpu, states)
        };
        let reason = match (states, fit.states) {
            (0, 0) => fit.why_not(gpu),
            (0, fitting) => {
                let first = picked.iter().find(|(_, picked)| *picked & fitting != 0);
                let first = first.and_then(|(&n, _)| Some((unit.candidates.get(n)?, fits.get(n)?)));
                behind(order, fit, first)
            }
            (states, _) => fit.why(states),
        };
        Judged { given, why: reason }
    });
    let is_unlinked = given == Given::No && fits.iter().any(|fit| fit.is_unlinked);
    let note = is_unlinked.then_some(Note::Unlinked);
    let mut answer = Answer::new(given, judged.collect(), note);
    answer.need = fits.iter().filter_map(Fit::need).min().filter(|_| answer.given == Given::No);
    answer.is_optional = unit.is_chosen_by_program() && unit.is_for_newer(gpu);
    let holds_nothing = match answer.given {
        Given::Yes => {
            picked.keys().all(|n| unit.candidates.get(*n).is_some_and(Candidate::is_empty))
        }
        Given::If(_) => false,
        Given::No => unit.is_empty(),
    };
    if holds_nothing {
        answer.leave_out(Note::NoKernels);
    }
    answer
}

/// Returns how the runtime of a unit chooses.
fn order(unit: &Unit) -> Order {
    let in_packages = unit
        .candidates
        .iter()
        .all(|candidate| candidate.container() == ContainerKind::OffloadBinary);
    match unit.runtime {
        Runtime::Openmp if in_packages => Order::First,
        Runtime::Hip if !unit.compressed => Order::FirstOfTier,
        Runtime::Cuda => Order::Driver,
        _ => Order::Best,
    }
}

/// Returns the reason why an image is not given although it fits.
fn behind(order: Order, fit: &Fit, first: Option<(&Candidate, &Fit)>) -> Why {
    let Some((first, first_fit)) = first else { return Why::KernelsElsewhere };
    let what = match fit.verdict_in(fit.states) {
        Some(Verdict::GenericCovers { .. }) => Some(Before::Generic),
        Some(Verdict::PortableCovers { .. }) => Some(Before::Portable),
        Some(Verdict::NvidiaCovers { .. }) if fit.tier() == 2 => Some(Before::Ptx),
        _ => None,
    };
    let differs = first_fit.verdict_in(fit.states) != fit.verdict_in(fit.states);
    let why = match what.filter(|_| first_fit.tier() < fit.tier()) {
        Some(what) => what,
        None if matches!(order, Order::Best | Order::Driver) && differs => Before::Fits,
        None => Before::Stands,
    };
    Why::Behind { label: first.label().to_owned(), why }
}

/// Takes away what no runtime finds.
fn lose(units: &[Unit], answers: &mut [Answer]) {
    for (_, answer) in
        units.iter().zip(answers).filter(|(unit, answer)| unit.is_lost && answer.counts())
    {
        if answer.given != Given::No {
            (answer.given, answer.note) = (Given::No, Some(Note::Lost));
        }
        for image in answer.images.iter_mut().filter(|image| image.given != Given::No) {
            *image = Judged { given: Given::No, why: Why::Lost };
        }
    }
}

/// Adds results that depend on the other units of the file: CUDA code that was linked, or is linked when it is loaded.
fn link(units: &[Unit], answers: &mut [Answer]) {
    let linked: HashSet<usize> = units.iter().filter_map(Unit::linked_in).collect();
    let mut parts: HashMap<usize, bool> = HashMap::new();
    for (unit, answer) in units.iter().zip(&mut *answers) {
        if let Some(object) = unit.relocatable_in().filter(|object| linked.contains(object)) {
            *parts.entry(object).or_insert(true) &= !answer.lacks_code();
            answer.leave_out(Note::Linked);
        }
    }
    for (unit, answer) in units.iter().zip(answers) {
        let parts = unit.linked_in().and_then(|object| parts.get(&object));
        if answer.given == Given::No && parts == Some(&true) {
            answer.given = Given::Yes;
            answer.note = Some(Note::LinkedWhenLoaded);
        }
    }
}

/// Leaves out units that only describe others.
fn leave_out_metadata(units: &[Unit], answers: &mut [Answer]) {
    if units.iter().all(Unit::is_metadata) {
        return;
    }
    for (_, answer) in units.iter().zip(answers).filter(|(unit, _)| unit.is_metadata()) {
        (answer.counts, answer.note) = (false, None);
    }
}

/// Leaves out units for GPUs of other vendors and for graphics shaders, if there are any others.
fn leave_out_foreign(units: &[Unit], gpu: &Device, answers: &mut [Answer]) {
    // The abstract modules of a SYCLBIN are one program: it needs them all, on any GPU.
    let programs: HashSet<usize> = (units.iter())
        .filter(|unit| unit.module.is_some() && !unit.is_foreign(gpu))
        .map(|unit| unit.container)
        .collect();
    let is_foreign = |unit: &Unit| {
        let is_needed = unit.module.is_some() && programs.contains(&unit.container);
        !is_needed && unit.is_foreign(gpu)
    };
    if units.iter().all(|unit| unit.is_metadata() || is_foreign(unit)) {
        return;
    }
    for (unit, answer) in units.iter().zip(answers) {
        if is_foreign(unit) {
            answer.counts = false;
        }
    }
}

/// Leaves out units that use features of other GPUs, and those of LTO-IR, if another unit has code for this one: the program
/// chooses by the GPU that it finds, and hands LTO-IR to a linker.
fn leave_out_others(units: &[Unit], answers: &mut [Answer]) {
    if !answers.iter().any(|answer| answer.counts() && answer.given != Given::No) {
        return;
    }
    for (unit, answer) in units.iter().zip(answers).filter(|(_, answer)| answer.lacks_code()) {
        if unit.is_lto_ir() {
            answer.leave_out(Note::LtoIr);
        } else if unit.is_specific() {
            answer.leave_out(Note::OtherGpus);
        }
    }
}
