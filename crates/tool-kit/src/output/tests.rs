use std::io::ErrorKind::{AlreadyExists, NotFound};
use std::io::Write;

use super::*;

#[test]
fn names_cannot_leave_the_directory() {
    assert_eq!(safe_name("gfx90a:sramecc+:xnack-"), "gfx90a_sramecc+_xnack-");
    assert_eq!(safe_name("../../etc/passwd"), ".._.._etc_passwd");
    assert_eq!(safe_name("a\0b\nc\\d"), "a_b_c_d");
}

#[test]
fn names_are_plain_files_on_every_system() {
    for (name, extension, plain) in [
        ("a", "o", "a.o"),
        (".a", "o", "_.a.o"),
        ("-rf", "o", "_-rf.o"),
        ("", "o", "_.o"),
        ("con", "o", "_con.o"),
        ("NUL.x", "", "_NUL.x"),
        ("com1", "o", "_com1.o"),
        ("com", "o", "com.o"),
        ("com10", "o", "com10.o"),
        ("a. .", "", "a"),
    ] {
        assert_eq!(plain_name(name, extension), plain);
    }
    assert_eq!(plain_name(&"ä".repeat(500), "o").len(), 182);
}

fn write(outputs: &mut Outputs, path: &Path, text: &str) {
    outputs
        .write_or_print(path, NewPermissions::PLAIN, |file| file.write_all(text.as_bytes()))
        .unwrap();
}

#[test]
fn nothing_appears_before_commit_or_after_failure() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("new");
    let (a, b) = (directory.join("a"), directory.join("b"));
    let mut outputs = Outputs::default();
    outputs.make_directory(&directory.join("in/it")).unwrap();
    write(&mut outputs, &a, "one");
    assert!(!a.exists());
    drop(outputs);
    assert!(!directory.exists());

    let mut outputs = Outputs::default();
    outputs.make_directory(&directory).unwrap();
    write(&mut outputs, &a, "one");
    write(&mut outputs, &b, "two");
    outputs.commit().unwrap();
    assert_eq!(fs::read(b).unwrap(), b"two");
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 2);
}

#[test]
fn files_get_other_names_before_they_appear() {
    let place = tempfile::tempdir().unwrap();
    let name = |name: &str| Name::Typed(place.path().join(name));
    for always_named in [false, true] {
        let new = if always_named { "b" } else { "a" };
        let mut outputs = Outputs::default();
        outputs.always_named = always_named;
        write(&mut outputs, &place.path().join("for now"), "text");
        outputs.rename(&name("for now"), &name(new)).unwrap();
        assert_eq!(outputs.rename(&name("for now"), &name("c")).unwrap_err().kind(), NotFound);
        write(&mut outputs, &place.path().join("for now"), "other");
        let taken = outputs.rename(&name("for now"), &name(new)).unwrap_err();
        assert_eq!(taken.kind(), AlreadyExists);
        outputs.rename(&name("for now"), &name(&format!("{new}2"))).unwrap();
        outputs.commit().unwrap();
        assert_eq!(fs::read(place.path().join(new)).unwrap(), b"text");
    }
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 4);
}

#[test]
fn there_may_be_more_outputs_than_open_files() {
    let place = tempfile::tempdir().unwrap();
    let mut outputs = Outputs::default();
    for n in 0..3 * MOST_OPEN {
        write(&mut outputs, &place.path().join(n.to_string()), "one");
    }
    let open = outputs.files.values().filter(|output| output.file.is_some()).count();
    assert!(open <= MOST_OPEN && open == outputs.open);
    outputs.commit().unwrap();
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 3 * MOST_OPEN);
    // The next ones are not kept for what failed.
    let mut outputs = Outputs::default();
    for n in 0..3 * MOST_OPEN {
        write(&mut outputs, &place.path().join(n.to_string()), "two");
    }
    drop(outputs);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 3 * MOST_OPEN);
    assert_eq!(fs::read(place.path().join("7")).unwrap(), b"one");
}

#[test]
#[cfg(unix)]
fn dangling_links_stay_links() {
    use std::os::unix::fs::symlink;
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("in")).unwrap();
    symlink("in/other", place.path().join("link")).unwrap();
    symlink("../file", place.path().join("in/other")).unwrap();
    let paths = ["link", "in/other", "file", "in/../file"].map(|name| place.path().join(name));
    assert_eq!(named_twice(paths.iter().map(|path| &**path)), Some(&*paths[1]));
    for path in &paths {
        let found = FilePlace::find(path).unwrap();
        assert_eq!(found.directory.id(), Directory::open(place.path()).unwrap().id());
        assert_eq!(found.name, "file");
    }
    let mut outputs = Outputs::default();
    write(&mut outputs, &paths[0], "new");
    outputs.commit().unwrap();
    assert_eq!(fs::read(&paths[2]).unwrap(), b"new");
    assert!(fs::symlink_metadata(&paths[0]).unwrap().is_symlink());
    symlink("loop", place.path().join("loop")).unwrap();
    assert!(
        Outputs::default()
            .write_or_print(&place.path().join("loop"), NewPermissions::PLAIN, |_| Ok(()))
            .is_err()
    );
    assert!(fs::symlink_metadata(place.path().join("loop")).unwrap().is_symlink());
}

#[test]
#[cfg(unix)]
fn links_and_permissions_are_kept() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let place = tempfile::tempdir().unwrap();
    let (file, link) = (place.path().join("file"), place.path().join("link"));
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("file", &link).unwrap();
    let mut outputs = Outputs::default();
    write(&mut outputs, &link, "new");
    assert_eq!(fs::read(&file).unwrap(), b"old");
    outputs.commit().unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"new");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
}

/// Returns the names of files that are not complete.
#[cfg(unix)]
fn hidden(place: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
    names.filter(|path| path.to_str().unwrap().contains("/.offload-")).collect()
}

/// Nobody can run or open an incomplete file, and set-user-ID is set last.
#[test]
#[cfg(unix)]
fn the_mode_is_set_when_the_contents_are_there() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    for always_named in [false, true] {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("program");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).unwrap();
        let mut outputs = Outputs::default();
        outputs.always_named = always_named;
        let name = Name::Typed(path.clone());
        let how = NewPermissions::PLAIN.into();
        // Some are written to later.
        let mut file = outputs.write(&name, how, |file| file.try_clone()).unwrap();
        let named = hidden(place.path());
        assert_eq!(named.len(), usize::from(always_named));
        assert!(named.iter().all(|path| mode(path) == 0o600));
        file.write_all(b"new").unwrap();
        assert!(hidden(place.path()).iter().all(|path| mode(path) == 0o600));
        outputs.commit().unwrap();
        assert_eq!((mode(&path), &*fs::read(&path).unwrap()), (0o4755, &b"new"[..]));
        assert!(hidden(place.path()).is_empty());
    }
}

#[test]
#[cfg(unix)]
fn a_replaced_directory_gets_no_files() {
    use std::os::unix::fs::symlink;
    let place = tempfile::tempdir().unwrap();
    let [images, aside, other] = ["images", "aside", "other"].map(|n| place.path().join(n));
    for moment in 0..2 {
        for always_named in [false, true] {
            let _ = fs::remove_file(&images);
            let _ = [&aside, &other].map(fs::remove_dir_all);
            fs::create_dir(&other).unwrap();
            let swap = || {
                fs::rename(&images, &aside).unwrap();
                symlink("other", &images).unwrap();
            };
            let mut outputs = Outputs::default();
            outputs.always_named = always_named;
            let directory = outputs.make_directory(&images).unwrap();
            if moment == 0 {
                swap();
            }
            let write = |file: &mut File| file.write_all(b"new");
            let how = NewPermissions::PLAIN.into();
            outputs.write(&directory.file("image"), how, write).unwrap();
            if moment == 1 {
                swap();
            }
            outputs.commit().unwrap();
            assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
            assert_eq!(fs::read(aside.join("image")).unwrap(), b"new");
            assert_eq!(fs::read_dir(&aside).unwrap().count(), 1);
        }
    }
}

#[test]
fn only_the_file_that_was_edited_is_replaced() {
    let place = tempfile::tempdir().unwrap();
    let [path, newer] = ["file", "newer"].map(|name| place.path().join(name));
    let edit = |stamp: Stamp| {
        let how = How { new: NewPermissions::PLAIN, replaces: Some(stamp) };
        let mut outputs = Outputs::default();
        let write = |file: &mut File| file.write_all(b"edited");
        outputs.write(&Name::Typed(path.clone()), how, write).map(|()| outputs)
    };
    let stamp = || Stamp::of(&File::open(&path).unwrap()).unwrap();
    fs::write(&path, "first").unwrap();
    edit(stamp()).unwrap().commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"edited");

    // Another file of the same size and time.
    let replace = || {
        fs::write(&newer, "newest").unwrap();
        let time = File::open(&path).unwrap().metadata().unwrap().modified().unwrap();
        File::options().write(true).open(&newer).unwrap().set_modified(time).unwrap();
        fs::rename(&newer, &path).unwrap();
    };
    let is_kept = |error: &io::Error| {
        assert!(error.to_string().contains("the file was replaced or written to"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"newest");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    };
    if cfg!(unix) {
        let outputs = edit(stamp()).unwrap();
        replace();
        is_kept(&outputs.commit().unwrap_err());
        let old = stamp();
        fs::write(&newer, "newest").unwrap();
        fs::rename(&newer, &path).unwrap();
        is_kept(&edit(old).unwrap_err());
    }
    // It may also be written to, or go.
    let outputs = edit(stamp()).unwrap();
    fs::write(&path, "newest of all").unwrap();
    assert!(outputs.commit().is_err());
    assert_eq!(fs::read(&path).unwrap(), b"newest of all");
    let outputs = edit(stamp()).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(outputs.commit().is_err());
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}
