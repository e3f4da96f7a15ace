//! `llvm-offload-binary` of LLVM 22 and ours, with the same arguments in the same places: the same files, bytes and
//! exit status.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points; fails without it.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic is how a test says no"
)]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use common::{Random, data, stderr};

fn llvm(tool: &str) -> PathBuf {
    let prefix = std::env::var_os("LLVM").unwrap_or_else(|| "/usr/lib/llvm-22".into());
    let path = Path::new(&prefix).join("bin").join(tool);
    assert!(path.exists(), "{} is missing: install clang-22 and llvm-22", path.display());
    path
}

fn theirs() -> PathBuf {
    llvm("llvm-offload-binary")
}

fn ours() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_llvm-offload-binary"))
}

fn run(tool: &Path, directory: &Path, args: &[String]) -> Output {
    Command::new(tool).args(args).current_dir(directory).stdin(Stdio::null()).output().unwrap()
}

/// Runs ours as LLVM 22.
fn run_ours(directory: &Path, args: &[String]) -> Output {
    let args: Vec<_> = args.iter().cloned().chain(["--release=22".to_owned()]).collect();
    run(&ours(), directory, &args)
}

/// The files of a directory with their contents.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap())
        })
        .collect()
}

/// Files to pack: all image kinds, empty, bitcode by magic, a package again, names without and with odd extensions.
fn inputs(place: &Path, random: &mut Random) -> Vec<String> {
    let mut names = Vec::new();
    let mut write = |name: &str, bytes: &[u8]| {
        fs::write(place.join(name), bytes).unwrap();
        names.push(format!("../{name}"));
    };
    for name in
        ["a.o", "b.bc", "c.cubin", "d.fatbin", "e.s", "f.spv", "noext", "x.O", ".o", "y.tar.o"]
    {
        let bytes: Vec<u8> =
            (0..random.below(300)).map(|_| random.next().to_le_bytes()[0]).collect();
        write(name, &[name.as_bytes(), &bytes[..]].concat());
    }
    for name in ["host.o", "openmp-packager.o", "hip.obj"] {
        write(name, &fs::read(data(name)).unwrap());
    }
    write("empty.o", b"");
    write("magic.o", b"BC\xc0\xde and more");
    write("wrapped.s", b"\xde\xc0\x17\x0b and more");
    write("short.o", b"BC\xc0");
    let package = run(
        &theirs(),
        place,
        &["-o".into(), "package.o".into(), "--image=file=a.o,arch=inner,triple=t".into()],
    );
    assert!(package.status.success());
    names.push("../package.o".into());
    names
}

const ARCHS: [&str; 7] = ["gfx90a", "gfx90a:xnack+", "sm_70", "sm_80", "", "a b", "generic_äöü"];
const TRIPLES: [&str; 4] = ["amdgcn-amd-amdhsa", "nvptx64-nvidia-cuda", "spirv64", ""];
const KINDS: [&str; 7] = ["hip", "cuda", "openmp", "sycl", "none", "HIP", "what"];

fn key(random: &mut Random) -> String {
    const KNOWN: [&str; 6] = ["feature", "producer", "compile-opts", "link-opts", "version", ""];
    match random.below(3) {
        0 => {
            let len = 1 + random.below(40);
            (0..len).map(|_| *random.pick(&["a", "B", "-", "7", "_", "ä", " "])).collect()
        }
        _ => (*random.pick(&KNOWN)).to_owned(),
    }
}

/// One `--image` for packing.
fn image(random: &mut Random, inputs: &[String]) -> String {
    let mut parts = Vec::new();
    if random.below(20) > 0 {
        parts.push(format!("file={}", random.pick(inputs)));
    }
    if random.below(10) == 0 {
        parts.push(format!("file={}", random.pick(inputs)));
    }
    if random.below(40) == 0 {
        parts.push("file=missing.o".to_owned());
    }
    if random.below(8) > 0 {
        parts.push(format!("triple={}", random.pick(&TRIPLES)));
    }
    for _ in 0..random.below(3) {
        parts.push(format!("arch={}", random.pick(&ARCHS)));
    }
    if random.below(8) > 0 {
        parts.push(format!("kind={}", random.pick(&KINDS)));
    }
    for _ in 0..random.below(2) * random.below(60) {
        let key = key(random);
        parts.push(match random.below(4) {
            0 => key,
            1 => format!("{key}=gfx90a"),
            _ => format!("{key}=v{}=x", random.below(10)),
        });
    }
    random.shuffle(&mut parts);
    format!("--image={}", parts.join(","))
}

/// One `--image` for extraction.
fn filter(random: &mut Random, name: &str) -> String {
    let mut parts = Vec::new();
    if random.below(2) == 0 {
        parts.push(format!("file={name}"));
    }
    for _ in 0..random.below(3) {
        parts.push(match random.below(7) {
            0..=2 => format!("arch={}", random.pick(&ARCHS)),
            3 => format!("triple={}", random.pick(&TRIPLES)),
            4 | 5 => format!("kind={}", random.pick(&KINDS)),
            _ => key(random),
        });
    }
    format!("--image={}", parts.join(","))
}

#[test]
fn packs_and_extracts_what_llvm_does() {
    let place = tempfile::tempdir().unwrap();
    let mut random = Random::new(7);
    let inputs = inputs(place.path(), &mut random);
    let (mut packed, mut extracted, mut clashes, mut archives) = (0, 0, 0, 0);
    for case in 0..330 {
        let here = place.path().join(case.to_string());
        fs::create_dir(&here).unwrap();
        let images: Vec<_> = (0..random.below(6)).map(|_| image(&mut random, &inputs)).collect();
        let args = |output: &str| {
            let mut args = vec!["-o".to_owned(), output.to_owned()];
            args.extend(images.iter().cloned());
            args
        };
        let their = run(&theirs(), &here, &args("theirs.bin"));
        let our = run_ours(&here, &args("ours.bin"));
        assert_eq!(our.status.code(), their.status.code(), "{images:?}: {}", stderr(&our));
        let written = files(&here);
        assert_eq!(written.get("ours.bin"), written.get("theirs.bin"), "{images:?}");
        if !their.status.success() {
            assert_eq!(written.len(), 0);
            continue;
        }
        packed += 1;
        for round in 0..2 {
            let mut args = vec![["../theirs.bin", "../ours.bin"][round].to_owned()];
            args.extend((0..random.below(4)).map(|n| filter(&mut random, &format!("out-{n}"))));
            if random.below(4) == 0 {
                args.push("--archive".to_owned());
            }
            let (a, b) = (here.join(format!("theirs-{round}")), here.join(format!("ours-{round}")));
            fs::create_dir(&a).unwrap();
            fs::create_dir(&b).unwrap();
            let their = run(&theirs(), &a, &args);
            let our = run_ours(&b, &args);
            if stderr(&our).contains("different images would be written") {
                // LLVM overwrites one with the other.
                assert!(files(&b).is_empty());
                clashes += 1;
                continue;
            }
            assert_eq!(our.status.code(), their.status.code(), "{args:?}: {}", stderr(&our));
            if their.status.success() {
                assert_eq!(files(&b), files(&a), "{args:?}");
                extracted += files(&a).len();
                archives += usize::from(args.contains(&"--archive".to_owned())) * files(&a).len();
            } else {
                assert!(files(&b).is_empty(), "{args:?}");
            }
        }
        fs::remove_dir_all(&here).unwrap();
    }
    assert!(packed > 200 && extracted > 300 && archives > 20, "{packed} {extracted} {archives}");
    assert!(clashes < 100, "{clashes}");
}
