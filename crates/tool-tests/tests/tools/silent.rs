//! Calls that put a number or nothing in the place of a state that cannot be are counted: their numbers may only fall.
//!
//! A range of a source is a `Window`, a sum of untrusted numbers is checked, and `byte_parts::internal!` marks what cannot be. The
//! calls are for values that may rightly be so: each of the others was a fault that nobody could see.

use std::fs;
use std::path::Path;

use crate::machine;

/// A crate with the most calls that it may have: `saturating_*`, `unwrap_or_default`, and `unwrap_or` with the largest
/// number. Lower a number here once it has fallen.
type Line = (&'static str, [usize; 3]);

const MOST: [Line; 30] = [
    ("bundle-format", [3, 0, 0]),
    ("byte-parts", [8, 1, 0]),
    ("ccob", [2, 0, 0]),
    ("cli", [2, 4, 0]),
    ("codecs", [5, 0, 1]),
    ("device-account", [3, 2, 0]),
    ("device-code", [9, 5, 0]),
    ("device-files", [3, 0, 0]),
    ("device-report", [7, 0, 0]),
    ("device-select", [1, 2, 0]),
    ("drop-ins", [2, 11, 0]),
    ("fat-edit", [11, 1, 1]),
    ("fat-object", [18, 4, 0]),
    ("gpu-packages", [7, 8, 0]),
    ("hda-archive", [2, 2, 0]),
    ("kpack", [4, 3, 1]),
    ("llvm-bitcode", [3, 6, 0]),
    ("nv-fatbin", [0, 2, 0]),
    ("object-edit", [30, 4, 0]),
    ("offload-binary", [0, 2, 0]),
    ("offload-check", [5, 0, 0]),
    ("offload-link", [0, 2, 1]),
    ("samples", [1, 4, 2]),
    ("target-id", [5, 3, 0]),
    ("tool-answers", [0, 1, 0]),
    ("tool-edits", [5, 0, 0]),
    ("tool-inputs", [0, 3, 1]),
    ("tool-kit", [5, 9, 2]),
    ("tool-network", [1, 3, 0]),
    ("wrapper-ir", [2, 3, 0]),
];

#[test]
fn silent_calls_do_not_become_more() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut more = Vec::new();
    for entry in fs::read_dir(&crates).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let mut files = Vec::new();
        if path.join("src").exists() && name != "oracles" {
            machine::sources(&path.join("src"), &mut files);
        }
        let code: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
        let count = |calls: &[&str]| calls.iter().map(|call| code.matches(call).count()).sum();
        let found: [usize; 3] = [
            count(&["saturating_"]),
            count(&["unwrap_or_default("]),
            count(&["unwrap_or(u64::MAX)", "unwrap_or(u32::MAX)", "unwrap_or(usize::MAX)"]),
        ];
        let most = MOST.iter().find(|(of, _)| *of == name).map_or([0; 3], |(_, most)| *most);
        if found.iter().zip(most).any(|(found, most)| *found > most) {
            more.push(format!("    (\"{name}\", {found:?}), // at most {most:?}"));
        }
    }
    more.sort();
    assert!(more.is_empty(), "more silent calls than before:\n{}", more.join("\n"));
}
