//! Our bitcode of registration code, as LLVM 22 reads it: the same module as our text, and the same object as from
//! LLVM's own `llvm-offload-wrapper`.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points; fails without it.

use std::fs;
use std::path::Path;

use offload_binary::{FormatVersion, ImageEntry, OffloadKind};
use wrapper_ir::{Abi, ErrorKind, Image, Module, Target, Wrapper};

use crate::common::{llvm, printed_in};

const LINUX: &str = "x86_64-unknown-linux-gnu";
const TRIPLES: [&str; 7] = [
    LINUX,
    "i386-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "riscv64-unknown-linux-gnu",
    "s390x-unknown-linux-gnu",
    "x86_64-pc-windows-msvc",
    "x86_64-apple-darwin",
];

/// The size of an image that needs padding before it.
const LARGE: u32 = 0x10_0001;

/// Returns the output of a tool of LLVM 22.
fn run(tool: &str, directory: &Path, args: &[&str]) -> String {
    printed_in(llvm(tool), args, directory)
}

/// A module of these images as `llvm-dis` prints it, except the names of the files.
fn disassembled(directory: &Path, name: &str) -> String {
    let text = run("llvm-dis", directory, &[name, "-o", "-"]);
    text.lines().filter(|line| !line.starts_with("; ModuleID")).collect::<Vec<_>>().join("\n")
}

/// An image in a package, as clang hands it to the wrapper.
fn package(kind: OffloadKind) -> Vec<u8> {
    let kind = match kind {
        OffloadKind::OPENMP => OffloadKind::OPENMP,
        OffloadKind::CUDA => OffloadKind::CUDA,
        OffloadKind::HIP => OffloadKind::HIP,
        _ => OffloadKind::SYCL,
    };
    let entry =
        ImageEntry::new(300).with_offload_kind(kind).with_string("triple", "amdgcn-amd-amdhsa");
    let layout = offload_binary::layout(FormatVersion::V1, &[entry]).unwrap();
    layout.to_vec(&[&[0x7F; 300]]).unwrap()
}

/// Returns this many bytes, all values in turn.
fn pattern(size: u32) -> Vec<u8> {
    (0..size).map(|number| number.to_le_bytes()[0]).collect()
}

/// Returns images that bitcode stores in different ways: all bytes, none, only zeros, characters, a final zero, an
/// offload binary, one so large that padding comes before it.
fn images(kind: OffloadKind) -> Vec<Vec<Vec<u8>>> {
    let (all, large) = (pattern(256), pattern(LARGE));
    let one: [Vec<u8>; 7] =
        [all, Vec::new(), vec![0; 5], b"text".into(), b"text\0".into(), package(kind), large];
    let mut sets: Vec<_> = one.iter().map(|image| vec![image.clone()]).collect();
    if kind == OffloadKind::OPENMP {
        sets.push(one.into());
    }
    sets
}

/// The module of some images, if this generation has one.
fn module(kind: OffloadKind, abi: Abi, triple: &str, images: &[Vec<u8>]) -> Option<Module> {
    let target = Target::new(triple).unwrap();
    let images = images.iter().enumerate().map(|(index, image)| match abi {
        Abi::Aomp => Image::from_bytes(image).with_target_id(format!("gfx90{index}:xnack+")),
        _ => Image::from_bytes(image),
    });
    match Wrapper::new(kind, abi, target).with_images(images).module() {
        Ok(module) => Some(module),
        Err(error) if error.kind() == ErrorKind::Unsupported => None,
        // SYCL of LLVM 22 takes offload binaries only.
        Err(error) if abi == Abi::Llvm22 && error.kind() == ErrorKind::Package => None,
        Err(error) => panic!("{kind} {abi} {triple}: {error}"),
    }
}

/// Bitcode and text describe the same module, and it is valid.
fn compare(kind: OffloadKind) {
    let place = tempfile::tempdir().unwrap();
    let mut count = 0;
    for triple in TRIPLES {
        for abi in Abi::ALL {
            // Elsewhere only types and sections are others.
            let most = if triple == LINUX { usize::MAX } else { 1 };
            for images in images(kind).into_iter().take(most) {
                let Some(module) = module(kind, abi, triple, &images) else { continue };
                let images: Vec<_> = images.iter().map(Vec::as_slice).collect();
                let layout = module.bitcode().unwrap();
                let bitcode = layout.to_vec(&images).unwrap();
                fs::write(place.path().join("w.bc"), bitcode).unwrap();
                fs::write(place.path().join("w.ll"), module.ir_to_string(&images).unwrap())
                    .unwrap();
                run("llvm-as", place.path(), &["w.ll", "-o", "text.bc"]);
                assert_eq!(
                    disassembled(place.path(), "w.bc"),
                    disassembled(place.path(), "text.bc"),
                    "{kind} {abi} {triple}"
                );
                run("opt", place.path(), &["-passes=verify", "-disable-output", "w.bc"]);
                count += 1;
            }
        }
    }
    assert!(count >= 24, "{count}");
}

#[test]
fn openmp_is_its_text() {
    compare(OffloadKind::OPENMP);
}

#[test]
fn cuda_is_its_text() {
    compare(OffloadKind::CUDA);
}

#[test]
fn hip_is_its_text() {
    compare(OffloadKind::HIP);
}

#[test]
fn sycl_is_its_text() {
    compare(OffloadKind::SYCL);
}

/// A line of LLVM's text with the alignments that we have on purpose: LLVM says nothing of fatbinaries, whose alignments then
/// depend on their size.
fn with_our_alignments(line: &str) -> String {
    match line {
        _ if line.contains("section \".nv_fatbin\"") => format!("{line}, align 8"),
        _ if line.contains("section \".hip_fatbin\"") => format!("{line}, align 4096"),
        _ => line.to_owned(),
    }
}

/// `llc` makes the same bytes of our bitcode and of LLVM's, where the description is the same.
#[test]
#[ignore = "slow: .ci/run llvm_slow"]
fn objects_are_those_of_llvm() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let llc = |input, output| {
        let args = ["-filetype=obj", "-relocation-model=pic", input, "-o", output];
        run("llc", place.path(), &args);
    };
    for kind in [OffloadKind::OPENMP, OffloadKind::CUDA, OffloadKind::HIP] {
        for triple in [LINUX, "aarch64-unknown-linux-gnu", "riscv64-unknown-linux-gnu"] {
            for (index, images) in images(kind).iter().enumerate() {
                let images: Vec<_> = images.iter().map(Vec::as_slice).collect();
                let names: Vec<_> =
                    (0..images.len()).map(|image| format!("image{image}")).collect();
                for (name, image) in names.iter().zip(&images) {
                    fs::write(at(name), image).unwrap();
                }
                let (kind_arg, triple_arg) =
                    (format!("--kind={kind}"), format!("--triple={triple}"));
                let mut args = vec![&*kind_arg, &triple_arg, "-o", "theirs.bc"];
                args.extend(names.iter().map(String::as_str));
                run("llvm-offload-wrapper", place.path(), &args);
                let text = run("llvm-dis", place.path(), &["theirs.bc", "-o", "-"]);
                let text = text.lines().map(with_our_alignments).collect::<Vec<_>>().join("\n");
                fs::write(at("theirs.ll"), text).unwrap();
                llc("theirs.ll", "theirs.o");

                let target = Target::new(triple).unwrap();
                let wrapper = Wrapper::new(kind, Abi::Current, target)
                    .with_images(images.iter().copied().map(Image::from_bytes))
                    // LLVM unwraps packages of OpenMP only.
                    .with_keep_packages(kind != OffloadKind::OPENMP)
                    .with_llvm_code(true);
                let layout = wrapper.module().unwrap().bitcode().unwrap();
                fs::write(at("ours.bc"), layout.to_vec(&images).unwrap()).unwrap();
                llc("ours.bc", "ours.o");
                assert!(
                    fs::read(at("ours.o")).unwrap() == fs::read(at("theirs.o")).unwrap(),
                    "{kind} {triple}, set {index} of images"
                );
            }
        }
    }
}

/// All that reads bitcode between a compiler and a program.
#[test]
fn every_reader_accepts_it() {
    let place = tempfile::tempdir().unwrap();
    let images = Wrapper::KINDS.into_iter().flat_map(|kind| [(kind, 256_u32), (kind, LARGE)]);
    for (kind, size) in images {
        let image = pattern(size);
        let module = module(kind, Abi::Current, LINUX, std::slice::from_ref(&image)).unwrap();
        let layout = module.bitcode().unwrap();
        fs::write(place.path().join("w.bc"), layout.to_vec(&[&image]).unwrap()).unwrap();

        run("clang", place.path(), &["-c", "-fPIC", "-x", "ir", "w.bc", "-o", "w.o"]);
        // With the options of a linker that optimises.
        run("ld.lld", place.path(), &["-shared", "w.bc", "-o", "lto.so"]);
        run("ld.lld", place.path(), &["-shared", "w.o", "-o", "w.so"]);
        for name in ["lto.so", "w.so"] {
            let linked = fs::read(place.path().join(name)).unwrap();
            assert!(linked.windows(image.len()).any(|found| found == image), "{kind} {name}");
        }
        let symbols = run("llvm-nm", place.path(), &["w.bc"]);
        let symbol = if kind == OffloadKind::SYCL { "__sycl_register_lib" } else { "atexit" };
        assert!(symbols.contains(symbol), "{kind}: {symbols}");
        let analysis = run("llvm-bcanalyzer", place.path(), &["w.bc"]);
        assert!(analysis.contains("Stream type: LLVM IR"), "{kind}: {analysis}");
        // Large images have padding in front.
        assert_eq!(analysis.contains("Block ID #4095"), size == LARGE, "{kind}: {analysis}");
    }
}
