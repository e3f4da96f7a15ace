//! Packages of LLVM 24 as users make, list and extract them. Comparisons with LLVM's tool are in `llvm24_packager.rs`.

use std::fs;
use std::process::Output;

use crate::common::{self, stderr, stdout};
use tempfile::{TempDir, tempdir};

const TOOL: &str = env!("CARGO_BIN_EXE_llvm-offload-binary");
const OFFLOAD: &str = env!("CARGO_BIN_EXE_offload");
const IMAGE: &str = "--image=file=a.o,triple=nvptx64-nvidia-cuda,arch=sm_70,kind=cuda";

/// The package that LLVM 24 makes of [`IMAGE`], where a.o holds `hello image`.
const V3: &str = "10ff10ad03000000b80000000000000028000000000000000100000000000000000000000000000001\
    0002000000000050000000000000000200000000000000a8000000000000000b000000000000008100000000000000a1\
    00000000000000050000000000000086000000000000008d000000000000001300000000000000006172636800747269\
    706c65006e7670747836342d6e76696469612d6375646100736d5f3730000068656c6c6f20696d6167650000000000";

fn hex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| u8::try_from(char::from(byte).to_digit(16).unwrap()).unwrap();
    text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn place() -> TempDir {
    let place = tempdir().unwrap();
    fs::write(place.path().join("a.o"), "hello image").unwrap();
    place
}

fn run(tool: &str, place: &TempDir, args: &[&str]) -> Output {
    common::run_with(tool, place.path(), args, b"")
}

fn good(tool: &str, place: &TempDir, args: &[&str]) -> String {
    let output = run(tool, place, args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
    stdout(&output)
}

fn read(place: &TempDir, name: &str) -> Vec<u8> {
    fs::read(place.path().join(name)).unwrap()
}

fn version(bytes: &[u8]) -> u8 {
    bytes[4]
}

#[test]
fn a_release_says_which_version_is_written() {
    let place = place();
    for (args, expected) in [
        (&[][..], 1),
        (&["--release=22"], 1),
        (&["--release=23"], 2),
        (&["--release=24"], 3),
        (&["--release=24", "--format-version=1"], 1),
        (&["--format-version=3"], 3),
        (&["--compress"], 3),
    ] {
        good(TOOL, &place, &[&["-o", "out", IMAGE], args].concat());
        assert_eq!(version(&read(&place, "out")), expected, "{args:?}");
    }
    good(TOOL, &place, &["-o", "out", IMAGE, "--release", "24"]);
    assert_eq!(read(&place, "out"), hex(V3));
    good(TOOL, &place, &["-o", "out", "--release=24"]);
    assert_eq!(read(&place, "out").len(), 48);
    // Neither without the other.
    good(TOOL, &place, &["-o", "out", IMAGE, "--release=24", "--compression-level=99"]);
    assert_eq!(read(&place, "out"), hex(V3));
}

#[test]
fn compressed_packages_are_listed_and_extracted() {
    for how in [&["--compress"][..], &["--compress", "--compression-format=zlib"]] {
        let place = place();
        fs::write(place.path().join("b.bc"), vec![7; 100_000]).unwrap();
        let second = "--image=file=b.bc,triple=amdgcn-amd-amdhsa,arch=gfx90a,kind=hip";
        good(TOOL, &place, &[&["-o", "p.bin", IMAGE, second], how].concat());
        let bytes = read(&place, "p.bin");
        assert!(bytes.len() < 1000 && bytes.len().is_multiple_of(8));

        let tree = good(OFFLOAD, &place, &["ls", "--tree", "p.bin"]);
        let method = if how.len() == 1 { "zstd" } else { "zlib" };
        assert!(tree.contains(method) && tree.contains("gfx90a"), "{tree}");
        let json = good(OFFLOAD, &place, &["ls", "--json", "p.bin"]);
        assert!(json.contains("\"stored_size\":null,\"compression\":{\"method\":"), "{json}");
        assert_eq!(
            good(OFFLOAD, &place, &["verify", "p.bin"]),
            "p.bin: ok, 2 images in 1 container\n"
        );
        let hashes = good(OFFLOAD, &place, &["ls", "--hash", "--json", "p.bin"]);
        for image in [&b"hello image"[..], &[7; 100_000]] {
            let hash = format!("\"hash\":\"{:016x}\"", twox_hash::XxHash3_64::oneshot(image));
            assert!(hashes.contains(&hash), "{hashes}");
        }
        good(OFFLOAD, &place, &["match", "--gpu", "sm_70", "p.bin"]);
        good(OFFLOAD, &place, &["extract", "p.bin", "-o", "out"]);
        let extracted: Vec<_> =
            fs::read_dir(place.path().join("out")).unwrap().map(|e| e.unwrap().path()).collect();
        assert!(extracted.iter().any(|path| fs::read(path).unwrap() == vec![7; 100_000]));

        let printed = good(TOOL, &place, &["p.bin", "--release=24"]);
        assert_eq!(
            printed,
            "Extracted: p-nvptx64-nvidia-cuda-sm_70.0.o\nExtracted: p-amdgcn-amd-amdhsa-gfx90a.1.bc\n"
        );
        assert_eq!(read(&place, "p-nvptx64-nvidia-cuda-sm_70.0.o"), b"hello image");
        assert_eq!(read(&place, "p-amdgcn-amd-amdhsa-gfx90a.1.bc"), vec![7; 100_000]);
        good(TOOL, &place, &["p.bin", "--image=file=one,arch=gfx90a"]);
        assert_eq!(read(&place, "one"), vec![7; 100_000]);

        // Compressed packages in packages, and archives of what is in them.
        good(TOOL, &place, &[&["-o", "outer", "--image=file=p.bin,triple=t,arch=x"], how].concat());
        assert_eq!(good(TOOL, &place, &["outer"]).lines().count(), 2);
        good(TOOL, &place, &["outer", "--image=file=raw,arch=x"]);
        assert_eq!(read(&place, "raw"), bytes);
        good(TOOL, &place, &["p.bin", "--archive", "--image=file=all.a"]);
        assert!(read(&place, "all.a").len() > 100_000);
    }
}

#[test]
fn nothing_that_no_reader_takes_is_written() {
    let place = place();
    for (args, error) in [
        (&["--release=23", "--compress"][..], "packages of version 2 cannot be compressed"),
        (&["--format-version=1", "--compress"], "packages of version 1 cannot be compressed"),
        (
            &["--compress", "--compression-format=zlib", "--compression-level=22"],
            "zlib compression level 22 is out of range: expected -1 to 9",
        ),
        (
            &["--compress", "--compression-format=lz4"],
            "for the --compression-format option: Cannot find option named 'lz4'!",
        ),
        (
            &["--compress", "--compression-level=x"],
            "for the --compression-level option: 'x' value invalid for integer argument!",
        ),
    ] {
        let output = run(TOOL, &place, &[&["-o", "out", IMAGE], args].concat());
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(stderr(&output).contains(error), "{args:?}: {}", stderr(&output));
        assert!(!place.path().join("out").exists());
    }
    // As zlib and zstd have it: the default, and what is nearest.
    for level in ["--compression-level=-1", "--compression-level=9", "--compression-level=0"] {
        let args = ["-o", "out", IMAGE, "--compress", "--compression-format=zlib", level];
        good(TOOL, &place, &args);
        good(OFFLOAD, &place, &["verify", "out"]);
    }
    for level in ["--compression-level=99", "--compression-level=-7"] {
        good(TOOL, &place, &["-o", "out", IMAGE, "--compress", level]);
        good(OFFLOAD, &place, &["verify", "out"]);
    }
}

#[test]
fn the_help_is_that_of_the_release() {
    let place = place();
    let new = good(TOOL, &place, &["--release=24", "--help"]);
    assert!(new.contains(
        "  --compression-format=<value> - Format used with --compress\n    =zstd                      -   Zstandard compression\n"
    ));
    for args in [&["--help"][..], &["--help", "--release=23"], &["-release", "22", "-h"]] {
        assert!(!good(TOOL, &place, args).contains("--compress"), "{args:?}");
    }
}

#[test]
fn offload_pack_compresses() {
    let place = place();
    let spec = IMAGE.strip_prefix("--image=").unwrap();
    let printed = good(OFFLOAD, &place, &["pack", "-o", "out", "--format-version", "3", spec]);
    assert_eq!(printed, "a.o  11 B\nout  184 B  1 image, format version 3\n");
    assert_eq!(read(&place, "out"), hex(V3));
    let printed = good(OFFLOAD, &place, &["pack", "-o", "out", "--compress", spec]);
    assert_eq!(printed, "a.o  11 B\nout  144 B  1 image, format version 3, compressed\n");
    let args = ["pack", "-o", "out", "--compress", "--method=zlib", "--level=9", spec];
    let printed = good(OFFLOAD, &place, &args);
    assert!(printed.ends_with(" B  1 image, format version 3, compressed\n"), "{printed}");
    for (args, status) in [
        (&["--compress", "--format-version=1"][..], 1),
        (&["--level=9"], 2),
        (&["--compress", "--method=zlib", "--level=11"], 1),
    ] {
        let output = run(OFFLOAD, &place, &[&["pack", "-o", "new", spec], args].concat());
        assert_eq!(output.status.code(), Some(status), "{args:?}: {}", stderr(&output));
    }
    assert!(!place.path().join("new").exists());
}
