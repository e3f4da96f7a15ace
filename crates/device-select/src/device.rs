//! A device by its target ID, in every state that the ID leaves open.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use bundle_format::EntryId;

use crate::not_a_device::NotADevice;
use crate::products;
use crate::vendor::Vendor;
use target_id::{
    Feature, IntelGpu, NvidiaArch, OffloadKind, Setting, Target, TargetId, Triple,
    is_known_processor, may_be_processor, near,
};

use crate::needs::{Need, Software, Version};

/// The use that the CUDA driver makes of PTX.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum PtxJit {
    /// Compiled where there is no cubin for the GPU.
    Needed,
    /// Compiled always: cubins are ignored, as with `CUDA_FORCE_PTX_JIT=1`.
    Forced,
    /// Not compiled, as with `CUDA_DISABLE_PTX_JIT=1`.
    Disabled,
}

/// A set of states of a device, one bit for each. Its ID has at most two features, which gives at most four states.
pub(crate) type States = u8;

/// A device as the user names it.
///
/// A feature that the target ID leaves out may be on or off; the runtime asks the hardware for it. Such a device
/// represents several, one for each way to set the features.
#[derive(Clone, Debug)]
pub struct Device {
    id: TargetId,
    /// The name of a product or another one that was read, if it is not the target ID.
    alias: Option<String>,
    vendor: Vendor,
    /// The features that the ID leaves open.
    open: Vec<Feature>,
    /// All ways to set them: feature `n` is on where bit `n` of the position is set.
    states: Vec<Target>,
    ptx_jit: PtxJit,
    /// Software that is installed, if it is known.
    installed: Vec<(Software, Version)>,
}

impl NotADevice {
    /// Most products that the text of an error names.
    pub const MOST_CHOICES: usize = 5;

    /// Returns what may have been meant by the text that [`Device::parse`] did not understand.
    ///
    /// ```
    /// use device_select::Device;
    ///
    /// let reason = Device::parse("gfx1103x").unwrap_err();
    /// assert_eq!(reason.near("gfx1103x"), ["gfx1103"]);
    /// ```
    #[must_use]
    pub fn near(&self, typed: &str) -> Vec<String> {
        match self {
            NotADevice::Malformed(_) => near::target_ids(Device::target_id_in(typed)),
            NotADevice::Unknown(name) => near::gpus(name),
            _ => Vec::new(),
        }
    }
}

impl Device {
    /// Reads a target ID, the name or PCI ID of a product, the output of `rocminfo`, or a bundle entry ID, whose target
    /// ID counts.
    ///
    /// ```
    /// use device_select::Device;
    ///
    /// assert_eq!(Device::parse("gfx90a:xnack+")?.name(), "gfx90a:xnack+");
    /// assert_eq!(Device::parse("RX 7900 XTX")?.name(), "gfx1100");
    /// assert_eq!(Device::parse("amdgcn-amd-amdhsa--gfx906:sramecc+:xnack-")?.name(), "gfx906:sramecc+:xnack-");
    /// assert!(Device::parse("gfx9-generic").is_err()); // not a device, it stands for several
    /// # Ok::<(), device_select::NotADevice>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The text names no device, or several.
    pub fn parse(text: &str) -> Result<Self, NotADevice> {
        let typed = Self::target_id_in(text);
        let text = products::target_id(typed)?;
        let alias = Some(typed.trim()).filter(|typed| !typed.eq_ignore_ascii_case(&text));
        let id = TargetId::parse(&text).map_err(|error| match error.kind() {
            target_id::ErrorKind::EmptyProcessor => NotADevice::Empty,
            _ => NotADevice::Malformed(error),
        })?;
        let name = id.processor();
        if NvidiaArch::parse(name).is_ok_and(NvidiaArch::is_ptx) {
            return Err(NotADevice::Portable(name.to_owned()));
        }
        if !may_be_processor(name) {
            return Err(NotADevice::Unknown(name.to_owned()));
        }
        if let Some(info) = id.processor_info().filter(|info| info.is_generic()) {
            return Err(NotADevice::Generic(info.name(), info.covers().to_vec()));
        }
        if let Some(gpu) = IntelGpu::find(name).filter(|gpu| gpu.is_generic()) {
            let covered = IntelGpu::all().filter(|one| gpu.runs_on(one)).map(IntelGpu::name);
            return Err(NotADevice::Generic(gpu.name(), covered.collect()));
        }
        let name = name.to_owned();
        match Self::new(id, None, None) {
            Some(_) if name == "amdgcnspirv" => Err(NotADevice::Portable(name)),
            Some(device) => Ok(Device { alias: alias.map(ToOwned::to_owned), ..device }),
            None => Err(NotADevice::Unknown(name)),
        }
    }

    /// Returns the device that a target names, of its kind and triple only; also a stand-in for one, such as a generic
    /// processor. `None` if no vendor has such processors.
    #[cfg(feature = "files")]
    #[must_use]
    pub(crate) fn of(target: &Target) -> Option<Self> {
        Self::new(target.target_id().ok()?, target.kind(), target.triple())
    }

    fn new(id: TargetId, kind: Option<&OffloadKind>, triple: Option<&Triple>) -> Option<Self> {
        let vendor = Vendor::of_processor(id.processor())?;
        let open: Vec<Feature> = (id.processor_info().into_iter())
            .flat_map(|info| info.features())
            .filter(|feature| id.setting(feature).is_none())
            .collect();
        let states = (0..1_usize << open.len())
            .map(|bits| {
                let settings = open.iter().enumerate().map(|(n, feature)| {
                    let on = bits >> n & 1 == 1;
                    (feature.clone(), if on { Setting::On } else { Setting::Off })
                });
                Target::new(kind.cloned(), triple.cloned(), &state(&id, settings))
            })
            .collect();
        let (ptx_jit, installed) = (PtxJit::Needed, Vec::new());
        Some(Device { id, alias: None, vendor, open, states, ptx_jit, installed })
    }

    /// Returns the name that was [read](Self::parse), if it is not the target ID: the name of a product, its PCI ID, a compute capability.
    ///
    /// ```
    /// use device_select::Device;
    ///
    /// let device = Device::parse("RX 7600")?;
    /// assert_eq!((device.alias(), &*device.name()), (Some("RX 7600"), "gfx1102"));
    /// assert_eq!(Device::parse("gfx1102")?.alias(), None);
    /// # Ok::<(), device_select::NotADevice>(())
    /// ```
    #[must_use]
    pub fn alias(&self) -> Option<&str> {
        self.alias.as_deref()
    }

    /// Returns a sentence that says which target ID was taken for the name that was [read](Self::parse): `RX 7600 is gfx1102`. `None` if
    /// it was that target ID.
    #[must_use]
    pub fn explained(&self) -> Option<String> {
        Some(format!("{} is {}", self.alias()?, self.id))
    }

    /// Sets whether the driver compiles PTX, which only matters for NVIDIA's GPUs.
    ///
    /// NVIDIA's CUDA Programming Guide, "CUDA Environment Variables".
    #[must_use]
    pub fn with_ptx_jit(self, ptx_jit: PtxJit) -> Self {
        Device { ptx_jit, ..self }
    }

    /// Sets the version of software that is installed: what needs a later one is not loaded. Software without a version has all.
    #[must_use]
    pub fn with_installed(mut self, software: Software, version: Version) -> Self {
        self.installed.retain(|(one, _)| *one != software);
        self.installed.push((software, version));
        self
    }

    /// Returns the target IDs of a list with blanks, `gfx1100 gfx906`, or the text itself: names of products have blanks, too.
    #[must_use]
    pub fn listed(text: &str) -> Vec<&str> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let is_id = |word: &&str| may_be_processor(&near::processor(word).to_ascii_lowercase());
        if words.len() > 1 && words.iter().all(is_id) { words } else { Vec::from([text]) }
    }

    /// Returns whether the version of this software is known.
    #[must_use]
    pub fn has_version_of(&self, software: Software) -> bool {
        self.installed.iter().any(|(one, _)| *one == software)
    }

    /// Returns whether the software that is [installed](Self::with_installed) is too old.
    #[must_use]
    pub fn lacks(&self, need: &Need) -> bool {
        let is_older = |&(one, version)| one == need.software() && version < need.since();
        self.installed.iter().any(is_older)
    }

    /// Returns whether the driver ignores code of this architecture, as it is [told](Self::with_ptx_jit).
    pub(crate) fn ignores(&self, arch: NvidiaArch) -> bool {
        match self.ptx_jit {
            PtxJit::Needed => false,
            PtxJit::Forced => !arch.is_ptx(),
            PtxJit::Disabled => arch.is_ptx(),
        }
    }

    /// Returns the target ID in a text: full bundle entry IDs and the output of `rocminfo` carry it at their end.
    #[must_use]
    pub fn target_id_in(text: &str) -> &str {
        let text = text.trim();
        if let Some(target) = Target::from_isa_name(text) {
            return text.get(text.len() - target.id().len()..).unwrap_or(text);
        }
        match EntryId::parse(text) {
            Ok(id) if Vendor::of_processor(id.target_id()).is_some() => id.target_id(),
            Ok(id) if id.target_id().contains(':') => id.target_id(),
            _ => text,
        }
    }

    /// Returns the target ID in canonical form.
    #[must_use]
    pub fn name(&self) -> String {
        self.id.to_string()
    }

    /// Returns the target ID as it was given.
    #[must_use]
    pub fn id(&self) -> &TargetId {
        &self.id
    }

    /// Returns the maker of the device.
    #[must_use]
    pub fn vendor(&self) -> Vendor {
        self.vendor
    }

    /// Returns whether there may be such a processor, but this crate does not know it.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        let name = self.id.processor();
        !is_known_processor(name) && !name.starts_with("intel_gpu_")
    }

    /// Returns the options of compilers that make code for it, in words.
    ///
    /// ```
    /// use device_select::Device;
    ///
    /// let options = Device::parse("sm_86")?.compiler_options();
    /// assert_eq!(options, "-gencode arch=compute_86,code=[sm_86,compute_86]");
    /// # Ok::<(), device_select::NotADevice>(())
    /// ```
    #[must_use]
    pub fn compiler_options(&self) -> String {
        let name = self.id.processor();
        match self.vendor {
            Vendor::Amd => {
                let generic = self.id.processor_info().and_then(|info| info.covered_by());
                match generic {
                    Some(generic) => {
                        let generic = generic.name();
                        format!(
                            "--offload-arch={name}, or --offload-arch={generic}, which covers it"
                        )
                    }
                    None => format!("--offload-arch={name}"),
                }
            }
            Vendor::Nvidia => {
                let number = name.trim_start_matches("sm_").trim_end_matches(['a', 'f']);
                format!("-gencode arch=compute_{number},code=[sm_{number},compute_{number}]")
            }
            Vendor::Intel => {
                let target = match IntelGpu::find(name) {
                    Some(known) => known.name(),
                    None => name,
                };
                format!("-fsycl-targets={target}, or spir64 for all GPUs of Intel's")
            }
        }
    }

    /// Returns what to say of a device that is [not known](Self::is_unknown), with suggestions.
    #[must_use]
    pub fn doubt(&self) -> Option<String> {
        let name = self.id.processor();
        self.is_unknown().then(|| {
            format!(
                "unknown processor {name}: only images with exactly that name, or portable ones, can match{}",
                near::did_you_mean(&near::gpus(name))
            )
        })
    }

    /// Returns the target of the device in each state, at most four: one way each to set the features that its ID leaves
    /// open.
    #[must_use]
    pub fn states(&self) -> &[Target] {
        &self.states
    }

    /// Returns the set of all states: bit `n` is `states()[n]`.
    #[must_use]
    pub(crate) fn all_states(&self) -> States {
        (0..self.states.len()).fold(0, |all, n| all | 1 << n)
    }

    /// Returns how the open features are set in some states, in words: `xnack is off`. `states` is not empty.
    pub(crate) fn condition(&self, states: States) -> String {
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

/// Returns the target ID with the features set that it leaves open.
fn state(id: &TargetId, open: impl Iterator<Item = (Feature, Setting)>) -> String {
    let set = id.features().map(|(feature, setting)| (feature.clone(), setting));
    let mut features: Vec<_> = set.chain(open).collect();
    features.sort_by(|a, b| a.0.cmp(&b.0));
    let mut text = id.processor().to_owned();
    for (feature, setting) in features {
        text.push_str(&format!(":{feature}{}", setting.sign()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> String {
        Device::parse(text).unwrap().name()
    }

    fn refusal(text: &str) -> String {
        Device::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn ids_are_read_in_all_spellings() {
        for (text, id) in [
            ("gfx1100", "gfx1100"),
            ("gfx90a:xnack+:sramecc-", "gfx90a:sramecc-:xnack+"),
            ("amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-", "gfx90a:sramecc+:xnack-"),
            ("amdgpu12.50s-amd-amdhsa-unknown-gfx1250-strict:xnack-", "gfx1250-strict:xnack-"),
            ("hipv4-amdgcn-amd-amdhsa--gfx1250-strict", "gfx1250-strict"),
            ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+", "gfx90a:xnack+"),
            ("openmp-nvptx64-nvidia-cuda--sm_80", "sm_80"),
            ("polaris10", "gfx803"),
            ("sm_90a", "sm_90a"),
            ("intel_gpu_pvc", "intel_gpu_pvc"),
            ("bmg-g21", "intel_gpu_bmg_g21"),
            ("xe-lnl-m", "intel_gpu_lnl_m"),
            ("20.4.4", "intel_gpu_lnl_m"),
            (" gfx906 ", "gfx906"),
            ("GFX90A:xnack+", "gfx90a:xnack+"),
            ("SM86", "sm_86"),
            ("sm_90A", "sm_90a"),
            ("8.6", "sm_86"),
            ("12.0", "sm_120"),
            ("10.0f", "sm_100f"),
            ("3060", "sm_86"),
            ("RX 7900", "gfx1100"),
            (" RX 7900 XTX", "gfx1100"),
            ("1002:740f", "gfx90a"),
        ] {
            assert_eq!(name(text), id, "{text}");
            assert!(!Device::parse(text).unwrap().is_unknown(), "{text}");
        }
    }

    #[test]
    fn names_that_are_not_of_a_gpu_are_errors() {
        for (text, words) in [
            ("", "expected a target ID such as gfx90a:xnack+ or sm_86"),
            ("gfx9-generic", "is not a GPU, it covers several: gfx900, "),
            ("bmg", "is not a GPU, it covers several: intel_gpu_bmg_g21, "),
            ("amdgcnspirv", "is not a GPU, it is portable code"),
            ("gfx90a:xnack", "lacks its sign"),
            ("gfx1100:xnack+", "does not have"),
            ("8.65", "unknown processor 8.65"),
            ("sm8", "unknown processor sm8"),
            ("compute_90", "compute_90 is not a GPU, it is portable code"),
            ("rx7901xtx", "unknown processor rx7901xtx"),
            ("RTX 4000", "RTX 4000 names several GPUs: "),
            ("generic", "unknown processor generic"),
            ("host-x86_64-unknown-linux-gnu-", "unknown processor host-"),
        ] {
            assert!(refusal(text).contains(words), "{text}: {}", refusal(text));
        }
    }

    #[test]
    fn unknown_processors_are_accepted() {
        assert!(Device::parse("gfx1155").unwrap().is_unknown());
        assert!(Device::parse("sm_140").unwrap().is_unknown());
    }

    #[test]
    fn states_are_all_settings_of_open_features() {
        let states = |text| -> Vec<_> {
            Device::parse(text).unwrap().states().iter().map(|t| t.id().to_owned()).collect()
        };
        assert_eq!(states("gfx1100"), ["gfx1100"]);
        assert_eq!(states("gfx1010"), ["gfx1010:xnack-", "gfx1010:xnack+"]);
        assert_eq!(states("gfx90a:xnack+"), ["gfx90a:sramecc-:xnack+", "gfx90a:sramecc+:xnack+"]);
        assert_eq!(states("gfx90a").len(), 4);
        assert_eq!(Device::parse("gfx90a").unwrap().all_states(), 0b1111);
    }

    #[test]
    fn conditions_are_minimal() {
        let gpu = Device::parse("gfx90a").unwrap();
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
