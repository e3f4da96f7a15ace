//! Wheels: looked into, and edited with their `RECORD`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gpu_packages::Record;
use samples::packages::{self, Around, Made};

use crate::common::{data, new_command, stderr, stdout, tool};

const RECORD: &str = "foo-1.0.dist-info/RECORD";

/// Returns a wheel with two objects that have device code, and more files.
fn wheel(more: &[(&str, &[u8])]) -> Vec<u8> {
    let [hip, cuda] = ["hip.o", "cuda-fatbin.o"].map(|name| fs::read(data(name)).unwrap());
    let mut files: Vec<(&str, &[u8])> = vec![
        ("foo/__init__.py", b"\"\"\"A package.\"\"\"\n"),
        ("foo/hip.o", &hip),
        ("foo/library/cuda.o", &cuda),
        ("foo-1.0.dist-info/METADATA", b"Name: foo\nVersion: 1.0\n"),
    ];
    files.extend(more);
    let rows = files
        .iter()
        .map(|(name, bytes)| format!("{name},{},{}\n", packages::sha256(bytes), bytes.len()));
    let list = format!("{}{RECORD},,\n", rows.collect::<String>());
    files.push((RECORD, list.as_bytes()));
    let members = files.into_iter().map(|(name, bytes)| Made::new(name, bytes));
    packages::zip(&members.collect::<Vec<_>>(), &Around::default())
}

/// Returns all members, in order.
pub(crate) fn members(wheel: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut archive = zip::ZipArchive::new(Cursor::new(wheel)).unwrap();
    let count = archive.len();
    let read = |at| {
        let mut file = archive.by_index(at).unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        (file.name().unwrap().into_owned(), bytes)
    };
    (0..count).map(read).collect()
}

/// Fails unless the list of files has the hash and the size of each member, and no other.
fn check_record(members: &[(String, Vec<u8>)]) {
    let files: BTreeMap<&str, &[u8]> =
        members.iter().map(|(name, bytes)| (&**name, &**bytes)).collect();
    let record = Record::parse(files[RECORD]).unwrap();
    let mut listed = 0;
    for row in record.rows().filter(|row| row.path() != RECORD.as_bytes()) {
        let name = std::str::from_utf8(row.path()).unwrap();
        let bytes = files[name];
        let (found, size) = (row.hash_field(), row.size());
        assert_eq!(
            (found, size),
            (packages::sha256(bytes).as_bytes(), Some(bytes.len() as u64)),
            "{name}"
        );
        listed += 1;
    }
    assert_eq!(listed + 1, files.len());
}

pub(crate) struct Place(tempfile::TempDir);

impl Place {
    fn new(wheel: &[u8]) -> Self {
        Place::with("foo.whl", wheel)
    }

    /// Makes a directory with this file.
    pub(crate) fn with(name: &str, bytes: &[u8]) -> Self {
        let place = Place(tempfile::tempdir().unwrap());
        fs::write(place.path(name), bytes).unwrap();
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = new_command(tool("offload"));
        command.args(args).current_dir(&self.0);
        command
    }

    pub(crate) fn offload(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    pub(crate) fn succeeds(&self, args: &[&str]) -> String {
        let output = self.offload(args);
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        stdout(&output)
    }

    pub(crate) fn fails(&self, args: &[&str], words: &str) {
        let output = self.offload(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        // Findings of `verify` are its output.
        let said = stdout(&output) + &stderr(&output);
        assert!(said.contains(words), "{args:?}: {said}");
    }
}

fn read(path: impl AsRef<Path>) -> Vec<u8> {
    fs::read(path).unwrap()
}

#[test]
fn members_are_looked_into() {
    let place = Place::new(&wheel(&[]));
    let listed = place.succeeds(&["ls", "foo.whl"]);
    assert!(listed.contains("foo.whl:foo/hip.o") && listed.contains("foo.whl:foo/library/cuda.o"));
    assert!(!listed.contains("__init__"), "{listed}");
    assert_eq!(
        place.succeeds(&["verify", "foo.whl"]),
        "foo.whl: ok, wheel, 5 members, 4 with the recorded hash\n\
         foo.whl:foo/hip.o: ok, 5 images in 1 container\n\
         foo.whl:foo/library/cuda.o: ok, 3 images in 1 container\n3 files: ok\n"
    );
    assert_eq!(
        place.succeeds(&["match", "--gpu", "gfx1100,sm_86", "foo.whl"]),
        "foo.whl: has code for gfx1100 in foo/hip.o\n\
         foo.whl: has code for sm_86 in foo/library/cuda.o\n"
    );
    assert_eq!(place.offload(&["match", "--gpu", "gfx1201", "foo.whl"]).status.code(), Some(1));
    place.fails(
        &["match", "--gpu", "intel_gpu_pvc", "foo.whl"],
        "no code for intel_gpu_pvc in 5 members",
    );
    // The images are those of the members by themselves.
    let whole = place.succeeds(&["ls", "--json", "--hash", "foo.whl"]);
    for (name, bytes) in members(&read(place.path("foo.whl"))) {
        if name.ends_with(".o") {
            fs::write(place.path("member"), bytes).unwrap();
            let alone = place.succeeds(&["ls", "--json", "--hash", "member"]);
            let alone = alone.replace("\"member\"", &format!("\"foo.whl:{name}\""));
            for row in alone.lines().filter(|line| line.contains("index")) {
                assert!(whole.contains(row.trim_end_matches(',')), "{row}");
            }
        }
    }
    assert!(place.succeeds(&["kernels", "foo.whl"]).contains("scale"));
}

#[test]
fn thinned_wheels_have_a_right_record() {
    let old = wheel(&[]);
    let place = Place::new(&old);
    place.succeeds(&["thin", "--keep", "gfx1100", "foo.whl", "-o", "small.whl"]);
    let (before, after) = (members(&old), members(&read(place.path("small.whl"))));
    check_record(&after);
    let names =
        |members: &[(String, Vec<u8>)]| members.iter().map(|m| m.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(&before), names(&after));
    let changed =
        before.iter().zip(&after).filter(|(old, new)| old.1 != new.1).map(|(old, _)| &*old.0);
    assert_eq!(changed.collect::<Vec<_>>(), ["foo/hip.o", RECORD]);
    // The member is what the file by itself becomes.
    fs::write(place.path("hip.o"), &before[1].1).unwrap();
    place.succeeds(&["thin", "--keep", "gfx1100", "hip.o", "-o", "small.o"]);
    assert_eq!(after[1].1, read(place.path("small.o")));
}

#[test]
fn wheels_are_compressed_and_come_back() {
    let old = wheel(&[]);
    let place = Place::new(&old);
    place.succeeds(&["compress", "foo.whl", "-o", "small.whl"]);
    place.succeeds(&["decompress", "--in-place", "small.whl"]);
    let new = members(&read(place.path("small.whl")));
    check_record(&new);
    assert_eq!(new[1], members(&old)[1]);
}

/// A package compresses plain code better than code that is compressed by itself.
#[test]
fn what_compressed_code_needs_is_said_of_packages_that_grow() {
    let place = Place::new(b"");
    fs::copy(data("kernels.fatbin"), place.path("plain")).unwrap();
    place.succeeds(&["decompress", "--in-place", "plain"]);
    let member = Made::new("k.fatbin", read(place.path("plain")));
    fs::write(place.path("a.zip"), packages::zip(&[member], &Around::default())).unwrap();
    let said = place.succeeds(&["compress", "--dry-run", "a.zip"]);
    assert!(said.contains(" B more in 1 file\nwould need driver 550 or later: "), "{said}");
}

#[test]
fn outputs_go_to_a_directory_or_into_the_place_of_the_wheel() {
    let place = Place::new(&wheel(&[]));
    fs::create_dir(place.path("out")).unwrap();
    place.succeeds(&["thin", "--keep", "gfx1100", "foo.whl", "-o", "out"]);
    place.succeeds(&["thin", "--keep", "gfx1100", "--in-place", "foo.whl"]);
    assert_eq!(read(place.path("foo.whl")), read(place.path("out/foo.whl")));
    // Nothing is left to do.
    let before = fs::metadata(place.path("foo.whl")).unwrap().modified().unwrap();
    place.succeeds(&["thin", "--keep", "gfx1100", "--in-place", "foo.whl"]);
    assert_eq!(fs::metadata(place.path("foo.whl")).unwrap().modified().unwrap(), before);
}

#[test]
fn a_wheel_on_standard_output_is_nothing_else() {
    let place = Place::new(&wheel(&[]));
    place.succeeds(&["thin", "--keep", "gfx1100", "foo.whl", "-o", "small.whl"]);
    let output = place.offload(&["thin", "--keep", "gfx1100", "foo.whl", "-o", "-"]);
    assert!(output.status.success());
    assert!(output.stdout == read(place.path("small.whl")));
}

#[test]
fn kernel_databases_leave_a_wheel() {
    let hip = fs::read(data("hip.o")).unwrap();
    let code = &hip[20480..][..3784];
    let databases = ["rocblas/library/Kernels.so-000-gfx90a.hsaco", "miopen/db/gfx90a68.kdb"];
    let others = ["rocblas/library/text_gfx90a.dat", "foo/library/Kernels.so-000-gfx90a.dat"];
    let files: [(&str, &[u8]); 5] = [
        (databases[0], code),
        (databases[1], b"SQLite format 3\0"),
        (others[0], b"text"),
        (others[1], b"text"),
        // Without code for the GPU, the database as a whole would be left alone.
        ("rocblas/library/kept.co", &hip[8192..][..3208]),
    ];
    let place = Place::new(&wheel(&files));
    // A file of this name has nothing to do with the member.
    fs::create_dir_all(place.path("miopen/db")).unwrap();
    fs::write(place.path("miopen/db/gfx90a68.kdb"), "text").unwrap();
    for (gpu, is_left) in [("gfx1100", false), ("gfx90a", true)] {
        place.succeeds(&["thin", "--keep", gpu, "--databases", "foo.whl", "-o", "small.whl"]);
        let new = members(&read(place.path("small.whl")));
        check_record(&new);
        let has = |name: &str| new.iter().any(|(found, _)| found == name);
        assert!(databases.iter().all(|name| has(name) == is_left), "{gpu}");
        assert!(others.iter().all(|name| has(name)), "{gpu}");
    }
}

/// A database with no code for the GPU stays in a wheel and in an archive, as it stays in a directory.
#[test]
fn databases_without_code_for_the_gpu_stay_as_in_a_directory() {
    let hip = fs::read(data("hip.o")).unwrap();
    let name = "rocblas/library/Kernels.so-000-gfx90a.hsaco";
    let files: [(&str, &[u8]); 2] = [(name, &hip[20480..][..3784]), ("lib/hip.o", &hip)];
    let place = Place::new(&wheel(&files));
    fs::write(place.path("foo.tar"), packages::tar(&files)).unwrap();
    for (file, contents) in files {
        let path = place.path("env").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }
    let thin = ["thin", "--keep", "gfx1100", "--databases"];
    place.succeeds(&[&thin[..], &["foo.whl", "-o", "small.whl"]].concat());
    place.succeeds(&[&thin[..], &["foo.tar", "-o", "small.tar"]].concat());
    place.succeeds(&[&thin[..], &["env", "--in-place"]].concat());
    assert!(place.path("env").join(name).exists());
    let new = members(&read(place.path("small.whl")));
    check_record(&new);
    assert!(new.iter().any(|(found, _)| found == name));
    let listed = place.succeeds(&["ls", "small.tar"]);
    assert!(listed.contains("Kernels.so-000-gfx90a.hsaco"), "{listed}");
}

/// Files that are device code as a whole, whatever their names; compressed ones as well.
#[test]
fn loose_images_leave_packages() {
    let hip = fs::read(data("hip.o")).unwrap();
    let (gfx90a, gfx1100) = (&hip[20480..][..3784], &hip[8192..][..3208]);
    let packed = packages::gzip(gfx90a);
    let files: [(&str, &[u8]); 5] = [
        ("foo/kernels/one", gfx90a),
        ("foo/kernels/two.co", gfx1100),
        ("foo/kernels/three.gz", &packed),
        ("foo/kernels/gfx90a.co", b"text"),
        ("foo/kernels/more.gz", &packages::gzip(b"text")),
    ];
    let going = [files[0].0, files[2].0];
    let place = Place::new(&wheel(&files));
    place.succeeds(&["thin", "--keep", "gfx1100", "--databases", "foo.whl", "-o", "small.whl"]);
    let new = members(&read(place.path("small.whl")));
    check_record(&new);
    for (name, _) in files {
        assert_eq!(new.iter().any(|(found, _)| found == name), !going.contains(&name), "{name}");
    }
    // None is for this GPU.
    let only = Place::new(&packages::zip(&[Made::new("one", gfx90a)], &Around::default()));
    let thin = ["thin", "--keep", "gfx1100", "--databases", "--allow-missing"];
    only.fails(
        &[&thin[..], &["foo.whl", "-o", "new.whl"]].concat(),
        "foo.whl:one: --keep gfx1100: no such image; the file has gfx90a:sramecc+:xnack-",
    );
    // A hard link in a tar file goes with its file.
    let mut tar = packages::tar(&[("./one", gfx90a), ("two", gfx1100)]);
    tar.truncate(tar.len() - 1024);
    tar.extend(packages::tar_header(b"link", 0, b'1', b"./one"));
    tar.extend(packages::tar_header(b"other", 0, b'1', b"two"));
    tar.extend([0; 1024]);
    fs::write(place.path("foo.tar"), tar).unwrap();
    place.succeeds(&["thin", "--keep", "gfx1100", "--databases", "foo.tar", "-o", "small.tar"]);
    let mut tar = gpu_packages::TarReader::new(Cursor::new(read(place.path("small.tar"))));
    let mut left = Vec::new();
    while let Some(member) = tar.next_member().unwrap() {
        left.push(String::from_utf8_lossy(member.name()).into_owned());
    }
    assert_eq!(left, ["two", "other"]);
}

#[test]
fn signed_wheels_are_refused_unless_told() {
    let signature = "foo-1.0.dist-info/RECORD.jws";
    let place = Place::new(&wheel(&[(signature, b"{}")]));
    let thin = ["thin", "--keep", "gfx1100", "foo.whl", "-o", "small.whl"];
    place.fails(&thin, "foo-1.0.dist-info/RECORD.jws: the wheel is signed");
    assert!(!place.path("small.whl").exists());
    place.succeeds(&[&thin[..], &["--drop-signature"]].concat());
    let new = members(&read(place.path("small.whl")));
    check_record(&new);
    assert!(!new.iter().any(|(name, _)| name == signature));
}

#[test]
fn damaged_wheels_are_errors_and_nothing_is_written() {
    let whole = wheel(&[]);
    let place = Place::new(&whole);
    let start = whole.windows(9).position(|bytes| bytes == b"foo/hip.o").unwrap();
    let mut damaged = whole.clone();
    damaged[start + 2000] ^= 1;
    for (bytes, words) in [
        (&whole[..whole.len() - 30], "expected a zip file with an end of central directory"),
        (&damaged[..], "foo/hip.o: "),
    ] {
        fs::write(place.path("foo.whl"), bytes).unwrap();
        for args in [
            &["ls", "foo.whl"][..],
            &["verify", "foo.whl"],
            &["match", "--gpu", "gfx1100", "foo.whl"],
        ] {
            place.fails(args, words);
        }
        place.fails(&["thin", "--keep", "gfx1100", "foo.whl", "-o", "small.whl"], words);
        place.fails(&["thin", "--keep", "gfx1100", "--in-place", "foo.whl"], words);
        assert!(!place.path("small.whl").exists());
        assert_eq!(read(place.path("foo.whl")), bytes);
    }
    fs::write(place.path("foo.whl"), &whole).unwrap();
    place
        .fails(&["ls", "--max-decompressed", "1K", "foo.whl"], "more than --max-decompressed=1024");
    place.fails(
        &["thin", "--keep", "gfx1201", "foo.whl", "-o", "small.whl"],
        "foo.whl:foo/hip.o: --keep gfx1201: no such image",
    );
}

/// An edit must not give files that were tampered with a record that says that they are right.
#[test]
fn wheels_that_differ_from_their_record_are_refused() {
    let whole = wheel(&[]);
    let tampered = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut members = members(&whole);
        members
            .iter_mut()
            .filter(|member| member.0 == name)
            .for_each(|member| change(&mut member.1));
        let members = members.into_iter().map(|(name, bytes)| Made::new(&name, bytes));
        packages::zip(&members.collect::<Vec<_>>(), &Around::default())
    };
    let longer = |bytes: &mut Vec<u8>| bytes.extend(b"more");
    // The header of an object that is not loaded has bytes that nothing reads.
    let other = |bytes: &mut Vec<u8>| bytes[12] ^= 1;
    let size = |name: &str, by: usize| {
        let old = members(&whole).iter().find(|(member, _)| member == name).unwrap().1.len();
        format!("foo.whl:{name}: RECORD has the size {old}, found {}", old + by)
    };
    for (bytes, words) in [
        (tampered("foo/hip.o", &longer), size("foo/hip.o", 4)),
        (
            tampered("foo/hip.o", &other),
            "foo.whl:foo/hip.o: RECORD has the hash sha256=".to_owned(),
        ),
        (tampered("foo/__init__.py", &longer), size("foo/__init__.py", 4)),
    ] {
        let place = Place::new(&bytes);
        place.fails(&["verify", "foo.whl"], &words);
        let thin = ["thin", "--keep", "gfx1100", "foo.whl"];
        for output in [&["-o", "small.whl"][..], &["--in-place"], &["--dry-run"]] {
            let advice = "(allow editing with --allow-findings)";
            let output = place.offload(&[&thin, output].concat());
            assert_eq!(output.status.code(), Some(1));
            let said = stderr(&output);
            assert!(said.contains(&words) && said.contains(advice), "{said}");
            assert!(!place.path("small.whl").exists());
            assert!(read(place.path("foo.whl")) == bytes);
        }
        let allowed = [&thin[..], &["-o", "small.whl", "--allow-findings"]].concat();
        let said = stderr(&place.offload(&allowed));
        assert!(said.contains("warning: foo.whl:") && said.contains("RECORD has the "), "{said}");
        let changed = [RECORD, "foo/hip.o"];
        let (before, after) = (members(&bytes), members(&read(place.path("small.whl"))));
        for (old, new) in before.iter().zip(&after) {
            assert_eq!(old == new, !changed.contains(&&*old.0), "{}", old.0);
        }
    }
}

/// All images for a GPU that is not asked for have the bytes of that GPU in the wheel, not those of the unpacked members.
#[test]
fn dead_images_have_their_part_of_the_wheel() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("foo.whl"), wheel(&[])).unwrap();
    let rows = |args: &[&str]| {
        let mut command = new_command(tool("offload"));
        let output = command.arg("size").args(args).arg("--json").arg("foo.whl");
        let output = output.current_dir(place.path()).output().unwrap();
        let document: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
        let rows = document["rows"].as_array().unwrap().iter();
        let row = |row: &serde_json::Value| {
            (row["target"].as_str().unwrap().to_owned(), row["stored"].as_u64().unwrap())
        };
        rows.map(row).collect::<BTreeMap<_, _>>()
    };
    let (all, dead) = (rows(&["--by", "target"]), rows(&["--dead", "gfx1100"]));
    assert!(dead.len() > 2 && !dead.contains_key("gfx1100"), "{dead:?}");
    for (target, stored) in dead {
        assert!(all[&target].abs_diff(stored) <= 1, "{target}: {stored} of {}", all[&target]);
    }
}

/// A refusal has one code, whether the file is named or a member.
#[test]
fn refusals_have_one_code() {
    let hip = fs::read(data("hip.o")).unwrap();
    let place = Place::new(&wheel(&[]));
    fs::write(place.path("hip.o"), &hip).unwrap();
    let all = ["--drop", "gfx1100,gfx9-generic,gfx906,gfx90a"];
    for (file, edit) in [("hip.o", ["--keep", "sm_90"]), ("hip.o", all), ("foo.whl", all)] {
        let output = place.offload(&[&["thin", file, "-o", "new", "--json"][..], &edit].concat());
        let json: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
        let codes = json["findings"].as_array().unwrap().iter().map(|it| &it["code"]);
        let codes: Vec<_> = codes.collect();
        let is_refused = !codes.is_empty() && codes.iter().all(|code| **code == "edit/refused");
        assert!(is_refused, "{json}");
    }
}
