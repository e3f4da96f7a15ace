//! The images of a file that `offload thin` would remove.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use device_account::{Account, Amount, apportion};
use device_select::{Rule, Wanted, is_host};
use fat_object::{ContainerKind, ImageInfo, PathStep};

use crate::data::Thin;
use crate::file::Part;
use crate::tries::Tried;

/// The most GPUs of a page, the largest first, for which it says what `offload thin` would remove.
pub const MOST_CHOICES: usize = 64;

/// The most other GPUs that are named for a GPU.
const MOST_ALSO: usize = 16;

/// Returns the GPUs of an account for which a page may say what `offload thin` would do, by their names, the largest first. There are
/// at most [`MOST_CHOICES`].
#[must_use]
pub fn choices(account: &Account) -> Vec<(String, Wanted)> {
    let mut sums: BTreeMap<String, Amount> = BTreeMap::new();
    for image in account.images() {
        *sums.entry(image.target()).or_default() += image.amount();
    }
    let choices = sums.into_iter().filter_map(|(name, sum)| Some((wanted(&name)?, name, sum)));
    let mut choices: Vec<_> = choices.collect();
    choices.sort_by_key(|(_, _, sum)| Reverse(sum.stored.max(sum.plain)));
    choices.truncate(MOST_CHOICES);
    choices.into_iter().map(|(wanted, name, _)| (name, wanted)).collect()
}

/// Returns the target that `offload thin --keep` reads in the name of a GPU.
pub(crate) fn wanted(name: &str) -> Option<Wanted> {
    Wanted::parse_known(name).ok()
}

/// Returns the images of an account, for [`add`].
pub(crate) fn images(account: &Account) -> Vec<ImageInfo> {
    account.images().iter().map(|image| image.info.clone()).collect()
}

/// Adds the images that `offload thin --keep` removes from a part of a file. A part without code for the GPU stays.
pub(crate) fn add(
    thin: &mut Thin,
    (wanted, name): (&Wanted, &str),
    (part, images): (&Part<'_>, &[ImageInfo]),
    gpus: &HashMap<String, usize>,
) {
    let &Part { account, stored, .. } = part;
    let rule = Rule::keep([wanted.clone()]);
    if !rule.missing(images).is_empty() {
        return;
    }
    let mut goes = vec![false; images.len()];
    let decision = rule.decide(images);
    let mut gone = decision.go.iter().map(|image| image.index()).peekable();
    for (image, goes) in images.iter().zip(&mut goes) {
        *goes = gone.next_if(|index| *index == image.index()).is_some();
    }
    let mut sum = Amount::default();
    for (image, goes) in account.images().iter().zip(&goes) {
        if *goes {
            sum += image.amount();
        } else if let Some(&gpu) = gpus.get(&image.target())
            && gpu != thin.gpu
            && !is_host(&image.info)
            && thin.also.len() < MOST_ALSO
            && !thin.also.contains(&gpu)
        {
            thin.also.push(gpu);
        }
    }
    let removed = || decision.go.iter().copied();
    match part.tries.map_or(Tried::Unknown, |tries| tries.of(name, removed())) {
        Tried::Unknown => thin.saved = None,
        Tried::Saves(saved) => thin.saved = thin.saved.and_then(|sum| sum.checked_add(saved)),
        Tried::Refused(why) => {
            thin.refused.get_or_insert_with(|| match part.path {
                "" => why,
                path => format!("{path}: {why}"),
            });
        }
    }
    let rest = account.size() - sum.stored.min(account.size());
    let stored = apportion(stored, &[sum.stored, rest]).first().copied().unwrap_or(0);
    thin.stored = thin.stored.saturating_add(stored);
    thin.plain = thin.plain.saturating_add(sum.plain);
    thin.emptied += emptied(images, &goes);
}

/// Returns the number of places all of whose images go. Images of one place come one after the other.
fn emptied(images: &[ImageInfo], goes: &[bool]) -> u64 {
    let device = images.iter().zip(goes).filter(|(image, _)| !is_host(image));
    let device: Vec<_> = device.collect();
    let places = device.chunk_by(|(a, _), (b, _)| place(a) == place(b));
    places.filter(|images| images.iter().all(|(_, goes)| **goes)).count() as u64
}

/// Returns the place that `offload thin` does not empty unasked: a container; around offload binaries and sections, which have one image
/// each, what holds them.
fn place(image: &ImageInfo) -> &[PathStep] {
    match image.path() {
        [around @ .., last]
            if matches!(last.kind(), ContainerKind::OffloadBinary | ContainerKind::Section) =>
        {
            around
        }
        path => path,
    }
}
