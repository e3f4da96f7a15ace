//! `offload` on HCF containers of AdaptiveCpp.

#[path = "../../../hcf/tests/hcf_sample/mod.rs"]
mod hcf_sample;

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use crate::common::{offload, stderr, stdout};
use hcf_sample::{Sample, hcf};

fn run(args: &[&str], path: &Path) -> std::process::Output {
    offload(args.iter().map(OsStr::new).chain([path.as_os_str()]))
}

#[test]
fn commands_read_containers() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("app.hcf");
    let image = Sample::bitcode(&["_Z3addv"]);
    fs::write(&path, hcf(std::slice::from_ref(&image))).unwrap();

    let text = stdout(&run(&["ls"], &path));
    assert!(text.contains("LLVM bitcode") && text.contains("hcf:0"), "{text}");
    let text = stdout(&run(&["ls", "--json"], &path));
    let hcf = r#""hcf":{"node":"llvm-ir.global","format":"llvm-ir","kernels":["_Z3addv"]}"#;
    assert!(text.contains(hcf) && text.contains(r#""container":"hcf""#), "{text}");

    let output = run(&["verify"], &path);
    assert!(
        stdout(&output).ends_with("app.hcf: ok, 1 image in 1 container\n"),
        "{}",
        stdout(&output)
    );
    let output = run(&["extract", "--stdout"], &path);
    assert_eq!(output.stdout, image.bytes);

    let out = directory.path().join("out.hcf");
    let args = ["remove", "--index", "0", "--allow-empty", "-o", out.to_str().unwrap()];
    let output = run(&args, &path);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("HCF containers"), "{}", stderr(&output));
    assert!(!out.exists());
}

#[test]
fn any_gpu_can_compile_the_bitcode() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("app.hcf");
    for image in [Sample::bitcode(&["kernel"]), Sample::bitcode(&[])] {
        fs::write(&path, hcf(&[image])).unwrap();
        for gpu in ["gfx90a", "sm_90", "pvc"] {
            let output = run(&["match", "--gpu", gpu], &path);
            let text = format!("{}{}", stdout(&output), stderr(&output));
            assert_eq!(output.status.code(), Some(0), "{gpu}: {text}");
            assert!(text.contains("when it is loaded"), "{gpu}: {text}");
        }
    }
    // PTX is for NVIDIA GPUs only.
    let ptx = Sample::new("ptx", b".version 7.0\n.target sm_70\n.address_size 64\n", &["kernel"]);
    fs::write(&path, hcf(&[ptx])).unwrap();
    for (gpu, code) in [("sm_90", 0), ("gfx90a", 1)] {
        let output = run(&["match", "--gpu", gpu], &path);
        assert_eq!(output.status.code(), Some(code), "{gpu}: {}", stdout(&output));
    }
}
