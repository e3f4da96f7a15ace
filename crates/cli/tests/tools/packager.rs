//! `llvm-offload-binary` and `offload pack` as users run them. Comparisons with LLVM's are in `llvm_packager.rs`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{self, stderr, stdout};
use tempfile::{TempDir, tempdir};

const TOOL: &str = env!("CARGO_BIN_EXE_llvm-offload-binary");

fn run_with(place: &TempDir, args: &[&str], input: &[u8]) -> Output {
    common::run_with(TOOL, place.path(), args, input)
}

fn run(place: &TempDir, args: &[&str]) -> Output {
    run_with(place, args, b"")
}

/// Runs what must succeed, and returns standard output.
fn good(place: &TempDir, args: &[&str]) -> String {
    let output = run(place, args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
    stdout(&output)
}

/// Runs what must fail, and returns the first complaint, without the tool's path.
fn bad(place: &TempDir, args: &[&str]) -> String {
    let output = run(place, args);
    assert_eq!(output.status.code(), Some(1), "{args:?}: {}", stderr(&output));
    assert_eq!(stdout(&output), "");
    let errors = stderr(&output);
    let error = errors.lines().find(|line| !line.contains(": warning: ")).unwrap();
    error.strip_prefix(&format!("{TOOL}: error: ")).unwrap_or(error).to_owned()
}

fn write(place: &TempDir, name: &str, bytes: impl AsRef<[u8]>) {
    fs::write(place.path().join(name), bytes).unwrap();
}

fn read(place: &TempDir, name: &str) -> Vec<u8> {
    fs::read(place.path().join(name)).unwrap()
}

fn names(place: &TempDir) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(place)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| u8::try_from(c.to_digit(16).unwrap()).unwrap())
        .collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// `llvm-offload-binary -o v1.bin --image=file=a.o,triple=nvptx64-nvidia-cuda,arch=sm_70,kind=cuda` of LLVM 22.1.8,
/// where a.o holds `hello image`.
const V1: &str = "10ff10ad01000000 a000000000000000 2000000000000000 2800000000000000
    0100020000000000 4800000000000000 0200000000000000 9000000000000000
    0b00000000000000 6900000000000000 8900000000000000 6e00000000000000
    7500000000000000 0061726368007472 69706c65006e7670 747836342d6e7669
    6469612d63756461 00736d5f37300000 68656c6c6f20696d 6167650000000000";

/// The same of LLVM 23.1.4.
const V2: &str = "10ff10ad02000000 b000000000000000 2000000000000000 0100000000000000
    0100020000000000 4800000000000000 0200000000000000 a000000000000000
    0b00000000000000 7900000000000000 9900000000000000 0500000000000000
    7e00000000000000 8500000000000000 1300000000000000 0061726368007472
    69706c65006e7670 747836342d6e7669 6469612d63756461 00736d5f37300000
    68656c6c6f20696d 6167650000000000";

const IMAGE: &str = "--image=file=a.o,triple=nvptx64-nvidia-cuda,arch=sm_70,kind=cuda";

/// A place with `a.o`, `b.o` and a package `p` of both, for sm_70 and sm_80.
fn packed() -> TempDir {
    let place = tempdir().unwrap();
    write(&place, "a.o", "hello image");
    write(&place, "b.o", "other image");
    good(&place, &["-o", "p", IMAGE, &IMAGE.replace("a.o", "b.o").replace("70", "80")]);
    place
}

#[test]
fn both_versions_are_those_of_llvm() {
    let place = packed();
    for (version, expected) in
        [(&[][..], V1), (&["--format-version=1"], V1), (&["--format-version=2"], V2)]
    {
        good(&place, &[version, &["-o", "out", IMAGE]].concat());
        assert_eq!(read(&place, "out"), hex(expected), "{version:?}");
    }
    assert_eq!(good(&place, &["-o", "none"]), "");
    assert_eq!(read(&place, "none"), b"");
    good(&place, &["-o", "none", "--format-version=2"]);
    assert_eq!(read(&place, "none").len(), 40);
}

#[test]
fn either_version_is_extracted_under_generated_names() {
    for version in ["--format-version=1", "--format-version=2"] {
        let place = packed();
        write(&place, "c.spv", "spirv");
        good(&place, &["-o", "p.bin", version, IMAGE, "--image=file=c.spv,triple=spirv64"]);
        let before = names(&place);
        assert_eq!(
            good(&place, &["p.bin"]),
            "Extracted: p-nvptx64-nvidia-cuda-sm_70.0.o\nExtracted: p-spirv64.1.spv\n"
        );
        assert_eq!(read(&place, "p-nvptx64-nvidia-cuda-sm_70.0.o"), b"hello image");
        assert_eq!(read(&place, "p-spirv64.1.spv"), b"spirv");
        assert_eq!(names(&place).len(), before.len() + 2);
        // As LLVM 22: nothing unless told, an index per option, a dash for no arch, no extension for SPIR-V.
        let place_22 = tempdir().unwrap();
        write(&place_22, "p.bin", read(&place, "p.bin"));
        assert_eq!(good(&place_22, &["p.bin", "--release=22"]), "");
        assert_eq!(names(&place_22), ["p.bin"]);
        assert_eq!(good(&place_22, &["p.bin", "--release=22", "--image=triple=spirv64"]), "");
        assert_eq!(names(&place_22), ["p-spirv64-.0.", "p.bin"]);
    }
}

#[test]
fn packages_in_packages_are_opened_for_generated_names() {
    let place = packed();
    good(&place, &["-o", "outer", "--image=file=p,triple=t,arch=x", IMAGE]);
    let dir = tempdir().unwrap();
    write(&dir, "outer", read(&place, "outer"));
    assert_eq!(
        good(&dir, &["outer"]),
        "Extracted: outer-nvptx64-nvidia-cuda-sm_70.0.o\n\
         Extracted: outer-nvptx64-nvidia-cuda-sm_80.1.o\n\
         Extracted: outer-nvptx64-nvidia-cuda-sm_70.2.o\n"
    );
    assert_eq!(read(&dir, "outer-nvptx64-nvidia-cuda-sm_80.1.o"), b"other image");
    good(&dir, &["outer", "--image=arch=x,file=raw"]);
    assert_eq!(read(&dir, "raw"), read(&place, "p"));
    good(&dir, &["outer", "--release=22", "--image=arch=x"]);
    assert_eq!(read(&dir, "outer-t-x.0."), read(&place, "p"));

    // Damage inside only matters when the image is opened.
    let mut damaged = read(&place, "outer");
    let inner = damaged.windows(4).skip(1).position(|w| w == hex("10ff10ad")).unwrap() + 1;
    damaged[inner + 4] = 9;
    write(&dir, "damaged", damaged);
    let before = names(&dir);
    let error = bad(&dir, &["damaged"]);
    assert!(error.contains("'damaged': ") && error.contains("version 9"), "{error}");
    assert_eq!(names(&dir), before);
    good(&dir, &["damaged", "--image=arch=x,file=raw"]);
}

#[test]
fn filters_choose_images() {
    let place = packed();
    for (filter, bytes) in [
        ("arch=sm_70", Some("hello image")),
        ("arch=sm_80,kind=cuda", Some("other image")),
        ("arch=sm_80,kind=hip", None),
        ("arch=", None),
        ("nokey,arch=sm_80", Some("other image")),
        ("member=p,arch=sm_70", Some("hello image")),
        ("member=q", None),
    ] {
        let out = place.path().join("out");
        let _ = fs::remove_file(&out);
        let output = run(&place, &["p", &format!("--image=file=out,{filter}")]);
        assert_eq!(output.status.code(), Some(0), "{filter}");
        assert_eq!(fs::read_to_string(&out).ok().as_deref(), bytes, "{filter}");
        assert_eq!(stderr(&output).contains("matches no image"), bytes.is_none(), "{filter}");
    }
    // The last of several, with a warning.
    let output = run(&place, &["p", "--image=file=out"]);
    assert_eq!(read(&place, "out"), b"other image");
    assert_eq!(
        stderr(&output),
        format!("{TOOL}: warning: Multiple inputs match to a single file, 'out'\n")
    );
    assert_eq!(
        good(&place, &["p", "--image=arch=sm_70,file=-", "--image=arch=sm_80,file=-"]),
        "hello imageother image"
    );
}

#[test]
fn standard_input_and_output_are_files() {
    let place = packed();
    let output = run_with(&place, &["-o", "-", &IMAGE.replace("a.o", "-")], b"hello image");
    // Standard input has no extension.
    let mut expected = hex(V1);
    expected[32] = 0;
    assert_eq!(output.stdout, expected);
    let output = run_with(&place, &["-", "--image=file=out"], &expected);
    assert_eq!((output.status.code(), read(&place, "out")), (Some(0), b"hello image".to_vec()));
    let output = run_with(&place, &["-"], &expected);
    assert_eq!(stdout(&output), "Extracted: --nvptx64-nvidia-cuda-sm_70.0.\n");
    let twice = bad(&place, &["-o", "x", "--image=file=-,file=-,triple=t"]);
    assert_eq!(twice, "'-': standard input can be one image only");
}

#[test]
fn odd_images_are_packed_with_a_warning() {
    let place = packed();
    let output = run(&place, &["-o", "x", "--image=file=a.o,kind=metal"]);
    assert_eq!(
        stderr(&output),
        format!(
            "{TOOL}: warning: '--image=file=a.o,kind=metal': unknown offload kind 'metal' is stored as none\n\
             {TOOL}: warning: '--image=file=a.o,kind=metal' has no 'triple'\n"
        )
    );
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn errors_name_files_and_leave_outputs_alone() {
    let place = packed();
    fs::create_dir(place.path().join("dir")).unwrap();
    write(&place, "out", "old");
    let before = names(&place);
    for (args, error) in [
        (
            &["-o", "out", IMAGE, "--image=file=missing,triple=t"][..],
            "No such file or directory: 'missing'",
        ),
        (&["-o", "out", "--image=file=dir,triple=t"], "Is a directory: 'dir'"),
        (&["-o", "out", "--image=triple=t"], "'file' is a required image arguments"),
        (&["-o", "out", "--image=triple=t,file"], "'file' is a required image arguments"),
        (&["-o", "no/out", IMAGE], "No such file or directory: 'no/out'"),
        (&["-o", "dir", IMAGE], "Is a directory: 'dir'"),
        (&["missing"], "'missing': No such file or directory"),
        (&["dir"], "'dir': Is a directory"),
        (
            &["p", "--image=arch=sm_70,file=out", "--image=arch=sm_80,file=no/x"],
            "No such file or directory: 'no/x'",
        ),
        (
            &["p", "--image=arch=sm_70,file=out", "--image=arch=sm_80,file=dir"],
            "Is a directory: 'dir'",
        ),
        (&["p", "--image=arch=sm_70,file"], "No such file or directory: 'file' has no value"),
        (&["p", "--archive"], "Image must have a 'file' argument."),
        (&["p", "--archive", "--image=arch=sm_70"], "Image must have a 'file' argument."),
        (
            &["-o", "out", "p"],
            "Packaging to an output file and extracting from an input file are mutually exclusive.",
        ),
        (
            &["--release=21"],
            "llvm-offload-binary: for the --release option: Cannot find option named '21'!",
        ),
    ] {
        assert_eq!(bad(&place, args), error, "{args:?}");
        assert_eq!(read(&place, "out"), b"old", "{args:?}");
        assert_eq!(names(&place), before, "{args:?}");
    }
}

#[test]
fn an_output_may_be_an_input() {
    let place = packed();
    let package = read(&place, "p");
    good(&place, &["-o", "a.o", IMAGE]);
    assert_eq!(read(&place, "a.o"), hex(V1));
    good(&place, &["p", "--image=arch=sm_70,file=p"]);
    assert_eq!(read(&place, "p"), b"hello image");
    write(&place, "p", package);
}

#[test]
fn names_from_the_file_stay_in_the_directory() {
    let place = packed();
    fs::create_dir(place.path().join("p-..")).unwrap();
    good(&place, &["-o", "p", "--image=file=a.o,triple=../../up,arch=x/../../y\n"]);
    assert_eq!(good(&place, &["p"]), "Extracted: p-.._.._up-x_.._.._y_.0.o\n");
    let long = format!("--image=file=a.o,triple={},arch={}", "t".repeat(300), "ä".repeat(300));
    good(&place, &["-o", "p", &long]);
    good(&place, &["p"]);
}

#[test]
fn different_images_never_share_a_name() {
    let place = tempdir().unwrap();
    write(&place, "a.o", "one");
    write(&place, "b.o", "two");
    good(&place, &["-o", "p", "--image=file=a.o,triple=t,k=1", "--image=file=b.o,triple=t,k=2"]);
    let before = names(&place);
    let error = bad(&place, &["p", "--image=k=1", "--image=k=2"]);
    assert_eq!(
        error,
        "different images would be written to 'p-t.0.o': give them names with 'file'"
    );
    let error = bad(&place, &["p", "--image=k=1,file=p-t.0.o", "--image=k=2"]);
    assert!(error.contains("'p-t.0.o'"), "{error}");
    assert_eq!(names(&place), before);
    // The same image twice is no harm.
    assert_eq!(good(&place, &["p", "--image=k=1", "--image=k=1"]), "Extracted: p-t.0.o\n");
}

#[test]
fn archives_hold_all_matches() {
    let place = packed();
    good(
        &place,
        &["p", "--archive", "--image=kind=cuda,file=lib.a", "--image=arch=none,file=no.a"],
    );
    let archive = read(&place, "lib.a");
    let header = |size: usize| format!("{:<16}0           0     0     644     {size:<10}`\n", "p/");
    let expected = format!("!<arch>\n{0}hello image\n{0}other image\n", header(11));
    assert_eq!(String::from_utf8(archive).unwrap(), expected);
    assert!(!place.path().join("no.a").exists());
    let output = run(&place, &["p", "--archive", "--image=arch=sm_70,file=-"]);
    assert!(output.stdout.starts_with(b"!<arch>\n"));
}

#[test]
fn files_without_packages_give_a_warning() {
    let place = packed();
    let output = run(&place, &["a.o"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stderr(&output), format!("{TOOL}: warning: 'a.o': no packaged images\n"));
}

#[test]
fn many_images_need_few_open_files() {
    let place = packed();
    let image = IMAGE.replace("a.o", &["a.o"; 1500].join(",file="));
    write(&place, "response", format!("-o many '{image}'"));
    good(&place, &["@response"]);
    assert_eq!(read(&place, "many"), hex(V1).repeat(1500));
    let dir = tempdir().unwrap();
    write(&dir, "many", read(&place, "many"));
    good(&dir, &["many"]);
    assert_eq!(names(&dir).len(), 1501);
}

#[test]
fn damaged_packages_write_nothing() {
    let place = tempdir().unwrap();
    let number = |bytes: &mut Vec<u8>, at: usize, value: u64| {
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    };
    let (v1, v2) = (hex(V1), hex(V2));
    let cut = |bytes: &[u8], len: usize| bytes[..len].to_vec();
    let with = |bytes: &[u8], at: usize, value: u64| {
        let mut bytes = bytes.to_vec();
        number(&mut bytes, at, value);
        bytes
    };
    for (what, bytes) in [
        ("less than a header", cut(&v1, 20)),
        ("less than an entry", cut(&v1, 71)),
        ("version 0", with(&v1, 4, 0xa0_0000_0000)),
        ("version 3", with(&v1, 4, 0xa0_0000_0003)),
        ("size beyond the end", with(&v1, 8, 168)),
        ("size below 40", with(&v1, 8, 32)),
        ("size no multiple of 8", with(&v1, 8, 159)),
        ("entry beyond the end", with(&v1, 16, 160)),
        ("entry offset that wraps", with(&v1, 16, u64::MAX - 7)),
        ("entry in the header", with(&v1, 16, 0)),
        ("count of entries", with(&v2, 24, 1 << 60)),
        ("count that overflows", with(&v2, 24, u64::MAX / 40 + 1)),
        ("too many strings", with(&v1, 48, 100)),
        ("strings that overflow", with(&v1, 48, 1 << 60)),
        ("too many strings, v2", with(&v2, 48, 3)),
        ("key outside", with(&v1, 72, 1000)),
        ("value outside", with(&v1, 80, 1000)),
        ("value size outside", with(&v2, 88, 1000)),
        ("image beyond the end", with(&v1, 64, 17)),
        ("image of all bytes", with(&v1, 64, u64::MAX)),
        ("image over the header", with(&v1, 56, 0)),
        ("image over the strings", with(&v1, 56, 80)),
        ("bytes after the package", [&v1[..], b"more"].concat()),
        ("second package damaged", [&v1[..], &cut(&v1, 100)].concat()),
        ("half a compressed bundle after the package", [&v1[..], b"CCOB"].concat()),
        ("half a bundle after it", [&v1[..], b"__CLANG_OFFLOAD_BUNDLE__"].concat()),
        ("half a fatbinary after it", [&v1[..], b"\x50\xed\x55\xba"].concat()),
    ] {
        write(&place, "damaged", bytes);
        for args in [
            &["damaged"][..],
            &["damaged", "--release=22", "--image="],
            &["damaged", "--archive", "--image=file=x"],
        ] {
            let error = bad(&place, args);
            assert!(
                error.contains("'damaged': ") && error.contains("at byte 0x"),
                "{what}: {error}"
            );
            assert_eq!(names(&place), ["damaged"], "{what}");
        }
    }
    // Only padding after it, and a package of nothing.
    write(&place, "padded", [&v1[..], &[0; 24]].concat());
    good(&place, &["padded", "--image=file=x"]);
    assert_eq!(read(&place, "x"), b"hello image");
    write(
        &place,
        "nothing",
        hex("10ff10ad02000000 2800000000000000 2000000000000000 0000000000000000 0000000000000000"),
    );
    good(&place, &["nothing"]);
}

#[test]
fn the_old_tool_says_so() {
    let place = packed();
    let output = Command::new(env!("CARGO_BIN_EXE_clang-offload-packager"))
        .args(["p", "--image=arch=sm_70,file=x"])
        .current_dir(&place)
        .output()
        .unwrap();
    assert_eq!(
        stderr(&output),
        "warning: 'clang-offload-packager' is deprecated. Use 'llvm-offload-binary' instead.\n"
    );
    assert_eq!(read(&place, "x"), b"hello image");
}

#[test]
#[cfg(unix)]
fn pipes_and_devices_are_no_files_to_replace() {
    let place = packed();
    good(&place, &["p", "--image=arch=sm_70,file=/dev/null"]);
    assert!(!Path::new("/dev/null").metadata().unwrap().is_file());
    let output = run_with(
        &place,
        &["-o", "/dev/stdout", &IMAGE.replace("a.o", "/dev/stdin")],
        b"hello image",
    );
    let mut expected = hex(V1);
    expected[32] = 0;
    assert_eq!(output.stdout, expected, "{}", stderr(&output));
}

#[test]
#[cfg(unix)]
fn a_name_need_not_be_utf_8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let place = packed();
    let name = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
    let odd = place.path().join(name(b"\xff.o"));
    fs::rename(place.path().join("a.o"), &odd).unwrap();
    let image = name(b"--image=file=\xff.o,triple=nvptx64-nvidia-cuda,arch=sm_70,kind=cuda");
    let status = Command::new(TOOL)
        .args([name(b"-o"), name(b"\xfe"), image])
        .current_dir(&place)
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(fs::read(place.path().join(name(b"\xfe"))).unwrap(), hex(V1));
}

fn pack(place: &TempDir, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_offload"))
        .arg("pack")
        .args(args)
        .current_dir(place)
        .output()
        .unwrap()
}

#[test]
fn offload_pack_writes_and_tells() {
    let place = packed();
    let spec = IMAGE.strip_prefix("--image=").unwrap();
    let output = pack(&place, &["-o", "out", spec]);
    assert_eq!(stdout(&output), "a.o  11 B\nout  160 B  1 image, format version 1\n");
    assert_eq!(read(&place, "out"), hex(V1));
    pack(&place, &["-o", "out", "--format-version=2", spec]);
    assert_eq!(read(&place, "out"), hex(V2));
    assert_eq!(pack(&place, &["-o", "-", spec]).stdout, hex(V1));
    let output = pack(&place, &["-o", "out", "file=a.o,file=b.o"]);
    assert!(stderr(&output).contains("no triple"), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn offload_pack_refuses_what_makes_no_sense() {
    let place = packed();
    write(&place, "out", "old");
    for (spec, error) in [
        (
            "kind=metal,triple=t,file=a.o",
            "unknown offload kind: expected openmp, cuda, hip, sycl or none, found 'metal'",
        ),
        ("kind=hip,triple=t", "no file: expected file=NAME"),
        ("a.o", "no file: expected file=NAME"),
        ("file=a.o,triple=t,arch=", "key 'arch' has no name or no value"),
        ("file=missing,triple=t", "'missing': No such file or directory"),
    ] {
        let output = pack(&place, &["-o", "out", spec]);
        assert_eq!(output.status.code(), Some(1), "{spec}");
        assert!(stderr(&output).contains(error), "{spec}: {}", stderr(&output));
        assert_eq!(read(&place, "out"), b"old");
    }
    assert_eq!(pack(&place, &["-o", "out"]).status.code(), Some(2));
}
