//! OpenMP target code runs on the host device of LLVM's own runtime, from an image that is extracted and packaged by
//! our tools and registered by an object of `wrapper-ir`: the program says what the same program built by clang alone
//! says.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points, with `libomp-22-dev` and `liboffload-22-dev`; fails
//! without them.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic is how a test says no"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use wrapper_ir::{Abi, Image, Kind, Target, Wrapper};

const DEVICE: &str = "x86_64-pc-linux-gnu";

fn llvm(place: &str) -> PathBuf {
    let prefix = std::env::var_os("LLVM").unwrap_or_else(|| "/usr/lib/llvm-22".into());
    let path = Path::new(&prefix).join(place);
    assert!(
        path.exists(),
        "{} is missing: install libomp-22-dev, liboffload-22-dev",
        path.display()
    );
    path
}

/// Runs a tool that must succeed, and returns what it says on both outputs.
fn run(directory: &Path, tool: impl AsRef<Path>, arguments: &[&str]) -> String {
    let tool = tool.as_ref();
    let output = Command::new(tool)
        .args(arguments)
        .current_dir(directory)
        // Otherwise the host runs what the device does not.
        .env("OMP_TARGET_OFFLOAD", "MANDATORY")
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", tool.display()));
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    assert!(output.status.success(), "{} {arguments:?}: {}\n{said}", tool.display(), output.status);
    said
}

fn object(images: &[&[u8]]) -> Vec<u8> {
    let target = Target::new("x86_64-unknown-linux-gnu").unwrap();
    let images_of = images.iter().map(|image| Image::from_bytes(image));
    let wrapper = Wrapper::new(Kind::OpenMp, Abi::Current, target).images(images_of);
    wrapper.module().unwrap().object().unwrap().to_vec(images).unwrap()
}

#[test]
fn target_code_runs_on_the_host_device() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wrapper/openmp.c");
    let source = source.to_str().unwrap();
    let clang = llvm("bin/clang");
    let package_tool = env!("CARGO_BIN_EXE_llvm-offload-binary");
    llvm("lib/libomptarget.so");

    // What clang makes of it.
    let openmp = ["-O1", "-fopenmp", "-fopenmp-targets=x86_64-pc-linux-gnu", source];
    run(place, &clang, &[&openmp[..], &["-o", "whole"]].concat());
    let expected = run(place, place.join("whole"), &[]);
    assert_eq!(expected, "on the device: 30\n");

    // The same in steps.
    run(place, &clang, &[&openmp[..], &["-fPIC", "-c", "-o", "host.o"]].concat());
    let extract = format!("--image=file=device.o,kind=openmp,triple={DEVICE}");
    run(place, package_tool, &["host.o", &extract]);
    let target = format!("--target={DEVICE}");
    let shared = ["-shared", "-Wl,-Bsymbolic", "-Wl,--no-undefined"];
    run(place, &clang, &[&[&target[..]], &shared[..], &["device.o", "-o", "device"]].concat());
    let pack = format!("--image=file=device,kind=openmp,triple={DEVICE},arch=");
    run(place, package_tool, &["-o", "package", &pack]);

    let image = fs::read(place.join("device")).unwrap();
    let package = fs::read(place.join("package")).unwrap();
    let foreign = b"an image for no device there is";
    for (images, name) in [
        (&[&image[..]][..], "image"),
        (&[&package], "package"),
        (&[&foreign[..], &package], "several"),
    ] {
        fs::write(place.join("wrapper.o"), object(images)).unwrap();
        for linker in ["/usr/bin/ld.bfd".into(), llvm("bin/ld.lld")] {
            let linker = format!("--ld-path={}", linker.display());
            let library = format!("-L{}", llvm("lib").display());
            let path = format!("-Wl,-rpath,{}", llvm("lib").display());
            let libraries = [&linker[..], &library, &path, "-lomp", "-lomptarget"];
            for mode in ["-pie", "-no-pie"] {
                let objects = ["host.o", "wrapper.o", mode, "-o", "program"];
                run(place, &clang, &[&objects[..], &libraries].concat());
                let said = run(place, place.join("program"), &[]);
                assert_eq!(said, expected, "{name}, {linker}, {mode}");
            }
            // In a library, as plugins of other programs have it.
            let objects = ["host.o", "wrapper.o", "-shared", "-o", "program.so"];
            run(place, &clang, &[&objects[..], &libraries].concat());
            fs::write(place.join("empty.c"), "").unwrap();
            let objects = ["empty.c", "./program.so", "-Wl,-rpath,.", "-o", "program"];
            run(place, &clang, &[&objects[..], &libraries].concat());
            assert_eq!(
                run(place, place.join("program"), &[]),
                expected,
                "{name}, {linker}, shared"
            );
        }
    }
}
