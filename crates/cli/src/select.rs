//! `--target ID`, `--id ID`: which images a user means.

use std::collections::{BTreeSet, HashSet};

use bundle_format::EntryId;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use device_select::{Device, NotADevice, Wanted, may_be_processor};
use fat_object::{Disagreement, Image};
use target_id::{NvidiaArch, OffloadKind, Target, is_known_processor};

use crate::naming::{group, marked};
use crate::suggest;
use crate::suggest::{did_you_mean, not_a_device, stored};
use tool_kit::report;

/// A full bundle entry ID or a plain target ID.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    text: String,
    wanted: Wanted,
}

impl Request {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err(
                "expected a target ID such as gfx90a:xnack+ or a bundle entry ID".to_owned()
            );
        }
        let wanted = Wanted::parse(text).map_err(|reason| match reason {
            NotADevice::Malformed(error) => format!("{error}{}", did_you_mean(&near(text))),
            reason => suggest::why_not(&reason),
        })?;
        Ok(Request { text: text.to_owned(), wanted })
    }

    /// Parses as [`parse`](Self::parse) does, for destructive commands: refuses target IDs that no processor can
    /// have.
    pub(crate) fn parse_known(text: &str) -> Result<Self, String> {
        let request = Self::parse(text)?;
        let name = request.processor();
        if request.target().kind().is_none() && !may_be_code_for(name) {
            return Err(not_a_device(text, &NotADevice::Unknown(name.to_owned())));
        }
        Ok(request)
    }

    /// Returns the request as typed.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    pub(crate) fn target(&self) -> &Target {
        self.wanted.target()
    }

    /// Returns the named device, or a stand-in for some. `None` for the host, and without a target ID.
    pub(crate) fn device(&self) -> Option<&Device> {
        self.wanted.device()
    }

    /// Returns the warning about an unknown processor, with a suggestion.
    pub(crate) fn doubt(&self) -> Option<String> {
        let name = self.processor();
        match self.device() {
            _ if name.is_empty() => None,
            Some(_) if is_ptx(name) => None,
            Some(device) => suggest::doubt(device),
            None if may_be_code_for(name) => None,
            None => Some(not_a_device(&self.text, &NotADevice::Unknown(name.to_owned()))),
        }
    }

    /// Returns a suggestion for an unknown processor.
    pub(crate) fn near(&self) -> Vec<String> {
        let name = self.processor();
        let is_known = name.is_empty() || is_known_processor(name) || is_ptx(name);
        if is_known { Vec::new() } else { near(&self.text) }
    }

    fn processor(&self) -> &str {
        suggest::processor(self.target().id())
    }
}

/// Returns whether code may be for a processor of this name, or PTX.
fn may_be_code_for(name: &str) -> bool {
    may_be_processor(name) || is_ptx(name)
}

/// Returns whether it is a name like `compute_80`.
fn is_ptx(name: &str) -> bool {
    NvidiaArch::parse(name).is_ok_and(NvidiaArch::is_ptx)
}

/// Returns suggestions.
fn near(text: &str) -> Vec<String> {
    match EntryId::parse(text) {
        Ok(id) if id.kind().is_bundler_kind() => suggest::entry_id(text).into_iter().collect(),
        _ => suggest::target_id(text),
    }
}

/// The options that choose images, shared by the commands.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Selection {
    /// Select images that this GPU can load: a target ID, name or entry ID. Repeatable
    ///
    /// ID is a target ID (gfx90a:xnack+, sm_80), the name of a GPU (RX 7600), `native` (the GPUs of this machine) or a
    /// bundle entry ID (hipv4-amdgcn-amd-amdhsa--gfx90a). The compatibility rules of target IDs decide: an image for gfx90a serves
    /// gfx90a:xnack+, one for gfx90a:xnack- does not; generic code objects (gfx9-generic) serve the processors they
    /// cover, machine code for sm_80 serves sm_86, PTX for sm_80 serves sm_90. Both the image and its entry must
    /// fit: code for gfx1250 in an entry for gfx906 serves neither; select it with --id.
    #[arg(long = "target", visible_alias = "gpu", value_name = "ID", value_parser = Request::parse)]
    requests: Vec<Request>,
    /// Select images with exactly this bundle entry ID. Repeatable
    ///
    /// Any text is valid, such as a malformed ID. Combined with --target, selects images matching either.
    #[arg(long = "id", value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    ids: Vec<String>,
    /// Select exact matches of --target only: no generic code, no SPIR-V
    #[arg(long, requires = "requests")]
    exact: bool,
    /// Select images of this kind; hip includes hipv4. Repeatable
    #[arg(long = "kind", value_name = "KIND")]
    kinds: Vec<Kind>,
}

/// An offload kind as typed: `hip` includes `hipv4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    Host,
    Hip,
    Openmp,
    Cuda,
    Sycl,
}

impl Kind {
    fn of(kind: &OffloadKind) -> Option<Self> {
        match kind {
            OffloadKind::Host => Some(Kind::Host),
            OffloadKind::Hip | OffloadKind::HipV4 => Some(Kind::Hip),
            OffloadKind::OpenMp => Some(Kind::Openmp),
            OffloadKind::Cuda => Some(Kind::Cuda),
            OffloadKind::Sycl => Some(Kind::Sycl),
            _ => None,
        }
    }
}

impl Selection {
    /// Returns whether an image is selected.
    pub(crate) fn includes(&self, image: &Image<'_, '_>) -> bool {
        let (target, loaded_as) = (image.target(), image.loaded_as());
        let could_link = |request: &Request| request.wanted.could_link(image);
        let is_of_kind = self.kinds.is_empty() || self.kinds.contains(&Kind::Cuda);
        self.includes_target(target, &loaded_as, image.id(), image.disagreement())
            || !self.exact && is_of_kind && self.requests.iter().any(could_link)
    }

    fn includes_target(
        &self,
        target: &Target,
        loaded_as: &Target,
        id: Option<&str>,
        disagreement: Option<&Disagreement>,
    ) -> bool {
        let kind = target.kind().and_then(Kind::of);
        if !self.kinds.is_empty() && !kind.is_some_and(|kind| self.kinds.contains(&kind)) {
            return false;
        }
        let serves = |request: &Request| match self.exact {
            true => request.wanted.is_just_for(target, disagreement),
            false => request.wanted.is_served_by(loaded_as, disagreement),
        };
        self.requests.is_empty() && self.ids.is_empty()
            || self.requests.iter().any(serves)
            || id.is_some_and(|id| self.ids.iter().any(|wanted| wanted == id))
    }

    /// Describes the images that are selected.
    pub(crate) fn condition(&self) -> String {
        let serves = if self.exact { "is for the given target" } else { "serves the given target" };
        let what = match (&self.requests[..], &self.ids[..]) {
            ([], []) => "is of the given kind".to_owned(),
            (_, []) => serves.to_owned(),
            ([], _) => "has the given ID".to_owned(),
            _ => format!("{serves} or has the given ID"),
        };
        let has_more = !(self.requests.is_empty() && self.ids.is_empty() || self.kinds.is_empty());
        if has_more { format!("is of the given kind and {what}") } else { what }
    }

    /// Warns of impossible processors.
    pub(crate) fn warn(&self) {
        for request in &self.requests {
            let name = request.processor();
            let near = request.near();
            if !(name.is_empty() || may_be_code_for(name) || is_known_processor(name)) {
                report::warning(&format_args!("unknown processor {name}{}", did_you_mean(&near)));
            }
        }
    }

    /// Returns suggestions for a selection without images.
    pub(crate) fn advice(&self, passed: &Passed) -> String {
        let mut advice = String::new();
        for request in &self.requests {
            let (gpu, near) = (request.processor(), request.near());
            if may_be_processor(gpu) {
                advice.push_str(&did_you_mean(&near));
            }
            // Where it is there, it is not what is missing.
            let generic =
                suggest::generic(gpu).filter(|name| !passed.has(name) && !passed.has(gpu));
            if let Some(generic) = generic {
                advice.push_str(&format!("; code for {generic} would serve {gpu}, too"));
            }
        }
        for id in &self.ids {
            advice.push_str(&did_you_mean(&stored(id, passed.ids.iter().map(String::as_str))));
        }
        advice
    }

    /// Returns whether every image is selected.
    pub(crate) fn is_everything(&self) -> bool {
        self.requests.is_empty() && self.ids.is_empty() && self.kinds.is_empty()
    }
}

/// Images that are not meant: what they are for, each once, as far as it is worth telling.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    names: Vec<String>,
    known: HashSet<String>,
    ids: BTreeSet<String>,
}

impl Passed {
    /// Returns a text like `; it has A, B`, or nothing.
    pub(crate) fn listed(&self) -> String {
        match self.names[..] {
            [] => String::new(),
            _ => format!("; it has {}", report::few(&self.names)),
        }
    }

    fn has(&self, processor: &str) -> bool {
        self.names.iter().any(|name| suggest::processor(name) == processor)
    }

    pub(crate) fn add(&mut self, image: &Image<'_, '_>) {
        const MOST: usize = 40;
        if image.target().kind() != Some(&OffloadKind::Host) {
            let name = marked(&group(image.target(), image.id()), image.disagreement());
            if self.known.insert(name.clone()) {
                self.names.push(name);
            }
        }
        if let Some(id) = image.id().filter(|_| self.ids.len() < MOST) {
            self.ids.insert(id.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selects(request: &str, id: &str) -> bool {
        let requests = vec![Request::parse(request).unwrap()];
        let selection = Selection { requests, ..Selection::default() };
        let target = EntryId::parse(id).unwrap().target();
        selection.includes_target(&target, &target, Some(id), None)
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
    fn ptx_serves_newer_gpus() {
        let serves =
            |gpu: &str, arch: &str| selects(gpu, &format!("cuda-nvptx64-nvidia-cuda--{arch}"));
        // As PTX is loaded, and a cubin.
        for gpu in ["sm_70", "sm_75"] {
            assert!(serves(gpu, "compute_70") && serves(gpu, "sm_70"), "{gpu}");
        }
        assert!(serves("sm_90", "compute_70") && !serves("sm_90", "sm_70"));
        assert!(!serves("sm_61", "compute_70") && !serves("sm_61", "sm_70"));
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
        let selects = |ids: &[&str], requests: &[&str]| {
            let ids = ids.iter().map(ToString::to_string).collect();
            let requests = requests.iter().map(|request| Request::parse(request).unwrap());
            let requests = requests.collect();
            let selection = Selection { requests, ids, ..Selection::default() };
            assert_eq!(
                selection.includes_target(&target, &target, None, None),
                selection.is_everything()
            );
            selection.includes_target(&target, &target, Some(id), None)
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
            assert!(Request::parse(request).is_err(), "{request}");
        }
    }
}
