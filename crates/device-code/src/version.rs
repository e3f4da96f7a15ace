//! Versions of code by its first bytes.

use crate::elf::EM_AMDGPU;
use crate::format::FileFormat;

/// Returns the version of the code in an image that starts with these bytes: for PTX the number of its `.version`
/// directive, for a code object for AMD GPUs its version, with 0. [`FileFormat::SNIFF_LEN`] bytes are enough. `None`
/// for other formats, and for unknown versions.
///
/// LLVM, "User Guide for AMDGPU Backend", "Code Object": `ELFABIVERSION_AMDGPU_HSA_V2` is 0.
///
/// ```
/// use device_code::{FileFormat, code_version};
///
/// assert_eq!(code_version(b"// a\n.version 8.7\n.target sm_90", FileFormat::Ptx), Some((8, 7)));
/// ```
#[must_use]
pub fn code_version(head: &[u8], format: FileFormat) -> Option<(u16, u16)> {
    const ABI_VERSION: usize = 8;
    const OLDEST: u16 = 2;
    const NEWEST: u16 = 6;
    match format {
        FileFormat::Ptx => of_ptx(head),
        FileFormat::Elf { machine: EM_AMDGPU } => {
            let version = u16::from(*head.get(ABI_VERSION)?) + OLDEST;
            (version <= NEWEST).then_some((version, 0))
        }
        _ => None,
    }
}

fn of_ptx(head: &[u8]) -> Option<(u16, u16)> {
    const DIRECTIVE: &[u8] = b".version";
    let mut lines = head.split(|byte| *byte == b'\n');
    let value = lines.find_map(|line| line.trim_ascii_start().strip_prefix(DIRECTIVE))?;
    let value = str::from_utf8(value).ok()?.trim_start();
    let (major, rest) = value.split_once('.')?;
    let minor = rest.get(..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()))?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        let ptx = |text: &str| code_version(text.as_bytes(), FileFormat::Ptx);
        assert_eq!(ptx("//\n//\n.version\t7.0\n"), Some((7, 0)));
        assert_eq!(ptx(".version 8.10 // x"), Some((8, 10)));
        for bad in [".version", ".version 7", ".version .7", ".version a.b", "version 7.0", ""] {
            assert_eq!(ptx(bad), None, "{bad}");
        }
        let mut object = [0; 64];
        let version = |object: &[u8]| code_version(object, FileFormat::Elf { machine: EM_AMDGPU });
        for (abi, expected) in [(0, Some((2, 0))), (4, Some((6, 0))), (5, None), (255, None)] {
            object[8] = abi;
            assert_eq!(version(&object), expected);
        }
        assert_eq!(version(&object[..8]), None);
        assert_eq!(code_version(&object, FileFormat::Elf { machine: 62 }), None);
    }
}
