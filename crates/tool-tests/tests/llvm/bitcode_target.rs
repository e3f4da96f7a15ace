//! The processors of bitcode that clang 22 compiles now, as `llvm-dis` prints them.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points; fails without it.

use std::path::{Path, PathBuf};

use fat_object::image_target;

use crate::common::{llvm_command, printed};

/// Runs a tool of LLVM's that must succeed, and returns what it prints.
fn run(tool: &str, args: &[&str], files: &[&Path]) -> String {
    printed(llvm_command(tool).args(args).args(files))
}

/// The processors that functions name, each once.
fn of_llvm(file: &Path) -> Vec<String> {
    let text = run("llvm-dis", &["-o", "-"], &[file]);
    let cpus = text.split("\"target-cpu\"=\"").skip(1);
    let mut cpus: Vec<_> =
        cpus.map(|cpu| cpu.split('"').next().unwrap_or_default().to_owned()).collect();
    cpus.sort();
    cpus.dedup();
    cpus
}

fn ours(file: &Path) -> String {
    image_target(&std::fs::read(file).unwrap()).unwrap().id().to_owned()
}

#[test]
fn clang_names_the_processor() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| -> PathBuf { place.path().join(name) };
    let (hip, c) = (path("a.hip"), path("a.c"));
    let kernel = "__attribute__((global)) void kernel(int *p) { *p = 1; }
        __attribute__((device)) int helper(int a) { return a; }";
    std::fs::write(&hip, kernel).unwrap();
    std::fs::write(&c, "void other(void); int function(int a) { other(); return a; }").unwrap();
    let device = ["-x", "hip", "-nogpuinc", "--cuda-device-only", "--no-gpu-bundle-output"];
    let amd = ["--target=amdgcn-amd-amdhsa"];
    let nvidia =
        ["--target=nvptx64-nvidia-cuda", "-Xclang", "-target-feature", "-Xclang", "+ptx70"];
    let mut files = Vec::new();
    for (source, args, gpu, expected) in [
        (&hip, &device[..], "--offload-arch=gfx90a", "gfx90a"),
        (&hip, &device, "--offload-arch=gfx906:xnack+", "gfx906"),
        (&c, &amd, "-mcpu=gfx1100", "gfx1100"),
        (&c, &amd, "-mcpu=gfx9-4-generic", "gfx9-4-generic"),
        (&c, &amd, "-O1", ""),
        (&c, &nvidia, "-march=sm_80", "sm_80"),
    ] {
        for optimize in ["-O0", "-O2"] {
            let file = path(&format!("{}{optimize}.bc", files.len()));
            let output = file.to_str().unwrap();
            let more = [gpu, optimize, "-w", "-nogpulib", "-emit-llvm", "-c", "-o", output];
            run("clang", &[args, &more].concat(), &[source]);
            assert_eq!(of_llvm(&file).concat(), expected);
            assert_eq!(ours(&file), expected, "{gpu}");
            files.push(file);
        }
    }
    // Code for two processors is for neither, and code for none leaves it open.
    for (others, expected) in [([4, 6], &["gfx1100", "gfx9-4-generic"][..]), ([4, 8], &["gfx1100"])]
    {
        let linked = path("linked.bc");
        let inputs: Vec<_> = others.iter().map(|&other| files.get(other).unwrap()).collect();
        let renamed = path("renamed.ll");
        let text = run("llvm-dis", &["-o", "-"], &[inputs.first().unwrap()]);
        std::fs::write(&renamed, text.replace("@function", "@renamed")).unwrap();
        let output = linked.to_str().unwrap();
        run("llvm-link", &["-o", output], &[&renamed, inputs.last().unwrap()]);
        assert_eq!(of_llvm(&linked), expected);
        assert_eq!(ours(&linked), "");
    }
}
