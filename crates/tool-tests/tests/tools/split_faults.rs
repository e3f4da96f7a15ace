//! Wheels with damage, with hostile metadata and with paths that clash, which are split and joined.

use std::fs;

use crate::common::{new_command, stderr, stdout, tool};
use crate::split_wheels::{INFO, NAME, data_file, device, drop_in, library, names, place, read};
use crate::wheels::Place;
use samples::packages::{self, Around, Made};

const MOVED: &str = "foo/rocblas/library/x_gfx1100.dat";

/// The members of a wheel after a change, with a right `RECORD`.
fn changed(files: &[(&str, &[u8])], change: impl FnOnce(&mut Vec<Made>)) -> Vec<u8> {
    let mut members = packages::wheel(files);
    members.pop();
    change(&mut members);
    let row = |made: &Made| {
        let name = String::from_utf8(made.name.clone()).unwrap();
        format!("{name},{},{}\n", packages::sha256(&made.contents), made.contents.len())
    };
    let rows: String = members.iter().map(row).collect();
    members.push(Made::new(&format!("{INFO}/RECORD"), format!("{rows}{INFO}/RECORD,,\n")));
    packages::zip(&members, &Around::default())
}

/// A wheel with these lines in the file `WHEEL`.
fn with_lines(lines: &str) -> Vec<u8> {
    changed(&[("foo/libfoo.so", &library(&[&["gfx1100"]]))], |members| {
        let wheel = members.iter_mut().find(|made| made.name.ends_with(b"/WHEEL")).unwrap();
        wheel.contents.extend(lines.as_bytes());
    })
}

/// A wheel in which a member is another one than `RECORD` says.
fn damaged(files: &[(&str, &[u8])], name: &str) -> Vec<u8> {
    let mut members = packages::wheel(files);
    let made = members.iter_mut().find(|made| made.name == name.as_bytes()).unwrap();
    *made.contents.last_mut().unwrap() ^= 1;
    packages::zip(&members, &Around::default())
}

#[test]
fn build_tags_are_checked() {
    for (line, found) in [("Build: 1/../../evil\n", "1/../../evil"), ("Build: x\n", "x")] {
        let place = Place::with("foo.whl", &with_lines(line));
        let words = format!("{INFO}/WHEEL: expected a build tag of a digit");
        place.fails(&["split", "foo.whl", "-o", "out"], &words);
        place.fails(&["split", "foo.whl", "-o", "out"], &format!("found '{found}'"));
        assert!(!place.path("out").exists());
    }
    let place = Place::with("foo.whl", &with_lines("Build:\n"));
    place.succeeds(&["split", "foo.whl", "-o", "out"]);
    assert!(place.path("out").join(NAME).exists());
    // Tags are one set, however often they are there.
    let tags: String = (0..40_000).map(|n| format!("Tag: py{n}-none-any\n")).collect();
    let place = Place::with("foo.whl", &with_lines(&tags));
    // Its name is too long for a file.
    place.fails(&["split", "foo.whl", "-o", "out"], "name too long");
}

#[test]
fn new_wheels_have_names_of_their_own() {
    let name = "foo-gfx1100";
    let made = changed(&[("foo/libfoo.so", &library(&[&["gfx1100"]]))], |members| {
        let of = members.iter_mut().find(|made| made.name.ends_with(b"/METADATA")).unwrap();
        of.contents = format!("Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n").into_bytes();
    });
    let place = Place::with("foo.whl", &made);
    for prefix in ["foo", "FOO"] {
        let args = ["split", "foo.whl", "-o", "out", "--device-prefix", prefix];
        place.fails(&args, "two new wheels would have the name foo_gfx1100-1.0-py3-none-any.whl");
    }
    assert!(!place.path("out").exists());
    // A device wheel does not replace the input either.
    fs::rename(place.path("foo.whl"), place.path("foo_device_gfx1100-1.0-py3-none-any.whl"))
        .unwrap();
    let args =
        ["foo_device_gfx1100-1.0-py3-none-any.whl", "-o", ".", "--device-prefix", "foo-device"];
    place.fails(&[&["split"], &args[..]].concat(), "would replace the wheel that is split");
}

#[test]
fn files_that_differ_from_record_do_not_become_right() {
    let library = data_file("hip-two-units.so");
    let files: [(&str, &[u8]); 3] =
        [("foo/libfoo.so", &library), (MOVED, b"solutions"), ("foo/a.py", b"x = 1\n")];
    // A file that moves to a device wheel.
    let place = Place::with("foo.whl", &damaged(&files, MOVED));
    place.fails(
        &["split", "foo.whl", "-o", "out"],
        &format!("foo.whl:{MOVED}: RECORD has the hash"),
    );
    assert!(!place.path("out").exists());
    let split = ["split", "foo.whl", "-o", "out", "--allow-findings"];
    let said = stderr(&place.offload(&split));
    assert!(said.contains(&format!("{MOVED}: RECORD has the hash")), "{said}");
    // The drop-in splits it, and says it without being asked.
    let args = ["--input", "foo.whl", "--output-dir", "b", "--wheel-type", "torch-fat"];
    let output = drop_in(
        &place,
        &[&args[..], &["--device-package-prefix", "foo-device", "--overlay-root", "foo"]].concat(),
    );
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains(&format!("{MOVED}: RECORD has the hash")), "{said}");

    // Members of a host wheel and of a device wheel that are joined.
    let place = self::place(&files);
    place.succeeds(&["split", "foo.whl", "-o", "out"]);
    let (host, gpu) = (format!("out/{NAME}"), device("gfx1100"));
    let pack = "foo/.kpack/foo_gfx1100.kpack";
    for (wheel, name) in
        [(&host, "foo/a.py"), (&host, "foo/libfoo.so"), (&gpu, MOVED), (&gpu, pack)]
    {
        let whole = fs::read(place.path(wheel)).unwrap();
        let mut members: Vec<_> =
            read(&place, wheel).into_iter().map(|(name, bytes)| Made::new(&name, bytes)).collect();
        let made = members.iter_mut().find(|made| made.name == name.as_bytes()).unwrap();
        *made.contents.last_mut().unwrap() ^= 1;
        fs::write(place.path(wheel), packages::zip(&members, &Around::default())).unwrap();
        let join = ["join", &host, &gpu, "-o", "back.whl"];
        place.fails(&join, &format!("{wheel}:{name}: RECORD has the hash"));
        assert!(!place.path("back.whl").exists());
        if name == MOVED {
            let output = place.offload(&[&join[..], &["--allow-findings"]].concat());
            let said = stderr(&output);
            assert!(output.status.success() && said.contains("RECORD has the hash"), "{said}");
            fs::remove_file(place.path("back.whl")).unwrap();
        }
        fs::write(place.path(wheel), whole).unwrap();
    }
    place.succeeds(&["join", &host, &gpu, "-o", "back.whl"]);
}

#[test]
fn signatures_are_dropped_when_told() {
    let place = place(&[("foo/libfoo.so", &data_file("hip-two-units.so"))]);
    place.succeeds(&["split", "foo.whl", "-o", "out"]);
    let host = format!("out/{NAME}");
    let mut members: Vec<_> =
        read(&place, &host).into_iter().map(|(name, bytes)| Made::new(&name, bytes)).collect();
    members.push(Made::new(&format!("{INFO}/RECORD.jws"), "{}"));
    fs::write(place.path(&host), packages::zip(&members, &Around::default())).unwrap();
    let gpu = device("gfx1100");
    let join = ["join", &host, &gpu, "-o", "back.whl"];
    place.fails(&join, "RECORD.jws: the wheel is signed");
    assert!(!place.path("back.whl").exists());
    place.succeeds(&[&join[..], &["--drop-signature"]].concat());
    assert!(!read(&place, "back.whl").contains_key(&format!("{INFO}/RECORD.jws")));
}

#[test]
fn variants_are_not_split() {
    let made = changed(&[("foo/libfoo.so", &library(&[&["gfx1100"]]))], |members| {
        members.push(Made::new(&format!("{INFO}/variant.json"), "{}"));
    });
    let place = Place::with("foo-1.0-py3-none-any-rocm.whl", &made);
    place.fails(
        &["split", "foo-1.0-py3-none-any-rocm.whl", "-o", "out"],
        "a variant of a wheel, by its variant.json",
    );
    assert!(!place.path("out").exists());
}

#[test]
fn files_and_directories_of_one_path_are_refused() {
    let library = library(&[&["gfx1100"]]);
    for taken in ["foo/.kpack/foo_gfx1100.kpack", "foo/.kpack", "foo/.kpack/foo_gfx1100.kpack/x"] {
        let place = place(&[("foo/libfoo.so", &library), (taken, b"taken")]);
        let words = format!(
            "the kernel pack foo/.kpack/foo_gfx1100.kpack has no place beside the file {taken}"
        );
        place.fails(&["split", "foo.whl", "-o", "out"], &words);
        assert!(!place.path("out").exists());
    }
    let place = place(&[("foo/libfoo.so", &library)]);
    place.succeeds(&["split", "foo.whl", "-o", "out"]);
    let (host, gpu) = (format!("out/{NAME}"), device("gfx1100"));
    let mut members: Vec<_> =
        read(&place, &gpu).into_iter().map(|(name, bytes)| Made::new(&name, bytes)).collect();
    members.push(Made::new("foo/libfoo.so/x", "x"));
    fs::write(place.path(&gpu), packages::zip(&members, &Around::default())).unwrap();
    place.fails(
        &["join", &host, &gpu, "-o", "back.whl", "--allow-findings"],
        "and foo/libfoo.so/x in out/foo_device_gfx1100-1.0-py3-none-any.whl: a file and a directory",
    );
}

#[test]
fn large_members_need_a_limit_that_allows_them() {
    let library = data_file("hip-two-units.so");
    let mut zeros = library.clone();
    zeros.resize(16 << 20, 0);
    let place = place(&[("foo/libfoo.so", &library), ("foo/libzeros.so", &zeros)]);
    let limit = ["--max-decompressed", "8M"];
    let words = "needs more than --max-decompressed=8388608 bytes";
    let split = ["split", "foo.whl", "-o", "out"];
    place.fails(&[&split[..], &limit].concat(), &format!("foo.whl:foo/libzeros.so: {words}"));
    assert!(!place.path("out").exists());
    place.succeeds(&split);
    let (host, gpu) = (format!("out/{NAME}"), device("gfx1100"));
    let join = ["join", &host, &gpu, "-o", "back.whl"];
    let named = format!("{host}:foo/libzeros.so: {words}");
    place.fails(&[&join[..], &limit].concat(), &named);
    place.succeeds(&join);
}

/// The new members of a wheel are held in files, and few files are open at a time.
#[cfg(target_os = "linux")]
#[test]
fn many_libraries_need_little_memory_and_few_descriptors() {
    let library = data_file("hip-two-units.so");
    let names: Vec<_> = (0..60).map(|n| format!("foo/lib{n}.so")).collect();
    // Code that does not compress, in a section that stays.
    let mut state = 1_u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_le_bytes()[3]
    };
    let files: Vec<_> = names
        .iter()
        .map(|name| {
            let mut library = library.clone();
            library.extend((0..20_000).map(|_| noise()));
            (&**name, library)
        })
        .collect();
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, it)| (*name, &**it)).collect();
    let place = place(&files);
    let run = |line: &str| {
        let line = format!("ulimit -n 50; exec {} {line}", tool("offload"));
        let mut command = new_command("sh");
        let output = command.args(["-c", &line]).current_dir(place.path(".")).output().unwrap();
        assert!(output.status.success(), "{line}: {}", stderr(&output));
    };
    // Less than all libraries have, and more than one.
    run("split foo.whl -o out --max-decompressed 500K");
    let (host, gpu) = (format!("out/{NAME}"), device("gfx1100"));
    let others: Vec<_> =
        names_of(&place).into_iter().filter(|name| *name != host && *name != gpu).collect();
    run(&format!("join {host} {gpu} {} -o back.whl", others.join(" ")));
    for (name, contents) in files {
        assert!(read(&place, "back.whl")[name] == contents, "{name}");
    }
}

#[cfg(target_os = "linux")]
fn names_of(place: &Place) -> Vec<String> {
    names(place, "out").into_iter().map(|name| format!("out/{name}")).collect()
}

#[test]
fn damage_is_said_with_its_place() {
    let library = library(&[&["gfx1100"]]);
    // A wrapper that leads nowhere, outside of what is split, is a note.
    let mut broken = library.clone();
    let magic = *b"FPIH";
    let at = broken.windows(4).rposition(|part| part == magic).unwrap();
    broken[at] ^= 0xff;
    let place = place(&[("foo/libfoo.so", &library), ("bar/libbar.so", &broken)]);
    let output = place.offload(&["split", "foo.whl", "-o", "out", "--overlay-root", "foo"]);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("bar/libbar.so: it stays as it is, as it is damaged: "), "{said}");
    place.fails(
        &["split", "foo.whl", "-o", "x", "--overlay-root", "bar"],
        "foo.whl:bar/libbar.so: ",
    );
}

#[test]
fn outputs_of_a_join_are_not_its_inputs() {
    let place = place(&[("foo/libfoo.so", &data_file("hip-two-units.so"))]);
    place.succeeds(&["split", "foo.whl", "-o", "out"]);
    let (host, gpu) = (format!("out/{NAME}"), device("gfx1100"));
    place.fails(&["join", &host, &gpu, "-o", &gpu], "this is an input");
    place.fails(&["join", &host, &gpu, "-o", &format!("out/../{gpu}")], "this is an input");
    assert_eq!(names(&place, "out").len(), 2);
    let place = Place::with("lib.so", &data_file("hip-two-units.so"));
    place.succeeds(&["split", "lib.so", "--group", "g", "-o", "out"]);
    let pack = "out/.kpack/g_gfx1100.kpack";
    for packs in [&[][..], &[pack]] {
        place.fails(&[&["join", "out/lib.so", "-o", pack], packs].concat(), "this is an input");
    }
}

#[test]
fn options_that_do_not_apply_are_refused() {
    let place = place(&[("foo/libfoo.so", &library(&[&["gfx1100"]]))]);
    fs::write(place.path("lib.so"), library(&[&["gfx1100"]])).unwrap();
    fs::copy(place.path("foo.whl"), place.path("other.whl")).unwrap();
    let zip = packages::zip(&[Made::new("a", "a")], &Around::default());
    fs::write(place.path("n.zip"), zip).unwrap();
    for (args, words) in [
        (&["foo.whl", "--kpack-dir", "k"][..], "--group <GROUP>"),
        (&["foo.whl", "--prefix", "k"], "--group <GROUP>"),
        (&["foo.whl", "--level", "99"], "99 is not in"),
        (&["foo.whl", "other.whl"], "foo.whl: a package among several files"),
        (&["n.zip", "--group", "g"], "n.zip: expected a wheel"),
        (&["lib.so", "--group", "g", "--keep-files"], "--keep-files is for wheels"),
        (&["lib.so", "--group", "g", "--overlay-root", "a"], "--overlay-root is for wheels"),
        (
            &["foo.whl", "--device-requires", "a\nName: b"],
            "without control characters, found 'a\\nName",
        ),
    ] {
        let output = place.offload(&[&["split", "-o", "out"], args].concat());
        assert!(!output.status.success(), "{args:?}: {}", stdout(&output));
        assert!(stderr(&output).contains(words), "{args:?}: {}", stderr(&output));
    }
    assert!(!place.path("out").exists());
    place.succeeds(&["split", "lib.so", "--group", "g", "--level", "-5", "-o", "out"]);
}

#[cfg(unix)]
#[test]
fn directories_have_regular_files_which_stay_executable() {
    use std::os::unix::fs::PermissionsExt;

    let place = place(&[("foo/libfoo.so", &library(&[&["gfx1100"]]))]);
    for (name, bytes) in read(&place, "foo.whl") {
        let path = place.path("tree").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let mode = |path: &str| fs::metadata(place.path(path)).unwrap().permissions().mode() & 0o111;
    fs::set_permissions(place.path("tree/foo/libfoo.so"), fs::Permissions::from_mode(0o755))
        .unwrap();
    let run = |output: &str| {
        let args = ["--input", "tree", "--output-dir", output, "--output-format", "directory"];
        let more = ["--device-package-prefix", "foo-device", "--overlay-root", "foo"];
        drop_in(&place, &[&args[..], &more].concat())
    };
    let output = run("a");
    assert!(output.status.success(), "{}", stderr(&output));
    let host = "a/foo-1.0-py3-none-any";
    assert_ne!(mode(&format!("{host}/foo/libfoo.so")), 0);
    assert_eq!(mode(&format!("{host}/{INFO}/METADATA")), 0);
    let made = new_command("mkfifo").arg(place.path("tree/foo/pipe")).status();
    assert!(made.unwrap().success());
    let output = run("b");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("tree/foo/pipe: not a regular file"), "{}", stderr(&output));
}
