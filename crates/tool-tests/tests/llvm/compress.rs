//! LLVM 22's `clang-offload-bundler` reads the output of `offload compress`, and `offload` reads the bundler's.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points; fails without it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::common::{llvm, llvm_library, new_command, offload, stderr};

const IDS: [&str; 3] = [
    "host-x86_64-unknown-linux-gnu-",
    "hipv4-amdgcn-amd-amdhsa--gfx90a",
    "hipv4-amdgcn-amd-amdhsa--gfx1100",
];

fn bundler(args: &[String]) {
    let output = new_command(llvm("clang-offload-bundler")).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn ours(args: &[&OsStr]) {
    let output = offload(args);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
}

/// Two files of machine code with much in common.
fn code(place: &Path, mib: u64) -> [PathBuf; 2] {
    code_from(place, 4 << 20, mib << 20)
}

/// The same, with this many bytes of LLVM's library, from an offset on.
fn code_from(place: &Path, offset: u64, size: u64) -> [PathBuf; 2] {
    let mut first = Vec::new();
    let mut library = File::open(llvm_library()).unwrap();
    library.seek(SeekFrom::Start(offset)).unwrap();
    library.take(size).read_to_end(&mut first).unwrap();
    assert!(!first.is_empty());
    let paths = [place.join("one.o"), place.join("two.o")];
    fs::write(&paths[0], &first).unwrap();
    let changed: Vec<u8> = first
        .iter()
        .enumerate()
        .map(|(i, &byte)| if i % 700 == 0 { byte.wrapping_add(1) } else { byte })
        .collect();
    fs::write(&paths[1], changed).unwrap();
    paths
}

fn bundle(codes: &[PathBuf; 2], to: &Path, more: &[String]) {
    let mut args = vec![
        "-type=o".to_owned(),
        "-bundle-align=4096".to_owned(),
        format!("-targets={}", IDS.join(",")),
        "-input=/dev/null".to_owned(),
        format!("-input={}", codes[0].display()),
        format!("-input={}", codes[1].display()),
        format!("-output={}", to.display()),
    ];
    args.extend_from_slice(more);
    bundler(&args);
}

#[test]
fn llvm_reads_every_method_version_and_level() {
    let place = tempfile::tempdir().unwrap();
    let codes = code(place.path(), 1);
    let (plain, small) = (place.path().join("plain"), place.path().join("small"));
    let out = place.path().join("out");
    bundle(&codes, &plain, &[]);
    // Not level 0 of zlib, which makes nothing smaller: then the bundle stays plain.
    for (method, levels) in
        [("zstd", &["-7", "1", "3", "9", "12", "99"][..]), ("zlib", &["1", "6", "9", "99"])]
    {
        for (level, version) in levels.iter().zip(["3", "2"].iter().cycle()) {
            ours(&[
                "compress".as_ref(),
                plain.as_os_str(),
                "-o".as_ref(),
                small.as_os_str(),
                "--method".as_ref(),
                method.as_ref(),
                "--level".as_ref(),
                level.as_ref(),
                "--format-version".as_ref(),
                version.as_ref(),
            ]);
            assert_eq!(fs::read(&small).unwrap()[4], version.as_bytes()[0] - b'0');
            bundler(&[
                "-type=o".to_owned(),
                "-unbundle".to_owned(),
                format!("-targets={}", IDS[2]),
                format!("-input={}", small.display()),
                format!("-output={}", out.display()),
            ]);
            assert!(fs::read(&out).unwrap() == fs::read(&codes[1]).unwrap(), "{method} {level}");
        }
    }
}

/// A payload of several frames, with skippable ones between them.
#[test]
fn payloads_of_several_frames_are_read_as_llvm_reads_them() {
    const SKIPPABLE: &[u8] = &[0x53, 0x2A, 0x4D, 0x18, 2, 0, 0, 0, 7, 7];
    let place = tempfile::tempdir().unwrap();
    let codes = code(place.path(), 1);
    let (plain, several) = (place.path().join("plain"), place.path().join("several"));
    bundle(&codes, &plain, &[]);
    let plain = fs::read(&plain).unwrap();
    let payload = |data: &[u8]| ccob::compress(data, &ccob::WriteOptions::default()).unwrap();
    let (first, second) = plain.split_at(300_000);
    let (first, second) = (payload(first), payload(second));
    let stream = [SKIPPABLE, &first[32..], SKIPPABLE, &second[32..], SKIPPABLE].concat();
    let mut container = b"CCOB\x03\0\x01\0".to_vec();
    for number in [32 + stream.len() as u64, plain.len() as u64, ccob::hash(&plain)] {
        container.extend(number.to_le_bytes());
    }
    container.extend(stream);
    fs::write(&several, container).unwrap();
    for (id, code) in [(IDS[1], &codes[0]), (IDS[2], &codes[1])] {
        let out = [place.path().join("llvm"), place.path().join("ours")];
        bundler(&[
            "-type=o".to_owned(),
            "-unbundle".to_owned(),
            format!("-targets={id}"),
            format!("-input={}", several.display()),
            format!("-output={}", out[0].display()),
        ]);
        let mut target = std::ffi::OsString::from(format!("{id}="));
        target.push(&out[1]);
        ours(&["unbundle".as_ref(), several.as_os_str(), target.as_os_str()]);
        for out in out {
            assert!(fs::read(&out).unwrap() == fs::read(code).unwrap(), "{}", out.display());
        }
    }
}

#[test]
fn bundles_of_llvm_are_decompressed_and_ours_are_not_larger() {
    let place = tempfile::tempdir().unwrap();
    let codes = code(place.path(), 8);
    let path = |name: &str| place.path().join(name);
    let (plain, theirs, small, back) = (path("plain"), path("theirs"), path("small"), path("back"));
    bundle(&codes, &plain, &[]);
    for level in ["1", "3", "9"] {
        bundle(&codes, &theirs, &["-compress".to_owned(), format!("-compression-level={level}")]);
        ours(&["decompress".as_ref(), theirs.as_os_str(), "-o".as_ref(), back.as_os_str()]);
        assert!(fs::read(&back).unwrap() == fs::read(&plain).unwrap());
        ours(&[
            "compress".as_ref(),
            plain.as_os_str(),
            "-o".as_ref(),
            small.as_os_str(),
            "--level".as_ref(),
            level.as_ref(),
        ]);
        let size = |path| fs::metadata(path).unwrap().len();
        let (ours, theirs) = (size(&small), size(&theirs));
        assert!(ours <= theirs, "level {level}: {ours} bytes, LLVM's are {theirs}");
    }
}

/// From 4 KB on, code and constants, in bundles for two GPUs.
#[test]
#[ignore = "slow: .ci/run llvm_slow"]
fn no_bundle_becomes_larger_than_llvms() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    let (plain, theirs, small) = (path("plain"), path("theirs"), path("small"));
    for offset in [0, 4 << 20, 40 << 20, 80 << 20] {
        for size in
            [4 << 10, 16 << 10, 50 << 10, 150 << 10, 500 << 10, 1000 << 10, 3 << 20, 15 << 20]
        {
            let codes = code_from(place.path(), offset, size);
            bundle(&codes, &plain, &[]);
            bundle(&codes, &theirs, &["-compress".to_owned()]);
            // An ELF file's first bytes, cut short.
            let args = ["compress", "--allow-findings", "-o"].map(OsStr::new);
            ours(&[&args[..], &[small.as_os_str(), plain.as_os_str()]].concat());
            let size_of = |path| fs::metadata(path).unwrap().len();
            let (ours, theirs) = (size_of(&small), size_of(&theirs));
            assert!(ours <= theirs, "{size} from {offset}: {ours} bytes, LLVM's are {theirs}");
        }
    }
}
