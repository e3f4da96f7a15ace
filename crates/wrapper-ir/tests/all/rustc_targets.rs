//! All targets of rustc: the LLVM triple of each, and what this crate writes for it.
//!
//! `golden/rustc-targets.txt` has the name, the triple that rustc gives LLVM (`-` for the name itself) and what is
//! written. The first two columns are what this printed for rustc 1.95.0 and 1.97.0-nightly (2026-05-19), together:
//!
//! ```sh
//! RUSTC_BOOTSTRAP=1 rustc -Z unstable-options --print all-target-specs-json |
//!     jq -r 'to_entries[] | .key + " " + .value."llvm-target"'
//! ```
//!
//! `BLESS=1 cargo test -p wrapper-ir --test all rustc_targets::` writes the last one. `crates/tool-tests/tests/llvm/triples.rs`
//! compares names, triples and data layouts with those of the installed rustc and clang.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use target_id::Triple;
use wrapper_ir::{Abi, ErrorKind, Image, OffloadKind, Target, Wrapper};

/// Returns what can be written for a target: object and IR, IR alone, or nothing.
fn written(name: &str) -> String {
    let target = match Target::new(name) {
        Ok(target) => target,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::UnknownName);
            assert_eq!(error.to_string(), format!("unsupported target triple \"{name}\""));
            return "nothing".into();
        }
    };
    // The mangling in the data layout goes with the format.
    let format = match target.data_layout().split('-').find_map(|part| part.strip_prefix("m:")) {
        Some("e" | "m") => "elf",
        Some("w" | "x") => "coff",
        Some("o") => "mach-o",
        other => panic!("{name}: {other:?}"),
    };
    let module = Wrapper::new(OffloadKind::HIP, Abi::Current, target)
        .with_image(Image::from_bytes(b"image"));
    let module = module.module().unwrap();
    module.bitcode().unwrap();
    match module.object() {
        Ok(layout) => {
            let bytes = layout.to_vec(&[b"image"]).unwrap();
            let is_format = match format {
                "elf" => bytes.starts_with(b"\x7fELF"),
                _ => matches!(bytes.get(..2), Some(b"\x64\x86" | b"\x64\xaa")),
            };
            assert!(is_format, "{name}");
            format!("{format} object")
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::NotNative);
            format!("{format} ir")
        }
    }
}

#[test]
fn every_target_of_rustc_is_as_in_the_golden_file() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/rustc-targets.txt");
    let golden = std::fs::read_to_string(&path).unwrap();
    let mut text = String::new();
    let mut counts = BTreeMap::new();
    for line in golden.lines() {
        let mut fields = line.split_whitespace();
        let (name, given) = (fields.next().unwrap(), fields.next().unwrap());
        let llvm = if given == "-" { name } else { given };
        assert_eq!(Triple::from_rustc(name).as_str(), llvm, "{name}");
        let written = written(name);
        if let Ok(target) = Target::new(name) {
            // Triples that LLVM knows stay as they are.
            assert!([name, llvm].contains(&target.triple()), "{name}: {target}");
        }
        writeln!(text, "{name:<38} {given:<32} {written}").unwrap();
        *counts.entry(written).or_insert(0) += 1;
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert!(text == golden, "{}: run with BLESS=1 if the change is meant", path.display());
    let counts: Vec<_> = counts.iter().map(|(what, count)| (what.as_str(), *count)).collect();
    assert_eq!(counts, COUNTS);
}

/// Number of targets of each. Nothing is written for GPUs, WebAssembly, AIX and small machines.
const COUNTS: &[(&str, u32)] = &[
    ("coff ir", 11),
    ("coff object", 13),
    ("elf ir", 172),
    ("elf object", 76),
    ("mach-o ir", 24),
    ("nothing", 26),
];
