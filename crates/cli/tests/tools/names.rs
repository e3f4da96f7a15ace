//! Names of processors that are easily read wrongly, through all commands.

use std::fs;
use std::process::{Command, Output};

use crate::common::{self, offload, stderr, stdout};
use tempfile::TempDir;

const HOST: &str = "host-x86_64-unknown-linux-gnu-";

fn path(place: &TempDir, name: &str) -> String {
    place.path().join(name).to_str().unwrap().to_owned()
}

fn bundler(place: &TempDir, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clang-offload-bundler"));
    command.args(args).current_dir(place).output().unwrap()
}

/// A bundle of the host's and one image for each ID.
fn bundle(ids: &[&str]) -> TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("h"), "host").unwrap();
    let mut args = vec!["-type=bc".to_owned(), "-output=b".to_owned(), "-input=h".to_owned()];
    for (n, _) in ids.iter().enumerate() {
        fs::write(place.path().join(format!("i{n}")), format!("image {n}")).unwrap();
        args.push(format!("-input=i{n}"));
    }
    args.push(format!("-targets={HOST},{}", ids.join(",")));
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let output = bundler(&place, &args);
    assert!(output.status.success(), "{}", stderr(&output));
    place
}

fn status(args: &[&str]) -> i32 {
    offload(args).status.code().unwrap()
}

#[test]
fn a_name_with_a_dash() {
    let place = bundle(&[
        "hipv4-amdgcn-amd-amdhsa--gfx1250",
        "hipv4-amdgcn-amd-amdhsa--gfx1250-strict:xnack-",
    ]);
    let file = path(&place, "b");
    let listed = stdout(&bundler(&place, &["-type=bc", "-list", "-input=b"]));
    assert!(listed.contains("--gfx1250-strict:xnack-\n"), "{listed}");

    let targets: Vec<_> =
        common::ls(file.as_ref()).into_iter().map(|row| row.target.unwrap_or_default()).collect();
    assert_eq!(targets[1..], ["gfx1250", "gfx1250-strict:xnack-"]);
    for (gpu, expected) in [
        ("gfx1250", 0),
        ("gfx1250:xnack+", 0),
        ("gfx1250-strict:xnack-", 0),
        ("gfx1250-strict:xnack+", 1),
        ("gfx1251", 1),
        ("amdgpu12.50", 0),
        ("amdgpu12.50s:xnack-", 0),
        ("amdgpu12.51", 1),
        ("amdgpu12.50s-amd-amdhsa-unknown-gfx1250-strict:xnack-", 0),
        ("hip-amdgcn-amd-amdhsa--gfx1250-strict:xnack-", 0),
        // A family is no device.
        ("amdgpu12.5", 2),
        ("amdgpu99", 2),
    ] {
        assert_eq!(status(&["match", "--gpu", gpu, &file]), expected, "{gpu}");
    }

    let thin = path(&place, "thin");
    assert_eq!(status(&["thin", "--keep", "gfx1250-strict:xnack-", "-o", &thin, &file]), 0);
    let kept = common::ls(thin.as_ref());
    let devices: Vec<_> = kept.iter().filter_map(|row| row.target.as_deref()).collect();
    assert!(
        devices.contains(&"gfx1250-strict:xnack-") && !devices.contains(&"gfx1250"),
        "{devices:?}"
    );

    let out = path(&place, "out");
    let selected = ["extract", "--target", "gfx1250-strict:xnack-", "-o", &out, &file];
    assert_eq!(status(&selected), 0);
    let names: Vec<_> = fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(matches!(&names[..], [name] if name.contains("gfx1250-strict")), "{names:?}");
}

/// An ID of old, without a field for the environment.
#[test]
fn a_name_with_a_dash_after_three_fields() {
    let place = bundle(&["hip-amdgcn-amd-amdhsa-gfx1250-strict:xnack+"]);
    let listed = stdout(&bundler(&place, &["-type=bc", "-list", "-input=b"]));
    assert!(listed.contains("hip-amdgcn-amd-amdhsa--gfx1250-strict:xnack+\n"), "{listed}");
}

/// As LLVM 23 and 24: an unknown sub-architecture is bundled and matches nothing.
#[test]
fn unknown_sub_architectures_match_nothing_in_the_bundler() {
    for (stored, wanted, found) in [
        ("amdgpu99", "amdgpu99", false),
        ("amdgpu99", "amdgpu9.06", false),
        ("amdgpufoo", "amdgpu", false),
        ("amdgpu12.5", "amdgpu12.50s", false),
        ("amdgpu12.50", "amdgpu12.50s", false),
        ("amdgpu12.50s", "amdgpu12.50s", true),
        ("amdgpu12.50s", "amdgpu", true),
        ("amdgpu9", "amdgpu9.06", true),
        ("amdgpu9.06", "amdgcn", true),
    ] {
        let id = |arch: &str| format!("hip-{arch}-amd-amdhsa--gfx906");
        let place = bundle(&[&id(stored)]);
        let targets = format!("-targets={}", id(wanted));
        let args = ["-type=bc", "-unbundle", "-input=b", "-output=o", &targets];
        let output = bundler(&place, &args);
        assert_eq!(output.status.success(), found, "{stored} {wanted}: {}", stderr(&output));
        if !found {
            assert!(
                stderr(&output).contains("Can't find bundles for hip-amdgpu"),
                "{stored} {wanted}"
            );
        }
        // Our own tools take it for itself.
        let own = path(&place, "own");
        let b = path(&place, "b");
        let args = ["unbundle", &b, &format!("{}={own}", id(wanted))];
        assert_eq!(offload(args).status.success(), found || stored == wanted, "{stored} {wanted}");
    }
}

#[test]
fn intel_s_gpus_in_all_spellings() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("image"), "machine code").unwrap();
    let (image, package) = (path(&place, "image"), path(&place, "package"));
    let pack = |kind: &str, arch: &str| {
        let image = format!("kind={kind},triple=spir64_gen,arch={arch},file={image}");
        assert_eq!(status(&["pack", "-o", &package, &image]), 0);
    };
    for arch in ["intel_gpu_bmg_g21", "bmg_g21", "intel_gpu_20_1_4"] {
        pack("sycl", arch);
        for (gpu, expected) in [
            ("bmg_g21", 0),
            ("bmg-g21", 0),
            ("BMG-G21", 0),
            ("xe-bmg-g21", 0),
            ("intel_gpu_bmg_g21", 0),
            ("intel_gpu_20_1_4", 0),
            ("20.1.4", 0),
            ("xe_20.1.0", 0),
            ("Arc B580", 0),
            ("lnl-m", 1),
            ("pvc", 1),
            ("bmg", 2),
        ] {
            assert_eq!(status(&["match", "--gpu", gpu, &package]), expected, "{arch} on {gpu}");
        }
    }
    // The driver runs it on others of its kind; the runtime of SYCL does not ask.
    pack("openmp", "bmg_g21");
    for (gpu, expected) in [("lnl-m", 0), ("xe-bmg-g31", 0), ("ptl-h", 1)] {
        assert_eq!(status(&["match", "--gpu", gpu, &package]), expected, "{gpu}");
    }
    let rows = common::ls(package.as_ref());
    assert_eq!(rows[0].target.as_deref(), Some("bmg_g21"), "as it is in the file");
}
