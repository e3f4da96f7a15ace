//! Kernels that rustc compiles, in one program for several GPUs: rustc's own step takes one.
//!
//! Needs a nightly rustc with LLVM's backends, and LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points.

use std::fs;
use std::path::Path;

use crate::common::{Arg, run, start};
use crate::llvm::llvm;
use crate::machine::not_tested;

const HOST: &str = "x86_64-unknown-linux-gnu";
const GPUS: [&str; 2] = ["gfx90a", "gfx1100"];

/// Kernels, without the core library: this compiles for GPUs in no time.
const DEVICE: &str = r#"
#![feature(no_core, lang_items, abi_gpu_kernel)]
#![no_core]
#![allow(internal_features)]
#[lang = "pointee_sized"]
pub trait PointeeSized {}
#[lang = "meta_sized"]
pub trait MetaSized: PointeeSized {}
#[lang = "sized"]
pub trait Sized: MetaSized {}
#[lang = "copy"]
pub trait Copy {}
impl Copy for f32 {}
#[unsafe(no_mangle)]
pub unsafe extern "gpu-kernel" fn one(values: *mut f32) { unsafe { *values = 1.0; } }
#[unsafe(no_mangle)]
pub unsafe extern "gpu-kernel" fn two(values: *mut f32) { unsafe { *values = 2.0; } }
"#;

/// The host: what rustc makes of launches, and a runtime that says what is registered.
const PROGRAM: &str = r#"
use std::ffi::{CStr, c_char, c_void};
#[unsafe(export_name = ".one.region_id")]
static ONE: u8 = 0;
#[unsafe(export_name = ".two.region_id")]
static TWO: u8 = 0;
#[repr(C)]
struct Entry { reserved: u64, version: u16, kind: u16, flags: u32, address: *const u8, name: *const c_char, rest: [u64; 3] }
#[repr(C)]
struct Image { start: *const u8, end: *const u8, entries: [*const Entry; 2] }
#[repr(C)]
struct Library { count: i32, images: *const Image, start: *const Entry, end: *const Entry }
#[unsafe(no_mangle)]
extern "C" fn __tgt_register_lib(library: &Library) {
    for n in 0..library.count as usize {
        let image = unsafe { &*library.images.add(n) };
        let len = image.end as usize - image.start as usize;
        let magic = unsafe { std::slice::from_raw_parts(image.start, 4) };
        println!("image of {len} bytes: {magic:02x?}");
    }
    let mut entry = library.start;
    while entry < library.end {
        let found = unsafe { &*entry };
        let name = unsafe { CStr::from_ptr(found.name) }.to_str().unwrap();
        let known = [(&raw const ONE, "one"), (&raw const TWO, "two")];
        let is_known = known.contains(&(found.address, name));
        println!("{name} {} {} {is_known}", found.version, found.kind);
        entry = unsafe { entry.add(1) };
    }
}
#[unsafe(no_mangle)]
extern "C" fn __tgt_unregister_lib(_: *const c_void) {}
fn main() {}
"#;

fn rustc(place: &Path, words: &str) {
    let words: Vec<_> = words.split(' ').collect();
    run(place, "rustc", &words.iter().map(|word| word as Arg<'_>).collect::<Vec<_>>());
}

#[test]
fn kernels_of_rustc_are_registered_for_each_gpu() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let root = start(place, "rustc", &[&"+nightly", &"--print", &"sysroot"]);
    if !root.status.success() {
        return not_tested("device code of rustc: no nightly compiler");
    }
    let root = String::from_utf8(root.stdout).unwrap();
    let lld = format!("{}/lib/rustlib/{HOST}/bin/rust-lld", root.trim());
    fs::write(place.join("device.rs"), DEVICE).unwrap();
    fs::write(place.join("main.rs"), PROGRAM).unwrap();
    for gpu in GPUS {
        let target = format!("--target amdgcn-amd-amdhsa -Ctarget-cpu={gpu}");
        rustc(
            place,
            &format!("+nightly --crate-type lib -O {target} --emit llvm-bc={gpu}.bc device.rs"),
        );
    }
    let codes = GPUS.map(|gpu| format!("{gpu}={gpu}.bc"));
    let words: [Arg<'_>; 7] = [&".", &HOST, &lld, &"no-ptxas", &"one,two", &codes[0], &codes[1]];
    run(place, env!("CARGO_BIN_EXE_rustc_step"), &words);

    // The package is the one that rustc's own step writes for one GPU: LLVM's, with the triple before the processor.
    let ours = fs::read(place.join("device.bin")).unwrap();
    let mut theirs = Vec::new();
    for gpu in GPUS {
        let image =
            format!("--image=file={gpu}.bc,triple=amdgcn-amd-amdhsa,arch={gpu},kind=openmp");
        run(place, &llvm("bin/llvm-offload-binary"), &[&"-o", &"one.bin", &image]);
        let mut one = fs::read(place.join("one.bin")).unwrap();
        // Two entries of 16 bytes: LLVM's tool has the processor first.
        one[0x48..0x68].rotate_left(16);
        theirs.extend(one);
    }
    assert!(ours == theirs);
    let objects =
        "-Clink-arg=entries.o -Clink-arg=registration.o -Clink-arg=-Wl,-z,nostart-stop-gc";
    rustc(place, &format!("--edition 2024 -O {objects} main.rs"));
    let said = run(place, "./main", &[]);
    let images = said.lines().filter(|line| line.starts_with("image of "));
    assert!(images.clone().all(|line| line.ends_with(": [7f, 45, 4c, 46]")), "{said}");
    assert_eq!(images.count(), 2, "{said}");
    assert!(said.ends_with("one 1 1 true\ntwo 1 1 true\n"), "{said}");
}
