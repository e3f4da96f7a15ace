//! `llvm-offload-wrapper` of a newer release and ours with `--release`: the same modules, except differences on
//! purpose.
//!
//! Needs the release where `LLVM23` or `LLVM24` points, or in `target` (`.ci/xtask llvm-unpacked` fetches it); fails without it.

#[path = "../common/modules.rs"]
mod modules;

use std::fs;
use std::process::Command;

use crate::RELEASE;
use crate::common::{new_command, printed as run, tool, unpacked_llvm};
use modules::{COFF, CUDA, HIP, plain, with, with_data_layout};
use tempfile::{TempDir, tempdir};
use wrapper_ir::{Abi, Image, OffloadKind, Target, Wrapper};

const LINUX: &str = "x86_64-unknown-linux-gnu";
const WINDOWS: &str = "x86_64-pc-windows-msvc";
const MAC: &str = "arm64-apple-darwin";

/// Bytes that are written in each of the ways there are.
const IMAGE: &[u8] = b"ABC\"\\\n\x00\xff\x7f~ hello";

/// The text of the module that a tool makes of files.
fn wrap(place: &TempDir, wrapper: &mut Command, args: &[&str]) -> String {
    run(wrapper.args(["-o", "out.bc"]).args(args).current_dir(place));
    let mut reader = new_command(unpacked_llvm(RELEASE, "llvm-dis"));
    let text = run(reader.args(["out.bc", "-o", "-"]).current_dir(place));
    plain(&text)
}

/// The module of LLVM for a target, with a data layout, and what COFF needs.
fn theirs(place: &TempDir, triple: &str, args: &[&str]) -> String {
    let mut tool = new_command(unpacked_llvm(RELEASE, "llvm-offload-wrapper"));
    let text = with_data_layout(wrap(place, &mut tool, args), triple);
    let has_bounds = text.contains("llvm_offload_entries$OZ");
    if has_bounds && RELEASE == 23 { with(text, &[COFF]) } else { text }
}

fn ours(place: &TempDir, args: &[&str]) -> String {
    let mut tool = new_command(tool("llvm-offload-wrapper"));
    wrap(place, tool.arg(format!("--release={RELEASE}")), args)
}

/// The text that the library writes itself.
fn text(kind: OffloadKind, triple: &str, images: &[&[u8]]) -> String {
    let abi = if RELEASE == 24 { Abi::Llvm24 } else { Abi::Current };
    let wrapper = Wrapper::new(kind, abi, Target::new(triple).unwrap());
    let wrapper = wrapper.with_images(images.iter().map(|image| Image::from_bytes(image)));
    wrapper
        .with_llvm_code(true)
        .with_retain(RELEASE == 24)
        .module()
        .unwrap()
        .ir_to_string(images)
        .unwrap()
}

/// The runtime gets a package whose tables are aligned.
const SYCL: (&str, &str) =
    ("section \".llvm.offloading\"", "section \".llvm.offloading\", align 8");

const HIP_MACH_O: [(&str, &str); 2] =
    [HIP[0], (", section \"__HIP,__hip_fatbin\"", ", section \"__HIP,__hip_fatbin\", align 4096")];
const CUDA_MACH_O: [(&str, &str); 3] = [
    CUDA[0],
    CUDA[1],
    (", section \"__NV_CUDA,__nv_fatbin\"", ", section \"__NV_CUDA,__nv_fatbin\", align 8"),
];

#[test]
fn openmp_modules_are_those_of_llvm() {
    let place = tempdir().unwrap();
    let sets: [&[&[u8]]; 4] = [&[IMAGE], &[b"\x7fELF", b"", b"x"], &[b""], &[IMAGE; 12]];
    for images in sets {
        let names: Vec<_> = (0..images.len()).map(|index| format!("image{index}")).collect();
        for (name, image) in names.iter().zip(images) {
            fs::write(place.path().join(name), image).unwrap();
        }
        for triple in [LINUX, "aarch64-unknown-linux-gnu", "i386-unknown-linux-gnu", WINDOWS] {
            for relocatable in [&["--relocatable"][..], &[]] {
                let triple_arg = format!("--triple={triple}");
                let mut args = vec!["--kind=openmp", &triple_arg];
                args.extend(relocatable);
                args.extend(names.iter().map(String::as_str));
                let ours = ours(&place, &args);
                assert_eq!(ours, theirs(&place, triple, &args));
                if relocatable.is_empty() {
                    assert_eq!(ours, text(OffloadKind::OPENMP, triple, images));
                }
            }
        }
    }
}

#[test]
fn cuda_hip_and_sycl_modules_are_those_of_llvm() {
    let place = tempdir().unwrap();
    fs::write(place.path().join("image"), IMAGE).unwrap();
    for triple in [LINUX, "riscv64-unknown-linux-gnu", WINDOWS, MAC] {
        for kind in [OffloadKind::CUDA, OffloadKind::HIP, OffloadKind::SYCL] {
            if triple == MAC && kind == OffloadKind::SYCL {
                continue;
            }
            let args = [&*format!("--kind={kind}"), &*format!("--triple={triple}"), "image"];
            let theirs = theirs(&place, triple, &args);
            let theirs = match (kind, triple) {
                (OffloadKind::SYCL, _) => with(theirs, &[SYCL]),
                (OffloadKind::HIP, MAC) => with(theirs, &HIP_MACH_O),
                (OffloadKind::HIP, _) => with(theirs, &HIP),
                (_, MAC) => with(theirs, &CUDA_MACH_O),
                _ => with(theirs, &CUDA),
            };
            let ours = ours(&place, &args);
            assert_eq!(ours, theirs, "{kind} {triple}");
            assert_eq!(ours, text(kind, triple, &[IMAGE]), "{kind} {triple}");
        }
    }
}

/// LLVM describes the first image of a package; with a compressed one 24 takes bytes of the stream for a table.
#[test]
fn plain_packages_are_described_as_by_llvm() {
    let place = tempdir().unwrap();
    let triple = format!("--triple={LINUX}");
    fs::write(place.path().join("image"), [7; 5000]).unwrap();
    let pack = |name: &str, args: &[&str]| {
        let mut packager = new_command(unpacked_llvm(RELEASE, "llvm-offload-binary"));
        run(packager.args(["-o", name]).args(args).current_dir(&place));
    };
    let one = "--image=file=image,kind=openmp,triple=amdgcn-amd-amdhsa,arch=gfx906";
    let two = "--image=file=image,kind=openmp,triple=amdgcn-amd-amdhsa,arch=gfx1100";
    pack("one", &[one]);
    let args = ["--kind=openmp", &triple, "one"];
    assert_eq!(ours(&place, &args), theirs(&place, LINUX, &args));

    pack("two", &[one, two]);
    let args = ["--kind=openmp", &triple, "two"];
    let (plain, first) = (ours(&place, &args), theirs(&place, LINUX, &args));
    assert!(plain.contains("[2 x %__tgt_device_image]"), "{plain}");
    assert!(first.contains("[1 x %__tgt_device_image]"), "{first}");
    let formats: &[&str] = if RELEASE == 24 { &["zstd", "zlib"] } else { &[] };
    for format in formats {
        pack("small", &[one, two, "--compress", &format!("--compression-format={format}")]);
        assert!(fs::metadata(place.path().join("small")).unwrap().len() < 5000);
        assert_eq!(ours(&place, &["--kind=openmp", &triple, "small"]), plain);
    }
}
