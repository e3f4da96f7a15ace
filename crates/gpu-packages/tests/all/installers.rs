//! pip, dpkg-deb, GNU tar and Python on the table of [`rules`](crate::rules): they extract what it says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::rules::{Case, Peer, cases, files};

#[path = "../../../tool-tests/tests/common/machine.rs"]
mod machine;

/// Asks the program, and returns whether it succeeded.
fn extract(case: &Case, place: &Path) -> bool {
    let name = match case.peer {
        Peer::Pip => "foo-1.0-py3-none-any.whl",
        _ => "package",
    };
    let (file, to) = (place.join(name), place.join("to"));
    fs::write(&file, &case.bytes).unwrap();
    fs::create_dir(&to).unwrap();
    let mut command = match case.peer {
        Peer::Pip => {
            let mut command = machine::new_command("python3");
            let quiet = ["-m", "pip", "--disable-pip-version-check", "--isolated"];
            command.args(quiet).args(["install", "--no-deps", "--no-index", "--no-compile"]);
            command.arg("--target").arg(&to).arg(&file);
            command
        }
        Peer::Dpkg => {
            // The control files are read first, and a fault in their order counts.
            if !run(machine::new_command("dpkg-deb").arg("--info").arg(&file)) {
                return false;
            }
            let mut command = machine::new_command("dpkg-deb");
            command.arg("-x").arg(&file).arg(&to);
            command
        }
        Peer::Tar => {
            let mut command = machine::new_command("tar");
            command.arg("-xf").arg(&file).arg("-C").arg(&to);
            command
        }
        Peer::Python => {
            let mut command = machine::new_command("python3");
            command.args(["-m", "zipfile", "-e"]).arg(&file).arg(&to);
            command
        }
    };
    run(&mut command)
}

fn run(command: &mut Command) -> bool {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&done.stderr);
    assert!(!text.contains("No module named pip"), "{text}");
    done.status.success()
}

/// Returns the regular files below a directory.
fn below(root: &Path) -> Vec<(String, Vec<u8>)> {
    let mut left: Vec<PathBuf> = vec![root.to_owned()];
    let mut found = Vec::new();
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let path = entry.path();
            let kind = entry.file_type().unwrap();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            match () {
                () if kind.is_dir() => left.push(path),
                () if kind.is_file() => found.push((name, fs::read(&path).unwrap())),
                () => {}
            }
        }
    }
    found
}

#[test]
#[ignore = "asks pip, dpkg-deb and GNU tar"]
fn pip_dpkg_and_tar_extract_what_the_table_says() {
    let root = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for (index, case) in cases().iter().enumerate() {
        let place = root.path().join(index.to_string());
        fs::create_dir(&place).unwrap();
        let is_well = extract(case, &place);
        let found = files(below(&place.join("to")));
        let mut expected: Vec<_> = (case.extracts.iter().flatten())
            .map(|(name, contents)| ((*name).to_owned(), contents.clone()))
            .collect();
        expected.sort();
        let names = |files: &[(String, Vec<u8>)]| {
            files.iter().map(|(name, bytes)| format!("{name} {}", bytes.len())).collect::<Vec<_>>()
        };
        // Python 3.13 and later take the other name.
        let is_newer = case.name == "Unicode path" && names(&found) == ["evil 1"];
        // A program may extract some members, and fail.
        if found != expected && !is_newer {
            let (found, expected) = (names(&found), names(&expected));
            wrong.push(format!(
                "{}: success {is_well}, {found:?}, expected {expected:?}",
                case.name
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
