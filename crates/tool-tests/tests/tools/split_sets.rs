//! Split packages: a library in one, kernel packs in others, judged together.

use std::fs;

use crate::common::{data, stderr, stdout};
use crate::wheels::Place;
use samples::packages::{self, Around, Made};

/// A library that was split, and its packs for gfx1100 and gfx906.
fn split() -> (Place, Vec<u8>, [Vec<u8>; 2]) {
    let place = Place::with("lib.so", &fs::read(data("hip-two-units-ccob.so")).unwrap());
    place.succeeds(&["split", "lib.so", "--group", "two", "--no-compress", "-o", "site"]);
    let read = |path: &str| fs::read(place.path(path)).unwrap();
    let packs = ["gfx1100", "gfx906"].map(|gpu| read(&format!("site/.kpack/two_{gpu}.kpack")));
    let library = read("site/lib.so");
    (place, library, packs)
}

fn zip(place: &Place, name: &str, members: &[(&str, &[u8])]) {
    let made: Vec<_> = members.iter().map(|(name, bytes)| Made::new(name, *bytes)).collect();
    fs::write(place.path(name), packages::zip(&made, &Around::default())).unwrap();
}

/// The lines that tell something is wrong, and whether the exit status says so.
fn faults(place: &Place, files: &[&str]) -> Vec<String> {
    let output = place.offload(&[&["verify"], files].concat());
    let output_lines = stdout(&output);
    // The last line sums up all files.
    let lines = output_lines.lines().filter(|line| !line.contains(": ok, "));
    let lines: Vec<String> =
        lines.filter(|line| !line.contains(" files: ")).map(String::from).collect();
    assert_eq!(output.status.success(), lines.is_empty(), "{lines:?}");
    lines
}

fn serves(place: &Place, gpu: &str, files: &[&str]) -> bool {
    place.offload(&[&["match", "--quiet", "--gpu", gpu], files].concat()).status.success()
}

#[test]
fn packages_that_belong_together_are_one() {
    let (place, library, [gfx1100, gfx906]) = split();
    zip(&place, "host.whl", &[("pkg/lib.so", &library)]);
    zip(&place, "gfx1100.whl", &[("pkg/.kpack/two_gfx1100.kpack", &gfx1100)]);
    zip(&place, "gfx906.whl", &[("x-1.data/platlib/pkg/.kpack/two_gfx906.kpack", &gfx906)]);
    // The device package is not there, or that for another GPU.
    assert!(!serves(&place, "gfx1100", &["host.whl"]));
    assert!(!serves(&place, "gfx1100", &["host.whl", "gfx906.whl"]));
    assert!(serves(&place, "gfx1100", &["host.whl", "gfx1100.whl"]));
    assert!(serves(&place, "gfx906", &["gfx906.whl", "host.whl"]));
    assert!(!serves(&place, "gfx906", &["host.whl", "gfx1100.whl"]));
    // Each is asked about, also where a pack lies beside its library.
    let both = [("pkg/lib.so", &*library), ("pkg/.kpack/two_gfx1100.kpack", &*gfx1100)];
    zip(&place, "both.whl", &both);
    let output = place.offload(&["match", "--gpu", "gfx1100,gfx906", "both.whl"]);
    let text = stdout(&output);
    assert!(text.contains("both.whl:pkg/lib.so: has code for gfx1100 in pkg/.kpack"), "{text}");
    assert!(text.contains("both.whl:pkg/lib.so: has no code for gfx906"), "{text}");
    assert!(!output.status.success());
    // Packs alone answer for themselves.
    assert!(
        serves(&place, "gfx906", &["gfx906.whl"]) && !serves(&place, "gfx1100", &["gfx906.whl"])
    );
}

#[test]
fn verify_finds_what_is_missing_empty_orphaned_or_hidden() {
    let (place, library, [gfx1100, gfx906]) = split();
    let pack = "pkg/.kpack/two_gfx1100.kpack";
    zip(&place, "good.whl", &[("pkg/lib.so", &library), (pack, &gfx1100)]);
    assert_eq!(faults(&place, &["good.whl"]), [""; 0]);

    zip(&place, "missing.whl", &[("pkg/lib.so", &library)]);
    let missing = faults(&place, &["missing.whl"]);
    assert!(missing[0].contains("pkg/lib.so: no kernel pack has its device code"), "{missing:?}");
    assert_eq!(faults(&place, &["missing.whl", "good.whl"]), [""; 0]);

    // A pack without bytes, and one without entries.
    zip(&place, "empty.whl", &[("pkg/lib.so", &library), (pack, b"")]);
    assert!(faults(&place, &["empty.whl"]).iter().any(|text| text.contains("no kernel pack has")));

    // The key of a wrapper, and the pack of another library.
    let renamed = |from: &str, to: &str| {
        let text = String::from_utf8_lossy(&gfx906).into_owned();
        assert!(text.contains(from) && from.len() == to.len());
        let mut bytes = gfx906.clone();
        while let Some(at) = bytes.windows(from.len()).position(|part| part == from.as_bytes()) {
            bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        }
        bytes
    };
    let wrong = renamed("lib.so#1", "lib.so#7");
    zip(&place, "key.whl", &[("pkg/lib.so", &library), ("pkg/.kpack/two_gfx906.kpack", &wrong)]);
    let found = faults(&place, &["key.whl"]);
    assert!(
        found[0].ends_with("1 of 2 wrappers have no device code in any kernel pack"),
        "{found:?}"
    );
    assert!(!serves(&place, "gfx906", &["key.whl"]));
    let orphan = renamed("lib.so", "oth.so");
    let members =
        [("pkg/lib.so", &*library), (pack, &*gfx1100), ("pkg/.kpack/two_gfx906.kpack", &*orphan)];
    zip(&place, "orphan.whl", &members);
    let found = faults(&place, &["orphan.whl"]);
    assert!(found[0].ends_with("no library here is for its code: oth.so"), "{found:?}");

    // Loaders of ROCm up to 7.14.0 stop at the pack with the feature.
    let members = [
        ("pkg/lib.so", &*library),
        ("pkg/.kpack/two_gfx906.kpack", &*gfx906),
        ("pkg/.kpack/two_gfx906:xnack+.kpack", &*gfx906),
    ];
    zip(&place, "hidden.whl", &members);
    let found = faults(&place, &["hidden.whl"]);
    assert!(found[0].contains("ROCm up to 7.14.0 stops at this pack"), "{found:?}");

    // The same in a directory.
    fs::remove_file(place.path("site/.kpack/two_gfx1100.kpack")).unwrap();
    fs::remove_file(place.path("site/.kpack/two_gfx906.kpack")).unwrap();
    let found = faults(&place, &["site"]);
    assert!(found[0].contains("lib.so: no kernel pack has its device code"), "{found:?}");
}

#[test]
fn packs_count_where_a_loader_looks_for_them() {
    let (place, library, [gfx1100, gfx906]) = split();
    let (at_1100, at_906) = ("pkg/.kpack/two_gfx1100.kpack", "pkg/.kpack/two_gfx906.kpack");
    zip(&place, "host.whl", &[("pkg/lib.so", &library)]);
    zip(&place, "gfx1100.whl", &[(at_1100, &gfx1100)]);
    zip(&place, "other.whl", &[("other/.kpack/two_gfx1100.kpack", &gfx1100)]);
    zip(&place, "swapped.whl", &[(at_1100, &gfx906), (at_906, &gfx1100)]);
    for wrong in ["other.whl", "swapped.whl"] {
        let found = faults(&place, &["host.whl", wrong]);
        assert!(found[0].contains("pkg/lib.so: no kernel pack has its device code"), "{found:?}");
        assert!(!serves(&place, "gfx1100", &["host.whl", wrong]), "{wrong}");
    }
    // Packages in a package are installed side by side.
    let read = |name: &str| fs::read(place.path(name)).unwrap();
    let [host, packs] = ["host.whl", "gfx1100.whl"].map(read);
    zip(&place, "both.zip", &[("w/host.whl", &host), ("w/gfx1100.whl", &packs)]);
    assert_eq!(faults(&place, &["both.zip"]), [""; 0]);
    assert!(serves(&place, "gfx1100", &["both.zip"]));
    // Packs without their library are one set, whatever packages they come in.
    zip(&place, "gfx906.whl", &[(at_906, &gfx906)]);
    assert!(serves(&place, "gfx1100", &["gfx1100.whl", "gfx906.whl"]));
    // No pack is looked for before ROCm 7.12.
    let rocm = |version: &str| {
        let files = ["host.whl", "gfx1100.whl"];
        let args = [&["match", "--quiet", "--gpu", "gfx1100", "--rocm", version], &files[..]];
        place.offload(&args.concat()).status.success()
    };
    assert!(!rocm("7.11") && rocm("7.12"));
}

#[test]
fn code_that_is_there_and_not_loaded_is_told() {
    let place = Place::with("v2", &fs::read(data("hip-ccob-v2.hipfb")).unwrap());
    let bundle = fs::read(place.path("v2")).unwrap();
    let mut library = fs::read(data("hip-two-units.so")).unwrap();
    // The magic of the first wrapper.
    library[0x5130..0x5134].copy_from_slice(b"XXXX");
    zip(&place, "old.whl", &[("pkg/a.hipfb", &bundle)]);
    zip(&place, "lost.whl", &[("pkg/lib.so", &library)]);
    let output = place.offload(&["match", "--gpu", "gfx1100", "--rocm", "6.1", "old.whl"]);
    let text = stdout(&output);
    let said =
        "lacks code for gfx1100 in pkg/a.hipfb: needs ROCm 6.3 or later: code object version 6";
    assert!(text.contains(said), "{text}");
    // Other code would not help.
    assert!(!String::from_utf8_lossy(&output.stderr).contains("install a build"));
    let text = stdout(&place.offload(&["match", "--gpu", "gfx1100", "lost.whl"]));
    assert!(text.contains("no wrapper leads to it, so that no runtime finds it"), "{text}");
}

/// A library with a damaged marker is not passed over as one without device code.
#[test]
fn a_damaged_marker_is_told() {
    let (place, mut library, _) = split();
    let at = library.windows(11).position(|bytes| bytes == b"kernel_name").unwrap();
    library[at] = b'x';
    fs::write(place.path("damaged.so"), &library).unwrap();
    zip(&place, "damaged.whl", &[("pkg/lib.so", &library)]);
    for file in ["damaged.so", "damaged.whl", "damaged.whl:pkg/lib.so"] {
        for command in [
            &["match", "--gpu", "gfx1100"][..],
            &["verify"],
            &["ls"],
            &["ls", "-l"],
            &["ls", "--by-package"],
            &["kernels"],
        ] {
            if command[0] == "verify" && file.contains(':') {
                continue;
            }
            let output = place.offload(&[command, &[file]].concat());
            let said = stderr(&output) + &stdout(&output);
            assert!(
                !output.status.success() && said.contains("marker"),
                "{file} {command:?}: {said}"
            );
        }
    }
}

/// A pack that cannot be read may have the code.
#[test]
fn packs_that_were_not_read_may_have_code() {
    let (place, library, [gfx1100, gfx906]) = split();
    let packs =
        [("pkg/.kpack/two_gfx1100.kpack", &*gfx1100), ("pkg/.kpack/two_gfx906.kpack", &gfx906)];
    zip(&place, "foo.whl", &[("pkg/lib.so", &*library), packs[0], packs[1]]);
    assert!(serves(&place, "gfx1100", &["foo.whl"]));
    let mut bytes = fs::read(place.path("foo.whl")).unwrap();
    let name = packs[0].0.as_bytes();
    let at = bytes.windows(name.len()).position(|found| found == name).unwrap();
    bytes[at + name.len() + 100] ^= 0x55;
    fs::write(place.path("foo.whl"), &bytes).unwrap();
    let output = place.offload(&["match", "--gpu", "gfx1100,gfx906", "foo.whl"]);
    let (text, said) = (stdout(&output), stderr(&output));
    let part = "foo.whl:pkg/lib.so: was not read as a whole; what was read has no code for gfx1100: looked for";
    assert!(text.contains(part), "{text}{said}");
    assert!(text.contains("foo.whl:pkg/lib.so: has code for gfx906 in"), "{text}{said}");
}
