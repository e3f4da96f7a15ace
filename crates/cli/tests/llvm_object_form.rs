//! Bundles in the object form, ours and those of `clang-offload-bundler` of LLVM 22, taken apart by both.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points; fails without it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test says no")]

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{data, extract, ls};
use fat_object::{HOST_PLACEHOLDER, ObjectBundle, remove_bundle_sections};

const HOST: &str = "host-x86_64-unknown-linux-gnu-";
const DEVICES: [&str; 2] =
    ["openmp-amdgcn-amd-amdhsa--gfx90a", "openmp-amdgcn-amd-amdhsa--gfx1100:xnack+"];

fn run(tool: &str, directory: &Path, args: &[&str]) {
    let prefix = std::env::var_os("LLVM").unwrap_or_else(|| "/usr/lib/llvm-22".into());
    let path = Path::new(&prefix).join("bin").join(tool);
    assert!(path.exists(), "{} is missing: install clang-22 and llvm-22", path.display());
    let output = Command::new(path).args(args).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Bundles an object with LLVM's tool and ours, and takes both apart with both.
fn compare(flags: &[&str]) {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let source = data("src").join("host.c");
    let mut args = vec!["-c", "-o", "host.o", source.to_str().unwrap()];
    args.extend(flags);
    run("clang", place.path(), &args);
    let host = fs::read(at("host.o")).unwrap();
    let images: [&[u8]; 2] = [&[7; 100], b"another image"];
    for (image, name) in images.iter().zip(["a", "b"]) {
        fs::write(at(name), image).unwrap();
    }
    let targets = format!("--targets={HOST},{},{}", DEVICES[0], DEVICES[1]);
    let bundler = |args: &[&str]| {
        let all: Vec<_> = ["--type=o", &targets].into_iter().chain(args.iter().copied()).collect();
        run("clang-offload-bundler", place.path(), &all);
    };
    bundler(&["--input=host.o", "--input=a", "--input=b", "--output=theirs.o"]);
    let entries = [HOST, DEVICES[0], DEVICES[1]].map(str::to_owned);
    let sizes = [HOST_PLACEHOLDER.len(), images[0].len(), images[1].len()].map(|n| n as u64);
    let entries: Vec<_> = entries.iter().zip(sizes).collect();
    let ours = ObjectBundle::new(&host, &entries).unwrap();
    let ours = ours.to_vec(&[HOST_PLACEHOLDER, images[0], images[1]]).unwrap();
    assert!(*remove_bundle_sections(&ours).unwrap() == host, "{flags:?}: ours, undone by us");
    fs::write(at("ours.o"), ours).unwrap();

    for name in ["theirs.o", "ours.o"] {
        let rows = ls(&at(name));
        let ids: Vec<_> = rows.iter().filter_map(|row| row.id.as_deref()).collect();
        assert_eq!(ids, [HOST, DEVICES[0], DEVICES[1]], "{flags:?} {name}");
        for (row, image) in rows.iter().skip(1).zip(images) {
            assert!(extract(&at(name), row.index) == image, "{flags:?} {name}");
        }
        let input = format!("--input={name}");
        bundler(&["--unbundle", &input, "--output=host2.o", "--output=a2", "--output=b2"]);
        assert!(
            fs::read(at("a2")).unwrap() == images[0] && fs::read(at("b2")).unwrap() == images[1]
        );
        let restored = fs::read(at("host2.o")).unwrap();
        if name == "theirs.o" {
            let removed = fs::read(at(name)).unwrap();
            let removed = remove_bundle_sections(&removed).unwrap();
            assert!(*removed == restored, "{flags:?}: theirs, undone by us");
        }
    }
}

#[test]
fn elf() {
    for target in
        ["x86_64-pc-linux-gnu", "aarch64-linux-gnu", "i386-linux-gnu", "powerpc64-linux-gnu"]
    {
        let target = format!("--target={target}");
        compare(&[&target, "-O2"]);
        compare(&[&target, "-O0", "-g"]);
    }
    compare(&["--target=x86_64-pc-linux-gnu", "-O0", "-ffunction-sections", "-fdata-sections"]);
}

/// LLVM does not give a COFF host back as it was, and neither can we when LLVM made the bundle.
#[test]
fn coff() {
    compare(&["--target=x86_64-pc-windows-msvc", "-O2", "-mno-incremental-linker-compatible"]);
    compare(&["--target=x86_64-w64-mingw32", "-O0", "-g"]);
}
