//! Output of `ls`, `match` and `extract` for large files: totals, order, kinds, hashes; tables on a narrow terminal; lists
//! in messages.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::common::{data, offload, stderr, stdout};
use bundle_format::Layout;
use serde_json::Value;
use twox_hash::XxHash3_64;

/// A bundle for the host and these processors, each image larger than the one before.
fn bundle(gpus: &[&str]) -> Vec<u8> {
    let device = gpus.iter().map(|gpu| format!("hipv4-amdgcn-amd-amdhsa--{gpu}"));
    let ids: Vec<_> = [bundle_format::HIP_HOST_ID.to_owned()].into_iter().chain(device).collect();
    let images: Vec<Vec<u8>> = (0..ids.len()).map(|n| vec![1; 5000 * n]).collect();
    let entries = ids.iter().zip(&images).map(|(id, image)| (id.as_str(), image.len() as u64));
    let images: Vec<&[u8]> = images.iter().map(Vec::as_slice).collect();
    Layout::new(entries, 4096).unwrap().to_vec(&images).unwrap()
}

const MANY: [&str; 8] =
    ["gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"];

/// A file in a directory that lasts as long as the test.
fn file(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join(name);
    fs::write(&path, bytes).unwrap();
    (place, path)
}

fn rows(args: &[&str]) -> Vec<Value> {
    serde_json::from_str(&stdout(&offload(args))).unwrap()
}

/// Returns the output on a terminal of this size.
#[cfg(target_os = "linux")]
fn on_terminal(lines: u32, cells: u32, args: &[&str]) -> String {
    let offload = env!("CARGO_BIN_EXE_offload");
    let command = format!("stty rows {lines} cols {cells}; {offload} {}", args.join(" "));
    let mut script = Command::new("script");
    let output = script.args(["-qec", &command, "/dev/null"]).env("NO_COLOR", "1").output();
    stdout(&output.unwrap()).replace("\r\n", "\n")
}

#[test]
fn totals_only() {
    let (hip, packages) = (data("hip.o"), data("packages.offload"));
    let output = offload(["ls".as_ref(), "--totals".as_ref(), hip.as_os_str(), packages.as_ref()]);
    let text = stdout(&output);
    assert_eq!(text.matches("TOTAL FOR").count(), 3);
    assert!(text.contains("\nall 2 files  "), "{text}");
    assert!(!text.contains("TRIPLE") && !text.contains("section:"), "{text}");
    // The same totals as below rows.
    let whole = stdout(&offload(["ls".as_ref(), hip.as_os_str()]));
    let (_, below) = whole.split_once("TOTAL FOR").unwrap();
    assert!(text.contains(below), "{text}");
}

#[test]
#[cfg(target_os = "linux")]
fn large_files_show_totals_on_a_terminal() {
    let (_place, path) = file("many.hipfb", &bundle(&MANY));
    let path = path.to_str().unwrap();
    let text = on_terminal(8, 80, &["ls", path]);
    assert!(text.contains("TOTAL FOR") && !text.contains("bundle:0"), "{text}");
    assert!(text.contains("  9 images: --rows shows them\n"), "{text}");
    for args in [&["ls", "--rows", path][..], &["ls", "--tree", path], &["ls", "--hash", path]] {
        let text = on_terminal(8, 80, args);
        assert!(text.contains("bundle:0") && !text.contains("--rows"), "{args:?}: {text}");
    }
    assert!(on_terminal(9, 80, &["ls", path]).contains("bundle:0"));
}

#[test]
#[cfg(target_os = "linux")]
fn tables_fit_eighty_cells() {
    let hip = data("hip-two-units-ccob.so");
    let hip = hip.to_str().unwrap();
    let text = on_terminal(50, 80, &["ls", hip]);
    let table: Vec<_> = text.lines().skip(1).collect();
    assert!(table.iter().all(|line| line.chars().count() <= 80), "{text}");
    // The patterns of --in.
    assert!(text.contains("section:.hip_fatbin ccob:1 bundle:0"), "{text}");
    let text =
        on_terminal(50, 80, &["match", "--gpu", "gfx906,gfx90a:xnack-,gfx1100,gfx1201", hip]);
    let tables = text.lines().skip(1).filter(|line| line.starts_with(' '));
    assert!(tables.clone().count() > 4, "{text}");
    assert!(tables.clone().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn sorted_and_filtered() {
    let (_place, path) = file("many.hipfb", &bundle(&["gfx1100", "gfx906", "gfx90a"]));
    let path = path.to_str().unwrap();
    let targets = |args: &[&str]| -> Vec<String> {
        let args: Vec<_> = ["ls", "--json", path].iter().chain(args).copied().collect();
        let rows = rows(&args);
        rows.iter().map(|row| row["target"].as_str().unwrap_or("host").to_owned()).collect()
    };
    assert_eq!(targets(&[]), ["host", "gfx1100", "gfx906", "gfx90a"]);
    assert_eq!(targets(&["--sort", "file"]), targets(&[]));
    assert_eq!(targets(&["--sort", "size"]), ["gfx90a", "gfx906", "gfx1100", "host"]);
    assert_eq!(targets(&["--sort", "stored"]), targets(&["--sort", "size"]));
    assert_eq!(targets(&["--sort", "target"]), ["gfx1100", "gfx906", "gfx90a", "host"]);
    assert_eq!(targets(&["--kind", "hip"]), ["gfx1100", "gfx906", "gfx90a"]);
    assert_eq!(targets(&["--kind", "host"]), ["host"]);
    assert_eq!(targets(&["--kind", "hip", "--target", "gfx906"]), ["gfx906"]);
    let none = offload(["ls", "--kind", "cuda", path]);
    let expected = "none of its 4 images is of the given kind; it has gfx1100, gfx906, gfx90a";
    assert!(stderr(&none).contains(expected), "{}", stderr(&none));
    // Totals are sorted, too.
    let text = stdout(&offload(["ls", "--totals", "--sort", "size", path]));
    let place = |gpu| text.find(gpu).unwrap();
    assert!(place("gfx90a") < place("gfx906") && place("gfx906") < place("gfx1100"), "{text}");
}

#[test]
fn hashes_are_of_the_bytes() {
    let bundle = data("hip-ccob-v3.hipfb");
    let bundle = bundle.to_str().unwrap();
    let hashed = rows(&["ls", "--json", "--hash", bundle]);
    for row in &hashed {
        let index = row["index"].to_string();
        let image = offload(["extract", "--stdout", "--index", &index, bundle]).stdout;
        let expected = format!("{:016x}", XxHash3_64::oneshot(&image));
        assert_eq!(row["hash"].as_str(), Some(&expected[..]));
        // Read they were.
        assert!(row["image_format"].is_string());
        assert!(stdout(&offload(["ls", "--hash", bundle])).contains(&expected));
        assert!(stdout(&offload(["ls", "--hash", "--tree", bundle])).contains(&expected));
    }
    assert!(rows(&["ls", "--json", bundle]).iter().all(|row| row.get("hash").is_none()));
}

#[test]
fn extract_exact() {
    let hip = data("hip.o");
    let place = tempfile::tempdir().unwrap();
    let extract = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_offload"));
        let output = command
            .args(["extract", hip.to_str().unwrap(), "-o", place.path().to_str().unwrap()])
            .args(args)
            .output()
            .unwrap();
        (stdout(&output).lines().count(), stderr(&output))
    };
    // Generic code serves it, too.
    assert_eq!(extract(&["--target", "gfx906:xnack+"]).0, 2);
    assert_eq!(extract(&["--target", "gfx906:xnack+", "--exact"]).0, 1);
    let (written, error) = extract(&["--target", "gfx906", "--exact"]);
    assert!(written == 0 && error.contains("no image matches; it has #0"), "{error}");
    assert_eq!(extract(&["--kind", "hip", "--target", "gfx1100"]).0, 1);
    assert!(extract(&["--exact"]).1.contains("--target"));
}

#[test]
fn lists_in_messages_end_after_five() {
    let (place, path) = file("many.hipfb", &bundle(&MANY));
    let path = path.to_str().unwrap();
    let five = "gfx900, gfx906, gfx908, gfx90a, gfx942 and 3 more";
    let error = |args: &[&str]| stderr(&offload(args));
    let text = error(&["thin", "--dry-run", path, "--keep", "gfx803"]);
    let expected =
        format!("--keep gfx803: no such image; the file has {five}; --allow-missing ignores this");
    assert!(text.contains(&expected), "{text}");
    let text = error(&["thin", "--dry-run", path, "--drop", "gfx803"]);
    assert!(text.contains("; --allow-missing ignores this"), "{text}");
    let text = error(&["ls", path, "--target", "gfx803"]);
    assert!(text.contains(&format!("; it has {five}")), "{text}");
    let text = error(&["extract", path, "--target", "gfx803", "--stdout"]);
    assert!(
        text.contains("no image matches; it has #0 ") && text.ends_with(" and 4 more\n"),
        "{text}"
    );
    let out = place.path().join("out");
    let text = error(&[
        "remove",
        path,
        "--id",
        "hip-amdgcn-amd-amdhsa--gfx803",
        "-o",
        out.to_str().unwrap(),
    ]);
    assert!(
        text.contains("#4 ") && !text.contains("#5 ") && text.contains(" and 4 more"),
        "{text}"
    );
    let text = stdout(&offload(["match", "--gpu", "gfx803", path]));
    assert!(text.contains(&format!("built for {five}")), "{text}");
}
