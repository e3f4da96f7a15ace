//! `--format`: documents have the fields of `docs/schema`, findings have codes that are explained, and questions that people ask
//! have answers. Programs that are not ours read the formats in `.ci/formats`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use samples::packages::{self, Around};
use serde_json::Value;

use crate::common::{Random, all_data, data, new_command, rows, stderr, stdout, tool};
use crate::machine;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs `offload` in the directory of the examples.
fn offload(args: &[&str]) -> Output {
    let directory = data("hip.o");
    let directory = directory.parent().unwrap();
    new_command(tool("offload")).args(args).current_dir(directory).output().unwrap()
}

/// Returns the document of a command line.
fn document(args: &[&str]) -> Value {
    let output = offload(&[args, &["--json"]].concat());
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{args:?}: {error}: {}", stderr(&output)))
}

fn schema(name: &str) -> Value {
    let text = fs::read_to_string(root().join("docs/schema").join(format!("{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Returns what is wrong with a value, by the part of JSON Schema that ours use. Fields that the schema lacks are wrong, too.
fn fault(root: &Value, schema: &Value, value: &Value) -> Option<String> {
    let schema = match schema["$ref"].as_str() {
        Some(name) => root.pointer(name.trim_start_matches('#')).unwrap(),
        None => schema,
    };
    if let Some(choices) = schema["anyOf"].as_array() {
        let faults: Vec<_> = choices.iter().map(|choice| fault(root, choice, value)).collect();
        return faults.iter().all(Option::is_some).then(|| format!("{faults:?}"));
    }
    if let Some(values) = schema["enum"].as_array() {
        return (!values.contains(value)).then(|| format!("{value}: expected one of {values:?}"));
    }
    if let Some(constant) = schema.get("const") {
        return (constant != value).then(|| format!("{value}: expected {constant}"));
    }
    let is = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let types = match &schema["type"] {
        Value::String(name) => vec![name.as_str()],
        Value::Array(names) => names.iter().map(|name| name.as_str().unwrap()).collect(),
        _ => vec![is],
    };
    if !types.contains(&is) || value.as_i64().is_some_and(|number| number < 0) {
        return Some(format!("{value}: expected {types:?}"));
    }
    if let (Some(values), Some(items)) = (value.as_array(), schema.get("items")) {
        return values.iter().find_map(|value| fault(root, items, value));
    }
    let (Some(fields), Some(known)) = (value.as_object(), schema["properties"].as_object()) else {
        return None;
    };
    let required = schema["required"].as_array().unwrap();
    let missing = required.iter().find(|name| !fields.contains_key(name.as_str().unwrap()));
    if let Some(name) = missing {
        return Some(format!("{value}: lacks {name}"));
    }
    fields.iter().find_map(|(name, value)| match known.get(name) {
        Some(schema) => fault(root, schema, value).map(|fault| format!("{name}: {fault}")),
        None => Some(format!("{name}: not in the schema")),
    })
}

/// The schema, and the command.
const COMMANDS: &[(&str, &[&str])] = &[
    ("ls", &["ls", "--needs", "--same", "--hash"]),
    ("ls-by-package", &["ls", "--by-package", "--gpu", "gfx1100"]),
    ("kernels", &["kernels", "--fail-on", "registers>32"]),
    ("diff", &["diff", "--fail-on-removed", "--fail-on", "registers>1", "hip.o"]),
    ("match", &["match", "--gpu", "gfx1100,sm_80"]),
    ("verify", &["verify"]),
    ("check", &["check", "--only", "gfx1100", "--require", "gfx1201"]),
    ("edit", &["thin", "--keep", "gfx1100", "--allow-missing", "--allow-empty", "--dry-run"]),
    ("compress", &["compress", "--dry-run"]),
    ("decompress", &["decompress", "--dry-run"]),
    ("size", &["size"]),
    ("size", &["size", "--duplicates"]),
    ("shrink", &["shrink", "--gpu", "gfx1100", "--plan"]),
];

#[test]
fn documents_have_the_fields_of_their_schemas() {
    let mut documents = 0;
    let mut check = |name: &str, args: &[&str]| {
        let output = offload(&[args, &["--json"]].concat());
        // A command that fails as a whole prints none.
        if output.stdout.is_empty() {
            assert!(!output.status.success(), "{args:?}");
            return;
        }
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let schema = schema(name);
        assert_eq!(fault(&schema, &schema, &document), None, "{args:?}");
        assert_eq!(document["ok"], output.status.success(), "{args:?}");
        documents += 1;
    };
    for file in all_data() {
        let name = file.file_name().unwrap().to_str().unwrap();
        for (schema, args) in COMMANDS {
            check(schema, &[*args, &[name]].concat());
        }
    }
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    check("extract", &["extract", "hip.o", "-o", &at("images")]);
    let one = format!("hipv4-amdgcn-amd-amdhsa--gfx1100={}", at("one"));
    check("unbundle", &["unbundle", "hip.o", &one]);
    let host = "host-x86_64-unknown-linux-gnu-=/dev/null";
    check("bundle", &["bundle", "-o", &at("two"), host, &one]);
    assert!(place.path().join("two").exists());
    check("gpus", &["gpus"]);
    check("link", &["link", "--print-plan", "hip.o", "libhip.a"]);
    check("ls", &["ls", "none", "hip.o"]);
    let kernels = fs::read(data("kernels.hipfb")).unwrap();
    let wheel = packages::zip(&packages::wheel(&[("kernels.hipfb", &kernels)]), &Around::default());
    fs::write(at("foo-1.0-py3-none-any.whl"), wheel).unwrap();
    let split = offload(&["variant", "split", &at("foo-1.0-py3-none-any.whl"), "-o", &at("dist")]);
    assert!(split.status.success());
    fs::rename(
        at("dist/foo-1.0-py3-none-any-gfx90a.whl"),
        at("dist/foo-1.0-py3-none-any-wrong.whl"),
    )
    .unwrap();
    check("variant-show", &["variant", "show", &at("dist")]);
    check("variant-check", &["variant", "check", &at("dist")]);
    assert!(documents > 200, "{documents}");
    // Each schema is for a command here.
    let tested: BTreeSet<&str> = COMMANDS.iter().map(|(name, _)| *name).collect();
    let others = [
        "extract",
        "unbundle",
        "bundle",
        "gpus",
        "link",
        "doctor",
        "variant-show",
        "variant-check",
    ];
    for entry in fs::read_dir(root().join("docs/schema")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let name = name.trim_end_matches(".json");
        assert!(tested.contains(name) || others.contains(&name), "{name}");
    }
}

#[test]
fn golden_documents_have_the_fields_of_the_schema() {
    let schema = schema("ls");
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let text = fs::read_to_string(&path).unwrap();
            let text = text.split("--- stderr").next().unwrap();
            let document = serde_json::from_str(text).unwrap();
            assert_eq!(fault(&schema, &schema, &document), None, "{}", path.display());
        }
    }
}

/// Returns the codes in the sources: texts such as `"size/budget"`.
fn codes_in_sources() -> BTreeSet<String> {
    let groups = [
        "targets", "size", "kernel", "diff", "needs", "variant", "verify", "package", "edit",
        "file", "network",
    ];
    let mut codes = BTreeSet::new();
    for crates in [
        "cli",
        "tool-kit",
        "tool-inputs",
        "tool-answers",
        "tool-edits",
        "device-files",
        "device-code",
        "offload-check",
    ] {
        let mut files = Vec::new();
        machine::sources(&root().join("crates").join(crates).join("src"), &mut files);
        for file in files {
            let text = fs::read_to_string(file).unwrap();
            let text = text.split("#[cfg(test)]").next().unwrap();
            for literal in text.split('"').skip(1).step_by(2) {
                let is_code = literal.split_once('/').is_some_and(|(group, rest)| {
                    groups.contains(&group)
                        && !rest.is_empty()
                        && rest.chars().all(|c| c.is_ascii_lowercase() || c == '-')
                });
                if is_code {
                    codes.insert(literal.to_owned());
                }
            }
        }
    }
    codes
}

#[test]
fn each_code_is_explained() {
    let page = fs::read_to_string(root().join("crates/cli/src/explain/codes.md")).unwrap();
    assert_eq!(page, fs::read_to_string(root().join("docs/codes.md")).unwrap());
    let explained: BTreeSet<String> =
        page.lines().filter_map(|line| line.strip_prefix("## ")).map(str::to_owned).collect();
    assert_eq!(codes_in_sources(), explained);
    assert_eq!(stdout(&offload(&["explain"])).lines().count(), explained.len());
    let output = offload(&["explain", "targets/missing"]);
    assert!(stdout(&output).starts_with("targets/missing\n"), "{}", stdout(&output));
    let output = offload(&["explain", "targets"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("known: size/budget"), "{}", stderr(&output));
}

#[test]
fn questions_have_answers() {
    // Targets of a library.
    let targets: BTreeSet<String> = rows::<Value>(&offload(&["ls", "--json", "hip.o"]).stdout)
        .iter()
        .filter_map(|image| image["target"].as_str().map(str::to_owned))
        .collect();
    assert!(targets.contains("gfx1100"), "{targets:?}");
    // Which files lack code for a GPU?
    let document_of = document(&["match", "--gpu", "gfx1100", "hip.o", "cuda-fatbin.o"]);
    let verdicts = document_of["verdicts"].as_array().unwrap();
    let lacking = verdicts.iter().filter(|verdict| verdict["answer"] == "no");
    assert!(lacking.map(|verdict| &verdict["file"]).eq([&Value::from("cuda-fatbin.o")]));
    let finding = &document_of["findings"][0];
    assert_eq!(
        (&finding["code"], &finding["file"]),
        (&"targets/missing".into(), &"cuda-fatbin.o".into())
    );
    // The share of each target of a compressed file.
    let document_of = document(&["ls", "hip-ccob-v3.o"]);
    let size = fs::metadata(data("hip-ccob-v3.o")).unwrap().len();
    assert_eq!(document_of["files"][0]["size"], size);
    let images = document_of["images"].as_array().unwrap();
    let stored: u64 = images.iter().map(|image| image["stored_estimate"].as_u64().unwrap()).sum();
    assert!((1..size).contains(&stored), "{stored} of {size}");
    // What broke the rule?
    let document_of = document(&["kernels", "--fail-on", "registers>0", "kernels.hipfb"]);
    let hit = &document_of["findings"][0];
    assert_eq!((&hit["code"], &document_of["ok"]), (&"kernel/rule".into(), &false.into()));
    assert!(hit["message"].as_str().unwrap().ends_with("(registers>0)"), "{hit}");
}

/// Runs `offload check` in a directory.
fn check_in(place: &Path, args: &[&str]) -> Output {
    new_command(tool("offload")).arg("check").args(args).current_dir(place).output().unwrap()
}

/// Returns the codes of the findings, with their files.
fn found(output: &Output) -> Vec<(String, String)> {
    let text = |one: &Value, key: &str| one[key].as_str().unwrap().to_owned();
    let found: Vec<Value> = rows(&output.stdout);
    found.iter().map(|one| (text(one, "code"), text(one, "file"))).collect()
}

#[cfg(unix)]
#[test]
fn a_policy_is_for_files_that_are_read_twice() {
    let place = tempfile::tempdir().unwrap();
    fs::copy(data("hip.o"), place.path().join("hip.o")).unwrap();
    for line in [
        "cat hip.o | \"$0\" check --file-size 1K -",
        "\"$0\" check --file-size 1K - < hip.o",
        "cat hip.o | \"$0\" check --file-size 1K hip.o /dev/stdin",
        "\"$0\" check --file-size 1K /dev/null",
        "cat hip.o | \"$0\" check --growth 1% --base /dev/stdin hip.o",
        "\"$0\" check --growth 1% --base - hip.o < hip.o",
    ] {
        let mut shell = new_command("sh");
        let shell = shell.args(["-c", line, tool("offload")]).current_dir(place.path());
        let output = shell.output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains(": expected a file or a directory"), "{line}: {said}");
        assert!(stdout(&output).is_empty(), "{line}");
    }
    // A directory is its files.
    let output = check_in(place.path(), &["--file-size", "1K", ".", "--json"]);
    assert_eq!(found(&output), [("size/file".to_owned(), ".".to_owned())]);
}

#[test]
fn a_member_of_a_package_has_a_size_of_its_own() {
    let place = tempfile::tempdir().unwrap();
    let hip = fs::read(data("hip.o")).unwrap();
    let mut random = Random::new(7);
    let noise: Vec<u8> = (0..20_000).flat_map(|_| random.next().to_le_bytes()).collect();
    let files = packages::wheel(&[("a/hip.o", &hip[..]), ("a/noise.txt", &noise)]);
    let wheel = packages::zip(&files, &Around::default());
    assert!(wheel.len() > 64 << 10);
    fs::write(place.path().join("p.whl"), wheel).unwrap();
    let sizes = |limit: &str, file: &str| {
        let output = check_in(place.path(), &["--file-size", limit, file, "--json"]);
        found(&output).iter().filter(|(code, _)| code == "size/file").count()
    };
    assert_eq!(sizes(&hip.len().to_string(), "p.whl:a/hip.o"), 0);
    assert_eq!(sizes(&(hip.len() - 1).to_string(), "p.whl:a/hip.o"), 1);
    assert_eq!(sizes("64K", "p.whl"), 1);
}

#[test]
fn a_policy_is_read_and_kept() {
    let place = tempfile::tempdir().unwrap();
    let check = |policy: &str, args: &[&str]| {
        fs::write(place.path().join("offload.toml"), policy).unwrap();
        let mut offload = new_command(tool("offload"));
        offload.arg("check").args(args).current_dir(place.path()).output().unwrap()
    };
    let copy = |name: &str| fs::copy(data(name), place.path().join(name)).unwrap();
    copy("hip.o");
    copy("kernels.hipfb");
    copy("kernels-old.hipfb");
    for (policy, error) in [
        (
            "[targets]\nrequire = [\"gfx1100\"]\n[budgets]\nfile = 1\n",
            "line 3: unknown field `budgets`",
        ),
        ("[budget]\n\n\nfile = \"1 apple\"\n", "line 4: '1 apple' is not a size"),
        ("[kernels]\n\"time>1\" = {}\n", "line 2: 'time' is not a measure"),
        ("[needs]\nrocm = \"six\"\n", "line 2: 'six': expected a version"),
        ("[targets]\nonly = [\"gfx1100\",\n  \"gfx110O\"]\n", "line 3: "),
        ("[files]\nunknown = \"maybe\"\n", "line 2: "),
        ("[verify]\n", "line 1: 'verify' is empty"),
        ("[verify]\nenabled = true\n[targets]\nonly = []\n", "line 4: 'only' is empty"),
        ("[files]\nunknown = \"allow\"\n", "the policy has no rule"),
        ("[budget]\nfile = -1\n", "line 2: expected a size such as 4096"),
        (&format!("[budget]\nfile = 1\n{}", "#\n".repeat(600_000)), "exceeds 1 MiB"),
    ] {
        let output = check(policy, &["hip.o"]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("offload.toml: {error}")), "{said}");
        assert!(stdout(&output).is_empty());
    }
    // Half a rule of two keys, unless an option is the other half.
    let base = "[budget]\nfile = \"1M\"\nbase = \"hip.o\"\n";
    for (policy, args, half) in [
        (base, &[][..], "base needs growth"),
        ("[budget]\ngrowth = \"5%\"\n", &[], "growth needs base"),
        ("[budget]\nfile = 1\n", &["--growth", "5%"], "growth needs base"),
    ] {
        let output = check(policy, &[args, &["hip.o"]].concat());
        let said = stderr(&output);
        assert!(output.status.code() == Some(2) && said.contains(half), "{policy}: {said}");
    }
    assert!(check(base, &["hip.o", "--growth", "5%"]).status.success());
    let codes = |policy: &str, args: &[&str]| {
        let output = check(policy, &[args, &["--json"]].concat());
        let found: Vec<Value> = rows(&output.stdout);
        let is_error = found.iter().any(|one| one["level"] == "error");
        assert_eq!(output.status.code(), Some(i32::from(is_error)), "{policy}: {found:?}");
        let codes: BTreeSet<String> =
            found.iter().map(|one| one["code"].as_str().unwrap().to_owned()).collect();
        codes.into_iter().collect::<Vec<_>>().join(" ")
    };
    let require = "[targets]\nrequire = [\"gfx1100\"]\n";
    assert_eq!(codes(require, &["hip.o"]), "");
    assert_eq!(codes(require, &["hip.o", "--require", "gfx1201"]), "targets/missing");
    assert_eq!(codes("[targets]\nonly = [\"gfx1100\"]\n", &["hip.o"]), "targets/unwanted");
    assert_eq!(
        codes("[budget]\nfile = \"1K\"\ndevice_code = 100\n", &["hip.o"]),
        "size/budget size/file"
    );
    assert_eq!(codes("[budget]\nfile = \"1M\"\ndevice_code = \"1M\"\n", &["hip.o"]), "");
    let spills = "[kernels]\n\"registers>0\" = { allow = [\"ALLOWED\"] }\n";
    assert_eq!(codes(spills, &["kernels.hipfb"]), "kernel/rule");
    assert_eq!(codes(&spills.replace("ALLOWED", "*"), &["kernels.hipfb"]), "");
    assert_eq!(codes("[kernels]\n\"frame>0\" = {}\n", &["kernels.hipfb"]), "kernel/not-stored");
    let growth = "[budget]\ngrowth = \"0%\"\nbase = \"kernels-old.hipfb\"\n";
    assert_eq!(codes(growth, &["kernels.hipfb"]), "size/growth");
    assert_eq!(codes(&growth.replace("-old", ""), &["kernels-old.hipfb"]), "");
    assert_eq!(codes(&growth.replace("-old", ""), &["kernels.hipfb"]), "");
    fs::write(place.path().join("odd.bin"), [7; 100]).unwrap();
    for (unknown, expected) in
        [("error", "file/unknown"), ("warning", "file/unknown"), ("allow", "")]
    {
        let policy = format!("[budget]\nfile = \"1M\"\n[files]\nunknown = \"{unknown}\"\n");
        assert_eq!(codes(&policy, &["odd.bin"]), expected, "{unknown}");
    }
    assert_eq!(codes("[verify]\nenabled = true\n", &["hip.o"]), "");
    let mut damaged = fs::read(data("hip-ccob-v3.hipfb")).unwrap();
    let last = damaged.len() - 40;
    damaged[last] ^= 1;
    fs::write(place.path().join("damaged.hipfb"), damaged).unwrap();
    assert_eq!(codes("[verify]\nenabled = true\n", &["damaged.hipfb"]), "verify/malformed");
    assert_eq!(codes("[needs]\nrocm = \"5.0\"\n", &["hip-none.o"]), "file/error");
}

#[test]
fn members_that_cannot_be_read_are_not_missing_and_no_fault_is_lost() {
    let place = tempfile::tempdir().unwrap();
    let hip = fs::read(data("hip.o")).unwrap();
    let mut zip = packages::zip(&[packages::Made::new("hip.o", hip)], &Around::default());
    fs::create_dir(place.path().join("d")).unwrap();
    fs::write(place.path().join("d/cut.zip"), &zip[..100]).unwrap();
    zip[300] ^= 1;
    fs::write(place.path().join("d/damaged.zip"), &zip).unwrap();
    fs::write(place.path().join("offload.toml"), "[verify]\nenabled = true\n").unwrap();
    for (file, expected) in [
        ("d/damaged.zip", &["package/damaged"][..]),
        // A file that cannot be read hides no fault of another one.
        ("d", &["file/error", "package/damaged"]),
    ] {
        let output = check_in(place.path(), &["--require", "gfx1100", "--json", file]);
        let found: Vec<Value> = rows(&output.stdout);
        let codes: BTreeSet<_> = found.iter().map(|one| one["code"].as_str().unwrap()).collect();
        assert_eq!(codes.into_iter().collect::<Vec<_>>(), expected, "{found:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_policy_that_cannot_be_read_is_not_absent() {
    let place = tempfile::tempdir().unwrap();
    fs::copy(data("hip.o"), place.path().join("hip.o")).unwrap();
    std::os::unix::fs::symlink("nowhere", place.path().join("offload.toml")).unwrap();
    let output = check_in(place.path(), &["--require", "gfx1100", "hip.o"]);
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    assert!(stderr(&output).contains("offload.toml: "), "{}", stderr(&output));
    fs::remove_file(place.path().join("offload.toml")).unwrap();
    assert!(check_in(place.path(), &["--require", "gfx1100", "hip.o"]).status.success());
    let output = check_in(place.path(), &["--config", "/dev/zero", "hip.o"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn growth_is_against_a_base_that_is_known() {
    let place = tempfile::tempdir().unwrap();
    for name in ["hip.hipfb", "hip-ccob-v3.hipfb", "host.o"] {
        fs::copy(data(name), place.path().join(name)).unwrap();
    }
    fs::write(place.path().join("odd.bin"), [7; 100]).unwrap();
    let check = |base: &str| {
        check_in(place.path(), &["--growth", "5%", "--base", base, "hip.hipfb", "--json"])
    };
    let against = |base: &str| found(&check(base));
    let one = |code: &str, file: &str| [(code.to_owned(), file.to_owned())];
    assert_eq!(against("hip.hipfb"), []);
    assert_eq!(against("none"), one("file/error", "none"));
    assert_eq!(against("host.o"), one("file/nothing", "host.o"));
    assert_eq!(against("odd.bin"), one("file/unknown", "odd.bin"));
    assert_eq!(check("odd.bin").status.code(), Some(1));
    // The sizes of the targets of a compressed bundle are shares of it.
    let grown = check("hip-ccob-v3.hipfb");
    assert_eq!(found(&grown), one("size/growth", ""));
    let message = &rows::<Value>(&grown.stdout)[0]["message"];
    assert!(
        message.as_str().unwrap().starts_with("device code about 767 B -> 3.1 KiB (+"),
        "{message}"
    );
    // A file that was not read may have grown, or not.
    let args = ["--growth", "5%", "--base", "hip-ccob-v3.hipfb", "hip.hipfb", "none", "--json"];
    let unread = check_in(place.path(), &args);
    assert_eq!(found(&unread), one("file/error", "none"));
    assert_eq!(unread.status.code(), Some(1));
}

#[test]
fn needs_are_compared_with_what_is_installed() {
    let place = tempfile::tempdir().unwrap();
    let needs = |policy: &str, name: &str| {
        fs::write(place.path().join("offload.toml"), format!("[needs]\n{policy}\n")).unwrap();
        fs::copy(data(name), place.path().join(name)).unwrap();
        let output = check_in(place.path(), &[name, "--json"]);
        let found: Vec<Value> = rows(&output.stdout);
        assert_eq!(output.status.success(), found.is_empty(), "{found:?}");
        let text = |one: &Value| {
            [&one["code"], &one["message"]].map(|one| one.as_str().unwrap().to_owned()).join(": ")
        };
        found.iter().map(text).collect::<Vec<_>>()
    };
    let zstd =
        "needs/driver: 3 images need driver 550 or later: code in a fatbinary that zstd compressed";
    let ptx = "needs/driver: 1 image needs driver 520 or later: PTX 7.8";
    let (file, bundle) = ("kernels.fatbin", "hip-ccob-v3.hipfb");
    assert_eq!(needs("driver = \"515\"", file), [ptx, zstd].map(|one| format!("{one}; limit 515")));
    assert_eq!(needs("driver = \"520.61.05\"", file), [format!("{zstd}; limit 520.61")]);
    assert!(needs("driver = \"550\"", file).is_empty());
    assert!(needs("rocm = \"6.2\"", file).is_empty());
    let object = "needs/rocm: 2 images need ROCm 6.3 or later: code object version 6; limit 6.2";
    let version = "needs/rocm: 2 images need ROCm 7.0 or later: a compressed bundle of version 3";
    assert_eq!(
        needs("rocm = \"6.2\"", bundle),
        [object.to_owned(), format!("{version}; limit 6.2")]
    );
    assert_eq!(needs("rocm = \"6.3\"", bundle), [format!("{version}; limit 6.3")]);
    assert!(needs("rocm = \"7\"", bundle).is_empty());
}

#[test]
fn a_policy_says_nothing_beside_its_findings() {
    let place = tempfile::tempdir().unwrap();
    fs::copy(data("host.o"), place.path().join("host.o")).unwrap();
    let policy = "[kernels]\n\"vgpr_spills>0\" = {}\n[verify]\nenabled = true\n";
    fs::write(place.path().join("offload.toml"), policy).unwrap();
    let output = check_in(place.path(), &["host.o", "--json"]);
    assert_eq!(found(&output), [("kernel/not-stored".to_owned(), String::new())]);
    assert_eq!(stderr(&output), "");
}

#[cfg(unix)]
#[test]
fn the_action_runs_its_lines() {
    let action = fs::read_to_string(root().join("action.yml")).unwrap();
    let (_, script) = action.split_once("run: |\n").unwrap();
    let place = tempfile::tempdir().unwrap();
    fs::copy(data("hip.o"), place.path().join("hip.o")).unwrap();
    let bin = Path::new(tool("offload")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let run = |arguments: &str| {
        let mut bash = new_command("bash");
        bash.args(["-e", "-o", "pipefail", "-c", script]).current_dir(place.path());
        let variables =
            [("FILES", "*.o"), ("ARGUMENTS", arguments), ("FORMAT", "github"), ("PATH", &path)];
        bash.envs(variables).output().unwrap()
    };
    assert_eq!(run("--require gfx1100").status.code(), Some(0));
    let output = run("--require gfx1201");
    assert_eq!(output.status.code(), Some(1));
    let line = "::error file=hip.o,title=offload targets/missing::hip.o: ";
    assert!(stdout(&output).starts_with(line), "{}", stdout(&output));
    // The hook calls the same command.
    let hooks = fs::read_to_string(root().join(".pre-commit-hooks.yaml")).unwrap();
    assert!(hooks.contains("  entry: offload check\n"), "{hooks}");
}
