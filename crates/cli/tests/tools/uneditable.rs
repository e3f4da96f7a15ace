//! Device code that cannot be edited: commands fail, unless it may stay.

use std::fs;

use crate::common::{data, ls, stderr, stdout};
use crate::editing::{Place, Snapshot};
use serde_json::Value;

/// A bundle with an NVIDIA fatbinary after it.
fn mixed(place: &Place, name: &str) -> Vec<u8> {
    let bundle = place.bundle(name);
    let cuda = data("cuda-fatbin.o");
    let row = ls(&cuda).into_iter().find(|row| row.container == "nv-fatbin").unwrap();
    let start = row.offset.unwrap() - row.offset_in_container;
    let object = fs::read(&cuda).unwrap();
    let fatbin = &object[usize::try_from(start).unwrap()..];
    let size = u64::from_le_bytes(fatbin[8..16].try_into().unwrap());
    let fatbin = &fatbin[..16 + usize::try_from(size).unwrap()];
    let mut bytes = fs::read(&bundle).unwrap();
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes.extend(fatbin);
    fs::write(&bundle, bytes).unwrap();
    fatbin.to_vec()
}

#[test]
fn what_cannot_be_edited_is_an_error_unless_it_may_stay() {
    let place = Place::new();
    fs::copy(data("cuda-fatbin.o"), place.path("cuda.o")).unwrap();
    mixed(&place, "mixed");
    let before = Snapshot::of(&place);
    let fatbin = "NVIDIA fatbinaries cannot be edited";
    let thin = format!("{fatbin} (--allow-uneditable leaves code for sm_");
    let compress =
        "no bundle and no offload binary found (--allow-uneditable leaves the file as it is)";
    for (args, words) in [
        (&["thin", "cuda.o", "--keep", "sm_80", "--exact"][..], &*thin),
        (&["thin", "cuda.o", "--drop", "sm_70"], &thin),
        // All of a file or nothing.
        (&["thin", "mixed", "--keep", "gfx1100"], &thin),
        (&["thin", "mixed", "--keep", "gfx1100", "--allow-empty"], &thin),
        (&["remove", "mixed", "--index", "1", "--index", "5"], &thin),
        (&["compress", "cuda.o"], compress),
        (&["decompress", "cuda.o"], compress),
    ] {
        for more in [&["-o", "out"][..], &["--dry-run"], &["--in-place"]] {
            let output = place.run(&[args, more].concat());
            assert_eq!(output.status.code(), Some(1), "{args:?}: {}", stderr(&output));
            assert!(stderr(&output).contains(words), "{args:?}: {}", stderr(&output));
            assert_eq!(stdout(&output), "", "{args:?}");
            before.is_unchanged();
        }
        let output = place.ok(&[args, &["--dry-run", "--allow-uneditable"]].concat());
        let said = stderr(&output);
        assert_eq!(said.contains(fatbin), words == thin, "{args:?}: {said}");
    }
    // There is nothing that would be left as it is.
    let image = format!("5={}", data("cuda-fatbin.o").display());
    let output = place.run(&["replace", "mixed", &image, "--any-image", "--in-place"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).ends_with(&format!("{fatbin}\n")), "{}", stderr(&output));
    before.is_unchanged();
}

#[test]
fn what_needs_no_edit_is_no_error() {
    let place = Place::new();
    fs::copy(data("cuda-fatbin.o"), place.path("cuda.o")).unwrap();
    mixed(&place, "mixed");
    let before = Snapshot::of(&place);
    for args in [
        &["thin", "cuda.o", "--keep", "sm_70,sm_80"][..],
        &["thin", "mixed", "--drop", "gfx942", "--allow-missing"],
        &["decompress", "mixed"],
    ] {
        let output = place.ok(&[args, &["--in-place"]].concat());
        assert!(stderr(&output).contains("nothing to do, left alone"), "{}", stderr(&output));
        before.is_unchanged();
    }
    // Bundles are compressed; nothing is asked of fatbinaries.
    let old = fs::read(place.path("mixed")).unwrap();
    place.ok(&["compress", "mixed", "-o", "small"]);
    assert!(fs::metadata(place.path("small")).unwrap().len() < old.len() as u64);
    place.ok(&["decompress", "small", "-o", "back"]);
    assert!(fs::read(place.path("back")).unwrap() == old);
}

#[test]
fn the_rest_is_edited_where_that_is_allowed() {
    let place = Place::new();
    let fatbin = mixed(&place, "mixed");
    let args = ["thin", "mixed", "--keep", "gfx1100", "--allow-uneditable", "-o", "out", "--json"];
    let output = place.ok(&args);
    let note = "NVIDIA fatbinaries cannot be edited: code for sm_70, sm_80 stays";
    assert!(stderr(&output).contains(note), "{}", stderr(&output));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json[0]["notes"][0], note);
    let of = |target: &str| {
        let rows = json[0]["targets"].as_array().unwrap();
        rows.iter().find(|row| row["target"] == target).unwrap()["images_after"].clone()
    };
    assert_eq!((of("gfx1100"), of("gfx906:xnack+"), of("sm_70")), (1.into(), 0.into(), 2.into()));
    assert!(fs::read(place.path("out")).unwrap().ends_with(&fatbin));
    let left = ls(&place.path("out"));
    assert_eq!(left.iter().filter(|row| row.container == "bundle").count(), 2);

    // It stays an error that a bundle would lose all its images; that of fatbinaries is none.
    let args = ["thin", "mixed", "--keep", "gfx942", "--allow-missing", "--allow-uneditable"];
    let output = place.run(&[&args[..], &["-o", "none"]].concat());
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert_eq!(said.matches("--allow-empty").count(), 1, "{said}");
    assert!(said.contains("matches no image of bundle:0"), "{said}");
}
