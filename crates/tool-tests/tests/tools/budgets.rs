//! The table of budgets in docs/reliability.md: each row is measured.

use std::fs;
use std::io::{Read, Write, repeat};
use std::path::Path;
use std::process::Output;

use flate2::Compression;
use flate2::write::GzEncoder;

use bundle_format::text::Leader;

use crate::common::{new_command, stderr, tool};
use samples::bundle;
use samples::packages::{self, Around, Made};

/// Zeros in each input: as many as 1 MB of gzip can hold, or fewer for a quick run. Inputs that are decompressed as a whole
/// have as many as are just allowed, but where the limit is tried.
fn zeros(input: &str, limit: &str) -> u64 {
    match (input, limit) {
        (ZEROS | ONE_IMAGE | TEXT, "") => 450 << 20,
        (TWO, "") => 400 << 20,
        (ONE_IMAGE | TEXT | TWO, _) => 28 << 20,
        _ if samples::faulty::is_thorough() => 1000 << 20,
        (SIX_TAR_FILES, _) => 16 << 20,
        _ => 68 << 20,
    }
}

const SIX_TAR_FILES: &str = "zeros in six tar files, gzip";
const ZEROS: &str = "a compressed bundle of zeros";
const ONE_IMAGE: &str = "a compressed bundle of one image";
const TEXT: &str = "a compressed text bundle";
const TWO: &str = "a zip file of two compressed bundles";

/// Writes a tar file with one member, a gzip stream, whose contents start with some bytes.
fn tar_gz(place: &Path, name: &str, start: &[u8], len: u64) {
    let mut out = GzEncoder::new(fs::File::create(place).unwrap(), Compression::best());
    out.write_all(&packages::tar_header(name.as_bytes(), len, b'0', b"")).unwrap();
    out.write_all(start).unwrap();
    let rest = len.next_multiple_of(512) - start.len() as u64 + 1024;
    std::io::copy(&mut repeat(0).take(rest), &mut out).unwrap();
    out.finish().unwrap();
}

/// Bytes of noise in a bundle that is not quite 1 MB when it is compressed.
const MOST: usize = 950_000;

/// Returns a compressed bundle of nearly as many bytes as are noise: what is allowed to be decompressed depends on the size.
fn ccob(mut bundle: Vec<u8>, noise: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let noise = bundle.iter_mut().rev().skip(4096).take(noise);
    noise.for_each(|byte| {
        // The generator of Numerical Recipes. No byte is zero or ends a line.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *byte = (state >> 24) as u8 | 0x80;
    });
    ccob::compress(&bundle, &ccob::WriteOptions::default()).unwrap()
}

/// Returns a bundle of one image, mostly zeros.
fn bundle(len: u64) -> Vec<u8> {
    let bundle = fs::read(crate::common::data("kernels.hipfb")).unwrap();
    let bundle = ccob::decompress(&bundle, &ccob::ReadOptions::default()).unwrap().data;
    let at = bundle.windows(4).position(|bytes| bytes == b"\x7fELF").unwrap();
    let mut image = bundle[at..].to_vec();
    image.resize(usize::try_from(len).unwrap(), 0);
    bundle::bundle(&[("hipv4-amdgcn-amd-amdhsa--gfx1030", &image)], 1)
}

/// Makes the input with this name in the table.
fn make(place: &Path, name: &str, limit: &str) {
    let len = zeros(name, limit);
    match name {
        SIX_TAR_FILES => {
            let inner = (1..6)
                .rev()
                .map(|depth| packages::tar_header(b"in.tar", len + 4096 * depth, b'0', b""));
            tar_gz(place, "in.tar", &inner.collect::<Vec<_>>().concat(), len + 6 * 4096);
        }
        "a zip file of zeros in a tar file, gzip" => tar_gz(place, "a.zip", b"PK\x03\x04", len),
        "an ELF file of zeros in a tar file, gzip" => {
            let elf = fs::read(crate::common::data("hip.o")).unwrap();
            tar_gz(place, "a.o", &elf, len);
        }
        ZEROS => fs::write(place, ccob(vec![0; usize::try_from(len).unwrap()], MOST)).unwrap(),
        ONE_IMAGE => fs::write(place, ccob(bundle(len), MOST)).unwrap(),
        TEXT => {
            let image = vec![b' '; usize::try_from(len).unwrap()];
            let entries = [("hip-amdgcn-amd-amdhsa--gfx1030", &image[..])];
            let text = bundle_format::text::to_vec(Leader::Semicolon, &entries).unwrap();
            fs::write(place, ccob(text, MOST)).unwrap();
        }
        TWO => {
            let one = ccob(bundle(len), MOST / 2);
            let members = ["a", "b"].map(|name| Made::new(name, &one[..]));
            fs::write(place, packages::zip(&members, &Around::default())).unwrap();
        }
        _ => panic!("{name}: no such input"),
    }
}

/// Runs a command with limits of its address space, and of each file that it writes, in MiB.
fn limited(place: &Path, memory: u64, args: &[&str]) -> Output {
    let script = format!("ulimit -v {} && ulimit -f {} && exec \"$@\"", memory << 10, memory << 11);
    let tool = tool("offload");
    let mut command = new_command("/bin/sh");
    command.args(["-c", &script, "sh", tool]).args(args).current_dir(place);
    // Otherwise each thread reserves 64 MiB.
    command.env("MALLOC_ARENA_MAX", "1");
    command.output().unwrap()
}

#[test]
fn each_row_of_the_table_keeps_to_its_memory() {
    let page = include_str!("../../../../docs/reliability.md");
    let table = page.split("\n## Budgets").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = table.lines().filter(|line| line.starts_with('|') && line.contains("MiB"));
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let (mut count, mut made) = (0, ("", ""));
    for row in rows {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [input, limit, memory, commands] = cells[..] else { panic!("{row}") };
        if limit.is_empty() && !samples::faulty::is_thorough() {
            continue;
        }
        if made != (input, limit) {
            make(&place.join("input"), input, limit);
            made = (input, limit);
        }
        // Inputs at the limit are read.
        let may_exceed = !matches!(input, ZEROS | ONE_IMAGE | TEXT | TWO);
        let memory = memory.strip_suffix(" MiB").unwrap().parse().unwrap();
        for command in commands.split(", ").map(|name| name.trim_matches('`')) {
            let mut args = match command {
                "ls" | "kernels" | "verify" => vec![command, "input"],
                "same" => vec!["ls", "--same", "input"],
                "decompress" => vec!["decompress", "input", "-o", "output"],
                "recompress" => vec!["compress", "--recompress", "input", "-o", "output"],
                "tree" => vec!["ls", "--tree", "input"],
                "match" => vec!["match", "--gpu", "gfx906", "input"],
                "diff" => vec!["diff", "input", "input"],
                "extract" => vec!["extract", "input", "-o", "images"],
                "thin" => vec!["thin", "--keep", "gfx906", "input", "-o", "output"],
                other => panic!("{other}"),
            };
            // Members of a zip file are read by several, if they may be.
            args.extend(["--threads", if input == TWO { "2" } else { "1" }]);
            if !limit.is_empty() {
                args.extend(["--max-decompressed", limit]);
            }
            let output = limited(place, memory, &args);
            let errors = stderr(&output);
            let is_well = matches!(output.status.code(), Some(0 | 1)) && !errors.contains("memory");
            assert!(is_well, "{input}, {args:?}: {:?} {errors}", output.status);
            match errors.contains("limit") {
                true if limit.is_empty() => assert!(may_exceed, "{input}, {args:?}: {errors}"),
                true => assert!(errors.contains("67108864"), "{input}, {args:?}: {errors}"),
                false => {}
            }
            count += 1;
        }
    }
    assert_eq!(count, if samples::faulty::is_thorough() { 127 } else { 62 });
}
