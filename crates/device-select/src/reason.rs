//! The reasons why a device loads an image, or does not.

use alloc::string::String;
use alloc::vec::Vec;

use fat_object::FileFormat;
use target_id::Verdict;

use crate::device::Vendor;
use crate::few::few;

/// The reason why a device loads an image, or does not, as text with the image as its subject: `is host code`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// How the target of the image and the device go together.
    #[error("{0}")]
    Verdict(Verdict),
    /// It is for the host.
    #[error("is host code")]
    Host,
    /// It is a container itself.
    #[error("is a {0}, whose images are judged on their own")]
    Container(FileFormat),
    /// An entry of an NVIDIA fatbinary in another format.
    #[error("is neither machine code nor PTX")]
    NeitherCodeNorPtx,
    /// LLVM bitcode in no container.
    #[error("is LLVM bitcode, which is linked and compiled, not loaded")]
    Bitcode,
    /// A shader, which no runtime of GPU computing loads.
    #[error("is a graphics shader (Vulkan)")]
    Shader,
    /// No bytes.
    #[error("is empty")]
    Empty,
    /// It is for the GPUs of another maker.
    #[error("is for another vendor ({})", .0.map_or("", Vendor::as_str))]
    OtherVendor(Option<Vendor>),
    /// SPIR-V that only AMD's runtimes compile.
    #[error("is SPIR-V for AMD GPUs")]
    SpirvForAmd,
    /// SPIR-V that the runtimes of the device's maker do not compile.
    #[error("is SPIR-V, but not for {} GPUs", .0.as_str())]
    SpirvNotFor(Vendor),
    /// It is in a format that the device does not load.
    #[error("holds {found} where {expected} is expected")]
    Format {
        /// Its format.
        found: FileFormat,
        /// The formats that the device loads, in words.
        expected: &'static str,
    },
    /// Machine code for these GPUs of Intel's, and not for the device.
    #[error("is machine code for {} only", few(.0))]
    MachineCodeFor(Vec<String>),
    /// Machine code for some GPUs of Intel's, maybe for the device.
    #[error("is machine code for GPUs that the container does not name")]
    UnnamedMachineCode,
    /// For processors of the x86 family.
    #[error("is for x86 processors")]
    X86,
    /// For FPGAs.
    #[error("is for FPGAs")]
    Fpga,
    /// The container says that the device could load it, and the image itself that it is for another one.
    #[error("holds code for {found}")]
    Misnamed {
        /// Target ID that the image states.
        found: String,
    },
    /// The image itself is for the device, and the container says that it is for another one.
    #[error("holds code for {found}, but is called {called}, and runtimes choose by that")]
    CalledOtherwise {
        /// Target ID that the image states.
        found: String,
        /// Target ID that the container states.
        called: String,
    },
    /// Another image is loaded in place of this one, which would do.
    #[error("would do, but {label} {}", .why.text())]
    Behind {
        /// Name of the other one.
        label: String,
        /// The reason.
        why: Before,
    },
    /// Other images hold each of its kernels.
    #[error("would do, but each of its kernels is taken from another image")]
    KernelsElsewhere,
}

/// The reason why one image is loaded before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Before {
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
            Before::Fits => "fits better",
            Before::Stands => "stands before it",
        }
    }
}
