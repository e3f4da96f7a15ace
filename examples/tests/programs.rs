//! The example programs do what they say.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test says no")]

use std::io::Cursor;
use std::process::Command;

fn run(program: &str, args: &[&str]) -> String {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/data");
    let output = Command::new(program).args(args).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn gpus() {
    assert_eq!(
        run(env!("CARGO_BIN_EXE_gpus"), &["hip.o", "openmp-packager.o", "host.o"]),
        "hip.o: gfx1100 gfx9-generic gfx906:xnack+ gfx90a:sramecc+:xnack-\n\
         openmp-packager.o: gfx90a sm_70\n\
         host.o: \n"
    );
}

#[test]
fn why_not() {
    let ids = ["hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-", "hipv4-amdgcn-amd-amdhsa--gfx90a"];
    let printed = run(env!("CARGO_BIN_EXE_why_not"), &["gfx90a:xnack+", ids[0], ids[1]]);
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(lines.len(), 2);
    let no = ": needs xnack off, the device has it on";
    assert_eq!(lines.first().unwrap().strip_prefix(ids[0]), Some(no));
    assert!(lines.last().unwrap().starts_with(ids[1]));
}

/// Counts the images of a fat object.
struct Count(usize);

impl fat_object::Visitor for Count {
    fn image(&mut self, image: &mut fat_object::Image<'_, '_>) -> std::io::Result<()> {
        assert_eq!(image.target().to_string(), "hip-amdgcn-amd-amdhsa--gfx1100");
        self.0 += 1;
        Ok(())
    }
    fn finding(&mut self, finding: &fat_object::Finding<'_>) -> std::io::Result<()> {
        panic!("{finding}");
    }
}

#[test]
fn compiler() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/data");
    let output = Command::new(env!("CARGO_BIN_EXE_compiler"))
        .args(["host.o", "gfx1100=bundle.bc", "gfx1100=hip.hipfb"])
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(!output.status.success(), "a bundle in a package yields its own images, too");
    let output = Command::new(env!("CARGO_BIN_EXE_compiler"))
        .args(["host.o", "gfx1100=hip-embedded.bc", "gfx1100=src/scale.hip"])
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut count = Count(0);
    let options = fat_object::Options::default();
    fat_object::walk(&mut Cursor::new(output.stdout), &options, &mut count).unwrap();
    assert_eq!(count.0, 2);
}

/// A program offloads to a device that this machine plays; nothing but a C compiler takes part.
#[test]
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
fn pipeline() {
    let place = tempfile::tempdir().unwrap();
    let run = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).current_dir(&place).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said).unwrap();
        assert!(output.status.success(), "{program} {args:?}: {said}");
        said
    };
    let source = |name: &str| format!("{}/pipeline/{name}", env!("CARGO_MANIFEST_DIR"));
    run("cc", &["-c", "-fPIE", &source("host.c"), "-o", "host.o"]);
    run("cc", &["-c", "-fPIE", &source("runtime.c"), "-o", "runtime.o"]);
    run("cc", &["-shared", "-fPIC", &source("device.c"), "-o", "device.img"]);
    std::fs::write(place.path().join("gpu.img"), [7; 100]).unwrap();
    let device = format!("{}-unknown-linux-gnu=device.img", std::env::consts::ARCH);
    let args = ["program", "host.o", "runtime.o", "amdgcn-amd-amdhsa=gpu.img", &device];
    assert_eq!(run(env!("CARGO_BIN_EXE_pipeline"), &args), "");
    let size = std::fs::metadata(place.path().join("device.img")).unwrap().len();
    assert_eq!(
        run("./program", &[]),
        format!(
            "image 0: 100 bytes, for another device\n\
             image 1: {size} bytes, loaded\n\
             launching scale\n2 4 6\nunregistered\n"
        )
    );
}
