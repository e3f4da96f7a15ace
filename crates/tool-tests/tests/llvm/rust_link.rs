//! Objects of clang 22 in a Rust program: what `offload link` makes and prints is what rustc's default linker needs.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points; fails without it.

use crate::common::machine::link_with_rustc;
use crate::common::place::Place;
use crate::common::{llvm, stderr, tool};

#[test]
fn a_rust_program_has_the_kernels_of_clang() {
    let place = Place::new();
    place.put("main.rs", "fn main() {}\n");
    let clang = llvm("clang");
    let hip = "--offload-new-driver -fgpu-rdc -nogpulib -nogpuinc";
    let hip: Vec<_> = hip.split(' ').chain(["--offload-arch=gfx90a,gfx1100"]).collect();
    place.compile(&clang, "kernels.hip", "kernels.o", &hip);
    place.compile(&clang, "registered.c", "runtime.o", &["-w"]);
    let tools = clang.parent().unwrap().display();
    let path = format!("PATH={tools}:{}", std::env::var("PATH").unwrap());
    let link = [&path, tool("offload"), "link", "-o", "images.o", "kernels.o"];
    assert_eq!(place.run("env", &link), "");
    let printed = place.run("env", &[&link[..], &["--print-link-args"]].concat());
    let directory = place.path("");
    let rustc = |arguments: &[&str]| {
        link_with_rustc(&directory, &["kernels.o", "images.o", "runtime.o"], arguments)
    };
    let has_kernels = || {
        let said = place.run("./main", &[]);
        assert!(said.starts_with("__hip 48495046 "), "{said}");
        for name in ["_Z5scalePff", "variable", "table", "pool", "screen", "picture"] {
            assert_eq!(said.lines().filter(|line| *line == name).count(), 1, "{name}: {said}");
        }
    };
    let output = rustc(&printed.lines().collect::<Vec<_>>());
    assert!(output.status.success(), "{}", stderr(&output));
    has_kernels();
    // Without the arguments the link fails, or the program has its kernels.
    let output = rustc(&[]);
    if output.status.success() {
        has_kernels();
    } else {
        let symbol = "undefined hidden symbol: __start_llvm_offload_entries";
        assert!(stderr(&output).contains(symbol), "{}", stderr(&output));
    }
}
