//! Output of `offload ls` for every shipped example file, as text, tree and JSON, and of `offload match` for some.
//!
//! The golden files in `tests/golden/` are the output of this tool; the `llvm` tests compare it with LLVM.
//! `BLESS=1 cargo test -p tool-tests --test tools golden::` writes them again.

use std::collections::BTreeSet;
use std::path::Path;

use crate::common::{all_data, data, new_command, stderr, stdout, tool};

fn golden(name: &str, printed: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, printed).unwrap();
        return;
    }
    let expected =
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert_eq!(printed, expected, "{}: run with BLESS=1 if the change is meant", path.display());
}

/// Returns the output about files, and the exit status.
fn run(args: &[&str]) -> (String, i32) {
    let output = new_command(tool("offload"))
        .args(args)
        // Run in the directory of the files, so that the outputs have plain names.
        .current_dir(data("hip.o").parent().unwrap())
        .output()
        .unwrap();
    let (out, err) = (stdout(&output), stderr(&output));
    assert!(!out.contains('\x1b') && !err.contains('\x1b'), "{args:?}: colour without a terminal");
    let printed = if err.is_empty() { out } else { format!("{out}--- stderr\n{err}") };
    (printed, output.status.code().unwrap())
}

/// Golden file and arguments.
const MATCHES: &[(&str, &[&str])] = &[
    ("match-hip", &["hip.o", "--gpu", "gfx906:xnack+"]),
    ("match-hip-open", &["hip.o", "--gpu", "gfx906"]),
    ("match-cuda", &["cuda-fatbin.o", "--gpu", "sm_89"]),
    ("match-packages", &["openmp-packager.o", "packages.offload", "--gpu", "sm_75"]),
    (
        "match-several",
        &["libhip.a", "libbundles.a", "--gpu", "gfx1100,gfx906:sramecc-:xnack+,sm_80"],
    ),
    ("match-json", &["--json", "merged-packager.o", "--gpu", "gfx90a"]),
];

#[test]
fn every_example_file_prints_its_golden_file() {
    let mut names = BTreeSet::new();
    for (name, args) in MATCHES {
        let (printed, status) = run(&[&["match"], *args].concat());
        golden(name, &format!("{printed}--- exit status {status}\n"));
        names.insert((*name).to_owned());
    }
    for file in all_data() {
        let name = file.file_name().unwrap().to_str().unwrap();
        let run = |args: &[&str]| {
            let (printed, status) = run(&[args, &[name]].concat());
            assert_eq!(status, 0, "{name}: {printed}");
            printed
        };
        for (args, extension) in
            [(&["ls"][..], "txt"), (&["ls", "--tree"], "tree"), (&["ls", "--json"], "json")]
        {
            let golden_name = format!("{name}.{extension}");
            golden(&golden_name, &run(args));
            names.insert(golden_name);
        }
        if name.contains("ccob") {
            let golden_name = format!("{name}.formats");
            golden(&golden_name, &run(&["ls", "--formats"]));
            names.insert(golden_name);
        }
    }
    // Each golden file belongs to an example.
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for entry in std::fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(names.contains(&name), "tests/golden/{name} belongs to no example file");
    }
}
