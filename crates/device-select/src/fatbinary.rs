//! The entries of NVIDIA fatbinaries that stay for some GPUs.

use alloc::vec::Vec;

use fat_object::{FileFormat, ImageInfo};
use target_id::NvidiaArch;

use crate::wanted::{Fate, Wanted};

/// The wishes of [`Rule::Keep`](crate::Rule::Keep).
pub(crate) struct Asked<'a> {
    pub(crate) wanted: &'a [Wanted],
    pub(crate) exact: bool,
    pub(crate) drop_ptx: bool,
}

/// Returns the fates of the entries of one fatbinary.
pub(crate) fn fates(entries: &[ImageInfo], asked: &Asked<'_>) -> Vec<Fate> {
    let loaded: Vec<(&Wanted, Vec<usize>)> =
        asked.wanted.iter().map(|wanted| (wanted, loaded(entries, wanted))).collect();
    let is_loaded = |n| loaded.iter().any(|(_, entries)| entries.contains(&n));
    let mut fates: Vec<Fate> =
        (entries.iter().enumerate()).map(|(n, entry)| fate(entry, asked, is_loaded(n))).collect();
    for (wanted, loaded) in &loaded {
        let is_served = (entries.iter().zip(&fates))
            .any(|(entry, fate)| fate.stays() && is_code(entry) && wanted.could_load(entry));
        if !is_served {
            let left = fates.iter_mut().enumerate().filter(|(n, _)| loaded.contains(n));
            left.for_each(|(_, fate)| *fate = Fate::GoesUnserved);
        }
    }
    fates
}

fn fate(entry: &ImageInfo, asked: &Asked<'_>, is_loaded: bool) -> Fate {
    let any = |is: &dyn Fn(&Wanted) -> bool| asked.wanted.iter().any(is);
    let is_ptx = entry.format() == FileFormat::Ptx;
    // PTX is asked for as `compute_80`; with cubins for `sm_80` only where nothing else is to stay.
    let is_named = any(&|wanted| wanted.is_just_for(&entry.loaded_as(), entry.disagreement()))
        || asked.exact && any(&|wanted| wanted.is_just_for(entry.target(), entry.disagreement()));
    if is_ptx && asked.drop_ptx {
        Fate::Goes
    } else if is_named {
        Fate::Stays
    } else if asked.exact {
        Fate::Goes
    } else if is_loaded || any(&|it| it.could_link(entry)) {
        Fate::StaysToo
    } else if entry.format() == FileFormat::Unknown {
        Fate::StaysUnknown
    } else {
        Fate::Goes
    }
}

/// Returns whether the driver loads such entries.
fn is_code(entry: &ImageInfo) -> bool {
    matches!(entry.format(), FileFormat::Cubin | FileFormat::Ptx)
}

/// Returns the entries that the driver chooses from on a GPU, by position: of the cubins that it runs, those with the
/// highest compute capability, and the same of PTX if there is no cubin. Which of several it takes is not documented.
fn loaded(entries: &[ImageInfo], wanted: &Wanted) -> Vec<usize> {
    let gpu = NvidiaArch::parse(wanted.target().id()).ok();
    let keys: Vec<_> = (entries.iter())
        .map(|entry| {
            let arch = NvidiaArch::parse(entry.loaded_as().id()).ok()?;
            // Most entries are for other GPUs, which their architectures tell at once.
            let runs = gpu.is_none_or(|gpu| arch.runs_on(gpu));
            let loads = runs && is_code(entry) && wanted.could_load(entry);
            loads.then_some((!arch.is_ptx(), arch.major(), arch.minor()))
        })
        .collect();
    let best = keys.iter().flatten().max();
    (keys.iter().enumerate())
        .filter(|(_, key)| key.is_some() && key.as_ref() == best)
        .map(|(n, _)| n)
        .collect()
}
