//! Files of installed packages that are edited in place, and the lists with their hashes.

use std::fs;
#[cfg(unix)]
use std::path::Path;

use gpu_packages::{Algorithm, Hash};

use crate::common::{data, stderr, tool};
use crate::wheels::Place;

pub(super) const SITE: &str = "env/lib/python3.11/site-packages";
pub(super) const LIST: &str = "env/lib/python3.11/site-packages/foo-1.0.dist-info/RECORD";
pub(super) const JOURNAL: &str =
    "env/lib/python3.11/site-packages/foo-1.0.dist-info/.offload-journal-RECORD~";
pub(super) const ONE: &str = "env/lib/python3.11/site-packages/foo/one.o";
const TWO: &str = "env/lib/python3.11/site-packages/foo/two.o";
pub(super) const CONDA: &str = "env/conda-meta/bar-2.0-0.json";
const CONDA_JOURNAL: &str = "env/conda-meta/.offload-journal-bar-2.0-0.json~";
const BAR: &str = "env/lib/bar.o";
pub(super) const THIN: [&str; 5] = ["thin", "--in-place", "--keep", "gfx1100", "env"];

pub(super) fn row(name: &str, bytes: &[u8]) -> String {
    let hash = Hash::of(Algorithm::Sha256, bytes).to_base64();
    format!("{name},sha256={hash},{}\n", bytes.len())
}

/// Makes an environment of a Python package with two objects, and a package of conda's with one.
pub(super) fn environment() -> (Place, Vec<u8>) {
    let hip = fs::read(data("hip.o")).unwrap();
    let place = Place::with("hip.o", &hip);
    for directory in ["foo", "foo-1.0.dist-info"] {
        fs::create_dir_all(place.path(SITE).join(directory)).unwrap();
    }
    fs::write(place.path(ONE), &hip).unwrap();
    fs::write(place.path(TWO), &hip).unwrap();
    let rows = [row("foo/one.o", &hip), row("foo/two.o", &hip)].concat();
    fs::write(place.path(LIST), rows + "foo-1.0.dist-info/RECORD,,\n").unwrap();
    fs::create_dir(place.path("env/conda-meta")).unwrap();
    fs::write(place.path(BAR), &hip).unwrap();
    fs::write(place.path(CONDA), conda(&hip)).unwrap();
    (place, hip)
}

/// The list of the package of conda's, when its object has these contents.
fn conda(bytes: &[u8]) -> String {
    let (hash, size) = (Hash::of(Algorithm::Sha256, bytes).to_hex(), bytes.len());
    format!(
        r#"{{"paths_data": {{"paths": [{{"_path": "lib/bar.o", "sha256_in_prefix": "{hash}", "size_in_bytes": {size}}}]}}}}"#
    )
}

pub(super) fn text(place: &Place, name: &str) -> String {
    fs::read_to_string(place.path(name)).unwrap()
}

/// The row that a file should have.
pub(super) fn right(place: &Place, name: &str) -> String {
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
    assert!(stderr(&output).contains("json: sizes and hashes corrected: lib/bar.o\n"));
    assert_eq!(text(&place, CONDA), conda(&fs::read(place.path(BAR)).unwrap()));
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

/// Lists keep permissions, owner and attributes, as libraries do.
#[cfg(target_os = "linux")]
#[test]
fn lists_keep_permissions_and_attributes() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    let (place, _) = environment();
    let old = [LIST, CONDA].map(|list| {
        let list = place.path(list);
        // Not every file system has attributes, and only root may give files away.
        let has_some = xattr::set(&list, "user.note", b"kept").is_ok();
        let _ = chown(&list, Some(1234), Some(1235));
        fs::set_permissions(&list, fs::Permissions::from_mode(0o640)).unwrap();
        let metadata = fs::metadata(&list).unwrap();
        (list, has_some, metadata)
    });
    place.succeeds(&THIN);
    for (list, has_some, old) in old {
        let new = fs::metadata(&list).unwrap();
        assert_ne!(new.ino(), old.ino(), "{}", list.display());
        assert_eq!((new.mode(), new.uid(), new.gid()), (old.mode(), old.uid(), old.gid()));
        if has_some {
            assert_eq!(xattr::get(&list, "user.note").unwrap().unwrap(), b"kept");
        }
    }
}

/// Every list that an edit reads by itself, each with something else in its place: it is not read, files that it may
/// list are refused, and nothing outside of the environment changes.
#[cfg(unix)]
#[test]
fn lists_that_are_no_files_are_not_read() {
    use crate::odd_files::{ALL, Odd, contents};
    const INFO: &str = "env/lib/python3.11/site-packages/foo-1.0.dist-info";
    let lists = [LIST, JOURNAL, INFO, CONDA, CONDA_JOURNAL, "env/conda-meta"];
    for (name, odd) in lists.iter().flat_map(|list| ALL.map(|odd| (*list, odd))) {
        let is_directory = [INFO, "env/conda-meta"].contains(&name);
        if is_directory && matches!(odd, Odd::Directory | Odd::TooLarge) {
            continue;
        }
        let (place, hip) = environment();
        for journal in [JOURNAL, CONDA_JOURNAL] {
            fs::write(place.path(journal), "").unwrap();
        }
        let file = if name.contains("conda") { BAR } else { ONE };
        odd.replace(&place.path(name), &place.path("moved"));
        let moved = contents(&place.path("moved"));
        let output = place.offload(&[&THIN[..4], &[file]].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{name} {odd:?}: {said}");
        let start = format!("{}: ", Path::new(name).file_name().unwrap().display());
        assert!(said.contains(&start), "{name} {odd:?}: {said}");
        assert!(said.contains(&format!("{file}: may be listed where")), "{name} {odd:?}: {said}");
        assert!(fs::read(place.path(file)).unwrap() == hip, "{name} {odd:?}");
        let output = place.offload(&[&THIN[..], &["--allow-findings"]].concat());
        assert_eq!(output.status.code(), Some(1), "{name} {odd:?}: {}", stderr(&output));
        assert!(fs::read(place.path(file)).unwrap() != hip, "{name} {odd:?}");
        assert!(contents(&place.path("moved")) == moved, "{name} {odd:?}");
    }
}

/// Rows of files that are not edited are not opened, wherever they lead.
#[cfg(unix)]
#[test]
fn rows_that_lead_out_are_not_opened() {
    let (place, hip) = environment();
    let victim = place.path("hip.o");
    let made = crate::common::new_command("mkfifo").arg(place.path("env/pipe")).status();
    assert!(made.unwrap().success());
    let others = [
        row("../../../../hip.o", b"other"),
        row(victim.to_str().unwrap(), b"other"),
        "../../../pipe,sha256=x,1\n/dev/zero,sha256=x,1\n".into(),
    ];
    let list = others.concat() + &text(&place, LIST);
    fs::write(place.path(LIST), &list).unwrap();
    fs::write(place.path(JOURNAL), others.concat()).unwrap();
    place.succeeds(&THIN);
    assert!(text(&place, LIST).starts_with(&others.concat()));
    assert!(fs::read(&victim).unwrap() == hip);
}

/// An environment has more lists than a process may open files.
#[cfg(target_os = "linux")]
#[test]
fn many_lists_need_few_descriptors() {
    let (place, _) = environment();
    for number in 0..100 {
        let info = place.path(SITE).join(format!("other{number}-1.dist-info"));
        fs::create_dir(&info).unwrap();
        fs::write(info.join("RECORD"), format!("other{number}/a.o,,\n")).unwrap();
    }
    let thin = format!("ulimit -n 60; exec {} {}", tool("offload"), THIN.join(" "));
    let mut command = crate::common::new_command("sh");
    let output = command.args(["-c", &thin]).current_dir(place.path(".")).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(text(&place, LIST).contains(&right(&place, "foo/one.o")));
}

/// Files of a Python package beside its directory, as some wheels install libraries.
#[test]
fn files_of_rows_that_lead_up_are_compared_and_corrected() {
    let (place, hip) = environment();
    let (file, name) = ("env/lib/libthree.so", "../../libthree.so");
    let others = text(&place, LIST);
    let list = |bytes: &[u8]| fs::write(place.path(LIST), row(name, bytes) + &others).unwrap();
    fs::write(place.path(file), &hip).unwrap();
    list(b"other");
    for target in ["env", "env/lib", file] {
        let args = [&THIN[..4], &[target]].concat();
        place.fails(&args, "libthree.so: RECORD has the size 5, found 26912");
        assert!(fs::read(place.path(file)).unwrap() == hip);
    }
    for target in ["env", "env/lib", file] {
        fs::write(place.path(file), &hip).unwrap();
        list(&hip);
        fs::write(place.path(ONE), &hip).unwrap();
        fs::write(place.path(TWO), &hip).unwrap();
        place.succeeds(&[&THIN[..4], &[target]].concat());
        let thinned = fs::read(place.path(file)).unwrap();
        assert!(thinned != hip);
        assert!(text(&place, LIST).contains(&row(name, &thinned)), "{target}");
    }
    // A run was interrupted.
    let thinned = fs::read(place.path(file)).unwrap();
    list(&hip);
    fs::write(place.path(JOURNAL), row(name, &thinned)).unwrap();
    place.succeeds(&THIN);
    assert!(text(&place, LIST).contains(&row(name, &thinned)));
    assert!(!place.path(JOURNAL).exists());
}
