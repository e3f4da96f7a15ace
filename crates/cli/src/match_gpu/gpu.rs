//! `--gpu ID`: the device that code is asked for, in every state that the ID leaves open.

use bundle_format::EntryId;
use target_id::{
    Family, Feature, NvidiaArch, Processor, Setting, Target, TargetId, is_known_processor,
    processor_family,
};

use crate::suggest::{did_you_mean, gpus, may_be_processor, target_id};

/// Who makes a GPU, or whose runtimes load an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vendor {
    Amd,
    Nvidia,
    /// Intel's, and portable SPIR-V that names no vendor.
    Intel,
}

impl Vendor {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Vendor::Amd => "AMD",
            Vendor::Nvidia => "NVIDIA",
            Vendor::Intel => "Intel",
        }
    }

    /// The vendor of a processor, as far as its name tells.
    pub(super) fn of_processor(name: &str) -> Option<Vendor> {
        match processor_family(name) {
            Some(Family::AmdGcn | Family::R600 | Family::AmdSpirv) => Some(Vendor::Amd),
            Some(Family::Nvptx) => Some(Vendor::Nvidia),
            Some(Family::Intel) => Some(Vendor::Intel),
            _ if name.starts_with("gfx") => Some(Vendor::Amd),
            _ if name.starts_with("intel_gpu_") => Some(Vendor::Intel),
            _ => NvidiaArch::parse(name).ok().map(|_| Vendor::Nvidia),
        }
    }
}

/// A set of states of a GPU, one bit for each. Its IDs have two features, so that there are four at most.
pub(super) type States = u8;

/// A GPU as the command line names it.
///
/// A feature that is left out may be on or off; which, the runtime asks the device. So such a GPU stands for
/// several, one for each way to set the features.
#[derive(Clone, Debug)]
pub(super) struct Gpu {
    id: TargetId,
    vendor: Vendor,
    /// The features that the ID leaves open.
    open: Vec<Feature>,
    /// All ways to set them: feature `n` is on where bit `n` of the position is set.
    states: Vec<Target>,
}

impl Gpu {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let id = TargetId::parse(target_id_in(text)).map_err(|error| match error {
            target_id::Error::EmptyProcessor => {
                "expected a target ID such as gfx90a:xnack+ or sm_86".to_owned()
            }
            error => format!("{error}{}", did_you_mean(&target_id(target_id_in(text)))),
        })?;
        let name = id.processor();
        let Some(vendor) = Vendor::of_processor(name).filter(|_| may_be_processor(name)) else {
            return Err(with_suggestion(&format!("no processor is called {name}"), name));
        };
        let info = id.processor_info();
        if let Some(generic) = info.filter(|info| info.is_generic()) {
            let covered = generic.covers().join(", ");
            return Err(format!("{name} is no GPU but stands for several: {covered}"));
        }
        if name == "amdgcnspirv" {
            return Err(format!("{name} is no GPU but portable code"));
        }
        let open: Vec<Feature> = (info.into_iter())
            .flat_map(features_of)
            .filter(|feature| id.setting(feature).is_none())
            .collect();
        let states = (0..1_usize << open.len())
            .map(|bits| {
                let settings = open.iter().enumerate().map(|(n, feature)| {
                    let on = bits >> n & 1 == 1;
                    (feature.clone(), if on { Setting::On } else { Setting::Off })
                });
                state(&id, settings)
            })
            .collect();
        Ok(Gpu { id, vendor, open, states })
    }

    /// The target ID in canonical form.
    pub(super) fn name(&self) -> String {
        self.id.to_string()
    }

    pub(super) fn id(&self) -> &TargetId {
        &self.id
    }

    pub(super) fn vendor(&self) -> Vendor {
        self.vendor
    }

    /// What is doubtful about the ID.
    pub(super) fn warning(&self) -> Option<String> {
        let name = self.id.processor();
        if is_known_processor(name) || name.starts_with("intel_gpu_") {
            return None;
        }
        Some(with_suggestion(
            &format!(
                "no processor {name} is known here, so only images for that very name or portable ones can match"
            ),
            name,
        ))
    }

    pub(super) fn states(&self) -> &[Target] {
        &self.states
    }

    /// The set of all states.
    pub(super) fn all_states(&self) -> States {
        (0..self.states.len()).fold(0, |all, n| all | 1 << n)
    }

    /// Whether a feature is on in what stays open: "xnack is off"; `states` is not empty.
    pub(super) fn condition(&self, states: States) -> String {
        let mut words = Vec::new();
        let mut described = self.all_states();
        for (n, feature) in self.open.iter().enumerate() {
            let on = (0..self.states.len())
                .filter(|bits| bits >> n & 1 == 1)
                .fold(0, |on, bits| on | 1 << bits);
            if states & on == 0 {
                described &= !on;
                words.push(format!("{feature} is off"));
            } else if states & !on == 0 {
                described &= on;
                words.push(format!("{feature} is on"));
            }
        }
        if described == states {
            return words.join(" and ");
        }
        let ids: Vec<_> = (self.states.iter().enumerate())
            .filter(|(n, _)| states >> n & 1 == 1)
            .map(|(_, target)| target.id())
            .collect();
        format!("it is {}", ids.join(" or "))
    }
}

/// A full bundle entry ID and what `rocminfo` prints carry the target ID at their end.
fn target_id_in(text: &str) -> &str {
    if let Some(id) = text.strip_prefix("amdgcn-amd-amdhsa--") {
        return id;
    }
    match EntryId::parse(text) {
        Ok(id) if Vendor::of_processor(id.target_id()).is_some() => id.target_id(),
        Ok(id) if id.target_id().contains(':') => id.target_id(),
        _ => text,
    }
}

fn features_of(info: &Processor) -> impl Iterator<Item = Feature> {
    [Feature::Sramecc, Feature::Xnack].into_iter().filter(|feature| info.supports(feature))
}

/// The GPU with the features set that its ID leaves open.
fn state(id: &TargetId, open: impl Iterator<Item = (Feature, Setting)>) -> Target {
    let set = id.features().map(|(feature, setting)| (feature.clone(), setting));
    let mut features: Vec<_> = set.chain(open).collect();
    features.sort();
    let mut text = id.processor().to_owned();
    for (feature, setting) in features {
        text.push_str(&format!(":{feature}{}", setting.sign()));
    }
    Target::new(None, None, &text)
}

fn with_suggestion(message: &str, name: &str) -> String {
    format!("{message}{}", did_you_mean(&gpus(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> String {
        Gpu::parse(text).unwrap().name()
    }

    fn refusal(text: &str) -> String {
        Gpu::parse(text).unwrap_err()
    }

    #[test]
    fn ids_in_all_spellings() {
        for (text, id) in [
            ("gfx1100", "gfx1100"),
            ("gfx90a:xnack+:sramecc-", "gfx90a:sramecc-:xnack+"),
            ("amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-", "gfx90a:sramecc+:xnack-"),
            ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+", "gfx90a:xnack+"),
            ("openmp-nvptx64-nvidia-cuda--sm_80", "sm_80"),
            ("polaris10", "gfx803"),
            ("sm_90a", "sm_90a"),
            ("intel_gpu_pvc", "intel_gpu_pvc"),
            (" gfx906 ", "gfx906"),
        ] {
            assert_eq!(name(text), id, "{text}");
            assert_eq!(Gpu::parse(text).unwrap().warning(), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_gpu() {
        for (text, words) in [
            ("", "expected a target ID such as gfx90a:xnack+ or sm_86"),
            ("gfx9-generic", "is no GPU but stands for several: gfx900, "),
            ("amdgcnspirv", "is no GPU but portable code"),
            ("gfx90a:xnack", "lacks its sign"),
            ("gfx1100:xnack+", "does not have"),
            ("gfx90A", "no processor is called gfx90A; did you mean gfx90a?"),
            ("sm86", "no processor is called sm86; did you mean sm_86?"),
            ("8.6", "no processor is called 8.6; did you mean sm_86?"),
            ("compute_90", "no processor is called compute_90; did you mean sm_90?"),
            ("rx7900xtx", "no processor is called rx7900xtx"),
            ("generic", "no processor is called generic"),
            ("host-x86_64-unknown-linux-gnu-", "no processor is called host-"),
        ] {
            assert!(refusal(text).contains(words), "{text}: {}", refusal(text));
        }
    }

    #[test]
    fn processors_may_be_newer_than_this_program() {
        let warning = |text| Gpu::parse(text).unwrap().warning().unwrap();
        assert!(warning("gfx1155").starts_with("no processor gfx1155 is known here"));
        assert!(warning("gfx1155").ends_with("did you mean gfx1150 or gfx1151?"));
        assert!(warning("sm_140").starts_with("no processor sm_140 is known here"));
    }

    #[test]
    fn states_are_all_ways_to_set_what_is_open() {
        let states = |text| -> Vec<_> {
            Gpu::parse(text).unwrap().states().iter().map(|t| t.id().to_owned()).collect()
        };
        assert_eq!(states("gfx1100"), ["gfx1100"]);
        assert_eq!(states("gfx1010"), ["gfx1010:xnack-", "gfx1010:xnack+"]);
        assert_eq!(states("gfx90a:xnack+"), ["gfx90a:sramecc-:xnack+", "gfx90a:sramecc+:xnack+"]);
        assert_eq!(states("gfx90a").len(), 4);
        assert_eq!(Gpu::parse("gfx90a").unwrap().all_states(), 0b1111);
    }

    #[test]
    fn conditions_are_as_short_as_can_be() {
        let gpu = Gpu::parse("gfx90a").unwrap();
        for (states, words) in [
            (0b0011, "xnack is off"),
            (0b1010, "sramecc is on"),
            (0b0010, "sramecc is on and xnack is off"),
            (0b0110, "it is gfx90a:sramecc+:xnack- or gfx90a:sramecc-:xnack+"),
        ] {
            assert_eq!(gpu.condition(states), words);
        }
    }
}
