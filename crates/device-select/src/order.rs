//! The order in which runtimes prefer what a device could load.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use target_id::{NvidiaArch, Target, Verdict, compatible};

use crate::device::{Device, States};

/// The way in which a runtime chooses one of several images that a device could load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The first one: OpenMP in offload binaries (`registerLib` of LLVM's libomptarget).
    First,
    /// Native code before generic code before portable code; of equals the first: HIP in bundles that are not compressed
    /// (`ExtractFatBinaryUsingCOMGR` of the HIP runtime).
    FirstOfTier,
    /// The one that fits best ([`Verdict::rank`]): HIP in compressed bundles (Comgr's `lookUpCodeObject`).
    Best,
    /// Machine code before PTX, each with the highest compute capability (NVIDIA's compatibility guides), and of one compute
    /// capability the code of the narrowest scope (`sm_90a` before `sm_90`: seen with NVIDIA's driver 580 on an H200): CUDA.
    Driver,
}

/// Returns the positions of the images that a device loads, each with the states of the device in which it does; none if it
/// loads none.
pub(crate) fn best<'t>(
    order: Order,
    images: impl IntoIterator<Item = &'t Target>,
    device: &Device,
) -> Vec<(usize, States)> {
    let verdicts: Vec<Vec<Verdict>> = images
        .into_iter()
        .map(|image| device.states().iter().map(|state| compatible(image, state)).collect())
        .collect();
    let verdict = |image: usize, state: usize| {
        verdicts.get(image)?.get(state).filter(|verdict| verdict.is_compatible())
    };
    pick(order, device, verdicts.len(), verdict).into_iter().collect()
}

/// Returns the images that are loaded in some state, by position. `verdict` returns the verdict about an image in a
/// state; `None` if it does not fit.
pub(crate) fn pick<'v>(
    order: Order,
    device: &Device,
    images: usize,
    verdict: impl Fn(usize, usize) -> Option<&'v Verdict>,
) -> BTreeMap<usize, States> {
    let mut picked: BTreeMap<usize, States> = BTreeMap::new();
    for state in 0..device.states().len() {
        let fitting = (0..images).filter_map(|n| Some((n, verdict(n, state)?)));
        let key = |(n, verdict): &(usize, &Verdict)| match order {
            Order::First => (0, *n),
            Order::FirstOfTier => (u32::from(tier(verdict)), *n),
            Order::Best => (verdict.rank(), *n),
            Order::Driver => (by_scope(verdict, device.states().get(state)), *n),
        };
        if let Some((n, _)) = fitting.min_by_key(key) {
            *picked.entry(n).or_default() |= 1 << state;
        }
    }
    picked
}

/// Returns the rank of a verdict about CUDA code, in which the name of a GPU is its compute capability and no more.
fn by_scope(verdict: &Verdict, gpu: Option<&Target>) -> u32 {
    let named = || NvidiaArch::parse(gpu?.id()).ok();
    match (verdict, named()) {
        (Verdict::Exact, Some(arch)) => {
            Verdict::NvidiaCovers { code_object: arch, target: arch }.rank()
        }
        _ => verdict.rank(),
    }
}

/// Returns 0 for native code, 1 for generic code, 2 for portable code.
pub(crate) fn tier(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::GenericCovers { .. } => 1,
        Verdict::PortableCovers { .. } => 2,
        Verdict::NvidiaCovers { code_object, .. } if code_object.is_ptx() => 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_best_tier_in_each_state() {
        let images = ["gfx90a:xnack-", "gfx90a:xnack+", "gfx9-generic"]
            .map(|id| Target::new(None, None, id));
        let of = |gpu: &str| best(Order::FirstOfTier, &images, &Device::parse(gpu).unwrap());
        assert_eq!(of("gfx90a:sramecc+:xnack+"), [(1, 0b1)]);
        assert_eq!(of("gfx90a:sramecc+"), [(0, 0b01), (1, 0b10)]); // xnack is off, xnack is on
        assert_eq!(of("gfx906:sramecc+:xnack+"), [(2, 0b1)]);
        assert_eq!(of("gfx1100"), []);
    }
}
