//! `clang-offload-bundler` as users and compilers run it. Comparisons with LLVM's are in `llvm_bundler.rs`.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::common::{data, stderr, stdout};
use tempfile::{TempDir, tempdir};

const TOOL: &str = env!("CARGO_BIN_EXE_clang-offload-bundler");

const HOST: &str = "host-x86_64-unknown-linux-gnu";
const HIP: &str = "hip-amdgcn-amd-amdhsa--gfx906";
const OPENMP: &str = "openmp-amdgcn-amd-amdhsa--gfx90a:xnack+";

fn command(place: &TempDir, args: &[&str]) -> Command {
    let mut command = Command::new(TOOL);
    command.args(args).current_dir(place);
    for variable in [
        "OFFLOAD_BUNDLER_IGNORE_ENV_VAR",
        "OFFLOAD_BUNDLER_VERBOSE",
        "OFFLOAD_BUNDLER_COMPRESS",
        "OFFLOAD_BUNDLER_COMPRESSION_LEVEL",
        "COMPRESSED_BUNDLE_FORMAT_VERSION",
    ] {
        command.env_remove(variable);
    }
    command
}

fn run(place: &TempDir, args: &[&str]) -> Output {
    command(place, args).stdin(Stdio::null()).output().unwrap()
}

/// Runs with something on standard input.
fn run_with(place: &TempDir, args: &[&str], input: &[u8]) -> Output {
    let mut command = command(place, args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A tool that does not read may be gone already.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// Runs what must succeed without a word, and returns standard output.
fn good(place: &TempDir, args: &[&str]) -> String {
    let output = run(place, args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
    assert_eq!(stderr(&output), "", "{args:?}");
    stdout(&output)
}

/// Runs what must succeed with warnings, and returns them without the tool's path.
fn warned(place: &TempDir, args: &[&str]) -> Vec<String> {
    let output = run(place, args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
    let prefix = format!("{TOOL}: warning: ");
    let text = stderr(&output);
    text.lines().map(|line| line.strip_prefix(&prefix).unwrap().to_owned()).collect()
}

/// Runs what must fail, and returns the first complaint, without the tool's path.
fn bad(place: &TempDir, args: &[&str]) -> String {
    let output = run(place, args);
    assert_eq!(output.status.code(), Some(1), "{args:?}: {}", stderr(&output));
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

fn exists(place: &TempDir, name: &str) -> bool {
    place.path().join(name).exists()
}

fn names(place: &TempDir) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(place)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A place with inputs: text, text without a newline at its end, nothing.
fn place() -> TempDir {
    let place = tempdir().unwrap();
    write(&place, "h", "host\n");
    write(&place, "d", "device");
    write(&place, "e", "");
    fs::copy(data("host.o"), place.path().join("h.o")).unwrap();
    place
}

/// Bundles these inputs for these targets.
fn bundle(place: &TempDir, file_type: &str, parts: &[(&str, &str)], output: &str) {
    let targets: Vec<_> = parts.iter().map(|(target, _)| *target).collect();
    let mut args = vec![
        format!("-type={file_type}"),
        format!("-targets={}", targets.join(",")),
        format!("-output={output}"),
    ];
    args.extend(parts.iter().map(|(_, input)| format!("-input={input}")));
    good(place, &args.iter().map(|arg| &**arg).collect::<Vec<_>>());
}

const PARTS: [(&str, &str); 3] = [(HOST, "h"), (HIP, "d"), (OPENMP, "e")];

/// What unbundling is called with, for these targets, with the outputs `0`, `1`, ...
fn unbundling(file_type: &str, targets: &[&str], input: &str) -> Vec<String> {
    let mut args = vec![
        "-unbundle".to_owned(),
        format!("-type={file_type}"),
        format!("-targets={}", targets.join(",")),
        format!("-input={input}"),
    ];
    args.extend((0..targets.len()).map(|index| format!("-output={index}")));
    args
}

fn strs(args: &[String]) -> Vec<&str> {
    args.iter().map(|arg| &**arg).collect()
}

/// Unbundles what must be there, and returns the contents.
fn unbundle(place: &TempDir, file_type: &str, targets: &[&str], input: &str) -> Vec<Vec<u8>> {
    good(place, &strs(&unbundling(file_type, targets, input)));
    let names = 0..targets.len();
    names
        .map(|index| {
            let name = index.to_string();
            let bytes = read(place, &name);
            fs::remove_file(place.path().join(name)).unwrap();
            bytes
        })
        .collect()
}

#[test]
fn text_bundles_are_those_of_llvm() {
    let place = place();
    for (file_type, leader) in [
        ("i", "//"),
        ("ii", "//"),
        ("cui", "//"),
        ("hipi", "//"),
        ("d", "#"),
        ("s", "#"),
        ("ll", ";"),
    ] {
        bundle(&place, file_type, &PARTS, "b");
        let expected = format!(
            "\n{leader} __CLANG_OFFLOAD_BUNDLE____START__ {HOST}-\nhost\n\n\
             {leader} __CLANG_OFFLOAD_BUNDLE____END__ {HOST}-\n\
             \n{leader} __CLANG_OFFLOAD_BUNDLE____START__ {HIP}\ndevice\n\
             {leader} __CLANG_OFFLOAD_BUNDLE____END__ {HIP}\n\
             \n{leader} __CLANG_OFFLOAD_BUNDLE____START__ {OPENMP}\n\n\
             {leader} __CLANG_OFFLOAD_BUNDLE____END__ {OPENMP}\n"
        );
        assert_eq!(String::from_utf8(read(&place, "b")).unwrap(), expected, "{file_type}");
    }
}

#[test]
fn binary_bundles_are_those_of_llvm() {
    let place = place();
    bundle(&place, "bc", &[(HOST, "h"), (HIP, "d")], "b");
    let mut expected = b"__CLANG_OFFLOAD_BUNDLE__\x02\0\0\0\0\0\0\0".to_vec();
    for (offset, size, id) in [(0x8b_u64, 5_u64, format!("{HOST}-")), (0x90, 6, HIP.to_owned())] {
        expected.extend(offset.to_le_bytes());
        expected.extend(size.to_le_bytes());
        expected.extend((id.len() as u64).to_le_bytes());
        expected.extend(id.bytes());
    }
    expected.extend(b"host\ndevice");
    assert_eq!(read(&place, "b"), expected);

    // HIP fat binaries: an empty host shares its place with the first image.
    for (align, start) in [("4096", 4096), ("010", 0x90), ("7", 0x8c), ("0x10", 0x90)] {
        good(
            &place,
            &[
                "-type=o",
                &format!("-bundle-align={align}"),
                &format!("-targets={HOST},{HIP}"),
                "-input=e",
                "-input=d",
                "-output=b",
            ],
        );
        let bytes = read(&place, "b");
        assert_eq!(bytes.len(), start + 6, "{align}");
        assert_eq!(&bytes[start..], b"device");
        assert_eq!(bytes[32..40], (start as u64).to_le_bytes());
    }
}

#[test]
fn every_type_comes_back_plain_and_compressed() {
    for file_type in ["i", "ii", "cui", "hipi", "d", "s", "ll", "bc", "gch", "ast", "o"] {
        let place = place();
        bundle(&place, file_type, &PARTS, "b");
        let plain = read(&place, "b");
        let options = ["-compress", "-input=h", "-input=d", "-input=e", "-output=c"];
        let [a, b] = [format!("-type={file_type}"), format!("-targets={HOST},{HIP},{OPENMP}")];
        good(&place, &[&options[..], &[&a, &b]].concat());
        assert_eq!(&read(&place, "c")[..6], b"CCOB\x03\0");
        for file in ["b", "c"] {
            let ids = format!("{HOST}-\n{HIP}\n{OPENMP}\n");
            let input = format!("-input={file}");
            assert_eq!(good(&place, &[&a, "-list", &input]), ids);
            let contents = unbundle(&place, file_type, &[HOST, HIP, OPENMP], file);
            assert_eq!(contents, [&b"host\n"[..], b"device", b""], "{file_type} {file}");
            assert_eq!(unbundle(&place, file_type, &[OPENMP, HIP], file), [&b""[..], b"device"]);
        }
        assert_ne!(plain, read(&place, "c"));
    }
}

#[test]
fn objects_come_back_byte_for_byte() {
    let place = place();
    // The host can stand anywhere; one zero byte is a device image like any other.
    write(&place, "zero", [0]);
    let parts =
        [(HIP, "d"), (HOST, "h.o"), (OPENMP, "e"), ("hip-amdgcn-amd-amdhsa--gfx908", "zero")];
    bundle(&place, "o", &parts, "fat.o");
    assert!(read(&place, "fat.o").starts_with(b"\x7fELF"));
    let targets = parts.map(|(target, _)| target);
    assert_eq!(
        good(&place, &["-type=o", "-list", "-input=fat.o"]),
        format!("{HIP}\n{HOST}-\n{OPENMP}\nhip-amdgcn-amd-amdhsa--gfx908\n")
    );
    let contents = unbundle(&place, "o", &targets, "fat.o");
    assert_eq!(contents, [&b"device"[..], &read(&place, "h.o"), b"", &[0]]);
    // COFF, which LLVM's tool does not restore byte for byte.
    fs::copy(data("hip.obj"), place.path().join("h.obj")).unwrap();
    let windows = "host-x86_64-pc-windows-msvc";
    bundle(&place, "o", &[(windows, "h.obj"), (HIP, "d")], "fat.obj");
    assert!(read(&place, "fat.obj").starts_with(&[0x64, 0x86]));
    let contents = unbundle(&place, "o", &[windows, HIP], "fat.obj");
    assert_eq!(contents, [&read(&place, "h.obj")[..], b"device"]);
    // Hosts that LLVM's tool fails on, and a linked one.
    fs::copy(data("hip-macos.o"), place.path().join("macho")).unwrap();
    fs::copy(data("hip-two-units.so"), place.path().join("linked")).unwrap();
    write(&place, "wasm", b"\0asm\x01\0\0\0\0\x05\x04name");
    for host in ["macho", "linked", "wasm"] {
        let parts = [(HIP, "d"), (HOST, host), (OPENMP, "e")];
        bundle(&place, "o", &parts, "fat");
        let list = good(&place, &["-type=o", "-list", "-input=fat"]);
        assert_eq!(list, format!("{HIP}\n{HOST}-\n{OPENMP}\n"), "{host}");
        let contents = unbundle(&place, "o", &parts.map(|(target, _)| target), "fat");
        assert!(contents == [&b"device"[..], &read(&place, host), b""], "{host}");
        if host == "macho" {
            // Damage in the bundle: an entry's size.
            let mut fat = read(&place, "fat");
            let at = fat.windows(24).position(|w| w == b"__CLANG_OFFLOAD_BUNDLE__").unwrap();
            fat[at + 47] = 0x7f;
            write(&place, "bad", fat);
            bad(&place, &strs(&unbundling("o", &[HIP], "bad")));
        }
    }
    // What LLVM 22 made, with llvm-objcopy.
    let bundled = data("bundle.o");
    let input = format!("-input={}", bundled.display());
    assert_eq!(good(&place, &["-type=o", "-list", &input]).lines().count(), 2);
}

#[test]
fn the_checks_come_in_llvms_order() {
    let place = place();
    let both = format!("-targets={HOST},{HIP}");
    let host = format!("-targets={HOST}");
    let form = "Targets need to follow the format '<offload kind>-<target triple>', where \
                '<target triple>' follows the format \
                '<kind>-<arch>-<vendor>-<os>-<env>[-<target id>[:target features]]'.";
    for (args, expected) in [
        (
            &["-input=a", "-inputs=b", "-output=a", "-outputs=b"][..],
            "-inputs and -input cannot be used together, use only -input instead",
        ),
        (
            &["-output=a", "-outputs=b", "-list", "-unbundle"],
            "-outputs and -output cannot be used together, use only -output instead",
        ),
        (&["-list", "-unbundle"], "-unbundle and -list cannot be used together"),
        (&["-list", "-output=a"], "only one input file supported for -list"),
        (&["-list", "-input=a", "-input=b"], "only one input file supported for -list"),
        (&["-list", "-input=a", "-output=b", &host], "-outputs option is invalid for -list"),
        (&["-list", "-input=a", &host], "-targets option is invalid for -list"),
        (&["-list", "-input=a", "-targets="], "-targets option is invalid for -list"),
        (&["-check-input-archive"], "-check-input-archive cannot be used while bundling"),
        (
            &["-check-input-archive", "-unbundle"],
            "-check-input-archive can only be used for unbundling archives (-type=a)",
        ),
        (&["-input=h"], "no output file specified!"),
        (&["-output=b"], "for the --targets option: must be specified at least once!"),
        (&["-unbundle", "-output=b", &host], "only one input file supported in unbundling mode"),
        (
            &["-unbundle", "-output=b", "-input=h", &both],
            "number of output files and targets should match in unbundling mode",
        ),
        (&["-type=a", "-output=b", &host], "Archive files are only supported for unbundling"),
        (&["-output=b", "-output=c", &host], "only one output file supported in bundling mode"),
        (
            &["-output=b", "-input=h", &both],
            "number of input files and targets should match in bundling mode",
        ),
        (&["-bundle-align=0", "-output=b", "-input=h", &host], "-bundle-align must be at least 1"),
        (
            &["-output=b", "-input=h", "-input=x", "-targets=a-b-c-d-e,a-b-c-d-e"],
            "invalid target 'a-b-c-d-e', unknown offloading kind 'a', \
             unknown target triple 'b-c-d-e'",
        ),
        (
            &["-output=b", "-input=h", "-input=x", &format!("-targets={HIP},{HIP}")],
            "Duplicate targets are not allowed",
        ),
        (&["-output=b", "-input=h", "-input=d", &format!("-targets={HOST},")], form),
        (&["-output=b", "-input=h", "-targets=host-x86_64-unknown-linux"], form),
        (
            &["-output=b", "-input=h", "-targets=Host-x86_64-unknown-linux-gnu"],
            "invalid target 'Host-x86_64-unknown-linux-gnu', unknown offloading kind 'Host'",
        ),
        (
            &["-output=b", "-input=h", "-targets=hip-gpu-amd-amdhsa--gfx906"],
            "invalid target 'hip-gpu-amd-amdhsa--gfx906', unknown target triple 'gpu-amd-amdhsa-'",
        ),
        (
            &[
                "-output=b",
                "-input=h",
                "-input=d",
                "-targets=openmp-amdgcn-amd-amdhsa--gfx906:xnack+,openmp-amdgcn-amd-amdhsa--gfx906",
            ],
            "Cannot bundle inputs with conflicting targets: 'openmp-amdgcn-amd-amdhsa--gfx906' \
             and 'openmp-amdgcn-amd-amdhsa--gfx906:xnack+'",
        ),
        (
            // LLVM finds no conflict when it is the first that has a feature more.
            &[
                "-output=b",
                "-input=h",
                "-input=d",
                "-targets=hip-amdgcn-amd-amdhsa--gfx906:sramecc+:xnack+,\
                 hip-amdgcn-amd-amdhsa--gfx906:xnack-",
            ],
            "Cannot bundle inputs with conflicting targets: \
             'hip-amdgcn-amd-amdhsa--gfx906:sramecc+:xnack+' and \
             'hip-amdgcn-amd-amdhsa--gfx906:xnack-'",
        ),
        (
            &["-output=b", "-input=x", &format!("-targets={OPENMP}")],
            "expecting exactly one host target but got 0",
        ),
        (
            &["-output=b", "-input=x", "-input=y", &format!("-targets={HOST},{HOST}-")],
            "expecting exactly one host target but got 2",
        ),
        (
            &["-output=b", "-input=h", "-input=no", "-type=q", &both],
            "'no': No such file or directory",
        ),
        (&["-output=b", "-input=.", "-input=no", &both], "'.': Is a directory"),
        (&["-list", "-input=no", "-type=q"], "'no': No such file or directory"),
        (&["-list", "-input=h", "-type=q"], "'q': invalid file type specified"),
        (&["-output=no/b", "-input=h", "-input=d", &both], "'no/b': No such file or directory"),
        (&["-output=.", "-input=h", "-input=d", &both], "'.': Is a directory"),
    ] {
        let typed = args.iter().any(|arg| arg.starts_with("-type="));
        let default = if typed { &[][..] } else { &["-type=bc"] };
        assert_eq!(bad(&place, &[args, default].concat()), expected, "{args:?}");
    }
    // None of that left anything behind.
    assert_eq!(names(&place), ["d", "e", "h", "h.o"]);
}

#[test]
fn the_command_line_is_read_as_llvm_does() {
    let place = place();
    let program = Path::new(TOOL).file_name().unwrap().to_str().unwrap();
    for (args, expected) in [
        (&[][..], "for the --type option: must be specified at least once!"),
        (&["-h"], "for the --type option: must be specified at least once!"),
        (&["--type"], "for the --type option: requires a value!"),
        (
            &["-type=o", "-bundle-align=-1"],
            "for the --bundle-align option: '-1' value invalid for uint argument!",
        ),
        (
            &["-type=o", "-compression-level=x"],
            "for the --compression-level option: 'x' value invalid for integer argument!",
        ),
        (
            &["-type=o", "-compress=x"],
            "for the --compress option: 'x' is invalid value for boolean argument! Try 0 or 1",
        ),
        (&["-type=o", "x"], &format!("Unknown command line argument 'x'.  Try: '{TOOL} --help'")),
    ] {
        assert_eq!(bad(&place, args), format!("{program}: {expected}"), "{args:?}");
    }
    let help = good(&place, &["--help"]);
    assert!(help.contains(&format!("USAGE: {program} [options]\n")), "{help}");
    assert!(help.contains("\n                              o    - object\n"), "{help}");
    assert_eq!(help.lines().filter(|line| line.starts_with("  --")).count(), 19);
    assert!(good(&place, &["-type=o", "-h"]).contains("--bundle-align=<uint>   - "));
    assert!(good(&place, &["--version"]).contains("clang-offload-bundler version 22.1.8"));
    // Two dashes, values as the next argument, response files.
    write(&place, "rsp", format!("--type bc\n--targets '{HOST},{HIP}' --input h --input \"d\""));
    good(&place, &["@rsp", "--output", "b"]);
    assert_eq!(good(&place, &["-type", "bc", "-input", "b", "-list"]), format!("{HOST}-\n{HIP}\n"));
}

#[test]
fn deprecated_options_work_with_a_warning() {
    let place = place();
    let targets = format!("-targets={HOST},{HIP}");
    assert_eq!(
        warned(&place, &["-type=bc", &targets, "-inputs=h,d", "-outputs=b"]),
        [
            "-inputs is deprecated, use -input instead",
            "-outputs is deprecated, use -output instead"
        ]
    );
    warned(&place, &["-type=bc", "-unbundle", &targets, "-inputs=b", "-outputs=x,y"]);
    assert_eq!([read(&place, "x"), read(&place, "y")], [&b"host\n"[..], b"device"]);
}

#[test]
fn standard_input_and_output_are_files_too() {
    let place = place();
    let targets = format!("-targets={HOST},{HIP}");
    let args = ["-type=bc", &targets, "-input=-", "-input=d", "-output=-"];
    let made = run_with(&place, &args, b"from stdin").stdout;
    write(&place, "b", &made);
    assert_eq!(unbundle(&place, "bc", &[HOST, HIP], "b"), [&b"from stdin"[..], b"device"]);
    let args = ["-type=bc", "-unbundle", &targets, "-input=-", "-output=-", "-output=-"];
    assert_eq!(run_with(&place, &args, &made).stdout, b"from stdindevice");
    let listed = run_with(&place, &["-type=bc", "-list", "-input=-"], &made);
    assert_eq!(stdout(&listed), format!("{HOST}-\n{HIP}\n"));
    assert_eq!(
        bad(&place, &["-type=bc", &targets, "-input=-", "-input=-", "-output=b"]),
        "standard input can be one input only"
    );
}

#[test]
fn the_environment_and_the_options_steer_compression() {
    let place = place();
    let targets = format!("-targets={HOST},{HIP}");
    let args = ["-type=bc", &targets, "-input=h", "-input=d", "-output=b"];
    let run = |variables: &[(&str, &str)], more: &[&str]| {
        let output = command(&place, &[&args[..], more].concat())
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        (stderr(&output), read(&place, "b"))
    };
    let on = ("OFFLOAD_BUNDLER_COMPRESS", "1");
    let (_, plain) = run(&[], &[]);
    assert_eq!(run(&[on], &["-compress=false"]).1, plain);
    assert_eq!(run(&[on, ("OFFLOAD_BUNDLER_IGNORE_ENV_VAR", "1")], &[]).1, plain);
    assert_eq!(run(&[on], &[]).1[..6], *b"CCOB\x03\0");
    let version = |value| ("COMPRESSED_BUNDLE_FORMAT_VERSION", value);
    assert_eq!(run(&[on, version("2")], &[]).1[..6], *b"CCOB\x02\0");
    let (warning, bytes) = run(&[on, version("1")], &[]);
    assert_eq!(bytes[..6], *b"CCOB\x03\0");
    assert_eq!(
        warning,
        "Warning: Invalid value for COMPRESSED_BUNDLE_FORMAT_VERSION: 1. \
         Valid values are 2 or 3. Using default version 3.\n"
    );
    let level = ("OFFLOAD_BUNDLER_COMPRESSION_LEVEL", "7");
    let verbose = ("OFFLOAD_BUNDLER_VERBOSE", "1");
    let (text, bytes) = run(&[on, level, verbose], &[]);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "Compressed bundle format version: 3");
    assert_eq!(lines[1], format!("Total file size (including headers): {} bytes", bytes.len()));
    assert_eq!(lines[2], "Compression method used: zstd");
    assert_eq!(lines[3], "Compression level: 7");
    assert_eq!(lines[4], format!("Binary size before compression: {} bytes", plain.len()));
    assert_eq!(lines[5], format!("Binary size after compression: {} bytes", bytes.len() - 32));
    assert!(lines[6].starts_with("Compression rate: "), "{text}");
    assert!(lines[7].starts_with("Compression ratio: ") && lines[7].ends_with('%'), "{text}");
    assert!(lines[8].starts_with("Compression speed: "), "{text}");
    assert!(lines[9].starts_with("Truncated MD5 hash: 0x"), "{text}");
    assert_eq!(lines.len(), 10);
    assert!(run(&[on, level, verbose], &["-compression-level=-3"]).0.contains("level: -3\n"));
    assert_eq!(run(&[on, verbose], &["-verbose=0"]).0, "");
}

#[test]
fn verbose_tells_what_is_read() {
    let place = place();
    let targets = format!("-targets={HOST},{HIP}");
    good(&place, &["-type=bc", &targets, "-input=h", "-input=d", "-output=b", "-compress"]);
    let text = stderr(&run(&place, &["-type=bc", "-list", "-input=b", "-verbose"]));
    let lines: Vec<_> = text.lines().collect();
    let size = read(&place, "b").len();
    assert_eq!(lines[0], "Compressed bundle format version: 3");
    assert_eq!(lines[1], format!("Total file size (from header): {size} bytes"));
    assert_eq!(lines[2], "Decompression method: zstd");
    assert_eq!(lines[3], format!("Size before decompression: {} bytes", size - 32));
    assert_eq!(lines[4], "Size after decompression: 150 bytes");
    assert!(lines[7].starts_with("Decompression speed: "), "{text}");
    let hash = lines[8].strip_prefix("Stored hash: ").unwrap();
    assert_eq!(lines[9], format!("Recalculated hash: {hash}"));
    assert_eq!(lines[10..], ["Hashes match: Yes"]);
    bundle(&place, "bc", &[(HOST, "h")], "b");
    let text = stderr(&run(&place, &["-type=bc", "-list", "-input=b", "-verbose"]));
    assert_eq!(text, "Uncompressed bundle.\n");
}

/// As `offload ls`, -list reads compressed bundles to the end of their tables: what is wrong after them it does not see.
#[test]
fn compressed_bundles_are_listed_by_their_tables() {
    let place = place();
    let targets = format!("-targets={HOST},{HIP}");
    good(&place, &["-type=bc", &targets, "-input=h", "-input=d", "-output=b", "-compress"]);
    let ids = format!("{HOST}-\n{HIP}\n");
    assert_eq!(good(&place, &["-type=bc", "-list", "-input=b"]), ids);
    // Another hash.
    let mut bytes = read(&place, "b");
    bytes[24] ^= 1;
    fs::write(place.path().join("b"), bytes).unwrap();
    assert_eq!(good(&place, &["-type=bc", "-list", "-input=b"]), ids);
    let unbundle = unbundling("bc", &[HIP], "b");
    for reads_all in [&["-type=bc", "-list", "-input=b", "-verbose"][..], &strs(&unbundle)] {
        let output = run(&place, reads_all);
        assert_eq!(output.status.code(), Some(1), "{reads_all:?}");
        assert!(stderr(&output).contains("Failed to decompress input"), "{}", stderr(&output));
    }
}

#[test]
fn debug_output_tells_every_comparison() {
    let place = place();
    bundle(&place, "bc", &[(HIP, "d"), ("hip-amdgcn-amd-amdhsa--gfx90a:xnack-", "h")], "b");
    let mut args = unbundling("bc", &["hipv4-amdgcn-amd-amdhsa--gfx906:xnack+"], "b");
    args.push("-debug-only=CodeObjectCompatibility".to_owned());
    let output = run(&place, &strs(&args));
    assert_eq!(
        stderr(&output),
        format!(
            "Compatible: Target IDs are compatible \t[CodeObject: {HIP}]\t:\t\
             [Target: hipv4-amdgcn-amd-amdhsa--gfx906:xnack+]\n\
             Incompatible: Processor mismatch \t\
             [CodeObject: hip-amdgcn-amd-amdhsa--gfx90a:xnack-]\t:\t\
             [Target: hipv4-amdgcn-amd-amdhsa--gfx906:xnack+]\n"
        )
    );
    assert_eq!(read(&place, "0"), b"device");
}

#[test]
fn missing_bundles_are_named_and_nothing_is_written() {
    let place = place();
    bundle(&place, "bc", &PARTS, "b");
    let (x, y) = ("hip-amdgcn-amd-amdhsa--gfx908", "openmp-nvptx64-nvidia-cuda--sm_70");
    let z = "hip-amdgcn-amd-amdhsa--gfx1030";
    let nv = "openmp-nvptx64-nvidia-cuda-unknown-sm_70";
    for (targets, text) in [
        (&[HOST, x][..], format!("Can't find bundles for {x}")),
        (&[y, HOST, x], format!("Can't find bundles for {x} and {nv}")),
        (&[y, x, HOST, z], format!("Can't find bundles for {z}, {x}, and {nv}")),
    ] {
        assert_eq!(bad(&place, &strs(&unbundling("bc", targets, "b"))), text);
        assert!(!exists(&place, "0") && !exists(&place, "1"));
    }
    let allow = |targets: &[&str], file_type: &str, input: &str| {
        let mut args = unbundling(file_type, targets, input);
        args.push("-allow-missing-bundles".to_owned());
        good(&place, &strs(&args));
        (0..targets.len()).map(|index| read(&place, &index.to_string())).collect::<Vec<_>>()
    };
    assert_eq!(allow(&[x, HOST, y], "bc", "b"), [&b""[..], b"host\n", b""]);
    // A file that never was bundled is the host's.
    for file_type in ["bc", "o", "s"] {
        assert_eq!(allow(&[x, HOST], file_type, "h"), [&b""[..], b"host\n"]);
    }
    assert_eq!(allow(&[x, HOST], "o", "h.o"), [&b""[..], &read(&place, "h.o")]);
    assert_eq!(allow(&[x, HOST], "o", "e"), [b"", b""]);
    // So is a HIP program, whose device code is for the loader.
    fs::copy(data("hip.o"), place.path().join("hip.o")).unwrap();
    let gfx = "hipv4-amdgcn-amd-amdhsa--gfx90a";
    assert_eq!(allow(&[gfx, HOST], "o", "hip.o"), [&b""[..], &read(&place, "hip.o")]);
    assert_eq!(warned(&place, &["-type=o", "-list", "-input=hip.o"]), ["'hip.o': no bundle"]);
    // LLVM hands out the whole bundle as host when nothing in it matches.
    bundle(&place, "bc", &[(HIP, "d")], "b");
    assert_eq!(allow(&[x, HOST], "bc", "b"), [b"", b""]);
}

/// Puts bundles one after the other as a linker does: each at the next multiple of 4096.
fn section(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.resize(bytes.len().next_multiple_of(4096), 0);
        bytes.extend(part);
    }
    bytes
}

#[test]
fn concatenated_bundles_are_all_seen() {
    let place = place();
    let compress = |version: &str, target: &str, input: &str| {
        let args = [
            "-type=o",
            "-compress",
            "-output=b",
            &format!("-targets={target}"),
            &format!("-input={input}"),
        ];
        let output = command(&place, &args)
            .env("COMPRESSED_BUNDLE_FORMAT_VERSION", version)
            .output()
            .unwrap();
        assert!(output.status.success());
        read(&place, "b")
    };
    let other = "hip-amdgcn-amd-amdhsa--gfx908";
    let third = "hip-amdgcn-amd-amdhsa--gfx1030";
    bundle(&place, "o", &[(third, "h")], "b");
    let plain = read(&place, "b");
    let parts = [compress("3", HIP, "d"), compress("2", other, "e"), plain];
    for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
        let parts: Vec<_> = order.iter().map(|&index| parts[index].clone()).collect();
        for bytes in [parts.concat(), section(&parts), [section(&parts), vec![0; 99]].concat()] {
            write(&place, "s", bytes);
            let ids: Vec<_> = order.iter().map(|&index| [HIP, other, third][index]).collect();
            let listed = good(&place, &["-type=o", "-list", "-input=s"]);
            assert_eq!(listed.lines().collect::<Vec<_>>(), ids);
            let contents = unbundle(&place, "o", &[HIP, other, third], "s");
            assert_eq!(contents, [&b"device"[..], b"", b"host\n"]);
        }
    }
}

#[test]
fn magics_in_payloads_are_payload() {
    let place = place();
    bundle(&place, "bc", &[(HIP, "d")], "inner");
    let inner = read(&place, "inner");
    bundle(&place, "bc", &[(HOST, "inner"), (OPENMP, "h")], "b");
    assert_eq!(good(&place, &["-type=bc", "-list", "-input=b"]), format!("{HOST}-\n{OPENMP}\n"));
    assert_eq!(unbundle(&place, "bc", &[HOST, OPENMP], "b"), [&inner[..], b"host\n"]);
    let message = bad(&place, &strs(&unbundling("bc", &[HIP], "b")));
    assert_eq!(message, format!("Can't find bundles for {HIP}"));
}

#[test]
fn hip_images_that_are_objects_make_a_binary_bundle() {
    let place = place();
    bundle(&place, "o", &[(HIP, "h.o")], "b");
    assert!(read(&place, "b").starts_with(b"__CLANG_OFFLOAD_BUNDLE__"));
    assert_eq!(unbundle(&place, "o", &[HIP], "b"), [read(&place, "h.o")]);
}

#[test]
fn damage_is_an_error_and_nothing_is_written() {
    let place = place();
    bundle(&place, "bc", &PARTS, "b");
    let bytes = read(&place, "b");
    let change = |at: usize, with: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + with.len()].copy_from_slice(with);
        bytes
    };
    let huge = u64::MAX.to_le_bytes();
    for (damaged, expected) in [
        (bytes[..30].to_vec(), "at byte 0x0: bundle header needs 32 bytes, but only 30"),
        (bytes[..60].to_vec(), "at byte 0x0: bundle has 3 entries, too many"),
        (change(24, &huge), "at byte 0x0: bundle has 18446744073709551615 entries, too many"),
        (change(32, &huge), "at byte 0x0: bundle entry 0 lies at 0xffffffffffffffff"),
        (change(40, &huge), "at byte 0x0: bundle entry 0 lies at"),
        (change(48, &huge), "at byte 0x0: bundle entry 0 has an ID of"),
        (change(48, &[0; 8]), "at byte 0x0: bundle entry 0 at"),
        (change(32, &[40]), "at byte 0x0: bundle entry 0 lies at 0x28, inside the descriptors"),
    ] {
        write(&place, "x", damaged);
        let complaint = bad(&place, &["-type=bc", "-list", "-input=x"]);
        let expected = format!("'x': {expected}");
        assert!(complaint.starts_with(&expected), "{complaint}\n{expected}");
        let mut args = unbundling("bc", &[HOST, HIP], "x");
        args.push("-allow-missing-bundles".to_owned());
        assert_eq!(bad(&place, &strs(&args)), complaint);
        assert!(!exists(&place, "0") && !exists(&place, "1"));
    }
    // Every truncation ends in an orderly way.
    for len in (0..bytes.len()).step_by(7) {
        write(&place, "x", &bytes[..len]);
        let code = run(&place, &["-type=bc", "-list", "-input=x"]).status.code();
        assert!(matches!(code, Some(0 | 1)), "{len}");
    }
    // Bytes behind a bundle that are none are worth a word.
    write(&place, "x", [&bytes[..], b"junk"].concat());
    let args = unbundling("bc", &[HOST, HIP], "x");
    assert_eq!(warned(&place, &strs(&args)).len(), 1);
    assert_eq!(read(&place, "0"), b"host\n");
}

#[test]
fn damaged_objects_and_archives_are_named() {
    let place = place();
    let mut object = fs::read(data("bundle.o")).unwrap();
    // The first of the sections that linkers leave out: type PROGBITS, flags.
    let kind = [&[1, 0, 0, 0][..], &0x8000_0000_u64.to_le_bytes()].concat();
    let header = object.windows(12).position(|window| window == kind).unwrap() - 4;
    object[header + 24..header + 32].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    write(&place, "x", &object);
    let complaint = bad(&place, &strs(&unbundling("o", &["host-x86_64-pc-linux-gnu"], "x")));
    assert!(complaint.starts_with("'x': ") && complaint.contains("0x100000000"), "{complaint}");
    assert!(!exists(&place, "0"));

    // A name that is none, where LLVM has one in a table or in front of the contents.
    for name in ["/-1", "#1/x"] {
        let archive = format!("!<arch>\n{name:<16}{:<32}{:<10}`\ntext", "0", 4);
        write(&place, "x", archive);
        let expected = format!(
            "'x': at byte 0x0: archive member at 0x8: expected a name or a reference to one, found {name}"
        );
        for complaint in [
            bad(&place, &["-type=a", "-list", "-input=x"]),
            bad(&place, &strs(&unbundling("a", &[HIP], "x"))),
        ] {
            assert!(complaint.starts_with(&expected), "{complaint}");
        }
        assert!(!exists(&place, "0"));
    }
    let whole = fs::read(data("libbundles.a")).unwrap();
    for len in [12, 68 + 100, 3000, whole.len() - 1] {
        write(&place, "x", &whole[..len]);
        let complaint = bad(&place, &["-type=a", "-list", "-input=x"]);
        assert!(complaint.starts_with("'x': ") && complaint.contains("at byte 0x"), "{complaint}");
    }
}

#[test]
fn damaged_text_bundles_are_errors() {
    let place = place();
    let start = |id: &str| format!("\n# __CLANG_OFFLOAD_BUNDLE____START__ {id}\n");
    let end = |id: &str| format!("\n# __CLANG_OFFLOAD_BUNDLE____END__ {id}\n");
    let whole = [start(HIP), "device".to_owned(), end(HIP)].concat();
    for (text, expected) in [
        (start(HIP) + "device", "text bundle entry 0 at 0x1 has no end marker"),
        (whole.clone() + start(OPENMP).trim_end(), "text bundle entry 1"),
        (start(HIP) + &end(OPENMP), "text bundle entry 0 starts with the ID"),
    ] {
        write(&place, "x", text);
        let complaint = bad(&place, &strs(&unbundling("s", &[HIP], "x")));
        assert!(complaint.contains(expected), "{complaint}");
        assert!(!exists(&place, "0"));
        bad(&place, &["-type=s", "-list", "-input=x"]);
    }
    for text in [
        // On the first line; behind other lines; with CR LF.
        whole.trim_start().to_owned(),
        format!("\t.file \"x\"\n{whole}"),
        whole.replace('\n', "\r\n"),
    ] {
        write(&place, "x", text);
        assert_eq!(good(&place, &["-type=s", "-list", "-input=x"]), format!("{HIP}\n"));
        assert_eq!(unbundle(&place, "s", &[HIP], "x"), [b"device"]);
    }
    // The end may follow the start without an empty line.
    write(&place, "x", start(HIP) + end(HIP).trim_start());
    assert_eq!(unbundle(&place, "s", &[HIP], "x"), [b""]);
    write(&place, "marked", whole);
    let targets = format!("-targets={HOST}");
    assert_eq!(
        bad(&place, &["-type=s", &targets, "-input=marked", "-output=b"]),
        "'marked': text bundle entry 0 has a marker line in its content at 0x1"
    );
    bundle(&place, "ll", &[(HOST, "marked")], "b");
}

#[test]
fn damaged_compressed_bundles_are_errors() {
    let place = place();
    let targets = format!("-targets={HOST},{HIP}");
    good(&place, &["-type=bc", &targets, "-input=h", "-input=d", "-output=b", "-compress"]);
    let bytes = read(&place, "b");
    for (at, byte) in [(4, 9), (6, 7), (8, 0), (9, 1), (16, 0xff), (23, 0xff), (24, 0)] {
        let mut damaged = bytes.clone();
        damaged[at] ^= byte.max(1);
        write(&place, "x", &damaged);
        let complaint = bad(&place, &strs(&unbundling("bc", &[HOST, HIP], "x")));
        assert!(complaint.starts_with("Failed to decompress input: "), "{at}: {complaint}");
        assert!(complaint.contains(": 'x': at byte 0x0: "), "{at}: {complaint}");
        assert!(!exists(&place, "0"));
    }
    for len in [5, 20, 40, bytes.len() - 1] {
        write(&place, "x", &bytes[..len]);
        let complaint = bad(&place, &["-type=bc", "-list", "-input=x"]);
        assert!(complaint.contains("truncated"), "{complaint}");
    }
}

#[test]
fn a_bundle_of_another_form_is_named() {
    let place = place();
    bundle(&place, "s", &PARTS, "b.s");
    bundle(&place, "bc", &PARTS, "b.bc");
    bundle(&place, "o", &[(HOST, "h.o"), (HIP, "d")], "b.o");
    for (file_type, file, found, expected) in [
        (
            "ll",
            "b.s",
            "a text bundle with the comment leader \"#\"",
            "a text bundle with the comment leader \";\"",
        ),
        ("o", "b.s", "a text bundle with the comment leader \"#\"", "a binary bundle"),
        ("s", "b.bc", "a binary bundle", "a text bundle with the comment leader \"#\""),
        ("bc", "b.o", "an object with the sections of a bundle", "a binary bundle"),
    ] {
        let text = format!("'{file}': found {found}, expected {expected} for this type");
        let args = [&format!("-type={file_type}"), "-list", &format!("-input={file}")];
        assert_eq!(bad(&place, &args), text);
        let mut args = unbundling(file_type, &[HOST, HIP], file);
        args.push("-allow-missing-bundles".to_owned());
        assert_eq!(bad(&place, &strs(&args)), text);
    }
}

#[test]
fn unknown_and_old_names_are_kept() {
    let place = place();
    for (typed, written, warning) in [
        // LLVM empties the target ID of all of these.
        ("hip-amdgcn-amd-amdhsa--gfx940", "hip-amdgcn-amd-amdhsa--gfx940", None),
        (
            "hip-amdgcn-amd-amdhsa--gfx9999",
            "hip-amdgcn-amd-amdhsa--gfx9999",
            Some("'hip-amdgcn-amd-amdhsa--gfx9999': unknown processor 'gfx9999', kept as it is"),
        ),
        ("hip-amdgcn-amd-amdhsa-gfx906", "hip-amdgcn-amd-amdhsa--gfx906", None),
        ("hip-amdgcn-amd-amdhsa--tahiti", "hip-amdgcn-amd-amdhsa--gfx600", None),
        // LLVM writes this one as it is typed, against its documentation.
        (
            "hip-amdgcn-amd-amdhsa--gfx906:xnack+:sramecc-",
            "hip-amdgcn-amd-amdhsa--gfx906:sramecc-:xnack+",
            None,
        ),
        (
            "hip-amdgcn-amd-amdhsa--gfx906:xnack",
            "hip-amdgcn-amd-amdhsa--gfx906:xnack",
            Some(
                "'hip-amdgcn-amd-amdhsa--gfx906:xnack': target ID feature \"xnack\" at offset 7 \
                 lacks its sign, expected \"+\" or \"-\"",
            ),
        ),
    ] {
        let targets = format!("-targets={HOST},{typed}");
        let args = ["-type=bc", &targets, "-input=h", "-input=d", "-output=b"];
        assert_eq!(warned(&place, &args), warning.into_iter().collect::<Vec<_>>());
        let listed = run(&place, &["-type=bc", "-list", "-input=b"]);
        assert_eq!(stdout(&listed), format!("{HOST}-\n{written}\n"));
        let args = unbundling("bc", &[typed], "b");
        warned(&place, &strs(&args));
        assert_eq!(read(&place, "0"), b"device", "{typed}");
    }
    let message = bad(&place, &strs(&unbundling("bc", &["hip-amdgcn-amd-amdhsa--gfx941"], "b")));
    assert_eq!(message, "Can't find bundles for hip-amdgcn-amd-amdhsa--gfx941");
}

/// A text bundle of entries with these IDs, each with its number as contents.
fn with_ids(ids: &[&str]) -> String {
    let entry = |(index, id)| {
        format!(
            "\n# __CLANG_OFFLOAD_BUNDLE____START__ {id}\n{index}\n\
             # __CLANG_OFFLOAD_BUNDLE____END__ {id}\n"
        )
    };
    ids.iter().enumerate().map(entry).collect()
}

#[test]
fn old_ids_in_files_can_be_selected() {
    let place = place();
    let ids = [
        "host-x86_64-unknown-linux",
        "hip-amdgcn-amd-amdhsa-gfx906",
        "hip-amdgcn-amd-amdhsa-gfx90a-",
    ];
    write(&place, "b", with_ids(&ids));
    let wanted = ["host-x86_64-unknown-linux-", HIP, "hip-amdgcn-amd-amdhsa--gfx90a:xnack+"];
    assert_eq!(unbundle(&place, "s", &wanted, "b"), [b"0", b"1", b"2"]);
}

#[test]
fn an_odd_id_does_not_block_the_others() {
    let place = place();
    write(&place, "b", with_ids(&["nonsense", HIP]));
    let args = unbundling("s", &[HIP], "b");
    let warnings = warned(&place, &strs(&args));
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("\"nonsense\" has 1 fields"), "{warnings:?}");
    assert_eq!(read(&place, "0"), b"1");
}

#[test]
fn the_best_entry_wins_and_may_serve_several() {
    let place = place();
    let any = "hip-amdgcn-amd-amdhsa--gfx90a";
    let (on, off) = (format!("{any}:xnack+"), format!("{any}:xnack-"));
    for (ids, wanted, expected) in [
        (&[any, &on][..], &[&*on][..], &[1][..]),
        (&[&on, any], &[&on], &[0]),
        (&[any], &[&on, &off], &[0, 0]),
        (&[any, &on], &[&off, &on], &[0, 1]),
        (&["hipv4-amdgcn-amd-amdhsa--gfx90a", any], &[any], &[1]),
        (&["hipv4-amdgcn-amd-amdhsa--gfx90a"], &[any], &[0]),
        (&[any, any], &[any], &[0]),
    ] {
        write(&place, "b", with_ids(ids));
        let args = unbundling("s", wanted, "b");
        let output = run(&place, &strs(&args));
        assert!(output.status.success(), "{}", stderr(&output));
        for (index, expected) in expected.iter().enumerate() {
            let found = read(&place, &index.to_string());
            assert_eq!(found, expected.to_string().as_bytes(), "{ids:?} {wanted:?}");
        }
    }
    // HIP serves OpenMP only when asked to.
    write(&place, "b", with_ids(&[HIP]));
    let openmp = "openmp-amdgcn-amd-amdhsa--gfx906";
    let mut args = unbundling("s", &[openmp], "b");
    assert_eq!(bad(&place, &strs(&args)), format!("Can't find bundles for {openmp}"));
    args.push("-hip-openmp-compatible".to_owned());
    good(&place, &strs(&args));
}

#[test]
fn lists_follow_the_file_and_show_twins() {
    let place = place();
    let ids = [OPENMP, HIP, "host-x86_64-unknown-linux-gnu-", HIP];
    write(&place, "b", with_ids(&ids));
    let output = run(&place, &["-type=s", "-list", "-input=b"]);
    assert_eq!(stdout(&output).lines().collect::<Vec<_>>(), ids);
    assert!(stderr(&output).contains("both have the ID"), "{}", stderr(&output));
    let archive = format!("-input={}", data("libbundles.a").display());
    let listed = good(&place, &["-type=a", "-list", &archive]);
    assert!(
        listed.lines().all(|line| line.contains(": ")) && listed.lines().count() > 1,
        "{listed}"
    );
    assert_eq!(bad(&place, &["-type=a", "-list", "-input=h"]), "'h': not an archive");
}

#[test]
fn outputs_and_inputs_may_be_one_file() {
    let place = place();
    let host = read(&place, "h.o");
    let targets = format!("-targets={HOST},{HIP}");
    good(&place, &["-type=o", &targets, "-input=h.o", "-input=d", "-output=h.o"]);
    let fat = read(&place, "h.o");
    assert_ne!(fat, host);
    good(&place, &["-type=o", "-unbundle", &targets, "-input=h.o", "-output=h.o", "-output=x"]);
    assert_eq!((read(&place, "h.o"), read(&place, "x")), (host, b"device".to_vec()));
    good(&place, &["-type=o", &targets, "-input=h.o", "-input=d", "-output=d"]);
    assert_eq!(read(&place, "d"), fat);
}

#[test]
fn one_file_cannot_be_two_outputs() {
    let place = place();
    bundle(&place, "bc", &PARTS, "b");
    let targets = format!("-targets={HOST},{HIP}");
    let args = ["-type=bc", "-unbundle", &targets, "-input=b", "-output=x"];
    for same in ["x", "./x"] {
        let output = format!("-output={same}");
        let message = format!("'{same}': is the output for more than one target");
        assert_eq!(bad(&place, &[&args[..], &[&output]].concat()), message);
    }
    // A second spelling of a target would be lost.
    let twice = format!("-targets={HIP},hip-amdgcn-amd-amdhsa-unknown-gfx906");
    assert_eq!(
        bad(&place, &["-type=bc", "-unbundle", &twice, "-input=b", "-output=x", "-output=y"]),
        format!(
            "Duplicate targets are not allowed: '{HIP}' and \
             'hip-amdgcn-amd-amdhsa-unknown-gfx906' both mean '{HIP}'"
        )
    );
    #[cfg(unix)]
    good(
        &place,
        &["-type=bc", "-unbundle", &targets, "-input=b", "-output=/dev/null", "-output=/dev/null"],
    );
}

#[test]
fn a_dry_run_prints_commands_and_writes_nothing() {
    let place = place();
    let targets = format!("-targets={HOST},{HIP}");
    let args = ["-###", "-type=o", &targets, "-input=h.o", "-input=d", "-output=f.o"];
    let output = run(&place, &args);
    assert!(output.status.success());
    let section = |id: &str, file: &str| {
        format!(
            "\"--add-section=__CLANG_OFFLOAD_BUNDLE__{id}={file}\" \
             \"--set-section-flags=__CLANG_OFFLOAD_BUNDLE__{id}=readonly,exclude\""
        )
    };
    let host = section(&format!("{HOST}-"), "<one zero byte>");
    let hip = section(HIP, "d");
    let expected = format!("\"llvm-objcopy\" {host} {hip} \"--\" \"h.o\" \"f.o\"\n");
    assert_eq!(stderr(&output), expected);
    assert!(!exists(&place, "f.o"));
    good(&place, &args[1..]);
    let args = ["-###", "-type=o", "-unbundle", &targets, "-input=f.o", "-output=x", "-output=y"];
    assert_eq!(
        stderr(&run(&place, &args)),
        "\"llvm-objcopy\" \"--regex\" \"--remove-section=__CLANG_OFFLOAD_BUNDLE__.*\" \
         \"--\" \"f.o\" \"x\"\n"
    );
    let args = ["-###", "-type=bc", &targets, "-input=h", "-input=d", "-output=z"];
    assert_eq!(good(&place, &args), "");
    assert_eq!(names(&place), ["d", "e", "f.o", "h", "h.o"]);
}

#[test]
fn a_failed_run_leaves_an_old_output_alone() {
    let place = place();
    write(&place, "old", "old");
    let targets = format!("-targets={HOST},{HIP}");
    bad(&place, &["-type=bc", &targets, "-input=h", "-input=no", "-output=old"]);
    let args = ["-type=bc", "-unbundle", &targets, "-input=h", "-output=old", "-output=new"];
    bad(&place, &args);
    assert_eq!(read(&place, "old"), b"old");
    // A damaged host object is no reason to leave half an object.
    write(&place, "cut.o", &read(&place, "h.o")[..200]);
    let args = ["-type=o", &targets, "-input=cut.o", "-input=d", "-output=old"];
    assert!(bad(&place, &args).starts_with("'cut.o': "));
    assert_eq!(read(&place, "old"), b"old");
    assert_eq!(names(&place), ["cut.o", "d", "e", "h", "h.o", "old"]);
}

#[test]
fn a_universal_host_is_bundled_as_binary() {
    // As LLVM does: there is no single object that sections could be added to.
    let place = tempdir().unwrap();
    let universal = data("hip-macos-universal.o");
    fs::write(place.path().join("host"), fs::read(universal).unwrap()).unwrap();
    fs::write(place.path().join("device"), "code").unwrap();
    let targets = format!("-targets={HOST},{HIP}");
    good(&place, &["-type=o", &targets, "-input=host", "-input=device", "-output=bundle"]);
    let bundle = fs::read(place.path().join("bundle")).unwrap();
    assert!(bundle.starts_with(b"__CLANG_OFFLOAD_BUNDLE__"));
    good(&place, &["-type=o", "-unbundle", &targets, "-input=bundle", "-output=h", "-output=d"]);
    let read = |name: &str| fs::read(place.path().join(name)).unwrap();
    assert!(read("h") == read("host") && read("d") == b"code");
}

#[test]
fn colours_can_be_forced() {
    let place = tempdir().unwrap();
    for (option, coloured) in [("-color", true), ("-color=false", false), ("-unbundle", false)] {
        let output = run(&place, &["-type=o", option]);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(stderr(&output).contains("\x1b[31m"), coloured, "{option}");
    }
}
