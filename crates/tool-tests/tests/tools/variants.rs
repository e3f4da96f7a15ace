//! Variants of wheels, and what they declare.

use std::fs;
use std::io::Read;
use std::path::Path;

use samples::fatbin::{Made, fatbin};
use samples::packages::{self, Around};
use serde_json::Value;

use crate::common::place::Place;
use crate::common::{data, stdout, tool};

const WHEEL: &str = "foo-1.0-py3-none-any.whl";

/// Returns a wheel with these samples.
fn wheel(samples: &[&str]) -> Vec<u8> {
    let files: Vec<_> =
        samples.iter().map(|name| (format!("foo/{name}"), fs::read(data(name)).unwrap())).collect();
    let files: Vec<_> = files.iter().map(|(name, bytes)| (&**name, &**bytes)).collect();
    packages::zip(&packages::wheel(&files), &Around::default())
}

/// Returns a place with the variants of a wheel for AMD's GPUs.
fn split() -> Place {
    let place = Place::new();
    place.put(WHEEL, wheel(&["kernels.hipfb"]));
    place.run(tool("offload"), &["variant", "split", WHEEL, "-o", "dist"]);
    place
}

/// Checks something; returns the exit status, and the codes of all findings.
fn check(place: &Place, arguments: &[&str]) -> (Option<i32>, Vec<String>) {
    let output =
        place.try_run(tool("offload"), &[&["variant", "check", "--json"], arguments].concat());
    let document: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let findings = document["findings"].as_array().unwrap();
    let text = |one: &Value| format!("{} {}", one["level"], one["code"]).replace('"', "");
    (output.status.code(), findings.iter().map(text).collect())
}

fn fails(place: &Place, arguments: &[&str], expected: &str) {
    let output = place.try_run(tool("offload"), arguments);
    let said = crate::common::stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
    assert!(said.contains(expected), "{arguments:?}: {said}");
}

fn member(wheel: &Path, name: &str) -> String {
    let mut archive = zip::ZipArchive::new(fs::File::open(wheel).unwrap()).unwrap();
    let mut text = String::new();
    archive.by_name(name).unwrap().read_to_string(&mut text).unwrap();
    text
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_wheel_is_split_for_each_gpu_and_the_index_is_their_union() {
    let place = split();
    let labels = ["gfx1030", "gfx90a", "null"];
    let expected = labels.map(|label| format!("foo-1.0-py3-none-any-{label}.whl"));
    assert_eq!(names(&place.path("dist")), expected);
    for (name, label) in expected.iter().zip(labels) {
        let json = member(&place.path("dist").join(name), "foo-1.0.dist-info/variant.json");
        let declared: Value = serde_json::from_str(&json).unwrap();
        let variant = &declared["variants"][label];
        if label == "null" {
            assert_eq!(variant.as_object().unwrap().len(), 0);
        } else {
            assert_eq!(variant["amd"]["gfx_arch"], serde_json::json!([label]));
        }
        assert_eq!(declared["default-priorities"]["namespace"], serde_json::json!(["amd"]));
    }
    place.run(tool("offload"), &["verify", "dist"]);
    // Each has the code of its GPU, and of no other.
    let listed = place.run(tool("offload"), &["ls", "dist/foo-1.0-py3-none-any-gfx90a.whl"]);
    assert!(listed.contains("gfx90a") && !listed.contains("gfx1030"), "{listed}");
    place.run(tool("offload"), &["variant", "index", "dist", "-o", "dist"]);
    let index: Value =
        serde_json::from_slice(&fs::read(place.path("dist/foo-1.0-variants.json")).unwrap())
            .unwrap();
    assert!(index["variants"].as_object().unwrap().keys().eq(labels));
    assert_eq!(check(&place, &["dist"]).0, Some(0));
}

#[test]
fn families_have_one_variant() {
    let place = Place::new();
    place.put(WHEEL, wheel(&["kernels.hipfb"]));
    let split = ["variant", "split", WHEEL, "-o", "dist", "--by", "family", "--no-null"];
    let said = place.run(tool("offload"), &split);
    assert!(said.contains("gfx9 ") && said.contains("gfx10 "), "{said}");
    assert!(!names(&place.path("dist")).iter().any(|name| name.contains("null")));
}

#[test]
fn wrong_declarations_are_found() {
    let place = split();
    let make = |label: &str, property: &str, wheel: &str, out: &str| {
        let line = ["variant", "make", wheel, "--label", label, "-p", property, "-o", out];
        place.run(tool("offload"), &line);
    };
    for (label, property, expected) in [
        ("a", "amd :: gfx_arch :: gfx906", (Some(1), "error variant/missing-code")),
        ("b", "amd :: gfx_arch :: gfx9999", (Some(1), "error variant/unknown-value")),
        ("c", "nvidia :: sm_arch :: 90a_real", (Some(1), "error variant/unknown-value")),
        (
            "d",
            "nvidia :: cuda_version_lower_bound :: 9.9",
            (Some(0), "warning variant/unknown-value"),
        ),
        ("e", "nvidia :: sm_arch :: 90_real", (Some(1), "error variant/missing-code")),
    ] {
        make(label, property, WHEEL, "made");
        let name = format!("made/foo-1.0-py3-none-any-{label}.whl");
        let (status, codes) = check(&place, &[&name]);
        assert_eq!(status, expected.0, "{property}: {codes:?}");
        assert!(codes.iter().any(|code| code == expected.1), "{property}: {codes:?}");
    }
    // No GPU is in these properties.
    make("v3", "x86_64 :: level :: v3", WHEEL, "made");
    assert_eq!(check(&place, &["made/foo-1.0-py3-none-any-v3.whl"]), (Some(0), Vec::new()));

    // The label of the file is not the declared one.
    let (from, to) = ("dist/foo-1.0-py3-none-any-gfx90a.whl", "foo-1.0-py3-none-any-gfx1030.whl");
    fs::copy(place.path(from), place.path(to)).unwrap();
    assert_eq!(check(&place, &[to]), (Some(1), vec!["error variant/label".to_owned()]));
    fs::rename(place.path(to), place.path("foo-1.0-1-py3-none-any.whl")).unwrap();
    let (status, codes) = check(&place, &["foo-1.0-1-py3-none-any.whl"]);
    assert_eq!((status, &*codes[0]), (Some(1), "error variant/label"));
    fs::copy(place.path(WHEEL), place.path("foo-1.0-py3-none-any-x.whl")).unwrap();
    let (status, codes) = check(&place, &["foo-1.0-py3-none-any-x.whl"]);
    assert_eq!((status, &*codes[0]), (Some(1), "error variant/label"));

    // One label for two things, and two labels for one.
    fs::copy(place.path(WHEEL), place.path("foo-1.0-py3-none-linux_x86_64.whl")).unwrap();
    make("gfx90a", "amd :: gfx_arch :: gfx1030", "foo-1.0-py3-none-linux_x86_64.whl", "dist");
    make("same", "amd :: gfx_arch :: gfx1030", WHEEL, "dist");
    let (status, codes) = check(&place, &["dist"]);
    assert_eq!(status, Some(1));
    for expected in
        ["error variant/contradicts", "warning variant/same", "warning variant/undeclared"]
    {
        assert!(codes.iter().any(|code| code == expected), "{expected}: {codes:?}");
    }
    fails(&place, &["variant", "index", "dist", "-o", "index"], "contradicts");
    assert!(!place.path("index").exists());
}

#[test]
fn an_index_agrees_with_its_wheels() {
    let place = split();
    place.run(tool("offload"), &["variant", "index", "dist", "-o", "dist"]);
    fs::remove_file(place.path("dist/foo-1.0-py3-none-any-gfx90a.whl")).unwrap();
    let (status, codes) = check(&place, &["dist"]);
    assert_eq!(status, Some(0));
    assert!(codes.iter().any(|code| code == "warning variant/contradicts"), "{codes:?}");
    let index = place.path("dist/foo-1.0-variants.json");
    let old = fs::read_to_string(&index).unwrap();
    for (from, to, expected) in [
        ("\"gfx1030\"\n", "\"gfx1031\"\n", "error variant/contradicts"),
        ("\"gfx1030\":", "\"other\":", "error variant/contradicts"),
        ("v0.1.1", "v7", "error variant/form"),
        ("\"amd\"\n", "\"nvidia\"\n", "error variant/contradicts"),
    ] {
        assert!(old.contains(from), "{old}");
        fs::write(&index, old.replace(from, to)).unwrap();
        let (status, codes) = check(&place, &["dist"]);
        assert_eq!(status, Some(1));
        assert!(codes.iter().any(|code| code == expected), "{to}: {codes:?}");
    }
    fs::write(&index, "[").unwrap();
    assert_eq!(check(&place, &["dist"]), (Some(1), vec!["error file/error".to_owned()]));
}

#[test]
fn nothing_is_made_of_what_is_no_wheel() {
    let place = Place::new();
    place.put("foo.zip", wheel(&["hip.o"]));
    place.put("bar-1.0-py3-none-any.whl", b"no zip file");
    place.put("empty-1.0-py3-none-any.whl", wheel(&["host.o"]));
    fs::create_dir(place.path("none")).unwrap();
    fails(&place, &["variant", "show", "foo.zip"], "foo.zip: not a wheel (.whl)");
    fails(&place, &["variant", "check", "none"], "none: no wheels in it");
    fails(&place, &["variant", "show", "gone-1-py3-none-any.whl"], "gone-1-py3-none-any.whl");
    for command in [&["variant", "split"][..], &["variant", "make", "--label", "x"]] {
        let line = |file| [command, &[file, "-o", "out"]].concat();
        fails(&place, &line("bar-1.0-py3-none-any.whl"), "expected a wheel, found no zip file");
        fails(&place, &line("foo.zip"), "expected the file name of a wheel");
    }
    fails(
        &place,
        &["variant", "split", "empty-1.0-py3-none-any.whl", "-o", "out"],
        "no device code",
    );
    let line = ["variant", "make", "empty-1.0-py3-none-any.whl", "--label", "x", "-o", "out"];
    fails(&place, &line, "its code justifies no property");
    for (label, property) in [("Big", "a :: b :: c"), ("null", "a :: b :: c"), ("x", "a :: b")] {
        let line = ["variant", "make", "empty-1.0-py3-none-any.whl", "--label", label];
        fails(&place, &[&line[..], &["-p", property, "-o", "out"]].concat(), "expected");
    }
    assert!(!place.path("out").exists());
    // Other wheels are right, and have properties that they could declare.
    place.put(WHEEL, wheel(&["hip.o"]));
    assert_eq!(check(&place, &[WHEEL]), (Some(0), Vec::new()));
    let shown = place.run(tool("offload"), &["variant", "show", WHEEL]);
    assert!(shown.contains("not a variant") && shown.contains("amd :: gfx_arch :: gfx"), "{shown}");
}

/// Returns a wheel with this `variant.json`.
fn declaring(json: &str) -> Vec<u8> {
    let kernels = fs::read(data("kernels.hipfb")).unwrap();
    let json = ("foo-1.0.dist-info/variant.json", json.as_bytes());
    packages::zip(&packages::wheel(&[("kernels.hipfb", &kernels), json]), &Around::default())
}

#[test]
fn texts_of_declarations_deceive_no_terminal() {
    let place = Place::new();
    let json = r#"{"$schema": "\u001b[7m", "\u009b1m": 1, "default-priorities": {"namespace": ["a\u202e"]},
        "variants": {"x\n\u001b[2J": {"a\u001bb": {"c\u2066": ["d\u200b", 7]}}}}"#;
    place.put("foo-1.0-py3-none-any-x.whl", declaring(json));
    for command in ["show", "check", "index"] {
        let mut line = vec!["variant", command, "foo-1.0-py3-none-any-x.whl"];
        if command == "index" {
            line.extend(["-o", "out"]);
        }
        let output = place.try_run(tool("offload"), &line);
        for text in [&output.stdout, &output.stderr] {
            let text = String::from_utf8(text.clone()).unwrap();
            let deceives =
                |c: char| c.is_control() && c != '\n' || "\u{202e}\u{2066}\u{200b}".contains(c);
            assert!(!text.contains(deceives), "{command}: {text:?}");
        }
        assert_eq!(output.status.code(), Some(i32::from(command != "show")));
    }
}

#[cfg(unix)]
#[test]
fn outputs_are_as_private_as_wheels() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.put(WHEEL, wheel(&["kernels.hipfb"]));
    fs::set_permissions(place.path(WHEEL), fs::Permissions::from_mode(0o600)).unwrap();
    place.run(tool("offload"), &["variant", "split", WHEEL, "-o", "dist"]);
    place.run(
        tool("offload"),
        &["variant", "make", WHEEL, "--label", "gfx90a", "-p", "a::b::c", "-o", "made"],
    );
    place.run(tool("offload"), &["variant", "index", "dist", "-o", "dist"]);
    for directory in ["dist", "made"] {
        for name in names(&place.path(directory)) {
            let path = place.path(directory).join(&name);
            let mode = fs::metadata(path).unwrap().permissions().mode() & 0o077;
            assert_eq!(mode, 0, "{name}");
        }
    }
}

/// Returns a wheel with a fatbinary: code for the features of sm_100, code for sm_90, and PTX of this version.
fn cuda(ptx: &str) -> Vec<u8> {
    let text = format!(
        ".version {ptx}\n.target sm_90\n.address_size 64\n.visible .entry k() {{ ret; }}\n"
    );
    let cubin = |sm: u32| {
        // The header of an ELF file for NVIDIA's GPUs.
        let mut code = b"\x7fELF\x02\x01\x01\x33\x07".to_vec();
        code.resize(64, 0);
        (code[18], code[48]) = (190, u8::try_from(sm).unwrap());
        Made::cubin(sm, &code)
    };
    let specific = Made { flags: 0x10_0001, ..cubin(100) };
    let ptx = Made { kind: 1, sm: 90, payload: text.into_bytes(), ..cubin(90) };
    let code = fatbin(&[specific, cubin(90), ptx]);
    packages::zip(&packages::wheel(&[("foo/code.fatbin", &code)]), &Around::default())
}

#[test]
fn gpus_that_take_a_variant_find_code_in_it() {
    let place = Place::new();
    place.put(WHEEL, cuda("7.8"));
    place.run(tool("offload"), &["variant", "split", WHEEL, "-o", "dist"]);
    let names = names(&place.path("dist"));
    assert!(names.contains(&"foo-1.0-py3-none-any-sm_100.whl".to_owned()), "{names:?}");
    // Installers take 100_real for sm_103, too: it compiles the PTX.
    let sm_100 = "dist/foo-1.0-py3-none-any-sm_100.whl";
    place.run(tool("offload"), &["match", "--gpu", "sm_103,sm_100", sm_100]);
    let listed = place.run(tool("offload"), &["ls", "dist/foo-1.0-py3-none-any-sm_90.whl"]);
    assert!(listed.contains("sm_90") && !listed.contains("sm_100"), "{listed}");
    assert_eq!(check(&place, &["dist"]), (Some(0), Vec::new()));
    // Without PTX, there is no code for it.
    let thin = ["thin", sm_100, "--keep", "sm_100", "-o", "thin.whl"];
    assert!(place.try_run(tool("offload"), &thin).status.success());
    fs::rename(place.path("thin.whl"), place.path("foo-1.0-py3-none-any-sm_100.whl")).unwrap();
    let (status, codes) = check(&place, &["foo-1.0-py3-none-any-sm_100.whl"]);
    assert_eq!((status, &*codes), (Some(0), &["warning variant/wider".to_owned()][..]));
}

#[test]
fn a_lower_bound_of_cuda_is_compared_with_the_needs_of_code() {
    let place = Place::new();
    place.put(WHEEL, cuda("8.8"));
    for (bound, expected) in [("12.9", vec![]), ("12.4", vec!["warning variant/bound".to_owned()])]
    {
        let bound = format!("nvidia :: cuda_version_lower_bound :: {bound}");
        let ptx = "nvidia :: sm_arch :: 120_virtual";
        let line = ["variant", "make", WHEEL, "--label", "x", "-p", &bound, "-p", ptx, "-o", "out"];
        place.run(tool("offload"), &line);
        let (status, codes) = check(&place, &["out"]);
        let codes: Vec<_> =
            codes.into_iter().filter(|code| !code.ends_with("undeclared")).collect();
        assert_eq!((status, codes), (Some(0), expected), "{bound}");
    }
}

#[test]
fn what_a_variant_declares_besides_gpus_stays() {
    let place = Place::new();
    place.put(WHEEL, wheel(&["kernels.hipfb"]));
    let level = "x86_64 :: level :: v3";
    let line =
        ["variant", "make", WHEEL, "--label", "v3", "-p", level, "--namespace", "amd", "-o", "a"];
    place.run(tool("offload"), &line);
    let v3 = "a/foo-1.0-py3-none-any-v3.whl";
    let made = place.run(tool("offload"), &["variant", "make", v3, "--label", "v3_amd", "-o", "b"]);
    assert!(made.contains(level) && made.contains("amd :: gfx_arch :: gfx1030, gfx90a"), "{made}");
    place.run(tool("offload"), &["variant", "index", "a", "b", "-o", "index"]);
    let index = fs::read_to_string(place.path("index/foo-1.0-variants.json")).unwrap();
    let index: Value = serde_json::from_str(&index).unwrap();
    assert_eq!(index["default-priorities"]["namespace"], serde_json::json!(["amd", "x86_64"]));
    // An index may lie alone.
    assert_eq!(check(&place, &["a", "b", "index"]).0, Some(0));
    fails(&place, &["variant", "split", v3, "-o", "c"], "it is a variant");
    fails(
        &place,
        &["variant", "make", WHEEL, "--label", "x", "--namespace", "A", "-o", "c"],
        "namespace",
    );
    assert!(!place.path("c").exists());
}

#[test]
fn a_signed_wheel_is_split_if_that_is_allowed() {
    let place = Place::new();
    let kernels = fs::read(data("kernels.hipfb")).unwrap();
    let mut members = packages::wheel(&[("kernels.hipfb", &kernels)]);
    members.push(packages::Made::new("foo-1.0.dist-info/RECORD.jws", b"{}"));
    place.put(WHEEL, packages::zip(&members, &Around::default()));
    fails(&place, &["variant", "split", WHEEL, "-o", "dist"], "--drop-signature");
    place.run(tool("offload"), &["variant", "split", WHEEL, "-o", "dist", "--drop-signature"]);
    place.run(tool("offload"), &["verify", "dist"]);
}

#[test]
fn variants_of_one_wheel_are_matched_as_a_set() {
    let place = split();
    let output = place.try_run(tool("offload"), &["match", "--gpu", "gfx90a", "dist"]);
    assert_eq!(output.status.code(), Some(0));
    let said = stdout(&output);
    let set = "dist/foo-1.0-py3-none-any.whl: variants with code for gfx90a: gfx90a\n";
    assert!(said.contains(set) && said.contains("any-gfx1030.whl: "), "{said}");
    let output = place.try_run(tool("offload"), &["match", "--gpu", "gfx1100", "dist"]);
    assert_eq!(output.status.code(), Some(1));
    let said = stdout(&output);
    assert!(said.contains("foo-1.0-py3-none-any.whl: no variant has code for gfx1100\n"), "{said}");
    let json = place.run(tool("offload"), &["match", "--gpu", "gfx90a", "--json", "dist"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["verdicts"].as_array().unwrap().len(), 1, "{json}");
    assert!(json["findings"].as_array().unwrap().is_empty(), "{json}");
    // One variant alone has to have the code.
    let one = "dist/foo-1.0-py3-none-any-gfx1030.whl";
    let output = place.try_run(tool("offload"), &["match", "--gpu", "gfx90a", one]);
    assert_eq!(output.status.code(), Some(1));
}

/// Puts a variant of a wheel with these samples, and with these properties of GPUs.
fn put_variant(place: &Place, (name, label): (&str, &str), samples: &[&str], gpus: &str) {
    let json = format!(
        r#"{{"$schema": "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
        "default-priorities": {{"namespace": ["amd", "nvidia", "x86_64"]}}, "variants": {{"{label}": {{{gpus}}}}}}}"#
    );
    let files: Vec<_> =
        samples.iter().map(|name| (format!("foo/{name}"), fs::read(data(name)).unwrap())).collect();
    let mut files: Vec<_> = files.iter().map(|(name, bytes)| (&**name, &**bytes)).collect();
    files.push(("foo-1.0.dist-info/variant.json", json.as_bytes()));
    let bytes = packages::zip(&packages::wheel(&files), &Around::default());
    place.put(&format!("{name}-1.0-py3-none-any-{label}.whl"), bytes);
}

const GFX1100: &str = r#""amd": {"gfx_arch": ["gfx1100"]}"#;

#[test]
fn variants_without_code_for_a_vendor_are_not_asked_about_its_gpus() {
    let place = Place::new();
    fs::create_dir(place.path("dist")).unwrap();
    put_variant(&place, ("dist/numpy", "x86_64_v3"), &[], r#""x86_64": {"level": ["v3"]}"#);
    put_variant(&place, ("dist/numpy", "null"), &[], "");
    put_variant(&place, ("dist/bar", "x"), &["hip.o"], GFX1100);
    let output = place.try_run(tool("offload"), &["match", "--gpu", "gfx1100", "dist"]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert!(!stdout(&output).contains("numpy"), "{}", stdout(&output));
    place.run(tool("offload"), &["check", "dist", "--require", "gfx1100"]);
    // Code for GPUs of one vendor, and GPUs of two.
    fs::create_dir(place.path("cuda")).unwrap();
    put_variant(&place, ("cuda/cuda", "a"), &["cuda-fatbin.o"], "");
    put_variant(&place, ("cuda/cuda", "null"), &["cuda-fatbin.o"], "");
    let alone = place.try_run(tool("offload"), &["match", "--gpu", "sm_90", "cuda"]);
    let both = place.try_run(tool("offload"), &["match", "--gpu", "sm_90,gfx1100", "cuda"]);
    assert_eq!(both.status.code(), alone.status.code(), "{}", stdout(&both));
    assert!(!stdout(&both).contains("variant has code for gfx1100"), "{}", stdout(&both));
}

#[test]
fn the_variant_that_an_installer_takes_has_the_code() {
    let place = Place::new();
    fs::create_dir(place.path("dist")).unwrap();
    // kernels.hipfb has code for gfx1030 and gfx90a.
    put_variant(&place, ("dist/foo", "gfx1100"), &["kernels.hipfb"], GFX1100);
    put_variant(&place, ("dist/foo", "null"), &["hip.o"], "");
    let output = place.try_run(tool("offload"), &["match", "--gpu", "gfx1100", "dist"]);
    let said = "dist/foo-1.0-py3-none-any.whl: installers take gfx1100 for gfx1100, which lacks code; \
                variants with code for it: null\n";
    assert!(stdout(&output).contains(said), "{}", stdout(&output));
    assert_eq!(output.status.code(), Some(1));
    // Variants in different directories are not alternatives.
    for directory in ["a", "b"] {
        fs::create_dir(place.path(directory)).unwrap();
        put_variant(&place, (&format!("{directory}/foo"), "x"), &["hip.o"], GFX1100);
    }
    let both = ["match", "--gpu", "gfx1100", "a", "b"];
    let output = place.try_run(tool("offload"), &both);
    assert_eq!(output.status.code(), Some(0));
    let said = stdout(&output);
    assert!(!said.contains("variants with code"), "{said}");
    // One that cannot be read may be for any GPU.
    put_variant(&place, ("a/foo", "y"), &["hip.o"], "\u{1}");
    let said = stdout(&place.try_run(tool("offload"), &["match", "--gpu", "gfx1100", "a"]));
    assert!(said.contains(": x, y (variant.json was not read: y)\n"), "{said}");
}

#[test]
fn code_in_kernel_packs_of_other_wheels_is_not_compared() {
    let place = Place::new();
    let library = fs::read(data("hip-two-units-ccob.so")).unwrap();
    let members = packages::wheel(&[("foo/libfoo.so", &library)]);
    place.put(WHEEL, packages::zip(&members, &Around::default()));
    place.run(tool("offload"), &["split", WHEEL, "-o", "out"]);
    let host = format!("out/{WHEEL}");
    let declared = "amd :: gfx_arch :: gfx1100";
    let line = ["variant", "make", &host, "--label", "fast", "-p", declared, "-o", "dist"];
    place.run(tool("offload"), &line);
    assert_eq!(
        check(&place, &["dist"]),
        (Some(0), vec!["warning variant/not-compared".to_owned()])
    );
}
