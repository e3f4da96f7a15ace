//! Bundles that code or data refers to keep their address when others close up: every way to refer to one that
//! compilers have, as LLVM's assembler and lld write it.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points; fails without it.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::common::{llvm, offload, run_with, stderr};

/// Code that refers to the second bundle, or does not.
struct Case {
    name: &'static str,
    text: &'static str,
    /// True if a shared object may hold it, as well as a program at fixed addresses.
    shared: bool,
    fixed: bool,
}

const fn case(name: &'static str, text: &'static str, shared: bool, fixed: bool) -> Case {
    Case { name, text, shared, fixed }
}

/// `movabs` with a number that reads as `lea`.
macro_rules! hidden_lea {
    () => {
        ".byte 0x48, 0xb8, 0x48, 0x8d, 0x05\n.long planted - . - 4\n.byte 0"
    };
}

const X86_64: &[Case] = &[
    case("lea", "lea planted(%rip), %rax", true, true),
    case("load", "movdqu planted(%rip), %xmm9", true, true),
    case("vector", "vmovdqu planted(%rip), %ymm9", true, true),
    case("byte", "cmpb $0x12, planted(%rip)", true, true),
    case("word", "cmpw $0x1234, planted(%rip)", true, true),
    case("long", "cmpl $0x12345678, planted(%rip)", true, true),
    case("got", "push planted@GOTPCREL(%rip)", true, true),
    case(
        "large",
        "movabsq $planted@GOTOFF, %rax\nlea _GLOBAL_OFFSET_TABLE_(%rip), %rbx",
        true,
        true,
    ),
    case("table", ".data\n.quad 1, planted\n.text", true, true),
    case("inside", ".data\n.quad planted + 64\n.text", true, false),
    case("immediate", "mov $planted, %eax", false, true),
    case("movabs", "movabs $planted, %rax", false, true),
    // In the middle of an instruction, of a function without a known start
    case(
        "unwound",
        concat!(".cfi_endproc\ng:\n", hidden_lea!(), "\nret\n.cfi_startproc"),
        true,
        true,
    ),
    case("damaged", concat!(".byte 6\n", hidden_lea!()), true, true),
];

const AARCH64: &[Case] = &[
    case("adrp", "adrp x3, planted\nadd x3, x3, :lo12:planted", true, true),
    case("adr", "adr x3, planted", true, true),
    case("ldr", "ldr x3, planted", true, true),
    case("got", "adrp x3, :got:planted\nldr x3, [x3, :got_lo12:planted]", true, true),
    case("table", ".data\n.quad 1, planted\n.text", true, true),
    case("pool", "ldr x3, =planted\nret\n.ltorg", false, true),
    case(
        "parts",
        "movz x5, #:abs_g3:planted\nmovk x5, #:abs_g2_nc:planted\n\
         movk x5, #:abs_g1_nc:planted\nmovk x5, #:abs_g0_nc:planted",
        false,
        true,
    ),
];

/// References to none of the bundles, or to places after them.
const NONE: &[Case] = &[
    case("none", "nop\nnop", true, true),
    case("end", ".data\n.balign 8\n.quad after\n.text", true, true),
];

/// Bytes that only seem to refer to a bundle of x86-64.
const SEEMING: &[Case] = &[
    case("hidden", hidden_lea!(), true, true),
    case("call", "call planted\njmp planted", true, true),
    case("other immediate", "cmpl $0x12345678, planted+4(%rip)", true, true),
    // No compiler writes these, and a wrapper leads to the bundle.
    case("short", ".data\n.long 1, planted, 1\n.text", false, true),
];

#[test]
fn references_of_x86_64_are_found() {
    let lab = Lab::new("x86_64-unknown-linux-gnu");
    for case in SEEMING {
        lab.try_both(case, false, &[]);
    }
    for case in X86_64 {
        lab.try_both(case, true, &[]);
    }
    for case in NONE {
        lab.try_both(case, false, &[]);
    }
    lab.try_both(&X86_64[8], true, &["-Wl,-z,pack-relative-relocs"]);
}

#[test]
fn references_of_aarch64_are_found() {
    let lab = Lab::new("aarch64-unknown-linux-gnu");
    for case in AARCH64 {
        lab.try_both(case, true, &["-Wl,-z,max-page-size=4096"]);
    }
    for case in NONE {
        lab.try_both(case, false, &["-Wl,-z,max-page-size=4096"]);
    }
}

/// A directory with a bundle.
struct Lab {
    place: tempfile::TempDir,
    target: String,
}

impl Lab {
    fn new(target: &str) -> Self {
        let place = tempfile::tempdir().unwrap();
        let mut ids = "host-x86_64-unknown-linux-gnu-".to_owned();
        let mut inputs = vec!["-input=/dev/null".to_owned()];
        for gpu in ["gfx906", "gfx1030", "gfx1100"] {
            write!(ids, ",hipv4-amdgcn-amd-amdhsa--{gpu}").unwrap();
            fs::write(place.path().join(gpu), gpu.repeat(2000)).unwrap();
            inputs.push(format!("-input={gpu}"));
        }
        let targets = format!("-targets={ids}");
        let mut args = vec!["-type=o", "-bundle-align=4096", "-output=bundle", &targets];
        args.extend(inputs.iter().map(String::as_str));
        tool(&llvm("clang-offload-bundler"), place.path(), &args);
        Lab { place, target: format!("--target={target}") }
    }

    fn try_both(&self, case: &Case, pinned: bool, link: &[&str]) {
        if case.shared {
            self.try_one(case, pinned, &[link, &["-shared", "-fPIC"]].concat());
        }
        if case.fixed {
            self.try_one(case, pinned, &[link, &["-no-pie", "-Wl,-e,f"]].concat());
        }
    }

    /// Makes a library or program with three bundles, thins it, and looks where the pointers of its wrappers lead to.
    fn try_one(&self, case: &Case, pinned: bool, link: &[&str]) {
        let place = self.place.path();
        let mut source = format!(
            ".hidden planted, after\n.globl planted, after\n.text\n.globl f\nf:\n.cfi_startproc\n\
             nop\n{}\nret\n.cfi_endproc\n",
            case.text
        );
        for n in 0..3 {
            let label = if n == 1 { "planted:\n" } else { "" };
            write!(
                source,
                ".section .hip_fatbin, \"a\"\n.p2align 12\n{label}.Lbundle{n}:\n.incbin \"bundle\"\n\
                 .section .hipFatBinSegment, \"aw\"\n.long 0x48495046, 1\n.quad .Lbundle{n}, 0\n"
            )
            .unwrap();
        }
        source.push_str(".data\nafter: .quad 0\n");
        fs::write(place.join("source.s"), source).unwrap();
        let compile = ["-fuse-ld=lld", "-nostdlib", "-Wl,--apply-dynamic-relocs", "-o", "linked"];
        let clang = [&[&*self.target][..], link, &compile, &["source.s"]].concat();
        tool(&llvm("clang"), place, &clang);

        let path = |name: &str| place.join(name).to_str().unwrap().to_owned();
        let thinned = path("thinned");
        let output = offload(["thin", &path("linked"), "--keep", "gfx1100", "-o", &thinned]);
        let what = format!("{} {link:?}", case.name);
        assert!(output.status.success(), "{what}: {}", stderr(&output));
        let (before, after) = (self.pointers("linked"), self.pointers("thinned"));
        assert_eq!(after[0], before[0], "{what}");
        assert_eq!(after[1] == before[1], pinned, "{what}: {before:x?} {after:x?}");
        assert!(after[2] < before[2], "{what}: {before:x?} {after:x?}");
        let size = |name: &str| fs::metadata(place.join(name)).unwrap().len();
        assert!(size("thinned") < size("linked"), "{what}");
    }

    /// Returns the pointers in the wrappers of a file.
    fn pointers(&self, file: &str) -> Vec<u64> {
        let place = self.place.path();
        let dump = "--dump-section=.hipFatBinSegment=section";
        tool(&llvm("llvm-objcopy"), place, &[dump, file, "copy"]);
        let section = fs::read(place.join("section")).unwrap();
        let pointer = |wrapper: &[u8]| u64::from_le_bytes(wrapper[8..16].try_into().unwrap());
        section.chunks_exact(24).map(pointer).collect()
    }
}

fn tool(tool: &Path, place: &Path, args: &[&str]) {
    let output = run_with(tool.to_str().unwrap(), place, args, b"");
    assert!(output.status.success(), "{} {args:?}: {}", tool.display(), stderr(&output));
}
