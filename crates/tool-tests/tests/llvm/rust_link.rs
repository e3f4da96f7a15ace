//! Objects of clang 22 in a Rust program: what `offload link` makes and prints is what rustc's default linker needs.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points; fails without it.

use crate::common::place::Place;
use crate::common::{llvm, stderr, tool};

const KERNEL: &str = r#"
struct dim3 { unsigned x, y, z; };
extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, void *);
__attribute__((global)) void k1(int *p) { *p = 1; }
"#;

/// Says what it is called with.
const RUNTIME: &str = r#"
#include <stdio.h>
void **__hipRegisterFatBinary(void *wrapper) { puts("images"); return 0; }
void __hipUnregisterFatBinary(void **handle) {}
void __hipRegisterFunction(void **handle, void *host, char *symbol, char *name, int threads, void *a, void *b, void *c,
                           void *d, int *e) { puts(name); }
void __hipRegisterVar() {}
void __hipRegisterManagedVar() {}
void __hipRegisterSurface() {}
void __hipRegisterTexture() {}
int __hipPopCallConfiguration() { return 0; }
int hipLaunchKernel() { return 0; }
"#;

#[test]
fn a_rust_program_has_the_kernels_of_clang() {
    let place = Place::new();
    place.put("k1.hip", KERNEL);
    place.put("runtime.c", RUNTIME);
    place.put("main.rs", "fn main() {}\n");
    let clang = llvm("clang");
    let hip = "-xhip -c -fPIC -O2 --offload-new-driver -fgpu-rdc -nogpulib -nogpuinc k1.hip";
    let hip: Vec<_> = hip.split(' ').chain(["--offload-arch=gfx90a,gfx1100"]).collect();
    place.run(&clang, &hip);
    place.run(&clang, &["-c", "-fPIC", "-w", "runtime.c"]);
    let tools = clang.parent().unwrap().display();
    let path = format!("PATH={tools}:{}", std::env::var("PATH").unwrap());
    let offload = tool("offload");
    let link = [&path, offload, "link", "-o", "images.o", "k1.o"];
    assert_eq!(place.run("env", &link), "");
    let printed = place.run("env", &[&link[..], &["--print-link-args"]].concat());
    let objects = ["k1.o", "images.o", "runtime.o"];
    let rustc = |arguments: &[&str]| {
        let all = objects.iter().chain(arguments).map(|argument| format!("-Clink-arg={argument}"));
        let all: Vec<_> = ["main.rs".to_owned()].into_iter().chain(all).collect();
        let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
        place.try_run(rustc, &all.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let output = rustc(&printed.lines().collect::<Vec<_>>());
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(place.run("./main", &[]), "images\n_Z2k1Pi\n");
    // Without the arguments the link fails, or the program has its kernels.
    let output = rustc(&[]);
    if output.status.success() {
        assert_eq!(place.run("./main", &[]), "images\n_Z2k1Pi\n");
    } else {
        let symbol = "undefined hidden symbol: __start_llvm_offload_entries";
        assert!(stderr(&output).contains(symbol), "{}", stderr(&output));
    }
}
