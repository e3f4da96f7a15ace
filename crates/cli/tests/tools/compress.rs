//! `offload compress` and `offload decompress` on files that are compared. More is in `cases/compress`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::{data, ls, offload, stderr, stdout};
use serde_json::Value;

/// Two real bundles, the second at a page, with the first compressed or not.
fn two(place: &tempfile::TempDir, name: &str, first: &str) -> PathBuf {
    let mut bytes = fs::read(data(first)).unwrap();
    bytes.resize(bytes.len().next_multiple_of(4096), 0);
    bytes.extend(fs::read(data("hip.hipfb")).unwrap());
    let path = place.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn run(args: &[&OsStr]) -> Output {
    offload(args)
}

fn ok(args: &[&OsStr]) -> Output {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    output
}

fn names_in(directory: &Path) -> usize {
    fs::read_dir(directory).unwrap().count()
}

#[test]
fn there_and_back_with_every_option() {
    let place = tempfile::tempdir().unwrap();
    let plain = two(&place, "plain", "hip.hipfb");
    let (small, back) = (place.path().join("small"), place.path().join("back"));
    for options in [
        &[][..],
        &["--method", "zlib", "--level", "9"],
        &["--level", "-5", "--format-version", "2", "-j", "1"],
        &["--level", "99", "--threads", "3"],
        &["--method=zlib", "--level=99", "--format-version=2"],
    ] {
        let mut args =
            vec!["compress".as_ref(), plain.as_os_str(), "-o".as_ref(), small.as_os_str()];
        args.extend(options.iter().map(OsStr::new));
        let printed = stdout(&ok(&args));
        assert!(printed.contains("compressed") && printed.contains("all"), "{printed}");
        let bytes = fs::read(&small).unwrap();
        let version = if options.iter().any(|o| o.ends_with('2')) { 2 } else { 3 };
        assert_eq!((&bytes[..4], bytes[4]), (&b"CCOB"[..], version));
        assert_eq!(bytes[6], u8::from(!options.iter().any(|o| o.ends_with("zlib"))));
        let images = |path| ls(path).into_iter().map(|row| (row.id, row.size)).collect::<Vec<_>>();
        assert_eq!(images(&small), images(&plain));
        ok(&["decompress".as_ref(), small.as_os_str(), "-o".as_ref(), back.as_os_str()]);
        assert!(fs::read(&back).unwrap() == fs::read(&plain).unwrap(), "{options:?}");
    }
}

#[test]
fn in_place_leaves_alone_what_needs_nothing() {
    let place = tempfile::tempdir().unwrap();
    let mixed = two(&place, "mixed", "hip-ccob-v2.hipfb");
    let done = place.path().join("done");
    fs::copy(data("hip-ccob-v3.hipfb"), &done).unwrap();
    let before = fs::metadata(&done).unwrap().modified().unwrap();
    let images = |path| ls(path).into_iter().map(|row| (row.id, row.size)).collect::<Vec<_>>();
    let (mixed_images, done_images) = (images(&mixed), images(&done));
    let output = ok(&[
        "compress".as_ref(),
        "--in-place".as_ref(),
        "--json".as_ref(),
        mixed.as_os_str(),
        done.as_os_str(),
    ]);
    let words = "nothing to do, left alone: its 1 bundle is compressed already";
    assert!(stderr(&output).contains(words), "{}", stderr(&output));
    assert_eq!(fs::metadata(&done).unwrap().modified().unwrap(), before);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report[0]["changed"], true);
    assert_eq!(report[0]["containers"][0]["change"], "kept");
    assert_eq!(report[0]["containers"][1]["change"], "compressed");
    let bytes = fs::read(&mixed).unwrap();
    let starts: Vec<_> =
        (0..bytes.len() - 4).filter(|&at| bytes[at..].starts_with(b"CCOB")).collect();
    assert!(starts.len() == 2 && starts[1] % 4096 == 0, "{starts:?}");
    assert_eq!(report[0]["size_after"], fs::metadata(&mixed).unwrap().len());
    assert_eq!(report[1]["changed"], false);

    ok(&["decompress".as_ref(), "--in-place".as_ref(), mixed.as_os_str(), done.as_os_str()]);
    for (file, before) in [(&done, done_images), (&mixed, mixed_images)] {
        assert!(fs::read(file).unwrap().starts_with(b"__CLANG_OFFLOAD_BUNDLE__"));
        assert_eq!(images(file), before);
    }
    assert!(fs::read(&mixed).unwrap().ends_with(&fs::read(data("hip.hipfb")).unwrap()));
    assert_eq!(names_in(place.path()), 2);
}

#[test]
fn failures_leave_everything_as_it_was() {
    let place = tempfile::tempdir().unwrap();
    let mut bytes = fs::read(data("hip-ccob-v3.hipfb")).unwrap();
    bytes[24] ^= 1;
    let damaged = place.path().join("damaged");
    fs::write(&damaged, &bytes).unwrap();
    let good = two(&place, "good", "hip-ccob-v3.hipfb");
    let elf = data("host.o");
    let empty = place.path().join("empty");
    fs::write(&empty, "").unwrap();

    // the others are rewritten nevertheless
    let args =
        ["decompress".as_ref(), "--in-place".as_ref(), damaged.as_os_str(), good.as_os_str()];
    let output = run(&args);
    assert_eq!(output.status.code(), Some(1));
    let complaint = stderr(&output);
    assert!(
        complaint.contains("damaged: at byte 0x0: compressed bundle hash mismatch"),
        "{complaint}"
    );
    assert!(fs::read(&damaged).unwrap() == bytes);
    assert_eq!(ls(&good).len(), 5);
    assert!(fs::read(&good).unwrap().starts_with(b"__CLANG"));

    let out = place.path().join("out");
    fs::write(&out, "old").unwrap();
    for (input, words) in [
        (&damaged, "hash mismatch"),
        (&elf, "no device code found"),
        (&empty, "no device code found"),
        (&place.path().join("missing"), "missing: No such file or directory"),
        (&place.path().to_owned(), "Is a directory"),
    ] {
        let output =
            run(&["decompress".as_ref(), input.as_os_str(), "-o".as_ref(), out.as_os_str()]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
        assert_eq!(fs::read(&out).unwrap(), b"old");
    }
    assert_eq!(names_in(place.path()), 4);

    let output = run(&[
        "decompress".as_ref(),
        good.as_os_str(),
        "-o".as_ref(),
        place.path().join("no/such/place").as_os_str(),
    ]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no/such/place'"), "{}", stderr(&output));
}
