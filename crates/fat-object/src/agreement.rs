//! Comparison of an image with what its entry in a container says.

use device_code::FileFormat;
use offload_binary::ImageKind;
use target_id::{Family, NvidiaArch, Processor, Target, Triple, Verdict, compatible};

use crate::disagreement::Disagreement;
use crate::elf::{EM_AMDGPU, EM_INTELGT};
use crate::image::{BundleForm, ImageInfo, OffloadBinaryEntry, loaded_as};
use crate::image_target;

/// Checks an image against the target that its container is to state, by its first bytes; 2048 are enough.
///
/// Processor and features are compared of AMD's code objects, the architecture of cubins and PTX, the format of others.
/// LLVM bitcode is for every target, and what is not known is not found wrong: hosts, other architectures, processors newer
/// than this crate, headers that name none. Code for a generic processor agrees with each processor that it covers,
/// code for an earlier NVIDIA GPU with each that runs it.
///
/// A [walk](crate::walk) makes the same check of each image that it reads
/// ([`ImageInfo::disagreement`](crate::ImageInfo::disagreement)), except that there an image of an unknown format,
/// or one that is a container, does not disagree.
///
/// # Errors
///
/// [`Disagreement`]
pub fn check_agreement(target: &Target, head: &[u8]) -> Result<(), Disagreement> {
    // Ignore later bytes, such as sections of cubins: otherwise the answer would depend on the length of the head.
    let head = head.get(..FileFormat::SNIFF_LEN).unwrap_or(head);
    agreement(target, FileFormat::sniff(head), head)
}

/// Checks the agreement as [`check_agreement`] does, given the format.
fn agreement(target: &Target, found: FileFormat, head: &[u8]) -> Result<(), Disagreement> {
    let Some(triple) = target.triple() else { return Ok(()) };
    if target.is_host() || found == FileFormat::Bitcode {
        return Ok(());
    }
    let Some((expected, is_expected)) = expectation(triple, target.id(), found) else {
        return Ok(());
    };
    if !is_expected {
        return Err(Disagreement::Format { found, expected });
    }
    if !names_a_device(triple, target) {
        return Ok(());
    }
    let Some(found) = own_target_id(found, head) else { return Ok(()) };
    match compatible(&Target::new(None, None, &found), target) {
        verdict @ (Verdict::ProcessorMismatch { .. }
        | Verdict::FeatureMismatch { .. }
        | Verdict::TooManyFeatures { .. }) => Err(Disagreement::Target { found, verdict }),
        _ => Ok(()),
    }
}

/// Returns the contradiction between an image and its container's description of it, as a walk finds it. `head` has its
/// first bytes.
///
/// Formats that no device loads are not looked at: sources and precompiled headers, which text bundles hold above all, and
/// containers, whose images are checked themselves.
pub(crate) fn contradiction(
    info: &ImageInfo,
    format: FileFormat,
    head: &[u8],
) -> Option<Disagreement> {
    let is_text = matches!(info.bundle_form, Some(BundleForm::Text(_)));
    if is_text || !is_device_code(format) {
        return None;
    }
    let kind = info.offload_binary_entry.as_ref().map(OffloadBinaryEntry::image_kind);
    agreement(&info.target, format, head)
        .err()
        .or_else(|| kind.and_then(|kind| kind_agreement(kind, format).err()))
}

fn is_device_code(format: FileFormat) -> bool {
    matches!(
        format,
        FileFormat::Elf { .. } | FileFormat::Cubin | FileFormat::SpirV | FileFormat::Ptx
    )
}

/// Compares the kind of image that an offload binary records with the bytes. Objects may be of any format: compilers
/// call bitcode so that is linked later.
fn kind_agreement(recorded: ImageKind, found: FileFormat) -> Result<(), Disagreement> {
    let is_elf = matches!(found, FileFormat::Elf { .. } | FileFormat::Cubin);
    let agrees = match recorded {
        ImageKind::BITCODE | ImageKind::FATBINARY => false,
        ImageKind::CUBIN => is_elf,
        ImageKind::PTX => found == FileFormat::Ptx,
        ImageKind::SPIRV => found == FileFormat::SpirV || is_elf,
        _ => true,
    };
    if agrees { Ok(()) } else { Err(Disagreement::Kind { found, recorded }) }
}

/// Returns whether the target ID names a processor of its architecture that this crate knows.
fn names_a_device(triple: &Triple, target: &Target) -> bool {
    target.target_id().is_ok_and(|id| match NvidiaArch::parse(id.processor()) {
        Ok(arch) => triple.is_nvptx() && !arch.is_ptx(),
        Err(_) => id.processor_info().is_some_and(|info| info.family() == Family::AmdGcn),
    })
}

/// Returns the formats that devices of an architecture load, in words, and whether `found` is one of them.
fn expectation(triple: &Triple, id: &str, found: FileFormat) -> Option<(&'static str, bool)> {
    if triple.is_spirv() || triple.is_spir() || id == "amdgcnspirv" {
        // LLVM's linker wrapper wraps SPIR-V for OpenMP on Intel GPUs in an ELF file, Intel's compresses SPIR-V for
        // SYCL.
        let is_wrapped =
            matches!(found, FileFormat::Elf { machine: EM_INTELGT } | FileFormat::Zstd)
                && triple.vendor() != "amd"
                && id != "amdgcnspirv";
        return Some(("SPIR-V or LLVM bitcode", found == FileFormat::SpirV || is_wrapped));
    }
    if triple.is_amdgpu() {
        let is_code_object = found == FileFormat::Elf { machine: EM_AMDGPU };
        return Some(("an AMD GPU code object or LLVM bitcode", is_code_object));
    }
    if triple.is_nvptx() {
        let is_for_cuda =
            matches!(found, FileFormat::Cubin | FileFormat::Ptx | FileFormat::Fatbinary);
        return Some(("a cubin, PTX, a fatbinary or LLVM bitcode", is_for_cuda));
    }
    None
}

/// Returns the target ID that an image itself states, as devices go by it ([`loaded_as`]); `None` where it states
/// none that this crate knows.
fn own_target_id(format: FileFormat, head: &[u8]) -> Option<String> {
    let is_stated = matches!(format, FileFormat::Elf { .. } | FileFormat::Cubin | FileFormat::Ptx);
    let target = image_target::of_bytes(head, format).filter(|_| is_stated)?;
    let family = target.target_id().ok().and_then(|id| id.processor_info().map(Processor::family));
    // Flags of old code objects look like the numbers of processors before GCN.
    let is_named = !target.id().is_empty() && family != Some(Family::R600);
    is_named.then(|| loaded_as(&target, format).id().to_owned())
}

#[cfg(test)]
mod tests {
    use target_id::OffloadKind;

    use super::*;

    /// Returns the header of a code object, V5.
    fn code_object(flags: u32) -> Vec<u8> {
        let mut head = b"\x7fELF\x02\x01\x01\x40\x03".to_vec();
        head.resize(64, 0);
        head[18..20].copy_from_slice(&EM_AMDGPU.to_le_bytes());
        head[48..52].copy_from_slice(&flags.to_le_bytes());
        head
    }

    fn check(triple: &str, id: &str, head: &[u8]) -> Result<(), String> {
        let kind = Some(OffloadKind::HipV4);
        let target = Target::new(kind, Some(Triple::parse(triple)), id);
        check_agreement(&target, head).map_err(|error| error.to_string())
    }

    #[test]
    fn processor_and_features_are_compared() {
        let amd = |id, flags| check("amdgcn-amd-amdhsa", id, &code_object(flags));
        assert_eq!(amd("gfx90a", 0x53f), Ok(()));
        assert_eq!(amd("gfx90a:xnack+", 0x73f), Ok(()));
        assert_eq!(amd("gfx90a:xnack+", 0x53f), Ok(()), "it leaves xnack open");
        let message = "the code object needs xnack on, the target leaves it open";
        assert_eq!(amd("gfx90a", 0x73f).unwrap_err(), message);
        assert!(amd("gfx90a:xnack-", 0x73f).is_err());
        let message = "the code object is for gfx90a, not for gfx906";
        assert_eq!(amd("gfx906", 0x53f).unwrap_err(), message);
        assert_eq!(amd("gfx9-generic", 0x100_0151), Ok(()));
        assert_eq!(amd("gfx9999", 0xfe), Ok(()), "unknown");
        assert_eq!(amd("my gpu", 0x53f), Ok(()), "unknown");
    }

    /// A note has the processor of a code object of version 2; a segment near the start holds it.
    #[test]
    fn version_2_is_compared() {
        let mut head = code_object(0);
        (head[8], head[32], head[54], head[56]) = (0, 64, 56, 1);
        for number in [4_u64, 120, 0, 0, 44, 0, 4] {
            head.extend(number.to_le_bytes());
        }
        for number in [4_u32, 28, 3, u32::from_le_bytes(*b"AMD\0"), 7 << 16 | 4, 9, 0, 0] {
            head.extend(number.to_le_bytes());
        }
        head.extend(b"AMD\0AMDGPU\0\0");
        assert_eq!(check("amdgcn-amd-amdhsa", "gfx900", &head), Ok(()));
        let message = "the code object is for gfx900, not for gfx803";
        assert_eq!(check("amdgcn-amd-amdhsa", "gfx803", &head).unwrap_err(), message);
        head[48] = 1;
        assert!(check("amdgcn-amd-amdhsa", "gfx803", &head).is_err(), "bit 0 is not R600");
        head[56] = 0;
        assert_eq!(check("amdgcn-amd-amdhsa", "gfx803", &head), Ok(()), "without note: unknown");
    }

    #[test]
    fn flags_of_other_machines_name_no_processor() {
        let mut cubin = code_object(0x53f);
        cubin[18..20].copy_from_slice(&190_u16.to_le_bytes());
        assert_eq!(check("nvptx64-nvidia-cuda", "gfx906", &cubin), Ok(()), "unknown");
    }

    #[test]
    fn formats_are_compared() {
        for (triple, id, head, agrees) in [
            ("amdgcn-amd-amdhsa", "gfx90a", &b"BC\xc0\xde"[..], true),
            ("amdgcn-amd-amdhsa", "gfx90a", b"\x03\x02\x23\x07", false),
            ("amdgcn-amd-amdhsa", "gfx90a", b"", false),
            ("amdgcn-amd-amdhsa", "amdgcnspirv", b"\x03\x02\x23\x07", true),
            ("spirv64-amd-amdhsa", "amdgcnspirv", b"\x03\x02\x23\x07", true),
            ("spirv64-unknown-unknown", "", b"\x03\x02\x23\x07", true),
            ("nvptx64-nvidia-cuda", "sm_70", b"//\n.version 7.0\n", true),
            ("nvptx64-nvidia-cuda", "sm_70", b"text", false),
            ("x86_64-pc-linux-gnu", "", b"text", true),
        ] {
            assert_eq!(check(triple, id, head).is_ok(), agrees, "{triple} {id}");
        }
        let message = check("amdgcn-amd-amdhsa", "gfx90a", b"text").unwrap_err();
        assert!(message.ends_with("where an AMD GPU code object or LLVM bitcode is expected"));
    }
}
