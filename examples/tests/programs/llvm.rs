//! The example programs beside LLVM 22, in `/usr/lib/llvm-22`, or where `LLVM` points; with `libomp-22-dev` and
//! `liboffload-22-dev`. Tests fail without them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Arg, data, images, run};

const COMPILER: &str = env!("CARGO_BIN_EXE_compiler");
const LINKER: &str = env!("CARGO_BIN_EXE_linker");
const LINKER_HOOK: &str = env!("CARGO_BIN_EXE_linker_hook");
const INSTRUMENT: &str = env!("CARGO_BIN_EXE_instrument");
const HOST: &str = "x86_64-unknown-linux-gnu";

pub(crate) fn llvm(place: &str) -> String {
    let prefix = std::env::var("LLVM").unwrap_or_else(|_| "/usr/lib/llvm-22".into());
    let path = Path::new(&prefix).join(place);
    assert!(path.exists(), "{} is missing", path.display());
    path.to_str().unwrap().to_owned()
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/openmp").join(name)
}

/// Runs a command; its words have no spaces.
fn words(place: &Path, program: &str, words: &str) -> String {
    let words: Vec<_> = words.split_whitespace().collect();
    run(place, program, &words.iter().map(|word| word as Arg<'_>).collect::<Vec<_>>())
}

/// "NAME.bc" with a kernel of this name, for any AMD GPU.
fn kernel(place: &Path, name: &str) {
    let text = format!(
        "target triple = \"amdgcn-amd-amdhsa\"\n\
         define amdgpu_kernel void @{name}() {{ ret void }}\n"
    );
    fs::write(place.join("kernel.ll"), text).unwrap();
    words(place, &llvm("bin/llvm-as"), &format!("kernel.ll -o {name}.bc"));
}

/// "NAME.o" with a function, and with a kernel of this name for each ID.
fn object(place: &Path, name: &str, ids: &[&str]) {
    kernel(place, name);
    fs::write(place.join(format!("{name}.c")), format!("void host_{name}(void) {{}}\n")).unwrap();
    let mut args: Vec<OsString> = vec![format!("{name}.o").into(), format!("{name}.c").into()];
    args.extend(ids.iter().flat_map(|id| [id.into(), format!("{name}.bc").into()]));
    run(place, COMPILER, &args.iter().map(|arg| arg as Arg<'_>).collect::<Vec<_>>());
}

#[test]
fn embedded_packages_are_those_of_llvm() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let triple = "amdgcn-amd-amdhsa";
    object(
        place,
        "a",
        &["hip-amdgcn-amd-amdhsa--gfx90a:xnack+", "openmp-amdgcn-amd-amdhsa--gfx942"],
    );
    let pack = |arch: &str, kind: &str| {
        format!("--image=file=a.bc,triple={triple},arch={arch},kind={kind}")
    };
    let (one, two) = (pack("gfx90a:xnack+", "hip"), pack("gfx942", "openmp"));
    words(place, &llvm("bin/llvm-offload-binary"), &format!("-o package {one} {two}"));
    words(place, &llvm("bin/llvm-objcopy"), "--dump-section .llvm.offloading=ours a.o copy.o");
    assert!(fs::read(place.join("ours")).unwrap() == fs::read(place.join("package")).unwrap());

    let seen = words(place, &llvm("bin/llvm-objdump"), "--offloading a.o");
    let seen: Vec<_> = seen.lines().filter(|line| line.starts_with("arch")).collect();
    assert_eq!(seen, ["arch            gfx90a:xnack+", "arch            gfx942"]);
    assert_eq!(
        linked_by_llvm(place, "a.o"),
        [("gfx90a:xnack+".into(), 1), ("gfx942".into(), 1)].into()
    );
}

/// Returns the number of inputs that clang-linker-wrapper links for each processor.
fn linked_by_llvm(place: &Path, inputs: &str) -> BTreeMap<String, usize> {
    let options = format!("--dry-run --host-triple={HOST} --linker-path=/usr/bin/ld -o out");
    let said = words(place, &llvm("bin/clang-linker-wrapper"), &format!("{options} {inputs}"));
    let links = said.lines().filter(|line| line.contains(" -flto"));
    let links = links.map(|line| {
        let after = |word: &str| line.split_once(word).map_or("", |(_, rest)| rest);
        let arch = after(" -mcpu=").split(' ').next().unwrap_or("").to_owned();
        (arch, after(" -flto").split(' ').filter(|word| word.ends_with(".o")).count())
    });
    links.collect()
}

/// And how many our linker.
fn linked_by_us(place: &Path, inputs: &str) -> BTreeMap<String, usize> {
    fs::write(place.join("link.sh"), "out=$3; echo $1 $(($# - 3)); shift 3; cat $* >$out").unwrap();
    let inputs: Vec<_> = inputs.split(' ').collect();
    let mut args: Vec<Arg<'_>> =
        vec![&"--device-linker", &"amdgcn-amd-amdhsa=sh link.sh {arch}", &"-o", &"out"];
    args.extend(inputs.iter().map(|input| input as Arg<'_>));
    args.extend([&"--" as Arg<'_>, &"-shared"]);
    let said = run(place, LINKER, &args);
    let links = said.lines().filter_map(|line| line.split_once(' '));
    links.map(|(arch, count)| (arch.to_owned(), count.parse().unwrap())).collect()
}

#[test]
fn code_is_linked_for_the_targets_that_llvm_links_it_for() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let id = |id: &str| format!("openmp-amdgcn-amd-amdhsa--{id}");
    object(place, "plain", &[&id("gfx90a"), &id("gfx1100")]);
    object(place, "on", &[&id("gfx90a:xnack+")]);
    object(place, "off", &[&id("gfx90a:xnack-")]);
    object(place, "library", &[&id("gfx90a"), &id("gfx1201")]);
    words(place, &llvm("bin/llvm-ar"), "rcs lib.a library.o");
    for inputs in [
        "plain.o",
        "on.o plain.o",
        "on.o off.o plain.o",
        "plain.o lib.a",
        "lib.a on.o plain.o",
        "off.o lib.a",
    ] {
        assert_eq!(linked_by_us(place, inputs), linked_by_llvm(place, inputs), "{inputs}");
    }
    // In the other order LLVM puts code that needs xnack into what promises to run without, and leaves out of what
    // runs with it what runs on both.
    let both = "plain.o on.o";
    let of = |plain, on| [("gfx90a", plain), ("gfx90a:xnack+", on), ("gfx1100", 1)];
    let of = |plain, on| of(plain, on).map(|(arch, count)| (arch.to_owned(), count)).into();
    assert_eq!(linked_by_us(place, both), of(1, 2));
    assert_eq!(linked_by_llvm(place, both), of(2, 1));
}

/// Target code of clang, from an object and an archive, linked by our linker, runs on LLVM's runtime.
#[test]
fn openmp_code_runs_on_the_device() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let clang = llvm("bin/clang");
    for name in ["main.c", "sum.c"] {
        let options = "-O1 -fopenmp -fopenmp-targets=x86_64-pc-linux-gnu -fPIC -c";
        words(place, &clang, &format!("{options} {}", source(name).display()));
    }
    words(place, &llvm("bin/llvm-ar"), "rcs libsum.a sum.o");
    let (lib, omptarget) = (llvm("lib"), llvm("lib/libomptarget.so"));
    assert!(omptarget.starts_with(&lib));
    let device = format!("x86_64-pc-linux-gnu={clang} -fopenmp -shared -Wl,-Bsymbolic");
    let (search, path) = (format!("-L{lib}"), format!("-Wl,-rpath,{lib}"));
    for sum in ["sum.o", "libsum.a"] {
        let args: [Arg<'_>; 14] = [
            &"--linker",
            &clang,
            &"--device-linker",
            &device,
            &"-o",
            &"program",
            &"main.o",
            &sum,
            &"--",
            &search,
            &path,
            &"-lomp",
            &"-lomptarget",
            &"-lm",
        ];
        assert_eq!(run(place, LINKER, &args), "");
        // Otherwise the host runs what the device does not.
        let said = run(place, "env", &[&"OMP_TARGET_OFFLOAD=MANDATORY", &"./program"]);
        assert_eq!(said, "on the device: 30\n", "{sum}");
    }
}

/// The bundle for the HIP runtime is the one that LLVM makes.
#[test]
fn hip_code_is_linked_as_by_llvm() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let id = |id: &str| format!("hip-amdgcn-amd-amdhsa--{id}");
    object(place, "a", &[&id("gfx90a"), &id("gfx1100")]);
    object(place, "b", &[&id("gfx90a")]);
    let clang = llvm("bin/clang");
    let device = format!(
        "amdgcn-amd-amdhsa={clang} --no-default-config --target=amdgcn-amd-amdhsa -mcpu={{arch}} -flto -Wl,--no-undefined -nogpulib"
    );
    let args: [Arg<'_>; 8] =
        [&"--device-linker", &device, &"-o", &"ours.so", &"a.o", &"b.o", &"--", &"-shared"];
    assert_eq!(run(place, LINKER, &args), "");
    let options =
        format!("--host-triple={HOST} --linker-path=/usr/bin/ld --device-compiler=-nogpulib");
    let wrapper = llvm("bin/clang-linker-wrapper");
    words(place, &wrapper, &format!("{options} -shared -o theirs.so a.o b.o"));
    let [ours, theirs] = ["ours.so", "theirs.so"].map(|name| images(&place.join(name)));
    assert_eq!(ours.len(), 3);
    assert!(ours == theirs, "other images");
    let seen = words(place, &llvm("bin/llvm-readobj"), "--offloading ours.so");
    assert!(seen.contains(&id("gfx1100")), "{seen}");
}

/// Code that clang compiled is linked, and registered when the library is loaded.
#[test]
fn hip_code_is_registered() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let device = format!(
        "amdgcn-amd-amdhsa={} --target=amdgcn-amd-amdhsa -mcpu={{arch}} -flto -nogpulib",
        llvm("bin/clang")
    );
    let object = data("hip-packager.o");
    let args: [Arg<'_>; 7] =
        [&"--device-linker", &device, &"-o", &"lib.so", &object, &"--", &"-shared"];
    assert_eq!(run(place, LINKER, &args), "");
    let loader = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/loader.c");
    run(place, "cc", &[&"-rdynamic", &loader, &"-o", &"loader", &"-ldl"]);
    assert_eq!(words(place, "./loader", "./lib.so"), "0x48495046: __CL\nscale\n");
}

/// A linker's members for two GPUs, linked by clang and registered. Device code needs one that the host does not; another, which
/// nobody needs, could not be linked.
#[test]
fn code_of_loaded_members_is_registered() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let start = "#define __global__ __attribute__((global))\n\
                 #define __device__ __attribute__((device))\n\
                 struct dim3 { unsigned x, y, z; };\n\
                 extern \"C\" int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, void *);\n\
                 extern \"C\" int __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, void **);\n";
    let clang = llvm("bin/clang");
    for (name, code) in [
        (
            "main",
            "extern \"C\" __device__ int deep(int);\n\
                  extern \"C\" void used(void);\n\
                  extern \"C\" __global__ void first(int *p) { *p = deep(*p); }\n\
                  extern \"C\" void begin(void) { used(); }\n",
        ),
        (
            "used",
            "extern \"C\" __global__ void second(int *p) { *p = 2; }\n\
                  extern \"C\" void used(void) {}\n",
        ),
        ("deep", "extern \"C\" __device__ int deep(int x) { return x * 7; }\n"),
        (
            "idle",
            "extern \"C\" __device__ int missing(int);\n\
                  extern \"C\" __global__ void third(int *p) { *p = missing(*p); }\n\
                  extern \"C\" void idle(void) {}\n",
        ),
    ] {
        fs::write(place.join(format!("{name}.hip")), format!("{start}{code}")).unwrap();
        let options = "-x hip -nogpuinc -nogpulib --offload-new-driver -fgpu-rdc -fPIC -O1";
        let gpus = "--offload-arch=gfx90a --offload-arch=gfx1030";
        words(place, &clang, &format!("{options} {gpus} -c {name}.hip -o {name}.o"));
    }
    words(place, &llvm("bin/llvm-ar"), "rcs lib.a idle.o used.o deep.o");
    words(place, LINKER_HOOK, &format!("all.o {HOST} {clang} main.o lib.a"));
    words(place, "cc", "-shared -o lib.so main.o lib.a all.o");
    let ids: Vec<_> = images(&place.join("lib.so")).into_iter().map(|(id, _)| id).collect();
    let id = |gpu: &str| format!("hip-amdgcn-amd-amdhsa--{gpu}");
    assert_eq!(ids, ["host-x86_64-unknown-linux-gnu-".to_owned(), id("gfx90a"), id("gfx1030")]);
    let loader = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/loader.c");
    run(place, "cc", &[&"-rdynamic", &loader, &"-o", &"loader", &"-ldl"]);
    assert_eq!(words(place, "./loader", "./lib.so"), "0x48495046: __CL\nfirst\nsecond\n");
}

/// LLVM finds the section that its own tool added to a code object in a compressed bundle in a library.
#[test]
fn instrumented_code_objects_are_read_by_llvm() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    fs::write(place.join("contents"), [b'x'; 50_000]).unwrap();
    for name in ["hip-two-units.so", "hip-two-units-ccob.so"] {
        let file = data(name);
        let args: [Arg<'_>; 7] = [
            &file,
            &"out.so",
            &"1",
            &"--with",
            &llvm("bin/llvm-objcopy"),
            &"--add-section",
            &".instrumented=contents",
        ];
        run(place, INSTRUMENT, &args);
        fs::write(place.join("image"), &images(&place.join("out.so"))[1].1).unwrap();
        let sections = words(place, &llvm("bin/llvm-readelf"), "-SW image");
        assert!(sections.contains(" .instrumented "), "{sections}");
        let listed = words(place, &llvm("bin/llvm-readobj"), "--offloading out.so");
        assert!(listed.contains("gfx1100"), "{name}: {listed}");
    }
}
