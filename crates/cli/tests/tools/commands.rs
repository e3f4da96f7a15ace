//! The commands on files whose rows and bytes are compared. More is in `cases/view`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{Row, all_data, data, extract, ls, offload, stderr, stdout};

fn names_in(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn run_in(directory: &Path, args: &[&OsStr]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_offload")).args(args).current_dir(directory).output().unwrap()
}

/// A bundle as `clang-offload-bundler` lays it out, written by hand so that it can be damaged.
fn bundle(entries: &[(&str, u64, u64)], payload: &[u8]) -> Vec<u8> {
    let mut bytes = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    bytes.extend((entries.len() as u64).to_le_bytes());
    for (id, offset, size) in entries {
        for number in [*offset, *size, id.len() as u64] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(id.as_bytes());
    }
    bytes.extend(payload);
    bytes
}

fn write(place: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = place.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

/// Magics of containers, at the places where the formats allow them.
fn containers_by_magic(bytes: &[u8]) -> usize {
    let magics: [&[u8]; 4] =
        [b"CCOB", b"__CLANG_OFFLOAD_BUNDLE__", b"\x10\xff\x10\xad", b"\x50\xed\x55\xba"];
    magics.iter().map(|magic| bytes.windows(magic.len()).filter(|at| at == magic).count()).sum()
}

#[test]
fn verify_counts_each_container_once() {
    let mut checked = 0;
    for file in all_data() {
        let name = file.file_name().unwrap().to_str().unwrap();
        // Each of their entries, or none, has a marker of its own.
        let forms = ["bundle.", "bundle-", "libbundles.a", "libhip-thin.a", "hip-embedded.bc"];
        if forms.iter().any(|form| name.starts_with(form)) {
            continue;
        }
        let output = offload([OsStr::new("verify"), file.as_os_str()]);
        let json = offload([OsStr::new("ls"), OsStr::new("--json"), file.as_os_str()]);
        let rows: Vec<Row> = serde_json::from_slice(&json.stdout).unwrap();
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        let (images, containers) = (rows.len(), containers_by_magic(&fs::read(&file).unwrap()));
        let expected = match images {
            0 => "no device code".to_owned(),
            _ => format!(
                "{images} image{} in {containers} container{}",
                plural(images),
                plural(containers)
            ),
        };
        assert_eq!(stdout(&output), format!("{}: ok, {expected}\n", file.display()));
        checked += 1;
    }
    assert!(checked > 15, "{checked}");
}

#[test]
fn ls_selects_by_compatibility() {
    let file = data("hip.o");
    let targets = |request: &str| -> Vec<String> {
        let output = offload([
            OsStr::new("ls"),
            OsStr::new("--json"),
            OsStr::new("--target"),
            request.as_ref(),
            file.as_os_str(),
        ]);
        assert!(output.status.success(), "{}", stderr(&output));
        let rows: Vec<Row> = serde_json::from_slice(&output.stdout).unwrap();
        rows.into_iter().filter_map(|row| row.target).collect()
    };
    assert_eq!(targets("gfx90a:sramecc+:xnack-"), ["gfx90a:sramecc+:xnack-"]);
    assert_eq!(targets("gfx90a:xnack+"), Vec::<String>::new());
    // the generic code object covers gfx906, and comes first in the file
    assert_eq!(targets("gfx906:xnack+"), ["gfx9-generic", "gfx906:xnack+"]);
    assert_eq!(targets("hip-amdgcn-amd-amdhsa--gfx1100"), ["gfx1100"]);
    assert_eq!(targets("openmp-amdgcn-amd-amdhsa--gfx1100"), Vec::<String>::new());
}

/// The bytes of a bundle in each of its forms. IDs that are nobody's syntax are rare, not lost.
#[test]
fn free_form_ids_are_listed_chosen_and_warned_about() {
    let place = tempfile::tempdir().unwrap();
    let ids = ["host-x86_64-unknown-linux-gnu-", "my gpu", "../2"];
    let text = |with_start: bool| -> String {
        ids.iter()
            .map(|id| {
                let start = format!("\n# __CLANG_OFFLOAD_BUNDLE____START__ {id}\n");
                let start = if with_start { &start } else { "" };
                format!("{start}{id}\n# __CLANG_OFFLOAD_BUNDLE____END__ {id}\n")
            })
            .collect()
    };
    let header: usize = 32 + ids.iter().map(|id| 24 + id.len()).sum::<usize>();
    let mut at = header as u64;
    let entries = ids.map(|id| {
        let entry = (id, at, id.len() as u64);
        at += id.len() as u64;
        entry
    });
    let host = fs::read(data("host.o")).unwrap();
    let sizes = ids.map(|id| (id, id.len() as u64));
    let contents = ids.map(str::as_bytes);
    let object = fat_edit::object_bundle(&host, &sizes).unwrap().to_vec(&contents).unwrap();
    for (name, bytes, warnings) in [
        ("binary.bc", bundle(&entries, ids.concat().as_bytes()), 2),
        ("today.s", text(true).into_bytes(), 2),
        // There any text is an ID.
        ("proposal.s", text(false).into_bytes(), 0),
        ("object.o", object, 2),
    ] {
        let file = write(&place, name, &bytes);
        let run = |args: &[&str]| offload(args.iter().map(OsStr::new).chain([file.as_os_str()]));
        let listed = run(&["ls", "--json"]);
        assert!(listed.status.success(), "{name}: {}", stderr(&listed));
        assert_eq!(stderr(&listed).matches("offload: warning: ").count(), warnings, "{name}");
        let rows: Vec<Row> = serde_json::from_slice(&listed.stdout).unwrap();
        let listed: Vec<_> = rows.iter().map(|row| row.id.as_deref().unwrap()).collect();
        assert_eq!(listed, ids, "{name}");
        assert_eq!(rows[1].target.as_deref(), Some("my gpu"), "{name}");
        for id in ids {
            let extracted = run(&["extract", "--stdout", "--id", id]);
            assert!(extracted.status.success(), "{name}: {}", stderr(&extracted));
            assert_eq!(stdout(&extracted).trim_end(), id, "{name}");
        }
        let none = run(&["ls", "--id", "my"]);
        assert!(stderr(&none).contains("none of its 3 images has the given ID"), "{name}");
        // Nothing written outside of the directory, whatever the ID.
        let out = tempfile::tempdir_in(place.path()).unwrap();
        let output = out.path().join("images");
        let extracted = run(&["extract", "--id", "../2", "-o", output.to_str().unwrap()]);
        assert!(extracted.status.success(), "{name}: {}", stderr(&extracted));
        assert_eq!((names_in(out.path()).len(), names_in(&output).len()), (1, 1), "{name}");
        let verified = run(&["verify"]);
        assert_eq!(verified.status.code(), Some(i32::from(warnings > 0)), "{name}");
        assert_eq!(stdout(&verified).matches("bundle entry ID").count(), warnings, "{name}");
    }
}

#[test]
fn a_reader_that_leaves_early_gets_no_complaint() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_offload"))
        .arg("ls")
        .args(std::iter::repeat_n(data("hip.o"), 200))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(141));
    assert_eq!(stderr(&output), "");
}

#[test]
fn extract_writes_what_it_says() {
    let place = tempfile::tempdir().unwrap();
    let file = data("hip.o");
    let directory = place.path().join("out");
    let output =
        offload([OsStr::new("extract"), file.as_os_str(), OsStr::new("-o"), directory.as_os_str()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let expected = [
        "hip.1.hipv4-amdgcn-amd-amdhsa-gfx1100.hsaco",
        "hip.2.hipv4-amdgcn-amd-amdhsa-gfx9-generic.hsaco",
        "hip.3.hipv4-amdgcn-amd-amdhsa-gfx906_xnack+.hsaco",
        "hip.4.hipv4-amdgcn-amd-amdhsa-gfx90a_sramecc+_xnack-.hsaco",
    ];
    assert_eq!(names_in(&directory), expected);
    for (line, (name, row)) in stdout(&output).lines().zip(expected.iter().zip(&ls(&file)[1..])) {
        let path = directory.join(name);
        assert!(line.starts_with(path.to_str().unwrap()), "{line}");
        assert!(line.ends_with(row.id.as_deref().unwrap()), "{line}");
        let bytes = fs::read(&path).unwrap();
        let whole = fs::read(&file).unwrap();
        let start = usize::try_from(row.offset.unwrap()).unwrap();
        assert!(bytes == whole[start..start + bytes.len()]);
        assert_eq!(bytes.len() as u64, row.size);
    }
}

#[cfg(unix)]
#[test]
fn extracted_files_have_the_usual_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().unwrap();
    let plain = write(&place, "plain", b"");
    let usual = fs::metadata(plain).unwrap().permissions().mode();
    let file = data("hip.hipfb");
    let out = place.path().join("out");
    assert!(
        offload([OsStr::new("extract"), file.as_os_str(), OsStr::new("-o"), out.as_os_str()])
            .status
            .success()
    );
    let name = &names_in(&out)[0];
    assert_eq!(fs::metadata(out.join(name)).unwrap().permissions().mode(), usual);
}

#[test]
fn extract_chooses_by_target_and_index() {
    let place = tempfile::tempdir().unwrap();
    let file = data("hip-two-units-ccob.so");
    let output = run_in(
        place.path(),
        &["extract".as_ref(), file.as_os_str(), "--target".as_ref(), "gfx1100".as_ref()],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(
        names_in(place.path()),
        [
            "hip-two-units-ccob.1.hipv4-amdgcn-amd-amdhsa-gfx1100.hsaco",
            "hip-two-units-ccob.4.hipv4-amdgcn-amd-amdhsa-gfx1100.hsaco"
        ]
    );
    // The one that --index names, to standard output.
    assert_eq!(extract(&file, 4), fs::read(place.path().join(&names_in(place.path())[1])).unwrap());
    let two = offload([OsStr::new("extract"), file.as_os_str(), OsStr::new("--stdout")]);
    assert_eq!(two.status.code(), Some(1));
    assert!(two.stdout.is_empty());
    assert!(stderr(&two).contains("--stdout: expected one image, found 4"), "{}", stderr(&two));
    // Nothing that matches: say what there is, write nothing.
    let other = tempfile::tempdir().unwrap();
    let none = run_in(
        other.path(),
        &["extract".as_ref(), file.as_os_str(), "--target".as_ref(), "gfx942".as_ref()],
    );
    assert_eq!(none.status.code(), Some(1));
    assert!(
        stderr(&none)
            .contains("no image matches; it has #0 host-x86_64-unknown-linux-gnu-, #1 hipv4-"),
        "{}",
        stderr(&none)
    );
    assert_eq!(names_in(other.path()), Vec::<String>::new());
}

#[test]
fn extract_of_a_damaged_file_writes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let mut bytes = fs::read(data("hip-two-units-ccob.so")).unwrap();
    // The last byte of the second compressed bundle's stored hash: the first bundle is fine.
    let second = bytes
        .windows(4)
        .enumerate()
        .filter(|(_, w)| w == b"CCOB")
        .map(|(at, _)| at)
        .nth(1)
        .unwrap();
    bytes[second + 31] ^= 1;
    let file = write(&place, "damaged.so", &bytes);
    let out = place.path().join("out");
    let output =
        offload([OsStr::new("extract"), file.as_os_str(), OsStr::new("-o"), out.as_os_str()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("section:.hip_fatbin at byte 0x"), "{}", stderr(&output));
    assert!(stderr(&output).contains("hash"), "{}", stderr(&output));
    assert!(!out.exists());
    // ls shows the other bundle all the same, if it reads more than tables.
    let output = offload([
        OsStr::new("ls"),
        OsStr::new("--json"),
        OsStr::new("--formats"),
        file.as_os_str(),
    ]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(serde_json::from_slice::<Vec<Row>>(&output.stdout).unwrap().len(), 3);
}

/// Without `--formats` the tables of compressed bundles are enough; what needs more says what is wrong.
#[test]
fn ls_and_match_read_as_much_as_they_show() {
    let place = tempfile::tempdir().unwrap();
    let good = data("hip-two-units-ccob.so");
    let mut bytes = fs::read(&good).unwrap();
    let ccob = bytes.windows(4).position(|bytes| bytes == b"CCOB").unwrap();
    bytes[ccob + 24] ^= 1; // the hash
    let file = write(&place, "hip-two-units-ccob.so", &bytes);
    let rows = |file: &Path, more: &[&str]| {
        let mut args = vec![OsStr::new("ls"), OsStr::new("--json"), file.as_os_str()];
        args.extend(more.iter().map(OsStr::new));
        let output = offload(args);
        let rows: Vec<Row> = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code().unwrap(), rows)
    };
    let (status, by_table) = rows(&file, &[]);
    assert_eq!((status, by_table.len()), (0, 6));
    let (status, whole) = rows(&good, &["--formats"]);
    assert_eq!(status, 0);
    for (image, read) in by_table.iter().zip(&whole) {
        let is_empty = read.image_format.as_deref() == Some("empty");
        assert_eq!(image.image_format.is_some(), is_empty);
        let image_format = image.image_format.clone();
        let file = image.file.clone();
        assert_eq!(image, &Row { file, image_format, ..read.clone() });
    }
    let (status, whole) = rows(&file, &["--formats"]);
    assert_eq!((status, whole.len()), (1, 3));
    for (args, expected) in [
        (&["ls"][..], 0),
        (&["ls", "--tree"], 0),
        (&["ls", "--formats"], 1),
        (&["match", "--gpu", "gfx906"], 0),
        (&["verify"], 1),
        (&["extract", "--index", "4", "--stdout"], 1),
    ] {
        let output = offload(args.iter().map(OsStr::new).chain([file.as_os_str()]));
        assert_eq!(output.status.code(), Some(expected), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn names_from_the_file_cannot_lead_elsewhere() {
    let place = tempfile::tempdir().unwrap();
    let inside = place.path().join("inside");
    fs::create_dir(&inside).unwrap();
    let id = "hip-amdgcn-amd-amdhsa--../../escape\n\x1b[31m";
    let start = 24 + 8 + 24 + id.len() as u64;
    let file = write(&place, "evil", &bundle(&[(id, start, 4)], b"data"));
    let output = run_in(&inside, &["extract".as_ref(), file.as_os_str()]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(names_in(&inside), ["evil.0.hip-amdgcn-amd-amdhsa-.._.._escape___31m.bin"]);
    assert_eq!(names_in(place.path()), ["evil", "inside"]);
    // Control characters of the file reach no terminal.
    for command in ["ls", "extract", "verify"] {
        let output = run_in(&inside, &[command.as_ref(), file.as_os_str()]);
        assert!(
            !stdout(&output).contains('\x1b') && !stderr(&output).contains('\x1b'),
            "{command}"
        );
    }
}

#[test]
fn verify_passes_every_example() {
    let output = offload(
        [OsStr::new("verify").to_owned()].into_iter().chain(all_data().into_iter().map(Into::into)),
    );
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    assert_eq!(stdout(&output).lines().count(), all_data().len());
    assert!(stdout(&output).lines().all(|line| line.contains(": ok, ")));
}

#[test]
fn verify_prints_one_line_per_finding() {
    let place = tempfile::tempdir().unwrap();
    // xnack in one entry only, and one ID twice: two findings in a well-formed bundle.
    let ids = [
        "hip-amdgcn-amd-amdhsa--gfx90a",
        "hip-amdgcn-amd-amdhsa--gfx90a:xnack+",
        "hip-amdgcn-amd-amdhsa--gfx1100",
        "hip-amdgcn-amd-amdhsa--gfx1100",
    ];
    let entries: Vec<_> = ids.iter().map(|id| (*id, 0, 0)).collect();
    let file = write(&place, "conflict", &bundle(&entries, b""));
    let output = offload([OsStr::new("verify"), file.as_os_str()]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output).lines().count(), 2, "{}", stdout(&output));
    assert!(stdout(&output).contains("xnack"), "{}", stdout(&output));
    // ls shows all four and only warns.
    let output = offload([OsStr::new("ls"), OsStr::new("--json"), file.as_os_str()]);
    assert!(output.status.success());
    assert_eq!(serde_json::from_slice::<Vec<Row>>(&output.stdout).unwrap().len(), 4);
}

#[test]
fn absurd_claims_are_refused_at_once() {
    let place = tempfile::tempdir().unwrap();
    let petabytes =
        [&b"CCOB\x03\0\x01\0"[..], &64u64.to_le_bytes(), &(1u64 << 52).to_le_bytes(), &[0; 40]]
            .concat();
    let entries = [&b"__CLANG_OFFLOAD_BUNDLE__"[..], &u64::MAX.to_le_bytes(), &[0; 64]].concat();
    let beyond = bundle(&[("hip-amdgcn-amd-amdhsa--gfx90a", 1 << 60, 1 << 62)], b"");
    for (name, bytes, words) in [
        ("petabytes", petabytes, "limit"),
        ("entries", entries, "18446744073709551615"),
        ("beyond", beyond, "entry 0"),
    ] {
        let file = write(&place, name, &bytes);
        for command in ["ls", "verify"] {
            let output = offload([OsStr::new(command), file.as_os_str()]);
            assert_eq!(output.status.code(), Some(1), "{name}");
            let said = stdout(&output) + &stderr(&output);
            assert!(said.contains("at byte 0x0") && said.contains(words), "{name}: {said}");
        }
    }
    // A limit that the user sets.
    let file = data("hip-ccob-v3.hipfb");
    let output = offload([OsStr::new("ls"), OsStr::new("--max-decompressed=1K"), file.as_os_str()]);
    assert_eq!(output.status.code(), Some(1));
}

/// Every example file cut at many places: an error or fewer images, never a crash.
#[test]
fn truncated_examples() {
    let place = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for file in all_data() {
        let bytes = fs::read(&file).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        for nth in 0..12 {
            let cut = bytes.len() * nth / 12 + nth % 3;
            files.push(write(&place, &format!("{nth}-{name}"), &bytes[..cut.min(bytes.len())]));
        }
    }
    for command in ["ls", "verify"] {
        let output = offload(
            [OsStr::new(command).to_owned()].into_iter().chain(files.iter().map(Into::into)),
        );
        assert_eq!(output.status.code(), Some(1), "{command}");
        assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
    }
}

/// One of the two was changed after the archive was made.
#[test]
fn verify_compares_the_sizes_of_a_thin_archives_members() {
    let place = tempfile::tempdir().unwrap();
    let object = fs::read(data("hip.o")).unwrap();
    fs::write(place.path().join("hip.o"), &object).unwrap();
    for (size, code) in [(object.len(), 0), (100, 1)] {
        let archive = format!("!<thin>\n{:48}{:<10}`\nhip.o/\n\n{:48}{size:<10}`\n", "//", 8, "/0");
        let archive = write(&place, "thin.a", archive.as_bytes());
        let output = offload([OsStr::new("verify"), archive.as_os_str()]);
        assert_eq!(output.status.code(), Some(code), "{}", stdout(&output));
        let words = format!("expected 100 bytes, found {}", object.len());
        assert_eq!(stdout(&output).contains(&words), code == 1, "{}", stdout(&output));
    }
}
