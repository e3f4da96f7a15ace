//! Target of an image by its own bytes, whatever the container around it says.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use core::ops::Range;

use byte_parts::Window;
use llvm_bitcode::{ReadAt, Unreadable};
use target_id::{Family, IntelGpu, Processor, Target, TargetId, Triple};

use crate::bitcode;
use crate::elf::{EM_AMDGPU, EM_INTELGT};
use crate::elf::{FileHeader, Header64, LE, Section64, SectionHeader, first, header64};
use crate::format::FileFormat;
use crate::notes;
use crate::read::{HEAD, peek, read_range};
use crate::spirv;

/// Section headers of a cubin that are read. The one in question is the ninth.
const SECTIONS: u16 = 64;
/// Type of the section `.nv.compat`.
const SHT_CUDA_COMPAT: u32 = 0x7000_0086;
/// Bytes of that section that are read; it has about 40.
const COMPAT: u64 = 4096;

/// Returns the target that an image states about itself; `None` if its format states none, or if this crate does not read
/// it.
///
/// The kind is always open. `image` is the whole image. The first 2048 bytes tell the target of most; of cubins they do not
/// tell the suffix, of images for Intel's GPUs nothing, and of LLVM bitcode little.
///
/// | image | triple | target ID | source |
/// |---|---|---|---|
/// | ELF for AMD GPUs | `amdgcn-amd-amdhsa`, `-amdpal`, `-mesa3d`; `r600` | processor and features; empty if the processor is unknown | `e_flags`, ABI and its version (LLVM's AMDGPU usage guide, "ELF Code Object") |
/// | the same, code object version 2 | as above | processor; `:xnack+` if that is on | note `NT_AMD_HSA_ISA_VERSION`, without it `e_flags` |
/// | ELF for Intel GPUs | `spir64_gen-unknown-unknown` | `intel_gpu_pvc`; `intel_gpu_99_0_1` if the GPU is unknown | notes of `.note.intelgt.compat`: IP version, else family of products |
/// | cubin | `nvptx64-nvidia-cuda` | `sm_90`; `sm_90a` if a section says so | `e_flags`; `.nv.compat` |
/// | PTX | `nvptx64-nvidia-cuda`, `nvptx-` with addresses of 32 bits | `sm_90a` | directives `.target` and `.address_size` |
/// | SPIR-V | `spirv64-unknown-unknown`, `spirv32-`; `spirv-unknown-vulkan` for shaders; `spirv64-amd-amdhsa` | `amdgcnspirv` for AMD GPUs, else empty | addressing model, capabilities, generator |
/// | LLVM bitcode | target of its first module | processor that all functions with a body name, without features; else empty | `TRIPLE` record; attributes `target-cpu` |
///
/// A cubin of a family (`sm_100f`) cannot be told from one of `sm_100`: only containers name the family.
///
/// ```
/// let ptx = b"// a comment\n.version 8.0\n.target sm_90a\n.address_size 64\n";
/// let target = device_code::image_target(ptx).unwrap();
/// assert_eq!(target.to_string(), "nvptx64-nvidia-cuda-unknown-sm_90a");
/// assert_eq!(device_code::image_target(b"text"), None);
/// ```
#[must_use]
pub fn image_target(image: &[u8]) -> Option<Target> {
    let head = image.get(..FileFormat::SNIFF_LEN).unwrap_or(image);
    let mut source = image;
    image_target_at(&mut source, &(0..image.len() as u64), FileFormat::sniff(head)).ok().flatten()
}

/// Returns what [`image_target`] does, of an image of a known format that lies in `window` of a source. It reads headers,
/// tables and notes, not the image.
///
/// Malformed images state what can be read of them.
///
/// ```
/// use device_code::{FileFormat, image_target_at};
///
/// // A file that starts with 8 bytes of something else.
/// let file = b"\0\0\0\0\0\0\0\0.version 8.0\n.target sm_90\n";
/// let target = image_target_at(&mut &file[..], &(8..file.len() as u64), FileFormat::Ptx)?;
/// assert_eq!(target.unwrap().id(), "sm_90");
/// # Ok::<(), llvm_bitcode::Unreadable>(())
/// ```
///
/// # Errors
///
/// [`Unreadable`](llvm_bitcode::Unreadable) if the source cannot be read, or if memory for a table of LLVM bitcode lacks.
pub fn image_target_at(
    source: &mut dyn ReadAt,
    window: &Range<u64>,
    format: FileFormat,
) -> Result<Option<Target>, Unreadable> {
    Ok(match format {
        FileFormat::Elf { machine: EM_AMDGPU } => {
            match header64(&peek(source, window, size_of::<Header64>())?) {
                Some(header) => Some(of_amdgpu(source, window, header)?),
                None => None,
            }
        }
        FileFormat::Elf { machine: EM_INTELGT } => of_intel(source, window)?,
        FileFormat::Cubin => of_cubin(source, window)?,
        FileFormat::Ptx => of_ptx(&peek(source, window, HEAD)?),
        FileFormat::SpirV => spirv::target(&peek(source, window, HEAD)?),
        FileFormat::Bitcode => bitcode::target(source, window)?,
        _ => None,
    })
}

fn of_amdgpu(
    source: &mut dyn ReadAt,
    window: &Range<u64>,
    header: &Header64,
) -> Result<Target, Unreadable> {
    const HSA: u8 = 0x40;
    const PAL: u8 = 0x41;
    const MESA: u8 = 0x42;
    let (abi, abi_version) = (header.e_ident().os_abi.0, header.e_ident().abi_version);
    let flags = header.e_flags(LE).0;
    let by_flags = TargetId::from_elf_flags(flags, abi_version);
    let id = match (abi, abi_version) {
        // Code objects of version 2 have the processor in a note, and compilers of that time nothing in the flags, or bits
        // that are the numbers of processors before GCN.
        (HSA, 0) => of_isa_version(source, window, flags)?
            .or_else(|| by_flags.filter(|id| family(id) != Some(Family::R600))),
        _ => by_flags,
    };
    let triple = match (id.as_ref().and_then(family), abi) {
        (Some(Family::R600), _) => "r600-unknown-unknown",
        (_, PAL) => "amdgcn-amd-amdpal",
        (_, MESA) => "amdgcn-amd-mesa3d",
        _ => "amdgcn-amd-amdhsa",
    };
    let id = id.map_or_else(String::new, |id| id.to_string());
    Ok(Target::new(None, Some(Triple::parse(triple)), &id))
}

fn family(id: &TargetId) -> Option<Family> {
    id.processor_info().map(Processor::family)
}

/// Reads `NT_AMD_HSA_ISA_VERSION`: lengths of two names (16 bits each), major, minor, stepping, and the names, `AMD` and
/// `AMDGPU` (LLVM's AMDGPU usage guide, "Code Object V2 Note Records").
fn of_isa_version(
    source: &mut dyn ReadAt,
    window: &Range<u64>,
    flags: u32,
) -> Result<Option<TargetId>, Unreadable> {
    const NT_AMD_HSA_ISA_VERSION: u32 = 3;
    const NAMES: &[u8] = b"AMD\0AMDGPU\0";
    notes::find(source, window, b"AMD", |kind, mut description| {
        let rest = &mut description;
        let lengths = (kind == NT_AMD_HSA_ISA_VERSION).then(|| notes::number(rest))??;
        let version = [notes::number(rest)?, notes::number(rest)?, notes::number(rest)?];
        let is_amd = lengths == 7 << 16 | 4 && rest.starts_with(NAMES);
        is_amd.then(|| TargetId::from_isa_version(version, flags))
    })
    .map(Option::flatten)
}

/// Reads the notes of `.note.intelgt.compat`: the IP version, in older images the family of products alone (Intel Graphics
/// Compiler, "ZE Binary", "ELF Layout").
fn of_intel(source: &mut dyn ReadAt, window: &Range<u64>) -> Result<Option<Target>, Unreadable> {
    const PRODUCT_FAMILY: u32 = 1;
    const PRODUCT_CONFIG: u32 = 6;
    let mut by_family = None;
    let name = notes::find(source, window, b"IntelGT", |kind, mut description| {
        let number = notes::number(&mut description)?;
        match kind {
            PRODUCT_FAMILY => {
                by_family = IntelGpu::from_product_family(number).map(|gpu| gpu.name().to_owned());
                None
            }
            PRODUCT_CONFIG => intel_name(number),
            _ => None,
        }
    })?;
    let name = name.or(by_family);
    Ok(name.map(|name| Target::new(None, Some(Triple::parse("spir64_gen-unknown-unknown")), &name)))
}

/// Returns the name of a GPU; of one that is not known the numbers of its IP version.
fn intel_name(ip_version: u32) -> Option<String> {
    let gpu = IntelGpu::from_ip_version(ip_version);
    let numbers = [ip_version >> 22, ip_version >> 14 & 0xff, ip_version & 0x3f];
    let [architecture, release, revision] = numbers;
    let by_number = || format!("intel_gpu_{architecture}_{release}_{revision}");
    (architecture > 0).then(|| gpu.map_or_else(by_number, |gpu| gpu.name().to_owned()))
}

/// Returns the target of a cubin. Version 7 of the ABI has the number of the architecture in the lowest byte of the
/// flags, version 8 in the second. Both were observed in cubins of CUDA 10 to 13.
fn of_cubin(source: &mut dyn ReadAt, window: &Range<u64>) -> Result<Option<Target>, Unreadable> {
    const ABI_SINCE_CUDA_13: u8 = 8;
    let head = peek(source, window, size_of::<Header64>())?;
    let Some(header) = header64(&head) else { return Ok(None) };
    let (flags, abi_version) = (header.e_flags(LE).0, header.e_ident().abi_version);
    // The bits of an architecture's own code are LLVM's names; compilers say it in a section.
    let (number, has_suffix) = if abi_version >= ABI_SINCE_CUDA_13 {
        ((flags >> 8) & 0xff, flags & 0x8 != 0)
    } else {
        (flags & 0xff, flags & 0x800 != 0)
    };
    if number < 10 {
        return Ok(None);
    }
    let has_suffix =
        has_suffix || (number >= 90 && is_for_one_architecture(source, window, header)?);
    let suffix = if has_suffix { "a" } else { "" };
    Ok(Some(nvidia("nvptx64-nvidia-cuda", &format!("sm_{number}{suffix}"))))
}

fn nvidia(triple: &str, id: &str) -> Target {
    Target::new(None, Some(Triple::parse(triple)), id)
}

/// Returns whether `.nv.compat` has the attribute of code for one architecture alone, as it is in all cubins of `sm_90a`
/// and `sm_120a`.
fn is_for_one_architecture(
    source: &mut dyn ReadAt,
    window: &Range<u64>,
    header: &Header64,
) -> Result<bool, Unreadable> {
    let count = usize::from(header.e_shnum(LE).min(SECTIONS));
    let is_known = usize::from(header.e_shentsize(LE)) == size_of::<Section64>();
    let window = Window::new(window);
    let Some(table) = window.rest(header.e_shoff(LE)).filter(|_| is_known) else {
        return Ok(false);
    };
    let table = peek(source, &table, count * size_of::<Section64>())?;
    for section in table.chunks_exact(size_of::<Section64>()) {
        let Some(section) = first::<Section64>(section) else { continue };
        if section.sh_type(LE).0 != SHT_CUDA_COMPAT {
            continue;
        }
        let place = window.sized(section.sh_offset(LE), section.sh_size(LE).min(COMPAT));
        let Some(place) = place else { return Ok(false) };
        return Ok(has_accelerator(&read_range(source, &place)?));
    }
    Ok(false)
}

/// Reads the records of `.nv.compat`: format, attribute, value. Format 2 is a byte and padding, 3 a number of 16 bits,
/// 4 a length of 16 bits and as many bytes; 1 has no value.
fn has_accelerator(mut records: &[u8]) -> bool {
    const ACCELERATOR: u8 = 9;
    while let [format, attribute, rest @ ..] = records {
        let len = match (format, rest) {
            (1, _) => 0,
            (2 | 3, _) => 2,
            (4, [low, high, ..]) => 2 + usize::from(u16::from_le_bytes([*low, *high])),
            _ => return false,
        };
        if (*format, *attribute) == (2, ACCELERATOR) {
            return rest.first() == Some(&1);
        }
        let Some(next) = rest.get(len..) else { return false };
        records = next;
    }
    false
}

/// Returns the target of PTX: `.version`, `.target` and `.address_size` come first, in this order, among comments ("PTX
/// ISA", "Module Directives").
fn of_ptx(text: &[u8]) -> Option<Target> {
    let mut words = Words(text);
    let mut name = None;
    let mut triple = "nvptx64-nvidia-cuda";
    while let Some(word) = words.next() {
        match word {
            b".version" => drop(words.next()?),
            b".target" => {
                let word = words.next()?;
                let first = word.split(|&byte| byte == b',').next()?;
                name = core::str::from_utf8(first).ok().filter(|name| name.starts_with("sm_"));
                // The options after a comma and a blank are words of their own.
                let mut last = word;
                while last.ends_with(b",") || words.goes_on_with_comma() {
                    last = words.next()?;
                }
            }
            b".address_size" => {
                if words.next()? == b"32" {
                    triple = "nvptx-nvidia-cuda";
                }
                break;
            }
            _ => break,
        }
    }
    Some(nvidia(triple, name?))
}

/// Words of PTX, without comments.
struct Words<'t>(&'t [u8]);

impl<'t> Words<'t> {
    fn skip_blanks(&mut self) {
        loop {
            self.0 = self.0.trim_ascii_start();
            let end = if self.0.starts_with(b"//") {
                self.0.iter().position(|&byte| byte == b'\n')
            } else if self.0.starts_with(b"/*") {
                self.0.windows(2).skip(2).position(|pair| pair == b"*/").map(|at| at + 4)
            } else {
                return;
            };
            (_, self.0) = self.0.split_at(end.unwrap_or(self.0.len()));
        }
    }

    fn goes_on_with_comma(&mut self) -> bool {
        self.skip_blanks();
        self.0.starts_with(b",")
    }

    fn next(&mut self) -> Option<&'t [u8]> {
        self.skip_blanks();
        let is_end = |at: usize| match self.0.split_at(at).1 {
            // Another directive follows a number or a name at once.
            [b'.', next, ..] => at > 0 && next.is_ascii_alphabetic(),
            [byte, ..] => byte.is_ascii_whitespace() || *byte == b'/',
            [] => true,
        };
        let end = (0..self.0.len()).find(|&at| is_end(at)).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at_checked(end).filter(|(word, _)| !word.is_empty())?;
        self.0 = rest;
        Some(word)
    }
}
