//! `llvm-offload-binary` of LLVM 22 and ours, with the same arguments in the same places: the same files, bytes and
//! exit status.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points; fails without it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use crate::common::{
    Random, all_data, data, files_in, llvm, llvm_command, new_command, printed, stderr, tool,
};

fn theirs() -> PathBuf {
    llvm("llvm-offload-binary")
}

fn ours() -> PathBuf {
    PathBuf::from(tool("llvm-offload-binary"))
}

fn run(tool: &Path, directory: &Path, args: &[String]) -> Output {
    new_command(tool).args(args).current_dir(directory).stdin(Stdio::null()).output().unwrap()
}

/// Runs ours as LLVM 22.
fn run_ours(directory: &Path, args: &[String]) -> Output {
    let args: Vec<_> = args.iter().cloned().chain(["--release=22".to_owned()]).collect();
    run(&ours(), directory, &args)
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
fn packages_and_extracted_files_are_those_of_llvm() {
    let place = tempfile::tempdir().unwrap();
    let mut random = Random::new(7);
    let inputs = inputs(place.path(), &mut random);
    let (mut packed, mut extracted, mut clashes, mut archives) = (0, 0, 0, 0);
    let cases = if samples::faulty::is_thorough() { 330 } else { 110 };
    for case in 0..cases {
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
        let written = files_in(&here);
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
                assert!(files_in(&b).is_empty());
                clashes += 1;
                continue;
            }
            assert_eq!(our.status.code(), their.status.code(), "{args:?}: {}", stderr(&our));
            if their.status.success() {
                let files = files_in(&a);
                assert_eq!(files_in(&b), files, "{args:?}");
                extracted += files.len();
                archives += usize::from(args.contains(&"--archive".to_owned())) * files.len();
            } else {
                assert!(files_in(&b).is_empty(), "{args:?}");
            }
        }
        fs::remove_dir_all(&here).unwrap();
    }
    // More than 200 of 330 cases are packages.
    assert!(
        packed * 5 > cases * 3 && extracted > cases * 9 / 10 && archives * 17 > cases,
        "{cases}: {packed} {extracted} {archives}"
    );
    assert!(clashes * 3 < cases, "{clashes}");
}

#[test]
fn images_found_in_host_files_are_those_of_llvm() {
    let place = tempfile::tempdir().unwrap();
    let archive = place.path().join("libpackages.a");
    let members = ["hip-packager.o", "openmp-packager.o", "packages.offload", "merged-packager.o"];
    printed(llvm_command("llvm-ar").arg("rc").arg(&archive).args(members.map(data)));
    let mut found = 0;
    for (nth, file) in all_data().into_iter().chain([archive]).enumerate() {
        for (round, args) in
            [&["--image="][..], &["--image=file=lib.a", "--archive"], &[]].into_iter().enumerate()
        {
            let here = |who: &str| {
                let path = place.path().join(format!("{who}-{nth}-{round}"));
                fs::create_dir(&path).unwrap();
                path
            };
            let (a, b) = (here("theirs"), here("ours"));
            let mut args: Vec<_> = args.iter().map(ToString::to_string).collect();
            args.push(file.canonicalize().unwrap().display().to_string());
            let their = run(&theirs(), &a, &args);
            let our = run_ours(&b, &args);
            assert_eq!(our.status.code(), their.status.code(), "{args:?}: {}", stderr(&our));
            let files = files_in(&a);
            found += files.len();
            assert_eq!(files_in(&b), files, "{args:?}");
        }
    }
    assert!(found > 20, "{found}");
}

/// Standard error with the paths of both tools made one.
fn complaint(output: &Output, tool: &Path) -> String {
    stderr(output).replace(&tool.display().to_string(), "TOOL")
}

#[test]
fn errors_have_the_same_words() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("a.o"), "an image").unwrap();
    fs::write(place.path().join("response"), "--archiv 'a b'").unwrap();
    for line in [
        "-of x",
        "-o",
        "-ooo",
        "--o",
        "---o x",
        "--=x",
        "-=x",
        "--bogus",
        "--bogus a b",
        "--imag=x",
        "-x",
        "-hof",
        "-hp",
        "-h=x",
        "-h --bogus",
        "--image",
        "--images=x",
        "--archive=maybe",
        "--archiv",
        "--ARCHIVE",
        "--help=x",
        "--version=1",
        "--print-options=x",
        "a b",
        "a b c --foo -oz",
        "-- -o -o",
        "@response",
        "-o z --image=file=a.o a.o",
        "-o z --image=triple=x",
        "-o z --image=",
        "missing",
        ".",
        "--archive missing",
    ] {
        let args: Vec<String> = line.split(' ').map(String::from).collect();
        let their = run(&theirs(), place.path(), &args);
        let our = run(&ours(), place.path(), &args);
        assert_eq!(our.status.code(), their.status.code(), "{line}");
        let (our, their) = (complaint(&our, &ours()), complaint(&their, &theirs()));
        assert_eq!(our.lines().next(), their.lines().next(), "{line}");
    }
    assert_eq!(files_in(place.path()).len(), 2);
}

#[test]
fn help_is_laid_out_alike() {
    let place = tempfile::tempdir().unwrap();
    for args in [
        &["--help"][..],
        &["-help"],
        &["--help-hidden"],
        &["--help-list"],
        &["--help-list-hidden"],
        &["-h"],
        &[],
        &["--image=x"],
        &["--print-options"],
        &["--print-all-options"],
        &["--archive", "--help", "a", "b"],
    ] {
        let args: Vec<_> = args.iter().map(ToString::to_string).collect();
        let their = run(&theirs(), place.path(), &args);
        let our = run(&ours(), place.path(), &args);
        assert_eq!(our.status.code(), their.status.code(), "{args:?}");
        // Ours has two options more.
        let is_ours = |line: &&str| {
            let line = line.trim_start();
            line.starts_with("--format-version=") || line.starts_with("--release=")
        };
        let text = |output: &Output| String::from_utf8(output.stdout.clone()).unwrap();
        let (our, their) = (text(&our), text(&their));
        let common: Vec<_> = our.lines().filter(|line| !is_ours(line)).collect();
        assert_eq!(common, their.lines().collect::<Vec<_>>(), "{args:?}");
        assert_eq!(our.lines().filter(is_ours).count(), 2, "{args:?}");
    }
}

#[test]
#[cfg(unix)]
fn the_old_name_is_recognised_by_the_same_rule() {
    let place = tempfile::tempdir().unwrap();
    for name in [
        "clang-offload-packager",
        "x-clang-offload-packager",
        "clang-offload-packager.exe",
        "clang-offload-packager-22",
        "x.clang-offload-packager",
        "other",
    ] {
        for args in [&["missing"][..], &["--bogus"], &[]] {
            let args: Vec<_> = args.iter().map(ToString::to_string).collect();
            let said = [theirs(), ours()].map(|tool| {
                let link = place.path().join(name);
                std::os::unix::fs::symlink(tool, &link).unwrap();
                let output = run(&link, place.path(), &args);
                fs::remove_file(link).unwrap();
                (output.status.code(), stderr(&output).lines().next().map(String::from))
            });
            assert_eq!(said[0], said[1], "{name} {args:?}");
        }
    }
}
