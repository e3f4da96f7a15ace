//! SPIR-V for graphics among the constants of a host file.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{data, offload, stderr, stdout};

fn run(args: &[&str], file: &Path) -> (i32, String, String) {
    let output = offload(args.iter().map(OsStr::new).chain([file.as_os_str()]));
    (output.status.code().unwrap(), stdout(&output), stderr(&output))
}

/// A module with one empty function.
fn shader() -> Vec<u8> {
    let instructions: [&[u32]; 7] =
        [&[17, 1], &[14, 0, 1], &[19, 2], &[33, 3, 2], &[54, 2, 5, 0, 3], &[248, 6], &[253]];
    let mut words = vec![0x0723_0203, 0x0001_0300, 13 << 16, 7, 0];
    for instruction in instructions {
        words.push(u32::try_from(instruction.len()).unwrap() << 16 | instruction[0]);
        words.extend(&instruction[1..]);
    }
    words.push(1 << 16 | 56);
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A host file of the examples, with shaders after its sections.
fn with_shaders(place: &tempfile::TempDir, name: &str) -> PathBuf {
    let path = place.path().join(name);
    let bytes = [fs::read(data(name)).unwrap(), shader(), b"text".to_vec(), shader()].concat();
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn shaders_are_listed_and_count_where_nothing_else_does() {
    let place = tempfile::tempdir().unwrap();
    let file = with_shaders(&place, "hip-two-units-ccob.so");
    let (code, out, err) = run(&["ls"], &file);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out.matches("outside-sections:").count(), 2, "{out}");
    let (code, out, err) = run(&["match", "--gpu", "gfx906"], &file);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("both containers have code for gfx906"), "{out}");

    let file = with_shaders(&place, "host.o");
    let (code, out, err) = run(&["match", "--gpu", "gfx906"], &file);
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("is a graphics shader (Vulkan)"), "{out}{err}");
}

/// They are no alternative to images for other devices.
#[test]
fn edits_leave_shaders() {
    let place = tempfile::tempdir().unwrap();
    let file = with_shaders(&place, "hip-two-units-ccob.so");
    let thin = place.path().join("thin");
    let thin_to = thin.to_str().unwrap();
    for rule in [["--keep", "gfx906"], ["--exact", "--keep=gfx906"], ["--drop", "gfx1100"]] {
        let (code, _, err) = run(&[&["thin", "-o", thin_to], &rule[..]].concat(), &file);
        assert_eq!(code, 0, "{rule:?}: {err}");
        let (_, out, _) = run(&["ls"], &thin);
        assert_eq!(out.matches("outside-sections:").count(), 2, "{out}");
        assert!(!out.contains("gfx1100"), "{out}");
    }
}
