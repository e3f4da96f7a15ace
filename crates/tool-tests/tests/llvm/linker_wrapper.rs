//! `clang-linker-wrapper` beside LLVM 22's: the same commands, the same selection of inputs, the same images in
//! programs that an unmodified clang links with it, and programs that run.
//!
//! clang looks for the tool in the directories of `-B` first. Programs for HIP and CUDA run on a stand-in
//! (`wrapper/registered.c`), those for OpenMP on LLVM's runtime and its device for the host.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points, with `libomp-22-dev` and `liboffload-22-dev`; fails
//! without them.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;

use fat_object::{Image, Visitor};

use crate::common::{Random, files_in, llvm, new_command, printed, stderr, stdout, tool};

const HOST: &str = "x86_64-unknown-linux-gnu";
const AMD: &str = "amdgcn-amd-amdhsa";

/// A directory for one test.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Place(tempfile::tempdir().unwrap());
        for (name, tool) in [
            ("theirs", llvm("clang-linker-wrapper")),
            ("ours", tool("clang-linker-wrapper").into()),
        ] {
            fs::create_dir(place.at(name)).unwrap();
            symlink(tool, place.at(name).join("clang-linker-wrapper")).unwrap();
        }
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Returns `PATH` with another directory first.
    fn path_with(&self, directory: impl AsRef<Path>) -> OsString {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let first = self.0.path().join(directory);
        let path = [first].into_iter().chain(std::env::split_paths(&path));
        std::env::join_paths(path).unwrap()
    }

    fn put(&self, name: &str, text: &str) {
        fs::write(self.at(name), text).unwrap();
    }

    /// Runs a program whose words have no spaces.
    fn output(&self, program: &Path, words: &str) -> Output {
        new_command(program)
            .args(words.split_whitespace())
            .current_dir(&self.0)
            .env("PATH", self.path_with(llvm("clang").parent().unwrap()))
            // Otherwise the host runs what the device does not.
            .env("OMP_TARGET_OFFLOAD", "MANDATORY")
            .output()
            .unwrap()
    }

    fn run(&self, program: impl AsRef<Path>, words: &str) -> String {
        let program = program.as_ref();
        let output = self.output(program, words);
        assert!(output.status.success(), "{} {words}: {}", program.display(), stderr(&output));
        stdout(&output)
    }

    fn clang(&self, words: &str) {
        self.run(llvm("clang"), words);
    }

    /// Makes an object with an image for each `KIND:ARCH`, as clang embeds them; the images are the object without.
    fn object(&self, name: &str, images: &[&str]) {
        let source = format!("{name}.c");
        self.put(&source, &format!("int host_{}(void) {{ return 1; }}\n", name.replace('-', "_")));
        self.clang(&format!("-c {source} -o {name}.img"));
        self.package(&format!("{name}.pack"), &format!("{name}.img"), images);
        self.clang(&format!(
            "-cc1 {source} -triple {HOST} -emit-obj -o {name}.o -fembed-offload-object={name}.pack"
        ));
    }

    fn package(&self, output: &str, file: &str, images: &[&str]) {
        let images = images.iter().map(|image| {
            let (kind, arch) = image.split_once(':').unwrap();
            let triple = match arch {
                arch if arch.starts_with("sm_") => "nvptx64-nvidia-cuda",
                "host" => HOST,
                _ => AMD,
            };
            let arch = if arch == "host" { "generic" } else { arch };
            format!(" --image=file={file},kind={kind},triple={triple},arch={arch}")
        });
        self.run(
            tool("llvm-offload-binary"),
            &format!("-o {output}{}", images.collect::<String>()),
        );
    }

    /// Returns what both tools say, with one spelling of what differs between runs.
    fn both(&self, words: &str) -> [String; 2] {
        ["theirs", "ours"].map(|tool| {
            let output = self.output(&self.at(tool).join("clang-linker-wrapper"), words);
            let text = format!("{}{:?}", stderr(&output), output.status.code());
            normal(&text.replace(&format!("{}/", self.at(tool).display()), "B/"))
        })
    }

    /// Returns the section for offload binaries of the wrapper that was saved.
    fn openmp_images(&self) -> Vec<u8> {
        let object = "out.openmp.image.wrapper.o";
        let dump = format!("--dump-section .llvm.offloading=section {object} copy.o");
        self.run(llvm("llvm-objcopy"), &dump);
        fs::read(self.at("section")).unwrap()
    }

    fn agree(&self, words: &str) {
        let [theirs, ours] = self.both(words);
        assert_eq!(ours, theirs, "{words}");
    }
}

/// Returns a text without the six digits of temporary files, and without the directories of tools.
fn normal(text: &str) -> String {
    let mut out = Vec::new();
    for word in text.split(' ') {
        let mut word = word.to_owned();
        let starts = word.match_indices('-').map(|(at, _)| at + 1).collect::<Vec<_>>();
        for at in starts.into_iter().rev() {
            let digits = word.get(at..at + 6).unwrap_or("");
            let is_hex = digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            if is_hex && word.get(at + 6..at + 7) == Some(".") {
                word.replace_range(at..at + 6, "XXXXXX");
            }
        }
        for tool in ["clang-offload-bundler\"", "llvm-objcopy\"", "clang\"", "fatbinary\""] {
            if word.starts_with('"') && word.ends_with(&format!("/{tool}")) {
                word = format!("\"{tool}");
            }
        }
        out.push(word);
    }
    out.join(" ")
}

const DRY: &str = "--dry-run --host-triple=x86_64-unknown-linux-gnu --linker-path=/usr/bin/ld";

#[test]
fn dry_runs_say_the_same() {
    let place = Place::new();
    place.object("a", &["hip:gfx90a", "hip:gfx1030"]);
    place.object("b", &["hip:gfx1030", "openmp:gfx90a", "openmp:host"]);
    place.object("c", &["cuda:sm_80", "cuda:sm_90a", "openmp:sm_80"]);
    place.object("any", &["hip:generic"]);
    place.object("twice", &["openmp:gfx90a", "openmp:gfx90a"]);
    place.package("p.out", "a.img", &["hip:gfx90a", "hip:gfx1200"]);
    place.run(llvm("llvm-ar"), "rcs libb.a b.o any.o");
    place.run(llvm("llvm-ar"), "rcsT thin.a b.o");
    place.clang("-shared a.c -o libs.so");
    place.clang("-c -flto a.c -o plain.bc");
    place.clang(&format!(
        "-cc1 a.c -triple {HOST} -emit-llvm-bc -o a.bc -fembed-offload-object=a.pack"
    ));
    place.clang(
        "-cc1 a.c -triple x86_64-pc-windows-msvc -emit-obj -o a.obj -fembed-offload-object=a.pack",
    );
    for line in [
        "-o out a.o",
        "a.o b.o c.o -o dir/out",
        "-o out b.o a.o",
        "-o out a.o libb.a",
        "-o out libb.a a.o",
        "-o out a.o -L. -lb",
        "-o out a.o --whole-archive libb.a --no-whole-archive",
        "-o out -whole-archive thin.a -no-whole-archive a.o",
        "-o out a.o thin.a",
        "-o out --should-extract=gfx90a,gfx1030 libb.a",
        "-o out --should-extract=gfx1100 libb.a thin.a",
        "-o out a.o any.o",
        "-o out twice.o plain.bc a.bc",
        "-o out b.o libs.so -L. -ls -rpath /x -rpath=/y --library-path=/z",
        "-o out b.o -l:libb.a -L=/ --sysroot=.",
        "-o out a.o -r",
        "--relocatable b.o -o out",
        "-o out a.o -mllvm -openmp-opt-disable --device-linker=x=y --device-linker=a",
        "-o out a.o c.o --device-linker=nvptx64-nvidia-cuda=b --device-compiler=-g --device-compiler=amdgcn-amd-amdhsa=",
        "-o out c.o -a -b -z now -dynamic-linker /lib64/ld.so --build-id - -- x",
        "-o out a.o --compress --compression-level=6 --wrapper-jobs=1",
        "-o out a.o b.o --embed-bitcode",
        "-out:a.exe a.obj -libpath:./ -wholearchive:libb.a",
        "-ox.y a.o",
        "a.o --output=z",
        "p.out -o out",
        "--emit-fatbin-only p.out -o out",
        "nofile dir -o out",
    ] {
        place.agree(&format!("{DRY} {line}"));
    }
    place.agree(
        "--dry-run --linker-path=/usr/bin/ld --host-triple=aarch64-unknown-linux-gnu a.o -o x",
    );
    place.agree("--dry-run --linker-path=x --host-triple=x86_64-pc-windows-msvc a.obj -out:b.exe");
    assert!(!place.at("out").exists() || fs::metadata(place.at("out")).unwrap().len() == 0);
}

/// Objects and archives in any order: the same inputs for each image. Without target features, whose order matters to
/// LLVM's tool.
#[test]
fn the_same_inputs_are_linked_for_the_same_targets() {
    let place = Place::new();
    let mut random = Random::new(22);
    let archs = ["gfx90a", "gfx1030", "gfx942", "gfx1100", "sm_80"];
    let mut files = Vec::new();
    for number in 0..8 {
        let images: Vec<_> = (0..1 + random.below(3))
            .map(|_| {
                let arch = *random.pick(&archs);
                let kind =
                    if arch == "sm_80" { "openmp" } else { *random.pick(&["hip", "openmp"]) };
                format!("{kind}:{arch}")
            })
            .collect();
        let name = format!("f{number}");
        place.object(&name, &images.iter().map(String::as_str).collect::<Vec<_>>());
        files.push(format!("{name}.o"));
    }
    place.object("any", &["hip:generic"]);
    // No member twice: LLVM's tool links it twice.
    let members = files.split_off(4);
    for (number, members) in members.chunks(2).enumerate() {
        place.run(llvm("llvm-ar"), &format!("rcs l{number}.a {}", members.join(" ")));
        files.push(format!("l{number}.a"));
    }
    place.run(llvm("llvm-ar"), "rcs any.a any.o");
    for _ in 0..40 {
        let mut line = files.clone();
        random.shuffle(&mut line);
        line.truncate(1 + random.below(6));
        if random.below(3) == 0 {
            line.insert(random.below(line.len()), "--whole-archive".into());
        }
        if random.below(3) == 0 {
            line.insert(0, format!("--should-extract={}", random.pick(&archs)));
        }
        // Code for every processor, which is in all images; in an object, it would get code of later ones.
        place.agree(&format!("{DRY} -o out any.a {}", line.join(" ")));
    }
}

#[test]
fn errors_start_as_those_of_llvm() {
    let place = Place::new();
    place.object("a", &["hip:gfx90a"]);
    fs::write(place.at("bad.out"), b"\x10\xff\x10\xad\x01\0\0\0").unwrap();
    fs::write(place.at("bad.a"), "!<arch>\nxxx").unwrap();
    let riscv = "--image=file=a.img,kind=openmp,triple=riscv64-unknown-linux-gnu,arch=";
    place.run(tool("llvm-offload-binary"), &format!("-o riscv.out {riscv}"));
    place.package("mixed.out", "a.img", &["sycl:gfx90a", "hip:gfx90a"]);
    for line in [
        "",
        "--linker-path=x -o",
        "--linker-path=x -mllvm",
        "--linker-path=x --wrapper-jobs=0",
        "--linker-path=x --wrapper-jobs=y",
        "--linker-path=x -lnone",
        "--linker-path=x --dry-run bad.out",
        "--linker-path=x --dry-run bad.a",
        "--linker-path=x --dry-run riscv.out",
        "--linker-path=x --dry-run mixed.out",
        "--linker-path=x --dry-run --override-image=hip=none",
        "--linker-path=x --dry-run --override-image=hip=a.c",
        "--linker-path=x --dry-run --override-image=foo=a.img",
        "--linker-path=/bin/false",
        "--linker-path=/no/such/linker",
    ] {
        let [theirs, ours] = place.both(line);
        let (theirs, code) = theirs.rsplit_once('\n').unwrap();
        // "truncated or malformed archive (its reason)"
        let theirs = theirs.lines().next().unwrap_or("").split(" (").next().unwrap();
        assert!(ours.starts_with(theirs), "{line}\n{ours}\n{theirs}");
        assert!(ours.ends_with(code), "{line}: {ours}");
    }
}

/// The images of a file: what they are for, and their bytes.
fn images(file: &Path) -> Vec<(String, Vec<u8>)> {
    struct Images(Vec<(String, Vec<u8>)>);
    impl Visitor for Images {
        fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
            let mut bytes = Vec::new();
            image.reader().read_to_end(&mut bytes)?;
            self.0.push((image.target().to_string(), bytes));
            Ok(())
        }
    }
    let options = fat_object::Options::default().with_enter_images(false);
    let mut images = Images(Vec::new());
    fat_object::walk(File::open(file).unwrap(), &options, &mut images).unwrap();
    images.0
}

const HIP: &str =
    "-x hip -nogpuinc -nogpulib --offload-new-driver --offload-arch=gfx90a --offload-arch=gfx1030";
const LINK_HIP: &str = "--hip-link -nogpulib --offload-new-driver -no-hip-rt";
const OPENMP: &str = "-O1 -fopenmp -fopenmp-targets=x86_64-pc-linux-gnu";

/// The declarations of the headers of HIP.
const HIP_START: &str = "#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
struct dim3 { unsigned x, y, z; };
extern \"C\" int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, void *);
extern \"C\" int __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, void **);
";

/// Compiles what the programs are made of.
fn compile(place: &Place) {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wrapper");
    fs::copy(tests.join("registered.c"), place.at("registered.c")).unwrap();
    fs::copy(tests.join("openmp.c"), place.at("openmp.c")).unwrap();
    place.put(
        "main.hip",
        &format!(
            "{HIP_START}extern \"C\" __device__ int other(int);\n\
         extern \"C\" void more(void);\n\
         __device__ int variable = 3;\n\
         extern \"C\" __global__ void kernel(int *p) {{ *p = other(*p) + variable; }}\n\
         int main() {{ more(); return 0; }}\n"
        ),
    );
    place.put(
        "other.hip",
        &format!(
            "{HIP_START}extern \"C\" __device__ int other(int x) {{ return x + 1; }}\n\
         extern \"C\" __global__ void second(int *p) {{ *p = other(*p); }}\n\
         extern \"C\" void more(void) {{}}\n"
        ),
    );
    for name in ["main", "other"] {
        place.clang(&format!("{HIP} -fgpu-rdc -c {name}.hip -o {name}.o"));
    }
    place.run(llvm("llvm-ar"), "rcs libother.a other.o");
    place.clang("-w -c registered.c -o registered.o");
    place.clang(&format!("{OPENMP} -c openmp.c -o openmp.o"));
    place.put("empty.c", "");
}

/// Links with both tools, and has the program run: the same words and the same images.
fn linked_alike(place: &Place, commands: &[String]) -> String {
    let results = ["theirs", "ours"].map(|tool| {
        for command in commands {
            place.clang(&format!("-B{} {command}", place.at(tool).display()));
        }
        let program = place.at("program");
        let said = place.run(&program, "");
        // Compressed bundles are compared by what they hold: libraries for zstd differ.
        let is_packed = commands.iter().any(|command| command.contains("-compress"));
        let is_hash = |line: &&str| is_packed && line.starts_with("__hip 4849");
        let said = said.lines().filter(|line| !is_hash(line)).map(|line| format!("{line}\n"));
        let said: String = said.collect();
        let images = images(&program);
        fs::remove_file(program).unwrap();
        (said, images)
    });
    let [(theirs, images_of_llvm), (ours, images)] = results;
    assert_eq!(ours, theirs, "{commands:?}");
    let ids = |images: &[(String, Vec<u8>)]| {
        images.iter().map(|(id, bytes)| format!("{id} {}", bytes.len())).collect::<Vec<_>>()
    };
    assert_eq!(ids(&images), ids(&images_of_llvm), "{commands:?}");
    assert!(images == images_of_llvm, "{commands:?}");
    ours
}

#[test]
fn programs_for_hip_register_the_same_images() {
    let place = Place::new();
    compile(&place);
    for line in [
        "main.o other.o",
        "other.o main.o -fuse-ld=lld",
        "main.o -L. -lother",
        "-Wl,--whole-archive libother.a -Wl,--no-whole-archive main.o",
        "main.o libother.a --offload-compress",
        "main.o libother.a --offload-compress --offload-compression-level=7 -save-temps=obj",
        "main.o other.o -shared-libgcc -pie",
    ] {
        let said = linked_alike(&place, &[format!("{LINK_HIP} {line} registered.o -o program")]);
        for name in ["kernel", "second", "variable", "__hip ends"] {
            assert!(said.contains(name), "{line}: {said}");
        }
    }
}

/// Objects that hold finished images are linked once more.
#[test]
fn relocatable_objects_keep_their_images() {
    let place = Place::new();
    compile(&place);
    place.put(
        "again.hip",
        &fs::read_to_string(place.at("other.hip"))
            .unwrap()
            .replace("other", "again")
            .replace("second", "third")
            .replace("more", "much"),
    );
    place.clang(&format!("{HIP} -fgpu-rdc -c again.hip -o again.o"));
    let said = linked_alike(
        &place,
        &[
            format!("{LINK_HIP} -r main.o other.o -o one.o"),
            format!("{LINK_HIP} -r again.o -o two.o"),
            "one.o two.o registered.o -o program".to_owned(),
        ],
    );
    assert_eq!(said.matches("__hip 48495046").count(), 2, "{said}");
    assert!(said.contains("third") && said.contains("kernel"), "{said}");
    // LLVM's tool links the image of OpenMP again; its program cannot load what comes out.
    let ours = place.at("ours");
    place.clang(&format!("-B{} {OPENMP} -r openmp.o -o r.o", ours.display()));
    let rpath = llvm("clang").parent().unwrap().with_file_name("lib");
    place.clang(&format!(
        "-B{} {OPENMP} r.o -o program -Wl,-rpath,{}",
        ours.display(),
        rpath.display()
    ));
    assert_eq!(place.run(place.at("program"), ""), "on the device: 30\n");
}

#[test]
fn programs_for_openmp_run() {
    let place = Place::new();
    compile(&place);
    let rpath = llvm("clang").parent().unwrap().with_file_name("lib");
    let end = format!("-o program -Wl,-rpath,{}", rpath.display());
    for line in [
        "openmp.o",
        "openmp.o -fuse-ld=lld",
        "openmp.o -fuse-ld=lld -flto",
        "openmp.c -fuse-ld=lld -flto",
        "openmp.o -fopenmp-target-jit -fno-openmp-target-jit",
    ] {
        let said = linked_alike(&place, &[format!("{OPENMP} {line} {end}")]);
        assert_eq!(said, "on the device: 30\n", "{line}");
    }
    // A member of a library, which the program calls.
    place.put("calls.c", "int on_device(void);\nint main(void) {\n#pragma omp target\n  ;\n  return on_device();\n}\n");
    for (name, options) in
        [("calls", ""), ("openmp", "-Dmain=on_device"), ("unused", "-Dmain=unused")]
    {
        let source = if name == "calls" { "calls.c" } else { "openmp.c" };
        place.clang(&format!("{OPENMP} {options} -c {source} -o of-{name}.o"));
    }
    place.run(llvm("llvm-ar"), "rcs libdevice.a of-openmp.o of-unused.o");
    let ours = place.at("ours");
    place.clang(&format!("-B{} {OPENMP} {NEEDED} of-calls.o libdevice.a {end}", ours.display()));
    assert_eq!(place.run(place.at("program"), ""), "on the device: 30\n");
    // Device code of both programming models in one program.
    let libraries = format!("-L{} -lomptarget -lomp", rpath.display());
    let said = linked_alike(
        &place,
        &[
            format!("{OPENMP} -Dmain=openmp_main -c openmp.c -o renamed.o"),
            format!("{LINK_HIP} renamed.o main.o other.o registered.o {end} {libraries}"),
        ],
    );
    assert!(said.contains("kernel") && said.contains("__hip 48495046"), "{said}");
}

/// The library on the line twice, and a plain object beside those for both states of xnack: LLVM's tool fails.
#[test]
fn links_that_fail_with_llvm_work() {
    let place = Place::new();
    compile(&place);
    let line = format!("{LINK_HIP} main.o libother.a libother.a registered.o -o program");
    let clang = llvm("clang");
    let link = |tool: &str, line: &str| {
        place.output(&clang, &format!("-B{} {line}", place.at(tool).display()))
    };
    assert!(!link("theirs", &line).status.success());
    let ours = link("ours", &line);
    assert!(ours.status.success(), "{}", stderr(&ours));
    assert!(place.run(place.at("program"), "").contains("second"));

    let hip = HIP.split(" --offload-arch").next().unwrap();
    for (name, arch) in [("on", "gfx90a:xnack+"), ("off", "gfx90a:xnack-"), ("plain", "gfx90a")] {
        let code = fs::read_to_string(place.at("other.hip")).unwrap();
        let code = if name == "plain" { code } else { "static int nothing;\n".to_owned() };
        place.put(&format!("{name}.hip"), &code);
        place.clang(&format!("{hip} --offload-arch={arch} -fgpu-rdc -c {name}.hip -o {name}.o"));
    }
    let line = format!("{LINK_HIP} -shared plain.o on.o off.o -o lib.so");
    let ours = link("ours", &line);
    assert!(ours.status.success(), "{}", stderr(&ours));
    let mut found: Vec<_> = images(&place.at("lib.so")).into_iter().map(|(id, _)| id).collect();
    found.sort();
    let id = |arch| format!("hip-amdgcn-amd-amdhsa--{arch}");
    assert_eq!(found[..2], [id("gfx90a:xnack+"), id("gfx90a:xnack-")]);
}

/// lld drops entries, and LLVM's tool does not read linker scripts: its program runs on the host.
#[test]
fn dropped_sections_and_linker_scripts_keep_device_code() {
    let place = Place::new();
    compile(&place);
    place.put("script.ld", "INPUT(openmp.o)\n");
    let clang = llvm("clang");
    let rpath = clang.parent().unwrap().with_file_name("lib");
    let end = format!("-fuse-ld=lld -o program -Wl,-rpath,{}", rpath.display());
    for line in ["openmp.o -Wl,--gc-sections", "script.ld"] {
        let link = |tool: &str| {
            place.output(&clang, &format!("-B{} {OPENMP} {line} {end}", place.at(tool).display()))
        };
        let runs_on_device = |output: &Output| {
            output.status.success()
                && stdout(&place.output(&place.at("program"), "")) == "on the device: 30\n"
        };
        assert!(!runs_on_device(&link("theirs")), "{line}");
        let ours = link("ours");
        assert!(runs_on_device(&ours), "{line}: {}", stderr(&ours));
    }
}

/// Both refuse an option that LLVM does not know, where no device link would.
#[test]
fn unknown_options_of_llvm_are_errors() {
    let place = Place::new();
    place.put("empty.c", "int main(void) { return 0; }");
    place.clang("-c empty.c -o empty.o");
    for tool in ["theirs", "ours"] {
        let program = place.at(tool).join("clang-linker-wrapper");
        for option in ["-mllvm -nosuch", "--offload-opt=-nosuch"] {
            let line = format!("--linker-path=true {option} empty.o -o x");
            let output = place.output(&program, &line);
            assert!(!output.status.success(), "{tool} {option}");
            assert!(stderr(&output).contains("'-nosuch'"), "{}", stderr(&output));
        }
        let output = place.output(&program, "-mllvm --help");
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains("OPTIONS:"));
    }
}

/// HIP without `-fgpu-rdc`: the tool makes the bundle of each source file.
#[test]
fn objects_of_hip_are_the_same() {
    let place = Place::new();
    compile(&place);
    fs::create_dir(place.at("tool")).unwrap();
    // In one place: clang hashes its command line into names of symbols.
    let compile = |options: &str| {
        ["theirs", "ours"].map(|tool| {
            let link = place.at("tool/clang-linker-wrapper");
            let _ = fs::remove_file(&link);
            symlink(place.at(tool).join("clang-linker-wrapper"), link).unwrap();
            let tool = place.at("tool");
            place.clang(&format!("-B{} {HIP} {options} -c other.hip -o o.o", tool.display()));
            (fs::read(place.at("o.o")).unwrap(), images(&place.at("o.o")))
        })
    };
    for options in ["", "-fPIC -O2 -g"] {
        let objects = compile(options);
        assert!(objects[0].0 == objects[1].0, "{options}");
    }
    let packed = compile("--offload-compress --offload-compression-level=5");
    assert!(packed[0].1 == packed[1].1 && packed[0].1.len() == 3);
}

/// COFF: a DLL of `lld-link`, where only the images count.
#[test]
fn libraries_for_windows_have_the_same_images() {
    let place = Place::new();
    for name in ["main", "other"] {
        // An entry: without any, LLVM's registration code does not link.
        let entry = "__attribute__((section(\"llvm_offload_entries$OE\"), used)) static const long long entry[7] = {1}";
        place.put(
            &format!("{name}.c"),
            &format!("int {name}(void) {{ return 1; }}\n#ifdef _WIN32\n{entry};\n#endif\n"),
        );
        place.clang(&format!("--target={AMD} -nogpulib -emit-llvm -c {name}.c -o {name}.bc"));
        let images = ["hip:gfx90a", "hip:gfx1030"];
        place.package(&format!("{name}.pack"), &format!("{name}.bc"), &images);
        place.clang(&format!(
            "-cc1 {name}.c -triple x86_64-pc-windows-msvc -emit-obj -o {name}.obj \
             -fembed-offload-object={name}.pack"
        ));
    }
    place.run(llvm("llvm-lib"), "-out:other.lib other.obj");
    let linker = llvm("lld-link");
    for line in ["main.obj other.obj -out:x.dll", "-out:x.dll main.obj -libpath:. other.lib"] {
        let images = ["theirs", "ours"].map(|tool| {
            place.run(
                place.at(tool).join("clang-linker-wrapper"),
                &format!(
                    "--host-triple=x86_64-pc-windows-msvc --linker-path={} -dll -noentry -nodefaultlib \
                     -force:unresolved {line}",
                    linker.display()
                ),
            );
            let images = images(&place.at("x.dll"));
            fs::remove_file(place.at("x.dll")).unwrap();
            images
        });
        assert!(images[0] == images[1] && images[1].len() == 3, "{line}");
    }
}

/// CUDA with stand-ins for the compiler and for the host linker: the fatbinary is made here; for LLVM's tool, our
/// `fatbinary` makes it.
#[test]
fn fatbinaries_of_cuda_are_the_same() {
    let place = Place::new();
    place.object("a", &["cuda:sm_80", "cuda:sm_90a"]);
    fs::create_dir_all(place.at("tools/bin")).unwrap();
    // An ELF header for an NVIDIA GPU; the number of the processor is in its flags.
    let script = "#!/usr/bin/env python3\n\
        import sys\n\
        out, arch = sys.argv[sys.argv.index('-o') + 1], [a for a in sys.argv if a.startswith('-march=')][0]\n\
        cubin = bytearray(b'\\x7fELF\\x02\\x01\\x01\\x33\\x07' + bytes(55))\n\
        cubin[18], cubin[48] = 190, int(arch[10:12])\n\
        open(out, 'wb').write(cubin)\n";
    place.put("tools/bin/clang", script);
    fs::set_permissions(place.at("tools/bin/clang"), PermissionsExt::from_mode(0o755)).unwrap();
    symlink(tool("fatbinary"), place.at("tools/bin/fatbinary")).unwrap();
    // LLVM's tool looks for clang beside its own file.
    fs::copy(llvm("clang-linker-wrapper"), place.at("tools/bin/theirs")).unwrap();
    fs::copy(tool("clang-linker-wrapper"), place.at("tools/bin/ours")).unwrap();
    let library = llvm("clang").parent().unwrap().with_file_name("lib");
    let wrappers = ["theirs", "ours"].map(|tool| {
        let mut command = new_command(place.at("tools/bin").join(tool));
        command.args(["--linker-path=/bin/true", "--save-temps", "-o", "out", "a.o"]);
        command.arg(format!("--host-triple={HOST}"));
        // Only theirs gets the program.
        if tool == "theirs" {
            command.arg(format!("--cuda-path={}", place.at("tools").display()));
        } else {
            fs::remove_file(place.at("tools/bin/fatbinary")).unwrap();
        }
        printed(command.current_dir(&place.0).env("LD_LIBRARY_PATH", &library));
        (fs::read(place.at("out.fatbin")).unwrap(), images(&place.at("out.cuda.image.wrapper.o")))
    });
    assert!(wrappers[0] == wrappers[1]);
    assert_eq!(wrappers[1].1.len(), 2);
}

/// The offload binaries of OpenMP, byte for byte: those of machine code and of bitcode.
#[test]
fn offload_binaries_of_openmp_are_the_same() {
    let place = Place::new();
    place.put("a.c", "int a(void) { return 1; }\n");
    place.clang(&format!("--target={AMD} -nogpulib -emit-llvm -c a.c -o a.bc"));
    place.package("a.pack", "a.bc", &["openmp:gfx90a", "openmp:gfx1030", "openmp:gfx942:xnack+"]);
    for option in ["", "--embed-bitcode"] {
        let sections = ["theirs", "ours"].map(|tool| {
            place.run(
                place.at(tool).join("clang-linker-wrapper"),
                &format!(
                    "--linker-path=/bin/true --host-triple={HOST} --save-temps {option} a.pack -o out"
                ),
            );
            place.openmp_images()
        });
        assert!(sections[0] == sections[1], "{option}");
    }
}

/// SPIR-V for Intel lies in an ELF file. Stand-ins for the compiler and for the host linker.
#[test]
fn openmp_images_for_intel_are_the_same() {
    let place = Place::new();
    fs::create_dir(place.at("bin")).unwrap();
    place.put(
        "bin/clang",
        "#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\nfor last; do :; done\nexec cp \"$last\" \"$2\"\n",
    );
    fs::set_permissions(place.at("bin/clang"), PermissionsExt::from_mode(0o755)).unwrap();
    fs::copy(llvm("clang-linker-wrapper"), place.at("bin/theirs")).unwrap();
    fs::copy(tool("clang-linker-wrapper"), place.at("bin/ours")).unwrap();
    let library = llvm("clang").parent().unwrap().with_file_name("lib");
    for size in [4, 101, 5000] {
        let mut module = b"\x03\x02\x23\x07".to_vec();
        module.resize(size, 7);
        fs::write(place.at("module.spv"), &module).unwrap();
        let image = "--image=file=module.spv,kind=openmp,triple=spirv64-intel,arch=";
        place.run(tool("llvm-offload-binary"), &format!("-o a.pack {image}"));
        let sections = ["theirs", "ours"].map(|tool| {
            printed(
                new_command(place.at("bin").join(tool))
                    .arg(format!("--host-triple={HOST}"))
                    .args(["--linker-path=/bin/true", "--save-temps", "-o", "out", "a.pack"])
                    .current_dir(&place.0)
                    .env("LD_LIBRARY_PATH", &library),
            );
            place.openmp_images()
        });
        assert!(sections[0] == sections[1], "{size}");
        assert!(sections[1].windows(module.len()).any(|window| window == module), "{size}");
    }
}

#[test]
fn saved_files_have_the_names_of_llvm() {
    let place = Place::new();
    compile(&place);
    let [theirs, ours] = ["theirs", "ours"].map(|tool| {
        let directory = place.at(&format!("saved-{tool}"));
        fs::create_dir(&directory).unwrap();
        printed(
            new_command(place.at(tool).join("clang-linker-wrapper"))
                .args(["--linker-path=/bin/true", "--save-temps", "-o", "dir/out"])
                .arg(format!("--host-triple={HOST}"))
                .args(["../main.o", "../libother.a"])
                .current_dir(&directory)
                .env("PATH", llvm("clang").parent().unwrap()),
        );
        files_in(&directory)
    });
    assert!(theirs.keys().eq(ours.keys()), "{:?} {:?}", theirs.keys(), ours.keys());
    for name in ["out.hipfb", "out.amdgcn.gfx90a.img", "main-amdgcn-amd-amdhsa-gfx1030.o"] {
        assert!(theirs[name] == ours[name], "{name}");
    }
}

/// Without clang in `PATH`: it is found beside the one that runs the tool.
#[test]
fn the_compiler_that_calls_links_device_code() {
    let place = Place::new();
    compile(&place);
    fs::create_dir(place.at("empty")).unwrap();
    printed(
        new_command(llvm("clang"))
            .arg(format!("-B{}", place.at("ours").display()))
            .args(LINK_HIP.split(' '))
            .args(["-fuse-ld=lld", "-shared", "main.o", "other.o", "-o", "lib.so"])
            .current_dir(&place.0)
            .env("PATH", place.at("empty")),
    );
    assert_eq!(images(&place.at("lib.so")).len(), 3);
}

/// Arguments that are too long for a process go to the programs in files.
#[test]
fn long_command_lines_are_passed_in_files() {
    let place = Place::new();
    place.object("a", &["hip:gfx90a"]);
    fs::create_dir(place.at("bin")).unwrap();
    // Splits files as compilers and linkers do, and counts the inputs that there are.
    let script = "#!/usr/bin/env python3\n\
        import os, shlex, sys\n\
        assert len(sys.argv) == 2 and sys.argv[1][0] == '@'\n\
        words = shlex.split(open(sys.argv[1][1:]).read())\n\
        found = sum(os.path.getsize(word) > 0 for word in words if word.endswith('.o'))\n\
        open(words[words.index('-o') + 1], 'w').write(f'{found} inputs')\n";
    for name in ["clang", "ld"] {
        place.put(&format!("bin/{name}"), script);
        fs::set_permissions(place.at("bin").join(name), PermissionsExt::from_mode(0o755)).unwrap();
    }
    let inputs: Vec<_> = (0..1400)
        .map(|number| place.at(&format!("un\"it' \\{}{number}.o", "x".repeat(180))))
        .collect();
    for input in &inputs {
        fs::copy(place.at("a.o"), input).unwrap();
    }
    printed(
        new_command(tool("clang-linker-wrapper"))
            .arg(format!("--host-triple={HOST}"))
            .arg(format!("--linker-path={}", place.at("bin/ld").display()))
            .args(["--save-temps", "-o", "program"])
            .args(&inputs)
            .current_dir(&place.0)
            .env("PATH", place.path_with("bin")),
    );
    let read = |name: &str| fs::read_to_string(place.at(name)).unwrap();
    assert_eq!(read("program.amdgcn.gfx90a.img"), "1400 inputs");
    assert_eq!(read("program"), "1401 inputs");
}

#[test]
fn no_temporary_file_stays() {
    let place = Place::new();
    compile(&place);
    let temporary = place.at("temporary");
    fs::create_dir(&temporary).unwrap();
    for (line, works) in [("main.o other.o", true), ("main.o", false)] {
        let output = new_command(tool("clang-linker-wrapper"))
            .args(["--linker-path=/bin/true", "-o", "out"])
            .args(line.split(' '))
            .current_dir(&place.0)
            .env("TMPDIR", &temporary)
            .env("PATH", llvm("clang").parent().unwrap())
            .output()
            .unwrap();
        assert_eq!(output.status.success(), works, "{line}: {}", stderr(&output));
        assert!(works || stderr(&output).ends_with("error: 'clang' failed\n"), "{line}");
        assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "{line}");
    }
}

const NEEDED: &str = "-Wl,--archive-members=needed";

/// Compiles further members for HIP: each has a host function and a kernel of its own.
fn compile_members(place: &Place, options: &str) {
    for (name, code) in [
        (
            "lost",
            "extern \"C\" __device__ int missing(int);\n\
             extern \"C\" __global__ void lost_kernel(int *p) { *p = missing(*p); }\n\
             extern \"C\" void lost(void) {}\n",
        ),
        (
            "extra",
            "extern \"C\" void deep(void);\n\
             extern \"C\" __global__ void extra_kernel(int *p) { *p = 1; }\n\
             extern \"C\" void extra(void) { deep(); }\n",
        ),
        (
            "deep",
            "extern \"C\" __global__ void deep_kernel(int *p) { *p = 2; }\n\
             extern \"C\" void deep(void) {}\n",
        ),
        (
            "device",
            "extern \"C\" __device__ int other(int x) { return x + 2; }\n\
             extern \"C\" __global__ void device_kernel(int *p) { *p = other(3); }\n\
             extern \"C\" void nobody(void) {}\n",
        ),
        (
            "alone",
            "extern \"C\" __device__ int other(int);\n\
             extern \"C\" __global__ void alone_kernel(int *p) { *p = other(*p); }\n\
             int main() { return 0; }\n",
        ),
        ("calls", "extern \"C\" void extra(void);\nextern \"C\" void more(void) { extra(); }\n"),
    ] {
        place.put(&format!("{name}.hip"), &format!("{HIP_START}{code}"));
        place.clang(&format!("{HIP} -fgpu-rdc {options} -c {name}.hip -o {name}.o"));
        place.run(llvm("llvm-ar"), &format!("rcs lib{name}.a {name}.o"));
    }
    place.run(llvm("llvm-ar"), "rcs liball.a other.o lost.o extra.o deep.o");
}

/// Links with our tool, and returns what the program registers, and the kernels that its images have.
fn linked_with_needed(place: &Place, line: &str) -> (String, Vec<String>) {
    let ours = place.at("ours");
    let line = format!("{LINK_HIP} -B{} {NEEDED} {line} registered.o -o program", ours.display());
    place.clang(&line);
    let said = place.run(place.at("program"), "");
    let images = images(&place.at("program"));
    let has = |name: &str| {
        let name = format!("{name}.kd\0");
        images.iter().any(|(_, bytes)| bytes.windows(name.len()).any(|it| it == name.as_bytes()))
    };
    let kernels = ["kernel", "second", "lost_kernel", "extra_kernel", "deep_kernel"];
    let kernels = kernels.iter().chain(&["device_kernel", "alone_kernel"]);
    let kernels = kernels.filter(|name| has(&format!("\0{name}"))).map(|name| (*name).to_owned());
    (said, kernels.collect())
}

/// A member that nobody needs, with an undefined symbol in its device code: LLVM's tool fails.
#[test]
fn members_that_nobody_needs_do_no_harm() {
    let place = Place::new();
    compile(&place);
    compile_members(&place, "");
    let theirs = format!(
        "{LINK_HIP} -B{} main.o liball.a registered.o -o program",
        place.at("theirs").display()
    );
    let output = place.output(&llvm("clang"), &theirs);
    assert!(!output.status.success());
    assert!(stderr(&output).contains("symbol: missing"), "{}", stderr(&output));
    // So does ours, by default.
    let ours = theirs.replace("theirs", "ours");
    assert!(!place.output(&llvm("clang"), &ours).status.success());
    let (said, kernels) = linked_with_needed(&place, "main.o liball.a");
    assert_eq!(kernels, ["kernel", "second"]);
    assert!(said.contains("second") && said.contains("variable"), "{said}");
    assert!(!said.contains("lost") && !said.contains("extra"), "{said}");
    // The same as with the needed objects alone.
    let ours = place.at("ours");
    place.clang(&format!("{LINK_HIP} -B{} main.o other.o registered.o -o program", ours.display()));
    assert_eq!(place.run(place.at("program"), ""), said);
}

/// Images have the kernels that the program registers: those of the members that the host linker takes.
#[test]
fn images_have_the_kernels_of_linked_members() {
    let place = Place::new();
    compile(&place);
    compile_members(&place, "");
    for (line, expected) in [
        ("main.o liball.a", &["kernel", "second"][..]),
        ("main.o liball.a -Wl,-u,extra", &["kernel", "second", "extra_kernel", "deep_kernel"]),
        ("main.o liball.a -Wl,--undefined=deep", &["kernel", "second", "deep_kernel"]),
        ("main.o -L. -lall -Wl,--require-defined=deep", &["kernel", "second", "deep_kernel"]),
        // Through a member without device code of its own, and libraries in any order.
        (
            "-fuse-ld=lld libdeep.a libextra.a liblost.a libcalls.a libdevice.a main.o",
            &["kernel", "extra_kernel", "deep_kernel", "device_kernel"],
        ),
        (
            "main.o other.o -Wl,--whole-archive libdeep.a -Wl,--no-whole-archive liblost.a",
            &["kernel", "second", "deep_kernel"],
        ),
        (
            "main.o other.o -Wl,--push-state,--whole-archive libdeep.a -Wl,--push-state,--no-whole-archive \
             liblost.a -Wl,--pop-state libextra.a -Wl,--pop-state liblost.a",
            &["kernel", "second", "extra_kernel", "deep_kernel"],
        ),
        // Needed by device code only: the program registers no kernel of it.
        ("alone.o libdevice.a liblost.a", &["device_kernel", "alone_kernel"]),
        // Members of the C library are looked at, and its linker scripts are not used.
        ("-static main.o -L. -lall", &["kernel", "second"]),
        // A shared library needs it.
        (
            "main.o other.o libshared.so -L. -ldeep -Wl,-rpath,.",
            &["kernel", "second", "deep_kernel"],
        ),
        // A linker script names the library.
        ("main.o other.o -L. -lscript", &["kernel", "second", "extra_kernel", "deep_kernel"]),
    ] {
        // The program runs in this directory.
        place.put("shared.c", "void deep(void); void shared(void) { deep(); }\n");
        place.clang("-shared -fPIC shared.c -o libshared.so");
        place.put(
            "libscript.so",
            "/* GNU ld script */ GROUP ( -lextra libdeep.a ) EXTERN ( extra )\n",
        );
        let (said, kernels) = linked_with_needed(&place, line);
        assert_eq!(kernels, expected, "{line}");
        for kernel in
            expected.iter().filter(|name| line.starts_with("main") || **name != "device_kernel")
        {
            assert!(said.contains(kernel), "{line}: {kernel}: {said}");
        }
        assert!(!said.contains("lost"), "{line}: {said}");
    }
    let (said, _) = linked_with_needed(&place, "alone.o libdevice.a");
    assert!(said.contains("alone_kernel") && !said.contains("device_kernel"), "{said}");
}

/// Link-time optimisation of the host: objects and members are bitcode.
#[test]
fn members_of_bitcode_are_chosen() {
    let place = Place::new();
    compile(&place);
    compile_members(&place, "-flto");
    for name in ["main", "other"] {
        place.clang(&format!("{HIP} -fgpu-rdc -flto -c {name}.hip -o {name}.o"));
        assert!(fs::read(place.at(&format!("{name}.o"))).unwrap().starts_with(b"BC"), "{name}");
    }
    fs::remove_file(place.at("liball.a")).unwrap();
    place.run(llvm("llvm-ar"), "rcs liball.a other.o lost.o extra.o deep.o");
    let (said, kernels) = linked_with_needed(&place, "-flto -fuse-ld=lld main.o liball.a");
    assert_eq!(kernels, ["kernel", "second"]);
    assert!(said.contains("second"), "{said}");
    let line = "-flto -fuse-ld=lld liball.a main.o -Wl,-u,extra";
    let (said, kernels) = linked_with_needed(&place, line);
    assert_eq!(kernels, ["kernel", "second", "extra_kernel", "deep_kernel"]);
    assert!(said.contains("deep_kernel"), "{said}");
}

/// The host linkers as oracles: each member that one of them takes, with any order of inputs, is linked.
#[test]
fn no_member_that_a_host_linker_takes_is_left_out() {
    let place = Place::new();
    let mut random = Random::new(3);
    let linkers = ["ld", "ld.lld"].map(|name| match name {
        "ld" => PathBuf::from("/usr/bin/ld"),
        _ => llvm(name),
    });
    let mut taken_by_linkers = 0;
    let mut left_out = 0;
    for round in 0..12 {
        let is_bitcode = round % 4 == 3;
        let names: Vec<_> = (0..9).map(|number| format!("o{number}")).collect();
        for name in &names {
            let mut code = String::new();
            for symbol in 0..12 {
                let extra = match random.below(16) {
                    0 | 1 => format!("int s{symbol} = 1;\n"),
                    2 => format!("__attribute__((weak)) int s{symbol} = 2;\n"),
                    3 => format!("int s{symbol};\n"),
                    4 | 5 => format!("extern int s{symbol}; int *p{symbol}_{name} = &s{symbol};\n"),
                    6 => format!(
                        "extern __attribute__((weak)) int s{symbol}; int *p{symbol}_{name} = &s{symbol};\n"
                    ),
                    _ => String::new(),
                };
                code.push_str(&extra);
            }
            place.put(&format!("{name}.c"), &code);
            place.put(&format!("{name}.img"), &format!("device code of {name}"));
            place.package(&format!("{name}.pack"), &format!("{name}.img"), &["hip:gfx90a"]);
            let emits = if is_bitcode { "-emit-llvm-bc" } else { "-emit-obj" };
            place.clang(&format!(
                "-cc1 {name}.c -triple {HOST} -fcommon {emits} -o {name}.o -fembed-offload-object={name}.pack"
            ));
        }
        let libraries = ["l0.a", "l1.a", "l2.a"];
        for (library, members) in libraries.iter().zip(names[2..].chunks(3)) {
            let _ = fs::remove_file(place.at(library));
            let members: Vec<_> = members.iter().map(|name| format!("{name}.o")).collect();
            place.run(llvm("llvm-ar"), &format!("rcs {library} {}", members.join(" ")));
        }
        let mut line = vec!["o0.o", "o1.o", "l0.a", "l1.a", "l2.a"];
        for _ in 0..4 {
            random.shuffle(&mut line);
            let line = line.join(" ");
            let plan = place.run(tool("offload"), &format!("link --print-plan --json {line}"));
            let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
            let inputs = plan["images"][0]["inputs"].as_array().unwrap();
            // Device code of an unknown format: only the host decides.
            let by_host = |input: &&serde_json::Value| input["needed_by"] != "unknown";
            let ours: Vec<_> = inputs.iter().filter(by_host).collect();
            left_out += 9 - ours.len();
            for linker in &linkers {
                if is_bitcode && linker.ends_with("ld") {
                    continue;
                }
                let options = "-shared -z muldefs --unresolved-symbols=ignore-all --trace -o out";
                let traced = place.run(linker, &format!("{options} {line}"));
                for name in names[2..].iter().filter(|name| traced.contains(&format!("{name}.o"))) {
                    taken_by_linkers += 1;
                    let is_taken = ours.iter().any(|input| input["member"] == format!("{name}.o"));
                    assert!(is_taken, "{line} {name}: {traced} {ours:?}");
                }
            }
        }
    }
    assert!(taken_by_linkers > 100 && left_out > 20, "{taken_by_linkers} {left_out}");
}
