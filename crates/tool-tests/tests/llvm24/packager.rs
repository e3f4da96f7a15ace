//! `llvm-offload-binary` of LLVM 24 and ours with `--release=24`: the same bytes and files of plain packages, and each
//! reads the compressed ones of the other.
//!
//! Needs LLVM 24 where `LLVM24` points, or in `target/llvm24` (`.ci/xtask llvm-unpacked 24` fetches it); fails without it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use crate::common::{Random, files_in, llvm24, new_command, stderr, tool};

fn theirs() -> PathBuf {
    llvm24("llvm-offload-binary")
}

fn ours() -> PathBuf {
    PathBuf::from(tool("llvm-offload-binary"))
}

fn run(tool: &Path, directory: &Path, args: &[String]) -> Output {
    let mut command = new_command(tool);
    if tool == ours() {
        command.arg("--release=24");
    }
    command.args(args).current_dir(directory).stdin(Stdio::null()).output().unwrap()
}

fn strings(args: &[&str]) -> Vec<String> {
    args.iter().map(ToString::to_string).collect()
}

/// Arguments for packing, and the inputs that they name.
fn case(place: &Path, random: &mut Random) -> Vec<String> {
    const NAMES: [&str; 5] = ["a.o", "b.bc", "c.cubin", "d.spv", "none"];
    const TRIPLES: [&str; 3] = ["amdgpu9.0a-amd-amdhsa", "nvptx64-nvidia-cuda", "spirv64"];
    const KINDS: [&str; 4] = ["hip", "cuda", "openmp", "sycl"];
    const KEYS: [&str; 4] = ["feature", "compile-opts", "producer", "zz"];
    for name in NAMES {
        // Half of it repeats, so that there is something to compress.
        let noise: Vec<u8> =
            (0..random.below(3000)).map(|_| random.next().to_le_bytes()[0]).collect();
        fs::write(place.join(name), [&noise[..], &vec![7; noise.len()]].concat()).unwrap();
    }
    let mut images = Vec::new();
    for index in 0..random.below(5) {
        let (file, triple) = (random.pick(&NAMES), random.pick(&TRIPLES));
        let kind = random.pick(&KINDS);
        let mut image =
            format!("--image=file=../{file},triple={triple},kind={kind},arch=gfx{index}");
        for _ in 0..random.below(3) {
            image.push_str(&format!(",{}=x{}", random.pick(&KEYS), random.below(9)));
        }
        images.push(image);
    }
    images
}

#[test]
fn packages_are_the_same_and_are_read_by_both() {
    let mut random = Random::new(24);
    for _ in 0..12 {
        let place = tempfile::tempdir().unwrap();
        let images = case(place.path(), &mut random);
        let [their, our] = ["their", "our"].map(|name| place.path().join(name));
        for directory in [&their, &our] {
            fs::create_dir(directory).unwrap();
        }
        for how in [
            &[][..],
            &["--compress"],
            &["--compress", "--compression-format=zlib"],
            &["--compress", "--compression-level=19"],
        ] {
            let args = [strings(&["-o", "../p.bin"]), strings(how), images.clone()].concat();
            let mut packages = Vec::new();
            for (tool, directory) in [(theirs(), &their), (ours(), &our)] {
                let output = run(&tool, directory, &args);
                assert!(output.status.success(), "{args:?}: {}", stderr(&output));
                packages.push(fs::read(place.path().join("p.bin")).unwrap());
            }
            if how.is_empty() {
                assert!(packages[0] == packages[1], "{args:?}");
            } else {
                // All but sizes of the stream, the stream and the padding.
                assert_eq!(packages[0][..8], packages[1][..8]);
                assert_eq!(packages[0][16..40], packages[1][16..40], "{args:?}");
            }
            for package in packages {
                fs::write(place.path().join("p.bin"), &package).unwrap();
                for extract in [&["../p.bin"][..], &["../p.bin", "--image=kind=hip"]] {
                    let outputs = [(theirs(), &their), (ours(), &our)].map(|(tool, directory)| {
                        let output = run(&tool, directory, &strings(extract));
                        assert!(output.status.success(), "{}", stderr(&output));
                        output.stdout
                    });
                    assert_eq!(outputs[0], outputs[1]);
                    assert!(files_in(&their) == files_in(&our));
                }
            }
        }
    }
}

#[test]
fn concatenations_are_read_alike() {
    let place = tempfile::tempdir().unwrap();
    let mut random = Random::new(3);
    let images = case(place.path(), &mut random);
    let [their, our] = ["their", "our"].map(|name| place.path().join(name));
    for directory in [&their, &our] {
        fs::create_dir(directory).unwrap();
    }
    let mut all = Vec::new();
    for tool in [theirs(), ours()] {
        for how in [&[][..], &["--compress"], &["--compress", "--compression-format=zlib"]] {
            let args = [strings(&["-o", "../p.bin"]), strings(how), images.clone()].concat();
            assert!(run(&tool, &our, &args).status.success());
            all.extend(fs::read(place.path().join("p.bin")).unwrap());
        }
    }
    fs::write(place.path().join("p.bin"), &all).unwrap();
    let outputs = [(theirs(), &their), (ours(), &our)]
        .map(|(tool, directory)| run(&tool, directory, &strings(&["../p.bin"])));
    assert!(outputs.iter().all(|output| output.status.success()));
    assert_eq!(outputs[0].stdout, outputs[1].stdout);
    assert!(files_in(&their) == files_in(&our));
}

#[test]
fn help_and_complaints_are_the_same() {
    let place = tempfile::tempdir().unwrap();
    for args in [
        &["--help"][..],
        &["-h"],
        &[],
        &["-o", "out", "--compression-format=lz4"],
        &["-o", "out", "--compression-format"],
        &["-o", "out", "--compression-level=x"],
        &["-o", "out", "--compression-level="],
    ] {
        let [their, our] = [theirs(), ours()].map(|tool| run(&tool, place.path(), &strings(args)));
        assert_eq!(our.status.code(), their.status.code(), "{args:?}");
        // Ours has two options more.
        let common = |text: &str| -> Vec<String> {
            let is_ours =
                |line: &&str| !line.contains("--format-version=") && !line.contains("--release=");
            text.lines().filter(is_ours).map(str::to_owned).collect()
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(common(&text(&our.stdout)), common(&text(&their.stdout)), "{args:?}");
        assert_eq!(stderr(&our), stderr(&their), "{args:?}");
    }
}
