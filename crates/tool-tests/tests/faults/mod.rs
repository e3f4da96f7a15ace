//! Files, messages and exit statuses when inputs and outputs have faults: for every command and tool that writes files.
//! Edits in place have more to keep: `edit_faults.rs`.

mod endless;
mod inputs;
mod killed;
mod names;
mod opens;
mod others;
mod outputs;
mod printing;
mod privacy;
mod swaps;
mod table;
mod terminal;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::stderr;
use table::{Inputs, words};

/// All files of a directory, with links as they are.
fn snapshot(directory: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        if kind.is_dir() {
            files.extend(snapshot(&path));
        } else {
            let bytes = kind.is_file().then(|| fs::read(&path).unwrap());
            files.insert(path, bytes);
        }
    }
    files
}

/// The files that a tool made.
fn made(inputs: &Inputs, tool: &str, args: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let before = snapshot(inputs.root());
    let output = inputs.run(&words(tool, args, ["", ""]));
    assert!(output.status.success(), "{tool} {args}: {}", stderr(&output));
    let after = snapshot(inputs.root());
    let made = after.into_iter().filter(|(path, _)| !before.contains_key(path));
    made.map(|(path, bytes)| (path, bytes.unwrap())).collect()
}

/// Nothing appeared, went or changed.
#[track_caller]
fn is_unchanged(directory: &Path, before: &BTreeMap<PathBuf, Option<Vec<u8>>>, what: &str) {
    let now = snapshot(directory);
    assert_eq!(now.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>(), "{what}");
    for (path, bytes) in before {
        assert!(now[path] == *bytes, "{what}: {} changed", path.display());
    }
}

/// The tool failed as tools do, and said so.
#[track_caller]
fn refuses(output: &Output, words: &[&str], what: &str) {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(1), "{what}: {text}");
    // Messages of LLVM's tools that name no file start with the reason, and ours name it after that.
    let is_told = |word: &str| {
        let turned = word.split_once("': ").map(|(file, reason)| format!("{reason}: {file}"));
        text.contains(word) || turned.is_some_and(|turned| text.contains(&turned))
    };
    assert!(words.iter().all(|word| is_told(word)), "{what}: {text}");
    // However files are called.
    let is_plain = |line: &str| {
        line.contains("error: ") || line.contains("warning: ") || line.contains("note: ")
    };
    assert!(text.lines().all(is_plain), "{what}: {text}");
}
