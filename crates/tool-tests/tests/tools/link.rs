//! Registration objects in programs that `rustc` links with its defaults: `rust-lld --gc-sections` since Rust 1.90,
//! `cc` with its default linker before that. The runtime is a stub that prints its arguments
//! (`wrapper/runtime.c`), the entries are made by hand (`wrapper/entries.c`).

use std::fs;
use std::path::Path;

use crate::common::machine::{link_with_rustc, runnable_directory};
use crate::common::{printed_in, stderr, tool};
use tempfile::TempDir;
use wrapper_ir::{Abi, Entries, Image, OffloadEntry, OffloadKind, Target, Wrapper};

/// An image of the length that the stub prints.
const IMAGE: &[u8] = b"a fatbinary that nobody runs";

const MODELS: [(&str, u32, &str); 3] = [
    ("openmp", 1, "__tgt_register_lib 1 images, 11 entries\n  entry kernel at kernel_host\n"),
    ("cuda", 2, "__cudaRegisterFunction handle kernel_host kernel kernel -1"),
    ("hip", 4, "__hipRegisterFunction handle kernel_host kernel kernel -1"),
];

fn good(place: &Path, tool: &str, arguments: &[&str]) -> String {
    printed_in(tool, arguments, place)
}

/// A directory with the runtime, the entries that `cc` compiles with `options`, and a program in Rust.
fn place(options: &[&str]) -> TempDir {
    let place = runnable_directory();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wrapper");
    for name in ["entries", "runtime"] {
        let (source, object) = (sources.join(format!("{name}.c")), format!("{name}.o"));
        let fixed = ["-c", "-O0", "-fPIC", source.to_str().unwrap(), "-o", &object];
        good(place.path(), "cc", &[&fixed[..], options].concat());
    }
    fs::write(place.path().join("image"), IMAGE).unwrap();
    fs::write(place.path().join("main.rs"), "fn main() { println!(\"main\") }\n").unwrap();
    place
}

/// Links the objects, and returns what the program prints.
fn linked(place: &Path, objects: &[&str], arguments: &[&str]) -> String {
    let output = link_with_rustc(place, objects, arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    good(place, "./main", &[])
}

/// Wraps the image, and returns the arguments for the link.
fn wrap(place: &Path, kind: &str, options: &[&str]) -> Vec<String> {
    let fixed = ["wrap", "--kind", kind, "-o", "wrapper.o", "--print-link-args", "image"];
    let printed = good(place, tool("offload"), &[&fixed[..], options].concat());
    printed.lines().map(str::to_owned).collect()
}

/// Entries as clang makes them: the linker keeps them with an argument.
#[test]
fn entries_of_compilers_are_registered() {
    for abi in ["current", "24"] {
        for (kind, number, expected) in MODELS {
            let place = place(&[&format!("-DKIND={number}")]);
            let place = place.path();
            let arguments = wrap(place, kind, &["--abi", abi]);
            let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
            assert_eq!(arguments, ["-Wl,-z,nostart-stop-gc"]);
            let objects = ["wrapper.o", "entries.o", "runtime.o"];
            let seen = linked(place, &objects, &arguments);
            assert!(seen.contains(expected) && seen.contains("\nmain\n"), "{kind}: {seen}");

            // Without the argument the link fails, or the program has its kernels.
            fs::remove_file(place.join("main")).unwrap();
            let output = link_with_rustc(place, &objects, &[]);
            if output.status.success() {
                let seen = good(place, "./main", &[]);
                assert!(seen.contains(expected), "{kind}: {seen}");
            } else {
                let symbol = "undefined hidden symbol: __start_llvm_offload_entries";
                assert!(stderr(&output).contains(symbol), "{}", stderr(&output));
            }
        }
    }
}

/// Entries in sections with `SHF_GNU_RETAIN` need no arguments.
#[test]
fn retained_entries_are_registered_without_arguments() {
    for (kind, number, expected) in MODELS {
        let place = place(&[&format!("-DKIND={number}"), "-DRETAIN"]);
        let place = place.path();
        wrap(place, kind, &[]);
        let seen = linked(place, &["wrapper.o", "entries.o", "runtime.o"], &[]);
        assert!(seen.contains(expected) && seen.contains("\nmain\n"), "{kind}: {seen}");
    }
}

/// Entries, wrapper and the stand-in for the kernel are all made in Rust; only the runtime is C.
#[test]
fn entries_of_wrapper_ir_are_registered() {
    const MAIN: &str = "#[no_mangle]\npub static kernel_host: [u8; 12] = *b\"kernel_host\\0\";\nfn main() { println!(\"main\") }\n";

    for abi in [Abi::Current, Abi::Llvm24] {
        for (kind, _, expected) in MODELS {
            let expected = expected.replace("11 entries", "1 entries");
            let place = place(&[]);
            let place = place.path();
            fs::write(place.join("main.rs"), MAIN).unwrap();
            wrap(place, kind, &["--abi", abi.name()]);
            let entries = |retain| {
                let target = Target::new("x86_64-unknown-linux-gnu").unwrap();
                let module = Entries::new(OffloadKind::from_name(kind).unwrap(), abi, target)
                    .with_entry(OffloadEntry::kernel("kernel", "kernel_host"))
                    .with_retain(retain)
                    .module()
                    .unwrap();
                let object = module.object().unwrap().to_vec(&[]).unwrap();
                fs::write(place.join("entries.o"), object).unwrap();
                module.compiler_args()
            };
            for retain in [true, false] {
                let arguments = entries(retain);
                assert_eq!(arguments.is_empty(), retain);
                let objects = ["entries.o", "wrapper.o", "runtime.o"];
                let seen = linked(place, &objects, arguments);
                assert!(seen.contains(&expected) && seen.contains("\nmain\n"), "{kind}: {seen}");
            }
        }
    }
}

/// Two libraries in one program, each with a wrapper and entries that no other wrapper sees.
#[test]
fn private_entries_are_registered_by_their_wrapper_only() {
    const MAIN: &str = "#[no_mangle]\npub static here: [u8; 5] = *b\"here\\0\";\nfn main() {}\n";

    let place = place(&[]);
    let place = place.path();
    fs::write(place.join("main.rs"), MAIN).unwrap();
    let mut objects = vec!["runtime.o".to_owned()];
    let mut arguments = Vec::new();
    for name in ["one", "two"] {
        let target = || Target::new("x86_64-unknown-linux-gnu").unwrap();
        let wrapper = Wrapper::new(OffloadKind::OPENMP, Abi::Current, target())
            .with_image(Image::from_bytes(name.as_bytes()))
            .with_private_entries(name)
            .module()
            .unwrap();
        let entries = Entries::new(OffloadKind::OPENMP, Abi::Current, target())
            .with_entry(OffloadEntry::kernel(name, "here"))
            .with_private_entries(name)
            .module()
            .unwrap();
        let (wrapper_name, entries_name) = (format!("{name}.o"), format!("{name}-entries.o"));
        let object = wrapper.object().unwrap().to_vec(&[name.as_bytes()]).unwrap();
        fs::write(place.join(&wrapper_name), object).unwrap();
        let object = entries.object().unwrap().to_vec(&[]).unwrap();
        fs::write(place.join(&entries_name), object).unwrap();
        objects.extend([wrapper_name, entries_name]);
        arguments = wrapper.compiler_args().to_vec();
    }
    let objects: Vec<_> = objects.iter().map(String::as_str).collect();
    for arguments in [&arguments[..], &[]] {
        let seen = linked(place, &objects, arguments);
        for (name, image) in [("one", "6f6e65"), ("two", "74776f")] {
            let expected = format!(
                "__tgt_register_lib 1 images, 1 entries\n  entry {name} at here\n  image {image},"
            );
            assert!(seen.contains(&expected), "{seen}");
        }
    }
}

#[test]
fn sycl_images_are_registered_without_entries() {
    let place = place(&[]);
    let place = place.path();
    assert_eq!(wrap(place, "sycl", &[]), [""; 0]);
    let seen = linked(place, &["wrapper.o", "runtime.o"], &[]);
    assert!(seen.contains("__sycl_register_lib 61206661") && seen.contains("\nmain\n"), "{seen}");
}
