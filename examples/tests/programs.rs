//! The example programs do what they say.
#![allow(clippy::unwrap_used, reason = "a panic is how a test says no")]

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
    let no = ": the code object needs xnack off, the device has it on";
    assert_eq!(lines.first().unwrap().strip_prefix(ids[0]), Some(no));
    assert!(lines.last().unwrap().starts_with(ids[1]));
}
