//! The commands that edit device code in files, as users run them: what they keep, what they refuse, what they leave
//! behind when something goes wrong.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{self, data, extract, ls, offload, stderr, stdout};
use crate::editing::{Place, Snapshot, ids, names_in};
use serde_json::Value;

#[test]
fn thin_keeps_what_a_gpu_could_load() {
    let place = Place::new();
    let file = place.bundle("four");
    let out = place.path("out");
    let all = ls(&file);
    for (keep, kept, words) in [
        // Generic code, and features that were not given.
        (
            "gfx906",
            &["gfx9-generic", "gfx906:xnack+"][..],
            "also keeps gfx9-generic, gfx906:xnack+",
        ),
        ("gfx906:xnack+", &["gfx9-generic", "gfx906:xnack+"], "also keeps gfx9-generic, which"),
        ("gfx906:xnack-", &["gfx9-generic"], "also keeps gfx9-generic, which"),
        ("gfx90a:xnack-", &["gfx90a:sramecc+:xnack-"], "also keeps gfx90a:sramecc+:xnack-"),
        ("gfx1100", &["gfx1100"], ""),
        ("gfx1100,gfx90a", &["gfx1100", "gfx90a:sramecc+:xnack-"], "also keeps gfx90a:sramecc+"),
        ("hip-amdgcn-amd-amdhsa--gfx1100", &["gfx1100"], ""),
        ("gfx9-generic", &["gfx9-generic"], ""),
    ] {
        let output =
            offload(["thin", file.to_str().unwrap(), "--keep", keep, "-o", out.to_str().unwrap()]);
        assert!(output.status.success(), "{keep}: {}", stderr(&output));
        match words {
            "" => assert_eq!(stderr(&output), "", "{keep}"),
            _ => assert!(stderr(&output).contains(words), "{keep}: {}", stderr(&output)),
        }
        let left = ls(&out);
        let targets: Vec<_> = left.iter().filter_map(|row| row.target.as_deref()).collect();
        assert_eq!(targets, kept, "{keep}");
        assert_eq!(left[0].kind.as_deref(), Some("host"));
        for row in &left {
            let old = all.iter().find(|old| old.id == row.id).unwrap();
            assert!(extract(&out, row.index) == extract(&file, old.index), "{keep}");
        }
        // Thinning again changes nothing.
        let before = Snapshot::of(&place);
        let again = offload(["thin", "--in-place", out.to_str().unwrap(), "--keep", keep]);
        assert!(again.status.success(), "{keep}: {}", stderr(&again));
        assert!(stderr(&again).contains("nothing to do, left alone"), "{keep}: {}", stderr(&again));
        before.is_unchanged();
    }
}

#[test]
fn exact_keeps_nothing_else() {
    let place = Place::new();
    let file = place.bundle("four");
    let out = place.path("out");
    let output = place.run(&["thin", "four", "--keep", "gfx906:xnack+", "--exact", "-o", "out"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    assert_eq!(
        ids(&out),
        ["host-x86_64-unknown-linux-gnu-", "hipv4-amdgcn-amd-amdhsa--gfx906:xnack+"]
    );
    let before = Snapshot::of(&place);
    let output = place.run(&["thin", "four", "--keep", "gfx906", "--exact", "-o", "out"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--keep gfx906: no such image; the file has gfx1100, gfx9-"));
    before.is_unchanged();
    assert_eq!(ls(&file).len(), 5);
}

#[test]
fn drop_removes_just_that() {
    let place = Place::new();
    place.bundle("four");
    let out = place.path("out");
    for (drop, left) in [
        (&["gfx906"][..], &["gfx1100", "gfx9-generic", "gfx90a:sramecc+:xnack-"][..]),
        (&["gfx906:xnack+"], &["gfx1100", "gfx9-generic", "gfx90a:sramecc+:xnack-"]),
        (&["gfx9-generic", "gfx1100"], &["gfx906:xnack+", "gfx90a:sramecc+:xnack-"]),
        (&["hipv4-amdgcn-amd-amdhsa--gfx90a"], &["gfx1100", "gfx9-generic", "gfx906:xnack+"]),
    ] {
        let mut args = vec!["thin", "four", "-o", "out"];
        args.extend(drop.iter().flat_map(|id| ["--drop", id]));
        let output = place.run(&args);
        assert!(output.status.success(), "{drop:?}: {}", stderr(&output));
        let rows = ls(&out);
        let targets: Vec<_> = rows.iter().filter_map(|row| row.target.as_deref()).collect();
        assert_eq!(targets, left, "{drop:?}");
    }
}

#[test]
fn what_cannot_be_is_refused_and_nothing_written() {
    let place = Place::new();
    place.bundle("four");
    place.two_bundles("two");
    fs::write(place.path("empty"), "").unwrap();
    fs::write(place.path("text"), "hello").unwrap();
    fs::copy(data("host.o"), place.path("host.o")).unwrap();
    fs::write(place.path("bad"), &fs::read(place.path("four")).unwrap()[..9000]).unwrap();
    fs::write(place.path("out"), "old").unwrap();
    fs::write(place.path("gfx1100"), fs::read(place.path("images/gfx1100")).unwrap()).unwrap();
    let before = Snapshot::of(&place);
    for (args, words) in [
        (
            &["thin", "four", "--keep", "gfx942"][..],
            "four: --keep gfx942: no such image; the file has gfx1100, gfx9-generic, gfx906:xnack+, gfx90a",
        ),
        (
            &["thin", "four", "--keep", "gfx9066"],
            "four: --keep gfx9066: did you mean gfx906? The file has",
        ),
        (
            &["thin", "four", "--keep", "hip-amdgcn-amd-amdhsa--GFX1100"],
            "four: --keep hip-amdgcn-amd-amdhsa--GFX1100: did you mean gfx1100?",
        ),
        (&["thin", "four", "--keep", "gfx1100,gfx803"], "--keep gfx803: no such image"),
        (&["thin", "four", "--drop", "gfx906:xnack-"], "--drop gfx906:xnack-: no such image"),
        (
            &["thin", "four", "--drop", "gfx1100,gfx906,gfx90a,gfx9-generic"],
            "gfx9-generic leaves no image in bundle:0 (has: gfx1100, gfx9-generic, gfx906",
        ),
        (
            &["thin", "two", "--keep", "gfx906"],
            "two: --keep gfx906 matches no image of bundle:1 (has: gfx1100)",
        ),
        (&["thin", "text", "--keep", "gfx906"], "text: no device code found"),
        (&["thin", "empty", "--keep", "gfx906"], "empty: no device code found"),
        (&["thin", "host.o", "--keep", "gfx906"], "host.o: no device code found"),
        (&["thin", "bad", "--keep", "gfx906"], "bad: at byte 0x0: "),
        (&["thin", "missing", "--keep", "gfx906"], "missing: No such file or directory"),
        (&["thin", "images", "--keep", "gfx906"], "images: Is a directory"),
        (
            &["remove", "four", "--id", "gfx1100"],
            "four: no image is 'gfx1100'; there is #0 host-x86_64-unknown-linux-gnu- in bundle:0, #1 ",
        ),
        (&["remove", "four", "--index", "9"], "four: no image 9; there is #0"),
        (
            &["remove", "four", "--index", "1", "--index", "2", "--index", "3", "--index", "4"],
            "no image would be left in bundle:0 (has: gfx1100",
        ),
        (
            &["remove", "four", "--index", "1", "--in", "bundle:7"],
            "four: nothing in bundle:7; there is bundle:0",
        ),
        (
            &["replace", "two", "gfx1100=gfx1100"],
            "two: 2 images are 'gfx1100': #1 hipv4-amdgcn-amd-amdhsa--gfx1100 in bundle:0, #6 hipv4-amdgcn-amd-amdhsa--gfx1100 in bundle:1; choose one by its number, or its container by --in",
        ),
        (&["replace", "four", "gfx942=gfx1100"], "four: no image is 'gfx942'; there is #0"),
        (
            &["replace", "four", "gfx906:xnack+=gfx1100"],
            "four: 'gfx1100' is not an image for hipv4-amdgcn-amd-amdhsa--gfx906:xnack+: the code object is for gfx1100",
        ),
        (
            &["replace", "four", "gfx1100=text"],
            "unknown where an AMD GPU code object or LLVM bitcode is expected",
        ),
        (&["replace", "four", "gfx1100=nothing"], "'nothing': No such file or directory"),
        (&["replace", "four", "gfx1100"], "'gfx1100': expected ID=FILE"),
        (
            &["replace", "four", "1=gfx1100", "gfx1100=gfx1100"],
            "four: '1' and 'gfx1100' are both image 1",
        ),
        (&["add", "four", "hip-amdgcn-amd-amdhsa--gfx1100=gfx1100"], "which mean the same"),
        (
            &["add", "four", "hipv4-amdgcn-amd-amdhsa--gfx1101=gfx1100"],
            "is not an image for hipv4-amdgcn-amd-amdhsa--gfx1101: the code object is for gfx1100",
        ),
        (&["add", "four", "odd-amdgcn-amd-amdhsa--gfx1100=gfx1100"], "unknown offload kind 'odd'"),
        (&["add", "four", "gfx1100=gfx1100"], "gfx1100"),
        (
            &["add", "two", "hipv4-amdgcn-amd-amdhsa--gfx942=gfx1100", "--any-image"],
            "two: 2 places to add to: bundle:0, bundle:1; choose one by --in",
        ),
        (
            &["add", "host.o", "hipv4-amdgcn-amd-amdhsa--gfx1100=gfx1100"],
            "host.o: no device code found",
        ),
    ] {
        for output in [&["-o", "out"][..], &["-o", "new"], &["--in-place"], &["--dry-run"]] {
            let args = [args, output].concat();
            let output = place.run(&args);
            assert_eq!(output.status.code(), Some(1), "{args:?}: {}", stdout(&output));
            let complaint = stderr(&output);
            assert!(
                complaint.starts_with("offload: error: ") && complaint.contains(words),
                "{args:?}: {complaint}"
            );
            assert_eq!(stdout(&output), "", "{args:?}");
            before.is_unchanged();
        }
    }
}

#[test]
fn ids_may_be_missing_and_containers_empty_when_allowed() {
    let place = Place::new();
    place.bundle("four");
    place.two_bundles("two");
    let output =
        place.run(&["thin", "four", "--keep", "gfx1100,gfx803", "--allow-missing", "-o", "out"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(ids(&place.path("out")).len(), 2);
    let output = place.run(&["thin", "two", "--keep", "gfx906", "--allow-empty", "-o", "out"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let host = "host-x86_64-unknown-linux-gnu-";
    let hip = |target| format!("hipv4-amdgcn-amd-amdhsa--{target}");
    assert_eq!(ids(&place.path("out")), [host, &hip("gfx9-generic"), &hip("gfx906:xnack+"), host]);
}

#[test]
fn a_dry_run_says_what_would_be() {
    let place = Place::new();
    let file = place.bundle("four");
    let size = fs::metadata(&file).unwrap().len();
    let before = Snapshot::of(&place);
    for more in [&[][..], &["-o", "out"], &["--in-place"], &["-o", "-"]] {
        let output =
            place.run(&[&["thin", "four", "--drop", "gfx906", "--dry-run"], more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let printed = stdout(&output);
        let lines: Vec<_> = printed.lines().collect();
        assert!(
            lines[0].starts_with("four  19.7 KiB -> ") && lines[0].ends_with(", not written"),
            "{printed}"
        );
        let row = |target: &str| {
            let line = lines.iter().find(|line| line.trim_start().starts_with(target)).unwrap();
            line.split("  ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
                .map(String::from)
                .collect::<Vec<_>>()
        };
        assert_eq!(row("TARGET"), ["TARGET", "IMAGES", "LEFT", "BEFORE", "AFTER"]);
        assert_eq!(row("gfx1100"), ["gfx1100", "1", "1", "3.1 KiB", "3.1 KiB"]);
        assert_eq!(row("gfx906"), ["gfx906:xnack+", "1", "0", "2.7 KiB", "0 B"]);
        before.is_unchanged();
    }
    // What it says is what comes.
    let json = |output: &std::process::Output| -> Value {
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let planned = json(&place.run(&["thin", "four", "--drop", "gfx906", "--dry-run", "--json"]));
    let done = json(&place.run(&["thin", "four", "--drop", "gfx906", "--in-place", "--json"]));
    assert_eq!(planned[0]["dry_run"], true);
    assert_eq!(done[0]["dry_run"], false);
    for key in ["file", "changed", "size_before", "size_after", "targets", "containers", "notes"] {
        assert_eq!(planned[0][key], done[0][key], "{key}");
    }
    assert_eq!(done[0]["size_before"], size);
    assert_eq!(done[0]["size_after"], fs::metadata(&file).unwrap().len());
    assert_eq!(done[0]["containers"][0]["path"][0], "bundle:0");
    assert_eq!(done[0]["targets"][2]["target"], "gfx906:xnack+");
    assert_eq!(done[0]["targets"][2]["images_after"], 0);
}

#[test]
fn several_files_are_edited_each_by_itself() {
    let place = Place::new();
    place.bundle("a");
    place.bundle("c");
    fs::write(place.path("b"), "hello").unwrap();
    let output = place.run(&["thin", "--in-place", "--keep=gfx1100", "a", "b", "missing", "c"]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = stderr(&output);
    assert_eq!(complaint.lines().count(), 2, "{complaint}");
    assert!(
        complaint.contains("b: no device code found") && complaint.contains("missing: No such")
    );
    for name in ["a", "c"] {
        assert_eq!(ids(&place.path(name)).len(), 2);
    }
    assert_eq!(stdout(&output).matches(" -> ").count(), 2);
}

#[test]
fn what_needs_nothing_is_copied_to_the_output() {
    let place = Place::new();
    let file = place.bundle("four");
    let output = place.run(&["thin", "four", "--keep", "gfx1100,gfx906,gfx90a", "-o", "out"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("four: nothing to do, copied"), "{}", stderr(&output));
    // Unless that is the file itself.
    let before = Snapshot::of(&place);
    let again = place.ok(&["thin", "four", "--keep", "gfx1100,gfx906,gfx90a", "-o", "./four"]);
    assert!(stderr(&again).contains("four: nothing to do, left alone"), "{}", stderr(&again));
    before.is_unchanged();
    assert_eq!(stdout(&output), "");
    assert!(fs::read(place.path("out")).unwrap() == fs::read(file).unwrap());
}

#[test]
fn entries_are_removed_replaced_and_added() {
    let place = Place::new();
    place.two_bundles("two");
    let two = place.path("two");
    let out = place.path("out");
    let hip = |target: &str| format!("hipv4-amdgcn-amd-amdhsa--{target}");

    // An ID wherever it is, or in one place; or by number.
    for (args, left) in [
        (&["--id", &*hip("gfx9-generic")][..], &[0, 1, 3, 4, 5, 6][..]),
        (&["--id", &hip("gfx906:xnack+"), "--index", "4"], &[0, 1, 2, 5, 6]),
    ] {
        let output = place.run(&[&["remove", "two", "-o", "out"], args].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let all = ids(&two);
        let left: Vec<_> = left.iter().map(|&n| all[n].clone()).collect();
        assert_eq!(ids(&out), left, "{args:?}");
    }

    // Larger, smaller.
    let small = place.path("images/gfx9-generic");
    let large = place.path("large");
    let mut bytes = fs::read(place.path("images/gfx1100")).unwrap();
    bytes.resize(50_000, 7);
    fs::write(&large, &bytes).unwrap();
    for (id, number, file, more) in [
        ("6", 6, &large, &[][..]),
        ("gfx1100", 6, &large, &["--in", "bundle:1"]),
        ("#1", 1, &small, &["--any-image"]),
        (&hip("gfx90a:sramecc+:xnack-"), 4, &small, &["--any-image"]),
        ("gfx90a:xnack-:sramecc+", 4, &small, &["--any-image"]),
    ] {
        let argument = format!("{id}={}", file.display());
        let output = place.run(&[&["replace", "two", &argument, "-o", "out"], more].concat());
        assert!(output.status.success(), "{id}: {}", stderr(&output));
        assert_eq!(ids(&out), ids(&two));
        for row in ls(&out) {
            let expected = match row.index == number {
                true => fs::read(file).unwrap(),
                false => extract(&two, row.index),
            };
            assert!(extract(&out, row.index) == expected, "{id}: {}", row.index);
        }
    }

    let output = place.run(&[
        "add",
        "two",
        &format!("hipv4-amdgcn-amd-amdhsa--gfx803={}", large.display()),
        "--in",
        "bundle:0",
        "--any-image",
        "-o",
        "out",
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let mut expected = ids(&two);
    expected.insert(5, hip("gfx803"));
    assert_eq!(ids(&out), expected);
    assert!(extract(&out, 5) == bytes);
    // And back, though the entry's name is not what it holds.
    let output = place.run(&["remove", "out", "--index", "5", "--in-place", "--allow-findings"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(fs::read(out).unwrap() == fs::read(two).unwrap());
}

#[test]
fn ids_that_do_not_go_together_are_refused() {
    let place = Place::new();
    place.bundle("four");
    let before = Snapshot::of(&place);
    for (id, words) in [
        ("hip-amdgcn-amd-amdhsa--gfx1100", "which mean the same"),
        ("hipv4-amdgcn-amd-amdhsa--gfx906", "xnack"),
    ] {
        let argument = format!("{id}=images/gfx1100");
        let output = place.run(&["add", "four", &argument, "-o", "out", "--any-image"]);
        assert_eq!(output.status.code(), Some(1));
        let complaint = stderr(&output);
        assert!(
            complaint.starts_with("offload: error: four: bundle:0: ") && complaint.contains(words),
            "{complaint}"
        );
        before.is_unchanged();
    }
}

/// `offload ls` also counts what lies in images, which are edited as a whole.
#[test]
fn numbers_are_those_of_ls() {
    let place = Place::new();
    fs::copy(data("hip.o"), place.path("host")).unwrap();
    let host = "host-x86_64-unknown-linux-gnu-";
    let hip = "hipv4-amdgcn-amd-amdhsa--gfx1100";
    place.ok(&[
        "bundle",
        "-o",
        "nested",
        "--type=bc",
        &format!("{host}=host"),
        &format!("{hip}=images/gfx1100"),
    ]);
    let rows = ls(&place.path("nested"));
    let last = rows.last().unwrap();
    assert_eq!((rows.len(), last.index, last.id.as_deref()), (7, 6, Some(hip)));

    place.ok(&["replace", "nested", "6=images/gfx90a:sramecc+:xnack-", "--any-image", "-o", "out"]);
    let image = fs::read(place.path("images/gfx90a:sramecc+:xnack-")).unwrap();
    assert!(extract(&place.path("out"), 6) == image);
    let before = Snapshot::of(&place);
    let output = place.run(&["remove", "nested", "--index", "2", "--in-place"]);
    assert_eq!(output.status.code(), Some(1));
    let words =
        "no such image to edit 2; there is #0 host-x86_64-unknown-linux-gnu- in bundle:0, #6 hipv4";
    assert!(stderr(&output).contains(words), "{}", stderr(&output));
    before.is_unchanged();
}

/// Device code in a linked file has a place, and gets another one only when asked.
#[test]
fn linked_files_grow_when_asked() {
    let place = Place::new();
    let out = place.path("out");
    let mut large = fs::read(place.path("images/gfx1100")).unwrap();
    large.resize(50_000, 7);
    fs::write(place.path("large"), &large).unwrap();
    for (name, args) in [
        ("hip-two-units.so", &["replace", "file", "gfx1100=large", "--in=bundle:0"][..]),
        (
            "hip-two-units.so",
            &[
                "add",
                "file",
                "hipv4-amdgcn-amd-amdhsa--gfx1101=large",
                "--in=bundle:0",
                "--any-image",
            ],
        ),
        ("hip.dll", &["replace", "file", "gfx1100=large"]),
        ("hip-two-units-ccob.so", &["decompress", "file"]),
        ("hip.dll", &["decompress", "file"]),
    ] {
        fs::copy(data(name), place.path("file")).unwrap();
        let grown = if args[0] == "replace" { Some(1) } else { None };
        let args = [args, &["-o", "out"]].concat();
        // In a compressed bundle the large image has room enough.
        if name != "hip.dll" || args[0] == "decompress" {
            let output = place.run(&args);
            assert_eq!(output.status.code(), Some(1), "{name}");
            assert!(stderr(&output).ends_with("(--grow)\n"), "{name}: {}", stderr(&output));
            assert!(!out.exists());
        }
        let output = place.run(&[&args[..], &["--grow"]].concat());
        assert!(output.status.success(), "{name}: {}", stderr(&output));
        let is_misnamed = args.contains(&"--any-image");
        let verified = offload([OsStr::new("verify"), out.as_os_str()]);
        assert_eq!(verified.status.code(), Some(i32::from(is_misnamed)), "{name}");
        // Equal IDs stay in their order; what is added is none of the old ones.
        let mut new: Vec<_> = ls(&out).into_iter().rev().collect();
        for old in ls(&data(name)) {
            let row = loop {
                let row = new.pop().unwrap();
                if row.id == old.id {
                    break row;
                }
            };
            let expected = match Some(old.index) == grown {
                true => large.clone(),
                false => extract(&data(name), old.index),
            };
            assert!(extract(&out, row.index) == expected, "{name} {}", old.index);
        }
        fs::remove_file(&out).unwrap();
    }
}

/// Of every kind of file: what stays for a GPU is all that a GPU could load, with the bytes it had; the rest of the file
/// says the same as before, and nothing is left to do.
#[test]
fn every_kind_of_file_is_thinned() {
    let place = Place::new();
    let out = place.path("out");
    for (name, keeps) in [
        ("hip.o", &["gfx1100", "gfx9-generic", "gfx906:xnack+", "gfx90a:sramecc+:xnack-"][..]),
        ("hip-ccob-v2.hipfb", &["gfx1100", "gfx906"]),
        ("hip-ccob-v3.hipfb", &["gfx1100", "gfx906"]),
        ("hip-ccob-v3.o", &["gfx1100", "gfx90a:sramecc+:xnack-"]),
        ("hip-two-units-ccob.so", &["gfx1100", "gfx906"]),
        ("hip-two-units.so", &["gfx1100"]),
        ("hip.dll", &["gfx1100", "gfx906"]),
        ("hip.obj", &["gfx1100", "gfx906"]),
        ("hip.lib", &["gfx1100", "gfx906"]),
        ("libhip.a", &["gfx1100"]),
        ("merged-packager.o", &["gfx1100", "gfx90a", "sm_70"]),
        ("openmp-packager.o", &["gfx90a", "sm_70"]),
        ("packages.offload", &["gfx1100", "gfx90a", "sm_70"]),
        ("bundle.hipi", &["gfx906:xnack+", "gfx906:xnack-"]),
        ("bundle.o", &["gfx906:xnack-"]),
        ("bundle.bc", &["gfx906:xnack-"]),
    ] {
        let file = data(name);
        let all = ls(&file);
        for keep in keeps {
            let args = [
                "thin",
                file.to_str().unwrap(),
                "--keep",
                keep,
                "--exact",
                "-o",
                out.to_str().unwrap(),
            ];
            let planned = offload(args.iter().chain(&["--dry-run", "--json"]));
            let planned: Value = serde_json::from_slice(&planned.stdout).unwrap();
            let output = offload(args);
            assert!(output.status.success(), "{name} {keep}: {}", stderr(&output));
            assert_eq!(
                planned[0]["size_after"],
                fs::metadata(&out).unwrap().len(),
                "{name} {keep}"
            );
            let left = ls(&out);
            let expected: Vec<_> = all
                .iter()
                .filter(|row| {
                    row.kind.as_deref() == Some("host") || row.target.as_deref() == Some(keep)
                })
                .collect();
            let what = |row: &common::Row| {
                (row.id.clone(), row.kind.clone(), row.triple.clone(), row.target.clone(), row.size)
            };
            assert_eq!(
                left.iter().map(what).collect::<Vec<_>>(),
                expected.iter().map(|row| what(row)).collect::<Vec<_>>(),
                "{name} {keep}"
            );
            for (row, old) in left.iter().zip(expected) {
                assert!(extract(&out, row.index) == extract(&file, old.index), "{name} {keep}");
            }
            assert!(
                offload([OsStr::new("verify"), out.as_os_str()]).status.success(),
                "{name} {keep}"
            );
            let again =
                offload(["thin", "--in-place", "--keep", keep, "--exact", out.to_str().unwrap()]);
            assert!(
                stderr(&again).contains("nothing to do, left alone"),
                "{name} {keep}: {}",
                stderr(&again)
            );
        }
    }
}

#[test]
fn other_vendors_code_goes_and_portable_code_stays() {
    let place = Place::new();
    let out = place.path("out");
    let file = data("packages.offload");
    let thin = |more: &[&str]| {
        let args = ["thin", file.to_str().unwrap(), "-o", out.to_str().unwrap()];
        offload(args.iter().chain(more))
    };
    let formats = || ls(&out).into_iter().filter_map(|row| row.image_format).collect::<Vec<_>>();
    let kept = |more: &[&str]| {
        let output = thin(more);
        assert!(output.status.success(), "{}", stderr(&output));
        (formats(), stderr(&output))
    };
    assert_eq!(kept(&["--keep", "sm_70"]).0, ["ptx", "cubin"]);
    assert_eq!(kept(&["--keep", "sm_70", "--exact"]).0, ["ptx", "cubin"]);
    // PTX is compiled for any later GPU, machine code runs on its own generation.
    assert_eq!(kept(&["--keep", "sm_90"]).0, ["ptx"]);
    assert_eq!(kept(&["--keep", "sm_72"]).0, ["ptx", "cubin"]);
    assert_eq!(kept(&["--drop", "sm_70"]).0, ["elf", "bitcode", "spirv"]);
    let (formats, said) = kept(&["--keep", "intel_gpu_pvc"]);
    assert_eq!(formats, ["spirv"]);
    assert!(said.contains("--keep intel_gpu_pvc also keeps generic (SPIR-V), which"), "{said}");
}

#[test]
fn what_cannot_be_edited_is_said_to_be_so() {
    let place = Place::new();
    let before = Snapshot::of(&place);
    let out = place.path("out");
    for (name, args, words) in [
        (
            "hip-macos.o",
            &["thin", "--keep", "gfx1100"][..],
            "device code in Mach-O files cannot be edited",
        ),
        (
            "libhip-darwin.a",
            &["thin", "--keep", "gfx1100"],
            "device code in Mach-O files cannot be edited (--allow-uneditable leaves code for",
        ),
        (
            "libhip-thin.a",
            &["thin", "--keep", "gfx1100"],
            "thin archives cannot be edited; edit the files they reference",
        ),
        (
            "bundle-proposal.s",
            &["remove", "--allow-empty", "--id", "openmp gfx906, the fast one"],
            "cannot be edited",
        ),
        ("hip-two-units-ccob.so", &["decompress"], "(--grow)"),
        (
            "libbundles.a",
            &["thin", "--keep", "sm_70"],
            "--keep sm_70 matches no image of member:bundled-shift.bc/bundle:0 (has: gfx906:sramecc-:xnack+)",
        ),
    ] {
        let file = data(name);
        let old = fs::read(&file).unwrap();
        let args =
            args.iter().map(OsStr::new).chain([file.as_os_str(), "-o".as_ref(), out.as_os_str()]);
        let output = offload(args);
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert!(stderr(&output).contains(words), "{name}: {}", stderr(&output));
        assert!(fs::read(&file).unwrap() == old);
        before.is_unchanged();
    }
}

#[test]
fn compressing_is_undone_by_decompressing() {
    let place = Place::new();
    let (small, back) = (place.path("small"), place.path("back"));
    place.two_bundles("two");
    for (file, version) in [
        (data("hip.o"), 2),
        (data("hip-two-units.so"), 2),
        (data("libbundles.a"), 2),
        (data("bundle.hipi"), 3),
        (place.path("two"), 3),
    ] {
        let name = file.display();
        let run = |args: &[&OsStr]| {
            let output = offload(args);
            assert!(output.status.success(), "{name}: {}", stderr(&output));
        };
        run(&["compress".as_ref(), file.as_os_str(), "-o".as_ref(), small.as_os_str()]);
        let bytes = fs::read(&small).unwrap();
        assert!(bytes.len() < fs::read(&file).unwrap().len(), "{name}");
        let mut starts = (0..bytes.len() - 6).filter(|&at| bytes[at..].starts_with(b"CCOB"));
        assert!(starts.all(|at| bytes[at + 4] == version), "{name}");
        run(&["decompress".as_ref(), small.as_os_str(), "-o".as_ref(), back.as_os_str()]);
        assert!(fs::read(&back).unwrap() == fs::read(&file).unwrap(), "{name}");
    }
    // Files that hold no plain bundle.
    for (name, words) in [
        (
            "packages.offload",
            "5 offload binaries are of version 3 now, which LLVM 23 and older do not",
        ),
        ("merged-packager.o", "3 offload binaries stay plain: versions 1 and 2"),
        ("hip-ccob-v3.o", "nothing to do: its 1 bundle is compressed already"),
        (
            "bundle-proposal.s",
            "text bundles with markers only after their entries cannot be edited and stay as they are",
        ),
    ] {
        let file = data(name);
        let args = ["compress", "--dry-run", "--allow-uneditable", file.to_str().unwrap()];
        let output = offload(args);
        assert!(output.status.success(), "{name}");
        assert!(stderr(&output).contains(words), "{name}: {}", stderr(&output));
    }
}

#[test]
fn pipes_in_and_out() {
    let place = Place::new();
    let file = place.bundle("four");
    place.run(&["thin", "four", "--keep", "gfx1100", "-o", "out"]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_offload"))
        .args(["thin", "-", "-o", "-", "--keep", "gfx1100"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&fs::read(file).unwrap()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(output.stdout == fs::read(place.path("out")).unwrap());
}

#[test]
fn wrong_usage_exits_with_2() {
    for args in [
        &["thin", "x", "-o", "y"][..],
        &["thin", "x", "--keep", "gfx906"],
        &["thin", "--keep", "gfx906", "-o", "y"],
        &["thin", "x", "--keep", "gfx906", "--drop", "gfx90a", "-o", "y"],
        &["thin", "x", "--keep", "gfx906:nonsense+", "-o", "y"],
        &["thin", "x", "--keep", "", "-o", "y"],
        &["thin", "x", "--keep", "GFX1100", "-o", "y"],
        &["thin", "x", "--drop", "my gpu", "-o", "y"],
        &["thin", "x", "--drop", "gfx906", "--exact", "-o", "y"],
        &["thin", "x", "--keep", "gfx906", "-o", "y", "--in-place"],
        &["thin", "x", "z", "--keep", "gfx906", "-o", "y"],
        &["thin", "-", "--keep", "gfx906", "--in-place"],
        &["thin", "x", "--keep", "gfx906", "-o", "-", "--json"],
        &["remove", "x", "-o", "y"],
        &["remove", "x", "--id", "", "-o", "y"],
        &["remove", "x", "--index", "a", "-o", "y"],
        &["replace", "x", "-o", "y"],
        &["add", "x", "-o", "y"],
    ] {
        let output = offload(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).starts_with("error: "), "{args:?}");
    }
}

#[test]
fn packages_of_python_have_a_stale_record() {
    let place = Place::new();
    let four = place.bundle("four");
    for (directory, is_stale) in
        [("lib/site-packages/foo/lib", true), ("wheel/foo/lib", true), ("other", false)]
    {
        let directory = place.path(directory);
        fs::create_dir_all(&directory).unwrap();
        fs::copy(&four, directory.join("x")).unwrap();
        let record = place.path("wheel/foo-1.0.dist-info");
        fs::create_dir_all(&record).unwrap();
        fs::write(record.join("RECORD"), "").unwrap();
        let file = directory.join("x");
        let args = [
            OsStr::new("thin"),
            "--in-place".as_ref(),
            "--keep=gfx1100".as_ref(),
            file.as_os_str(),
        ];
        let output = offload(args);
        assert!(output.status.success(), "{}", stderr(&output));
        let words = "the RECORD of its Python package still has the old size and hash";
        assert_eq!(stderr(&output).contains(words), is_stale, "{}", stderr(&output));
        // Nothing is stale when nothing was done.
        assert!(!stderr(&offload(args)).contains("RECORD"));
    }
}

#[test]
fn no_file_is_left_behind() {
    let place = Place::new();
    place.bundle("four");
    let before = names_in(place.root());
    for args in
        [&["--keep", "gfx1100"][..], &["--keep", "gfx942"], &["--drop", "gfx1100", "--dry-run"]]
    {
        place.run(&[&["thin", "four", "--in-place"], args].concat());
        assert_eq!(names_in(place.root()), before);
    }
    let missing: &Path = &place.path("no/such/place");
    let output = place.run(&["thin", "four", "--keep=gfx1100", "-o", missing.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no/such/place'"), "{}", stderr(&output));
}

/// The same bundle with the ID of its second entry damaged.
fn damaged_id(place: &Place, name: &str) -> Vec<u8> {
    let mut bytes = fs::read(place.bundle(name)).unwrap();
    let at = bytes.windows(12).position(|window| window == b"hipv4-amdgcn").unwrap();
    bytes[at + 11..at + 17].fill(0);
    fs::write(place.path(name), &bytes).unwrap();
    bytes
}

/// `thin` removed an image whose ID was damaged, and with it what showed the damage.
#[test]
fn what_does_not_verify_is_not_edited() {
    let place = Place::new();
    let bytes = damaged_id(&place, "four");
    let archive = {
        let mut archive = b"!<arch>\n".to_vec();
        archive.extend(format!("{:<48}{:<10}`\n", "four/", bytes.len()).bytes());
        [archive, bytes.clone()].concat()
    };
    fs::write(place.path("four.a"), &archive).unwrap();
    for (name, bytes) in [("four", &bytes), ("four.a", &archive)] {
        let verified = place.run(&["verify", name]);
        assert_eq!(verified.status.code(), Some(1));
        let finding = stdout(&verified).trim_end().to_owned();
        assert!(finding.contains("bundle:0 at byte "), "{finding}");
        let commands: [&[&str]; 6] = [
            &["thin", "--keep", "gfx9-generic", "--exact"],
            &["remove", "--id", "hipv4-amdgcn-amd-amdhsa--gfx9-generic"],
            &["replace", "gfx9-generic=images/gfx1100", "--any-image"],
            &["add", "hipv4-amdgcn-amd-amdhsa--gfx942=images/gfx9-generic", "--any-image"],
            &["compress"],
            &["compress", "--recompress"],
        ];
        for command in commands {
            let mut args = command.to_vec();
            args.insert(1, name);
            args.push("--in-place");
            let output = place.run(&args);
            assert_eq!(output.status.code(), Some(1), "{args:?}: {}", stderr(&output));
            let message = stderr(&output);
            assert!(message.contains(&finding), "{message}");
            assert!(message.contains("--allow-findings"), "{message}");
            assert!(&fs::read(place.path(name)).unwrap() == bytes, "{args:?}");
            args.push("--allow-findings");
            let output = place.ok(&args);
            assert!(
                stderr(&output).contains(&format!("warning: {finding}")),
                "{}",
                stderr(&output)
            );
            assert!(&fs::read(place.path(name)).unwrap() != bytes, "{args:?}");
            fs::write(place.path(name), bytes).unwrap();
        }
    }
}

#[test]
fn wrong_hashes_are_edited_only_if_that_is_allowed() {
    let place = Place::new();
    let mut bytes = fs::read(data("hip-ccob-v3.hipfb")).unwrap();
    bytes[24] ^= 1;
    let images = |name| ls(&place.path(name)).into_iter().map(|row| row.id).collect::<Vec<_>>();
    for command in
        [&["decompress"][..], &["compress", "--recompress"], &["thin", "--keep", "gfx1100"]]
    {
        fs::write(place.path("file"), &bytes).unwrap();
        let mut args = command.to_vec();
        args.extend(["file", "--in-place"]);
        let output = place.run(&args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let message = stderr(&output);
        assert!(
            message.contains("hash mismatch") && message.contains("--allow-findings"),
            "{message}"
        );
        assert!(fs::read(place.path("file")).unwrap() == bytes);
        args.push("--allow-findings");
        let message = stderr(&place.ok(&args));
        assert!(message.contains("hash mismatch") && message.contains("warning"), "{message}");
        place.ok(&["verify", "file"]);
        assert!(images("file").len() > 1);
    }
}

/// Parts that an edit does not touch stay in the file, too.
#[test]
fn compress_checks_what_is_compressed_already() {
    let place = Place::new();
    let mut stored = fs::read(data("hip-ccob-v3.hipfb")).unwrap();
    stored[24] ^= 1;
    let file = [fs::read(place.bundle("four")).unwrap(), stored].concat();
    fs::write(place.path("mixed"), &file).unwrap();
    let output = place.run(&["compress", "mixed", "--in-place"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("hash mismatch"), "{}", stderr(&output));
    assert!(fs::read(place.path("mixed")).unwrap() == file);
}
