//! Packages of Python environments: what `doctor` looks into, and what it says of the rest.

use std::fs;
use std::path::Path;

use crate::common::machine::not_tested;
use crate::common::{data, new_command, stderr, stdout};
use crate::wheels::Place;

const SITE: &str = "env/lib/python3.11/site-packages";

/// Makes an environment with the package `foo`, which has device code.
fn environment() -> Place {
    let hip = fs::read(data("hip.o")).unwrap();
    let place = Place::with("hip.o", &hip);
    write(&place, "foo/hip.o", &hip);
    write(&place, "foo-1.0.dist-info/METADATA", b"Name: foo\nVersion: 1.0\n");
    write(&place, "foo-1.0.dist-info/RECORD", b"foo/hip.o,,\n");
    place
}

fn write(place: &Place, name: &str, bytes: &[u8]) {
    let path = place.path(SITE).join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Returns standard output and standard error of the answers for all packages, and the exit status.
fn ask(place: &Place) -> (String, String, Option<i32>) {
    let output = place.offload(&["doctor", "--prefix", "env", "--gpu", "gfx1100", "--all"]);
    (stdout(&output), stderr(&output), output.status.code())
}

const WELL: &str = "foo 1.0: has code for gfx1100 in 1 file\n";

#[test]
fn a_file_counts_once() {
    let place = environment();
    let rows = "foo/hip.o,,\n./foo/hip.o,,\nfoo/../foo/hip.o,,\n".repeat(1000);
    write(&place, "foo-1.0.dist-info/RECORD", rows.as_bytes());
    assert_eq!(ask(&place), (WELL.into(), String::new(), Some(0)));
}

#[test]
fn a_directory_is_no_package() {
    let place = environment();
    let output = place.offload(&["doctor", "--prefix", "env", "--gpu", "gfx1100", "env"]);
    assert_eq!(
        stderr(&output),
        "offload: error: env: no such package is installed; to look into this directory: --prefix for an environment, match for \
         files\n"
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn files_outside_of_the_environment_are_not_opened() {
    let place = environment();
    let hip = place.path("hip.o");
    let inside = place.path("env/bin/hip.o");
    fs::create_dir(place.path("env/bin")).unwrap();
    fs::copy(&hip, &inside).unwrap();
    let rows = format!("../../../../hip.o,,\n{},,\n../../../bin/hip.o,,\n", hip.display());
    write(&place, "foo-1.0.dist-info/RECORD", rows.as_bytes());
    let (answers, said, status) = ask(&place);
    assert_eq!((&*answers, status), (WELL, Some(1)));
    let words =
        "lists files outside of the environment, which are not opened: ../../../../hip.o, /";
    assert!(said.contains(words), "{said}");
}

#[test]
fn libraries_that_are_missing_are_told() {
    let place = environment();
    write(
        &place,
        "foo-1.0.dist-info/RECORD",
        b"foo/libfoo.so,,\nfoo/text.txt,,\nfoo/libbar.so.1,,\n",
    );
    let (answers, said, status) = ask(&place);
    assert_eq!((&*answers, status), ("foo 1.0: no device code\n", Some(1)));
    let missing = format!("{0}/foo/libbar.so.1, {0}/foo/libfoo.so\n", &SITE[4..]);
    assert!(said.contains(&format!("lists files that are missing: {missing}")), "{said}");
}

#[test]
fn a_distribution_that_was_left_behind_hides_none() {
    let place = environment();
    write(&place, "Foo-0.9.dist-info/METADATA", b"Name: Foo\nVersion: 0.9\n");
    write(&place, "Foo-0.9.dist-info/RECORD", b"");
    let (answers, said, status) = ask(&place);
    assert_eq!((answers, status), (format!("Foo 0.9: no device code\n{WELL}"), Some(1)));
    assert!(said.contains("Foo-0.9.dist-info, foo-1.0.dist-info are of one package"), "{said}");
}

#[test]
fn eggs_are_known() {
    let place = environment();
    let hip = fs::read(data("hip.o")).unwrap();
    for name in ["listed", "named", "flat"] {
        write(&place, &format!("{name}/hip.o"), &hip);
    }
    let text = |name: &str| format!("Name: {name}\nVersion: 2\n");
    write(&place, "listed.egg-info/PKG-INFO", text("listed").as_bytes());
    write(&place, "listed.egg-info/installed-files.txt", b"../listed/hip.o\nPKG-INFO\n");
    write(&place, "other-2.egg-info/PKG-INFO", text("other").as_bytes());
    write(&place, "other-2.egg-info/top_level.txt", b"named\n");
    write(&place, "flat-2.egg-info", text("flat").as_bytes());
    let (answers, said, status) = ask(&place);
    let all = ["flat", "listed", "other"].map(|name| WELL.replace("foo 1.0", &format!("{name} 2")));
    let [flat, listed, other] = all;
    assert_eq!(
        (answers, said, status),
        ([&flat, WELL, &listed, &other].concat(), String::new(), Some(0))
    );
    // Nothing says where its files are.
    write(&place, "gone-2.egg-info", text("gone").as_bytes());
    let (answers, said, status) = ask(&place);
    assert!(
        answers.contains("gone 2: was not read as a whole; what was read has no device code")
            && status == Some(1)
    );
    assert!(said.contains("gone-2.egg-info/RECORD: "), "{said}");
}

#[test]
fn a_description_that_cannot_be_read_is_told() {
    let place = environment();
    write(&place, "bar-1.0.dist-info/RECORD", b"");
    write(&place, "baz-1.0.dist-info/METADATA", b"Version: 3\n");
    write(&place, "baz-1.0.dist-info/RECORD", b"");
    let (answers, said, status) = ask(&place);
    let others = "bar 1.0: no device code\nbaz 3: no device code\n";
    assert_eq!((answers, status), (format!("{others}{WELL}"), Some(1)));
    assert!(said.contains("bar-1.0.dist-info/METADATA: No such file"), "{said}");
    assert!(said.contains("baz-1.0.dist-info/METADATA: expected Name and Version"), "{said}");
}

/// Everything that `doctor` reads by itself, each with something else in its place: no such file is read or waited
/// for, and the answer is not taken for the whole truth.
#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_read() {
    use crate::odd_files::{ALL, Odd};
    let names = [
        "foo-1.0.dist-info",
        "foo-1.0.dist-info/METADATA",
        "foo-1.0.dist-info/RECORD",
        "bar-2.egg-info",
        "bar-2.egg-info/PKG-INFO",
        "bar-2.egg-info/installed-files.txt",
        "baz-3.egg-info/top_level.txt",
        "more.pth",
        "foo/hip.o",
        // A package without a list.
        "qux/hip.o",
    ];
    for (name, odd) in names.iter().flat_map(|name| ALL.map(|odd| (*name, odd))) {
        let is_directory = Path::new(name).parent() == Some(Path::new("")) && name != "more.pth";
        // A directory in the place of one, and a library of any size, are what they should be.
        if matches!(odd, Odd::Directory | Odd::TooLarge)
            && (is_directory || name.ends_with("/hip.o"))
        {
            continue;
        }
        let place = environment();
        for (egg, list, text) in
            [("bar-2", "installed-files.txt", "PKG-INFO\n"), ("baz-3", "top_level.txt", "foo\n")]
        {
            let info = format!("{egg}.egg-info");
            let (egg, version) = egg.split_once('-').unwrap();
            let metadata = format!("Name: {egg}\nVersion: {version}\n");
            write(&place, &format!("{info}/PKG-INFO"), metadata.as_bytes());
            write(&place, &format!("{info}/{list}"), text.as_bytes());
        }
        write(&place, "baz/hip.o", b"");
        write(&place, "qux-4.egg-info/PKG-INFO", b"Name: qux\nVersion: 4\n");
        write(&place, "qux/hip.o", b"");
        write(&place, "more.pth", b"more\n");
        assert_eq!(ask(&place).2, Some(0), "{}", ask(&place).1);
        odd.replace(&place.path(SITE).join(name), &place.path("moved"));
        let (answers, said, status) = ask(&place);
        assert_eq!(status, Some(1), "{name}, {odd:?}: {said}");
        let file = Path::new(name).file_name().unwrap().to_str().unwrap();
        assert!(said.contains(file), "{name}, {odd:?}: {said}");
        let all = ["foo 1.0: ", "bar 2: ", "baz 3: "];
        assert!(all.iter().all(|one| answers.contains(one)), "{name}, {odd:?}: {answers}");
    }
}

/// Directories of packages that lie elsewhere are not a part of the environment.
#[cfg(unix)]
#[test]
fn libraries_of_an_environment_may_be_links_within_it() {
    let place = environment();
    std::os::unix::fs::symlink("lib", place.path("env/lib64")).unwrap();
    assert_eq!(ask(&place), (WELL.into(), String::new(), Some(0)));
    fs::create_dir_all(place.path("elsewhere/python3.11/site-packages")).unwrap();
    fs::remove_file(place.path("env/lib64")).unwrap();
    std::os::unix::fs::symlink("../elsewhere", place.path("env/lib64")).unwrap();
    let (answers, said, status) = ask(&place);
    assert_eq!((&*answers, status), (WELL, Some(1)));
    assert!(said.contains("lib64/python3.11/site-packages: leads out of the env"), "{said}");
}

/// Lines of `.pth` files name more directories; lines of code in them are not run, as Python would.
#[cfg(unix)]
#[test]
fn code_of_an_environment_is_not_run() {
    let place = environment();
    let mark = place.path("mark");
    let code = format!("import os; os.mkdir({:?})\nmore\n../../../../elsewhere\n", mark.display());
    write(&place, "x.pth", code.as_bytes());
    write(&place, "more/bar-2.dist-info/METADATA", b"Name: bar\nVersion: 2\n");
    write(&place, "more/bar-2.dist-info/RECORD", b"");
    fs::create_dir(place.path("elsewhere")).unwrap();
    let (answers, said, status) = ask(&place);
    assert_eq!((answers, status), (format!("bar 2: no device code\n{WELL}"), Some(1)));
    assert!(said.contains("leads out of the environment"), "{said}");
    // Where there is a Python: the same with an environment that it finds by itself.
    let made = new_command("python3")
        .args(["-m", "venv", "--without-pip", "venv"])
        .current_dir(place.path("."))
        .output();
    if !made.is_ok_and(|made| made.status.success()) {
        return not_tested("packages of a virtual environment, as there is no python3 with venv");
    }
    let libraries = fs::read_dir(place.path("venv/lib")).unwrap();
    let python = libraries.map(|entry| entry.unwrap().path()).next().unwrap();
    let site = python.join("site-packages");
    fs::remove_dir_all(&site).unwrap();
    fs::rename(place.path(SITE), &site).unwrap();
    let output = place
        .command(&["doctor", "--gpu", "gfx1100", "foo", "bar"])
        .env("PATH", place.path("venv/bin"))
        .output()
        .unwrap();
    assert_eq!(stdout(&output), format!("bar 2: no device code\n{WELL}"), "{}", stderr(&output));
    assert!(output.status.success());
    assert!(!mark.exists());
}

/// Returns the `variant.json` of a wheel for these GPUs of AMD.
fn variant(label: &str, gpus: &str) -> String {
    format!(
        r#"{{"$schema": "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
        "default-priorities": {{"namespace": ["amd"]}}, "variants": {{"{label}": {{"amd": {{"gfx_arch": [{gpus}]}}}}}}}}"#
    )
}

#[test]
fn installed_variants_are_compared_with_gpus_and_code() {
    let place = environment();
    let declare = |label, gpus| {
        write(&place, "foo-1.0.dist-info/variant.json", variant(label, gpus).as_bytes());
    };
    let offload = |line: &[&str]| {
        let output = place.offload(line);
        (stdout(&output) + &stderr(&output), output.status.code())
    };
    declare("fast", "\"gfx1100\"");
    assert_eq!(ask(&place), (WELL.into(), String::new(), Some(0)));
    assert_eq!(offload(&["verify", "env"]).1, Some(0));
    // The code runs on this GPU, but an installer would choose another variant.
    let said = "foo: installed as the variant fast for gfx1100, and not for gfx906:xnack+: \
                install a variant for gfx906:xnack+, if there is one, or the variant null\n";
    let (text, status) = offload(&["doctor", "--prefix", "env", "--gpu", "gfx906:xnack+"]);
    assert_eq!((text.contains(said), status), (true, Some(0)), "{text}");
    let (text, status) = offload(&["match", "--gpu", "gfx906:xnack+", "env"]);
    assert_eq!((text.contains(said), status), (true, Some(0)), "{text}");
    let (text, _) = offload(&["doctor", "--prefix", "env", "--gpu", "sm_90", "--all"]);
    assert!(text.contains("and not for sm_90"), "{text}");
    let (text, _) = offload(&["doctor", "--prefix", "env", "--gpu", "gfx906:xnack+", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["findings"][0]["code"], "variant/other-gpu", "{text}");
    // A declaration that the code does not justify.
    declare("wide", "\"gfx1030\", \"gfx1100\"");
    for line in [&["doctor", "--prefix", "env", "--gpu", "gfx1100"][..], &["verify", "env"]] {
        let (text, status) = offload(line);
        let words = "foo: amd :: gfx_arch :: gfx1030: the package ";
        assert_eq!((text.contains(words), status), (true, Some(1)), "{text}");
    }
    // One that is damaged.
    write(&place, "foo-1.0.dist-info/variant.json", b"{");
    for line in [&["doctor", "--prefix", "env", "--gpu", "gfx1100"][..], &["verify", "env"]] {
        let (text, status) = offload(line);
        assert_eq!(
            (text.contains("foo: variant.json: no JSON"), status),
            (true, Some(1)),
            "{text}"
        );
    }
}

/// Declarations that are not understood: every command that looks at them says so, and fails.
#[test]
fn declarations_of_installed_variants_are_understood_or_told() {
    let place = environment();
    let long = variant("long", &format!("\"{}\"", "x".repeat(20 << 20)));
    let several =
        variant("a", "\"gfx1100\"").replace("{\"a\":", "{\"b\": {\"x\": {\"y\": [\"z\"]}}, \"a\":");
    for (json, said, code) in [
        ("{", "foo: variant.json: no JSON", "variant/form"),
        (&several, "foo: variant.json: variants: expected one, found 2", "variant/label"),
        (
            &variant("new", "\"gfx9999\""),
            "foo: amd :: gfx_arch :: gfx9999: no installer",
            "variant/unknown-value",
        ),
        (&long, "variant.json: ", "file/error"),
    ] {
        write(&place, "foo-1.0.dist-info/variant.json", json.as_bytes());
        for line in [
            &["doctor", "--prefix", "env", "--gpu", "gfx1100"][..],
            &["verify", "env"],
            &["match", "--gpu", "gfx1100", "env"],
            &["match", "--quiet", "--gpu", "gfx1100", "env"],
        ] {
            let output = place.offload(line);
            let text = stdout(&output) + &stderr(&output);
            assert_eq!(
                (text.contains(said), output.status.code()),
                (true, Some(1)),
                "{line:?}: {text}"
            );
            if line.contains(&"--quiet") {
                continue;
            }
            let json = place.offload(&[line, &["--json"]].concat());
            let json: serde_json::Value = serde_json::from_str(&stdout(&json)).unwrap();
            let findings = json["findings"].as_array().unwrap();
            let is_it = |one: &serde_json::Value| one["code"] == code && one["level"] == "error";
            assert!(findings.iter().any(is_it) && json["ok"] == false, "{line:?}: {json}");
        }
    }
}

#[test]
fn a_gpu_with_features_takes_the_variant_of_its_processor() {
    let place = environment();
    let json = variant("hopper", "").replace("\"amd\"", "\"nvidia\"");
    let json = json.replace("\"gfx_arch\": []", "\"sm_arch\": [\"90_real\"]");
    write(&place, "foo-1.0.dist-info/variant.json", json.as_bytes());
    for (gpu, is_other) in [("sm_90a", false), ("sm_90", false), ("sm_89", true), ("sm_100", true)]
    {
        let output = place.offload(&["match", "--gpu", gpu, "env"]);
        assert_eq!(stderr(&output).contains("and not for"), is_other, "{gpu}: {}", stderr(&output));
    }
}

/// Each package is counted and recorded, apart from files, and warnings are printed.
#[test]
fn verify_counts_installed_variants() {
    let place = environment();
    let verify = |declared: &str| {
        write(&place, "foo-1.0.dist-info/variant.json", declared.as_bytes());
        let json = stdout(&place.offload(&["verify", "--json", "env"]));
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let foo = json["files"].as_array().unwrap().iter().find(|file| file["file"] == "foo");
        let result = foo.unwrap()["result"].as_str().unwrap().to_owned();
        let output = place.offload(&["verify", "env"]);
        (stdout(&output), result, output.status.code())
    };
    let (said, result, status) = verify(&variant("fast", "\"gfx1100\""));
    assert!(said.ends_with("1 installed variant: ok\n"), "{said}");
    assert_eq!((&*result, status), ("ok", Some(0)));
    let (said, result, status) = verify(&variant("wide", "\"gfx1030\", \"gfx1100\""));
    assert!(said.ends_with("1 installed variant: 1 not ok\n"), "{said}");
    assert!(!said.contains("files: "), "{said}");
    assert_eq!((&*result, status), ("faults", Some(1)));
    let bound = "\"amd\": {\"gfx_arch\": [\"gfx1100\"]}, \"nvidia\": {\"cuda_version_lower_bound\": [\"9.9\"]}";
    let json = variant("old", "").replace("\"amd\": {\"gfx_arch\": []}", bound);
    let json = json.replace("[\"amd\"]", "[\"amd\", \"nvidia\"]");
    let (said, result, status) = verify(&json);
    assert!(said.contains("foo: warning: nvidia :: cuda_version_lower_bound :: 9.9: "), "{said}");
    assert_eq!((&*result, status), ("ok", Some(0)));
}

/// Code in kernel packs is compared as well: those of the library, and the other files of the package.
#[test]
fn installed_split_variants_are_compared() {
    use crate::split_wheels::{NAME, device, library, place, read};
    let place = place(&[
        ("foo/libfoo.so", &library(&[&["gfx906", "gfx1100"]])),
        ("foo/cuda.o", &fs::read(data("cuda-fatbin.o")).unwrap()),
    ]);
    place.succeeds(&["split", "foo.whl", "-o", "out"]);
    for wheel in [format!("out/{NAME}"), device("gfx1100")] {
        let info = wheel.rsplit('/').next().unwrap().replace("-py3-none-any.whl", ".dist-info");
        for (name, bytes) in read(&place, &wheel) {
            write(&place, &name.replace("foo-1.0.dist-info", &info), &bytes);
        }
    }
    let declare = |declared: &str| {
        write(&place, "foo-1.0.dist-info/variant.json", declared.as_bytes());
        let doctor = place.offload(&["doctor", "--prefix", "env", "--gpu", "gfx1100"]);
        let verify = place.offload(&["verify", "env"]);
        assert_eq!(doctor.status.code(), verify.status.code());
        (stdout(&doctor), stdout(&verify), verify.status.code())
    };
    let (doctor, verify, status) = declare(&variant("fast", "\"gfx1100\""));
    assert_eq!(status, Some(0), "{doctor}{verify}");
    assert!(doctor.starts_with("foo 1.0: has code for gfx1100 in 1 file\n"), "{doctor}");
    let (doctor, verify, status) = declare(&variant("wide", "\"gfx906\", \"gfx1100\""));
    let said =
        "foo: amd :: gfx_arch :: gfx906: the package lacks code for gfx906 in foo/libfoo.so\n";
    assert_eq!((doctor.contains(said), verify.contains(said), status), (true, true, Some(1)));
    // A split library does not excuse the code of another vendor.
    let json = variant("cuda", "").replace("\"amd\"", "\"nvidia\"");
    let json = json.replace("\"gfx_arch\": []", "\"sm_arch\": [\"120_real\"]");
    let (doctor, verify, status) = declare(&json);
    let said = "foo: nvidia :: sm_arch :: 120_real: the package ";
    assert_eq!(
        (doctor.contains(said), verify.contains(said), status),
        (true, true, Some(1)),
        "{doctor}{verify}"
    );
}

/// Parts of an environment that are not looked into are told by all commands that judge environments.
#[cfg(unix)]
#[test]
fn parts_of_environments_that_are_not_read_are_told() {
    let place = environment();
    fs::create_dir_all(place.path("elsewhere/python3.11/site-packages")).unwrap();
    std::os::unix::fs::symlink("../elsewhere", place.path("env/lib64")).unwrap();
    for line in [&["verify", "env"][..], &["match", "--gpu", "gfx1100", "env"]] {
        let output = place.offload(line);
        let said = stderr(&output);
        assert!(said.contains("lib64/python3.11/site-packages: leads out of the env"), "{said}");
        assert_eq!(output.status.code(), Some(1), "{line:?}");
        let json = stdout(&place.offload(&[line, &["--json"]].concat()));
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["findings"][0]["code"], "file/error", "{json}");
    }
}
