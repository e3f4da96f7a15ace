//! Registration code as LLVM IR, compared with what LLVM 22's `llvm-offload-wrapper` makes, and read by LLVM's tools.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points; fails without it.

#[path = "../common/modules.rs"]
mod modules;

use std::path::PathBuf;
use std::slice;

use crate::common::{llvm_command as llvm, printed as run};
use modules::{COFF, CUDA, CUDA_MANAGED, HIP, LOADS, plain, with, with_data_layout};
use tempfile::TempDir;
use wrapper_ir::{Abi, Image, OffloadKind, Target, Wrapper};

const LINUX: &str = "x86_64-unknown-linux-gnu";
const WINDOWS: &str = "x86_64-pc-windows-msvc";

/// Bytes that are written in each of the ways there are.
const IMAGE: &[u8] = b"ABC\"\\\n\x00\xff\x7f~ hello";

/// Files in a directory of their own.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, contents).unwrap();
        path
    }

    /// The module that LLVM's tool makes, as text.
    fn theirs(&self, kind: OffloadKind, triple: &str, images: &[&[u8]]) -> String {
        let module = self.path("theirs.bc");
        let mut command = llvm("llvm-offload-wrapper");
        command.arg(format!("--kind={kind}")).arg(format!("--triple={triple}"));
        command.arg("-o").arg(&module);
        for (index, image) in images.iter().enumerate() {
            command.arg(self.file(&format!("image{index}"), image));
        }
        run(&mut command);
        run(llvm("llvm-dis").arg(&module).args(["-o", "-"]))
    }
}

fn wrapper<'a>(kind: OffloadKind, abi: Abi, triple: &str, images: &[&'a [u8]]) -> Wrapper<'a> {
    let images = images.iter().map(|image| Image::from_bytes(image));
    Wrapper::new(kind, abi, Target::new(triple).unwrap()).with_images(images)
}

fn text(wrapper: &Wrapper<'_>, images: &[&[u8]]) -> String {
    wrapper.module().unwrap().ir_to_string(images).unwrap()
}

/// For the sanitizers, as LLVM 23 does.
const SANITIZERS: (&str, &str) = (
    "FatBinSegment\", align 8",
    "FatBinSegment\", no_sanitize_address, no_sanitize_hwaddress, align 8",
);

#[test]
fn openmp_modules_are_those_of_llvm() {
    let place = Place::new();
    let sets: [&[&[u8]]; 4] = [&[IMAGE], &[b"\x7fELF", b"", b"x"], &[b""], &[IMAGE; 12]];
    for images in sets {
        for triple in [LINUX, "aarch64-unknown-linux-gnu", "i386-unknown-linux-gnu"] {
            let theirs = plain(&place.theirs(OffloadKind::OPENMP, triple, images));
            let ours = text(&wrapper(OffloadKind::OPENMP, Abi::Current, triple, images), images);
            assert_eq!(ours, with_data_layout(theirs, triple));
        }
        let theirs = plain(&place.theirs(OffloadKind::OPENMP, WINDOWS, images));
        let ours = text(&wrapper(OffloadKind::OPENMP, Abi::Current, WINDOWS, images), images);
        assert_eq!(ours, with(with_data_layout(theirs, WINDOWS), &[COFF]));
    }
}

#[test]
fn hip_and_cuda_modules_are_those_of_llvm() {
    let place = Place::new();
    for triple in [LINUX, "riscv64-unknown-linux-gnu", WINDOWS] {
        for kind in [OffloadKind::HIP, OffloadKind::CUDA] {
            let theirs = with_data_layout(plain(&place.theirs(kind, triple, &[IMAGE])), triple);
            let theirs = with(theirs, if kind == OffloadKind::HIP { &HIP } else { &CUDA });
            let theirs = match triple {
                WINDOWS => with(theirs, &[COFF]),
                _ => theirs,
            };
            let as_llvm = wrapper(kind, Abi::Llvm22, triple, &[IMAGE]).with_llvm_code(true);
            assert_eq!(text(&as_llvm, &[IMAGE]), theirs);
            let theirs = with(with(theirs, &LOADS), &[SANITIZERS]);
            let wrapper = wrapper(kind, Abi::Current, triple, &[IMAGE]);
            let theirs =
                if kind == OffloadKind::CUDA { with(theirs, &CUDA_MANAGED) } else { theirs };
            assert_eq!(text(&wrapper, &[IMAGE]), theirs);
        }
    }
}

/// A package is put in as a whole, and what is registered is the image in it.
#[test]
fn a_package_is_included_whole_and_its_image_registered() {
    let place = Place::new();
    let package = place.path("package");
    let file = place.file("image", IMAGE);
    let image = format!("--image=file={},kind=openmp,triple={LINUX},arch=native", file.display());
    run(llvm("llvm-offload-binary").arg("-o").arg(&package).arg(image));
    let package = std::fs::read(package).unwrap();

    let theirs = plain(&place.theirs(OffloadKind::OPENMP, LINUX, &[&package]));
    let ours = text(&wrapper(OffloadKind::OPENMP, Abi::Current, LINUX, &[&package]), &[&package]);
    assert_eq!(ours, with_data_layout(theirs, LINUX));
}

/// Every module there is goes through LLVM's verifier, and comes back from it as it was.
#[test]
fn modules_pass_the_verifier_unchanged() {
    let place = Place::new();
    let mut count = 0;
    for triple in [
        LINUX,
        WINDOWS,
        "i386-unknown-linux-gnu",
        "i686-w64-windows-gnu",
        "armv7-unknown-linux-gnueabihf",
        "powerpc-unknown-linux-gnu",
        "s390x-unknown-linux-gnu",
        "arm64-apple-darwin",
    ] {
        for kind in Wrapper::KINDS {
            for abi in Abi::ALL {
                let wrapper = wrapper(kind, abi, triple, &[IMAGE]);
                let Ok(module) = wrapper.module() else { continue };
                let ours = module.ir_to_string(&[IMAGE]).unwrap();
                let file = place.file("ours.ll", &ours);
                let read = run(llvm("opt").args(["-passes=verify", "-S"]).arg(file));
                assert_eq!(plain(&read), ours, "{kind} {abi} {triple}");
                count += 1;
            }
        }
    }
    // Five with ELF, two with COFF, one with Mach-O.
    assert_eq!(count, 5 * 18 + 2 * 17 + 4);
}

/// Optimisation does not decide whether there are entries.
#[test]
fn optimisation_keeps_the_check_for_entries() {
    let place = Place::new();
    for triple in [LINUX, WINDOWS] {
        for kind in [OffloadKind::HIP, OffloadKind::CUDA] {
            for abi in Abi::ALL {
                let wrapper = wrapper(kind, abi, triple, &[IMAGE]);
                let Ok(module) = wrapper.module() else { continue };
                let file = place.file("ours.ll", module.ir_to_string(&[IMAGE]).unwrap());
                let optimised = run(llvm("opt").args(["-O3", "-S"]).arg(file));
                let asks = |line: &&str| line.contains("icmp eq ptr") && line.contains("@__stop_");
                assert_eq!(optimised.lines().filter(asks).count(), 2, "{optimised}");
            }
        }
    }
}

/// The list of target IDs is not folded by linkers.
#[test]
fn target_id_list() {
    let place = Place::new();
    let image = Image::from_bytes(IMAGE).with_target_id("gfx906");
    let target = Target::new(LINUX).unwrap();
    let wrapper = Wrapper::new(OffloadKind::OPENMP, Abi::Aomp, target)
        .with_images([image.clone(), image.clone()]);
    let file = place.file("ours.ll", text(&wrapper, &[IMAGE, IMAGE]));
    let object = place.path("ours.o");
    let mut llc = llvm("llc");
    run(llc.args(["-filetype=obj", "-relocation-model=pic", "-o"]).arg(&object).arg(file));
    let dump = run(llvm("llvm-readelf").args(["-p", ".offload_arch_list", "-S"]).arg(&object));
    assert_eq!(dump.matches("gfx906").count(), 2, "{dump}");
    let section = dump.lines().find(|line| line.contains(".offload_arch_list")).unwrap();
    assert!(section.contains(" A ") && !section.contains("AMS"), "{section}");
}

/// COFF: programs link whether they have entries or not, and the bounds are right.
#[test]
fn programs_without_entries_link() {
    const RUNTIME: &str = "
        int atexit(void (*function)(void)) { return 0; }
        void __tgt_register_lib(void *library) {}
        void __tgt_unregister_lib(void *library) {}
        int _DllMainCRTStartup(void) { return 1; }
    ";
    const ENTRY: &str = "
        struct entry {
            long long reserved; short version, kind; int flags; void *address; const char *name;
            long long size, data; void *auxiliary;
        };
        __attribute__((section(\"llvm_offload_entries$OE\"), used))
        const struct entry entry = {0, 1, 1, 0, 0, \"name\", 0, 0, 0};
    ";
    let place = Place::new();
    let compile = |name: &str, source: &str| {
        let (file, object) = (place.file(&format!("{name}.c"), source), place.path(name));
        let mut clang = llvm("clang");
        clang.args(["-c", &format!("--target={WINDOWS}"), "-Wno-everything", "-o"]);
        run(clang.arg(&object).arg(file));
        object
    };
    let (runtime, entry) = (compile("runtime", RUNTIME), compile("entry", ENTRY));
    for abi in [Abi::Current, Abi::Llvm24] {
        let wrapper = wrapper(OffloadKind::OPENMP, abi, WINDOWS, &[IMAGE]);
        let file = place.file("ours.ll", text(&wrapper, &[IMAGE]));
        let object = place.path("ours.obj");
        run(llvm("llc").args(["-filetype=obj", "-o"]).arg(&object).arg(file));
        for (others, size) in [(&[][..], 0), (slice::from_ref(&entry), 56)] {
            let (library, map) = (place.path("ours.dll"), place.path("ours.map"));
            let mut lld = llvm("lld-link");
            lld.args(["/dll", "/noimplib"]).arg(format!("/out:{}", library.display()));
            lld.arg(format!("/map:{}", map.display())).args([&object, &runtime]).args(others);
            run(&mut lld);
            let map = std::fs::read_to_string(map).unwrap();
            let address = |name: &str| {
                let line = map.lines().find(|line| line.contains(name)).unwrap();
                u64::from_str_radix(line.split_whitespace().nth(2).unwrap(), 16).unwrap()
            };
            let null = if abi == Abi::Llvm24 { 56 } else { 0 };
            let start = address(" __start_llvm_offload_entries") + null;
            assert_eq!(address(" __stop_llvm_offload_entries") - start, size);
        }
    }
}

/// Mach-O: the linker defines the bounds of a section that no object has.
#[test]
fn mach_o_linkers_define_the_bounds() {
    let place = Place::new();
    for (kind, arch) in [(OffloadKind::HIP, "arm64"), (OffloadKind::CUDA, "x86_64")] {
        let triple = format!("{arch}-apple-macos11");
        let wrapper = wrapper(kind, Abi::Current, &triple, &[IMAGE]);
        let file = place.file("ours.ll", text(&wrapper, &[IMAGE]));
        let (object, library) = (place.path("ours.o"), place.path("ours.dylib"));
        run(llvm("llc").args(["-filetype=obj", "-o"]).arg(&object).arg(file));
        let mut lld = llvm("ld64.lld");
        lld.args(["-dylib", "-arch", arch, "-platform_version", "macos", "11", "11"]);
        lld.args(["-undefined", "dynamic_lookup", "-o"]).args([&library, &object]);
        run(&mut lld);
        let sections = run(llvm("llvm-objdump").arg("--section-headers").arg(&library));
        let entries = sections.lines().find(|line| line.contains(" offload_entries")).unwrap();
        assert_eq!(entries.split_whitespace().nth(2), Some("00000000"), "{entries}");
    }
}

/// The data layouts are those of clang 22.
#[test]
fn data_layouts_are_those_of_clang() {
    let place = Place::new();
    let source = place.file("empty.c", "int empty;\n");
    for triple in TRIPLES {
        let mut clang = llvm("clang");
        clang.arg(format!("--target={triple}")).args(["-S", "-emit-llvm", "-o", "-"]);
        let module = run(clang.arg(&source));
        let line = module.lines().find(|line| line.starts_with("target datalayout")).unwrap();
        let target = Target::new(triple).unwrap();
        assert_eq!(line, format!("target datalayout = \"{}\"", target.data_layout()), "{triple}");
        if triple.contains("linux") {
            // Names as ELF has them: of no other format.
            let others = ["m:o", "m:w", "m:x", "m:l", "m:a"];
            assert!(!others.iter().any(|other| target.data_layout().contains(other)), "{triple}");
        }
    }
}

const TRIPLES: [&str; 45] = [
    LINUX,
    WINDOWS,
    "x86_64-unknown-linux-musl",
    "x86_64-unknown-linux-gnux32",
    "x86_64-linux-android",
    "x86_64-unknown-freebsd",
    "x86_64-unknown-none",
    "x86_64-unknown-windows-elf",
    "x86_64-w64-windows-gnu",
    "x86_64-pc-cygwin",
    "x86_64-unknown-uefi",
    "x86_64-apple-darwin",
    "i386-unknown-linux-gnu",
    "i686-linux-android",
    "i686-pc-windows-msvc",
    "i686-w64-windows-gnu",
    "i386-apple-darwin",
    "aarch64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu_ilp32",
    "aarch64-linux-android",
    "aarch64-pc-windows-msvc",
    "aarch64-apple-darwin",
    "arm64-apple-ios",
    "aarch64_be-unknown-linux-gnu",
    "arm-unknown-linux-gnueabi",
    "armv7-unknown-linux-gnueabihf",
    "armeb-unknown-linux-gnueabi",
    "thumbv7a-pc-windows-msvc",
    "riscv64-unknown-linux-gnu",
    "riscv32-unknown-linux-gnu",
    "riscv64-unknown-elf",
    "loongarch64-unknown-linux-gnu",
    "powerpc64le-unknown-linux-gnu",
    "powerpc64-unknown-linux-gnu",
    "powerpc64-unknown-linux-musl",
    "powerpc64-unknown-freebsd",
    "powerpc-unknown-linux-gnu",
    "s390x-unknown-linux-gnu",
    "mips64el-unknown-linux-gnuabi64",
    "mips64-unknown-linux-gnuabi64",
    "mipsel-unknown-linux-gnu",
    "mips-unknown-linux-gnu",
    "sparc64-unknown-linux-gnu",
    "sparcv9-sun-solaris",
    "x86_64-pc-solaris",
];
