//! Edits of every kind of file, and through pipes. The rest is in `cases/edit`.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::process::Stdio;

use crate::common::{self, data, extract, ls, new_command, offload, stderr, tool};
use crate::editing::Place;
use serde_json::Value;

/// The images that stay for a GPU keep their bytes, and the rest of the file keeps its rows. Thinning again does nothing.
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
            let planned: Vec<Value> = common::rows(&planned.stdout);
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
            let facts = |row: &common::Row| {
                (row.id.clone(), row.kind.clone(), row.triple.clone(), row.target.clone(), row.size)
            };
            assert_eq!(
                left.iter().map(facts).collect::<Vec<_>>(),
                expected.iter().map(|row| facts(row)).collect::<Vec<_>>(),
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
fn thin_reads_and_writes_pipes() {
    let place = Place::new();
    let file = place.bundle("four");
    place.run(&["thin", "four", "--keep", "gfx1100", "-o", "out"]);
    let mut child = new_command(tool("offload"))
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
