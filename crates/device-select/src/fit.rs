//! The decision whether a device could load an image, in which of its states, and why not.

use alloc::borrow::{Cow, ToOwned};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use fat_object::{ContainerKind, Disagreement, FileFormat, ImageInfo};
use target_id::{IntelGpu, NvidiaArch, Target, Verdict, compatible};

use crate::device::{Device, States};
use crate::needs::{Need, needs};
use crate::order::tier;
use crate::reason::Why;
use crate::runtime::Runtime;
use crate::vendor::Vendor;

/// The system of graphics shaders.
const VULKAN: &str = "vulkan";

/// The facts of an image that the rule looks at.
#[derive(Clone, Debug)]
pub(crate) struct Code<'a> {
    /// The target of the image [as it is loaded](ImageInfo::loaded_as).
    pub(crate) target: Cow<'a, Target>,
    pub(crate) format: FileFormat,
    pub(crate) size: u64,
    pub(crate) container: ContainerKind,
    /// The contradiction between the target and the image.
    pub(crate) disagreement: Option<&'a Disagreement>,
    /// `true` for an image that a table of SYCL's describes.
    pub(crate) is_registered: bool,
    /// IP versions of the GPUs that an archive of machine code is for, and `generic_ir`.
    pub(crate) gpus: Option<&'a [String]>,
    pub(crate) needs: Cow<'a, [Need]>,
    /// `true` if it describes other images: in a SYCLBIN of version 2.
    pub(crate) is_metadata: bool,
}

impl<'a> From<&'a ImageInfo> for Code<'a> {
    fn from(image: &'a ImageInfo) -> Self {
        Code {
            target: image.loaded_as(),
            format: image.format(),
            size: image.size(),
            container: image.container(),
            disagreement: image.disagreement(),
            is_registered: image.sycl().is_some(),
            gpus: None,
            needs: needs(image).into(),
            is_metadata: is_metadata(image),
        }
    }
}

impl Vendor {
    /// Returns the vendor whose runtimes load an image, if its container shows it.
    #[must_use]
    pub fn of_image(image: &ImageInfo) -> Option<Vendor> {
        Code::from(image).vendor()
    }
}

/// Returns whether an entry of an offload binary describes others: a SYCLBIN of version 2 has such roles (intel/llvm, SYCLBIN design
/// document).
pub(crate) fn is_metadata(image: &ImageInfo) -> bool {
    let role = image.offload_binary_entry().and_then(|entry| entry.get("role"));
    role.is_some_and(|role| role.ends_with(b"metadata"))
}

impl Code<'_> {
    /// Returns the vendor whose runtimes load the image, if the container shows it.
    pub(crate) fn vendor(&self) -> Option<Vendor> {
        match self.target.triple() {
            Some(triple) if triple.is_amdgpu() => Some(Vendor::Amd),
            Some(triple) if triple.is_nvptx() => Some(Vendor::Nvidia),
            _ if self.is_shader() => None,
            _ if self.format == FileFormat::IntelBinary => Some(Vendor::Intel),
            _ if self.format == FileFormat::LtoIr => Some(Vendor::Nvidia),
            Some(triple) if self.is_spirv() => match triple.vendor() {
                "amd" => Some(Vendor::Amd),
                _ => Some(Vendor::Intel),
            },
            Some(triple) if triple.as_str().starts_with("spir64_gen") => Some(Vendor::Intel),
            _ => Vendor::of_processor(self.target.id()),
        }
    }

    /// Returns the target that the image itself states, if it is another one, with the name of its processor.
    fn own(&self) -> Option<(Target, &str)> {
        let Some(Disagreement::Target { found, .. }) = self.disagreement else { return None };
        let (kind, triple) = (self.target.kind().cloned(), self.target.triple().cloned());
        Some((Target::new(kind, triple, found), found))
    }

    /// Returns whether it is a graphics shader, which no runtime of GPU computing loads.
    pub(crate) fn is_shader(&self) -> bool {
        matches!(self.format, FileFormat::DirectX | FileFormat::MetalLibrary)
            || self.target.triple().is_some_and(|triple| triple.os() == VULKAN)
    }

    /// Returns whether the triple is one of portable code.
    fn is_spirv(&self) -> bool {
        self.target.triple().is_some_and(|triple| triple.is_spirv() || triple.is_spir())
    }

    /// Returns whether it is LLVM bitcode that a link step makes code of: HIP and CUDA load none, and OpenMP none of the sections
    /// of an object. AdaptiveCpp compiles its own.
    fn is_unlinked(&self) -> bool {
        let is_loaded = match Runtime::of(self.target.kind()) {
            Runtime::Hip | Runtime::Cuda => self.container == ContainerKind::Hcf,
            Runtime::Openmp => self.container != ContainerKind::Section,
            _ => true,
        };
        self.format == FileFormat::Bitcode && !is_loaded
    }

    /// Returns whether it is machine code of SYCL's compilers for GPUs of Intel: only the image itself knows for which.
    fn is_unnamed_machine_code(&self) -> bool {
        let triple = self.target.triple().map(|triple| triple.as_str());
        let is_gen = || triple.is_some_and(|triple| triple.starts_with("spir64_gen"));
        self.format == FileFormat::IntelBinary || is_gen() && self.target.id().is_empty()
    }

    /// Returns the verdict about machine code for several GPUs of Intel, if it names them. SPIR-V among it is for all
    /// GPUs.
    fn of_archive(&self, device: &Device) -> Option<Verdict> {
        let gpus = self.gpus.filter(|_| self.is_unnamed_machine_code())?;
        let processor = device.id().processor();
        let device = IntelGpu::find(processor)?;
        let runs = |gpu: &&String| IntelGpu::find(gpu).is_some_and(|gpu| gpu.runs_on(device));
        match gpus.iter().find(runs) {
            Some(_) => Some(Verdict::Exact),
            None if gpus.iter().any(|gpu| gpu == "generic_ir") => {
                Some(Verdict::PortableCovers { processor: processor.to_owned() })
            }
            None => None,
        }
    }

    /// Returns the reason why no device of this vendor can load it.
    fn never(&self, device: &Device) -> Option<Why> {
        if self.target.is_host() || self.format == FileFormat::HostPlaceholder {
            return Some(Why::Host);
        }
        if let Some(triple) = self.target.triple().filter(|triple| triple.is_cpu()) {
            return Some(Why::Cpu(triple.arch().to_owned()));
        }
        if self.is_metadata {
            return Some(Why::Metadata);
        }
        let format = self.format;
        if format.is_container() && !self.is_registered {
            return Some(Why::Container(format));
        }
        if self.container == ContainerKind::NvFatbin && format == FileFormat::Unknown {
            return Some(Why::NeitherCodeNorPtx);
        }
        if self.container == ContainerKind::File && format == FileFormat::Bitcode {
            return Some(Why::Bitcode);
        }
        if format == FileFormat::LtoIr {
            return Some(Why::LtoIr);
        }
        if self.is_shader() {
            return Some(Why::Shader(match format {
                FileFormat::DirectX => "DirectX",
                FileFormat::MetalLibrary => "Metal",
                _ => "Vulkan",
            }));
        }
        if self.size == 0 {
            return Some(Why::Empty);
        }
        let vendor = self.vendor();
        if vendor.is_some_and(|vendor| vendor != device.vendor()) {
            return Some(match self.is_spirv() {
                true if vendor == Some(Vendor::Amd) => Why::SpirvForAmd,
                true => Why::SpirvNotFor(device.vendor()),
                false => Why::OtherVendor(vendor),
            });
        }
        if let Some(Disagreement::Format { found, expected }) = self.disagreement {
            return Some(Why::Format { found: *found, expected });
        }
        if self.is_unnamed_machine_code() {
            return Some(match self.gpus {
                Some(gpus) => {
                    Why::MachineCodeFor(gpus.iter().map(|gpu| gpu_name(gpu).to_owned()).collect())
                }
                None => Why::UnnamedMachineCode,
            });
        }
        if let Ok(arch) = NvidiaArch::parse(self.target.id())
            && device.ignores(arch)
        {
            return Some(if arch.is_ptx() { Why::PtxJitDisabled } else { Why::PtxJitForced });
        }
        match self.target.triple().map(|triple| triple.as_str()) {
            Some(triple) if triple.starts_with("spir64_x86_64") => Some(Why::X86),
            Some(triple) if triple.starts_with("spir64_fpga") => Some(Why::Fpga),
            _ => None,
        }
    }
}

/// The verdict on an image for a device.
pub(crate) struct Fit {
    /// The reason why nothing else matters: "is host code".
    never: Option<Why>,
    /// One for each state of the device.
    verdicts: Vec<Verdict>,
    /// The reason why the code fits none of the states that its name fits: it holds code for other devices.
    misnamed: Option<Why>,
    /// The states in which the device could load it.
    pub(crate) states: States,
    /// `true` if it is machine code for processors that the container does not name, maybe for this one.
    pub(crate) may_fit: bool,
    /// `true` if it is for the device, once it is linked.
    pub(crate) is_unlinked: bool,
}

impl Fit {
    pub(crate) fn new(code: &Code<'_>, device: &Device) -> Self {
        if let Some(verdict) = code.of_archive(device) {
            let verdicts = vec![verdict; device.states().len()];
            let states = device.all_states();
            let (never, misnamed) = (None, None);
            return Fit { never, verdicts, misnamed, states, may_fit: false, is_unlinked: false };
        }
        let may_fit = code.is_unnamed_machine_code()
            && device.vendor() == Vendor::Intel
            && code.gpus.is_none();
        if let Some(reason) = code.never(device) {
            let may_fit = may_fit && matches!(reason, Why::UnnamedMachineCode);
            return Fit {
                never: Some(reason),
                verdicts: Vec::new(),
                misnamed: None,
                states: 0,
                may_fit,
                is_unlinked: false,
            };
        }
        // AdaptiveCpp compiles its bitcode for any GPU.
        let is_portable =
            code.container == ContainerKind::Hcf && code.format == FileFormat::Bitcode;
        // The linker takes code for no processor in particular with that for any.
        let is_for_all = code.container == ContainerKind::OffloadBinary
            && code.target.id() == "generic"
            && !code.is_spirv();
        let verdicts: Vec<_> = (device.states().iter())
            .map(|state| {
                if is_portable || (is_for_all && agree(&code.target, state)) {
                    Verdict::PortableCovers { processor: device.id().processor().to_owned() }
                } else {
                    compatible(&code.target, state)
                }
            })
            .collect();
        let mut states = (verdicts.iter().enumerate())
            // The runtime of SYCL compares names.
            .filter(|(_, verdict)| {
                let is_other = matches!(verdict, Verdict::IntelCovers { .. });
                verdict.is_compatible() && !(code.is_registered && is_other)
            })
            .fold(0, |states, (n, _)| states | 1 << n);
        let lacks = |need: &&Need| states != 0 && device.lacks(need);
        if let Some(need) = code.needs.iter().filter(lacks).max_by_key(|need| need.since()) {
            let never = Some(Why::Needs(*need));
            return Fit { never, verdicts, misnamed: None, states: 0, may_fit, is_unlinked: false };
        }
        if states != 0 && code.is_unlinked() {
            let never = Some(Why::Unlinked);
            return Fit { never, verdicts, misnamed: None, states: 0, may_fit, is_unlinked: true };
        }
        let mut misnamed = None;
        if let Some((own, found)) = code.own() {
            // Runtimes choose by name; their loaders compare the processor in the image's header, and refuse others.
            let loads = (device.states().iter().enumerate())
                .filter(|(_, state)| compatible(&own, state).is_compatible())
                .fold(0, |states, (n, _)| states | 1 << n);
            misnamed = match (states, loads) {
                (0, 0) => None,
                (0, _) => Some(Why::CalledOtherwise {
                    found: found.to_owned(),
                    called: code.target.id().to_owned(),
                }),
                _ => Some(Why::Misnamed { found: found.to_owned() }),
            };
            states &= loads;
        }
        Fit { never: None, verdicts, misnamed, states, may_fit, is_unlinked: false }
    }

    /// Returns whether the device could load the image in some state, according to the container, perhaps once it is linked.
    pub(crate) fn could_load(&self) -> bool {
        self.states != 0 || self.may_fit || self.is_unlinked
    }

    /// Returns the software that is too old to load the image, if nothing else is in the way.
    pub(crate) fn need(&self) -> Option<Need> {
        match self.never {
            Some(Why::Needs(need)) => Some(need),
            _ => None,
        }
    }

    /// Returns whether no device of this vendor can load the image, whatever its target ID.
    pub(crate) fn is_ruled_out(&self) -> bool {
        self.never.is_some()
    }

    /// Returns the verdict in a state in which it fits.
    pub(crate) fn fitting(&self, state: usize) -> Option<&Verdict> {
        self.verdicts.get(state).filter(|_| self.states >> state & 1 == 1)
    }

    /// Returns the verdict in the first of some states.
    pub(crate) fn verdict_in(&self, states: States) -> Option<&Verdict> {
        self.verdicts.iter().enumerate().find(|(n, _)| states >> n & 1 == 1).map(|(_, v)| v)
    }

    /// Returns the reason why it fits in some states, with the verdict in the first of them.
    pub(crate) fn why(&self, states: States) -> Why {
        self.verdict_in(states).cloned().map_or(Why::Empty, Why::Verdict)
    }

    /// Returns the reason why it fits in no state. Returns the reason, preferring one that is due to the requested
    /// features.
    pub(crate) fn why_not(&self, device: &Device) -> Why {
        if let Some(reason) = self.never.as_ref().or(self.misnamed.as_ref()) {
            return reason.clone();
        }
        let asked = |verdict: &&Verdict| match verdict {
            Verdict::FeatureMismatch { feature, .. } => device.id().setting(feature).is_some(),
            _ => true,
        };
        let verdict = self.verdicts.iter().find(asked).or(self.verdicts.first());
        verdict.cloned().map_or(Why::Empty, Why::Verdict)
    }

    /// Returns 0 for native code, 1 for generic code, 2 for portable code.
    pub(crate) fn tier(&self) -> u8 {
        self.verdict_in(self.states).map_or(0, tier)
    }
}

/// Returns the name of an Intel GPU, given by its IP version.
fn gpu_name(ip_version: &str) -> &str {
    match IntelGpu::find(ip_version) {
        Some(gpu) => gpu.name(),
        None => ip_version,
    }
}

/// Returns whether kinds and triples go together, if both are known.
pub(crate) fn agree(image: &Target, wanted: &Target) -> bool {
    let kinds = image.kind().zip(wanted.kind());
    let triples = image.triple().zip(wanted.triple());
    kinds.is_none_or(|(a, b)| a.compatible_with(b, false))
        && triples.is_none_or(|(a, b)| a.compatible_with(b))
}
