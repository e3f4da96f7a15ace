//! Libraries and executables for Windows with device code, linked from HIP sources by LLVM's and by GNU's linker.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::loader::Headers;
use crate::common::{llvm, new_command, stderr};

pub const TARGETS: [&str; 3] = ["gfx1030", "gfx1100", "gfx90a"];
const UNITS: [&str; 3] = ["one", "two", "three"];
/// In the place of the unit "two": code refers to its bundle.
const PINNED: [&str; 3] = ["one", "pinned", "three"];

/// All files with plain bundles and without a signature.
pub const PLAIN: [&str; 18] = [
    "plain.dll",
    "release.dll",
    "pages.dll",
    "large-pages.dll",
    "fixed.exe",
    "pinned.dll",
    "fixed-pinned.exe",
    "arm.dll",
    "arm-pinned.dll",
    "arm64x.dll",
    "arm64x-pinned.dll",
    "arm64ec.dll",
    "arm64ec-pinned.dll",
    "gnu.dll",
    "gnu-stripped.dll",
    "gnu-pinned.dll",
    "gnu-long-names.dll",
    "overlay.dll",
];
/// One whose bundles the compiler compressed.
pub const PACKED: &str = "packed.dll";
/// One with something that looks like a signature.
pub const SIGNED: &str = "signed.dll";

/// A kernel and a host function.
const HIP: &str = r#"
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
struct dim3 { unsigned x, y, z; };
extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, __SIZE_TYPE__, void *);
__device__ int table_NAME[2000] = {1, 2, 3, 4};
extern "C" __global__ void NAME(int *p) { p[0] = table_NAME[p[1]] + 7; }
extern "C" int host_NAME(int x) { static int y = 5; return x * 3 + y; }
"#;

/// No HIP runtime, and no C runtime either.
const STUBS: &str = r"
void *__hipRegisterFatBinary(void *w) { return w; }
void __hipUnregisterFatBinary(void *h) {}
int __hipRegisterFunction() { return 0; }
void __hipRegisterVar() {}
int __hipPopCallConfiguration() { return 0; }
int __hipPushCallConfiguration() { return 0; }
int hipLaunchKernel() { return 0; }
int atexit(void (*f)(void)) { return 0; }
int _fltused;
int entry(void *a, int b, void *c) { return 1; }
";

/// A bundle with a wrapper, and code that takes its address.
const PIN: &str = r#"
    .section .hip_fatbin,"dr"
    .p2align 12
bundle:
    .incbin "BUNDLE"
    .section .hipFatBinSegment,"dr"
    .p2align 3
    .long 0x48495046, 1
    .quad bundle, 0
    .text
    .globl look
look:
"#;

/// The load configuration for ARM64, and the one for ARM64EC with `__chpe_metadata`, whose values the linker knows.
const LOAD_CONFIG: &str = r#"
    .section .rdata,"dr"
    .globl _load_config_used
    .p2align 3, 0
_load_config_used:
    .word 0x140
"#;
const LOAD_CONFIG_ARM: &str = "    .fill 0x13c, 1, 0\n";
const LOAD_CONFIG_EC: &str = r"
    .fill 0xc4, 1, 0
    .xword __chpe_metadata
    .fill 0x70, 1, 0
    .globl __os_arm64x_dispatch_call, __os_arm64x_dispatch_call_no_redirect, __os_arm64x_dispatch_ret
    .globl __os_arm64x_dispatch_icall, __os_arm64x_check_call, __os_arm64x_check_icall
__os_arm64x_dispatch_call:
__os_arm64x_dispatch_call_no_redirect:
__os_arm64x_dispatch_ret:
__os_arm64x_dispatch_icall:
__os_arm64x_check_call:
__os_arm64x_check_icall:
    .xword 0
    .globl __chpe_metadata
__chpe_metadata:
    .word 2
    .rva __hybrid_code_map
    .word __hybrid_code_map_count
    .rva __x64_code_ranges_to_entry_points
    .rva __arm64x_redirection_metadata
    .fill 28, 1, 0
    .word __x64_code_ranges_to_entry_points_count
    .word __arm64x_redirection_metadata_count
    .fill 8, 1, 0
    .rva __arm64x_extra_rfe_table
    .word __arm64x_extra_rfe_table_size
    .fill 44, 1, 0
";

/// The files, by name.
pub struct Dlls {
    directory: PathBuf,
}

/// Runs a tool, which must say nothing.
pub fn quiet(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", stderr(&output));
    assert_eq!(stderr(&output), "", "{command:?}");
}

/// A tool of GNU's binutils for Windows: Debian's package `binutils-mingw-w64-x86-64`.
pub fn mingw(tool: &str) -> Command {
    new_command(format!("x86_64-w64-mingw32-{tool}"))
}

impl Dlls {
    /// Made once for all tests.
    pub fn shared() -> &'static Dlls {
        static DLLS: OnceLock<Dlls> = OnceLock::new();
        DLLS.get_or_init(Dlls::new)
    }

    fn new() -> Self {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("edit_pe");
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        let dlls = Dlls { directory };
        for unit in UNITS {
            fs::write(dlls.path(&format!("{unit}.hip")), HIP.replace("NAME", unit)).unwrap();
        }
        fs::write(dlls.path("stubs.c"), STUBS).unwrap();
        let machines = [
            "x86_64-pc-windows-msvc",
            "aarch64-pc-windows-msvc",
            "arm64ec-pc-windows-msvc",
            "x86_64-w64-windows-gnu",
        ];
        for (prefix, triple) in ["msvc", "arm", "arm64ec", "gnu"].into_iter().zip(machines) {
            for unit in UNITS {
                dlls.compile(triple, &format!("{unit}.hip"), &format!("{prefix}-{unit}.obj"), &[]);
            }
            dlls.compile(triple, "stubs.c", &format!("{prefix}-stubs.obj"), &[]);
            let code = match prefix {
                "arm" | "arm64ec" => "adrp x0, bundle\n add x0, x0, :lo12:bundle\n ret\n",
                _ => "leaq bundle(%rip), %rax\n ret\n",
            };
            dlls.dump_bundle(&format!("{prefix}-two.obj"), "two.hipfb");
            let pin = PIN.replace("BUNDLE", "two.hipfb") + code;
            fs::write(dlls.path("pin.s"), pin).unwrap();
            dlls.compile(triple, "pin.s", &format!("{prefix}-pinned.obj"), &[]);
        }
        for unit in UNITS {
            let object = format!("packed-{unit}.obj");
            dlls.compile(machines[0], &format!("{unit}.hip"), &object, &["--offload-compress"]);
        }
        fs::copy(dlls.path("msvc-stubs.obj"), dlls.path("packed-stubs.obj")).unwrap();
        let hybrid =
            [("native", machines[1], LOAD_CONFIG_ARM), ("chpe", machines[2], LOAD_CONFIG_EC)];
        for (name, triple, rest) in hybrid {
            fs::write(dlls.path(&format!("{name}.s")), format!("{LOAD_CONFIG}{rest}")).unwrap();
            dlls.compile(triple, &format!("{name}.s"), &format!("{name}.obj"), &[]);
        }
        // In ARM64X files, code for ARM64 registers kernels, and code for x86-64 refers to a bundle.
        for unit in ["one", "two", "three", "stubs"] {
            fs::copy(
                dlls.path(&format!("arm-{unit}.obj")),
                dlls.path(&format!("arm64x-{unit}.obj")),
            )
            .unwrap();
        }
        fs::copy(dlls.path("msvc-pinned.obj"), dlls.path("arm64x-pinned.obj")).unwrap();
        fs::write(dlls.path("host.c"), "int host_one(int x) { return x * 3 + 5; }").unwrap();
        dlls.compile(machines[0], "host.c", "host.obj", &[]);
        dlls.link();
        dlls
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    fn compile(&self, triple: &str, source: &str, object: &str, more: &[&str]) {
        let mut clang = new_command(llvm("clang"));
        clang.current_dir(&self.directory).args(more);
        clang.args([&format!("--target={triple}"), "-c", source, "-o", object]);
        if !source.ends_with(".s") {
            clang.arg("-O2");
        }
        if source.ends_with(".hip") {
            clang.args(["-nogpuinc", "-nogpulib"]);
            clang.args(TARGETS.map(|target| format!("--offload-arch={target}")));
        }
        quiet(&mut clang);
    }

    fn dump_bundle(&self, object: &str, to: &str) {
        let file = self.read(object);
        let start = file.windows(24).position(|w| w == b"__CLANG_OFFLOAD_BUNDLE__").unwrap();
        let end = bundle_format::Bundle::parse_prefix(&file[start..], 1 << 30).unwrap().end();
        fs::write(self.path(to), &file[start..start + usize::try_from(end).unwrap()]).unwrap();
    }

    fn lld(&self, name: &str, prefix: &str, units: [&str; 3], more: &[&str]) {
        let mut lld = new_command(llvm("lld-link"));
        lld.current_dir(&self.directory).arg(format!("/out:{name}"));
        lld.args(["/nodefaultlib", "/export:host_one"]).args(more);
        lld.args(units.map(|unit| format!("{prefix}-{unit}.obj")));
        quiet(lld.arg(format!("{prefix}-stubs.obj")));
    }

    fn ld(&self, name: &str, units: [&str; 3], more: &[&str]) {
        let mut ld = mingw("ld");
        ld.current_dir(&self.directory).args(["-shared", "-e", "entry", "-o", name]);
        ld.args(more).args(units.map(|unit| format!("gnu-{unit}.obj")));
        quiet(ld.arg("gnu-stubs.obj"));
    }

    fn link(&self) {
        let dll = ["/dll", "/noentry"];
        let with = |more: &[&'static str]| [&dll[..], more].concat();
        self.lld("plain.dll", "msvc", UNITS, &dll);
        self.lld("release.dll", "msvc", UNITS, &["/dll", "/entry:entry", "/release", "/debug"]);
        self.lld("pages.dll", "msvc", UNITS, &with(&["/filealign:4096"]));
        self.lld("large-pages.dll", "msvc", UNITS, &with(&["/align:8192", "/driver"]));
        let fixed = ["/entry:entry", "/subsystem:console", "/fixed", "/base:0x280000000"];
        self.lld("fixed.exe", "msvc", UNITS, &fixed);
        self.lld("pinned.dll", "msvc", PINNED, &with(&["/export:look"]));
        self.lld("fixed-pinned.exe", "msvc", PINNED, &fixed);
        self.lld("arm.dll", "arm", UNITS, &with(&["/machine:arm64"]));
        self.lld("arm-pinned.dll", "arm", PINNED, &with(&["/machine:arm64", "/export:look"]));
        let hybrid = ["/machine:arm64x", "native.obj", "chpe.obj", "host.obj"];
        self.lld("arm64x.dll", "arm64x", UNITS, &with(&hybrid));
        self.lld("arm64x-pinned.dll", "arm64x", PINNED, &with(&hybrid));
        let hybrid = ["/machine:arm64ec", "chpe.obj"];
        self.lld("arm64ec.dll", "arm64ec", UNITS, &with(&hybrid));
        self.lld("arm64ec-pinned.dll", "arm64ec", PINNED, &with(&hybrid));
        self.ld("gnu.dll", UNITS, &[]);
        self.ld("gnu-stripped.dll", UNITS, &["-s"]);
        self.ld("gnu-pinned.dll", PINNED, &[]);
        self.ld("gnu-long-names.dll", UNITS, &["--enable-long-section-names"]);
        let overlay = [self.read("plain.dll"), b"overlay".to_vec()].concat();
        fs::write(self.path("overlay.dll"), overlay).unwrap();
        self.lld("packed.dll", "packed", UNITS, &dll);
        self.sign();
    }

    /// A file with something that looks like a signature.
    fn sign(&self) {
        let mut file = self.read("release.dll");
        file.resize(file.len().next_multiple_of(8), 0);
        let directory = Headers::of(&file).optional + 112 + 4 * 8;
        let at = u32::try_from(file.len()).unwrap();
        file[directory..directory + 4].copy_from_slice(&at.to_le_bytes());
        file[directory + 4..directory + 8].copy_from_slice(&128_u32.to_le_bytes());
        file.extend([128, 0, 0, 0, 0, 2, 2, 0]);
        file.extend([0xaa; 120]);
        fs::write(self.path("signed.dll"), file).unwrap();
    }
}

/// Runs the tools for such files on it, and fails if one of them complains.
pub fn accepted(file: &Path) {
    let tables = [
        "--file-headers",
        "--sections",
        "--coff-imports",
        "--coff-exports",
        "--coff-basereloc",
        "--coff-debug-directory",
        "--coff-load-config",
        "--unwind",
        "--symbols",
    ];
    quiet(new_command(llvm("llvm-readobj")).args(tables).arg(file));
    quiet(new_command(llvm("llvm-objdump")).args(["-p", "-h", "-s"]).arg(file));
    // Debian's binutils for Windows know x86 alone.
    if Headers::of(&fs::read(file).unwrap()).machine == 0x8664 {
        quiet(mingw("objdump").args(["-x", "-s"]).arg(file));
    }
}
