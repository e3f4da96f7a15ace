//! `clang-offload-bundler` where many runs are compared, or times are printed. The rest is in `cases/bundler`.

use std::fs;
use std::process::{Command, Output, Stdio};

use crate::common::{new_command, stderr, stdout, tool};
use tempfile::{TempDir, tempdir};

const HOST: &str = "host-x86_64-unknown-linux-gnu";
const HIP: &str = "hip-amdgcn-amd-amdhsa--gfx906";
const OPENMP: &str = "openmp-amdgcn-amd-amdhsa--gfx90a:xnack+";

fn command(place: &TempDir, args: &[&str]) -> Command {
    let mut command = new_command(tool("clang-offload-bundler"));
    command.args(args).current_dir(place);
    command
}

fn run(place: &TempDir, args: &[&str]) -> Output {
    command(place, args).stdin(Stdio::null()).output().unwrap()
}

/// Runs a command that must succeed without a message, and returns standard output.
fn good(place: &TempDir, args: &[&str]) -> String {
    let output = run(place, args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
    assert_eq!(stderr(&output), "", "{args:?}");
    stdout(&output)
}

fn write(place: &TempDir, name: &str, bytes: impl AsRef<[u8]>) {
    fs::write(place.path().join(name), bytes).unwrap();
}

fn read(place: &TempDir, name: &str) -> Vec<u8> {
    fs::read(place.path().join(name)).unwrap()
}

/// A directory with three inputs: text, text without a newline at its end, and an empty file.
fn place() -> TempDir {
    let place = tempdir().unwrap();
    write(&place, "h", "host\n");
    write(&place, "d", "device");
    write(&place, "e", "");
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

/// Unbundles entries that must exist, and returns their contents.
fn unbundle(place: &TempDir, file_type: &str, targets: &[&str], input: &str) -> Vec<Vec<u8>> {
    let mut args = vec![
        "-unbundle".to_owned(),
        format!("-type={file_type}"),
        format!("-targets={}", targets.join(",")),
        format!("-input={input}"),
    ];
    args.extend((0..targets.len()).map(|index| format!("-output={index}")));
    good(place, &args.iter().map(|arg| &**arg).collect::<Vec<_>>());
    let names = (0..targets.len()).map(|index| index.to_string());
    names
        .map(|name| {
            let bytes = read(place, &name);
            fs::remove_file(place.path().join(name)).unwrap();
            bytes
        })
        .collect()
}

#[test]
fn version_is_that_of_llvm() {
    assert!(good(&place(), &["--version"]).contains("clang-offload-bundler version 22.1.8"));
}

#[test]
fn every_type_is_bundled_and_unbundled_plain_and_compressed() {
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
fn verbose_prints_facts_of_a_written_bundle() {
    let place = place();
    let targets = format!("-targets={HOST},{HIP}");
    bundle(&place, "bc", &PARTS[..2], "plain");
    let run = |more: &[&str]| {
        let args = ["-type=bc", &targets, "-input=h", "-input=d", "-output=b"];
        let output = command(&place, &[&args[..], more].concat())
            .envs([("OFFLOAD_BUNDLER_COMPRESS", "1"), ("OFFLOAD_BUNDLER_VERBOSE", "1")])
            .env("OFFLOAD_BUNDLER_COMPRESSION_LEVEL", "7")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stderr(&output)
    };
    let text = run(&[]);
    let (plain, size) = (read(&place, "plain").len(), read(&place, "b").len());
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "Compressed bundle format version: 3");
    assert_eq!(lines[1], format!("Total file size (including headers): {size} bytes"));
    assert_eq!(lines[2], "Compression method used: zstd");
    assert_eq!(lines[3], "Compression level: 7");
    assert_eq!(lines[4], format!("Binary size before compression: {plain} bytes"));
    assert_eq!(lines[5], format!("Binary size after compression: {} bytes", size - 32));
    assert!(lines[6].starts_with("Compression rate: "), "{text}");
    assert!(lines[7].starts_with("Compression ratio: ") && lines[7].ends_with('%'), "{text}");
    assert!(lines[8].starts_with("Compression speed: "), "{text}");
    assert!(lines[9].starts_with("Truncated MD5 hash: 0x"), "{text}");
    assert_eq!(lines.len(), 10);
    assert!(run(&["-compression-level=-3"]).contains("level: -3\n"));
}

#[test]
fn verbose_prints_facts_of_a_read_bundle() {
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
    // A wrong hash: -verbose reads everything, -list alone only the table.
    let mut bytes = read(&place, "b");
    bytes[24] ^= 1;
    write(&place, "x", bytes);
    let output = run(&place, &["-type=bc", "-list", "-input=x", "-verbose"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("Failed to decompress input"), "{}", stderr(&output));
    bundle(&place, "bc", &PARTS[..1], "b");
    let text = stderr(&run(&place, &["-type=bc", "-list", "-input=b", "-verbose"]));
    assert_eq!(text, "Uncompressed bundle.\n");
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
fn every_concatenated_bundle_is_read() {
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
