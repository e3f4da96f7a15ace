//! `clang-offload-bundler -type=a -unbundle` as compilers run it. Comparisons with LLVM's are in `llvm_hda.rs`.

use std::fs;
use std::process::{Command, Output, Stdio};

use crate::common::{data, stderr};
use hda_archive::{Member, create, write_archive};
use tempfile::{TempDir, tempdir};

const TOOL: &str = env!("CARGO_BIN_EXE_clang-offload-bundler");

const GFX906: &str = "hip-amdgcn-amd-amdhsa--gfx906";
const GFX908: &str = "hip-amdgcn-amd-amdhsa--gfx908:xnack+";
const GFX1100: &str = "hip-amdgcn-amd-amdhsa--gfx1100";

fn bundle(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let sizes: Vec<_> =
        entries.iter().map(|(id, data)| ((*id).to_owned(), data.len() as u64)).collect();
    let contents: Vec<_> = entries.iter().map(|(_, data)| *data).collect();
    bundle_format::Layout::new(sizes, 1).unwrap().to_vec(&contents).unwrap()
}

/// A place with `library.a`: a plain and a compressed bundle.
fn place() -> TempDir {
    let place = tempdir().unwrap();
    let object = fs::read(data("host.o")).unwrap();
    let plain = bundle(&[(GFX906, b"text"), (GFX908, &object)]);
    let packed = ccob::compress(&bundle(&[(GFX906, &object)]), &ccob::WriteOptions::default());
    let mut library = Vec::new();
    let members = [Member::new("plain.o", plain), Member::new("packed.o", packed.unwrap())];
    create(&mut library, members).unwrap();
    fs::write(place.path().join("library.a"), library).unwrap();
    place
}

fn run(place: &TempDir, input: &str, targets: &[(&str, &str)], flags: &[&str]) -> Output {
    let ids: Vec<_> = targets.iter().map(|(id, _)| *id).collect();
    Command::new(TOOL)
        .args(["-type=a", "-unbundle", &format!("-input={input}")])
        .arg(format!("-targets={}", ids.join(",")))
        .args(targets.iter().map(|(_, output)| format!("-output={output}")))
        .args(flags)
        .current_dir(place)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// The complaints of a run that must fail, and leave things as they are.
fn complaints(
    place: &TempDir,
    input: &str,
    targets: &[(&str, &str)],
    flags: &[&str],
) -> Vec<String> {
    let before = files(place);
    let output = run(place, input, targets, flags);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_eq!(files(place), before);
    let prefix = format!("{TOOL}: error: ");
    stderr(&output).lines().map(|line| line.strip_prefix(&prefix).unwrap().to_owned()).collect()
}

fn files(place: &TempDir) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(place)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

fn read(place: &TempDir, name: &str) -> Vec<u8> {
    fs::read(place.path().join(name)).unwrap()
}

fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = Vec::new();
    let members = members.iter().map(|(name, data)| Member::new(*name, *data));
    write_archive(&mut archive, members).unwrap();
    archive
}

#[test]
fn every_target_gets_an_archive() {
    let place = place();
    let output = run(&place, "library.a", &[(GFX906, "a.a"), (GFX908, "b.a")], &[]);
    assert_eq!((output.status.code(), &*stderr(&output)), (Some(0), ""));
    let object = fs::read(data("host.o")).unwrap();
    let plain = "plain-hip-amdgcn-amd-amdhsa--gfx906plain.bc";
    let packed = "packed-hip-amdgcn-amd-amdhsa--gfx906packed.bc";
    assert_eq!(read(&place, "a.a"), archive(&[(plain, b"text"), (packed, &object)]));
    let plain = "plain-hip-amdgcn-amd-amdhsa--gfx908_xnack+plain.bc";
    assert_eq!(read(&place, "b.a"), archive(&[(plain, &object)]));
}

#[test]
fn standard_output_is_a_file_too() {
    let place = place();
    let output = run(&place, "library.a", &[(GFX908, "-")], &[]);
    assert_eq!(output.status.code(), Some(0));
    run(&place, "library.a", &[(GFX908, "b.a")], &[]);
    assert_eq!(output.stdout, read(&place, "b.a"));
    assert_eq!(files(&place).len(), 2);
}

#[test]
fn an_archive_can_be_replaced_by_its_own_part() {
    let place = place();
    run(&place, "library.a", &[(GFX908, "b.a")], &[]);
    let output = run(&place, "library.a", &[(GFX908, "library.a")], &[]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(read(&place, "library.a"), read(&place, "b.a"));
}

#[test]
fn targets_without_code_are_named() {
    let place = place();
    fs::write(place.path().join("b.a"), "old").unwrap();
    let targets = [(GFX906, "a.a"), (GFX1100, "b.a")];
    let message = format!(
        "no compatible code object found for the target '{GFX1100}' in heterogeneous archive library: library.a"
    );
    assert_eq!(complaints(&place, "library.a", &targets, &[]), [message]);
    let output = run(&place, "library.a", &targets, &["-allow-missing-bundles"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(read(&place, "b.a"), b"!<arch>\n");
    assert!(read(&place, "a.a").len() > 100);
}

#[test]
fn what_is_no_archive_or_damaged_is_told() {
    let place = place();
    let targets = [(GFX906, "a.a")];
    let put = |name: &str, bytes: &[u8]| fs::write(place.path().join(name), bytes).unwrap();
    let told = |name: &str| complaints(&place, name, &targets, &[]).concat();
    put("short", b"!<arch>");
    assert_eq!(told("short"), "file too small to be an archive: 'short'");
    put("text", b"not an archive at all");
    let message = told("text");
    let expected =
        "file too small to be an archive: 'text': not an ar archive (first bytes [6e, 6f,";
    assert!(message.starts_with(expected), "{message}");
    assert_eq!(told("nowhere"), "'nowhere': No such file or directory");
    let library = read(&place, "library.a");
    put("cut.a", &library[..library.len() - 10]);
    let message = told("cut.a");
    assert!(message.starts_with("'cut.a': at byte 0x0: archive is cut short"), "{message}");
    let mut damaged = library.clone();
    let last = damaged.len() - 2;
    damaged[last] ^= 0x10;
    put("damaged.a", &damaged);
    let message = told("damaged.a");
    assert!(message.starts_with("'damaged.a': member:packed.o at byte 0x"), "{message}");
}

#[test]
fn the_input_is_checked_on_demand() {
    let place = place();
    let on = format!("{GFX906}:xnack+");
    let bad = bundle(&[(GFX906, b"1"), (&on, b"2")]);
    let packed = ccob::compress(&bad, &ccob::WriteOptions::default()).unwrap();
    for member in [bad, packed] {
        let library = archive(&[("bad.o", &member)]);
        fs::write(place.path().join("bad.a"), library).unwrap();
        let message = format!("conflicting TargetIDs [{GFX906}, {on}] found in bad.o of bad.a");
        let flags = ["-check-input-archive"];
        assert_eq!(complaints(&place, "bad.a", &[(GFX906, "a.a")], &flags), [message]);
    }
    let output = run(&place, "library.a", &[(GFX906, "a.a")], &["-check-input-archive"]);
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn every_comparison_can_be_seen() {
    let place = place();
    let flags = ["-debug-only=CodeObjectCompatibility"];
    let output = run(&place, "library.a", &[(GFX906, "a.a")], &flags);
    let yes = format!("Compatible: Exact match: \t[CodeObject: {GFX906}]\t:\t[Target: {GFX906}]\n");
    let no = format!(
        "Incompatible: Processor mismatch \t[CodeObject: {GFX908}]\t:\t[Target: {GFX906}]\n"
    );
    assert_eq!(stderr(&output), [&*yes, &*no, &*yes].concat());
}

#[test]
fn thin_archives_name_files_beside_them() {
    let place = place();
    let libs = place.path().join("libs");
    fs::create_dir(&libs).unwrap();
    let member = bundle(&[(GFX906, b"code")]);
    let thin =
        format!("!<thin>\n{:48}{:<10}`\nobject.o/\n{:48}{:<10}`\n", "//", 10, "/0", member.len());
    fs::write(libs.join("thin.a"), thin).unwrap();
    let message = complaints(&place, "libs/thin.a", &[(GFX906, "a.a")], &[]).concat();
    assert!(message.contains("object.o") && message.contains("No such file"), "{message}");
    fs::write(libs.join("object.o"), &member).unwrap();
    let output = run(&place, "libs/thin.a", &[(GFX906, "a.a")], &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let name = "object-hip-amdgcn-amd-amdhsa--gfx906object.bc";
    assert_eq!(read(&place, "a.a"), archive(&[(name, b"code")]));
}

#[test]
fn what_is_odd_is_a_warning() {
    let place = place();
    let library =
        archive(&[("a.o", &bundle(&[(GFX906, b"BC\xc0\xde of tomorrow"), ("odd", b"?")]))]);
    fs::write(place.path().join("odd.a"), library).unwrap();
    let output = run(&place, "odd.a", &[(GFX906, "a.a")], &[]);
    assert_eq!(output.status.code(), Some(0));
    let text = stderr(&output);
    let warnings: Vec<_> = text.lines().collect();
    assert_eq!(warnings.len(), 2, "{text}");
    assert!(warnings[0].contains("is not in the index of symbols"), "{text}");
    assert!(warnings[1].contains("warning: 'odd.a': archive member \"a.o\": "), "{text}");
}

#[test]
fn a_dry_run_writes_nothing() {
    let place = place();
    let before = files(&place);
    let output = run(&place, "library.a", &[(GFX906, "a.a")], &["-###"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(files(&place), before);
}
