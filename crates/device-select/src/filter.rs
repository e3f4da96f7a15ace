//! The images that somebody asks for, and what to say if there are none.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use std::collections::HashSet;

use bundle_format::EntryId;
use fat_object::{Disagreement, ImageInfo};
use target_id::near::{did_you_mean, processor};
use target_id::{OffloadKind, Target, may_be_processor};

use crate::few::few;
use crate::wanted::Wanted;

/// The images that are meant. Without any of these, all are.
///
/// ```
/// use device_select::{ImageFilter, Wanted};
///
/// let file = std::fs::File::open("../../examples/data/hip.o")?;
/// let listing = fat_object::list(file, &fat_object::Options::default())?;
/// let filter = ImageFilter::default().with_wanted([Wanted::parse("gfx906:xnack-")?]);
/// let mut meant = listing.images().iter().filter(|image| filter.includes(image));
/// assert_eq!(meant.next().map(|image| image.target().id()), Some("gfx9-generic"));
/// assert!(meant.next().is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ImageFilter {
    /// Images that one of these targets loads, or that have one of the IDs.
    pub wanted: Vec<Wanted>,
    /// Bundle entry IDs, as any text.
    pub ids: Vec<String>,
    /// `true` if neither other features nor generic or portable code is meant.
    pub exact: bool,
    /// Images of these kinds only; of all if there are none. `hip` includes `hipv4`.
    pub kinds: Vec<OffloadKind>,
}

impl ImageFilter {
    /// Sets the targets. Default: none.
    #[must_use]
    pub fn with_wanted(mut self, wanted: impl IntoIterator<Item = Wanted>) -> Self {
        self.wanted = wanted.into_iter().collect();
        self
    }

    /// Sets the bundle entry IDs. Default: none.
    #[must_use]
    pub fn with_ids(mut self, ids: impl IntoIterator<Item = String>) -> Self {
        self.ids = ids.into_iter().collect();
        self
    }

    /// Sets whether neither other features nor generic or portable code is meant. Default: `false`.
    #[must_use]
    pub fn with_exact(mut self, exact: bool) -> Self {
        self.exact = exact;
        self
    }

    /// Sets the kinds. Default: none, for images of all.
    #[must_use]
    pub fn with_kinds(mut self, kinds: impl IntoIterator<Item = OffloadKind>) -> Self {
        self.kinds = kinds.into_iter().collect();
        self
    }

    /// Returns whether an image is meant.
    #[must_use]
    pub fn includes(&self, image: &ImageInfo) -> bool {
        let (target, loaded_as) = (image.target(), image.loaded_as());
        let could_link = |wanted: &Wanted| wanted.could_link(image);
        let is_of_kind = self.kinds.is_empty() || self.kinds.contains(&OffloadKind::Cuda);
        self.includes_target(target, &loaded_as, image.id(), image.disagreement())
            || !self.exact && is_of_kind && self.wanted.iter().any(could_link)
    }

    fn includes_target(
        &self,
        target: &Target,
        loaded_as: &Target,
        id: Option<&str>,
        disagreement: Option<&Disagreement>,
    ) -> bool {
        let is_of = |kind: &OffloadKind| self.kinds.iter().any(|k| k.compatible_with(kind, false));
        if !self.kinds.is_empty() && !target.kind().is_some_and(is_of) {
            return false;
        }
        let runs = |wanted: &Wanted| {
            if self.exact {
                wanted.is_just_for(target, disagreement)
            } else {
                wanted.is_served_by(loaded_as, disagreement)
            }
        };
        self.wanted.is_empty() && self.ids.is_empty()
            || self.wanted.iter().any(runs)
            || id.is_some_and(|id| self.ids.iter().any(|wanted| wanted == id))
    }

    /// Returns what is true of the images that are meant, in words: `runs on the given target`.
    #[must_use]
    pub fn condition(&self) -> String {
        let runs = if self.exact { "is for the given target" } else { "runs on the given target" };
        let what = match (&self.wanted[..], &self.ids[..]) {
            ([], []) => "is of the given kind".to_owned(),
            (_, []) => runs.to_owned(),
            ([], _) => "has the given ID".to_owned(),
            _ => format!("{runs} or has the given ID"),
        };
        let has_more = !(self.wanted.is_empty() && self.ids.is_empty() || self.kinds.is_empty());
        if has_more { format!("is of the given kind and {what}") } else { what }
    }

    /// Returns what to say of each processor that no code can be for.
    pub fn doubts(&self) -> impl Iterator<Item = String> {
        self.wanted.iter().filter_map(Wanted::impossible)
    }

    /// Returns suggestions where no image is meant: `; did you mean gfx90a?`, or nothing.
    #[must_use]
    pub fn advice(&self, passed: &PassedOver) -> String {
        let mut advice = String::new();
        for wanted in &self.wanted {
            let gpu = wanted.processor();
            if may_be_processor(gpu) {
                advice.push_str(&did_you_mean(&wanted.near()));
            }
            // Where it is there, it is not what is missing.
            let generic = wanted.generic().filter(|name| !passed.has(name) && !passed.has(gpu));
            if let Some(generic) = generic {
                advice.push_str(&format!("; code for {generic} would run on {gpu}, too"));
            }
        }
        for id in &self.ids {
            let ids = passed.ids.iter().map(String::as_str);
            advice.push_str(&did_you_mean(&EntryId::nearest(id, ids)));
        }
        advice
    }

    /// Returns whether every image is meant.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.wanted.is_empty() && self.ids.is_empty() && self.kinds.is_empty()
    }
}

/// Targets of the images that do not match, each once; empty if that does not help the user.
#[derive(Debug, Default)]
pub struct PassedOver {
    names: Vec<String>,
    known: HashSet<String>,
    ids: BTreeSet<String>,
}

impl PassedOver {
    /// Adds an image.
    pub fn add(&mut self, image: &ImageInfo) {
        const MOST: usize = 40;
        if !image.target().is_host() {
            let name = image.marked(image.label_of(image.target()));
            if self.known.insert(name.clone()) {
                self.names.push(name);
            }
        }
        if let Some(id) = image.id().filter(|_| self.ids.len() < MOST) {
            self.ids.insert(id.to_owned());
        }
    }

    /// Returns a text like `; it has A, B`, or nothing.
    #[must_use]
    pub fn listed(&self) -> String {
        match self.names[..] {
            [] => String::new(),
            _ => format!("; it has {}", few(&self.names)),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|other| processor(other) == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn selects(request: &str, id: &str) -> bool {
        let filter = ImageFilter::default().with_wanted([Wanted::parse(request).unwrap()]);
        let target = EntryId::parse(id).unwrap().target();
        filter.includes_target(&target, &target, Some(id), None)
    }

    #[test]
    fn plain_target_ids_match_any_kind_and_triple() {
        assert!(selects("gfx90a:xnack+", "hipv4-amdgcn-amd-amdhsa--gfx90a"));
        assert!(selects("Instinct MI250X", "hipv4-amdgcn-amd-amdhsa--gfx90a"));
        assert!(selects("gfx90a:xnack+", "openmp-amdgcn-amd-amdhsa--gfx90a:xnack+"));
        assert!(!selects("gfx90a:xnack+", "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-"));
        assert!(!selects("gfx90a", "host-x86_64-unknown-linux-gnu-"));
        assert!(selects("gfx906", "hipv4-amdgcn-amd-amdhsa--gfx9-generic"));
        assert!(selects("sm_70", "openmp-nvptx64-nvidia-cuda--sm_70"));
        assert!(selects("sm_75", "openmp-nvptx64-nvidia-cuda--sm_70"));
        assert!(!selects("sm_80", "openmp-nvptx64-nvidia-cuda--sm_70"));
    }

    #[test]
    fn ptx_runs_on_newer_gpus() {
        let runs =
            |gpu: &str, arch: &str| selects(gpu, &format!("cuda-nvptx64-nvidia-cuda--{arch}"));
        // As PTX is loaded, and a cubin.
        for gpu in ["sm_70", "sm_75"] {
            assert!(runs(gpu, "compute_70") && runs(gpu, "sm_70"), "{gpu}");
        }
        assert!(runs("sm_90", "compute_70") && !runs("sm_90", "sm_70"));
        assert!(!runs("sm_61", "compute_70") && !runs("sm_61", "sm_70"));
    }

    #[test]
    fn entry_ids_match_kind_and_triple_too() {
        assert!(selects("hip-amdgcn-amd-amdhsa--gfx90a", "hipv4-amdgcn-amd-amdhsa--gfx90a"));
        assert!(!selects("openmp-amdgcn-amd-amdhsa--gfx90a", "hipv4-amdgcn-amd-amdhsa--gfx90a"));
        assert!(selects("host-x86_64-unknown-linux-gnu", "host-x86_64-unknown-linux-gnu-"));
    }

    #[test]
    fn ids_match_as_text() {
        let id = "hip-amdgcn-amd-amdhsa--gfx90a:xnack";
        let target = EntryId::parse(id).unwrap().target();
        let selects = |ids: &[&str], wanted: &[&str]| {
            let ids = ids.iter().map(ToString::to_string);
            let wanted = wanted.iter().map(|text| Wanted::parse(text).unwrap());
            let filter = ImageFilter::default().with_wanted(wanted).with_ids(ids);
            assert_eq!(
                filter.includes_target(&target, &target, None, None),
                filter.is_everything()
            );
            filter.includes_target(&target, &target, Some(id), None)
        };
        assert!(selects(&[], &[]));
        assert!(selects(&["other", id], &[]));
        assert!(selects(&[id], &["gfx906"]));
        assert!(!selects(&["hip-amdgcn-amd-amdhsa--gfx90a", "gfx90a:xnack", &id[1..]], &[]));
        assert!(!selects(&["other"], &["gfx906"]));
    }

    #[test]
    fn impossible_requests_are_refused() {
        for request in ["", "gfx90a:xnack", "gfx90a:xnack+:xnack-", "gfx1100:xnack+"] {
            assert!(Wanted::parse(request).is_err(), "{request}");
        }
    }
}
