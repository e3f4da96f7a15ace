//! Every promise of SECURITY.md and docs/reliability.md stands in docs/details/promises.md with what holds it, by name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::machine::sources;

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

/// Returns the names of all tests of the crates.
fn tests() -> BTreeSet<String> {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    let name_of = |rest: &str| Some(rest.split_once("fn ")?.1.split_once('(')?.0.to_owned());
    let names = |path: PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        text.split("#[test]").skip(1).filter_map(name_of).collect::<Vec<_>>()
    };
    files.into_iter().flat_map(names).collect()
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

    let tests = tests();
    let steps = read("xtask/src/main.rs");
    for row in rows {
        let names: Vec<_> =
            row.rsplit(" | ").next().unwrap().split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "{row}");
        for name in names {
            let is_there = match name.strip_prefix(".ci/run ") {
                Some(step) => steps.contains(&format!("\n    (\"{step}\", ")),
                None => match name.strip_prefix("fuzz/") {
                    Some("") => true,
                    Some(target) => root().join(format!("fuzz/fuzz_targets/{target}.rs")).is_file(),
                    None if name.ends_with(".case") => {
                        root().join("crates/tool-tests/tests/cases").join(name).is_file()
                    }
                    None => tests.contains(name),
                },
            };
            assert!(is_there, "{name}: is not there");
        }
    }
}
