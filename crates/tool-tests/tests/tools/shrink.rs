//! `offload shrink`: environments and packages with code for some GPUs only.

use std::fs;

use samples::packages::{self, Around};

use crate::common::{data, stderr, stdout};
use crate::wheels::Place;

/// Returns a wheel with these files.
fn wheel(files: &[(&str, &[u8])]) -> Vec<u8> {
    packages::zip(&packages::wheel(files), &Around::default())
}

#[test]
fn a_wheel_is_shrunk_beside_members_that_cannot_be() {
    let [hip, mac] = ["hip.o", "hip-macos.o"].map(|name| fs::read(data(name)).unwrap());
    let files: [(&str, &[u8]); 3] =
        [("foo/hip.o", &hip), ("foo/mac.o", &mac), ("foo/damaged.o", &hip[..20_000])];
    let place = Place::with("foo.whl", &wheel(&files));
    place.fails(&["thin", "--keep", "gfx1100", "foo.whl", "-o", "out.whl"], "damaged.o");
    let said = place.succeeds(&["shrink", "--gpu", "gfx1100", "foo.whl", "-o", "out.whl", "--why"]);
    assert!(said.contains("removed from 1 file of 1 package\n"), "{said}");
    assert!(said.contains("foo/mac.o") && said.contains("foo/damaged.o"), "{said}");
    place.succeeds(&["verify", "out.whl:foo/hip.o"]);
    let again = place.succeeds(&["shrink", "--gpu", "gfx1100", "out.whl"]);
    assert!(again.starts_with("nothing to remove from "), "{again}");
    let thin = place.succeeds(&["ls", "out.whl:foo/hip.o"]);
    assert!(thin.contains("gfx1100") && !thin.contains("gfx906"), "{thin}");
}

#[test]
fn a_wheel_with_nothing_for_the_gpu_is_not_written() {
    let hip = fs::read(data("hip.o")).unwrap();
    let place = Place::with("foo.whl", &wheel(&[("foo/hip.o", &hip)]));
    for out in [&["-o", "out.whl"][..], &[]] {
        let output = place.offload(&[&["shrink", "--gpu", "sm_90", "foo.whl"], out].concat());
        assert_eq!(output.status.code(), Some(1));
        let words = "no code for sm_90; 1 file has code for others: nothing is removed";
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
        assert!(!place.path("out.whl").exists());
    }
}

/// A signed wheel stays as it is: in place it is counted, and without a result it is a failure.
#[test]
fn a_signed_wheel_is_counted_or_fails() {
    let hip = fs::read(data("hip.o")).unwrap();
    let signed = wheel(&[("foo/hip.o", &hip), ("foo-1.0.dist-info/RECORD.jws", b"{}")]);
    let place = Place::with("foo.whl", &signed);
    let said = place.succeeds(&["shrink", "--gpu", "gfx1100", "foo.whl", "--why"]);
    assert!(said.contains("1 file could not be edited") && said.contains("signature"), "{said}");
    assert!(fs::read(place.path("foo.whl")).unwrap() == signed);
    place.fails(&["shrink", "--gpu", "gfx1100", "foo.whl", "-o", "out.whl"], "signature");
}

#[test]
#[cfg(unix)]
fn links_that_lead_out_are_counted() {
    let hip = fs::read(data("hip.o")).unwrap();
    let place = Place::with("cached.so", &hip);
    fs::create_dir(place.path("env")).unwrap();
    fs::write(place.path("env/hip.o"), &hip).unwrap();
    for (target, link) in
        [("../cached.so", "one.so"), ("hip.o", "inside.so"), ("../cached.so", "text")]
    {
        std::os::unix::fs::symlink(target, place.path("env").join(link)).unwrap();
    }
    let output = place.offload(&["shrink", "--gpu", "gfx1100", "env"]);
    assert!(output.status.success() && stdout(&output).contains("removed from 1 file\n"));
    assert!(
        stderr(&output).contains("note: links to libraries elsewhere are not followed: 1 ("),
        "{}",
        stderr(&output)
    );
    assert!(fs::read(place.path("cached.so")).unwrap() == hip);
}

/// A failure is an error, and the lines say what was removed by then.
#[test]
#[cfg(unix)]
fn files_that_cannot_be_read_or_written_are_failures() {
    use std::os::unix::fs::symlink;
    let hip = fs::read(data("hip.o")).unwrap();
    let place = Place::with("hip.o", &hip);
    symlink("nowhere", place.path("broken")).unwrap();
    let output = place.offload(&["shrink", "--gpu", "gfx1100", "hip.o", "broken"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("error: broken: "), "{}", stderr(&output));
    assert!(stdout(&output).contains("removed from 1 file\n"), "{}", stdout(&output));
}
