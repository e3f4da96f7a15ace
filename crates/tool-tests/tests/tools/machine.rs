//! No test depends on the machine by a way of its own.

use std::fs;
use std::path::{Path, PathBuf};

/// Texts that only `common/machine.rs` has, and what to use instead. In two parts, so that they are not found here.
const ONLY_THERE: [([&str; 2], &str); 2] = [
    (["Command::", "new("], "`common::new_command` sets the whole environment"),
    (["NOT ", "TESTED"], "`common::machine::not_tested` lets CI fail"),
];

/// Adds all Rust files below a directory.
pub fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns a source up to its unit tests.
pub fn without_tests(source: &str) -> &str {
    source.split("#[cfg(test)]\nmod ").next().unwrap()
}

/// Errors of temporary files name the directory.
#[test]
fn tools_make_temporary_files_in_one_place() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for name in ["tool-kit", "tool-inputs", "tool-answers", "tool-edits", "drop-ins", "cli"] {
        sources(&crates.join(name).join("src"), &mut files);
    }
    let makes = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        // Unit tests may.
        text.replace("tempfile::tempfile().unwrap()", "").contains("tempfile::tempfile()")
    };
    files.retain(makes);
    let names: Vec<_> = files.iter().map(|path| path.file_name().unwrap()).collect();
    assert_eq!(names, ["scratch.rs"]);
}

#[test]
fn tests_use_the_one_maker_of_commands() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let crates = fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let mut files = Vec::new();
    for directory in crates.chain([root.join("examples"), root.join("benches")]) {
        if directory.join("tests").exists() {
            sources(&directory.join("tests"), &mut files);
        }
    }
    assert!(files.len() > 200, "{}", files.len());
    files.retain(|path| !path.ends_with("common/machine.rs"));
    let mut wrong = Vec::new();
    for path in &files {
        for (number, line) in fs::read_to_string(path).unwrap().lines().enumerate() {
            let texts = ONLY_THERE.iter().filter(|(text, _)| line.contains(&text.concat()));
            let at = format!("{}:{}", path.display(), number + 1);
            wrong.extend(texts.map(|(text, advice)| format!("{at}: {}: {advice}", text.concat())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
