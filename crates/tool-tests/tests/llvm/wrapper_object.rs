//! Registration code as objects: programs linked with ours and programs linked with what LLVM 22 makes call the same
//! functions of the runtime, in the same order and with the same arguments.
//!
//! The runtime is a stub that says what it is called with (`wrapper/runtime.c`); the entries are made by hand
//! (`wrapper/entries.c`). Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points, `ld.bfd`, the cross compilers
//! of Debian for AArch64 and RISC-V, and `qemu-user`; fails without them.

use std::path::{Path, PathBuf};

use crate::common::llvm;
use crate::common::place::Place;
use offload_binary::{FormatVersion, ImageEntry, ImageKind, OffloadKind};
use wrapper_ir::{Abi, Image, Target, Wrapper};

const X86_64: &str = "x86_64-unknown-linux-gnu";

/// The wrapper of images that are in memory.
fn wrapper<'a>(kind: OffloadKind, abi: Abi, triple: &str, images: &[&'a [u8]]) -> Wrapper<'a> {
    let target = Target::new(triple).unwrap();
    Wrapper::new(kind, abi, target).with_images(images.iter().map(|image| Image::from_bytes(image)))
}

fn object(wrapper: &Wrapper<'_>, images: &[&[u8]]) -> Vec<u8> {
    wrapper.module().unwrap().object().unwrap().to_vec(images).unwrap()
}

/// A package with one image.
fn package(kind: OffloadKind, image: &[u8]) -> Vec<u8> {
    let entry = ImageEntry::new(image.len() as u64)
        .with_image_kind(ImageKind::OBJECT)
        .with_offload_kind(kind)
        .with_string("triple", "x86_64-pc-linux-gnu")
        .with_string("arch", "");
    offload_binary::layout(FormatVersion::V1, &[entry]).unwrap().to_vec(&[image]).unwrap()
}

/// A fatbinary as the stub looks at it: 16 bytes.
const FATBIN: &[u8] = b"\x50\xed\x55\xba\x01\x00\x10\x00fatbin\x00\xff";

/// Way to link a program.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Link {
    Pie,
    NoPie,
    Shared,
}

/// The log of a program made of entries, stub runtime and `wrappers`.
fn log(place: &Place, linker: &Path, link: Link, wrappers: &[&str], options: &[&str]) -> String {
    let (clang, ld) = (llvm("clang"), format!("--ld-path={}", linker.display()));
    let mut arguments = vec![&ld[..], "-Wl,--fatal-warnings", "-o", "linked", "entries.o"];
    arguments.extend(wrappers);
    arguments.extend(options);
    match link {
        Link::Shared => {
            arguments.extend(["-shared", "-Wl,-z,defs", "runtime.o"]);
            place.run(&clang, &arguments);
            place.compile(&clang, "main.c", "loader.o", &["-DLOADER"]);
            place.run(&clang, &["loader.o", "-ldl", "-o", "loader"]);
            place.run(place.path("loader"), &["./linked"])
        }
        _ => {
            arguments.push(if link == Link::Pie { "-pie" } else { "-no-pie" });
            arguments.extend(["runtime.o", "main.o"]);
            place.run(&clang, &arguments);
            place.run(place.path("linked"), &[])
        }
    }
}

fn linkers() -> [PathBuf; 2] {
    ["/usr/bin/ld.bfd".into(), llvm("ld.lld")]
}

/// Compiles the parts of a program for this machine other than the wrapper.
fn compile_host(place: &Place, kind: u32, runtime: &[&str]) {
    let clang = llvm("clang");
    place.compile(&clang, "entries.c", "entries.o", &[&format!("-DKIND={kind}")]);
    place.compile(&clang, "runtime.c", "runtime.o", runtime);
    place.compile(&clang, "main.c", "main.o", &[]);
}

/// The same log from ours and LLVM's, however they are linked.
fn compare(kind: OffloadKind, number: u32, images: &[&[u8]]) -> String {
    let place = Place::new();
    compile_host(&place, number, &[]);
    let wrapper = wrapper(kind, Abi::Current, X86_64, images).with_llvm_code(true);
    place.put("ours.o", object(&wrapper, images));
    let names: Vec<_> =
        (0..images.len()).map(|index| place.put(&format!("image{index}"), images[index])).collect();
    place.llvm_object(kind, X86_64, &names, "theirs.o");
    let mut seen = String::new();
    for linker in linkers() {
        for link in [Link::Pie, Link::NoPie, Link::Shared] {
            let theirs = log(&place, &linker, link, &["theirs.o"], &[]);
            let ours = log(&place, &linker, link, &["ours.o"], &[]);
            assert_eq!(ours, theirs, "{kind}, {linker:?}, {link:?}");
            if link == Link::Pie {
                seen = ours;
            }
        }
    }
    // Readable by LLVM's tools, all of it.
    place.run(llvm("llvm-readelf"), &["-aW", "ours.o"]);
    let code = place.run(llvm("llvm-objdump"), &["-dr", "ours.o"]);
    assert!(!code.contains("<unknown>"), "{code}");
    place.run(llvm("llvm-dwarfdump"), &["--eh-frame", "ours.o"]);
    seen
}

#[test]
fn openmp_programs_register_as_with_llvm() {
    let seen = compare(OffloadKind::OPENMP, 1, &[b"an image"]);
    let expected = "\
__tgt_register_lib 1 images, 11 entries
  entry kernel at kernel_host
";
    assert!(seen.starts_with(expected), "{seen}");
    assert!(seen.contains("  image 616e20696d616765, entries 0 0\nmain\n"), "{seen}");
    assert!(seen.ends_with("main\n__tgt_unregister_lib 1 images\n"), "{seen}");
}

#[test]
fn openmp_programs_register_images_of_packages() {
    let package = package(OffloadKind::OPENMP, b"the inner image");
    let seen = compare(OffloadKind::OPENMP, 1, &[b"first", &package, b"", b"last one"]);
    assert!(seen.contains("  image 74686520696e6e657220696d616765, "), "{seen}");
    assert!(seen.contains("  image , entries 0 0\n"), "{seen}");
}

#[test]
fn cuda_programs_register_as_with_llvm() {
    let seen = compare(OffloadKind::CUDA, 2, &[FATBIN]);
    let expected = "\
__cudaRegisterFatBinary 466243b1 1 50ed55ba0100100066617462696e00ff null
__cudaRegisterFunction handle kernel_host kernel kernel -1 null null null null null
__cudaRegisterVar handle variable_host variable variable 0 4 0 0
__cudaRegisterVar handle external_constant_host external_constant external_constant 1 4886718345 1 0
__cudaRegisterManagedVar handle managed_pointer managed_host managed 8 16
__cudaRegisterFunction handle type_seven_without_size_host type_seven_without_size \
type_seven_without_size -1 null null null null null
__cudaRegisterFunction handle last_kernel_host last_kernel last_kernel -1 null null null null null
__cudaRegisterFatBinaryEnd handle
main
__cudaUnregisterFatBinary handle
";
    assert_eq!(seen, expected);
}

#[test]
fn hip_programs_register_as_with_llvm() {
    let seen = compare(OffloadKind::HIP, 4, &[FATBIN]);
    let surface = "__hipRegisterSurface handle surface_host surface surface 77 1\n";
    assert!(seen.contains(surface), "{seen}");
    let texture = "__hipRegisterTexture handle texture_host texture texture 78 1 0\n";
    assert!(seen.contains(texture), "{seen}");
    let texture = "texture_external texture_external -1 0 1\n";
    assert!(seen.contains(texture), "{seen}");
}

#[test]
fn cuda_managed_variables_are_registered() {
    let place = Place::new();
    compile_host(&place, 2, &["-DCUDA_MANAGED"]);
    let wrapper = wrapper(OffloadKind::CUDA, Abi::Current, X86_64, &[FATBIN]);
    place.put("ours.o", object(&wrapper, &[FATBIN]));
    let seen = log(&place, &linkers()[0], Link::Pie, &["ours.o"], &[]);
    let line = "__cudaRegisterManagedVar handle managed_pointer managed_host managed 0 8 0 0\n";
    assert!(seen.contains(line), "{seen}");
}

/// For every kind and generation, the object does what LLVM's compiler makes of the IR text and of the bitcode, and its
/// linker of the latter.
#[test]
fn objects_text_and_bitcode_agree() {
    let clang = llvm("clang");
    for (kind, number, name) in [
        (OffloadKind::OPENMP, 1, "omp"),
        (OffloadKind::CUDA, 2, "cuda"),
        (OffloadKind::HIP, 4, "hip"),
        (OffloadKind::SYCL, 8, "sycl"),
    ] {
        for abi in Abi::ALL {
            let Ok(module) = wrapper(kind, abi, X86_64, &[FATBIN]).module() else { continue };
            let place = Place::new();
            let is_new = matches!(abi, Abi::Llvm22 | Abi::Current | Abi::Llvm24);
            let number = format!("-DKIND={number}");
            let section = format!("-DSECTION=\"{name}_offloading_entries\"");
            let old = ["-DOLD_ENTRIES", &section, "-DCUDA_MANAGED", &number];
            let options = if is_new { &old[2..] } else { &old[..] };
            place.compile(&clang, "entries.c", "entries.o", options);
            place.compile(&clang, "runtime.c", "runtime.o", options);
            place.compile(&clang, "main.c", "main.o", &[]);
            place.put("ours.o", module.object().unwrap().to_vec(&[FATBIN]).unwrap());
            let text = module.ir_to_string(&[FATBIN]).unwrap();
            place.put("ours.ll", text.as_bytes());
            let llc = ["-filetype=obj", "-relocation-model=pic", "ours.ll", "-o", "text.o"];
            place.run(llvm("llc"), &llc);
            place.put("ours.bc", module.bitcode().unwrap().to_vec(&[FATBIN]).unwrap());
            place.run(
                &clang,
                &["-c", "-fPIC", "-Wno-override-module", "-x", "ir", "ours.bc", "-o", "bitcode.o"],
            );
            let [bfd, lld] = linkers();
            let object = log(&place, &bfd, Link::Pie, &["ours.o"], &[]);
            for (linker, other) in [(&bfd, "text.o"), (&bfd, "bitcode.o"), (&lld, "-Wl,ours.bc")] {
                let other_log = log(&place, linker, Link::Pie, &[other], &[]);
                assert_eq!(object, other_log, "{kind} {abi} {other}");
            }
            assert!(object.contains("nregister"), "{object}");
        }
    }
}

#[test]
fn programs_without_entries_run() {
    for (kind, image) in [
        (OffloadKind::OPENMP, &b"image"[..]),
        (OffloadKind::CUDA, FATBIN),
        (OffloadKind::HIP, FATBIN),
    ] {
        let place = Place::new();
        compile_host(&place, 1, &[]);
        place.put("empty.c", b"");
        place.run(llvm("clang"), &["-c", "empty.c", "-o", "entries.o"]);
        place.put("ours.o", object(&wrapper(kind, Abi::Current, X86_64, &[image]), &[image]));
        for linker in linkers() {
            let seen = log(&place, &linker, Link::Pie, &["ours.o"], &[]);
            assert!(seen.contains("main\n") && !seen.contains("RegisterFunction"), "{seen}");
        }
    }
}

#[test]
fn one_program_may_have_several_wrappers() {
    let place = Place::new();
    compile_host(&place, 1, &[]);
    for (name, image) in [("one.o", b"1"), ("two.o", b"2")] {
        let wrapper = wrapper(OffloadKind::OPENMP, Abi::Current, X86_64, &[image]);
        place.put(name, object(&wrapper, &[image]));
    }
    let wrapper = wrapper(OffloadKind::HIP, Abi::Current, X86_64, &[FATBIN]);
    place.put("hip.o", object(&wrapper, &[FATBIN]));
    for linker in linkers() {
        for link in [Link::Pie, Link::NoPie, Link::Shared] {
            let seen = log(&place, &linker, link, &["one.o", "hip.o", "two.o"], &[]);
            let at = |what: &str| seen.find(what).unwrap_or_else(|| panic!("{what}: {seen}"));
            assert!(at("image 31,") < at("__hipRegisterFatBinary"), "{seen}");
            assert!(at("__hipRegisterFatBinary") < at("image 32,"), "{seen}");
            assert_eq!(seen.matches("__tgt_unregister_lib").count(), 2, "{seen}");
            assert!(at("__tgt_unregister_lib") < at("__hipUnregisterFatBinary"), "{seen}");
        }
        // Put together first, they are the same.
        place.run(&linker, &["-r", "one.o", "hip.o", "two.o", "-o", "together.o"]);
        let seen = log(&place, &linker, Link::Pie, &["together.o"], &[]);
        assert_eq!(seen.matches("__tgt_register_lib").count(), 2, "{seen}");
    }
}

#[test]
fn libraries_register_when_they_are_loaded() {
    let place = Place::new();
    compile_host(&place, 1, &[]);
    place.put(
        "ours.o",
        object(&wrapper(OffloadKind::OPENMP, Abi::Current, X86_64, &[b"i"]), &[b"i"]),
    );
    place.put("old.o", object(&wrapper(OffloadKind::SYCL, Abi::Current, X86_64, &[b"i"]), &[b"i"]));
    for linker in linkers() {
        let seen = log(&place, &linker, Link::Shared, &["ours.o", "old.o"], &[]);
        let expected = "main\n__sycl_register_lib 69\n__tgt_register_lib 1 images, 11 entries\n";
        assert!(seen.starts_with(expected), "{seen}");
        let expected = "\
loaded
__tgt_unregister_lib 1 images
__sycl_unregister_lib 69
unloaded
";
        assert!(seen.ends_with(expected), "{seen}");
    }
}

#[test]
fn unused_sections_are_dropped() {
    let place = Place::new();
    compile_host(&place, 1, &[]);
    let wrapper = wrapper(OffloadKind::OPENMP, Abi::Current, X86_64, &[b"i"]);
    place.put("plain.o", object(&wrapper, &[b"i"]));
    place.put("kept.o", object(&wrapper.clone().with_retain(true), &[b"i"]));
    let names = vec![place.put("image", b"i")];
    place.llvm_object(OffloadKind::OPENMP, X86_64, &names, "theirs.o");
    let [bfd, lld] = linkers();
    let clang = llvm("clang");
    // Entries that nothing but the bounds refers to, as compilers make them.
    place.put(
        "weak.c",
        b"#include <stdint.h>\nstruct entry { uint64_t r[7]; };\n\
        __attribute__((section(\"llvm_offload_entries\"), weak, aligned(8))) \
        const struct entry e = {0, 1 << 16};\n",
    );
    place.run(&clang, &["-c", "-fPIC", "weak.c", "-o", "entries.o"]);
    let gc = "-Wl,--gc-sections";
    for object in ["plain.o", "kept.o", "theirs.o"] {
        let link = |linker, options: &[&str]| log(&place, linker, Link::Pie, &[object], options);
        let registered = "__tgt_register_lib 1 images, ";
        assert!(link(&bfd, &[gc]).contains(&format!("{registered}1 entries")));
        let kept = link(&lld, &[gc, "-Wl,-z,nostart-stop-gc"]);
        assert!(kept.contains(&format!("{registered}1 entries")), "{object}: {kept}");
    }
    // A case that documentation warns of: entries are not retained, although the module says so.
    let ld = format!("--ld-path={}", lld.display());
    let link = ["runtime.o", "main.o", "entries.o", &ld, gc, "-o", "linked"];
    for object in ["plain.o", "theirs.o"] {
        let output = place.try_run(&clang, &[&[object][..], &link].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("undefined hidden symbol: __start_llvm_offload_entries"), "{error}");
    }
    let seen = log(&place, &lld, Link::Pie, &["kept.o"], &[gc]);
    assert!(seen.contains("__tgt_register_lib 1 images, 0 entries"), "{seen}");
}

#[test]
fn old_generations_register_their_images() {
    let images: [&[u8]; 2] = [b"one", b"two"];
    for (abi, has_exit) in [(Abi::Aomp, false), (Abi::Llvm18, false), (Abi::Llvm19, true)] {
        let place = Place::new();
        let clang = llvm("clang");
        let old = ["-DOLD_ENTRIES", "-DSECTION=\"omp_offloading_entries\""];
        place.compile(&clang, "entries.c", "entries.o", &old);
        place.compile(&clang, "runtime.c", "runtime.o", &old);
        place.compile(&clang, "main.c", "main.o", &[]);
        let mut both: Vec<_> = images.iter().map(|image| Image::from_bytes(image)).collect();
        if abi == Abi::Aomp {
            let ids = ["gfx906", "gfx90a:xnack+"];
            both = both.into_iter().zip(ids).map(|(image, id)| image.with_target_id(id)).collect();
        }
        let wrapper =
            Wrapper::new(OffloadKind::OPENMP, abi, Target::new(X86_64).unwrap()).with_images(both);
        place.put("ours.o", object(&wrapper, &images));
        let mut expected = String::new();
        if abi == Abi::Aomp {
            expected += "__tgt_register_image_info 1: 0 of 2, gfx906, null\n";
            expected += "__tgt_register_image_info 1: 1 of 2, gfx90a:xnack+, null\n";
        }
        expected += "__tgt_register_lib 2 images, 11 entries\n  entry kernel at kernel_host\n";
        for linker in linkers() {
            for link in [Link::Pie, Link::NoPie, Link::Shared] {
                let seen = log(&place, &linker, link, &["ours.o"], &[]);
                let seen = seen.strip_prefix("main\n").unwrap_or(&seen);
                assert!(seen.starts_with(&expected), "{abi}: {seen}");
                assert!(seen.contains("__tgt_unregister_lib 2 images\n"), "{abi}: {seen}");
            }
        }
        let symbols = place.run(llvm("llvm-nm"), &["ours.o"]);
        assert_eq!(symbols.contains("atexit"), has_exit, "{abi}: {symbols}");
        if abi != Abi::Aomp {
            continue;
        }
        // One object for both runtimes.
        place.put("weak.o", object(&wrapper.clone().with_weak_image_info(true), &images));
        for (options, expected) in
            [(&[][..], &expected[..]), (&["-DNO_IMAGE_INFO"], "__tgt_register_lib 2")]
        {
            place.compile(&clang, "runtime.c", "runtime.o", &[&old[..], options].concat());
            for linker in linkers() {
                for link in [Link::Pie, Link::NoPie, Link::Shared] {
                    let seen = log(&place, &linker, link, &["weak.o"], &[]);
                    let seen = seen.strip_prefix("main\n").unwrap_or(&seen);
                    assert!(seen.starts_with(expected), "{seen}");
                }
            }
        }
        // Every target ID is there, the linker merges none.
        place.compile(&clang, "runtime.c", "runtime.o", &old);
        let same = |id| Image::from_bytes(b"one").with_target_id(id);
        let images: [&[u8]; 2] = [b"one", b"one"];
        let wrapper = Wrapper::new(OffloadKind::OPENMP, abi, Target::new(X86_64).unwrap())
            .with_images([same("gfx906"), same("gfx906")]);
        place.put("same.o", object(&wrapper, &images));
        log(&place, &linkers()[1], Link::Pie, &["same.o"], &["-Wl,-O2"]);
        let list = ["-p", ".offload_arch_list", "linked"];
        let list = place.run(llvm("llvm-readelf"), &list);
        assert_eq!(list.matches("gfx906").count(), 2, "{list}");
    }
}

#[test]
fn sycl_programs_register_their_package() {
    let package = package(OffloadKind::SYCL, b"spirv");
    let images: [&[u8]; 1] = [&package];
    let hex: String = package.iter().map(|byte| format!("{byte:02x}")).collect();
    let expected = format!("__sycl_register_lib {hex}\nmain\n__sycl_unregister_lib {hex}\n");
    for abi in [Abi::Current, Abi::Llvm24] {
        let place = Place::new();
        compile_host(&place, 8, &[]);
        place.put("ours.o", object(&wrapper(OffloadKind::SYCL, abi, X86_64, &images), &images));
        for linker in linkers() {
            assert_eq!(log(&place, &linker, Link::Pie, &["ours.o"], &[]), expected);
        }
    }
}

#[test]
fn tools_find_packages_only() {
    let place = Place::new();
    let package = package(OffloadKind::OPENMP, b"the inner image");
    for (name, image) in [("package.o", &package[..]), ("raw.o", b"raw")] {
        let wrapper = wrapper(OffloadKind::OPENMP, Abi::Current, X86_64, &[image]);
        place.put(name, object(&wrapper, &[image]));
        place.put(&format!("r-{name}"), object(&wrapper.with_relocatable(true), &[image]));
    }
    let found = place.run(llvm("llvm-objdump"), &["--offloading", "package.o"]);
    assert!(found.contains("triple          x86_64-pc-linux-gnu"), "{found}");
    for name in ["raw.o", "r-package.o", "r-raw.o"] {
        let found = place.run(llvm("llvm-objdump"), &["--offloading", name]);
        assert!(!found.contains("OFFLOADING IMAGE"), "{found}");
    }
}

#[test]
fn objects_support_landing_pads_and_shadow_stacks() {
    let place = Place::new();
    place.put(
        "ours.o",
        object(&wrapper(OffloadKind::OPENMP, Abi::Current, X86_64, &[b"i"]), &[b"i"]),
    );
    place.run(
        llvm("ld.lld"),
        &["-shared", "-z", "cet-report=error", "-z", "force-ibt", "ours.o", "-o", "x86.so"],
    );
    let target = "aarch64-unknown-linux-gnu";
    place.put(
        "arm.o",
        object(&wrapper(OffloadKind::OPENMP, Abi::Current, target, &[b"i"]), &[b"i"]),
    );
    place.run(
        llvm("ld.lld"),
        &["-shared", "-z", "bti-report=error", "-z", "force-bti", "arm.o", "-o", "arm.so"],
    );
}

/// Links with the compilers of another machine and runs in its emulator.
fn cross(machine: &str, sysroot: &str) {
    let triple = format!("{machine}-unknown-linux-gnu");
    let gcc = format!("{machine}-linux-gnu-gcc");
    let emulator = format!("qemu-{machine}");
    let bfd = format!("{machine}-linux-gnu-ld");
    for (kind, number, images) in [
        (OffloadKind::OPENMP, 1, &[b"one", b"two".as_slice()][..]),
        (OffloadKind::CUDA, 2, &[FATBIN]),
        (OffloadKind::HIP, 4, &[FATBIN]),
        (OffloadKind::SYCL, 8, &[b"spirv"]),
    ] {
        let place = Place::new();
        let number = format!("-DKIND={number}");
        place.compile(&gcc, "entries.c", "entries.o", &[&number]);
        place.compile(&gcc, "runtime.c", "runtime.o", &[]);
        place.compile(&gcc, "main.c", "main.o", &[]);
        place.compile(&gcc, "main.c", "loader.o", &["-DLOADER"]);
        let wrapper = wrapper(kind, Abi::Current, &triple, images).with_llvm_code(true);
        place.put("ours.o", object(&wrapper, images));
        let code = place.run(llvm("llvm-objdump"), &["-dr", "ours.o"]);
        assert!(!code.contains("<unknown>"), "{code}");
        // This machine is the reference: its programs are compared with LLVM's above.
        let host = Place::new();
        let clang = llvm("clang");
        host.compile(&clang, "entries.c", "entries.o", &[&number]);
        host.compile(&clang, "runtime.c", "runtime.o", &[]);
        host.compile(&clang, "main.c", "main.o", &[]);
        let wrapper = self::wrapper(kind, Abi::Current, X86_64, images);
        host.put("ours.o", object(&wrapper.with_llvm_code(true), images));
        let expected = log(&host, &linkers()[1], Link::Pie, &["ours.o"], &[]);

        let lld = llvm("ld.lld");
        for linker in [None, Some(&lld)] {
            // gcc finds its linker by name, in a directory.
            let directory = linker.map(|lld| {
                std::os::unix::fs::symlink(lld, place.path("ld")).unwrap();
                format!("-B{}", place.path("").display())
            });
            let own: Vec<&str> = directory.iter().map(String::as_str).collect();
            let objects = ["entries.o", "ours.o", "runtime.o"];
            for mode in ["-static", "-pie", "-no-pie"] {
                let arguments = [&own[..], &objects, &["main.o", mode, "-o", "linked"]].concat();
                place.run(&gcc, &arguments);
                let seen = place.run(&emulator, &["-L", sysroot, "linked"]);
                assert_eq!(seen, expected, "{machine}, {kind}, {mode}, {linker:?}");
            }
            let arguments = [&own[..], &objects, &["-shared", "-o", "linked.so"]].concat();
            place.run(&gcc, &arguments);
            place.run(&gcc, &["loader.o", "-ldl", "-o", "loader"]);
            let seen = place.run(&emulator, &["-L", sysroot, "loader", "./linked.so"]);
            let (before, after) = seen.split_once("loaded\n").unwrap();
            assert!(before.contains("egister") && after.contains("nregister"), "{seen}");
        }
        place.run(&bfd, &["-r", "ours.o", "-o", "again.o"]);
    }
}

#[test]
fn programs_for_aarch64_run() {
    cross("aarch64", "/usr/aarch64-linux-gnu");
}

#[test]
fn programs_for_riscv64_run() {
    cross("riscv64", "/usr/riscv64-linux-gnu");
}

#[test]
fn weak_functions_may_be_defined_elsewhere() {
    for machine in ["aarch64", "riscv64"] {
        let triple = format!("{machine}-unknown-linux-gnu");
        let gcc = format!("{machine}-linux-gnu-gcc");
        let place = Place::new();
        let old = ["-DOLD_ENTRIES", "-DSECTION=\"omp_offloading_entries\""];
        place.compile(&gcc, "entries.c", "entries.o", &old);
        place.compile(&gcc, "main.c", "main.o", &[]);
        let image = Image::from_bytes(b"i").with_target_id("gfx906");
        let wrapper = Wrapper::new(OffloadKind::OPENMP, Abi::Aomp, Target::new(&triple).unwrap())
            .with_image(image)
            .with_weak_image_info(true);
        place.put("ours.o", object(&wrapper, &[b"i"]));
        for (options, count) in [(&[][..], 1), (&["-DNO_IMAGE_INFO"], 0)] {
            place.compile(&gcc, "runtime.c", "runtime.o", &[&old[..], options].concat());
            for mode in ["-static", "-pie"] {
                let objects = ["entries.o", "ours.o", "runtime.o", "main.o"];
                place.run(&gcc, &[&objects[..], &[mode, "-o", "linked"]].concat());
                let sysroot = format!("/usr/{machine}-linux-gnu");
                let seen = place.run(format!("qemu-{machine}"), &["-L", &sysroot, "linked"]);
                let line = "__tgt_register_image_info 1: 0 of 1, gfx906, null\n";
                assert_eq!(seen.matches(line).count(), count, "{seen}");
                assert!(seen.contains("__tgt_register_lib 1 images, 11 entries"), "{seen}");
            }
        }
    }
}

#[test]
fn the_stack_can_be_unwound() {
    let machines = [("x86_64", ""), ("aarch64", "qemu-aarch64"), ("riscv64", "qemu-riscv64")];
    for (machine, emulator) in machines {
        let gcc =
            if emulator.is_empty() { "gcc".into() } else { format!("{machine}-linux-gnu-gcc") };
        for (kind, number, expected) in [(OffloadKind::OPENMP, 1, 2), (OffloadKind::HIP, 4, 3)] {
            let place = Place::new();
            place.compile(&gcc, "entries.c", "entries.o", &[&format!("-DKIND={number}")]);
            let unwind = ["-DUNWIND", "-funwind-tables"];
            place.compile(&gcc, "runtime.c", "runtime.o", &unwind);
            place.compile(&gcc, "main.c", "main.o", &[]);
            let triple = format!("{machine}-unknown-linux-gnu");
            let wrapper = wrapper(kind, Abi::Current, &triple, &[FATBIN]);
            place.put("ours.o", object(&wrapper, &[FATBIN]));
            let objects = ["entries.o", "ours.o", "runtime.o", "main.o", "-o", "linked"];
            place.run(&gcc, &objects);
            let sysroot = format!("/usr/{machine}-linux-gnu");
            let seen = match emulator {
                "" => place.run(place.path("linked"), &[]),
                _ => place.run(emulator, &["-L", &sysroot, "linked"]),
            };
            assert_eq!(seen.matches("frames go on\n").count(), expected, "{machine}: {seen}");
            assert!(!seen.contains("frames end here"), "{machine}: {seen}");
        }
    }
}

#[test]
fn private_entries_are_registered_by_their_own_wrapper() {
    let place = Place::new();
    compile_host(&place, 1, &[]);
    let clang = llvm("clang");
    let section = "-DSECTION=\"llvm_offload_entries_0123\"";
    place.compile(&clang, "entries.c", "own.o", &[section]);
    place.put("empty.c", b"");
    place.run(&clang, &["-c", "empty.c", "-o", "entries.o"]);
    let wrapper = wrapper(OffloadKind::OPENMP, Abi::Current, X86_64, &[b"i"]);
    place.put("public.o", object(&wrapper, &[b"i"]));
    place.put("private.o", object(&wrapper.with_private_entries("0123"), &[b"i"]));
    for linker in linkers() {
        let seen = log(&place, &linker, Link::Pie, &["public.o", "own.o", "private.o"], &[]);
        assert_eq!(seen.matches("register_lib 1 images, 0 entries").count(), 1, "{seen}");
        assert_eq!(seen.matches("register_lib 1 images, 11 entries").count(), 1, "{seen}");
    }
}
