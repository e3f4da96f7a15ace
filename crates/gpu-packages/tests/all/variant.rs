//! Variants of wheels: PEP 825, a draft.

use std::io::{Cursor, Read};

use gpu_packages::{
    ErrorKind, VariantMetadata, VariantProperties, VariantSchema, WheelEdit, WheelName, Zip,
    ZipEdit, variant_json, verify,
};
use samples::packages::{self, Around};

use crate::seen;

const ONE: std::num::NonZeroUsize = std::num::NonZeroUsize::MIN;

fn properties(all: &[&str]) -> VariantProperties {
    let mut properties = VariantProperties::default();
    all.iter().for_each(|one| properties.add_text(one).unwrap());
    properties
}

/// The metadata of PEP 825's example, as its text has it.
const EXAMPLE: &str = r#"{
  "$schema": "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
  "default-priorities": {"namespace": ["x86_64", "aarch64", "blas_lapack"]},
  "variants": {
    "x86_64_v3_openblas": {"blas_lapack": {"library": ["openblas"]}, "x86_64": {"level": ["v3"]}}
  }
}"#;

fn read(json: &str) -> (VariantMetadata, Vec<String>) {
    VariantMetadata::read(json.as_bytes()).unwrap()
}

#[test]
fn the_example_of_the_draft_is_read() {
    let (metadata, faults) = read(EXAMPLE);
    assert!(faults.is_empty(), "{faults:?}");
    assert_eq!(metadata.schema(), VariantSchema::Pep825);
    assert_eq!(Vec::from_iter(metadata.namespaces()), ["x86_64", "aarch64", "blas_lapack"]);
    let (label, declared) = metadata.variants().next().unwrap();
    assert_eq!(label, "x86_64_v3_openblas");
    assert_eq!(declared.to_string(), "blas_lapack :: library :: openblas; x86_64 :: level :: v3");
    assert_eq!(metadata.check_label(label), None);
    let fault = metadata.check_label("null").unwrap();
    assert!(fault.ends_with("the name of the file says 'null'"), "{fault}");
    assert_eq!(read(&metadata.to_json()), (metadata, Vec::new()));
}

#[test]
fn each_rule_of_the_form_has_a_fault_with_its_place() {
    for (old, new, expected) in [
        ("0.1.1", "9.9.9", "$schema: expected "),
        ("\"$schema\"", "\"schema\"", "$schema: expected "),
        (
            "[\"x86_64\", \"aarch64\", \"blas_lapack\"]",
            "[]",
            "default-priorities.namespace: expected a value",
        ),
        ("\"aarch64\"", "\"x86_64\"", "default-priorities.namespace[1]: 'x86_64' is there twice"),
        ("\"aarch64\"", "\"Aarch64\"", "default-priorities.namespace: 'Aarch64' is not the name"),
        ("\"aarch64\"", "7", "default-priorities.namespace[1]: expected a string, found a number"),
        (
            ", \"blas_lapack\"]",
            "]",
            "variants.x86_64_v3_openblas.blas_lapack: default-priorities.namespace lacks it",
        ),
        ("[\"v3\"]", "[]", "variants.x86_64_v3_openblas.x86_64.level: expected a value"),
        (
            "[\"v3\"]",
            "\"v3\"",
            "variants.x86_64_v3_openblas.x86_64.level: expected a list, found a string",
        ),
        (
            "[\"v3\"]",
            "[\"v3\", \"v2\"]",
            "variants.x86_64_v3_openblas.x86_64.level: the values are not sorted",
        ),
        ("[\"v3\"]", "[\"V3\"]", "variants.x86_64_v3_openblas.x86_64.level: expected a property"),
        ("x86_64_v3_openblas", "null", "variants.null: the variant null has properties"),
        ("x86_64_v3_openblas", "Fast", "variants.Fast: not a label"),
        (
            "{\"level\": [\"v3\"]}",
            "null",
            "variants.x86_64_v3_openblas.x86_64: expected an object, found null",
        ),
        ("\"variants\"", "\"providers\"", "providers: the form has no such key"),
        (
            "{\"level\": [\"v3\"]}",
            "{\"level\": [\"v2\"], \"level\": [\"v3\"]}",
            "variants.x86_64_v3_openblas.x86_64.level: the key is there twice",
        ),
        (
            "\"x86_64_v3_openblas\":",
            "\"x86_64_v3_openblas\": {}, \"x86_64\\u005fv3_openblas\":",
            "variants.x86_64_v3_openblas: the key is there twice",
        ),
        ("\"$schema\"", "\"variants\": {}, \"$schema\"", "variants: the key is there twice"),
        ("\"variants\"", "\"other\"", "variants: expected an object, found nothing"),
    ] {
        assert!(EXAMPLE.contains(old));
        let (_, faults) = read(&EXAMPLE.replace(old, new));
        assert!(faults.iter().any(|fault| fault.starts_with(expected)), "{expected}: {faults:?}");
    }
    for no_object in ["", "[]", "{", "7", "{\"a\": 1", &"[".repeat(100_000)] {
        let error = VariantMetadata::read(no_object.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed);
    }
    // Several objects may have one key, and texts may look like keys.
    let lists = EXAMPLE.replace("[\"v3\"]", "[\"v\\\"{\", \"level\", \"level2\"]");
    let (_, faults) = read(&lists);
    assert!(!faults.iter().any(|fault| fault.contains("key")), "{faults:?}");
    // Keys may be as long as the file: places are short.
    let long = "k".repeat(100_000);
    let twice = (0..60).map(|_| "\"a\": [{}]").collect::<Vec<_>>().join(",");
    for (json, place) in [
        (format!("{{\"{long}\": {{{twice}}}}}"), "kkk"),
        (
            format!("{{\"variants\": {{\"{long}\": {{\"{long}\": {{\"{long}\": 1}}}}}}}}"),
            "variants.kkk",
        ),
        ("{\"a\":".repeat(100) + &format!("{{{twice}}}") + &"}".repeat(100), "a.a.a"),
    ] {
        let (_, faults) = read(&json);
        let places = faults.iter().filter(|fault| fault.starts_with(place));
        assert!(places.count() > 0, "{place}");
        assert!(faults.iter().all(|fault| fault.len() < 1200), "{place}: places are short");
    }
    // Not more than a page of faults.
    let many = (0..1000).map(|n| format!("\"A{n}\": 1")).collect::<Vec<_>>().join(",");
    let faults = read(&format!("{{{many}}}")).1;
    assert_eq!((faults.len(), &*faults[50]), (51, "further faults are not listed"));
}

#[test]
fn an_index_is_the_union_of_its_wheels() {
    let of = |label: &str, all: &[&str]| VariantMetadata::new(label, properties(all)).unwrap();
    let mut index = of("gfx1100", &["amd :: gfx_arch :: gfx1100"]);
    assert!(index.merge(&of("gfx942", &["amd :: gfx_arch :: gfx942"])).is_empty());
    assert!(index.merge(&of("null", &[]).with_namespaces(["amd"]).unwrap()).is_empty());
    assert_eq!(
        Vec::from_iter(index.variants().map(|(label, _)| label)),
        ["gfx1100", "gfx942", "null"]
    );
    assert!(index.equal_labels().is_empty());
    // An equal label with other properties, and other priorities.
    let before = index.clone();
    let faults = index.merge(&of("gfx942", &["amd :: gfx_arch :: gfx950"]));
    assert!(
        faults[0].starts_with("variants.gfx942: 'amd :: gfx_arch :: gfx950' contradicts"),
        "{faults:?}"
    );
    assert_eq!(index, before);
    let faults = index.merge(&of("cuda", &["nvidia :: sm_arch :: 90_real"]));
    assert!(
        faults[0].starts_with("default-priorities.namespace: 'nvidia' contradicts 'amd'"),
        "{faults:?}"
    );
    // Another label for the same.
    assert!(index.merge(&of("same", &["amd :: gfx_arch :: gfx942"])).is_empty());
    assert_eq!(index.equal_labels(), [("same", "gfx942")]);
    // The longer list of namespaces counts.
    let mut short = of("a", &["amd :: gfx_arch :: gfx942"]);
    let long = of("b", &["amd :: gfx_arch :: gfx950"]).with_namespaces(["nvidia"]).unwrap();
    assert!(short.merge(&long).is_empty());
    assert_eq!(Vec::from_iter(short.namespaces()), ["amd", "nvidia"]);
}

#[test]
fn labels_and_properties_have_their_characters() {
    for (label, all) in [
        ("Fast", &["a :: b :: c"][..]),
        ("", &["a :: b :: c"]),
        ("null", &["a :: b :: c"]),
        ("x", &[]),
    ] {
        let error = VariantMetadata::new(label, properties(all)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed, "{label}");
    }
    for wrong in
        ["a :: b", "a :: b :: c :: d", "a.b :: c :: d", "a :: b :: C", " :: b :: c", "a::b::"]
    {
        assert!(VariantProperties::default().add_text(wrong).is_err(), "{wrong}");
    }
    let name =
        WheelName::parse("a-1-2-py3-none-any.whl").unwrap().with_label(Some("v1.2_x")).unwrap();
    assert_eq!(name.to_string(), "a-1-2-py3-none-any-v1.2_x.whl");
    assert_eq!(name.clone().with_label(None).unwrap().to_string(), "a-1-2-py3-none-any.whl");
    assert!(name.with_label(Some("a-b")).is_err());
}

#[test]
fn the_form_of_variantlib_names_the_plugins() {
    let metadata =
        VariantMetadata::new("gfx942", properties(&["amd :: gfx_arch :: gfx942"])).unwrap();
    let metadata = metadata.with_schema(VariantSchema::Variantlib).unwrap();
    let json = metadata.to_json();
    assert!(json.contains("rocm_bootstrap.variant_provider:AMDVariantPlugin"), "{json}");
    assert_eq!(read(&json), (metadata, Vec::new()));
    let (other, _) = read(EXAMPLE);
    assert_eq!(
        other.with_schema(VariantSchema::Variantlib).unwrap_err().kind(),
        ErrorKind::Unsupported
    );
}

#[test]
fn a_wheel_becomes_a_variant_and_another_one() {
    for text in ["\n", "\r\n"] {
        let mut members =
            packages::wheel(&[("foo/__init__.py", b"x = 1\n"), ("foo/a.so", b"\x7fELF")]);
        let record = members.iter_mut().find(|made| made.name.ends_with(b"/RECORD")).unwrap();
        let new = String::from_utf8(record.contents.clone()).unwrap().replace('\n', text);
        record.contents = new.into_bytes();
        let old = packages::zip(&members, &Around::default());
        let first =
            VariantMetadata::new("gfx942", properties(&["amd :: gfx_arch :: gfx942"])).unwrap();
        let made = make(&old, &first);
        assert_eq!(stated(&made), first.to_json());
        let (before, after) = (seen(&old), seen(&made));
        assert!(after.findings.is_empty(), "{:?}", after.findings);
        assert_eq!(before.files.len() + 1, after.files.len());
        for (name, contents) in before.files.iter().filter(|(name, _)| !name.ends_with("/RECORD")) {
            assert!(after.files.contains(&(name.clone(), contents.clone())), "{name}");
        }
        // The file is replaced, not added again.
        let second = VariantMetadata::new("null", VariantProperties::default())
            .unwrap()
            .with_namespaces(["amd"])
            .unwrap();
        let other = make(&made, &second);
        assert_eq!(stated(&other), second.to_json());
        assert_eq!(seen(&other).files.len(), after.files.len());
        for wheel in [made, other] {
            let verified = verify(Cursor::new(&wheel), &Default::default()).unwrap();
            assert!(verified.findings.is_empty(), "{:?}", verified.findings);
            assert_eq!(verified.recorded, 5);
        }
    }
}

#[test]
fn a_member_is_added_once() {
    let old = packages::zip(&packages::wheel(&[("a.py", b"")]), &Around::default());
    let zip = Zip::read(Cursor::new(&old)).unwrap();
    for names in [&["a.py"][..], &["b", "b"]] {
        let mut edit = ZipEdit::new(&zip);
        for name in names {
            edit.add(name, gpu_packages::NewContents::deflate(&b"new"[..], 6, ONE).unwrap());
        }
        assert_eq!(edit.plan(Cursor::new(&old)).unwrap_err().kind(), ErrorKind::Refused);
    }
}

fn make(wheel: &[u8], metadata: &VariantMetadata) -> Vec<u8> {
    let zip = Zip::read(Cursor::new(wheel)).unwrap();
    let mut edit = WheelEdit::new(&zip).unwrap();
    let rewrite = edit.variant(metadata).plan(Cursor::new(wheel)).unwrap();
    let mut new = Vec::new();
    rewrite.write_to(Cursor::new(wheel), &mut new).unwrap();
    assert_eq!(new.len() as u64, rewrite.size());
    new
}

fn stated(wheel: &[u8]) -> String {
    let zip = Zip::read(Cursor::new(wheel)).unwrap();
    let mut text = String::new();
    let index = variant_json(&zip).unwrap();
    zip.open(index, Cursor::new(wheel)).unwrap().read_to_string(&mut text).unwrap();
    text
}

#[test]
fn plugins_are_there_for_each_namespace() {
    let metadata = VariantMetadata::new("x", properties(&["amd :: gfx_arch :: gfx942"])).unwrap();
    let plain = metadata.clone();
    let json = metadata.with_schema(VariantSchema::Variantlib).unwrap().to_json();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    for (providers, expected) in [
        ("null", "providers: expected an object, found null"),
        ("5", "providers: expected an object, found a number"),
        ("{}", "providers: lacks the namespace 'amd'"),
        (r#"{"amd": 7}"#, "providers.amd: expected one of requires"),
        (
            r#"{"amd": {"requires": ["a"], "builtin": "b"}}"#,
            "providers.amd: expected one of requires",
        ),
        (r#"{"amd": {"builtin": "b"}, "x": {"builtin": "b"}}"#, "providers.x: default-priorities"),
    ] {
        let mut value = value.clone();
        value["providers"] = serde_json::from_str(providers).unwrap();
        let (_, faults) = read(&value.to_string());
        assert!(faults.iter().any(|fault| fault.starts_with(expected)), "{expected}: {faults:?}");
    }
    // One version has wheels of one form.
    let (other, _) = read(&json);
    let faults = plain.clone().merge(&other);
    assert!(faults.iter().any(|fault| fault.starts_with("$schema: ")), "{faults:?}");
}

#[test]
fn a_variant_has_one_row_of_record() {
    let metadata = VariantMetadata::new("x", properties(&["a :: b :: c"])).unwrap();
    let json = ("foo-1.0.dist-info/variant.json", &b"{}"[..]);
    for is_there in [true, false] {
        let mut members = packages::wheel(&[("a.py", b""), json]);
        if is_there {
            // It is there, and RECORD lacks it.
            let record = members.iter_mut().find(|it| it.name.ends_with(b"/RECORD")).unwrap();
            let text = String::from_utf8(record.contents.clone()).unwrap();
            let rows = text.lines().filter(|row| !row.starts_with(json.0));
            record.contents = rows.map(|row| format!("{row}\n")).collect::<String>().into();
        } else {
            members.retain(|it| it.name != json.0.as_bytes());
        }
        let made = make(&packages::zip(&members, &Around::default()), &metadata);
        let verified = verify(Cursor::new(&made), &Default::default()).unwrap();
        assert!(verified.findings.is_empty(), "{is_there}: {:?}", verified.findings);
        assert_eq!(stated(&made), metadata.to_json());
    }
}
