//! Bundles in the object form, ours and those of `clang-offload-bundler` of LLVM 22, taken apart by both.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points, with lld, and a linker for this machine (x86-64 Linux
//! for the test that runs what it bundled); fails without them.

use std::fs;
use std::path::Path;

use crate::common::{self, data, extract, ls, new_command, printed_in};
use fat_edit::{HOST_PLACEHOLDER, object_bundle, remove_bundle_sections};

const HOST: &str = "host-x86_64-unknown-linux-gnu-";
const DEVICES: [&str; 2] =
    ["openmp-amdgcn-amd-amdhsa--gfx90a", "openmp-amdgcn-amd-amdhsa--gfx1100:xnack+"];

/// Returns the output of a tool of LLVM.
fn run(tool: &str, directory: &Path, args: &[&str]) -> String {
    printed_in(common::llvm(tool), args, directory)
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
    let ours = object_bundle(&host, &entries).unwrap();
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
fn elf_objects_with_bundles_are_those_of_llvm() {
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
fn coff_objects_with_bundles_are_read_by_both() {
    compare(&["--target=x86_64-pc-windows-msvc", "-O2", "-mno-incremental-linker-compatible"]);
    compare(&["--target=x86_64-w64-mingw32", "-O0", "-g"]);
}

/// A host object that clang compiled with these flags, and the same with entries added.
fn bundled(place: &Path, flags: &[&str], code: &str) -> (Vec<u8>, Vec<u8>) {
    fs::write(place.join("host.c"), code).unwrap();
    let mut args = vec!["host.c", "-o", "host"];
    args.extend(flags);
    run("clang", place, &args);
    let host = fs::read(place.join("host")).unwrap();
    let entries = [(HOST, 1), (DEVICES[0], 100), (DEVICES[1], 13)];
    let bundle = object_bundle(&host, &entries).unwrap();
    let ours = bundle.to_vec(&[HOST_PLACEHOLDER, &[7; 100], b"another image"]).unwrap();
    fs::write(place.join("ours"), &ours).unwrap();
    assert!(*remove_bundle_sections(&ours).unwrap() == host, "{flags:?}");
    let rows = ls(&place.join("ours"));
    let ids: Vec<_> = rows.iter().filter_map(|row| row.id.as_deref()).collect();
    assert_eq!(ids, [HOST, DEVICES[0], DEVICES[1]], "{flags:?}");
    let last = rows.last().unwrap().index;
    assert!(extract(&place.join("ours"), last) == b"another image", "{flags:?}");
    (host, ours)
}

const CODE: &str = "int global = 3; static int count; int other(int);
int other(int x) { static int n; return global + x + n++ + count; }
int main(void) { return other(2); }";

#[test]
fn linked_elf_files_run_with_their_bundle() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    for flags in [&[][..], &["-no-pie", "-g"], &["-fuse-ld=lld"], &["-shared", "-fPIC"]] {
        let (host, ours) = bundled(place.path(), flags, CODE);
        run("llvm-readelf", place.path(), &["-a", "ours"]);
        if flags != ["-shared", "-fPIC"] {
            fs::set_permissions(at("ours"), fs::metadata(at("host")).unwrap().permissions())
                .unwrap();
            assert_eq!(new_command(at("ours")).status().unwrap().code(), Some(5), "{flags:?}");
        }
        // LLVM's bundler reads ours, and we restore what LLVM's makes as it does.
        let targets = format!("--targets={HOST},{},{}", DEVICES[0], DEVICES[1]);
        fs::write(at("a"), [7; 100]).unwrap();
        fs::write(at("b"), b"another image").unwrap();
        let bundler = |args: &[&str]| {
            let all: Vec<_> =
                ["--type=o", &targets].into_iter().chain(args.iter().copied()).collect();
            run("clang-offload-bundler", place.path(), &all);
        };
        bundler(&["--unbundle", "--input=ours", "--output=h", "--output=a2", "--output=b2"]);
        assert!(fs::read(at("a")).unwrap() == fs::read(at("a2")).unwrap(), "{flags:?}");
        assert!(fs::read(at("b")).unwrap() == fs::read(at("b2")).unwrap(), "{flags:?}");
        bundler(&["--input=host", "--input=a", "--input=b", "--output=theirs"]);
        bundler(&["--unbundle", "--input=theirs", "--output=h", "--output=a2", "--output=b2"]);
        let theirs = fs::read(at("theirs")).unwrap();
        let rest = remove_bundle_sections(&theirs).unwrap();
        assert!(*rest == fs::read(at("h")).unwrap(), "{flags:?}: theirs, undone by us");
        assert!(ours[0x40..host.len()] == host[0x40..]);
    }
}

#[test]
fn wasm_objects_with_bundles_are_those_of_llvm() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    for flags in [&["-O0", "-g"][..], &["-O2"]] {
        let flags = [&["-c", "--target=wasm32"], flags].concat();
        let (host, ours) = bundled(place.path(), &flags, CODE);
        for (name, bytes) in [("p", HOST_PLACEHOLDER), ("a", &[7; 100]), ("b", b"another image")] {
            fs::write(at(name), bytes).unwrap();
        }
        let section =
            |id: &str, file: &str| format!("--add-section=__CLANG_OFFLOAD_BUNDLE__{id}={file}");
        let sections = [section(HOST, "p"), section(DEVICES[0], "a"), section(DEVICES[1], "b")];
        let [p, a, b] = &sections;
        run("llvm-objcopy", place.path(), &[p, a, b, "host", "theirs"]);
        assert!(fs::read(at("theirs")).unwrap() == ours, "{flags:?}");
        let targets = format!("--targets={HOST},{},{}", DEVICES[0], DEVICES[1]);
        let outputs = ["--output=h", "--output=a2", "--output=b2"];
        let args = ["--type=o", "--unbundle", &targets, "--input=ours"];
        run("clang-offload-bundler", place.path(), &[&args[..], &outputs].concat());
        // It leaves an empty section for each.
        let left = b"\0\x91\x80\x80\x80\0\x10.objcopy.removed".repeat(3);
        let theirs = fs::read(at("h")).unwrap();
        let places = theirs.strip_prefix(&*host).unwrap();
        assert!(places == left, "{flags:?} {places:?}");
        assert!(
            fs::read(at("a2")).unwrap() == [7; 100]
                && fs::read(at("b2")).unwrap() == b"another image"
        );
        // A program, and what a relocatable link makes of it.
        run("wasm-ld", place.path(), &["--no-entry", "ours", "-o", "linked"]);
        run("wasm-ld", place.path(), &["-r", "ours", "-o", "again"]);
        for name in ["linked", "again"] {
            assert_eq!(ls(&at(name)).len(), 3, "{flags:?} {name}");
        }
    }
}
