//! `roc-obj-ls` and `roc-obj-extract` on what clang 22 makes, beside LLVM's successors of AMD's scripts:
//! `llvm-readobj --offloading` prints URIs, `llvm-objdump --offloading` writes files.

use std::fs;
use std::process::Stdio;

use crate::common;
use crate::common::{new_command, printed_in as run, tool};

#[test]
fn uris_and_files_are_those_of_llvm() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let mut compile =
        vec!["--target=x86_64-pc-linux-gnu", "-fuse-ld=lld", "-shared", "-fPIC", "-nostdlib"];
    compile.extend(["-x", "hip", "-nogpuinc", "-nogpulib", "--no-offload-new-driver"]);
    compile.extend(["--offload-arch=gfx906:xnack+", "--offload-arch=gfx1100", "-o", "input"]);
    let sources = ["src/scale.hip", "src/shift.hip"].map(common::data);
    compile.extend(sources.iter().map(|source| source.to_str().unwrap()));
    run(common::llvm("clang"), &compile, place);

    let listed = run(tool("roc-obj-ls"), &["input"], place);
    let fields = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let ours: Vec<_> = listed.lines().map(fields).collect();
    // Offsets and sizes of two bundles with an entry for the host and two for devices each.
    let printed = run(common::llvm("llvm-readobj"), &["--offloading", "input"], place);
    let theirs: Vec<_> =
        printed.lines().filter(|line| line.contains("#offset=")).map(fields).collect();
    assert_eq!((ours.len(), theirs.len()), (6, 6), "{printed}");
    for (row, uri) in ours.iter().zip(&theirs) {
        assert_eq!(row[1..], uri[..], "{printed}");
    }

    let mut child = new_command(tool("roc-obj-extract"));
    fs::write(place.join("uris"), &listed).unwrap();
    let uris = fs::File::open(place.join("uris")).unwrap();
    let status = child.current_dir(place).stdin(Stdio::from(uris)).status().unwrap();
    assert!(status.success());
    run(common::llvm("llvm-objdump"), &["--offloading", "input"], place);
    let mut compared = 0;
    for row in ours.iter().filter(|row| !row[2].ends_with("&size=0")) {
        let range = row[2].split_once("#offset=").unwrap().1.replace("&size=", "-size");
        let extracted = fs::read(place.join(format!("input-offset{range}.co"))).unwrap();
        let bundle: usize = row[0].parse().unwrap();
        let theirs = fs::read(place.join(format!("input.{}.{}", bundle - 1, row[1]))).unwrap();
        assert!(!extracted.is_empty() && extracted == theirs, "{row:?}");
        compared += 1;
    }
    assert_eq!(compared, 4);
}
