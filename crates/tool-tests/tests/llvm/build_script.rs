//! A program of two crates with kernels, each built and registered by a build script with `offload-build`.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points; fails without it.

use std::path::Path;

use crate::common::place::Place;
use crate::common::{llvm, new_command, stderr};

/// A build script as a user writes it, except for headers and libraries of ROCm, which are not here.
const BUILD: &str = r#"
fn main() -> Result<(), offload_build::Error> {
    offload_build::Build::new()
        .with_file("src/kernels.hip")
        .with_gpu("gfx90a")
        .with_gpu("gfx1100")
        .with_argument("-nogpulib")
        .with_argument("-nogpuinc")
        .with_runtime(false)
        .compile("kernels")
}
"#;

const KERNELS: &str = r#"
struct dim3 {
  unsigned x, y, z;
};
extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, void *);
extern "C" int __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, void **);

extern "C" __attribute__((global)) void NAME_kernel(int *value) { *value = 1; }
extern "C" int NAME(void) { return NUMBER; }
"#;

const LIBRARY: &str = r#"
unsafe extern "C" {
    safe fn NAME() -> i32;
}

pub fn number() -> i32 {
    NAME()
}
"#;

const PROGRAM: &str = r#"
fn main() {
    println!("{} and {}", one::number(), two::number());
}
"#;

fn crate_with_kernels(place: &Place, name: &str, number: &str) {
    let text = |text: &str| text.replace("NAME", name).replace("NUMBER", number);
    std::fs::create_dir_all(place.path(name).join("src")).unwrap();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"1.0.0\"\nedition = \"2024\"\n\n\
         [build-dependencies]\noffload-build = {{ path = {:?} }}\n",
        crates.join("offload-build")
    );
    place.put(&format!("{name}/Cargo.toml"), manifest);
    place.put(&format!("{name}/build.rs"), BUILD);
    place.put(&format!("{name}/src/kernels.hip"), text(KERNELS));
    place.put(&format!("{name}/src/lib.rs"), text(LIBRARY));
}

#[test]
#[ignore = "slow: .ci/run llvm_slow"]
fn crates_with_kernels_are_built_by_their_scripts() {
    let place = Place::new();
    crate_with_kernels(&place, "one", "1");
    crate_with_kernels(&place, "two", "2");
    std::fs::create_dir(place.path("src")).unwrap();
    place.put(
        "Cargo.toml",
        "[package]\nname = \"program\"\nversion = \"1.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\none = { path = \"one\" }\ntwo = { path = \"two\" }\n\n[workspace]\n",
    );
    place.put("src/main.rs", PROGRAM);
    place.compile(llvm("clang"), "registered.c", "runtime.o", &["-w"]);
    let runtime = place.path("runtime.o");
    let script = format!(
        "fn main() {{ println!(\"cargo::rustc-link-arg={{}}\", {runtime:?}.to_string()); }}\n"
    );
    place.put("build.rs", script);
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::copy(workspace.join("Cargo.lock"), place.path("Cargo.lock")).unwrap();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("build-script");
    let output = new_command(env!("CARGO"))
        .args(["run", "--quiet", "--offline", "--target-dir"])
        .arg(&target)
        .env("CLANG_PATH", llvm("clang"))
        .current_dir(place.path(""))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let said = String::from_utf8(output.stdout).unwrap();
    // Each registers its own kernel, with images for two GPUs.
    let mut kernels = Vec::new();
    for registered in said.split("__hip 48495046 ").skip(1) {
        kernels
            .push(registered.lines().filter(|line| line.ends_with("_kernel")).collect::<Vec<_>>());
    }
    kernels.sort();
    assert_eq!(kernels, [["one_kernel"], ["two_kernel"]], "{said}");
    assert!(said.lines().any(|line| line == "1 and 2"), "{said}");
}
