//! Files of no format that a walk reads: which of them a scan looks into.

use std::path::Path;

/// First bytes of formats with other contents than device code: pictures, fonts, weights, arrays, bytecode.
const OTHERS: [&[u8]; 14] = [
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    b"RIFF",
    b"%PDF",
    b"wOFF",
    b"wOF2",
    b"OTTO",
    b"\0\x01\0\0",
    b"GGUF",
    b"\x93NUMPY",
    b"\xde\x12\x04\x95",
    b"\xca\xfe\xba\xbe",
    b"PAR1",
];

/// Returns whether a walk [scans](crate::Options::with_scan) a file of [no known format](crate::FileFormat::Unknown)
/// that starts with these bytes; 512 are enough. It does not scan text, nor formats with other contents: pictures,
/// fonts, arrays, weights of models, bytecode of Python and Java.
///
/// ```
/// assert!(fat_object::is_scanned(b"\0\x01\x02 no known format"));
/// assert!(!fat_object::is_scanned(b"import numpy as np"));
/// ```
#[must_use]
pub fn is_scanned(head: &[u8]) -> bool {
    const ENOUGH: usize = 512;
    let head = head.get(..ENOUGH).unwrap_or(head);
    // Text has no zeros, and neither has an empty file.
    head.contains(&0)
        && !OTHERS.iter().any(|magic| head.starts_with(magic))
        && !is_python_bytecode(head)
        && !is_safetensors(head)
}

/// Returns whether a file with this name may hold device code, as an installed package names its files.
#[must_use]
pub fn is_named_for_code(name: &str) -> bool {
    const EXTENSIONS: [&str; 16] = [
        "so", "pyd", "dll", "dylib", "a", "lib", "o", "obj", "co", "hsaco", "kpack", "cubin",
        "fatbin", "hipfb", "ptx", "spv",
    ];
    let extension = Path::new(name).extension();
    name.contains(".so.") || extension.is_some_and(|it| EXTENSIONS.iter().any(|one| it == *one))
}

/// Returns whether the SQLite database with this first page has the table of MIOpen's compiled kernels (`.kdb`).
pub(crate) fn is_kernel_database(page: &[u8]) -> bool {
    const TABLE: &[u8] = b"kern_db";
    page.windows(TABLE.len()).any(|bytes| bytes == TABLE)
}

/// Bytecode of Python starts with a version and the end of a line, so that nobody takes it for text.
fn is_python_bytecode(head: &[u8]) -> bool {
    matches!(head, [_, _, b'\r', b'\n', ..])
}

/// Files of safetensors start with the length of a JSON text, in 8 bytes.
fn is_safetensors(head: &[u8]) -> bool {
    matches!(head, [_, _, _, _, _, 0, 0, 0, b'{', b'"', ..])
}

#[cfg(test)]
mod tests {
    use super::is_scanned;

    #[test]
    fn text_and_known_data_are_not_scanned() {
        let tensors = [&40_u64.to_le_bytes()[..], b"{\"__metadata__\":{}}\0"].concat();
        let bytecode = b"\xcb\r\r\n\0\0\0\0";
        let others: [&[u8]; 5] = [b"", b"text", b"\x89PNG\r\n\x1a\n\0\0", &tensors, bytecode];
        for head in others {
            assert!(!is_scanned(head), "{head:?}");
        }
        for head in [&b"\x80\x04\x95\0\0"[..], b"\x14\0\0\0IREE"] {
            assert!(is_scanned(head), "{head:?}");
        }
    }
}
