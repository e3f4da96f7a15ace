//! The outcome of comparing a code object with a target.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::amd_processor::{Family, Processor};
use crate::error::{Error, ErrorKind};
use crate::feature::{Feature, Setting};
use crate::intel::IntelGpu;
use crate::kind::OffloadKind;
use crate::nvidia::{NvidiaArch, NvidiaScope};
use crate::processor::processor_family;
use crate::triple::Triple;

/// `true` if and why a code object can be used for a target.
///
/// [`Display`](fmt::Display) says it in a few words whose subject is the code object: "needs
/// xnack off, the device has it on". Control characters in names are escaped there.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Verdict {
    /// Same kind, compatible triples, and target IDs that are the same text. The only way
    /// in which things without a target ID, or with an unusable one, are compatible.
    Exact,
    /// The target IDs are the same in canonical form.
    SameProcessor,
    /// Same processor, and the code object leaves features open that the target sets.
    FeaturesCompatible {
        /// The features that the code object leaves open, in alphabetical order.
        any: Vec<Feature>,
    },
    /// The code object is for a generic processor that covers the target's. The features fit.
    GenericCovers {
        /// The generic processor.
        generic: &'static str,
        /// The target's processor.
        processor: &'static str,
        /// Features the target sets and the code object leaves open, in alphabetical order.
        any: Vec<Feature>,
    },
    /// The code object is portable, compiled for the target's processor on loading: AMD's SPIR-V for an
    /// AMD GPU, or SPIR-V that names no processor (SYCL, OpenMP) for an Intel GPU.
    PortableCovers {
        /// The target's processor.
        processor: String,
    },
    /// The code object is for another NVIDIA architecture, and the target's compute capability
    /// runs it: machine code as it is, PTX compiled when it is loaded.
    NvidiaCovers {
        /// The code object's.
        code_object: NvidiaArch,
        /// The target's.
        target: NvidiaArch,
    },
    /// The code object is for a GPU of Intel's by another name, or for one whose code the target runs
    /// ([`IntelGpu::runs_on`]).
    IntelCovers {
        /// The code object's.
        code_object: &'static IntelGpu,
        /// The target's.
        target: &'static IntelGpu,
    },
    /// The offload kinds do not go together.
    KindMismatch {
        /// The code object's.
        code_object: OffloadKind,
        /// The target's.
        target: OffloadKind,
    },
    /// The triples are not compatible.
    TripleMismatch {
        /// The code object's.
        code_object: Triple,
        /// The target's.
        target: Triple,
    },
    /// The processors differ, and neither generic nor portable code nor the rules of NVIDIA's
    /// architectures ([`NvidiaArch::runs_on`]) and Intel's GPUs ([`IntelGpu::runs_on`]) make up for it.
    ProcessorMismatch {
        /// The code object's, by its primary name.
        code_object: String,
        /// The target's, by its primary name.
        target: String,
    },
    /// The code object sets a feature that the target sets to the opposite or leaves open.
    FeatureMismatch {
        /// The first such feature in alphabetical order.
        feature: Feature,
        /// The code object's setting.
        code_object: Setting,
        /// The target's setting; `None` is *any*.
        target: Option<Setting>,
    },
    /// The code object sets more features than the target does.
    TooManyFeatures {
        /// The first feature, in alphabetical order, that the target leaves open.
        feature: Feature,
        /// The code object's setting of it.
        code_object: Setting,
    },
    /// The target ID of the code object is absent or not valid, and the texts are not the same.
    UnparsableCodeObject(Error),
    /// Only the target ID of the target is absent or not valid.
    UnparsableTarget(Error),
}

impl Verdict {
    /// Returns whether a device that is the target can load the code object. Generic and portable code counts, and
    /// code for other NVIDIA architectures that the target runs.
    #[must_use]
    pub fn is_compatible(&self) -> bool {
        self.is_strict()
            || matches!(
                self,
                Self::GenericCovers { .. }
                    | Self::PortableCovers { .. }
                    | Self::NvidiaCovers { .. }
                    | Self::IntelCovers { .. }
            )
    }

    /// Returns whether the rule of `clang-offload-bundler` says yes. It knows nothing of what generic and portable
    /// code runs on, nor of compute capabilities.
    #[must_use]
    pub fn is_strict(&self) -> bool {
        matches!(self, Self::Exact | Self::SameProcessor | Self::FeaturesCompatible { .. })
    }

    /// Returns a number to order code objects for one target by, best match first: small is good.
    ///
    /// Exact comes before the same in canonical form, then code that leaves the fewest features open, then generic
    /// code (again with the fewest open), then portable code. For NVIDIA, machine code comes before PTX, and each
    /// with the highest compute capability first. All incompatible ones are last, with `u32::MAX`.
    #[must_use]
    pub fn rank(&self) -> u32 {
        const GENERIC: u32 = 0x1_0000;
        const PORTABLE: u32 = 0x2_0000;
        let open = |any: &Vec<Feature>| u32::from(u16::try_from(any.len()).unwrap_or(u16::MAX));
        match self {
            Self::Exact => 0,
            Self::SameProcessor => 1,
            Self::FeaturesCompatible { any } => open(any) + 1,
            Self::GenericCovers { any, .. } => open(any) + GENERIC + 1,
            Self::PortableCovers { .. } => PORTABLE + 1,
            Self::NvidiaCovers { code_object, target } => {
                let band = if code_object.is_ptx() { PORTABLE } else { GENERIC };
                band + 1 + code_object.distance(*target)
            }
            Self::IntelCovers { code_object, target } if code_object == target => 1,
            Self::IntelCovers { .. } => GENERIC + 1,
            _ => u32::MAX,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact => f.write_str("is an exact match"),
            Self::SameProcessor => f.write_str("is for this target, spelled differently"),
            Self::FeaturesCompatible { any } => {
                f.write_str("runs with ")?;
                write_any(f, any)
            }
            Self::GenericCovers { generic, processor, .. } => {
                write!(f, "is generic code, {generic} covers {processor}")
            }
            Self::PortableCovers { processor } => {
                let processor = processor.escape_debug();
                write!(f, "is portable, compiled for {processor} when it is loaded")
            }
            Self::NvidiaCovers { code_object, target } if code_object.is_ptx() => {
                write!(f, "is PTX for {code_object}, compiled for {target} when it is loaded")
            }
            Self::NvidiaCovers { code_object, target } => {
                write!(f, "is code for {code_object}, which {target} runs")
            }
            Self::IntelCovers { code_object, target } if code_object == target => {
                write!(f, "is for {target} by another name")
            }
            Self::IntelCovers { code_object, target } => {
                write!(f, "is code for {code_object}, which {target} runs")
            }
            Self::KindMismatch { code_object, target } => {
                let code_object = code_object.as_str().escape_debug();
                let target = target.as_str().escape_debug();
                write!(f, "is for {code_object}, not for {target}")
            }
            Self::TripleMismatch { code_object, target } => {
                let (code_object, target) = (code_object.as_str(), target.as_str());
                write!(f, "is for the triple {code_object:?}, not for {target:?}")
            }
            Self::ProcessorMismatch { code_object, target } => {
                write_mismatch(f, code_object, target)
            }
            Self::FeatureMismatch { feature, code_object, target: Some(target) } => {
                let feature = feature.as_str().escape_debug();
                write!(f, "needs {feature} {code_object}, the device has it {target}")
            }
            Self::FeatureMismatch { feature, code_object, target: None }
            | Self::TooManyFeatures { feature, code_object } => {
                let feature = feature.as_str().escape_debug();
                write!(f, "needs {feature} {code_object}, the target leaves it open")
            }
            Self::UnparsableCodeObject(error) if error.kind() == ErrorKind::EmptyProcessor => {
                f.write_str("names no processor")
            }
            Self::UnparsableTarget(error) if error.kind() == ErrorKind::EmptyProcessor => {
                f.write_str("cannot be compared: the target names no processor")
            }
            Self::UnparsableCodeObject(error) | Self::UnparsableTarget(error) => {
                write!(f, "cannot be compared: {error}")
            }
        }
    }
}

/// Writes why code for one processor does not run on another, different one.
fn write_mismatch(f: &mut fmt::Formatter<'_>, code_object: &str, target: &str) -> fmt::Result {
    if let Some(generic) = Processor::amdgpu(code_object).filter(|info| info.is_generic())
        && processor_family(target) == Some(Family::AmdGcn)
    {
        return write!(f, "is generic code, {} does not cover {target}", generic.name());
    }
    if let (Some(code), Some(device)) =
        (NvidiaArch::from_name(code_object), NvidiaArch::from_name(target))
        && !device.is_ptx()
    {
        return write_nvidia_mismatch(f, code, device);
    }
    write!(f, "is for {}, not for {}", code_object.escape_debug(), target.escape_debug())
}

fn write_nvidia_mismatch(
    f: &mut fmt::Formatter<'_>,
    code: NvidiaArch,
    device: NvidiaArch,
) -> fmt::Result {
    let what = if code.is_ptx() { "PTX" } else { "code" };
    write!(f, "is {what} for {code}, ")?;
    let (major, minor) = (code.major(), code.minor());
    match code.scope() {
        NvidiaScope::Architecture => {
            write!(f, "which runs on compute capability {major}.{minor} only")
        }
        _ if device.capability() < code.capability() => write!(f, "newer than {device}"),
        _ if code.is_apart_from(device) && code.major() == device.major() => {
            if code.is_tegra() {
                write!(f, "which is Tegra's: it runs on compute capability {major}.{minor} only")
            } else {
                write!(f, "but {device} is Tegra's, which runs no other machine code")
            }
        }
        NvidiaScope::Family => write!(f, "whose family {device} is not of"),
        NvidiaScope::Portable => write!(f, "which runs on compute capability {major}.x only"),
    }
}

/// Writes a text like "sramecc and xnack on or off".
fn write_any(f: &mut fmt::Formatter<'_>, any: &[Feature]) -> fmt::Result {
    for (index, feature) in any.iter().enumerate() {
        f.write_str(match index {
            0 => "",
            _ if index + 1 == any.len() => " and ",
            _ => ", ",
        })?;
        write!(f, "{}", feature.as_str().escape_debug())?;
    }
    f.write_str(" on or off")
}
