//! Files of installed packages that are edited in place, and the lists with their hashes.

use std::fs;

use gpu_packages::{Algorithm, Hash};

use crate::common::{data, stderr};
use crate::wheels::Place;

const SITE: &str = "env/lib/python3.11/site-packages";
const LIST: &str = "env/lib/python3.11/site-packages/foo-1.0.dist-info/RECORD";
const JOURNAL: &str = "env/lib/python3.11/site-packages/foo-1.0.dist-info/.offload-journal-RECORD~";
const ONE: &str = "env/lib/python3.11/site-packages/foo/one.o";
const TWO: &str = "env/lib/python3.11/site-packages/foo/two.o";
const THIN: [&str; 5] = ["thin", "--in-place", "--keep", "gfx1100", "env"];

fn row(name: &str, bytes: &[u8]) -> String {
    let hash = Hash::of(Algorithm::Sha256, bytes).to_base64();
    format!("{name},sha256={hash},{}\n", bytes.len())
}

/// Makes an environment of a package with two objects.
fn environment() -> (Place, Vec<u8>) {
    let hip = fs::read(data("hip.o")).unwrap();
    let place = Place::with("hip.o", &hip);
    for directory in ["foo", "foo-1.0.dist-info"] {
        fs::create_dir_all(place.path(SITE).join(directory)).unwrap();
    }
    fs::write(place.path(ONE), &hip).unwrap();
    fs::write(place.path(TWO), &hip).unwrap();
    let rows = [row("foo/one.o", &hip), row("foo/two.o", &hip)].concat();
    fs::write(place.path(LIST), rows + "foo-1.0.dist-info/RECORD,,\n").unwrap();
    (place, hip)
}

fn text(place: &Place, name: &str) -> String {
    fs::read_to_string(place.path(name)).unwrap()
}

/// The row that a file should have.
fn right(place: &Place, name: &str) -> String {
    row(name, &fs::read(place.path(SITE).join(name)).unwrap())
}

#[test]
fn edited_files_get_right_rows_and_are_named() {
    let (place, _) = environment();
    let output = place.offload(&THIN);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("RECORD: sizes and hashes corrected: foo/one.o, foo/two.o\n"));
    for name in ["foo/one.o", "foo/two.o"] {
        assert!(text(&place, LIST).contains(&right(&place, name)));
    }
    assert!(!place.path(JOURNAL).exists());
}

#[test]
fn files_that_were_tampered_with_are_refused() {
    let (place, hip) = environment();
    let longer = [&hip[..], &[0; 100]].concat();
    // The header of an object has bytes that nothing reads.
    let mut other = hip.clone();
    other[12] ^= 1;
    for (bytes, words) in [
        (&longer, "RECORD has the size 26912, found 27012"),
        (&other, "RECORD has the hash sha256="),
    ] {
        fs::write(place.path(TWO), bytes).unwrap();
        let list = text(&place, LIST);
        for dry in [&["--dry-run"][..], &[]] {
            let output = place.offload(&[&THIN, dry].concat());
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(1));
            assert!(said.contains(&format!("{TWO}: {words}")), "{said}");
            assert!(said.contains("(allow editing with --allow-findings)"), "{said}");
        }
        assert!(fs::read(place.path(TWO)).unwrap() == *bytes);
        let after = text(&place, LIST);
        assert_eq!(after.lines().nth(1), list.lines().nth(1));
        assert!(after.contains(&right(&place, "foo/one.o")));
        place.succeeds(&[&THIN[..], &["--allow-findings"]].concat());
        assert!(text(&place, LIST).contains(&right(&place, "foo/two.o")));
        let (again, _) = environment();
        fs::rename(again.path("env"), place.path("other")).unwrap();
        fs::remove_dir_all(place.path("env")).unwrap();
        fs::rename(place.path("other"), place.path("env")).unwrap();
    }
}

#[test]
fn rows_of_files_that_stay_are_left_as_they_are() {
    let (place, hip) = environment();
    place.succeeds(&THIN);
    let thinned = fs::read(place.path(TWO)).unwrap();
    fs::write(place.path(ONE), &hip).unwrap();
    fs::write(place.path(TWO), [&thinned[..], &[0; 100]].concat()).unwrap();
    let rows = [row("foo/one.o", &hip), row("foo/two.o", &thinned)].concat();
    fs::write(place.path(LIST), &rows).unwrap();
    let output = place.offload(&THIN);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    let size = thinned.len();
    let words =
        format!("RECORD has the size {size}, found {}; its row is left as it is", size + 100);
    assert!(said.contains(&format!("warning: {TWO}: {words}")), "{said}");
    let expected = [right(&place, "foo/one.o"), row("foo/two.o", &thinned)].concat();
    assert_eq!(text(&place, LIST), expected);
}

#[test]
fn the_next_run_repairs_after_an_interrupted_one() {
    let (place, _) = environment();
    let list = text(&place, LIST);
    // A run that was killed leaves this: new files, the old list, and the journal.
    place.succeeds(&THIN);
    let rows = ["foo/one.o", "foo/two.o"].map(|name| right(&place, name));
    fs::write(place.path(LIST), &list).unwrap();
    let journal = |rows: &[&str]| {
        // The last note may be cut short.
        fs::write(place.path(JOURNAL), rows.concat() + "\"foo/three.o\",sha2").unwrap();
    };
    journal(&[&rows[0], &rows[1]]);
    let said = stderr(&place.offload(&THIN));
    let words = "RECORD: corrected after an interrupted run: foo/one.o, foo/two.o\n";
    assert!(said.contains(words), "{said}");
    let repaired = text(&place, LIST);
    assert!(rows.iter().all(|row| repaired.contains(row)));
    assert!(!place.path(JOURNAL).exists());
    // A run that edits the file once more takes it for what the first one wrote.
    fs::write(place.path(LIST), &list).unwrap();
    journal(&[&rows[0], &rows[1]]);
    place.succeeds(&["compress", "--in-place", "env"]);
    let repaired = text(&place, LIST);
    assert!(["foo/one.o", "foo/two.o"].iter().all(|n| repaired.contains(&right(&place, n))));
    // Files without device code are repaired as well.
    fs::write(place.path(TWO), "text").unwrap();
    journal(&[&row("foo/two.o", b"text")]);
    place.succeeds(&THIN);
    assert!(text(&place, LIST).contains(&row("foo/two.o", b"text")));
    // A file that went.
    fs::remove_file(place.path(TWO)).unwrap();
    journal(&["foo/two.o,deleted,\n"]);
    place.succeeds(&THIN);
    assert!(!text(&place, LIST).contains("foo/two.o"));
}

#[test]
fn a_journal_of_other_contents_is_not_trusted() {
    let (place, hip) = environment();
    let tampered = [&hip[..], b"more"].concat();
    fs::write(place.path(TWO), &tampered).unwrap();
    let list = text(&place, LIST);
    for note in [row("foo/two.o", b"other"), row("foo/two.o", &hip), "foo/two.o,deleted,\n".into()]
    {
        fs::write(place.path(LIST), &list).unwrap();
        fs::write(place.path(JOURNAL), note).unwrap();
        place.fails(&THIN, &format!("{TWO}: RECORD has the size 26912, found 26916"));
        assert_eq!(text(&place, LIST).lines().nth(1), list.lines().nth(1));
        assert!(!place.path(JOURNAL).exists());
        fs::write(place.path(ONE), &hip).unwrap();
    }
}

/// The journal is there while files are new and the list is old.
#[cfg(unix)]
#[test]
fn a_list_that_cannot_be_written_leaves_the_journal() {
    let (place, _) = environment();
    // An algorithm that is not known: rows cannot be corrected.
    let list = text(&place, LIST);
    fs::write(place.path(LIST), list.replace("sha256=", "md4=")).unwrap();
    let output = place.offload(&[&THIN[..], &["--allow-findings"]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(place.path(JOURNAL).exists());
    fs::write(place.path(LIST), list).unwrap();
    place.succeeds(&THIN);
    let repaired = text(&place, LIST);
    assert!(["foo/one.o", "foo/two.o"].iter().all(|n| repaired.contains(&right(&place, n))));
    assert!(!place.path(JOURNAL).exists());
}

#[test]
fn signed_lists_are_refused_unless_told() {
    let (place, hip) = environment();
    let signature = format!("{SITE}/foo-1.0.dist-info/RECORD.jws");
    fs::write(place.path(&signature), "{}").unwrap();
    let list = text(&place, LIST) + "foo-1.0.dist-info/RECORD.jws,,\n";
    fs::write(place.path(LIST), &list).unwrap();
    place.fails(&THIN, "RECORD.jws: the distribution is signed");
    assert!(fs::read(place.path(ONE)).unwrap() == hip);
    assert_eq!(text(&place, LIST), list);
    place.succeeds(&[&THIN[..], &["--drop-signature"]].concat());
    assert!(!place.path(&signature).exists());
    assert!(!text(&place, LIST).contains("RECORD.jws"));
    assert!(text(&place, LIST).contains(&right(&place, "foo/one.o")));
}

/// Lists keep permissions and attributes, as libraries do.
#[cfg(target_os = "linux")]
#[test]
fn lists_keep_permissions_and_attributes() {
    use std::os::unix::fs::PermissionsExt;
    let (place, _) = environment();
    fs::set_permissions(place.path(LIST), fs::Permissions::from_mode(0o640)).unwrap();
    // Not every file system has attributes.
    let has_some = xattr::set(place.path(LIST), "user.note", b"kept").is_ok();
    let is_root = std::os::unix::fs::chown(place.path(LIST), Some(1234), Some(1234)).is_ok();
    place.succeeds(&THIN);
    let metadata = fs::metadata(place.path(LIST)).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o7777, 0o640);
    if has_some {
        assert_eq!(xattr::get(place.path(LIST), "user.note").unwrap().unwrap(), b"kept");
    }
    if is_root {
        use std::os::unix::fs::MetadataExt;
        assert_eq!((metadata.uid(), metadata.gid()), (1234, 1234));
    }
}

/// A list or a directory that is a link leads elsewhere, to files that nobody named.
#[cfg(unix)]
#[test]
fn links_of_lists_are_not_followed() {
    let (place, _) = environment();
    let list = text(&place, LIST);
    fs::rename(place.path(LIST), place.path("victim")).unwrap();
    std::os::unix::fs::symlink(place.path("victim"), place.path(LIST)).unwrap();
    place.fails(&THIN, "RECORD: a symbolic link, which is not followed");
    assert_eq!(text(&place, "victim"), list);
    let (place, _) = environment();
    let info = place.path(SITE).join("foo-1.0.dist-info");
    fs::rename(&info, place.path("victim")).unwrap();
    std::os::unix::fs::symlink(place.path("victim"), info).unwrap();
    let said = stderr(&place.offload(&THIN));
    assert!(said.contains("dist-info: a symbolic link, which is not followed"), "{said}");
    assert_eq!(text(&place, "victim/RECORD"), list);
}
