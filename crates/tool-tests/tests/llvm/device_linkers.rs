//! Device links by programs that `offload-link` runs: by clang 22, and by `ld.lld` with the arguments that clang gives it.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points; fails without it.

use std::ffi::{OsStr, OsString};

use offload_link::{
    ClangOptions, CommandLinker, ErrorKind, Images, Inputs, LinkFiles, LldOptions, Plan,
    PlanOptions, PtxasOptions,
};

use crate::common::place::Place;
use crate::common::{llvm, stderr};

const TARGETS: [&str; 4] = ["gfx90a:sramecc-:xnack+", "gfx1100", "gfx9-generic", "gfx942:xnack-"];

/// Compiles kernels for some GPUs of AMD.
fn object(place: &Place) -> Vec<u8> {
    let archs = format!("--offload-arch={}", TARGETS.join(","));
    let hip = ["--offload-new-driver", "-fgpu-rdc", "-nogpulib", "-nogpuinc", &archs];
    place.compile(llvm("clang"), "kernels.hip", "kernels.o", &hip);
    std::fs::read(place.path("kernels.o")).unwrap()
}

#[test]
fn lld_gets_the_arguments_that_clang_gives() {
    let place = Place::new();
    let object = object(&place);
    let mut inputs = Inputs::new();
    inputs.add("kernels.o", &object).unwrap();
    let plan = Plan::new(&inputs, &PlanOptions::default()).unwrap();
    assert_eq!(plan.groups().len(), TARGETS.len());
    place.put("code.o", "");
    let code = [OsString::from("code.o")];
    let files = LinkFiles::new(&code, OsStr::new("image"));
    for group in plan.groups() {
        let ours = LldOptions::new().with_argument("--lto-O1").arguments(group, files).unwrap();
        let ours: Vec<_> = ours.iter().map(|word| word.to_str().unwrap()).collect();
        let processor = format!("-mcpu={}", group.target().arch());
        let arguments = ["--target=amdgcn-amd-amdhsa", &processor, "-nogpulib", "code.o"];
        let more = ["-Wl,--lto-O1", "--no-default-config", "-###", "-o", "image"];
        let shown = place.try_run(llvm("clang"), &[&arguments[..], &more].concat());
        let shown = stderr(&shown);
        let words = shown.lines().last().unwrap().trim().trim_matches('"').split("\" \"");
        let theirs: Vec<_> = words.skip(1).collect();
        assert_eq!(ours, theirs, "{}", group.target());
    }
}

#[test]
fn programs_link_code_in_memory() {
    let place = Place::new();
    let object = object(&place);
    let mut inputs = Inputs::new();
    inputs.add("kernels.o", &object).unwrap();
    let plan = Plan::new(&inputs, &PlanOptions::default()).unwrap();
    let runs = tempfile::tempdir().unwrap();
    let linker = || CommandLinker::new().with_directory(runs.path());
    let clang = linker().with_clang(llvm("clang"), ClangOptions::new());
    let lld = linker().with_lld(llvm("ld.lld"), LldOptions::new());
    let generic = linker().with_lld(llvm("lld"), LldOptions::new().with_flavor(true));
    let by = |mut linker: CommandLinker| bytes(&plan.link(&mut linker).unwrap());
    let images = by(clang);
    assert_eq!(images.len(), TARGETS.len());
    for (target, image) in &images {
        place.put("image", image);
        let header = place.run(llvm("llvm-readelf"), &["-h", "image"]);
        let processor = target.split(':').next().unwrap();
        assert!(header.contains("EM_AMDGPU") && header.contains(processor), "{target}: {header}");
    }
    assert!(by(lld) == images);
    assert!(by(generic) == images);
    // A file for each thing that was written, and none is left.
    assert_eq!(std::fs::read_dir(runs.path()).unwrap().count(), 0);

    let failed = |mut linker: CommandLinker| {
        let error = plan.link(&mut linker).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Device);
        error.to_string()
    };
    let missing = linker().with_clang("no/such/clang", ClangOptions::new());
    assert_eq!(failed(missing), "no/such/clang: No such file or directory (os error 2)");
    let wrong = LldOptions::new().with_argument("--no-such-option");
    let text = failed(linker().with_lld(llvm("ld.lld"), wrong));
    assert!(text.contains("ld.lld: no image for amdgcn-amd-amdhsa gfx"), "{text}");
    assert!(text.ends_with(": exit status: 1"), "{text}");
    let files = [OsString::from("code.o")];
    let files = LinkFiles::new(&files, OsStr::new("image"));
    let error = PtxasOptions::new().arguments(&plan.groups()[0], files).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Architecture);
}

/// Returns the targets of images, and their bytes.
fn bytes(images: &Images) -> Vec<(String, Vec<u8>)> {
    let images = images.iter();
    images
        .map(|image| (image.target.arch().to_owned(), image.parts.to_vec(|_| &[]).unwrap()))
        .collect()
}
