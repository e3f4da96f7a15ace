//! Errors of the drop-in tools with `--release=24` start with the words of LLVM 24's; ours follow.
//!
//! Needs LLVM 24 where `LLVM24` points, or in `target/llvm24` (`.ci/xtask llvm-unpacked 24` fetches it); fails without it.

#[path = "../messages/mod.rs"]
mod compared;

use std::fs;
use std::path::Path;

use crate::common::{llvm24, new_command, tool};
use compared::{
    ACCEPTED, CRASHES, Llvm, Ours, PACKAGER, PACKAGES, WRAPPER, Words, bundler_cases, cases,
    compare_with, except, extractions,
};

/// Files of version 3 and what the packager does with them: plain ones, and those with a stream of either method.
const VERSION_3: &[(&str, Words)] = &[
    ("plain-version-0", Llvm),
    ("plain-version-4", Llvm),
    ("plain-39", Llvm),
    ("plain-size-beyond", Llvm),
    ("plain-size-39", Llvm),
    ("plain-size-40", Llvm),
    ("plain-entries-0", ACCEPTED),
    ("plain-entries-32", Llvm),
    ("plain-entries-far", Llvm),
    ("plain-count-2", Llvm),
    ("plain-count-far", Llvm),
    ("plain-strings-at", Llvm),
    ("plain-strings-count", Llvm),
    ("plain-string", CRASHES),
    ("plain-image", Llvm),
    ("plain-image-size", Llvm),
    ("plain-more", Llvm),
    ("plain-twice", Llvm),
];

/// The same for each method.
const COMPRESSED: &[(&str, Words)] = &[
    ("inflated-1", Llvm),
    ("inflated-39", Llvm),
    ("inflated-less", Llvm),
    ("inflated-more", Llvm),
    ("inflated-far", CRASHES),
    ("size-less", Llvm),
    ("size-more", Llvm),
    ("size-40", Llvm),
    ("size-beyond", Llvm),
    ("entries-0", Llvm),
    ("entries-32", Llvm),
    ("entries-48", Llvm),
    ("count-2", Llvm),
    ("count-far", Llvm),
    ("stream", Llvm),
    ("stream-head", Ours("a stream without a zstd frame is zlib's")),
    ("version-1", Llvm),
    ("version-2", Llvm),
    ("cut", Llvm),
    ("more", Llvm),
];

fn with(bytes: &[u8], at: usize, number: u64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn with_version(bytes: &[u8], version: u8) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[4] = version;
    bytes
}

fn write_files(place: &Path) {
    const FAR: u64 = 1 << 50;
    let put = |name: &str, bytes: &[u8]| fs::write(place.join(name), bytes).unwrap();
    let pack = |more: &[&str]| {
        let mut tool = new_command(llvm24("llvm-offload-binary"));
        tool.args(["-o", "made", "--image=file=a.o,triple=t,arch=x,kind=hip"]).args(more);
        assert!(tool.current_dir(place).status().unwrap().success());
        fs::read(place.join("made")).unwrap()
    };
    let plain = pack(&[]);
    // The header, the entry at 40, the strings of the entry at 80.
    for (name, at, number) in [
        ("size-beyond", 8, 0x1000),
        ("size-39", 8, 39),
        ("size-40", 8, 40),
        ("entries-0", 16, 0),
        ("entries-32", 16, 32),
        ("entries-far", 16, FAR),
        ("count-2", 24, 2),
        ("count-far", 24, FAR),
        ("strings-at", 48, FAR),
        ("strings-count", 56, FAR),
        ("image", 64, FAR),
        ("image-size", 72, FAR),
        ("string", 80, FAR),
    ] {
        put(&format!("plain-{name}"), &with(&plain, at, number));
    }
    put("plain-version-0", &with_version(&plain, 0));
    put("plain-version-4", &with_version(&plain, 4));
    put("plain-39", &plain[..39]);
    put("plain-more", &[&plain[..], b"more than a package"].concat());
    put("plain-twice", &[&plain, &plain[..100]].concat());
    for method in ["zstd", "zlib"] {
        let file = pack(&["--compress", &format!("--compression-format={method}")]);
        let [size, inflated] =
            [8, 32].map(|at| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()));
        for (name, at, number) in [
            ("inflated-1", 32, 1),
            ("inflated-39", 32, 39),
            ("inflated-less", 32, inflated - 8),
            ("inflated-more", 32, inflated + 8),
            ("inflated-far", 32, FAR),
            ("size-less", 8, size - 1),
            ("size-more", 8, size + 1),
            ("size-40", 8, 40),
            ("size-beyond", 8, FAR),
            ("entries-0", 16, 0),
            ("entries-32", 16, 32),
            ("entries-48", 16, 48),
            ("count-2", 24, 2),
            ("count-far", 24, FAR),
            ("stream", 50, u64::MAX),
            ("stream-head", 40, 0),
        ] {
            put(&format!("{method}-{name}"), &with(&file, at, number));
        }
        put(&format!("{method}-version-1"), &with_version(&file, 1));
        put(&format!("{method}-version-2"), &with_version(&file, 2));
        put(&format!("{method}-cut"), &file[..60]);
        put(&format!("{method}-more"), &[&file[..], b"more than a package"].concat());
    }
}

fn compare(tool: &str, ours: &str, options: &str, cases: &[(String, Words)]) {
    compare_with((tool, llvm24), (ours, options), cases, write_files);
}

#[test]
fn errors_of_the_bundler_have_the_listed_words() {
    let ours = tool("clang-offload-bundler");
    // There is no `--release`: the first words are those of LLVM 22 and 23.
    let older = Ours("LLVM 24 starts the words of a codec with a small letter");
    let all = except(
        bundler_cases(),
        &[("-input=ccob-40", older), ("-input=ccob-stream", older), ("-input=ccob-method", older)],
    );
    compare("clang-offload-bundler", ours, "", &all);
}

#[test]
fn errors_of_the_packager_have_the_listed_words() {
    let packages = except(extractions(PACKAGES), &[("package-strings", Llvm)]);
    let all = [cases(PACKAGER), packages, extractions(VERSION_3)].concat();
    let ours = tool("llvm-offload-binary");
    compare("llvm-offload-binary", ours, "--release=24", &all);
}

#[test]
fn errors_about_compressed_packages_have_the_listed_words() {
    let mut all = Vec::new();
    for method in ["zstd", "zlib"] {
        for (case, words) in COMPRESSED {
            let file = format!("{method}-{case}");
            all.extend(extractions(&[(&file, *words)]));
        }
    }
    let all = except(all, &[("zlib-size-more", ACCEPTED)]);
    let ours = tool("llvm-offload-binary");
    compare("llvm-offload-binary", ours, "--release=24", &all);
}

#[test]
fn errors_of_the_wrapper_have_the_listed_words() {
    let ours = tool("llvm-offload-wrapper");
    compare("llvm-offload-wrapper", ours, "--release=24", &cases(WRAPPER));
}
