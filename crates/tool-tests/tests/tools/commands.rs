//! The commands on all example files, with a closed pipe, and the modes of extracted files. More is in `cases/view` and `cases/extract`.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use crate::common::{Row, all_data, data, new_command, offload, stderr, stdout, tool};

fn write(place: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = place.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

/// Counts the magics of containers.
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
        // Each of their entries has a marker, or none has.
        let forms = ["bundle.", "bundle-", "libbundles.a", "libhip-thin.a", "hip-embedded.bc"];
        if forms.iter().any(|form| name.starts_with(form)) {
            continue;
        }
        let output = offload([OsStr::new("verify"), file.as_os_str()]);
        let json = offload([OsStr::new("ls"), OsStr::new("--json"), file.as_os_str()]);
        let rows: Vec<Row> = crate::common::rows(&json.stdout);
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
fn a_closed_pipe_ends_ls_without_a_message() {
    let mut child = new_command(tool("offload"))
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

#[cfg(unix)]
#[test]
fn extracted_files_have_the_usual_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().unwrap();
    let plain = write(&place, "plain", b"");
    let usual = fs::metadata(plain).unwrap().permissions().mode();
    let file = data("hip.hipfb");
    let out = place.path().join("out");
    let done = offload(["extract".as_ref(), file.as_os_str(), "-o".as_ref(), out.as_os_str()]);
    assert!(done.status.success(), "{}", stderr(&done));
    assert!(fs::read_dir(&out).unwrap().next().is_some());
    for entry in fs::read_dir(&out).unwrap() {
        assert_eq!(entry.unwrap().metadata().unwrap().permissions().mode(), usual);
    }
}

#[test]
fn verify_passes_every_example() {
    let output = offload(
        [OsStr::new("verify").to_owned()].into_iter().chain(all_data().into_iter().map(Into::into)),
    );
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    let said = stdout(&output);
    let (lines, files) = (said.lines(), all_data().len());
    assert_eq!(lines.clone().last(), Some(&*format!("{files} files: ok")));
    assert_eq!(lines.filter(|line| line.contains(": ok, ")).count(), files);
}

/// Cuts every example file at many places: an error or fewer images, never a crash.
#[test]
fn truncated_examples_do_not_crash() {
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
