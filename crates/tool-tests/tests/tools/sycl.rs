//! `offload` on SYCL images of Intel's toolchain.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{offload, stderr, stdout};
use samples::ar;
use samples::sycl::{Form, Sample, file, spirv};
use twox_hash::XxHash3_64;

fn written(directory: &Path, images: &[Sample]) -> PathBuf {
    let path = directory.join("libsycl.so");
    fs::write(&path, file(Form::default(), images).bytes).unwrap();
    path
}

fn run(args: &[&str], path: &Path) -> std::process::Output {
    offload(args.iter().map(OsStr::new).chain([path.as_os_str()]))
}

/// An archive of `ocloc`, with members of these names.
fn archive(members: &[&str]) -> Vec<u8> {
    ar::archive(&members.iter().map(|name| (*name, &b"code"[..])).collect::<Vec<_>>())
}

#[test]
fn extract_writes_images_decompressed() {
    let directory = tempfile::tempdir().unwrap();
    let images = [
        Sample::plain("spir64", &spirv(1), &["one"]),
        Sample::plain("spir64", &spirv(2), &["two"]).compressed(),
    ];
    let path = written(directory.path(), &images);
    let out = directory.path().join("out");
    let output = run(&["extract", "-o", out.to_str().unwrap()], &path);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    for (n, expected) in [spirv(1), spirv(2)].into_iter().enumerate() {
        let name = format!("libsycl.{n}.sycl-spir64.spv");
        assert_eq!(fs::read(out.join(name)).unwrap(), expected);
    }
    let output = run(&["extract", "--index", "1", "--stdout"], &path);
    assert_eq!(output.stdout, spirv(2));
    let output = run(&["verify"], &path);
    assert!(stdout(&output).ends_with("libsycl.so: ok, 2 images\n"), "{}", stdout(&output));
    let output = run(&["ls", "--json"], &path);
    let text = stdout(&output);
    assert!(text.contains("\"kernels\":[\"two\"]"), "{text}");
}

/// The hashes that `offload ls` shows.
fn hashes(path: &Path) -> Vec<Option<String>> {
    let rows: Vec<serde_json::Value> =
        crate::common::rows(&run(&["ls", "--json", "--hash"], path).stdout);
    rows.iter().map(|row| row.get("hash").map(|hash| hash.as_str().unwrap().to_owned())).collect()
}

#[test]
fn hashes_are_those_of_extracted_images() {
    let directory = tempfile::tempdir().unwrap();
    let plain = Sample::plain("spir64", &spirv(1), &["one"]);
    let mut damaged = plain.clone().compressed();
    // The header of its block.
    damaged.stored[9] |= 6;
    let path = written(directory.path(), &[plain.clone(), plain.compressed(), damaged]);
    let expected = format!("{:016x}", XxHash3_64::oneshot(&spirv(1)));
    assert_eq!(hashes(&path), [Some(expected.clone()), Some(expected.clone()), None]);
    let table = stdout(&run(&["ls", "--hash"], &path));
    assert_eq!(table.matches(&expected).count(), 2, "{table}");
    let output = run(&["ls", "--hash", "--max-decompressed", "20"], &path);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("would exceed the limit"), "{}", stderr(&output));
    assert_eq!(stdout(&output).matches(&expected).count(), 1);
}

#[test]
fn images_of_another_size_than_recorded_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    let mut image = Sample::plain("spir64", &spirv(2), &["two"]).compressed();
    image.size += 1;
    let path = written(directory.path(), &[image]);
    for args in [&["ls"][..], &["verify"], &["extract", "--stdout"]] {
        let output = run(args, &path);
        assert_eq!(output.status.code(), Some(1));
        let text = format!("{}{}", stdout(&output), stderr(&output));
        assert!(text.contains("compressed SYCL image: "), "{text}");
    }
}

#[test]
fn each_kernel_needs_an_image() {
    let directory = tempfile::tempdir().unwrap();
    let pvc = |kernels: &[&str]| {
        Sample::plain("spir64_gen", b"code", kernels).compile_target("intel_gpu_pvc")
    };
    let portable = |kernels: &[&str]| Sample::plain("spir64", &spirv(1), kernels);
    let ocloc = |members: &[&str]| Sample::plain("spir64_gen", &archive(members), &["one"]);
    let unnamed = Sample::plain("spir64_gen", b"code", &["one"]);
    let x86 = Sample::plain("spir64_x86_64", b"code", &["one", "two"]);
    let bmg = Sample::plain("spir64_gen", b"code", &["one"]).compile_target("intel_gpu_bmg_g21");
    for (images, gpu, code, says) in [
        (vec![pvc(&["one", "two"])], "pvc", 0, "=>  0"),
        (vec![pvc(&["one", "two"])], "acm-g10", 1, "has no code for intel_gpu_acm_g10"),
        (vec![pvc(&["one"]), portable(&["two"])], "pvc", 0, "=>  1"),
        (vec![pvc(&["one"]), portable(&["two"])], "acm-g10", 1, "not all kernels have an image"),
        (vec![pvc(&["one"]), portable(&["one"])], "acm-g10", 0, "=>  0  spir64 "),
        (vec![pvc(&["one"]), portable(&["one"])], "pvc", 0, "is taken from another image"),
        (vec![portable(&["one"])], "pvc", 0, "compiled for intel_gpu_pvc when it is loaded"),
        (vec![portable(&["one"])], "sm_80", 1, "is SPIR-V, but not for NVIDIA GPUs"),
        (vec![x86], "pvc", 1, "is for x86 processors"),
        (vec![unnamed], "pvc", 0, "GPUs that the container does not name"),
        (vec![bmg.clone()], "bmg_g21", 0, "yes"),
        (vec![bmg], "lnl_m", 1, "no: "),
        (vec![ocloc(&["64.12.60.7"])], "pvc", 0, "yes: is an exact match"),
        (vec![ocloc(&["64.12.60.7"])], "dg2-g10", 1, "is machine code for intel_gpu_pvc only"),
        (vec![ocloc(&["64.12.60.7", "generic_ir"])], "dg2-g10", 0, "when it is loaded"),
    ] {
        let path = written(directory.path(), &images);
        let output = run(&["match", "--gpu", gpu], &path);
        let text = format!("{}{}", stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(code), "{gpu}: {text}");
        assert!(text.contains(says), "{gpu}: {says}: {text}");
    }
}

#[test]
fn edits_are_refused_with_a_reason() {
    let directory = tempfile::tempdir().unwrap();
    let path = written(directory.path(), &[Sample::plain("spir64", &spirv(1), &["one"])]);
    let out = directory.path().join("out.so");
    for args in [
        &["thin", "--keep", "gfx90a", "--allow-missing", "--allow-empty"][..],
        &["remove", "--index", "0", "--allow-empty"],
    ] {
        let args = [args, &["-o", out.to_str().unwrap()]].concat();
        let output = run(&args, &path);
        assert_ne!(output.status.code(), Some(0));
        let text = stderr(&output);
        assert!(text.contains("SYCL images that the file registers by tables"), "{text}");
        assert!(!out.exists());
    }
}
