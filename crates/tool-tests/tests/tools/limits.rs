//! Files made to cost much, read by a process with little memory, and no time for quadratic work.

use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::process::Output;

use crate::common::{new_command, tool};
use fat_object::{OffloadBinaryEntry, Options, PathStep};
use offload_benches::hostile;

/// KiB of address space; the C library reserves some of it for each thread.
const MEMORY: usize = 384 << 10;

/// Seconds of a core, for tools without optimization: a hundred times the need of any of these inputs.
const TIME: usize = 60;

/// Bytes that a tool may print for each byte of its input. A row of a table, or an object of JSON, has some hundred
/// bytes; the smallest image takes 24.
const PRINTED: usize = 40;

/// Runs a tool with limits of memory, time and output.
fn limited(place: &Path, tool: &str, args: &[&str]) -> Output {
    // Blocks of 512 bytes.
    let script = format!("ulimit -v {MEMORY} -t {TIME} -f 65536; exec \"$@\"");
    let output = new_command("/bin/sh")
        .args(["-c", &script, "sh", tool])
        .args(args)
        .current_dir(place)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    // A failed allocation ends in a signal, which has no exit code.
    assert!(
        matches!(output.status.code(), Some(0 | 1)) && !errors.contains("memory"),
        "{tool} {args:?}: {:?} {}",
        output.status,
        errors.chars().take(500).collect::<String>()
    );
    output
}

fn offload(place: &Path, args: &[&str]) -> Output {
    limited(place, tool("offload"), args)
}

const COMMANDS: [&[&str]; 5] = [
    &["ls", "input"],
    &["ls", "--json", "input"],
    &["verify", "input"],
    &["match", "--gpu", "gfx90a:xnack+", "input"],
    &["thin", "--keep", "gfx90a", "--allow-missing", "input", "-o", "output"],
];

#[test]
fn every_command_works_with_little_memory() {
    let place = tempfile::tempdir().unwrap();
    for (name, make) in hostile::ALL {
        let bytes = make(if samples::faulty::is_thorough() { 128 << 10 } else { 8 << 10 });
        fs::write(place.path().join("input"), &bytes).unwrap();
        fs::write(place.path().join("member"), &bytes).unwrap();
        for args in COMMANDS {
            let output = offload(place.path(), args);
            let printed = output.stdout.len() + output.stderr.len();
            assert!(printed < PRINTED * bytes.len(), "{name}, {args:?}: {printed} bytes printed");
        }
    }
}

/// Bytes of a listing for each byte of a file: an image and its paths are some hundred bytes, and take 24 in the smallest
/// container.
const LISTED: usize = 16;

#[test]
fn a_listing_grows_in_proportion_to_the_file() {
    for (name, make) in hostile::ALL {
        let bytes = make(if samples::faulty::is_thorough() { 512 << 10 } else { 64 << 10 });
        let listing = fat_object::list(Cursor::new(&bytes), &Options::default()).unwrap();
        let mut paths = BTreeMap::new();
        let mut held = 0;
        for image in listing.images() {
            let strings =
                image.offload_binary_entry().into_iter().flat_map(OffloadBinaryEntry::strings);
            held += size_of_val(image)
                + 2 * size_of_val(image.target())
                + image.id().map_or(0, str::len);
            held += strings.map(|(key, value)| 48 + key.len() + value.len()).sum::<usize>();
            paths.insert(image.path().as_ptr(), image.path());
        }
        for finding in listing.findings() {
            // Printed names are longer than names in memory.
            held += size_of_val(finding) + format!("{:?}", finding.error()).len();
            paths.insert(finding.path().as_ptr(), finding.path());
        }
        let names = |path: &[PathStep]| path.last().map_or(0, |segment| segment.name().len());
        held += paths.values().map(|path| size_of_val(*path) + names(path)).sum::<usize>();
        assert!(held < LISTED * bytes.len(), "{name}: {held} bytes for {}", bytes.len());
    }
}

/// Each of these inputs once took gigabytes, or printed them.
#[test]
fn names_that_share_bytes_do_not_add_up() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let size = if samples::faulty::is_thorough() { 2 << 20 } else { 1 << 20 };
    let input = |make: hostile::Make| fs::write(place.join("input"), make(size)).unwrap();
    input(hostile::bundle_of_long_and_short_ids);
    let listed = offload(place, &["ls", "input"]);
    assert!(listed.stdout.len() < 16 << 20, "{}", listed.stdout.len());
    input(hostile::archive_with_a_long_name);
    let args = ["thin", "--keep", "gfx90a", "--dry-run", "--json", "input"];
    let thinned = offload(place, &args);
    assert!(
        String::from_utf8_lossy(&thinned.stderr).contains("too many") || !thinned.stderr.is_empty()
    );
    for (make, target) in [
        (hostile::elf_with_long_symbols as hostile::Make, "hip-amdgcn-amd-amdhsa--gfx906"),
        (hostile::elf_of_hosts, "host-x86_64-unknown-linux-gnu"),
    ] {
        input(make);
        let target = format!("--targets={target}");
        let args = ["--type=a", "--unbundle", &target, "--input=input", "--output=output"];
        let output = limited(place, tool("clang-offload-bundler"), &args);
        assert_eq!(output.status.code(), Some(1));
        assert!(!place.join("output").exists());
    }
}

#[test]
fn many_images_are_extracted_one_by_one() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let size = if samples::faulty::is_thorough() { 512 } else { 32 };
    fs::write(place.join("input"), hostile::bundle_of_unknown_processors(size << 10)).unwrap();
    offload(place, &["extract", "input", "-o", "images"]);
    assert!(fs::read_dir(place.join("images")).unwrap().count() > 17 * size);
    fs::create_dir(place.join("inner")).unwrap();
    fs::write(place.join("inner/input"), hostile::packages_in_packages(size << 11)).unwrap();
    let tool = tool("llvm-offload-binary");
    let output = limited(&place.join("inner"), tool, &["input"]);
    assert!(output.stdout.split(|&byte| byte == b'\n').count() > 5 * size);
}

/// The limit applies to memory at one time, whatever size a header claims.
#[test]
fn decompression_keeps_to_the_limit() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    for make in [hostile::zlib_bomb as hostile::Make, hostile::zstd_bomb] {
        // 16 MB.
        fs::write(place.join("input"), make(16 << 10)).unwrap();
        let commands = if samples::faulty::is_thorough() { &COMMANDS[..] } else { &COMMANDS[2..] };
        for args in commands.iter().copied() {
            let args = [args, &["--max-decompressed", "4M"]].concat();
            let output = offload(place, &args);
            assert_eq!(output.status.code(), Some(1), "{args:?}");
            let errors = [output.stdout, output.stderr].concat();
            let errors = String::from_utf8_lossy(&errors);
            assert!(errors.contains("more than the limit of 4194304"), "{args:?}: {errors}");
        }
    }
}
