//! OpenMP target code runs on the host device of LLVM's own runtime, from an image that is extracted and packaged by
//! our tools and registered by what our wrappers make of it, as an object and as bitcode: the program says what the same
//! program built by clang alone says.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points, with `libomp-22-dev` and `liboffload-22-dev`; fails
//! without them.

use crate::common::{new_command, tool};
use std::fs;
use std::path::{Path, PathBuf};

const DEVICE: &str = "x86_64-pc-linux-gnu";
const HOST: &str = "x86_64-unknown-linux-gnu";

fn llvm(place: &str) -> PathBuf {
    let prefix = std::env::var_os("LLVM").unwrap_or_else(|| "/usr/lib/llvm-22".into());
    let path = Path::new(&prefix).join(place);
    assert!(
        path.exists(),
        "{} is missing: install libomp-22-dev, liboffload-22-dev",
        path.display()
    );
    path
}

/// Runs a tool that must succeed, and returns what it says on both outputs.
fn run(directory: &Path, tool: impl AsRef<Path>, arguments: &[&str]) -> String {
    let tool = tool.as_ref();
    let output = new_command(tool)
        .args(arguments)
        .current_dir(directory)
        // Otherwise the host runs what the device does not.
        .env("OMP_TARGET_OFFLOAD", "MANDATORY")
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", tool.display()));
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    assert!(output.status.success(), "{} {arguments:?}: {}\n{said}", tool.display(), output.status);
    said
}

/// Compiles target code, and takes the image out of the host object and packages it: "host.o", "device", "package".
fn compile(place: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wrapper/openmp.c");
    let clang = llvm("bin/clang");
    let openmp = ["-O1", "-fopenmp", "-fopenmp-targets=x86_64-pc-linux-gnu"];
    let host = ["-fPIC", "-c", source.to_str().unwrap(), "-o", "host.o"];
    run(place, &clang, &[&openmp[..], &host].concat());
    let extract = format!("--image=file=device.o,kind=openmp,triple={DEVICE}");
    run(place, tool("llvm-offload-binary"), &["host.o", &extract]);
    let target = format!("--target={DEVICE}");
    let shared = ["-shared", "-Wl,-Bsymbolic", "-Wl,--no-undefined"];
    run(place, &clang, &[&[&target[..]], &shared[..], &["device.o", "-o", "device"]].concat());
    let pack = format!("--image=file=device,kind=openmp,triple={DEVICE},arch=");
    run(place, tool("llvm-offload-binary"), &["-o", "package", &pack]);
}

/// The registration code of images in the current directory: "wrapper.o", and "wrapper.bc" with what clang makes of it,
/// "compiled.o".
fn wrap(place: &Path, bitcode_tool: &[&str], abi: &str, images: &[&str]) {
    let wrap = ["wrap", "--kind=openmp", "--abi", abi, "--triple", HOST, "-o", "wrapper.o"];
    assert_eq!(run(place, tool("offload"), &[&wrap[..], images].concat()), "");
    let (tool, options) = bitcode_tool.split_first().unwrap();
    let output = ["-o", "wrapper.bc"];
    assert_eq!(run(place, tool, &[options, &output[..], images].concat()), "");
    let compile = ["-c", "-fPIC", "-x", "ir", "wrapper.bc", "-o", "compiled.o"];
    // It only warns of the vendor in the triple.
    run(place, llvm("bin/clang"), &compile);
}

/// Links programs in every way, with "wrapper.o" and "wrapper.bc", and holds them to what they must say.
fn link_and_run(place: &Path, host: &str, expected: &str, what: &str) {
    let clang = llvm("bin/clang");
    fs::write(place.join("empty.c"), "").unwrap();
    let library = format!("-L{}", llvm("lib").display());
    let path = format!("-Wl,-rpath,{}", llvm("lib").display());
    // ld.lld also optimises what is bitcode while it links.
    let (bfd, lld) = (PathBuf::from("/usr/bin/ld.bfd"), llvm("bin/ld.lld"));
    for (linker, wrapper) in [
        (&bfd, "wrapper.o"),
        (&bfd, "compiled.o"),
        (&lld, "wrapper.o"),
        (&lld, "compiled.o"),
        (&lld, "-Wl,wrapper.bc"),
    ] {
        let linker = format!("--ld-path={}", linker.display());
        let libraries = [&linker[..], &library, &path, "-lomp", "-lomptarget"];
        for mode in ["-pie", "-no-pie"] {
            let objects = [host, wrapper, mode, "-o", "program"];
            run(place, &clang, &[&objects[..], &libraries].concat());
            let said = run(place, place.join("program"), &[]);
            assert_eq!(said, expected, "{what}, {linker}, {wrapper}, {mode}");
        }
        // In a library, as plugins of other programs have it.
        let objects = [host, wrapper, "-shared", "-o", "program.so"];
        run(place, &clang, &[&objects[..], &libraries].concat());
        let objects = ["empty.c", "./program.so", "-Wl,-rpath,.", "-o", "program"];
        run(place, &clang, &[&objects[..], &libraries].concat());
        let said = run(place, place.join("program"), &[]);
        assert_eq!(said, expected, "{what}, {linker}, {wrapper}, shared");
    }
}

#[test]
fn target_code_runs_on_the_host_device() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    llvm("lib/libomptarget.so");
    compile(place);
    // Output of clang for it.
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wrapper/openmp.c");
    let whole = ["-O1", "-fopenmp", "-fopenmp-targets=x86_64-pc-linux-gnu", "-o", "whole"];
    run(place, llvm("bin/clang"), &[&whole[..], &[source.to_str().unwrap()]].concat());
    let expected = run(place, place.join("whole"), &[]);
    assert_eq!(expected, "on the device: 30\n");

    fs::write(place.join("foreign"), b"an image for no device there is").unwrap();
    let triple = format!("--triple={HOST}");
    let tool = [tool("llvm-offload-wrapper"), "--kind=openmp", &triple];
    for images in [&["device"][..], &["package"], &["foreign", "package"]] {
        wrap(place, &tool, "current", images);
        link_and_run(place, "host.o", &expected, &format!("{images:?}"));
    }
}

/// LLVM's runtime takes entries of the old layout, too, and the registration code of their time.
#[test]
fn target_code_of_old_compilers_runs() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    compile(place);
    let symbols = run(place, llvm("bin/llvm-nm"), &["-P", "device"]);
    let names = symbols.lines().filter_map(|line| line.split(' ').next());
    let kernel = names.into_iter().find(|name| {
        name.starts_with("__omp_offloading_") && name.contains("_main_l") && !name.contains('.')
    });
    let name = format!("-DNAME=\"{}\"", kernel.unwrap_or_else(|| panic!("{symbols}")));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wrapper/openmp_old.c");
    let host = |options: &[&str]| {
        let compile = ["-c", "-fPIC", source.to_str().unwrap(), "-o", "old.o", &name];
        assert_eq!(run(place, llvm("bin/clang"), &[&compile[..], options].concat()), "");
    };
    let expected = "on the device: 30\n";
    let triple = format!("--triple={HOST}");
    let target = format!("--target={HOST}");
    let clang = [tool("clang-offload-wrapper"), &target];
    host(&[]);
    for image in ["device", "package"] {
        wrap(place, &clang, "aomp", &[image]);
        link_and_run(place, "old.o", expected, image);
    }
    for abi in ["18", "19"] {
        let offload = [tool("offload"), "wrap", "--kind=openmp", "--abi", abi, &triple];
        wrap(place, &offload, abi, &["package"]);
        link_and_run(place, "old.o", expected, abi);
    }
    // AOMP's function is not LLVM's: the program has it.
    host(&["-DIMAGE_INFO"]);
    let ids = ["--offload-arch=x86-64", "device"];
    wrap(place, &clang, "aomp", &ids);
    link_and_run(place, "old.o", &format!("image 0 of 1 is for x86-64\n{expected}"), "aomp");
}
