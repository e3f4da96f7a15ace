//! Whether an image is what its entry in a container says.

use target_id::{Target, Triple, Verdict, compatible, is_known_processor};

use crate::image_format::{EM_AMDGPU, ImageFormat};
use crate::image_target::amdgpu_target_id;

/// How an image contradicts the target it is to be stored for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Disagreement {
    /// Devices of this architecture load other things.
    #[error("{found} where {expected} is expected")]
    Format {
        /// What the image is.
        found: ImageFormat,
        /// What it may be.
        expected: &'static str,
    },
    /// A code object for other AMD GPUs.
    #[error("the code object {verdict}")]
    Target {
        /// The target ID that its ELF header has.
        found: String,
        /// Why devices of the target cannot load it.
        verdict: Verdict,
    },
}

/// Checks an image against the target that its container is to state, by its first bytes, of which 2048 are enough.
///
/// Of AMD's code objects processor and features are compared, of others the format. LLVM bitcode is for every target,
/// and what is not known is not found wrong: hosts, other architectures, processors newer than this crate.
///
/// # Errors
///
/// [`Disagreement`]
pub fn check_agreement(target: &Target, head: &[u8]) -> Result<(), Disagreement> {
    let found = ImageFormat::sniff(head);
    let Some(triple) = target.triple() else { return Ok(()) };
    if target.is_host() || found == ImageFormat::Bitcode {
        return Ok(());
    }
    let Some((expected, is_expected)) = expectation(triple, target.id(), found) else {
        return Ok(());
    };
    if !is_expected {
        return Err(Disagreement::Format { found, expected });
    }
    if found != (ImageFormat::Elf { machine: EM_AMDGPU }) {
        return Ok(());
    }
    let is_known = target.target_id().is_ok_and(|id| is_known_processor(id.processor()));
    let Some(found) = amdgpu_target_id(head).filter(|_| is_known) else { return Ok(()) };
    let found = found.to_string();
    let code_object = Target::new(None, None, &found);
    match compatible(&code_object, target) {
        verdict @ (Verdict::ProcessorMismatch { .. }
        | Verdict::FeatureMismatch { .. }
        | Verdict::TooManyFeatures { .. }) => Err(Disagreement::Target { found, verdict }),
        _ => Ok(()),
    }
}

/// What devices of an architecture load, in words, and whether `found` is that.
fn expectation(triple: &Triple, id: &str, found: ImageFormat) -> Option<(&'static str, bool)> {
    if triple.is_spirv() || id == "amdgcnspirv" {
        return Some(("SPIR-V or LLVM bitcode", found == ImageFormat::SpirV));
    }
    if triple.is_amdgpu() {
        let is_code_object = found == ImageFormat::Elf { machine: EM_AMDGPU };
        return Some(("an AMD GPU code object or LLVM bitcode", is_code_object));
    }
    if triple.is_nvptx() {
        let is_for_cuda =
            matches!(found, ImageFormat::Cubin | ImageFormat::Ptx | ImageFormat::Fatbinary);
        return Some(("a cubin, PTX, a fatbinary or LLVM bitcode", is_for_cuda));
    }
    None
}

#[cfg(test)]
mod tests {
    use target_id::OffloadKind;

    use super::*;

    /// The header of a code object, V5.
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
        assert_eq!(amd("gfx9999", 0xfe), Ok(()), "nobody knows");
        assert_eq!(amd("my gpu", 0x53f), Ok(()), "nobody knows");
    }

    #[test]
    fn flags_of_other_machines_name_no_processor() {
        let mut cubin = code_object(0x53f);
        cubin[18..20].copy_from_slice(&190_u16.to_le_bytes());
        assert_eq!(check("nvptx64-nvidia-cuda", "gfx906", &cubin), Ok(()), "nobody knows");
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
