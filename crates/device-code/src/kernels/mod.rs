//! The kernels of an image, and the resources that they use.

mod amd;
mod amd_symbols;
mod bitcode;
mod cubin;
mod descriptor;
mod difference;
mod elf;
mod gate;
mod list;
mod measure;
mod occupancy;
mod ptx;
mod rule;
mod spirv;
mod zebin;

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use crate::elf::{EM_AMDGPU, EM_CUDA, EM_INTELGT};
use crate::fault::Fault;
use crate::format::FileFormat;

pub use difference::{KernelPair, KernelTotals};
pub use gate::{GateFault, KernelGate};
pub use list::{
    KernelCollector, KernelList, KernelRecord, ListedArgument, ListedImage, ListedKernel,
};
pub use measure::Measure;
pub use occupancy::{Occupancy, RegisterLimits};
pub use rule::{KernelRule, NotARule};

/// The kernels of an image.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Kernels<'a> {
    /// The format of the image.
    pub format: FileFormat,
    /// The version of the format.
    pub version: Option<Version>,
    /// `true` if the image is an object that a linker makes an image of, such as a relocatable cubin. No GPU loads it.
    pub is_relocatable: bool,
    /// The kernels, in the order of the image; `None` if this crate cannot tell them, as of LLVM
    /// bitcode for NVIDIA's GPUs from before LLVM 21, of Intel's device binaries before zebin, DirectX shaders, Metal libraries,
    /// LTO-IR and MLIR.
    pub kernels: Option<Vec<Kernel<'a>>>,
    /// The malformed parts, and what is newer than this crate; the first 1,024 of them. The kernels that could be read.
    pub faults: Vec<Fault>,
}

/// Faults that are kept of one image.
const MOST_FAULTS: usize = 1024;
/// Kernels that are kept of one image. Large libraries have some thousand.
const MOST_KERNELS: usize = 1 << 18;

/// Returns the number of work-items in a group of this size. Code states any numbers.
fn volume([x, y, z]: [u32; 3]) -> u32 {
    x.saturating_mul(y).saturating_mul(z)
}

/// Adds a fault.
fn note(faults: &mut Vec<Fault>, fault: Fault) {
    if faults.len() < MOST_FAULTS {
        faults.push(fault);
    }
}

/// The version of the format of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Version {
    /// Code object of AMD's GPUs: 2 to 6.
    CodeObject(u8),
    /// Cubin: the version of its ABI, 7 or 8.
    CubinAbi(u8),
    /// PTX: major and minor version.
    Ptx(u16, u16),
    /// SPIR-V: major and minor version.
    SpirV(u8, u8),
    /// Intel's machine code: major and minor version of `.ze_info`, which describes its kernels.
    ZeInfo(u16, u16),
}

/// Writes its numbers: `5`, `8.0`.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Version::CodeObject(version) | Version::CubinAbi(version) => write!(f, "{version}"),
            Version::Ptx(major, minor) => write!(f, "{major}.{minor}"),
            Version::SpirV(major, minor) => write!(f, "{major}.{minor}"),
            Version::ZeInfo(major, minor) => write!(f, "{major}.{minor}"),
        }
    }
}

/// The kind of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum KernelKind {
    /// A kernel that a program launches.
    #[default]
    Kernel,
    /// A constructor of the image, which the runtime launches.
    Init,
    /// A destructor of the image.
    Fini,
    /// An entry point of a graphics shader.
    Shader,
}

impl KernelKind {
    /// Returns the name: `kernel`, `init`, `fini` or `shader`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            KernelKind::Kernel => "kernel",
            KernelKind::Init => "init",
            KernelKind::Fini => "fini",
            KernelKind::Shader => "shader",
        }
    }
}

/// A number that a format may store as unknown.
///
/// Exhaustive: a number is stored, stored as unknown, or not stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stored {
    /// The format does not say.
    #[default]
    Absent,
    /// The format says that it is not known before the kernel runs, as with recursion. The number is at least this.
    Unknown(u64),
    /// The number.
    Known(u64),
}

/// Writes the number; `-` if there is none, `?` or `16+?` if it is not known.
impl fmt::Display for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stored::Absent => f.write_str("-"),
            Stored::Unknown(0) => f.write_str("?"),
            Stored::Unknown(least) => write!(f, "{least}+?"),
            Stored::Known(number) => write!(f, "{number}"),
        }
    }
}

impl Stored {
    /// Returns the number, if it is known.
    #[must_use]
    pub fn known(self) -> Option<u64> {
        match self {
            Stored::Known(number) => Some(number),
            _ => None,
        }
    }

    /// Returns what orders such numbers: what is not known is more than any number, what is not stored less.
    #[must_use]
    pub fn rank(self) -> (u8, u64) {
        match self {
            Stored::Unknown(least) => (2, least),
            Stored::Known(number) => (1, number),
            Stored::Absent => (0, 0),
        }
    }
}

/// A kernel, and what its image says about the resources that it uses.
///
/// `None` means that the format or the image does not say; it never means 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kernel<'a> {
    /// The name as stored, mangled. Names of one image may be equal.
    pub name: &'a [u8],
    /// The kind.
    pub kind: KernelKind,
    /// The size of the code in bytes, without functions that it calls.
    pub code_size: Option<u64>,
    /// `true` if the size of the code reaches to the next function, because the image does not state it.
    pub is_code_size_estimated: bool,
    /// Place of the code in the image: offsets in bytes from its start, to be used as `image[range]`. It has
    /// [`code_size`](Self::code_size) bytes and is never empty.
    ///
    /// AMD: the bytes of the function symbol, in version 2 those after the header. `None` if a loader would read other bytes
    /// at this address, or if the descriptor starts other code, as instrumenters let it do.
    /// NVIDIA: the bytes of the symbol, in `.text.NAME`. Intel: the same, or the whole section without a symbol.
    /// `None` for PTX, SPIR-V and bitcode.
    pub code_range: Option<Range<usize>>,
    /// Place of the kernel descriptor in the image, in the same way (AMD): the 64 bytes of the symbol `NAME.kd`, in code objects
    /// of version 2 the 256 bytes of `amd_kernel_code_t`. `None` for other formats.
    pub descriptor_range: Option<Range<usize>>,
    /// Vector registers of a work-item. AMD: the total of both kinds on GPUs with one file for both (gfx90a, gfx94x, gfx950).
    /// NVIDIA: registers of a thread.
    pub registers: Option<u32>,
    /// Vector registers that the hardware allocates: for a work-item (AMD), for a thread of the hardware, which runs a whole wave (Intel).
    pub registers_allocated: Option<u32>,
    /// Accumulation registers (AMD).
    pub accumulators: Option<u32>,
    /// Scalar registers of a wave (AMD).
    pub scalars: Option<u32>,
    /// Vector registers that were spilled. A cubin does not say.
    pub vector_spills: Option<u32>,
    /// Scalar registers that were spilled.
    pub scalar_spills: Option<u32>,
    /// Bytes that a thread of the hardware needs for spilled registers (Intel).
    pub spill_memory: Option<u64>,
    /// Static memory of a work-group in bytes: LDS, shared memory. Without what a launch adds.
    pub group_memory: Option<u64>,
    /// Bytes of memory of a work-group that the compiler reserves beside it (NVIDIA).
    pub group_memory_reserved: Option<u64>,
    /// Private memory of a work-item in bytes: scratch; the stack, with the stacks of called functions.
    pub private_memory: Stored,
    /// The stack frame of the kernel alone, in bytes (NVIDIA). It holds local arrays as well as spilled registers.
    pub frame: Option<u64>,
    /// Bytes of the arguments.
    pub arguments_size: Option<u64>,
    /// The arguments of the source, where they are described.
    pub arguments: Option<Vec<Argument<'a>>>,
    /// Work-items of a wave: 32 or 64 (AMD), 32 (NVIDIA), 1 to 32 (Intel, and SPIR-V that requires a size of sub-groups).
    pub wave_size: Option<u32>,
    /// The most work-items of a work-group.
    pub max_group_size: Option<u32>,
    /// The one size of work-groups that it may be launched with.
    pub required_group_size: Option<[u32; 3]>,
    /// The most registers that the compiler was allowed (NVIDIA).
    pub max_registers: Option<u32>,
    /// Barriers (NVIDIA, Intel).
    pub barriers: Option<u32>,
    /// Bytes in each bank of constants of its own, by number (NVIDIA).
    pub constants: Vec<(u32, u64)>,
}

/// Returns where a code object for AMD's GPUs states its target, as ranges of bytes, in order: the flags of its header, and
/// the name in its metadata. Images that are equal elsewhere are the same code. `None` for other formats.
///
/// Compilers write one image for each target that they are told, also where several get the same code.
#[must_use]
pub fn places_of_target(image: &[u8]) -> Option<Vec<Range<usize>>> {
    const FLAGS: Range<usize> = 48..52;
    let head = image.get(..FileFormat::SNIFF_LEN).unwrap_or(image);
    if FileFormat::sniff(head) != (FileFormat::Elf { machine: EM_AMDGPU }) {
        return None;
    }
    let name = amd::place_of_target(image).filter(|name| name.start >= FLAGS.end);
    let places = [Some(FLAGS), name].into_iter().flatten();
    Some(places.filter(|place| place.end <= image.len()).collect())
}

impl Kernel<'_> {
    /// Returns the numbers without the image: the name is empty, and there are no arguments.
    #[must_use]
    pub fn without_names(&self) -> Kernel<'static> {
        Kernel {
            name: &[],
            arguments: None,
            constants: self.constants.clone(),
            kind: self.kind,
            code_size: self.code_size,
            is_code_size_estimated: self.is_code_size_estimated,
            code_range: self.code_range.clone(),
            descriptor_range: self.descriptor_range.clone(),
            registers: self.registers,
            registers_allocated: self.registers_allocated,
            accumulators: self.accumulators,
            scalars: self.scalars,
            vector_spills: self.vector_spills,
            scalar_spills: self.scalar_spills,
            spill_memory: self.spill_memory,
            group_memory: self.group_memory,
            group_memory_reserved: self.group_memory_reserved,
            private_memory: self.private_memory,
            frame: self.frame,
            arguments_size: self.arguments_size,
            wave_size: self.wave_size,
            max_group_size: self.max_group_size,
            required_group_size: self.required_group_size,
            max_registers: self.max_registers,
            barriers: self.barriers,
        }
    }
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Argument<'a> {
    /// The name in the source.
    pub name: Option<&'a [u8]>,
    /// The kind: `by_value`, `global_buffer` and others of AMD's metadata.
    pub kind: Option<&'a [u8]>,
    /// The place in the block of arguments.
    pub offset: u64,
    /// The size in bytes.
    pub size: u64,
}

/// Returns the kernels of an image; `None` for formats without kernels.
///
/// `image` is the whole image, not compressed. AMD's code objects, cubins, PTX, SPIR-V, LLVM bitcode and Intel's zebin
/// are read. Nothing is read outside of the
/// image, and memory is bounded by its size.
///
/// ```
/// use device_code::kernels;
///
/// let ptx = b".version 8.0\n.target sm_90\n.visible .entry scale(.param .u64 p) .maxntid 256 { ret; }\n";
/// let found = kernels(ptx).ok_or("not an image")?;
/// let kernels = found.kernels.ok_or("unknown")?;
/// assert_eq!(kernels[0].name, b"scale");
/// assert_eq!((kernels[0].max_group_size, kernels[0].registers), (Some(256), None));
/// # Ok::<(), &str>(())
/// ```
#[must_use]
pub fn kernels(image: &[u8]) -> Option<Kernels<'_>> {
    let head = image.get(..FileFormat::SNIFF_LEN).unwrap_or(image);
    let format = FileFormat::sniff(head);
    let mut found =
        Kernels { format, version: None, is_relocatable: false, kernels: None, faults: Vec::new() };
    match format {
        FileFormat::Elf { machine: EM_AMDGPU } => amd::read(image, &mut found),
        FileFormat::Cubin | FileFormat::Elf { machine: EM_CUDA } => cubin::read(image, &mut found),
        FileFormat::Ptx => ptx::read(image, &mut found),
        FileFormat::SpirV => spirv::read(image, &mut found),
        FileFormat::Bitcode => bitcode::read(image, &mut found),
        FileFormat::Elf { machine: EM_INTELGT } => zebin::read(image, &mut found),
        // Nothing is read of these.
        FileFormat::IntelBinary
        | FileFormat::DirectX
        | FileFormat::MetalLibrary
        | FileFormat::LtoIr
        | FileFormat::Mlir => {}
        _ => return None,
    }
    Some(found)
}
