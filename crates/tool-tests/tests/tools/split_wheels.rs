//! Wheels that are split into a host wheel and device wheels, and joined again.

use std::collections::BTreeMap;
use std::fs;
use std::process::Output;

use crate::common::{data, new_command, stderr, stdout, tool};
use crate::wheels::Place;
use samples::bundle::{self, HOST};
use samples::linked::{EXEC, Linked, Style};
use samples::linked_pe;
use samples::packages::{self, Around, Made};

pub(crate) const NAME: &str = "foo-1.0-py3-none-any.whl";
pub(crate) const INFO: &str = "foo-1.0.dist-info";

pub(crate) type Files = BTreeMap<String, Vec<u8>>;

pub(crate) fn wheel(files: &[(&str, &[u8])]) -> Vec<u8> {
    packages::zip(&packages::wheel(files), &Around::default())
}

/// A place with a wheel of these files.
pub(crate) fn place(files: &[(&str, &[u8])]) -> Place {
    Place::with("foo.whl", &wheel(files))
}

pub(crate) fn files(wheel: &[u8]) -> Files {
    crate::wheels::members(wheel).into_iter().collect()
}

pub(crate) fn text(files: &Files, name: &str) -> String {
    String::from_utf8(
        files.get(name).unwrap_or_else(|| panic!("{name}: {:?}", files.keys())).clone(),
    )
    .unwrap()
}

pub(crate) fn read(place: &Place, name: &str) -> Files {
    files(&fs::read(place.path(name)).unwrap())
}

/// The names in a directory.
pub(crate) fn names(place: &Place, directory: &str) -> Vec<String> {
    let entries = fs::read_dir(place.path(directory)).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The path of the device wheel for a GPU.
pub(crate) fn device(part: &str) -> String {
    format!("out/foo_device_{part}-1.0-py3-none-any.whl")
}

pub(crate) fn data_file(name: &str) -> Vec<u8> {
    fs::read(data(name)).unwrap()
}

/// An ELF file with the header of a code object of AMD's.
fn code_object(seed: u8) -> Vec<u8> {
    let mut bytes = samples::device::amd(0);
    bytes.extend([seed; 900]);
    bytes
}

/// A library with a wrapper for each of these lists of targets.
pub(crate) fn library(units: &[&[&str]]) -> Vec<u8> {
    linked(units).build()
}

fn linked(units: &[&[&str]]) -> Linked {
    let unit = |(at, targets): (usize, &&[&str])| {
        let seed = |n: usize| u8::try_from(at * 8 + n + 1).unwrap();
        let codes: Vec<_> = (0..targets.len()).map(|n| code_object(seed(n))).collect();
        let ids: Vec<_> =
            targets.iter().map(|target| format!("hipv4-amdgcn-amd-amdhsa--{target}")).collect();
        let mut entries: Vec<(&str, &[u8])> = vec![(HOST, b"")];
        entries.extend(ids.iter().zip(&codes).map(|(id, code)| (&**id, &**code)));
        bundle::bundle(&entries, 4096)
    };
    Linked::new(Style::First, units.iter().enumerate().map(unit).collect())
}

fn serves(place: &Place, gpu: &str, files: &[&str]) -> bool {
    place.offload(&[&["match", "--quiet", "--gpu", gpu], files].concat()).status.success()
}

#[test]
fn wheels_become_a_host_wheel_and_device_wheels() {
    let library = data_file("hip-two-units-ccob.so");
    let (tensile, images) = (b"\x82\xa9solutions", b"images");
    let tensile: &[u8] = tensile;
    let place = place(&[
        ("foo/__init__.py", b"x = 1\n"),
        ("foo/lib/libfoo.so", &library),
        ("foo/lib/rocblas/library/x_gfx906-xnack+.dat", tensile),
        ("foo/lib/rocblas/library/x_fallback.dat", tensile),
        ("foo/lib/aotriton.images/amd-gfx11xx/a.aks2", images),
        ("foo/cuda.o", &data_file("cuda-fatbin.o")),
    ]);
    let said = place.succeeds(&["split", "foo.whl", "-o", "out"]);
    assert!(said.contains(&device("gfx906")), "{said}");
    let expected = ["gfx11", "gfx1100", "gfx906"].map(|part| device(part)[4..].to_owned());
    assert_eq!(names(&place, "out"), [&[NAME.to_owned()][..], &expected].concat());

    let host = read(&place, &format!("out/{NAME}"));
    let metadata = text(&host, &format!("{INFO}/METADATA"));
    assert_eq!(
        metadata,
        "Metadata-Version: 2.1\nName: foo\nVersion: 1.0\nRequires-Dist: rocm-bootstrap\n\
         Provides-Extra: device-gfx1100\n\
         Requires-Dist: foo-device-gfx1100 == 1.0; extra == \"device-gfx1100\"\n\
         Requires-Dist: foo-device-gfx11 == 1.0; extra == \"device-gfx1100\"\n\
         Provides-Extra: device-gfx906\n\
         Requires-Dist: foo-device-gfx906 == 1.0; extra == \"device-gfx906\"\n\
         Provides-Extra: device-all\n\
         Requires-Dist: foo-device-gfx11 == 1.0; extra == \"device-all\"\n\
         Requires-Dist: foo-device-gfx1100 == 1.0; extra == \"device-all\"\n\
         Requires-Dist: foo-device-gfx906 == 1.0; extra == \"device-all\"\n"
    );
    assert!(!host.contains_key("foo/lib/rocblas/library/x_gfx906-xnack+.dat"));
    assert_eq!(host["foo/lib/rocblas/library/x_fallback.dat"], tensile);
    assert_ne!(host["foo/lib/libfoo.so"], library);

    // Files of a GPU with a feature are for the wheel of the GPU, as AMD's are.
    let gfx906 = read(&place, &device("gfx906"));
    assert_eq!(gfx906["foo/lib/rocblas/library/x_gfx906-xnack+.dat"], tensile);
    assert!(gfx906.contains_key("foo/.kpack/foo_gfx906.kpack"));
    let info = "foo_device_gfx906-1.0.dist-info";
    assert_eq!(
        text(&gfx906, &format!("{info}/METADATA")),
        "Metadata-Version: 2.4\nName: foo-device-gfx906\nVersion: 1.0\n\
         Summary: AMD device kernels (gfx906) for foo\nRequires-Dist: foo == 1.0\n"
    );
    assert!(
        text(&gfx906, &format!("{info}/WHEEL"))
            .ends_with("Root-Is-Purelib: false\nTag: py3-none-any\n")
    );
    assert_eq!(text(&gfx906, &format!("{info}/top_level.txt")), "foo\n");
    // A wheel of a family has files, and no packs.
    let gfx11 = read(&place, &device("gfx11"));
    assert_eq!(gfx11["foo/lib/aotriton.images/amd-gfx11xx/a.aks2"], images);
    assert!(text(&gfx11, "foo_device_gfx11-1.0.dist-info/METADATA").contains("(RDNA3)"));

    // Records are right, and the set has code for its GPUs.
    let wheels = names(&place, "out").into_iter().map(|name| format!("out/{name}"));
    let wheels: Vec<String> = wheels.collect();
    let all: Vec<&str> = wheels.iter().map(String::as_str).collect();
    place.succeeds(&[&["verify"], &*all].concat());
    assert!(serves(&place, "gfx1100", &[&wheels[0], &wheels[2]]));
    // The device wheel is not installed, or the wheel of another GPU is.
    assert!(!serves(&place, "gfx1100", &[&wheels[0]]));
    assert!(!serves(&place, "gfx1100", &[&wheels[0], &wheels[3]]));
    place.fails(&["verify", &wheels[0]], "no kernel pack has its device code");
}

#[test]
fn joined_wheels_are_as_they_were() {
    let (library, files_of_gpu) = (data_file("hip-two-units.so"), b"\x82\xa9solutions");
    let place = place(&[
        ("foo/__init__.py", b"x = 1\n"),
        ("foo/libfoo.so", &library),
        ("foo/rocblas/library/x_gfx1100.dat", files_of_gpu),
    ]);
    place.succeeds(&["split", "foo.whl", "-o", "out", "--no-compress"]);
    let host = format!("out/{NAME}");
    let said = place.succeeds(&["join", &host, &device("gfx1100"), "-o", "back.whl"]);
    assert!(said.contains("foo/libfoo.so  the file that was split"), "{said}");
    let (mut before, mut after) = (read(&place, "foo.whl"), read(&place, "back.whl"));
    for files in [&mut before, &mut after] {
        // The order of its rows is another.
        let record = files.remove(&format!("{INFO}/RECORD")).unwrap();
        let mut rows: Vec<_> = record.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
        rows.sort();
        files.insert("rows".to_owned(), rows.concat());
    }
    assert_eq!(before, after);
    place.succeeds(&["verify", "back.whl"]);

    // Compressed bundles are made again.
    let place = self::place(&[("foo/libfoo.so", &data_file("hip-two-units-ccob.so"))]);
    place.succeeds(&["split", "foo.whl", "-o", "out"]);
    let wheels = [&*host, &device("gfx1100"), &device("gfx906")];
    place.succeeds(&[&["join"], &wheels[..], &["-o", "back.whl"]].concat());
    assert!(["gfx1100", "gfx906"].iter().all(|gpu| serves(&place, gpu, &["back.whl"])));
    // A wheel that is left out is named.
    let output = place.offload(&["join", &host, &device("gfx1100"), "-o", "part.whl"]);
    assert!(output.status.success());
    let said = stderr(&output);
    assert!(
        said.contains("device wheels are not given, whose code is missing then: foo-device-gfx906"),
        "{said}"
    );
    assert!(!serves(&place, "gfx906", &["part.whl"]));
    // Others are refused.
    place.fails(&["join", &host, "foo.whl", "-o", "x.whl"], "expected a device wheel of foo 1.0");
    place.fails(
        &["join", "foo.whl", "-o", "x.whl"],
        "no file of it has its device code in kernel packs",
    );
    place.fails(&["join", &host, "-o", "x.whl"], "no kernel pack of these wheels has its code");
    let twice = [&*host, &device("gfx906"), &device("gfx906"), "-o", "x.whl"];
    place.fails(&[&["join"], &twice[..]].concat(), "is in");
    assert!(!place.path("x.whl").exists());
}

#[test]
fn code_with_features_is_in_the_wheel_of_its_processor() {
    let library = library(&[&["gfx90a:xnack+", "gfx90a:xnack-"], &["gfx90a:xnack+"]]);
    let place = place(&[("foo/libfoo.so", &library)]);
    place.succeeds(&["split", "foo.whl", "-o", "out", "--device-prefix", "bar"]);
    let wheel = "out/bar_gfx90a-1.0-py3-none-any.whl";
    let packs = read(&place, wheel);
    let packs: Vec<_> = packs.keys().filter(|name| name.ends_with(".kpack")).collect();
    assert_eq!(packs, ["foo/.kpack/foo_gfx90a:xnack+.kpack", "foo/.kpack/foo_gfx90a:xnack-.kpack"]);
    // There is no pack without features, and the second unit has no code where the feature is off.
    let host = format!("out/{NAME}");
    assert!(serves(&place, "gfx90a:xnack+", &[&host, wheel]));
    assert!(!serves(&place, "gfx90a:xnack-", &[&host, wheel]));
}

#[test]
fn wrappers_keep_their_numbers_where_targets_differ() {
    // Numbers for each target would give the first wrapper the code of the second.
    let place = place(&[("foo/libfoo.so", &library(&[&["gfx942"], &["gfx906", "gfx942"]]))]);
    place.succeeds(&["split", "foo.whl", "-o", "out", "--no-compress"]);
    let pack = read(&place, &device("gfx906")).remove("foo/.kpack/foo_gfx906.kpack").unwrap();
    let has = |key: &[u8]| pack.windows(key.len()).any(|part| part == key);
    assert!(has(b"libfoo.so#1") && !has(b"libfoo.so#0"));
    let host = format!("out/{NAME}");
    assert!(serves(&place, "gfx942", &[&host, &device("gfx942")]));
    assert!(!serves(&place, "gfx906", &[&host, &device("gfx906")]));
}

#[test]
fn empty_packs_and_packs_that_were_left_out_are_found() {
    let place = place(&[("foo/libfoo.so", &library(&[&["gfx906", "gfx942", "gfx1100"]]))]);
    place.succeeds(&["split", "foo.whl", "-o", "out"]);
    let host = format!("out/{NAME}");
    // Two of three packs are empty, as AMD's were once.
    for part in ["gfx906", "gfx942"] {
        let name = format!("foo/.kpack/foo_{part}.kpack");
        let pack = Place::with("pack", &read(&place, &device(part))[&name]);
        pack.succeeds(&["thin", "pack", "-o", "none", "--drop", part, "--allow-empty"]);
        let none = fs::read(pack.path("none")).unwrap();
        let mut members = packages::wheel(&[(&name, &none)]);
        let metadata =
            format!("Name: foo-device-{part}\nVersion: 1.0\nRequires-Dist: foo == 1.0\n");
        members.retain(|made| !made.name.ends_with(b"METADATA") && !made.name.ends_with(b"RECORD"));
        members.push(Made::new(&format!("{INFO}/METADATA"), metadata));
        members.push(Made::new(&format!("{INFO}/RECORD"), ""));
        fs::write(place.path(&device(part)), packages::zip(&members, &Around::default())).unwrap();
    }
    let [gfx906, gfx942, gfx1100] = ["gfx906", "gfx942", "gfx1100"].map(device);
    let all = [&*host, &gfx906, &gfx942, &gfx1100];
    let said = stdout(&place.offload(&[&["verify"], &all[..]].concat()));
    assert!(said.contains("foo_gfx906.kpack") && said.contains("foo_gfx942.kpack"), "{said}");
    place.fails(&[&["verify"], &all[..]].concat(), "foo_gfx906.kpack: the kernel pack is empty");
    assert!(!serves(&place, "gfx906", &all) && serves(&place, "gfx1100", &all));
    // One without bytes, and one that is something else.
    for (bytes, what) in [(&b""[..], "empty"), (b"abc", "")] {
        let made = Made::new("foo/.kpack/foo_gfx906.kpack", bytes);
        fs::write(place.path("x.whl"), packages::zip(&[made], &Around::default())).unwrap();
        let said = format!("foo_gfx906.kpack: expected a kernel pack by its name, found: {what}");
        place.fails(&["verify", &host, &gfx1100, "x.whl"], &said);
    }
}

#[test]
fn libraries_without_code_to_split_stay() {
    let library = data_file("hip-two-units.so");
    // A file with debug information only: its sections have no bytes.
    let mut debug = library.clone();
    let names = [".hip_fatbin", ".hipFatBinSegment"];
    assert_eq!(names.map(|name| make_nobits(&mut debug, name)), [true, true]);
    // Bundles that have lost all their code.
    let thinned = Place::with("lib.so", &library);
    thinned.succeeds(&["thin", "lib.so", "-o", "none.so", "--drop", "gfx1100", "--allow-empty"]);
    let none = fs::read(thinned.path("none.so")).unwrap();
    let place = place(&[
        ("foo/libfoo.so", &library),
        ("foo/libfoo_dbg.so", &debug),
        ("foo/libnone.so", &none),
    ]);
    let output = place.offload(&["split", "foo.whl", "-o", "out"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let host = read(&place, &format!("out/{NAME}"));
    assert_eq!((&host["foo/libfoo_dbg.so"], &host["foo/libnone.so"]), (&debug, &none));
    assert!(stderr(&output).contains("foo/libnone.so: its bundles have no code for GPUs"));

    // Nothing is left: that is an error, and said.
    let place = self::place(&[("foo/libnone.so", &none), ("foo/libfoo_dbg.so", &debug)]);
    place.fails(&["split", "foo.whl", "-o", "out"], "foo.whl: no device code found");
    assert!(!place.path("out").exists());
}

/// Makes a section of an ELF file one without bytes.
fn make_nobits(elf: &mut [u8], wanted: &str) -> bool {
    let long = |elf: &[u8], at: usize| {
        usize::try_from(u64::from_le_bytes(elf[at..at + 8].try_into().unwrap())).unwrap()
    };
    let half = |elf: &[u8], at: usize| usize::from(u16::from_le_bytes([elf[at], elf[at + 1]]));
    let (table, count, names) = (long(elf, 0x28), half(elf, 0x3c), half(elf, 0x3e));
    let names = long(elf, table + names * 64 + 24);
    for at in (0..count).map(|n| table + n * 64) {
        let name =
            usize::try_from(u32::from_le_bytes(elf[at..at + 4].try_into().unwrap())).unwrap();
        let rest = &elf[names + name..];
        if rest.starts_with(wanted.as_bytes()) && rest[wanted.len()] == 0 {
            elf[at + 4..at + 8].copy_from_slice(&8_u32.to_le_bytes());
            return true;
        }
    }
    false
}

#[test]
fn program_headers_stay_where_they_are() {
    // Old kernels crash where the headers have moved to an address that is not their offset.
    let program =
        Linked { e_type: EXEC, interpreter: true, ..linked(&[&["gfx906", "gfx1100"]]) }.build();
    let place = place(&[("foo/bin/foo", &program)]);
    place.succeeds(&["split", "foo.whl", "-o", "out"]);
    let split = &read(&place, &format!("out/{NAME}"))["foo/bin/foo"];
    // The place and the number of the headers, and the first, which describes them.
    assert_eq!(split[0x20..0x28], program[0x20..0x28]);
    assert_eq!(split[0x38..0x3a], program[0x38..0x3a]);
    let interpreter = program.windows(4).position(|part| part == 3_u32.to_le_bytes());
    assert!(interpreter.is_some() && split[0x20] == 64);
    let headers = |elf: &[u8]| elf[64..64 + 56].to_vec();
    assert_eq!(headers(split), headers(&program));
}

#[test]
fn windows_libraries_are_split() {
    let id = |target: &str| format!("hipv4-amdgcn-amd-amdhsa--{target}");
    let (host, gpu, code) = ("host-x86_64-pc-windows-msvc-", id("gfx1100"), code_object(1));
    let unit = bundle::bundle(&[(host, b""), (&gpu, &code)], 4096);
    let place = place(&[("foo/bin/foo.dll", &linked_pe::build(&[unit]))]);
    place.succeeds(&["split", "foo.whl", "-o", "out"]);
    assert!(serves(&place, "gfx1100", &[&format!("out/{NAME}"), &device("gfx1100")]));
}

#[test]
fn the_directory_with_the_libraries_is_found_or_named() {
    let library = data_file("hip-two-units.so");
    // One top directory has device code.
    let place = place(&[("a/libfoo.so", &library), ("b/libplain.so", &data_file("host.o"))]);
    place.succeeds(&["split", "foo.whl", "-o", "out"]);
    assert!(read(&place, &device("gfx1100")).contains_key("a/.kpack/foo_gfx1100.kpack"));
    let place = self::place(&[("a/libfoo.so", &library), ("b/c/libbar.so", &library)]);
    place.fails(&["split", "foo.whl", "-o", "out"], "(a, b): --overlay-root says which");
    let output = place.offload(&["split", "foo.whl", "-o", "out", "--overlay-root", "b/"]);
    let said = stderr(&output);
    assert!(said.contains("outside of the directory that is split: a/libfoo.so"), "{said}");
    assert!(read(&place, &device("gfx1100")).contains_key("b/.kpack/foo_gfx1100.kpack"));
    place.succeeds(&["split", "foo.whl", "-o", "all", "--overlay-root", "."]);
    let all = read(&place, "all/foo_device_gfx1100-1.0-py3-none-any.whl");
    assert!(all.contains_key(".kpack/foo_gfx1100.kpack"));
    let set = [
        "match",
        "--gpu",
        "gfx1100",
        "all/foo-1.0-py3-none-any.whl",
        "all/foo_device_gfx1100-1.0-py3-none-any.whl",
    ];
    place.succeeds(&set);
    place.fails(
        &["split", "foo.whl", "-o", "x", "--overlay-root", "c"],
        "the wheel has no files below c",
    );
    let place = self::place(&[("foo-1.0.data/platlib/libfoo.so", &library)]);
    place.fails(&["split", "foo.whl", "-o", "out"], "a directory that installers move");
}

#[test]
fn what_cannot_be_split_is_refused() {
    let library = data_file("hip-two-units.so");
    let place = place(&[("foo/libfoo.so", &library), ("foo/__init__.py", b"")]);
    let split = |args: &[&str], words: &str| {
        place.fails(&[&["split", "foo.whl", "-o", "x"], args].concat(), words);
    };
    split(&["--group", "g"], "--group is for libraries");
    split(&["--device-prefix", "a/b"], "found 'a/b'");
    place.succeeds(&["split", "foo.whl", "-o", "out"]);
    let host = format!("out/{NAME}");
    place.fails(&["split", &host, "-o", "x"], "its device code is in kernel packs already");
    fs::copy(place.path("foo.whl"), place.path(NAME)).unwrap();
    place.fails(&["split", NAME, "-o", "."], "would replace the wheel that is split");
    let zip = packages::zip(&[Made::new("foo/libfoo.so", &*library)], &Around::default());
    fs::write(place.path("foo.zip"), zip).unwrap();
    place.fails(&["split", "foo.zip", "-o", "x"], "foo.zip: expected a wheel");
    // RECORD has another hash of the library.
    let mut members = packages::wheel(&[("foo/libfoo.so", &library)]);
    members[0].contents[0x5000] ^= 1;
    fs::write(place.path("bad.whl"), packages::zip(&members, &Around::default())).unwrap();
    place.fails(&["split", "bad.whl", "-o", "x"], "RECORD has the hash");
    let mut members = packages::wheel(&[("foo/libfoo.so", &library)]);
    members.retain(|member| member.name != format!("{INFO}/WHEEL").as_bytes());
    fs::write(place.path("lacks.whl"), packages::zip(&members, &Around::default())).unwrap();
    place.fails(
        &["split", "lacks.whl", "-o", "x", "--allow-findings"],
        "WHEEL: the wheel lacks this file",
    );
    assert!(!place.path("x").exists());
}

pub(crate) fn drop_in(place: &Place, args: &[&str]) -> Output {
    let mut command = new_command(tool("split_python_wheels"));
    command.args(args).current_dir(place.path("."));
    command.output().unwrap()
}

#[test]
fn the_drop_in_has_the_options_of_amds_splitter() {
    let place = place(&[
        ("foo/libfoo.so", &data_file("hip-two-units-ccob.so")),
        ("foo/rocblas/library/x_gfx906.dat", b"\x82\xa9solutions"),
    ]);
    let common =
        ["--input", "foo.whl", "--device-package-prefix", "foo-device", "--overlay-root", "foo/"];
    let run = |args: &[&str]| drop_in(&place, &[&common[..], args].concat());
    let requires = ["--device-requires-dist", "sdk-@GFXARCH@ == 1", "other", "--verbose", "-j2"];
    let args = [&["--output-dir", "a", "--wheel-type", "torch-fat"][..], &requires].concat();
    let output = run(&args);
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stdout(&output);
    for line in [
        "Input: foo.whl",
        "Output format: wheel",
        "Split complete:",
        "  Fat binaries processed: 1",
        "  Architectures: gfx1100, gfx906",
        "  Host wheel: a/foo-1.0-py3-none-any.whl",
        "  Device wheel (gfx906): a/foo_device_gfx906-1.0-py3-none-any.whl",
    ] {
        assert!(said.lines().any(|found| found == line), "{line}: {said}");
    }
    let gfx906 = read(&place, "a/foo_device_gfx906-1.0-py3-none-any.whl");
    let metadata = text(&gfx906, "foo_device_gfx906-1.0.dist-info/METADATA");
    assert!(metadata.ends_with("== 1.0\nRequires-Dist: sdk-gfx906 == 1\nRequires-Dist: other\n"));
    assert!(gfx906.contains_key("foo/rocblas/library/x_gfx906.dat"));

    // Without databases, such files stay. The same in directories.
    let output = run(&["--output-dir", "b", "--output-format", "directory", "--databases"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(place.path("b/foo-1.0-py3-none-any/foo/rocblas/library/x_gfx906.dat").exists());
    let pack = "foo/.kpack/foo_gfx906.kpack";
    let unpacked = fs::read(place.path("b/foo_device_gfx906-1.0-py3-none-any").join(pack)).unwrap();
    assert_eq!(unpacked, gfx906[pack]);
    let directory = |name: &str, bytes: &[u8]| {
        let path = place.path("tree").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    read(&place, "foo.whl").iter().for_each(|(name, bytes)| directory(name, bytes));
    let tree = ["--input", "tree", "--output-dir", "c", "--wheel-type=torch-fat"];
    let output = drop_in(&place, &[&common[2..], &tree[..]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(read(&place, "c/foo_device_gfx906-1.0-py3-none-any.whl")[pack], gfx906[pack]);

    // Usage errors are 2, as those of Python, and others 1.
    assert_eq!(drop_in(&place, &["--input", "foo.whl"]).status.code(), Some(2));
    for (args, words) in [
        (&["--input", "none.whl"][..], "Error: Input does not exist: none.whl"),
        (&["--overlay-root", "bar"], "Error: the wheel has no files below bar"),
        (
            &["--databases", "miopen", "x"],
            "Error: Unknown database handler: x. Available: aotriton, ",
        ),
        (&["--generate-variant-wheel"], "Error: --generate-variant-wheel: "),
        (&["--compression-level", "23"], "Error: --compression-level: expected 1 to 22, found 23"),
    ] {
        let output = run(&[&["--output-dir", "x"], args].concat());
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
    fs::write(place.path("none.whl"), wheel(&[("foo/a.py", b"a")])).unwrap();
    let output = run(&["--input", "none.whl", "--output-dir", "x"]);
    assert!(
        stderr(&output).contains("Error: No fat binaries found under foo/"),
        "{}",
        stderr(&output)
    );
    assert!(!place.path("x").exists());
}

/// `RECORD` may have several rows for a file, each with a hash by another algorithm.
#[test]
fn hashes_by_several_algorithms_are_corrected() {
    use gpu_packages::{Algorithm, Hash};
    let library = data_file("hip-two-units-ccob.so");
    let name = "foo/libfoo.so";
    let mut made = packages::wheel(&[(name, &library)]);
    let record = &mut made.last_mut().unwrap().contents;
    let row = |algorithm, bytes: &[u8]| {
        format!("{name},{},{}\n", Hash::of(algorithm, bytes), bytes.len())
    };
    let others = [Algorithm::Sha512, Algorithm::Md5];
    others.iter().for_each(|it| record.extend(row(*it, &library).into_bytes()));
    let place = Place::with("foo.whl", &packages::zip(&made, &Around::default()));
    // It is a finding that a file has several rows.
    place.succeeds(&["split", "foo.whl", "-o", "out", "--allow-findings"]);
    let host = read(&place, &format!("out/{NAME}"));
    let record = text(&host, &format!("{INFO}/RECORD"));
    for algorithm in [Algorithm::Sha256, others[0], others[1]] {
        assert!(record.contains(&row(algorithm, &host[name])), "{record}");
    }
    let output = place.offload(&["verify", &format!("out/{NAME}")]);
    let said = stderr(&output) + &stdout(&output);
    assert!(said.contains("RECORD lists it twice") && !said.contains("has the hash"), "{said}");
    // Each of them is compared.
    let wrong = made.last_mut().unwrap();
    let text = String::from_utf8(wrong.contents.clone()).unwrap();
    wrong.contents = text.replace("md5=", "md5=AAAA").into_bytes();
    let at = wrong.contents.windows(8).position(|it| it == b"md5=AAAA").unwrap();
    wrong.contents.drain(at + 8..at + 12);
    fs::write(place.path("foo.whl"), packages::zip(&made, &Around::default())).unwrap();
    for edit in [&["split", "-o", "new"][..], &["thin", "--keep", "gfx1100", "-o", "x.whl"]] {
        let output = place.offload(&[edit, &["foo.whl", "--allow-findings"]].concat());
        let said = stderr(&output) + &stdout(&output);
        assert!(said.contains("RECORD has the hash md5=AAAA"), "{said}");
    }
}
