//! Target of an image by its own bytes, whatever the container around it says.

use std::io::{self, Cursor};
use std::ops::Range;

use target_id::{Family, Processor, Target, TargetId, Triple};
use zerocopy::{FromBytes, LittleEndian};

use crate::bitcode;
use crate::image_format::{EM_AMDGPU, ImageFormat, SNIFF_LEN};
use crate::source::{Origin, Source};
use crate::spirv;
use crate::wire::{ElfHeader, ElfHeader64, ElfSectionHeader};

type Header = ElfHeader64<LittleEndian>;
type Section = <Header as ElfHeader>::Section;

/// Bytes of PTX and SPIR-V that are read: directives and capabilities stand first, after comments and names.
pub(crate) const HEAD: usize = 16 << 10;

/// Section headers of a cubin that are read. The one in question is the ninth.
const SECTIONS: u16 = 64;
/// Type of the section `.nv.compat`.
const SHT_CUDA_COMPAT: u32 = 0x7000_0086;
/// Bytes of that section that are read; it has about 40.
const COMPAT: u64 = 4096;

/// Returns the target that an image states about itself; `None` if its format states none, or if this crate does not read
/// it.
///
/// The kind is always open. `image` is the whole image: the first bytes tell everything but the suffix of cubins, which
/// are then named without one, and the triple of LLVM bitcode, which can stand anywhere.
///
/// | image | triple | target ID | source |
/// |---|---|---|---|
/// | ELF for AMD GPUs | `amdgcn-amd-amdhsa`, `-amdpal`, `-mesa3d`; `r600` | processor and features; empty if the processor is unknown | `e_flags`, ABI and its version (LLVM's AMDGPU usage guide, "ELF Code Object") |
/// | cubin | `nvptx64-nvidia-cuda` | `sm_90`; `sm_90a` if a section says so | `e_flags`; `.nv.compat` |
/// | PTX | `nvptx64-nvidia-cuda`, `nvptx-` with addresses of 32 bits | `sm_90a` | directives `.target` and `.address_size` |
/// | SPIR-V | `spirv64-unknown-unknown`, `spirv32-`; `spirv-unknown-vulkan` for shaders; `spirv64-amd-amdhsa` | `amdgcnspirv` for AMD GPUs, else empty | addressing model, capabilities, generator |
/// | LLVM bitcode | that of its first module | empty | `TRIPLE` record |
///
/// A cubin of a family (`sm_100f`) cannot be told from one of `sm_100`: only containers name the family.
///
/// ```
/// let ptx = b"// a comment\n.version 8.0\n.target sm_90a\n.address_size 64\n";
/// let target = fat_object::image_target(ptx).unwrap();
/// assert_eq!(target.to_string(), "nvptx64-nvidia-cuda-unknown-sm_90a");
/// assert_eq!(fat_object::image_target(b"text"), None);
/// ```
#[must_use]
pub fn image_target(image: &[u8]) -> Option<Target> {
    let format = ImageFormat::sniff(image.get(..SNIFF_LEN).unwrap_or(image));
    of_bytes(image, format)
}

/// As [`image_target`], of an image of this format.
pub(crate) fn of_bytes(image: &[u8], format: ImageFormat) -> Option<Target> {
    let mut reader = Cursor::new(image);
    let mut source = Source::of_bytes(&mut reader, image, Origin::File);
    of_window(&mut source, &(0..image.len() as u64), format).ok().flatten()
}

/// As [`image_target`], of the image in `window`, which is of this format. Malformed images state what can be read.
pub(crate) fn of_window(
    source: &mut Source<'_>,
    window: &Range<u64>,
    format: ImageFormat,
) -> io::Result<Option<Target>> {
    Ok(match format {
        ImageFormat::Elf { machine: EM_AMDGPU } => {
            header(&source.peek(window, size_of::<Header>())?).map(|header| of_amdgpu(&header))
        }
        ImageFormat::Cubin => of_cubin(source, window)?,
        ImageFormat::Ptx => of_ptx(&source.peek(window, HEAD)?),
        ImageFormat::SpirV => spirv::target(&source.peek(window, HEAD)?),
        ImageFormat::Bitcode => {
            let triple = bitcode::triple(source, window)?;
            triple.map(|triple| Target::new(None, Some(Triple::parse(&triple)), ""))
        }
        _ => None,
    })
}

fn header(head: &[u8]) -> Option<Header> {
    let (header, _) = Header::read_from_prefix(head).ok()?;
    header.ident.starts_with(b"\x7fELF\x02\x01").then_some(header)
}

fn amdgpu_id(header: &Header) -> Option<TargetId> {
    let [.., abi_version, _, _, _, _, _, _, _] = header.ident;
    TargetId::from_elf_flags(header.flags.get(), abi_version)
}

fn of_amdgpu(header: &Header) -> Target {
    const PAL: u8 = 0x41;
    const MESA: u8 = 0x42;
    let [_, _, _, _, _, _, _, abi, ..] = header.ident;
    let id = amdgpu_id(header);
    let family = id.as_ref().and_then(TargetId::processor_info).map(Processor::family);
    let triple = match (family, abi) {
        (Some(Family::R600), _) => "r600-unknown-unknown",
        (_, PAL) => "amdgcn-amd-amdpal",
        (_, MESA) => "amdgcn-amd-mesa3d",
        _ => "amdgcn-amd-amdhsa",
    };
    let id = id.map(|id| id.to_string()).unwrap_or_default();
    Target::new(None, Some(Triple::parse(triple)), &id)
}

/// Version 7 of the ABI has the number of the architecture in the lowest byte of the flags, version 8 in the second. Both
/// are observed in cubins of CUDA 10 to 13.
fn of_cubin(source: &mut Source<'_>, window: &Range<u64>) -> io::Result<Option<Target>> {
    const ABI_SINCE_CUDA_13: u8 = 8;
    let head = source.peek(window, size_of::<Header>())?;
    let Some(header) = header(&head) else { return Ok(None) };
    let flags = header.flags.get();
    let [.., abi_version, _, _, _, _, _, _, _] = header.ident;
    // The bits of an architecture's own code are LLVM's names; compilers say it in a section.
    let (number, has_suffix) = match abi_version >= ABI_SINCE_CUDA_13 {
        true => ((flags >> 8) & 0xff, flags & 0x8 != 0),
        false => (flags & 0xff, flags & 0x800 != 0),
    };
    if number < 10 {
        return Ok(None);
    }
    let has_suffix =
        has_suffix || (number >= 90 && is_for_one_architecture(source, window, &header)?);
    let suffix = if has_suffix { "a" } else { "" };
    Ok(Some(nvidia("nvptx64-nvidia-cuda", &format!("sm_{number}{suffix}"))))
}

fn nvidia(triple: &str, id: &str) -> Target {
    Target::new(None, Some(Triple::parse(triple)), id)
}

/// Returns whether `.nv.compat` has the attribute of code for one architecture alone, as it is in all cubins of `sm_90a`
/// and `sm_120a`.
fn is_for_one_architecture(
    source: &mut Source<'_>,
    window: &Range<u64>,
    header: &Header,
) -> io::Result<bool> {
    let fields = header.fields();
    let count = usize::from(fields.shnum.min(SECTIONS));
    let start = window.start.saturating_add(fields.shoff);
    if usize::from(fields.shentsize) != size_of::<Section>() || start >= window.end {
        return Ok(false);
    }
    let table = source.peek(&(start..window.end), count * size_of::<Section>())?;
    for section in table.chunks_exact(size_of::<Section>()) {
        let Ok(section) = Section::read_from_bytes(section) else { continue };
        let section = section.fields();
        if section.kind != SHT_CUDA_COMPAT {
            continue;
        }
        let start = window.start.saturating_add(section.offset);
        let end = start.saturating_add(section.size.min(COMPAT));
        if end > window.end {
            return Ok(false);
        }
        return Ok(has_accelerator(&source.read_range(&(start..end))?));
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
        records = rest.get(len..).unwrap_or_default();
    }
    false
}

/// PTX: `.version`, `.target` and `.address_size` come first, in this order, among comments ("PTX ISA", "Module Directives").
fn of_ptx(text: &[u8]) -> Option<Target> {
    let mut words = Words(text);
    let mut name = None;
    let mut triple = "nvptx64-nvidia-cuda";
    while let Some(word) = words.next() {
        match word {
            b".version" => drop(words.next()?),
            b".target" => {
                let word = words.next()?;
                let first = word.split(|&byte| byte == b',').next().unwrap_or_default();
                name = std::str::from_utf8(first).ok().filter(|name| name.starts_with("sm_"));
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
            self.0 = end.and_then(|end| self.0.get(end..)).unwrap_or_default();
        }
    }

    fn goes_on_with_comma(&mut self) -> bool {
        self.skip_blanks();
        self.0.starts_with(b",")
    }

    fn next(&mut self) -> Option<&'t [u8]> {
        self.skip_blanks();
        let is_end = |&byte: &u8| byte.is_ascii_whitespace() || byte == b'/';
        let end = self.0.iter().position(is_end).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at_checked(end).filter(|(word, _)| !word.is_empty())?;
        self.0 = rest;
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(image: &[u8]) -> Option<String> {
        image_target(image).map(|target| {
            let triple = target.triple().map(ToString::to_string).unwrap_or_default();
            format!("{triple} {}", target.id())
        })
    }

    fn elf(machine: u16, abi: u8, abi_version: u8, flags: u32) -> Vec<u8> {
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.extend([abi, abi_version]);
        file.resize(64, 0);
        file[18..20].copy_from_slice(&machine.to_le_bytes());
        file[48..52].copy_from_slice(&flags.to_le_bytes());
        file
    }

    #[test]
    fn amd_by_flags() {
        let amd = |abi, version, flags| named(&elf(224, abi, version, flags)).unwrap();
        assert_eq!(amd(0x40, 4, 0x73f), "amdgcn-amd-amdhsa gfx90a:xnack+");
        assert_eq!(amd(0x40, 1, 0x33f), "amdgcn-amd-amdhsa gfx90a", "V3 has no settings");
        assert_eq!(amd(0x41, 4, 0x41), "amdgcn-amd-amdpal gfx1100");
        assert_eq!(amd(0x40, 4, 0x100_0151), "amdgcn-amd-amdhsa gfx9-generic");
        assert_eq!(amd(0x40, 4, 0xfe), "amdgcn-amd-amdhsa ", "an unknown processor");
        assert_eq!(amd(0, 0, 0x1), "r600-unknown-unknown r600");
        assert_eq!(named(&elf(62, 0, 0, 0x53f)), None, "an x86-64 file");
        assert_eq!(named(&elf(224, 0x40, 4, 0x73f)[..63]), None, "a cut header");
    }

    /// Flags of cubins of published libraries.
    #[test]
    fn nvidia_by_flags() {
        for (abi_version, flags, name) in [
            (7, 0x3c_053c, "sm_60"),
            (7, 0x50_0550, "sm_80"),
            (7, 0x5a_055a, "sm_90"),
            (8, 0x600_4b04, "sm_75"),
            (8, 0x600_5a04, "sm_90"),
            (8, 0x600_6402, "sm_100"),
            (8, 0x600_7802, "sm_120"),
        ] {
            let abi = if abi_version == 7 { 0x33 } else { 0x41 };
            let expected = format!("nvptx64-nvidia-cuda {name}");
            assert_eq!(named(&elf(190, abi, abi_version, flags)), Some(expected));
        }
        assert_eq!(named(&elf(190, 0x33, 7, 0)), None);
    }

    #[test]
    fn nvidia_suffix_by_section() {
        let with = |records: &[u8]| {
            let mut file = elf(190, 0x41, 8, 0x600_5a04);
            file[40] = 64;
            file[58] = 64;
            file[60] = 2;
            file.resize(64 * 3, 0);
            file[132..136].copy_from_slice(&SHT_CUDA_COMPAT.to_le_bytes());
            file[152] = 192;
            file[160] = u8::try_from(records.len()).unwrap();
            file.extend(records);
            named(&file).unwrap()
        };
        assert_eq!(with(&[2, 9, 1, 0, 2, 2, 1, 0]), "nvptx64-nvidia-cuda sm_90a");
        assert_eq!(with(&[2, 9, 0, 0, 2, 2, 1, 0]), "nvptx64-nvidia-cuda sm_90");
        assert_eq!(with(&[4, 11, 2, 0, 7, 7, 3, 7, 1, 1, 2, 9, 1]), "nvptx64-nvidia-cuda sm_90a");
        assert_eq!(with(&[4, 11, 255, 255, 2, 9, 1]), "nvptx64-nvidia-cuda sm_90");
        assert_eq!(with(&[]), "nvptx64-nvidia-cuda sm_90");
    }

    #[test]
    fn ptx_by_directives() {
        for (text, name) in [
            (".version 7.0\n.target sm_70\n", "nvptx64-nvidia-cuda sm_70"),
            (
                "//\n// Generated\n\n.version 8.3\n.target sm_90a, debug\n.address_size 64\n",
                "nvptx64-nvidia-cuda sm_90a",
            ),
            (
                ".version 3.0 // old\n.target sm_20 , texmode_independent,\n debug .address_size 32",
                "nvptx-nvidia-cuda sm_20",
            ),
            (".version 4.0 /* .target sm_10 */ .target sm_35", "nvptx64-nvidia-cuda sm_35"),
        ] {
            assert_eq!(named(text.as_bytes()).as_deref(), Some(name), "{text}");
        }
        for text in [".version 7.0\n", ".version 7.0 .target", ".version 7.0 .target tex /* sm_70"]
        {
            assert_eq!(named(text.as_bytes()), None, "{text}");
        }
    }
}
