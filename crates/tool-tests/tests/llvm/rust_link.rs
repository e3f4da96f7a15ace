//! Objects of clang 22 in a Rust program: what `offload link` makes and prints is what rustc's default linker needs.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points; fails without it.

use std::fs;

use crate::common::machine::link_with_rustc;
use crate::common::place::Place;
use crate::common::{llvm, new_command, stderr, tool};

const HIP: [&str; 5] = [
    "--offload-new-driver",
    "-fgpu-rdc",
    "-nogpulib",
    "-nogpuinc",
    "--offload-arch=gfx90a,gfx1100",
];
/// Kernels and variables of `kernels.hip`, in the order of its entries.
const ENTRIES: [&str; 6] = ["_Z5scalePff", "variable", "table", "pool", "screen", "picture"];
/// Its names that are others in another library, and their entries.
const OTHER_NAMES: [&str; 6] = ["scale", "variable", "table", "pool", "screen", "picture"];
const OTHER_ENTRIES: [&str; 6] =
    ["_Z9scale_twoPff", "variable_two", "table_two", "pool_two", "screen_two", "picture_two"];

/// Makes a place with a program of Rust, and what stands in for the runtime.
fn place_of_rust() -> Place {
    let place = Place::new();
    place.put("main.rs", "fn main() {}\n");
    place.compile(llvm("clang"), "registered.c", "runtime.o", &["-w"]);
    place
}

/// Runs `offload link` with LLVM's clang.
fn link(place: &Place, arguments: &[&str]) -> String {
    let clang = llvm("clang");
    let tools = clang.parent().unwrap().display();
    let path = format!("PATH={tools}:{}", std::env::var("PATH").unwrap());
    place.run("env", &[&[&path, tool("offload"), "link"], arguments].concat())
}

#[test]
fn a_rust_program_has_the_kernels_of_clang() {
    let place = place_of_rust();
    place.compile(llvm("clang"), "kernels.hip", "kernels.o", &HIP);
    let link = |more: &[&str]| link(&place, &[&["-o", "images.o", "kernels.o"], more].concat());
    assert_eq!(link(&[]), "");
    let printed = link(&["--print-link-args"]);
    let directory = place.path("");
    let rustc = |arguments: &[&str]| {
        link_with_rustc(&directory, &["kernels.o", "images.o", "runtime.o"], arguments)
    };
    let has_kernels = || {
        let said = place.run("./main", &[]);
        assert!(said.starts_with("__hip 48495046 "), "{said}");
        for name in ENTRIES {
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

/// Two crates, one of them with a static library, each link their kernels and register them.
#[test]
fn each_crate_registers_its_own_kernels() {
    let place = place_of_rust();
    place.compile(llvm("clang"), "kernels.hip", "one.o", &HIP);
    let other = OTHER_NAMES.map(|name| format!("-D{name}={name}_two"));
    let other = [&HIP[..], &other.each_ref().map(String::as_str)].concat();
    place.compile(llvm("clang"), "kernels.hip", "two.o", &other);
    place.run(llvm("llvm-ar"), &["rcs", "libtwo.a", "two.o"]);
    // Returns the names that are registered with each fat binary.
    let registered = |objects: &[&str], printed: &str| {
        let printed: Vec<_> = printed.lines().collect();
        let output = link_with_rustc(&place.path(""), objects, &printed);
        assert!(output.status.success(), "{}", stderr(&output));
        let said = place.run("./main", &[]);
        let binaries = said.split("__hip 48495046 ").skip(1);
        let names = |binary: &str| {
            let names = binary.lines().skip(1).filter(|line| *line != "__hip ends");
            names.map(str::to_owned).collect::<Vec<_>>()
        };
        binaries.map(names).collect::<Vec<_>>()
    };
    // With one section of entries for both, each registration has all of them, and images without half of them.
    link(&place, &["-o", "images-one.o", "one.o"]);
    let printed = link(&place, &["-o", "images-two.o", "two.o", "--print-link-args"]);
    let objects = ["one.o", "images-one.o", "two.o", "images-two.o", "runtime.o"];
    let both = [&ENTRIES[..], &OTHER_ENTRIES].concat();
    assert_eq!(registered(&objects, &printed), [both.clone(), both]);

    let private = ["--private-entries", "private"];
    let one = ["-o", "images-one.o", "one.o"];
    assert_eq!(link(&place, &[&private[..], &one].concat()), "");
    let two = ["-o", "images-two.o", "libtwo.a", "--print-link-args"];
    // Entries are retained: the link of the program, which a library cannot tell what it needs, needs nothing.
    let printed = link(&place, &[&private[..], &two].concat());
    assert_eq!(printed, "");
    let archive = "-Wl,--whole-archive,private/libtwo.a,--no-whole-archive";
    let objects = ["private/one.o", "images-one.o", archive, "images-two.o", "runtime.o"];
    assert_eq!(registered(&objects, &printed), [&ENTRIES[..], &OTHER_ENTRIES]);
    // In one registration, the images have the kernels of the archive, which nothing refers to but the program.
    place.run(llvm("clang"), &["-shared", "-fPIC", "-o", "libthree.so", "runtime.o"]);
    let all = ["-o", "images.o", "one.o", "libtwo.a", "libthree.so"];
    link(&place, &[&["--private-entries", "all"], &all[..]].concat());
    let kernels = place.run(tool("offload"), &["kernels", "--target", "gfx90a", "images.o"]);
    let names = ["scale(float*, float)", "scale_two(float*, float)"];
    assert!(names.iter().all(|name| kernels.contains(name)), "{kernels}");
    let objects = ["all/one.o", "-Wl,--whole-archive,all/libtwo.a,--no-whole-archive"];
    let objects = [&objects[..], &["images.o", "runtime.o"]].concat();
    let both = [&ENTRIES[..], &OTHER_ENTRIES].concat();
    assert_eq!(registered(&objects, ""), [both]);
    let library = fs::read(place.path("libthree.so")).unwrap();
    assert!(fs::read(place.path("all/libthree.so")).unwrap() == library);
    // Nothing is left to link for a device.
    let sections = place.run(llvm("llvm-readelf"), &["-SW", "private/one.o", "private/libtwo.a"]);
    assert!(!sections.contains(".llvm.offloading"), "{sections}");
}

#[test]
fn private_entries_replace_no_input() {
    let place = Place::new();
    place.compile(llvm("clang"), "kernels.hip", "one.o", &HIP);
    fs::create_dir(place.path("other")).unwrap();
    fs::copy(place.path("one.o"), place.path("other/one.o")).unwrap();
    let before = fs::read(place.path("one.o")).unwrap();
    let fails = |arguments: &[&str], text: &str| {
        let command = [&["link", "-o", "images.o", "--private-entries"], arguments].concat();
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", llvm("clang").parent().unwrap().display());
        let mut offload = new_command(tool("offload"));
        let output =
            offload.args(command).env("PATH", path).current_dir(place.path("")).output().unwrap();
        assert_eq!((output.status.code(), stderr(&output)), (Some(1), format!("{text}\n")));
    };
    fails(&[".", "one.o"], "offload: error: './one.o': this is an input: choose another directory");
    std::os::unix::fs::symlink(place.path("other/one.o"), place.path("two.o")).unwrap();
    let input = "offload: error: 'other/one.o': this is an input: choose another directory";
    fails(&["other", "one.o", "two.o"], input);
    let twice = "offload: error: 'new/one.o': more than one output has this name";
    fails(&["new", "one.o", "other/one.o"], twice);
    assert!(fs::read(place.path("one.o")).unwrap() == before);
    assert!(!place.path("new").exists() && !place.path("images.o").exists());
}

/// Two libraries with a kernel each, in a program that runs them on LLVM's runtime and its device for the host. Where both registrations have
/// all kernels, it aborts: "Failed to load kernel".
#[test]
fn openmp_runs_the_kernels_of_two_registrations() {
    let place = Place::new();
    let clang = llvm("clang");
    let kernel = "#include <omp.h>\nint f(void) {\n  int value = 1, host = 1;\n\
                  #pragma omp target map(from : value, host)\n  {\n    value = N;\n    \
                  host = omp_is_initial_device();\n  }\n  return host ? -1 : value;\n}\n";
    place.put("main.c", "int f1(void), f2(void);\nint main(void) { return f1() + f2(); }\n");
    let openmp = ["-O2", "-fopenmp", "-fopenmp-targets=x86_64-pc-linux-gnu"];
    for (number, value) in [("1", "20"), ("2", "22")] {
        let text = kernel.replace("f(void)", &format!("f{number}(void)")).replace('N', value);
        place.put(&format!("f{number}.c"), text);
        let [source, object] = ["c", "o"].map(|end| format!("f{number}.{end}"));
        place.run(&clang, &[&openmp[..], &["-c", &source, "-o", &object]].concat());
        let registration = format!("r{number}.o");
        link(&place, &["--private-entries", "private", "-o", &registration, &object]);
    }
    let objects = ["main.c", "private/f1.o", "private/f2.o", "r1.o", "r2.o"];
    for linker in ["lld", "bfd"] {
        let linker =
            [&format!("-fuse-ld={linker}"), "-Wl,--gc-sections", "-fopenmp", "-lomptarget"];
        place.run(&clang, &[&objects[..], &linker, &["-o", "program"]].concat());
        let libraries = clang.parent().unwrap().join("../lib");
        let mut program = new_command(place.path("program"));
        program.env("LD_LIBRARY_PATH", libraries).env("OMP_TARGET_OFFLOAD", "MANDATORY");
        let output = program.output().unwrap();
        assert_eq!(output.status.code(), Some(42), "{}", stderr(&output));
    }
}
