//! Every promise of SECURITY.md and docs/reliability.md stands in docs/details/promises.md with what holds it, by name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the bold start of each item below a heading.
fn promises<'t>(page: &'t str, heading: &str) -> Vec<&'t str> {
    let (_, section) = page.split_once(heading).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let items = section.split("\n- **").skip(1);
    items.map(|item| item.split_once("**").unwrap().0).collect()
}

/// Returns the names of all functions of the Rust files below a directory.
fn functions(directory: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            functions(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let starts = text.split("#[test]").skip(1).filter_map(|rest| rest.split_once("fn "));
            names.extend(starts.filter_map(|(_, rest)| Some(rest.split_once('(')?.0.to_owned())));
        }
    }
}

#[test]
fn each_promise_is_held_by_what_is_there() {
    let (security, reliability) = (read("SECURITY.md"), read("docs/reliability.md"));
    let table = read("docs/details/promises.md");
    let rows: Vec<_> = table.lines().filter_map(|line| line.strip_prefix("| ")).skip(1).collect();
    let told: Vec<_> = rows.iter().map(|row| row.split_once(" | ").unwrap().0).collect();
    let mut made = promises(&security, "## What is promised");
    made.extend(promises(&reliability, "## Guarantees"));
    let made: Vec<_> =
        made.iter().map(|promise| promise.replace('\n', " ").replace("  ", " ")).collect();
    assert_eq!(told, made);

    let mut tests = BTreeSet::new();
    functions(&root().join("crates"), &mut tests);
    let steps = read(".ci/run");
    for row in rows {
        let names: Vec<_> =
            row.rsplit(" | ").next().unwrap().split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "{row}");
        for name in names {
            let is_there = match name.strip_prefix(".ci/run ") {
                Some(step) => steps.contains(&format!("\nstep_{step}() {{")),
                None => match name.strip_prefix("fuzz/") {
                    Some("") => true,
                    Some(target) => root().join(format!("fuzz/fuzz_targets/{target}.rs")).is_file(),
                    None if name.ends_with(".case") => {
                        root().join("crates/cli/tests/cases").join(name).is_file()
                    }
                    None => tests.contains(name),
                },
            };
            assert!(is_there, "{name}: is not there");
        }
    }
}
