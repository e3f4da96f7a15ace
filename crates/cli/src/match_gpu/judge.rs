//! What a GPU gets of a unit, and why it does not get the rest.

use std::collections::{BTreeMap, HashMap, HashSet};

use fat_object::ContainerKind;
use target_id::Verdict;

use super::kernels;
use super::units::{Candidate, Runtime, Unit};
use crate::devices::{Device, Fit, States};

/// Whether the GPU gets something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Given {
    Yes,
    /// When this is so: "xnack is on".
    If(String),
    No,
}

impl Given {
    pub(super) fn in_states(gpu: &Device, states: States) -> Self {
        match states {
            0 => Given::No,
            states if states == gpu.all_states() => Given::Yes,
            states => Given::If(gpu.condition(states)),
        }
    }
}

/// What becomes of one image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Judged {
    /// Whether the GPU gets this image.
    pub(super) given: Given,
    /// Why, in words whose subject is the image.
    pub(super) reason: String,
}

/// What becomes of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) given: Given,
    /// One for each candidate.
    pub(super) images: Vec<Judged>,
    pub(super) standing: Standing,
    /// A remark about the container.
    pub(super) note: Option<&'static str>,
}

impl Answer {
    /// Returns whether the GPU needs code of this unit.
    pub(super) fn counts(&self) -> bool {
        self.standing == Standing::Counts
    }

    /// Returns whether the GPU lacks code that it needs.
    pub(super) fn lacks_code(&self) -> bool {
        self.counts() && self.given == Given::No
    }

    fn leave_out(&mut self, standing: Standing, note: Option<&'static str>) {
        (self.standing, self.note) = (standing, note);
    }
}

/// The reason why a GPU needs code of a unit, or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Counts,
    /// It holds no kernel for this GPU to miss.
    NoKernels,
    /// It is for the features of other GPUs only.
    OtherGpus,
    /// It is relocatable code, linked elsewhere in the file.
    Linked,
    /// It is for GPUs of other vendors.
    Foreign,
}

/// What a GPU gets of a unit.
///
/// - HIP: native code before generic code before SPIR-V; of equals the first in a plain bundle, and the one that leaves
///   the fewest features open in a compressed bundle (HIP's `ExtractFatBinaryUsingCOMGR`, Comgr's `lookUpCodeObject`).
/// - OpenMP: the first that fits, in packages (`registerLib` of LLVM's libomptarget).
/// - CUDA: machine code before PTX, each with the highest compute capability (NVIDIA's compatibility guides).
/// - Otherwise what fits best.
pub(super) fn judge(unit: &Unit, gpu: &Device) -> Answer {
    let order = order(unit);
    let fits: Vec<Fit> =
        unit.candidates.iter().map(|candidate| Fit::new(&candidate.code(), gpu)).collect();
    if let Some(answer) = kernels::judge(unit, gpu, &fits) {
        return answer;
    }
    // The few that are given in some state, in file order.
    let mut picked: BTreeMap<usize, States> = BTreeMap::new();
    let mut union = 0;
    for state in 0..gpu.states().len() {
        if let Some(best) = best(order, &fits, state) {
            *picked.entry(best).or_default() |= 1 << state;
            union |= 1 << state;
        }
    }
    let mut given = Given::in_states(gpu, union);
    if given == Given::No && fits.iter().any(|fit| fit.may_fit) {
        given = Given::If("its machine code is for this very GPU".to_owned());
    }
    let judged = fits.iter().enumerate().map(|(n, fit)| {
        let states = picked.get(&n).copied().unwrap_or(0);
        let given = Given::in_states(gpu, states);
        let reason = match (states, fit.states) {
            (0, 0) => fit.why_not(gpu),
            (0, fitting) => {
                let first = picked.iter().find(|(_, picked)| *picked & fitting != 0);
                let first = first.and_then(|(&n, _)| Some((unit.candidates.get(n)?, fits.get(n)?)));
                behind(order, fit, first)
            }
            (states, _) => fit.verdict_in(states).map(ToString::to_string).unwrap_or_default(),
        };
        Judged { given, reason }
    });
    let images = judged.collect();
    let mut answer = Answer { given, images, standing: Standing::Counts, note: None };
    let holds_nothing = match answer.given {
        Given::Yes => {
            picked.keys().all(|n| unit.candidates.get(*n).is_some_and(Candidate::is_empty))
        }
        Given::If(_) => false,
        Given::No => unit.is_empty(),
    };
    if holds_nothing {
        answer.leave_out(Standing::NoKernels, Some("no kernels"));
    }
    answer
}

/// The candidate that a GPU in this state gets.
fn best(order: Order, fits: &[Fit], state: usize) -> Option<usize> {
    let fitting = fits.iter().enumerate().filter(|(_, fit)| fit.states >> state & 1 == 1);
    let key = |n: usize, fit: &Fit| match order {
        Order::First => (0, n),
        Order::FirstOfTier => (u32::from(fit.tier()), n),
        Order::Best => (fit.verdict(state).map_or(u32::MAX, Verdict::rank), n),
    };
    fitting.min_by_key(|(n, fit)| key(*n, fit)).map(|(n, _)| n)
}

#[derive(Clone, Copy)]
enum Order {
    First,
    FirstOfTier,
    Best,
}

fn order(unit: &Unit) -> Order {
    let in_packages =
        unit.candidates.iter().all(|candidate| candidate.container == ContainerKind::OffloadBinary);
    match unit.runtime {
        Runtime::Openmp if in_packages => Order::First,
        Runtime::Hip if !unit.compressed => Order::FirstOfTier,
        _ => Order::Best,
    }
}

/// Why an image is not given although it fits.
fn behind(order: Order, fit: &Fit, first: Option<(&Candidate, &Fit)>) -> String {
    let Some((first, first_fit)) = first else {
        return "would do, but another image comes first".to_owned();
    };
    let label = first.label();
    let what = match fit.verdict_in(fit.states) {
        Some(Verdict::GenericCovers { .. }) => "generic code",
        Some(Verdict::PortableCovers { .. }) => "portable code",
        Some(Verdict::NvidiaCovers { .. }) if fit.tier() == 2 => "PTX",
        _ => "",
    };
    if !what.is_empty() && first_fit.tier() < fit.tier() {
        return format!("would do, but {label} comes before {what}");
    }
    match order {
        Order::Best if first_fit.verdict_in(fit.states) != fit.verdict_in(fit.states) => {
            format!("would do, but {label} fits better")
        }
        _ => format!("would do, but {label} stands before it"),
    }
}

/// Adds what only the other units of the file tell: CUDA code that was linked, or is when it is loaded.
pub(super) fn link(units: &[Unit], answers: &mut [Answer]) {
    let linked: HashSet<usize> = units.iter().filter_map(Unit::linked_in).collect();
    let mut parts: HashMap<usize, bool> = HashMap::new();
    for (unit, answer) in units.iter().zip(&mut *answers) {
        if let Some(object) = unit.relocatable_in().filter(|object| linked.contains(object)) {
            *parts.entry(object).or_insert(true) &= !answer.lacks_code();
            answer.leave_out(Standing::Linked, Some("relocatable, linked into section:.nv_fatbin"));
        }
    }
    for (unit, answer) in units.iter().zip(answers) {
        let parts = unit.linked_in().and_then(|object| parts.get(&object));
        if answer.given == Given::No && parts == Some(&true) {
            answer.given = Given::Yes;
            answer.note = Some("linked from section:__nv_relfatbin when it is loaded");
        }
    }
}

/// Units for GPUs of other vendors and of graphics shaders do not count, if there are any others.
pub(super) fn leave_out_foreign(units: &[Unit], gpu: &Device, answers: &mut [Answer]) {
    let is_foreign = |unit: &Unit| unit.is_foreign(gpu);
    if units.iter().all(is_foreign) {
        return;
    }
    for (unit, answer) in units.iter().zip(answers) {
        if is_foreign(unit) {
            answer.standing = Standing::Foreign;
        }
    }
}

/// Units that use features of other GPUs do not count, if another unit has code for this one: what needs them is chosen
/// by the program, by the GPU that it finds.
pub(super) fn leave_out_specific(units: &[Unit], answers: &mut [Answer]) {
    if !answers.iter().any(|answer| answer.counts() && answer.given != Given::No) {
        return;
    }
    for (unit, answer) in units.iter().zip(answers) {
        if answer.lacks_code() && unit.is_specific() {
            answer.leave_out(Standing::OtherGpus, Some("for the features of other GPUs"));
        }
    }
}

#[cfg(test)]
mod tests;
