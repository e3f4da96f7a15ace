//! Dependencies point down: no crate uses a crate of its own floor or of a floor above it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::machine;

/// A crate, and the only crates of this workspace that it may use. `None`: all of the floors below its own.
type Line = (&'static str, Option<&'static [&'static str]>);

/// Crates for tests only: makers of files, and the checks of the fuzz targets and of the tools, which use all.
const FOR_TESTS: [&str; 3] = ["samples", "oracles", "tool-tests"];

/// The floors from the ground up. A crate may be listed before it exists.
const FLOORS: [(&str, &[Line]); 11] = [
    ("foundation", &[("byte-parts", None), ("offload-codecs", None)]),
    (
        "ground",
        &[
            ("target-id", Some(&[])),
            ("ccob", Some(&["offload-codecs"])),
            ("llvm-bitcode", Some(&[])),
            ("nv-fatbin", None),
            ("kpack", None),
        ],
    ),
    (
        "first",
        &[
            ("offload-binary", Some(&["target-id", "byte-parts"])),
            ("bundle-format", Some(&["target-id", "byte-parts"])),
            // The target of bitcode is read from its modules.
            ("device-code", Some(&["byte-parts", "target-id", "llvm-bitcode", "offload-codecs"])),
        ],
    ),
    (
        "second",
        &[("wrapper-ir", None), ("fat-object", None), ("object-edit", Some(&["byte-parts"]))],
    ),
    (
        "third",
        &[
            ("device-select", None),
            ("device-account", None),
            ("hda-archive", None),
            ("gpu-packages", Some(&["byte-parts", "offload-codecs"])),
        ],
    ),
    (
        "fourth",
        &[
            ("fat-edit", None),
            ("offload-link", None),
            (
                "offload-check",
                Some(&["device-code", "device-select", "fat-object", "gpu-packages"]),
            ),
            (
                "device-report",
                Some(&["device-account", "device-code", "device-select", "fat-object"]),
            ),
            ("offload-tool-kit", Some(&["byte-parts"])),
            ("offload-tool-network", Some(&["byte-parts"])),
        ],
    ),
    (
        "fifth",
        &[
            // For build scripts: it runs the compiler.
            ("offload-build", Some(&["hda-archive", "offload-link"])),
            (
                "device-files",
                Some(&[
                    "byte-parts",
                    "target-id",
                    "device-code",
                    "fat-object",
                    "device-select",
                    "fat-edit",
                    "gpu-packages",
                ]),
            ),
        ],
    ),
    (
        "sixth",
        &[(
            "offload-tool-inputs",
            Some(&[
                "byte-parts",
                "bundle-format",
                "kpack",
                "fat-object",
                "device-files",
                "device-select",
                "fat-edit",
                "gpu-packages",
                "offload-check",
                "offload-tool-kit",
                "offload-tool-network",
            ]),
        )],
    ),
    ("seventh", &[("offload-tool-edits", None), ("offload-tool-answers", None)]),
    ("eighth", &[("offload-drop-ins", None)]),
    ("roof", &[("offload-cli", None)]),
];

/// Returns the dependencies of a manifest, without those for tests and benches.
fn dependencies(manifest: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut is_within = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            let section = section.rsplit_once("'.").map_or(section, |(_, section)| section);
            let (table, name) = match section.rsplit_once("dependencies.") {
                Some((table, name)) => (format!("{table}dependencies"), Some(name)),
                None => (section.to_owned(), None),
            };
            let is_one = table.ends_with("dependencies") && !table.ends_with("dev-dependencies");
            is_within = is_one && name.is_none();
            names.extend(name.filter(|_| is_one));
        } else if is_within && line.starts_with(|c: char| c.is_ascii_alphabetic()) {
            names.extend(line.split(['.', '=', ' ']).next());
        }
    }
    names
}

#[test]
fn dependencies_point_down() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().parent().unwrap();
    let floor_of = |name: &str| {
        FLOORS.iter().position(|(_, crates)| crates.iter().any(|(other, _)| *other == name))
    };
    let may_use = |name: &str| {
        let mut crates = FLOORS.iter().flat_map(|(_, crates)| *crates);
        crates.find(|(other, _)| *other == name).and_then(|(_, only)| *only)
    };
    let mut ours = Vec::new();
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        let manifest = fs::read_to_string(entry.unwrap().path().join("Cargo.toml")).unwrap();
        let line = manifest.lines().find_map(|line| line.strip_prefix("name = ")).unwrap();
        ours.push((line.trim_matches('"').to_owned(), manifest));
    }
    let is_ours = |name: &&str| ours.iter().any(|(other, _)| other == name);
    let mut arrows = 0;
    for (name, manifest) in &ours {
        let used = dependencies(manifest);
        let used = used.into_iter().filter(is_ours);
        let Some(floor) = floor_of(name) else {
            assert!(FOR_TESTS.contains(&name.as_str()), "the table of floors lacks {name}");
            assert!(name != "samples" || used.count() == 0, "{name} uses crates of ours");
            continue;
        };
        for used in used {
            let Some(lower) = floor_of(used) else { panic!("{name} uses {used}") };
            assert!(lower < floor, "{name} uses {used}, which is not below it");
            let is_allowed = may_use(name).is_none_or(|only| only.contains(&used));
            assert!(is_allowed, "{name} uses {used}, which its line does not have");
            arrows += 1;
        }
    }
    assert!(arrows > 20, "{arrows}: the manifests were not understood");
}

#[test]
fn manifests_are_understood() {
    let manifest = "\
[package]
name = \"x\"
[dependencies]
a.workspace = true
# b = \"1\"
c = { workspace = true }
[target.'cfg(unix)'.dependencies]
d = \"1\"
[build-dependencies.e]
version = \"1\"
[dev-dependencies]
f = \"1\"
[lints]
workspace = true
";
    assert_eq!(dependencies(manifest), ["a", "c", "d", "e"]);
}

/// A package holds the sources with their unit tests, and outsiders run these: they cannot use crates that are not published.
#[test]
fn unit_tests_use_published_crates() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for entry in fs::read_dir(&crates).unwrap() {
        let path = entry.unwrap().path();
        let is_for_tests = FOR_TESTS.iter().any(|name| path.ends_with(name));
        let mut files = Vec::new();
        if !is_for_tests && path.join("src").exists() {
            machine::sources(&path.join("src"), &mut files);
        }
        for file in files {
            let code = fs::read_to_string(&file).unwrap();
            let found = ["samples::", "oracles::"].into_iter().find(|name| code.contains(name));
            assert_eq!(found, None, "{}", file.display());
        }
    }
}

/// A new version of such a dependency is a break, and the page about releases names each.
#[test]
fn dependencies_in_public_apis_are_named() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("RELEASING.md")).unwrap();
    let (_, named) = page.split_once("a dependency whose types are public: ").unwrap();
    let (named, _) = named.split_once(". All others").unwrap();
    let named = named.split('`').skip(1).step_by(2);
    let named = named.filter(|name| !name.contains([':', '-']));
    let mut ours = vec!["core".to_owned(), "alloc".to_owned(), "std".to_owned()];
    let mut texts = String::new();
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        let path = entry.unwrap().path();
        ours.push(path.file_name().unwrap().to_str().unwrap().replace('-', "_"));
        texts += &fs::read_to_string(path.join("public-api.txt")).unwrap_or_default();
    }
    let paths = texts.split(|c: char| !c.is_ascii_alphanumeric() && !"_:".contains(c));
    let crates = paths.filter_map(|path| Some(path.split_once("::")?.0));
    let crates = crates.filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase()));
    // The traits of `serde` lie in a crate of their own.
    let crates = crates.filter(|name| !ours.iter().any(|of| of == name));
    let found: BTreeSet<&str> = crates.map(|name| name.trim_end_matches("_core")).collect();
    assert_eq!(found, named.collect());
}

/// Programs are built for size, as the general setting, and the libraries for speed. The documentation of a library has its features.
#[test]
fn libraries_are_built_for_speed_and_documented_with_their_features() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let settings = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let mut libraries = 0;
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        let manifest = fs::read_to_string(entry.unwrap().path().join("Cargo.toml")).unwrap();
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = ")).unwrap();
        let name = name.trim_matches('"');
        let is_of_tools = manifest.contains("\ntools = true\n") || manifest.contains("\n[[bin]]\n");
        let setting = format!("[profile.release.package.{name}]\nopt-level = 3\n");
        let is_library = !is_of_tools && !FOR_TESTS.contains(&name);
        assert_eq!(settings.contains(&setting), is_library, "{name}");
        let documented = "[package.metadata.docs.rs]\nall-features = true\n";
        let has_features = manifest.contains("\n[features]\n");
        assert!(!is_library || !has_features || manifest.contains(documented), "{name}");
        libraries += usize::from(is_library);
    }
    assert!(libraries > 10, "{libraries}: the manifests were not understood");
}
