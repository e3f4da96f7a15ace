//! The smaller example programs do what they say.

use crate::common::{Arg, data, run};

#[test]
fn gpus_lists_the_gpus_of_each_file() {
    let files = [&"hip.o" as Arg<'_>, &"openmp-packager.o", &"host.o"];
    assert_eq!(
        run(&data(""), env!("CARGO_BIN_EXE_gpus"), &files),
        "hip.o: gfx1100 gfx9-generic gfx906:xnack+ gfx90a:sramecc+:xnack-\n\
         openmp-packager.o: gfx90a sm_70\n\
         host.o: \n"
    );
}

#[test]
fn why_not_prints_the_reasons() {
    let ids = ["hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-", "hipv4-amdgcn-amd-amdhsa--gfx90a"];
    let args = [&"gfx90a:xnack+" as Arg<'_>, &ids[0], &ids[1]];
    let printed = run(&data(""), env!("CARGO_BIN_EXE_why_not"), &args);
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(lines.len(), 2);
    let no = ": needs xnack off, the device has it on";
    assert_eq!(lines.first().unwrap().strip_prefix(ids[0]), Some(no));
    assert!(lines.last().unwrap().starts_with(ids[1]));
}

#[test]
fn inputs_lists_the_linker_inputs() {
    let files = [&"host.o" as Arg<'_>, &"openmp-packager.o", &"hip-ccob-v3.o"];
    let printed = run(&data(""), env!("CARGO_BIN_EXE_inputs"), &files);
    assert!(!printed.contains("host.o"));
    assert!(printed.starts_with("openmp-packager.o:\n  openmp"), "{printed}");
    assert_eq!(printed.matches("bytes, lent").count(), 2);
    assert!(printed.contains("bytes to be decompressed"));
}
