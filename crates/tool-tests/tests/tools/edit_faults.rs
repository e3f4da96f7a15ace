//! Edits in place keep mode, owner, links and attributes of a file. Edits that fail keep the file.

use std::fs::{self, File, Permissions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Output, Stdio};

use crate::common::machine::{as_nobody, give, not_tested, wait_for, written_in};
use crate::common::{new_command, stderr, stdout, tool};
use crate::editing::{Place, Snapshot, ids};
use samples::bundle::{self, GFX906, GFX1100};

const THIN: [&str; 5] = ["thin", "four", "--in-place", "--keep", "gfx1100"];

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn the_mode_stays() {
    let place = Place::new();
    for bits in [0o755, 0o640, 0o444, 0o4755, 0o2711] {
        let file = place.bundle("four");
        let by_name = ["thin", "four", "-o", "four", "--keep", "gfx1100"];
        for args in [&THIN[..], &by_name] {
            fs::set_permissions(&file, Permissions::from_mode(bits)).unwrap();
            let output = place.ok(args);
            assert!(stdout(&output).contains(" -> "));
            assert_eq!((mode(&file), ids(&file).len()), (bits, 2), "{bits:o}");
            fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
            place.bundle("four");
        }
    }
    // A new file has the permissions of the old one, without set-user-ID.
    let file = place.bundle("four");
    for (bits, new) in [(0o755, 0o755), (0o640, 0o640), (0o4755, 0o755)] {
        fs::set_permissions(&file, Permissions::from_mode(bits)).unwrap();
        let _ = fs::remove_file(place.path("out"));
        place.ok(&["thin", "four", "-o", "out", "--keep", "gfx1100"]);
        assert_eq!(mode(&place.path("out")), new, "{bits:o}");
    }
    // An existing output keeps its own mode.
    fs::set_permissions(place.path("out"), Permissions::from_mode(0o600)).unwrap();
    place.ok(&["thin", "four", "-o", "out", "--keep", "gfx1100"]);
    assert_eq!(mode(&place.path("out")), 0o600);
}

#[test]
fn the_owner_stays_where_that_is_permitted() {
    let place = Place::new();
    let file = place.bundle("four");
    if !give(&file, Some(1234), Some(4321)) {
        return;
    }
    fs::set_permissions(&file, Permissions::from_mode(0o4755)).unwrap();
    let output = place.ok(&THIN);
    assert_eq!(stderr(&output), "");
    let metadata = fs::metadata(&file).unwrap();
    assert_eq!((metadata.uid(), metadata.gid(), mode(&file)), (1234, 4321, 0o4755));

    // Another user may write to the directory, but not change owners.
    let file = place.bundle("four");
    assert!(give(&file, Some(1234), Some(4321)));
    fs::set_permissions(&file, Permissions::from_mode(0o4755)).unwrap();
    fs::set_permissions(place.root(), Permissions::from_mode(0o777)).unwrap();
    let Some(output) = run_as_nobody(&place, &THIN) else { return };
    assert!(output.status.success(), "{}", stderr(&output));
    let warnings = stderr(&output);
    assert!(warnings.contains("four: its owner 1234:4321 could not be kept: "), "{warnings}");
    assert!(warnings.contains("set-user-ID and set-group-ID bits were removed"), "{warnings}");
    assert_eq!((fs::metadata(&file).unwrap().uid(), mode(&file)), (NOBODY, 0o755));
    assert_eq!(ids(&file).len(), 2);
}

const NOBODY: u32 = 65534;

/// Runs the tool as a user without rights; `None` where there is none.
fn run_as_nobody(place: &Place, args: &[&str]) -> Option<Output> {
    let words = [&[tool("offload")], args].concat();
    let words = as_nobody(&words.into_iter().map(String::from).collect::<Vec<_>>())?;
    Some(new_command(&words[0]).args(&words[1..]).current_dir(place.root()).output().unwrap())
}

#[test]
fn a_directory_that_cannot_be_written_to_is_an_error() {
    let place = Place::new();
    let file = place.bundle("four");
    fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
    fs::set_permissions(place.root(), Permissions::from_mode(0o555)).unwrap();
    let before = Snapshot::of(&place);
    if let Some(output) = run_as_nobody(&place, &THIN) {
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("error: four: Permission denied"), "{}", stderr(&output));
        before.is_unchanged();
    }
    fs::set_permissions(place.root(), Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn links_stay_links() {
    let place = Place::new();
    let file = place.bundle("four");
    symlink("four", place.path("soft")).unwrap();
    fs::hard_link(&file, place.path("hard")).unwrap();
    let old = fs::read(&file).unwrap();
    let output = place.ok(&["thin", "soft", "--in-place", "--keep", "gfx1100"]);
    assert!(fs::symlink_metadata(place.path("soft")).unwrap().is_symlink());
    assert_eq!(ids(&file).len(), 2);
    let words = "soft: 1 other name (hard links) of it keeps the old contents";
    assert!(stderr(&output).contains(words), "{}", stderr(&output));
    assert!(fs::read(place.path("hard")).unwrap() == old);
}

#[test]
fn attributes_stay() {
    let place = Place::new();
    let file = place.bundle("four");
    if xattr::set(&file, "user.origin", b"here").is_err() {
        not_tested("this file system has no attributes");
        return;
    }
    place.ok(&THIN);
    assert_eq!(xattr::get(&file, "user.origin").unwrap().as_deref(), Some(&b"here"[..]));
}

#[test]
fn a_signed_file_is_refused() {
    let place = Place::new();
    let file = place.bundle("four");
    if xattr::set(&file, "security.ima", b"\x03\x02").is_err() {
        not_tested("signatures can be set only by root, and not in every container");
        return;
    }
    let before = Snapshot::of(&place);
    let output = place.run(&THIN);
    assert_eq!(output.status.code(), Some(1));
    let words = "four: file is signed (security.ima); the signature would become invalid";
    assert!(stderr(&output).contains(words), "{}", stderr(&output));
    before.is_unchanged();
    // The output is another file, without a signature.
    place.ok(&["thin", "four", "-o", "out", "--keep", "gfx1100"]);
    let output = place.ok(&[&THIN[..], &["--drop-signature"]].concat());
    assert!(stderr(&output).contains("its signature (security.ima) is dropped"));
    assert_eq!(xattr::get(&file, "security.ima").unwrap(), None);
}

/// A limit for files makes writing fail as a full disk does, or ends the tool where its signal is not ignored.
#[test]
fn a_file_that_cannot_grow_is_an_error() {
    let place = Place::new();
    place.bundle("four");
    let before = Snapshot::of(&place);
    for (trap, code) in [("trap '' XFSZ; ", Some(1)), ("", None)] {
        let script = format!("{trap}ulimit -f 8; exec \"$0\" \"$@\"");
        let output = new_command("sh")
            .args(["-c", &script, tool("offload")])
            .args(["thin", "four", "--in-place", "--drop", "gfx1100"])
            .current_dir(place.root())
            .output()
            .unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), code, "{said}");
        assert!(code.is_none() || said.contains("error: four: File too large"), "{said}");
        before.is_unchanged();
    }
}

/// Writes a bundle with a small image and one of `size` bytes, which are all holes.
fn large_bundle(path: &Path, size: u64) {
    let header = bundle::header(&[(GFX906, 4096, 100), (GFX1100, 8192, size)]);
    let mut file = File::create(path).unwrap();
    file.write_all(&header).unwrap();
    file.set_len(8192 + size).unwrap();
    file.seek(SeekFrom::Start(8192 + size - 3)).unwrap();
    file.write_all(b"end").unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_kill_leaves_the_file_whole() {
    const SIZE: u64 = 400 << 20;
    let place = Place::new();
    let file = place.path("large");
    large_bundle(&file, SIZE);
    let before = fs::metadata(&file).unwrap();
    let mut child = new_command(tool("offload"))
        .args(["thin", "large", "--in-place", "--drop", "gfx906"])
        .current_dir(place.root())
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the tool writes or ends", || {
        let is_over = child.try_wait().unwrap().is_some();
        let is_written = written_in(&child, place.root()).is_some_and(|bytes| bytes > 0);
        (is_over || is_written).then_some(())
    });
    child.kill().unwrap();
    let status = child.wait().unwrap();
    let after = fs::metadata(&file).unwrap();
    let left = ids(&file);
    if status.success() {
        // File systems that share blocks are too fast for this test.
        assert_eq!(left.len(), 1);
        assert_eq!(after.len(), 4096 + SIZE);
    } else {
        assert_eq!(
            (after.ino(), after.len(), after.mtime_nsec()),
            (before.ino(), before.len(), before.mtime_nsec())
        );
        assert_eq!(left.len(), 2);
        // The incomplete file has another name, so the next run works.
        let output = place.ok(&["thin", "large", "--in-place", "--drop", "gfx906"]);
        assert!(stdout(&output).contains(" -> "));
        assert_eq!(fs::metadata(&file).unwrap().len(), 4096 + SIZE);
    }
}
