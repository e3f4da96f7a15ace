//! `offload` on offload binaries in `.hip_fatbin`.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Output;

use crate::common::{offload, stderr, stdout};
use offload_binary::{FormatVersion, ImageEntry, ImageKind, OffloadKind};
use samples::device::amd_of;
use samples::linked::{Linked, Style};
use samples::{linked, linked_pe};

/// A translation unit with code for these processors.
fn unit(version: FormatVersion, archs: &[&str]) -> Vec<u8> {
    let known = |arch: &&str| match *arch {
        "gfx906" => ("amdgpu9.06-amd-amdhsa", 0x2f),
        "gfx90a" => ("amdgpu9.0a-amd-amdhsa", 0x3f),
        "gfx1100" => ("amdgpu11.00-amd-amdhsa", 0x41),
        arch => panic!("{arch}"),
    };
    let images: Vec<_> = archs.iter().map(|arch| amd_of(known(arch).1, 9000)).collect();
    let entries: Vec<_> = (archs.iter().zip(&images))
        .map(|(arch, image)| {
            ImageEntry::new(image.len() as u64)
                .with_image_kind(ImageKind::OBJECT)
                .with_offload_kind(OffloadKind::HIP)
                .with_string("triple", known(arch).0)
                .with_string("arch", arch)
        })
        .collect();
    let images: Vec<&[u8]> = images.iter().map(Vec::as_slice).collect();
    offload_binary::layout(version, &entries).unwrap().to_vec(&images).unwrap()
}

fn run(args: &[&str], file: &Path) -> Output {
    offload(args.iter().map(OsStr::new).chain([file.as_os_str()]))
}

fn conclusion(output: &Output) -> String {
    stdout(output).lines().last().unwrap_or_default().to_owned()
}

#[test]
fn every_registered_offload_binary_needs_code() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("library.so");
    for version in [FormatVersion::V1, FormatVersion::V2, FormatVersion::V3] {
        let units = [&["gfx906", "gfx90a"][..], &["gfx906"], &["gfx90a", "gfx1100"]];
        let bundles = units.map(|archs| unit(version, archs)).to_vec();
        fs::write(&file, Linked::new(Style::Third, bundles).build()).unwrap();
        for (gpu, status, words) in [
            ("gfx906", 1, "2 of 3 containers have code for gfx906; "),
            ("gfx90a", 1, "2 of 3 containers have code for gfx90a; "),
            ("gfx1100", 1, "1 of 3 containers has code for gfx1100; "),
        ] {
            let output = run(&["match", "--gpu", gpu], &file);
            assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
            let line = conclusion(&output);
            assert!(line.contains(words), "{version}: {line}");
            assert!(line.contains("section:.hip_fatbin/offload-binary:"), "{line}");
        }
        // Code for one GPU in several units counts in each.
        let bundles = units[..2].iter().map(|archs| unit(version, archs)).collect();
        let bytes = Linked::new(Style::First, bundles).build();
        fs::write(&file, bytes).unwrap();
        let output = run(&["match", "--gpu", "gfx906"], &file);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(conclusion(&output).contains("both containers have code for gfx906"));
    }
}

#[test]
fn registered_offload_binaries_are_thinned() {
    let place = tempfile::tempdir().unwrap();
    let (file, thin) = (place.path().join("library.so"), place.path().join("thin.so"));
    for version in [FormatVersion::V1, FormatVersion::V2, FormatVersion::V3] {
        let archs = ["gfx906", "gfx90a", "gfx1100"];
        let bundles = (0..3).map(|_| unit(version, &archs)).collect();
        let bytes = Linked::new(Style::First, bundles).build();
        fs::write(&file, &bytes).unwrap();
        let output = run(&["thin", "--keep", "gfx90a", "-o", thin.to_str().unwrap()], &file);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let thinned = fs::read(&thin).unwrap();
        linked::check_same(&bytes, &thinned);
        let before = bytes.len() - thinned.len();
        assert!(before >= 10 * 4096, "{before} bytes left the file");
        for (gpu, status) in [("gfx90a", 0), ("gfx906", 1)] {
            let output = run(&["match", "--gpu", gpu], &thin);
            assert_eq!(output.status.code(), Some(status), "{}", stdout(&output));
        }
        let output = run(&["verify"], &thin);
        assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    }
}

#[test]
fn dlls_are_read_as_libraries_are() {
    let place = tempfile::tempdir().unwrap();
    let (file, edited) = (place.path().join("library.dll"), place.path().join("edited.dll"));
    for version in [FormatVersion::V1, FormatVersion::V2, FormatVersion::V3] {
        let units = [&["gfx906", "gfx90a"][..], &["gfx906"], &["gfx90a", "gfx1100"]];
        let bytes = linked_pe::build(&units.map(|archs| unit(version, archs)));
        fs::write(&file, &bytes).unwrap();
        let output = run(&["match", "--gpu", "gfx906"], &file);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let line = conclusion(&output);
        assert!(line.contains("2 of 3 containers have code for gfx906; "), "{version}: {line}");
        assert!(line.contains("section:.hip_fat/offload-binary:"), "{line}");
        assert_eq!(run(&["verify"], &file).status.code(), Some(0));

        let out = ["-o", edited.to_str().unwrap()];
        let output = run(&[&["thin", "--keep", "gfx906,gfx1100"][..], &out].concat(), &file);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let thinned = fs::read(&edited).unwrap();
        linked_pe::check_same(&bytes, &thinned);
        assert_eq!(linked_pe::registered(&thinned).len(), 3);
        for (gpu, words) in [
            ("gfx906", "2 of 3 containers have code for gfx906; "),
            ("gfx1100", "1 of 3 containers has code for gfx1100; "),
            ("gfx90a", "no code for gfx90a"),
        ] {
            let line = conclusion(&run(&["match", "--gpu", gpu], &edited));
            assert!(line.contains(words), "{version}: {line}");
        }

        let image = place.path().join("image");
        fs::write(&image, amd_of(0x41, 500)).unwrap();
        let what = format!("gfx1100={}", image.display());
        let output = offload([&["replace", file.to_str().unwrap(), &what][..], &out].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        linked_pe::check_same(&bytes, &fs::read(&edited).unwrap());
        assert_eq!(run(&["verify"], &edited).status.code(), Some(0));

        let output = run(&[&["compress"][..], &out].concat(), &file);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let small = fs::read(&edited).unwrap();
        assert_eq!(small.len() < bytes.len(), version == FormatVersion::V3);
        let back = place.path().join("back.dll");
        let output = run(&["decompress", "-o", back.to_str().unwrap()], &edited);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(fs::read(&back).unwrap() == bytes);
    }
}
