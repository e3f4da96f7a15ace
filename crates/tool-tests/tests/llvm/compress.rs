//! LLVM 22's `clang-offload-bundler` reads the output of `offload compress`, and `offload` reads the bundler's.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points; fails without it.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use crate::common::{llvm, llvm_library, printed_in, tool};

const IDS: [&str; 3] = [
    "host-x86_64-unknown-linux-gnu-",
    "hipv4-amdgcn-amd-amdhsa--gfx90a",
    "hipv4-amdgcn-amd-amdhsa--gfx1100",
];

fn bundler(place: &Path, args: &[&str]) {
    printed_in(llvm("clang-offload-bundler"), &[&["-type=o"], args].concat(), place);
}

fn ours(place: &Path, args: &[&str]) {
    printed_in(tool("offload"), args, place);
}

/// Writes two files of machine code with much in common, `one.o` and `two.o`: this many bytes of LLVM's library, from
/// an offset on. Returns their contents.
fn code(place: &Path, offset: u64, size: u64) -> [Vec<u8>; 2] {
    let mut first = Vec::new();
    let mut library = File::open(llvm_library()).unwrap();
    library.seek(SeekFrom::Start(offset)).unwrap();
    library.take(size).read_to_end(&mut first).unwrap();
    assert!(!first.is_empty());
    let mut second = first.clone();
    second.iter_mut().step_by(700).for_each(|byte| *byte = byte.wrapping_add(1));
    fs::write(place.join("one.o"), &first).unwrap();
    fs::write(place.join("two.o"), &second).unwrap();
    [first, second]
}

/// Has LLVM bundle the two.
fn bundle(place: &Path, to: &str, more: &[&str]) {
    let (targets, output) = (format!("-targets={}", IDS.join(",")), format!("-output={to}"));
    let inputs = ["-input=/dev/null", "-input=one.o", "-input=two.o"];
    bundler(place, &[&["-bundle-align=4096", &targets, &output], &inputs[..], more].concat());
}

/// Has LLVM unbundle the image of a target.
fn unbundled(place: &Path, input: &str, id: &str) -> Vec<u8> {
    let (targets, input) = (format!("-targets={id}"), format!("-input={input}"));
    bundler(place, &["-unbundle", &targets, &input, "-output=image"]);
    fs::read(place.join("image")).unwrap()
}

fn len(place: &Path, name: &str) -> u64 {
    fs::metadata(place.join(name)).unwrap().len()
}

#[test]
fn llvm_reads_every_method_version_and_level() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let codes = code(place, 4 << 20, 1 << 20);
    bundle(place, "plain", &[]);
    // Not level 0 of zlib, which makes nothing smaller: then the bundle stays plain.
    for (method, levels) in
        [("zstd", &["-7", "1", "3", "9", "12", "99"][..]), ("zlib", &["1", "6", "9", "99"])]
    {
        for (level, version) in levels.iter().zip(["3", "2"].iter().cycle()) {
            let how = ["--method", method, "--level", level, "--format-version", version];
            ours(place, &[&["compress", "plain", "-o", "small"], &how[..]].concat());
            let small = fs::read(place.join("small")).unwrap();
            assert_eq!(small[4], version.as_bytes()[0] - b'0');
            assert!(unbundled(place, "small", IDS[2]) == codes[1], "{method} {level}");
        }
    }
}

/// A payload of several frames, with skippable ones between them.
#[test]
fn payloads_of_several_frames_are_read_as_llvm_reads_them() {
    const SKIPPABLE: &[u8] = &[0x53, 0x2A, 0x4D, 0x18, 2, 0, 0, 0, 7, 7];
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let codes = code(place, 4 << 20, 1 << 20);
    bundle(place, "plain", &[]);
    let plain = fs::read(place.join("plain")).unwrap();
    let payload = |data: &[u8]| ccob::compress(data, &ccob::WriteOptions::default()).unwrap();
    let (first, second) = plain.split_at(300_000);
    let (first, second) = (payload(first), payload(second));
    let stream = [SKIPPABLE, &first[32..], SKIPPABLE, &second[32..], SKIPPABLE].concat();
    let mut container = b"CCOB\x03\0\x01\0".to_vec();
    for number in [32 + stream.len() as u64, plain.len() as u64, ccob::hash(&plain)] {
        container.extend(number.to_le_bytes());
    }
    container.extend(stream);
    fs::write(place.join("several"), container).unwrap();
    for (id, code) in IDS[1..].iter().zip(&codes) {
        assert!(unbundled(place, "several", id) == *code, "{id}");
        ours(place, &["unbundle", "several", &format!("{id}=ours")]);
        assert!(fs::read(place.join("ours")).unwrap() == *code, "{id}");
    }
}

#[test]
fn bundles_of_llvm_are_decompressed_and_ours_are_not_larger() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    code(place, 4 << 20, 8 << 20);
    bundle(place, "plain", &[]);
    for level in ["1", "3", "9"] {
        bundle(place, "theirs", &["-compress", &format!("-compression-level={level}")]);
        ours(place, &["decompress", "theirs", "-o", "back"]);
        let [back, plain] = ["back", "plain"].map(|name| fs::read(place.join(name)).unwrap());
        assert!(back == plain);
        ours(place, &["compress", "plain", "-o", "small", "--level", level]);
        let (ours, theirs) = (len(place, "small"), len(place, "theirs"));
        assert!(ours <= theirs, "level {level}: {ours} bytes, LLVM's are {theirs}");
    }
}

/// From 4 KB on, code and constants, in bundles for two GPUs.
#[test]
#[ignore = "slow: .ci/run llvm_slow"]
fn no_bundle_becomes_larger_than_llvms() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    for offset in [0, 4 << 20, 40 << 20, 80 << 20] {
        for size in
            [4 << 10, 16 << 10, 50 << 10, 150 << 10, 500 << 10, 1000 << 10, 3 << 20, 15 << 20]
        {
            code(place, offset, size);
            bundle(place, "plain", &[]);
            bundle(place, "theirs", &["-compress"]);
            // An ELF file's first bytes, cut short.
            ours(place, &["compress", "--allow-findings", "-o", "small", "plain"]);
            let (ours, theirs) = (len(place, "small"), len(place, "theirs"));
            assert!(ours <= theirs, "{size} from {offset}: {ours} bytes, LLVM's are {theirs}");
        }
    }
}
