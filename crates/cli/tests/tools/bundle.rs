//! `offload bundle` and `offload unbundle` as users run them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::{data, extract, ls, offload, stderr, stdout};
use serde_json::Value;

const HOST: &str = "host-x86_64-unknown-linux-gnu";
const GFX90A: &str = "hipv4-amdgcn-amd-amdhsa--gfx90a";
const GFX1100: &str = "hipv4-amdgcn-amd-amdhsa--gfx1100";

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Place(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn names(&self) -> usize {
        fs::read_dir(self.0.path()).unwrap().count()
    }
}

fn entry(id: &str, path: &Path) -> String {
    format!("{id}={}", path.display())
}

fn run(args: &[&str]) -> Output {
    offload(args)
}

fn ok(args: &[&str]) -> String {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    stdout(&output)
}

fn fails(args: &[&str], words: &str) {
    let output = run(args);
    assert_eq!(output.status.code(), Some(1), "{args:?}");
    assert!(stderr(&output).contains(words), "{}", stderr(&output));
    assert!(output.stdout.is_empty());
}

#[test]
fn hip_code_there_and_back() {
    let place = Place::new();
    let (a, b) = (place.file("a.hsaco", b"code a"), place.file("b.hsaco", b"the code b"));
    let entries = [entry(HOST, Path::new("/dev/null")), entry(GFX90A, &a), entry(GFX1100, &b)];
    let out = place.path("out");
    for options in [&[][..], &["--compress"], &["--compress", "--level=19", "--method=zlib", "-j2"]]
    {
        let to = format!("-o{}", out.display());
        let mut args = vec!["bundle", &to];
        args.extend(options);
        args.extend(entries.iter().map(String::as_str));
        let printed = ok(&args);
        let form = if options.is_empty() { "binary bundle" } else { "compressed bundle" };
        assert!(printed.contains(&format!("3 entries, {form}")), "{printed}");
        // HIP's code objects start at pages
        let rows = ls(&out);
        let offsets: Vec<_> = rows.iter().map(|row| (row.offset_in_container, row.size)).collect();
        assert_eq!(offsets, [(4096, 0), (4096, 6), (8192, 10)]);
        let (c, d) = (place.path("c"), place.path("d"));
        let printed = ok(&[
            "unbundle",
            &out.display().to_string(),
            &entry(GFX1100, &c),
            &entry("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+", &d),
        ]);
        assert!(printed.contains(GFX90A) && printed.contains("10 B"), "{printed}");
        assert_eq!(fs::read(c).unwrap(), b"the code b");
        assert_eq!(fs::read(d).unwrap(), b"code a");
    }
}

#[test]
fn json_says_what_was_written() {
    let place = Place::new();
    let a = place.file("a", b"code a");
    let out = place.path("out");
    let (out, id) = (out.display().to_string(), "openmp-amdgcn-amd-amdhsa--gfx906");
    let (host, device) = (entry(HOST, &a), entry(id, &a));
    let printed = ok(&["bundle", "--json", "--align=64", "-o", &out, &host, &device]);
    let report: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(report["form"], "binary");
    assert_eq!(report["compressed"], false);
    assert_eq!(report["size"], fs::metadata(&out).unwrap().len());
    assert_eq!(report["entries"][0]["id"], format!("{HOST}-"));
    assert_eq!(report["entries"][1]["offset"], ls(Path::new(&out))[1].offset_in_container);
    assert_eq!(report["entries"][1]["offset"].as_u64().unwrap() % 64, 0);
    assert_eq!(report["entries"][1]["size"], 6);

    let back = place.path("back");
    let printed = ok(&["unbundle", "--json", &out, &entry(id, &back)]);
    let report: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(report[0]["found"], id);
    assert_eq!(report[0]["size"], 6);
}

#[test]
fn names_tell_the_type() {
    let place = Place::new();
    let (host, device) = (place.file("h.s", b"host\n"), place.file("d.s", b"device\n"));
    let out = place.path("out.s");
    let to = out.display().to_string();
    let id = "openmp-amdgcn-amd-amdhsa--gfx906";
    let printed = ok(&["bundle", "-o", &to, &entry(HOST, &host), &entry(id, &device)]);
    assert!(printed.contains("text bundle"), "{printed}");
    assert!(fs::read(&out).unwrap().starts_with(b"\n# __CLANG_OFFLOAD_BUNDLE____START__ host"));
    let back = place.path("back");
    ok(&["unbundle", &to, &entry(id, &back)]);
    assert_eq!(fs::read(&back).unwrap(), b"device\n");

    let printed = ok(&["bundle", "--type=bc", "-o", &to, &entry(HOST, &host), &entry(id, &device)]);
    assert!(printed.contains("binary bundle"), "{printed}");

    let bitcode = place.file("d.bc", b"BC");
    let args = ["bundle", "-o", &to, &entry(HOST, &host), &entry(id, &bitcode)];
    fails(&args, "are of different types: choose one with --type");
}

#[test]
fn objects_get_sections_and_come_back() {
    let place = Place::new();
    let host = data("host.o");
    let device = place.file("d.o", b"device");
    let (out, back, code) = (place.path("out.o"), place.path("back.o"), place.path("code"));
    let to = out.display().to_string();
    let id = "openmp-amdgcn-amd-amdhsa--gfx906";
    let printed = ok(&["bundle", "-o", &to, &entry(HOST, &host), &entry(id, &device)]);
    assert!(printed.contains("sections of the host object"), "{printed}");
    ok(&["unbundle", &to, &entry(HOST, &back), &entry(id, &code)]);
    assert!(fs::read(&back).unwrap() == fs::read(&host).unwrap());
    assert_eq!(fs::read(&code).unwrap(), b"device");
}

#[test]
fn unbundle_opens_what_ls_opens() {
    let place = Place::new();
    let out = place.path("out");
    for name in ["hip.o", "hip.dll", "libhip.a", "hip-ccob-v3.hipfb"] {
        let file = data(name);
        let rows = ls(&file);
        let row = rows.iter().find(|row| row.target.as_deref() == Some("gfx1100")).unwrap();
        ok(&["unbundle", &file.display().to_string(), &entry(GFX1100, &out)]);
        assert!(fs::read(&out).unwrap() == extract(&file, row.index), "{name}");
    }
}

#[test]
fn equals_are_told() {
    let place = Place::new();
    let one = fs::read(data("hip.hipfb")).unwrap();
    let file = place.file("two", &[one.clone(), one].concat());
    let out = place.path("out");
    let output = run(&["unbundle", &file.display().to_string(), &entry(GFX1100, &out)]);
    assert!(output.status.success());
    assert!(stderr(&output).contains("2 images serve"), "{}", stderr(&output));
}

#[test]
fn missing_images_are_errors_unless_allowed() {
    let place = Place::new();
    let file = data("hip.hipfb").display().to_string();
    let (a, b) = (place.path("a"), place.path("b"));
    let missing = "hipv4-amdgcn-amd-amdhsa--gfx803";
    let args = ["unbundle", &file, &entry(GFX1100, &a), &entry(missing, &b)];
    fails(&args, "no image for hipv4-amdgcn-amd-amdhsa--gfx803");
    assert_eq!(place.names(), 0);
    let output =
        run(&["unbundle", "--allow-missing", &file, &entry(GFX1100, &a), &entry(missing, &b)]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("an empty file is written"), "{}", stderr(&output));
    assert_eq!(fs::read(&b).unwrap(), b"");
    assert!(!fs::read(&a).unwrap().is_empty());
}

#[test]
fn faults_are_named_and_nothing_is_written() {
    let place = Place::new();
    let a = place.file("a.o", b"code");
    let out = place.path("out").display().to_string();
    let device = entry(GFX90A, &a);
    fails(&["bundle", "-o", &out, &device, &device], "Duplicate targets are not allowed");
    fails(&["bundle", "-o", &out, "gfx90a"], "'gfx90a': expected ID=FILE");
    fails(
        &["bundle", "-o", &out, &entry("hipv9-amdgcn-amd-amdhsa--gfx90a", &a)],
        "unknown offloading kind",
    );
    fails(
        &["bundle", "-o", &out, &entry(GFX90A, &place.path("no"))],
        "no': No such file or directory",
    );
    fails(&["unbundle", &place.path("no").display().to_string(), &device], "No such file");
    fails(
        &["unbundle", &a.display().to_string(), &entry(GFX90A, &place.path("b"))],
        "no device images",
    );
    let mut damaged = fs::read(data("hip-ccob-v3.hipfb")).unwrap();
    damaged[24] ^= 1;
    let damaged = place.file("damaged", &damaged).display().to_string();
    fails(
        &["unbundle", "--allow-missing", &damaged, &entry(GFX1100, &place.path("b"))],
        "hash mismatch",
    );
    assert_eq!(place.names(), 2);
    for args in [
        &["bundle", &device][..],
        &["bundle", "-o", &out, "--level=3", &device],
        &["bundle", "-o", "-", "--json", &device],
        &["bundle", "-o", &out, "--align=0", &device],
        &["bundle", "-o", &out, "--type=a", &device],
        &["unbundle", &out],
        &["unbundle", &out, &device, &device],
    ] {
        assert_eq!(run(args).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn one_file_is_no_output_of_two_ids_however_it_is_spelled() {
    let place = Place::new();
    let input = data("hip.hipfb");
    let (plain, dotted) = (place.path("a"), place.path(".").join("a"));
    let twin = place.path("../").join(place.0.path().file_name().unwrap()).join("a");
    for second in [&plain, &dotted, &twin] {
        let input = input.display().to_string();
        let output = run(&["unbundle", &input, &entry(GFX1100, &plain), &entry(HOST, second)]);
        assert_eq!(output.status.code(), Some(2), "{}", second.display());
        assert!(stderr(&output).contains("is the output of two IDs"), "{}", stderr(&output));
        assert_eq!(place.names(), 0);
    }
}
