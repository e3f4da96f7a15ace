//! The compiler and the linker make programs that offload; only a C compiler takes part.
use std::env::consts::ARCH;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::common::{Arg, data, fails, images, names, run, start};

const COMPILER: &str = env!("CARGO_BIN_EXE_compiler");
const ENTRIES: &str = env!("CARGO_BIN_EXE_entries");
const LINK_STEP: &str = env!("CARGO_BIN_EXE_link_step");
const LINKER_HOOK: &str = env!("CARGO_BIN_EXE_linker_hook");
const LINKER: &str = env!("CARGO_BIN_EXE_linker");
const GFX90A: &str = "hip-amdgcn-amd-amdhsa--gfx90a";

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("pipeline").join(name)
}

#[test]
fn a_compiler_embeds_images() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let code = data("hip-embedded.bc");
    let ids = [&format!("{GFX90A}:xnack+"), "hipv4-amdgcn-amd-amdhsa--gfx1100"];
    let args: [Arg<'_>; 6] = [&"fat.o", &data("host.o"), &ids[0], &code, &ids[1], &code];
    assert_eq!(run(place, COMPILER, &args), "");
    let bytes = fs::read(&code).unwrap();
    assert_eq!(
        images(&place.join("fat.o")),
        [(ids[0].to_owned(), bytes.clone()), (ids[1].replace("hipv4", "hip"), bytes)]
    );
}

#[test]
fn errors_leave_no_output() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let (host, source) = (data("host.o"), data("src/scale.hip"));
    let compiler = |args: &[Arg<'_>]| {
        let fixed: [Arg<'_>; 2] = [&"fat.o", &host];
        fails(place, COMPILER, &[&fixed, args].concat())
    };
    let found = "unknown where an AMD GPU code object or LLVM bitcode is expected";
    let expected = format!("compiler: {}: {found}\n", source.display());
    assert_eq!(compiler(&[&GFX90A, &source]), expected);
    assert_eq!(compiler(&[&GFX90A]), "compiler: expected an image after each entry ID\n");
    let expected = "compiler: host-x86_64-linux-gnu-: packages have no images of kind host\n";
    assert_eq!(compiler(&[&"host-x86_64-linux-gnu-", &source]), expected);
    assert!(compiler(&[&GFX90A, &"none"]).starts_with("compiler: none: "));
    assert!(fails(place, COMPILER, &[&"fat.o", &"none.c"]).starts_with("compiler: none.c: "));
    assert!(fails(place, LINKER, &[&"-o", &"program", &"none.o"]).starts_with("linker: none.o: "));
    assert!(fails(place, LINKER, &[]).starts_with("linker: usage: "));
    assert!(names(place).is_empty());
}

/// Compiles `host.c` with `images` into "fat.o" and the runtime into "runtime.o"; "device.img" is an image for this
/// machine.
fn compile(place: &Path, fat: &OsStr, images: &[(&str, &dyn AsRef<OsStr>)]) {
    run(place, "cc", &[&"-c", &"-fPIE", &source("runtime.c"), &"-o", &"runtime.o"]);
    run(place, "cc", &[&"-shared", &"-fPIC", &source("device.c"), &"-o", &"device.img"]);
    let host = source("host.c"); // compiled by the compiler
    let mut args: Vec<Arg<'_>> = vec![&fat, &host];
    for (id, image) in images {
        args.extend([id as Arg<'_>, *image]);
    }
    assert_eq!(run(place, COMPILER, &args), "");
}

/// A program offloads to a device that this machine plays.
#[test]
fn a_program_finds_its_device_code() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let (fat, program) = (OsStr::from_bytes(b"fat\xff.o"), OsStr::from_bytes(b"program\xff"));
    let device = format!("openmp-{ARCH}-unknown-linux-gnu-");
    let gpu = data("hip-embedded.bc");
    let images: [(&str, Arg<'_>); 2] =
        [("openmp-amdgcn-amd-amdhsa--gfx90a", &gpu), (&device, &"device.img")];
    compile(place, fat, &images);
    let args: [Arg<'_>; 6] = [&"-o", &program, &fat, &"runtime.o", &"--", &"-ldl"];
    assert_eq!(run(place, LINKER, &args), "");
    let sizes = [&gpu, &place.join("device.img")].map(|file| fs::metadata(file).unwrap().len());
    fs::rename(place.join(program), place.join("program")).unwrap();
    assert_eq!(
        run(place, "./program", &[]),
        format!(
            "image 0: {} bytes, loaded\n\
             launching scale\n2 4 6\nunregistered\n",
            sizes[1]
        )
    );
    // Without a device linker there is one image for each target.
    let again: [Arg<'_>; 5] = [&"-o", &"two", &fat, &fat, &"runtime.o"];
    let said = fails(place, LINKER, &again);
    assert_eq!(
        said,
        format!(
            "linker: 2 inputs for openmp-{ARCH}-unknown-linux-gnu-: \
             --device-linker '{ARCH}-unknown-linux-gnu=COMMAND' has to link them\n"
        )
    );
    assert!(!place.join("two").exists());
}

/// A linker in its own process: code for several programming models and targets, one object.
#[test]
fn one_object_registers_the_code_of_all_inputs() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let triple = format!("{ARCH}-unknown-linux-gnu");
    let device = format!("openmp-{triple}-");
    compile(place, OsStr::new("host.o"), &[(&device, &"device.img")]);
    let gpu = data("hip-embedded.bc");
    let newer = GFX90A.replace("gfx90a", "gfx1100");
    fs::write(place.join("empty.c"), "").unwrap();
    fs::write(
        place.join("hip.c"),
        "#include <stdio.h>\n\
         struct wrapper { int magic, version; const char *bundle; };\n\
         static int handle;\n\
         void *__hipRegisterFatBinary(const struct wrapper *wrapper) {\n\
           printf(\"hip %.24s\\n\", wrapper->bundle);\n\
           return &handle;\n\
         }\n\
         void __hipUnregisterFatBinary(void *it) { puts(it == &handle ? \"hip ends\" : \"?\"); }\n\
         void __hipRegisterFunction(void) {}\n\
         void __hipRegisterVar(void) {}\n\
         void __hipRegisterManagedVar(void) {}\n\
         void __hipRegisterSurface(void) {}\n\
         void __hipRegisterTexture(void) {}\n",
    )
    .unwrap();
    run(place, COMPILER, &[&"a.o", &"empty.c", &GFX90A, &gpu]);
    run(place, COMPILER, &[&"b.o", &"empty.c", &newer, &gpu]);
    run(place, "ar", &[&"rcs", &"libc.a", &"b.o"]);
    let inputs: [Arg<'_>; 3] = [&"host.o", &"a.o", &"b.o"];
    assert_eq!(run(place, LINK_STEP, &[&[&"all.o" as Arg<'_>, &triple], &inputs[..]].concat()), "");
    let found: Vec<_> = images(&place.join("all.o")).into_iter().map(|(id, _)| id).collect();
    let host = "host-x86_64-unknown-linux-gnu-";
    assert_eq!(found, [&device, host, GFX90A, &newer]);
    let program: [Arg<'_>; 5] = [&"host.o", &"a.o", &"b.o", &"all.o", &"runtime.o"];
    run(place, "cc", &[&program[..], &[&"hip.c", &"-o", &"program", &"-ldl"]].concat());
    let said = run(place, "./program", &[]);
    for line in
        ["loaded\n", "hip __CLANG_OFFLOAD_BUNDLE__\n", "launching scale\n2 4 6\n", "hip ends\n"]
    {
        assert!(said.contains(line), "{said}");
    }
    // Members of archives demand no images; the same object twice needs a device linker.
    let said = fails(place, LINK_STEP, &[&"none.o", &triple, &"libc.a"]);
    assert_eq!(said, "link_step: no device code in the inputs\n");
    let said = fails(place, LINK_STEP, &[&"none.o", &triple, &"a.o", &"a.o"]);
    assert_eq!(said, "link_step: 2 inputs for amdgcn-amd-amdhsa gfx90a\n");
    assert!(!place.join("none.o").exists());
}

/// A linker links the device code of members that it loaded, and of no others.
#[test]
fn a_linker_says_which_members_it_loaded() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let clang = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/clang.sh");
    let gpu = data("hip-embedded.bc");
    for (name, text) in [
        ("main", "int used(void); int main(void) { return used(); }\n"),
        ("used", "int deep(void); int used(void) { return deep(); }\n"),
        ("deep", "int deep(void) { return 0; }\n"),
        ("idle", "int idle(void) { return 1; }\n"),
    ] {
        let [source, object] = [format!("{name}.c"), format!("{name}.o")];
        fs::write(place.join(&source), text).unwrap();
        run(place, COMPILER, &[&object, &source, &GFX90A, &gpu]);
    }
    run(place, "ar", &[&"rcs", &"lib.a", &"deep.o", &"idle.o", &"used.o"]);
    let triple = format!("{ARCH}-unknown-linux-gnu");
    let linked = |files: &[Arg<'_>]| {
        let fixed: [Arg<'_>; 3] = [&"all.o", &triple, &clang];
        assert_eq!(run(place, LINKER_HOOK, &[&fixed, files].concat()), "");
        images(&place.join("all.o")).into_iter().map(|(_, image)| image).collect::<Vec<_>>()
    };
    let code = fs::read(&gpu).unwrap();
    assert_eq!(linked(&[&"main.o", &"lib.a"]), [vec![], code.repeat(3)]);
    assert_eq!(linked(&[&"lib.a", &"deep.o"]), [vec![], code.clone()]);
    let args: [Arg<'_>; 4] = [&"none.o", &triple, &clang, &"lib.a"];
    assert_eq!(fails(place, LINKER_HOOK, &args), "linker_hook: no device code in the inputs\n");
    let args: [Arg<'_>; 4] = [&"none.o", &triple, &"no/clang", &"main.o"];
    assert!(fails(place, LINKER_HOOK, &args).starts_with("linker_hook: no/clang: "));
    assert!(!place.join("none.o").exists());
}

/// The compiler of the host leaves entries to us.
#[test]
fn a_program_finds_its_kernel_by_our_entries() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    run(place, "cc", &[&"-c", &"-fPIE", &source("runtime.c"), &"-o", &"runtime.o"]);
    run(place, "cc", &[&"-shared", &"-fPIC", &source("device.c"), &"-o", &"device.img"]);
    let (host, triple) = (source("plain.c"), format!("{ARCH}-unknown-linux-gnu"));
    run(place, COMPILER, &[&"fat.o", &host, &format!("openmp-{triple}-"), &"device.img"]);
    run(place, LINKER, &[&"-o", &"without", &"fat.o", &"runtime.o", &"--", &"-ldl"]);
    let output = start(place, "./without", &[]);
    assert!(String::from_utf8(output.stdout).unwrap().contains("no such kernel"));
    let entry = "scale=scale_kernel";
    assert_eq!(run(place, ENTRIES, &[&"entries.o", &"openmp", &triple, &entry]), "");
    let args: [Arg<'_>; 7] =
        [&"-o", &"program", &"fat.o", &"entries.o", &"runtime.o", &"--", &"-ldl"];
    run(place, LINKER, &args);
    let said = run(place, "./program", &[]);
    assert!(said.ends_with("launching scale\n2 4 6\nunregistered\n"), "{said}");
}

#[test]
fn impossible_entries_are_errors() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let entries = |args: &[Arg<'_>]| fails(place, ENTRIES, &[&[&"o" as Arg<'_>], args].concat());
    assert!(fails(place, ENTRIES, &[]).starts_with("entries: usage: "));
    let said = entries(&[&"hip", &"x86_64-unknown-linux-gnu", &"a=b", &"a=c:4"]);
    assert_eq!(said, "entries: offload entries 0 and 1 both have the name \"a\"\n");
    let said = entries(&[&"hip", &"x86_64-unknown-linux-gnu", &"a=b:0"]);
    assert!(said.starts_with("entries: offload entry 0 is a variable of 0 bytes"), "{said}");
    let said = entries(&[&"hip", &"x86_64-unknown-linux-gnu", &"a"]);
    assert_eq!(said, "entries: a: expected NAME=SYMBOL\n");
    assert!(names(place).is_empty());
}

/// Links a library with a device linker that joins files.
fn library_of<'a>(inputs: &[Arg<'a>]) -> Vec<Arg<'a>> {
    let device_linker = &"amdgcn-amd-amdhsa=sh link.sh {arch}";
    let mut args: Vec<Arg<'a>> = vec![&"--device-linker", device_linker, &"-o", &"lib.so"];
    args.extend(inputs);
    args.extend([&"--" as Arg<'a>, &"-shared", &"-nostdlib"]);
    args
}

#[test]
fn code_is_linked_for_every_target_that_objects_have() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    fs::write(place.join("link.sh"), "echo $1; out=$3; shift 3; cat \"$@\" >$out\n").unwrap();
    let compiler = |object: &str, images: &[(&str, &str)]| {
        fs::write(place.join("empty.c"), "").unwrap();
        let mut args: Vec<OsString> = vec![object.into(), "empty.c".into()];
        for (id, name) in images {
            // An image that starts as bitcode may be for any target.
            let image = [b"BC\xc0\xde", name.as_bytes(), b" "].concat();
            fs::write(place.join(name), image).unwrap();
            args.extend([id.into(), name.into()]);
        }
        run(place, COMPILER, &args.iter().map(|arg| arg as Arg<'_>).collect::<Vec<_>>());
    };
    let gfx = |id: &str| format!("openmp-amdgcn-amd-amdhsa--{id}");
    compiler("one.o", &[(&gfx("gfx90a"), "one")]);
    compiler("two.o", &[(&gfx("gfx90a:xnack+"), "two")]);
    compiler("three.o", &[(&gfx("gfx90a"), "three"), (&gfx("gfx1100"), "newer")]);
    compiler("four.o", &[(&gfx("gfx90a:xnack-"), "four"), (&gfx("generic"), "any")]);
    run(place, "ar", &[&"rcs", &"lib.a", &"three.o", &"four.o"]);

    let said = run(place, LINKER, &library_of(&[&"one.o", &"two.o", &"lib.a"]));
    assert_eq!(said, "gfx90a:xnack+\ngfx90a\n");
    let expected = [("gfx90a:xnack+", "one two three any "), ("gfx90a", "one three any ")];
    let found = images(&place.join("lib.so")).into_iter().map(|(id, bytes)| {
        let text = String::from_utf8_lossy(&bytes).replace("BC\u{fffd}\u{fffd}", "");
        (id, text)
    });
    assert!(found.eq(expected.map(|(id, text)| (gfx(id), text.to_owned()))));

    // A thin archive names its members.
    run(place, "ar", &[&"rcsT", &"thin.a", &"three.o", &"four.o"]);
    run(place, LINKER, &library_of(&[&"one.o", &"two.o", &"thin.a"]));
    let texts: Vec<_> = images(&place.join("lib.so")).into_iter().map(|(_, text)| text).collect();
    assert!(texts[1].ends_with(b"any "));

    // HIP has one bundle, in which target IDs have to go together.
    compiler("hip.o", &[(GFX90A, "hip"), (&format!("{GFX90A}:xnack+"), "both")]);
    let said = fails(place, LINKER, &library_of(&[&"hip.o"]));
    assert!(said.contains("xnack"), "{said}");
    // Code of both is linked together; HIP asks for one of the targets only.
    compiler("hip.o", &[(GFX90A, "hip")]);
    run(place, LINKER, &library_of(&[&"hip.o", &"two.o"]));
    let mut found = images(&place.join("lib.so")).into_iter().map(|(id, _)| id).collect::<Vec<_>>();
    found.sort();
    let host = format!("host-{ARCH}-unknown-linux-gnu-");
    assert_eq!(found, [GFX90A, &host, &gfx("gfx90a:xnack+")]);
}

/// CUDA's runtime takes fatbinaries, which NVIDIA's tool makes.
#[test]
fn code_for_cuda_is_not_a_fatbinary() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let cubins = images(&data("packages.offload")).into_iter();
    let (id, cubin) = cubins.rev().find(|(id, _)| id.starts_with("cuda-")).unwrap();
    fs::write(place.join("cubin"), cubin).unwrap();
    fs::write(place.join("empty.c"), "").unwrap();
    run(place, COMPILER, &[&"fat.o", &"empty.c", &id, &"cubin"]);
    let said = fails(place, LINKER, &[&"-o", &"program", &"fat.o"]);
    assert_eq!(said, format!("linker: cubin for {id}: CUDA registers fatbinaries\n"));
}
