//! The reasons why a device loads an image, or does not.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use fat_object::FileFormat;
use target_id::Verdict;

use crate::few::few;
use crate::needs::Need;
use crate::vendor::Vendor;

/// The reason why a device loads an image, or does not, as text with the image as its subject: `is host code`.
#[derive(Clone, Debug)]
pub(crate) enum Why {
    /// The comparison of the target of the image with the device.
    Verdict(Verdict),
    /// It is for the host.
    Host,
    /// It is for this CPU: OpenMP can offload to one.
    Cpu(String),
    /// LLVM bitcode for the device, which a link step compiles.
    Unlinked,
    /// It is a container itself.
    Container(FileFormat),
    /// An entry of an NVIDIA fatbinary in another format.
    NeitherCodeNorPtx,
    /// LLVM bitcode in no container.
    Bitcode,
    /// NVIDIA's code for the link step of a device.
    LtoIr,
    /// A cubin, while the driver compiles PTX only.
    PtxJitForced,
    /// PTX, while the driver does not compile it.
    PtxJitDisabled,
    /// A shader, which no runtime of GPU computing loads, with the interface that does.
    Shader(&'static str),
    /// It describes other images.
    Metadata,
    /// No bytes.
    Empty,
    /// It is for the GPUs of another maker.
    OtherVendor(Option<Vendor>),
    /// SPIR-V that only AMD's runtimes compile.
    SpirvForAmd,
    /// SPIR-V that the runtimes of the device's maker do not compile.
    SpirvNotFor(Vendor),
    /// It is in a format that the device does not load.
    Format {
        /// Its format.
        found: FileFormat,
        /// The formats that the device loads, in words.
        expected: &'static str,
    },
    /// Machine code for these GPUs of Intel's, and not for the device.
    MachineCodeFor(Vec<String>),
    /// Machine code for some GPUs of Intel's, maybe for the device.
    UnnamedMachineCode,
    /// The software that is installed is too old.
    Needs(Need),
    /// Nothing that the program registers leads to it.
    Lost,
    /// For processors of the x86 family.
    X86,
    /// For FPGAs.
    Fpga,
    /// The container says that the device could load it, and the image itself that it is for another one.
    Misnamed {
        /// Target ID that the image states.
        found: String,
    },
    /// The image itself is for the device, and the container says that it is for another one.
    CalledOtherwise {
        /// Target ID that the image states.
        found: String,
        /// Target ID that the container states.
        called: String,
    },
    /// Another image is loaded in place of this one, which would do.
    Behind {
        /// Name of the other one.
        label: String,
        /// The reason.
        why: Before,
    },
    /// Other images hold each of its kernels.
    KernelsElsewhere,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Verdict(verdict) => verdict.fmt(f),
            Self::Host => f.write_str("is host code"),
            Self::Cpu(arch) => write!(f, "is code for CPUs ({})", arch.escape_debug()),
            Self::Unlinked => f.write_str("is not linked: it needs the offload link step"),
            Self::Container(format) => {
                write!(f, "is a {format}, whose images are judged on their own")
            }
            Self::NeitherCodeNorPtx => f.write_str("is neither machine code nor PTX"),
            Self::Bitcode => write!(f, "is LLVM bitcode, which is linked and compiled, not loaded"),
            Self::LtoIr => f.write_str("is LTO-IR, which is linked and compiled, not loaded"),
            Self::PtxJitForced => {
                f.write_str("is machine code, which the driver ignores with CUDA_FORCE_PTX_JIT=1")
            }
            Self::PtxJitDisabled => {
                f.write_str("is PTX, which the driver does not compile with CUDA_DISABLE_PTX_JIT=1")
            }
            Self::Shader(interface) => write!(f, "is a graphics shader ({interface})"),
            Self::Metadata => f.write_str("describes the other images"),
            Self::Empty => f.write_str("is empty"),
            Self::OtherVendor(vendor) => {
                write!(f, "is for another vendor ({})", vendor.map_or("", Vendor::as_str))
            }
            Self::SpirvForAmd => f.write_str("is SPIR-V for AMD GPUs"),
            Self::SpirvNotFor(vendor) => {
                write!(f, "is SPIR-V, but not for {} GPUs", vendor.as_str())
            }
            Self::Format { found, expected } => {
                write!(f, "holds {found} where {expected} is expected")
            }
            Self::MachineCodeFor(gpus) => write!(f, "is machine code for {} only", few(gpus)),
            Self::UnnamedMachineCode => {
                f.write_str("is machine code for GPUs that the container does not name")
            }
            Self::Needs(need) => write!(f, "needs {need}"),
            Self::X86 => f.write_str("is for x86 processors"),
            Self::Fpga => f.write_str("is for FPGAs"),
            Self::Misnamed { found } => write!(f, "holds code for {found}"),
            Self::CalledOtherwise { found, called } => write!(
                f,
                "holds code for {found}, but is called {called}, and runtimes choose by that"
            ),
            Self::Behind { label, why } => write!(f, "would run, but {label} {}", why.text()),
            Self::Lost => f.write_str("would run, but no wrapper leads to it"),
            Self::KernelsElsewhere => {
                write!(f, "would run, but each of its kernels is taken from another image")
            }
        }
    }
}

/// The reason why one image is loaded before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// The other is generic code.
    Generic,
    /// The other is portable code.
    Portable,
    /// The other is PTX.
    Ptx,
    /// It fits better.
    Fits,
    /// It is earlier in the container.
    Stands,
}

impl Before {
    fn text(self) -> &'static str {
        match self {
            Before::Generic => "comes before generic code",
            Before::Portable => "comes before portable code",
            Before::Ptx => "comes before PTX",
            Before::Fits => "is a better match",
            Before::Stands => "stands before it",
        }
    }
}
