//! The data layouts that clang 22 has for the triples of hosts.
//!
//! From `clang-22 --target=TRIPLE -S -emit-llvm`, for each triple in the tests here.

use crate::object_format::ObjectFormat;

/// Returns the data layout of a triple, or `None` for a machine or object format that is not known.
pub(crate) fn data_layout(triple: &str) -> Option<&'static str> {
    use ObjectFormat::{Coff, Elf, MachO};

    let mut parts = triple.splitn(4, '-');
    let arch = parts.next()?;
    // With three parts the second may be the system: `aarch64-linux-android`.
    let rest: Vec<&str> = parts.collect();
    if rest.is_empty() {
        return None;
    }
    let has = |prefix: &str| rest.iter().any(|part| part.starts_with(prefix));
    let format = format(&rest)?;
    let gnu_windows = ["gnu", "mingw", "cygnus", "cygwin"].into_iter().any(has);

    Some(match (machine(arch)?, format) {
        (Machine::X86_64, Elf) if has("gnux32") || has("muslx32") => {
            "e-m:e-p:32:32-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
        }
        (Machine::X86_64, Elf) => {
            "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
        }
        (Machine::X86_64, Coff) => {
            "e-m:w-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
        }
        (Machine::X86_64, MachO) => {
            "e-m:o-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
        }
        (Machine::X86, Elf) => {
            "e-m:e-p:32:32-p270:32:32-p271:32:32-p272:64:64-i128:128-f64:32:64-f80:32-n8:16:32-S128"
        }
        // LLVM has UEFI for x86-64 alone; rustc calls others Windows.
        (Machine::X86 | Machine::AArch64, Coff) if has("uefi") => return None,
        (Machine::X86, Coff) if gnu_windows => {
            "e-m:x-p:32:32-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:32-n8:16:32-a:0:32-S32"
        }
        (Machine::X86, Coff) => {
            "e-m:x-p:32:32-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32-a:0:32-S32"
        }
        (Machine::X86, MachO) => {
            "e-m:o-p:32:32-p270:32:32-p271:32:32-p272:64:64-i128:128-f64:32:64-f80:128-n8:16:32-S128"
        }
        (Machine::AArch64, Elf) if has("gnu_ilp32") => {
            "e-m:e-p:32:32-p270:32:32-p271:32:32-p272:64:64-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128-Fn32"
        }
        (Machine::AArch64, Elf) => {
            "e-m:e-p270:32:32-p271:32:32-p272:64:64-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128-Fn32"
        }
        (Machine::AArch64Be, Elf) if has("gnu_ilp32") => {
            "E-m:e-p:32:32-p270:32:32-p271:32:32-p272:64:64-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128-Fn32"
        }
        (Machine::AArch64Be, Elf) => {
            "E-m:e-p270:32:32-p271:32:32-p272:64:64-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128-Fn32"
        }
        (Machine::AArch64, Coff) => {
            "e-m:w-p270:32:32-p271:32:32-p272:64:64-p:64:64-i32:32-i64:64-i128:128-n32:64-S128-Fn32"
        }
        (Machine::Arm64With32, MachO) => {
            "e-m:o-p:32:32-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-n32:64-S128-Fn32"
        }
        (Machine::AArch64, MachO) => {
            "e-m:o-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-n32:64-S128-Fn32"
        }
        (Machine::Arm, Elf) => "e-m:e-p:32:32-Fi8-i64:64-v128:64:128-a:0:32-n32-S64",
        (Machine::Arm, MachO) if arch == "armv7k" => "e-m:o-p:32:32-Fi8-i64:64-a:0:32-n32-S128",
        (Machine::Arm, MachO) if arch == "armv7s" => {
            "e-m:o-p:32:32-Fi8-f64:32:64-v64:32:64-v128:32:128-a:0:32-n32-S32"
        }
        (Machine::Arm, Coff) => "e-m:w-p:32:32-Fi8-i64:64-v128:64:128-a:0:32-n32-S64",
        (Machine::ArmBe, Elf) => "E-m:e-p:32:32-Fi8-i64:64-v128:64:128-a:0:32-n32-S64",
        (Machine::RiscV64 | Machine::LoongArch64, Elf) => {
            "e-m:e-p:64:64-i64:64-i128:128-n32:64-S128"
        }
        (Machine::RiscV32 | Machine::LoongArch32, Elf) => "e-m:e-p:32:32-i64:64-n32-S128",
        (Machine::PowerPc64Le, Elf) if has("linux") => {
            "e-m:e-Fn32-i64:64-i128:128-n32:64-S128-v256:256:256-v512:512:512"
        }
        (Machine::PowerPc64Le, Elf) => "e-m:e-Fn32-i64:64-i128:128-n32:64",
        // FreeBSD, OpenBSD and musl have the newer ABI, without function descriptors.
        (Machine::PowerPc64, Elf) if has("freebsd") || has("openbsd") => {
            "E-m:e-Fn32-i64:64-i128:128-n32:64"
        }
        (Machine::PowerPc64, Elf) if has("musl") => {
            "E-m:e-Fn32-i64:64-i128:128-n32:64-S128-v256:256:256-v512:512:512"
        }
        (Machine::PowerPc64, Elf) if has("linux") => {
            "E-m:e-Fi64-i64:64-i128:128-n32:64-S128-v256:256:256-v512:512:512"
        }
        (Machine::PowerPc64, Elf) => "E-m:e-Fi64-i64:64-i128:128-n32:64",
        (Machine::PowerPc, Elf) => "E-m:e-p:32:32-Fn32-i64:64-n32",
        (Machine::S390x, Elf) => "E-m:e-i1:8:16-i8:8:16-i64:64-f128:64-v128:64-a:8:16-n32:64",
        (Machine::Mips64El, Elf) => "e-m:e-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128",
        (Machine::Mips64, Elf) => "E-m:e-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128",
        (Machine::MipsEl, Elf) => "e-m:m-p:32:32-i8:8:32-i16:16:32-i64:64-n32-S64",
        (Machine::Mips, Elf) => "E-m:m-p:32:32-i8:8:32-i16:16:32-i64:64-n32-S64",
        (Machine::Sparc64, Elf) => "E-m:e-i64:64-i128:128-n32:64-S128",
        (Machine::Hexagon, Elf) => {
            "e-m:e-p:32:32:32-a:0-n16:32-i64:64:64-i32:32:32-i16:16:16-i1:8:8-f32:32:32-f64:64:64-v32:32:32-v64:64:64-v512:512:512-v1024:1024:1024-v2048:2048:2048"
        }
        (Machine::Sparc, Elf) => "E-m:e-p:32:32-i64:64-i128:128-f128:64-n32-S64",
        _ => return None,
    })
}

/// The machines hosts have.
#[derive(Clone, Copy)]
enum Machine {
    X86_64,
    X86,
    AArch64,
    AArch64Be,
    /// `arm64_32`: the instructions of AArch64, pointers of 32 bits.
    Arm64With32,
    Arm,
    ArmBe,
    RiscV64,
    RiscV32,
    LoongArch64,
    LoongArch32,
    PowerPc64Le,
    PowerPc64,
    PowerPc,
    S390x,
    Mips64El,
    Mips64,
    MipsEl,
    Mips,
    Sparc64,
    Sparc,
    Hexagon,
}

/// Returns the machine of the first part of a triple.
fn machine(arch: &str) -> Option<Machine> {
    Some(match arch {
        "x86_64" | "amd64" | "x86_64h" => Machine::X86_64,
        "i386" | "i486" | "i586" | "i686" | "x86" => Machine::X86,
        "aarch64" | "arm64" | "arm64e" | "arm64ec" => Machine::AArch64,
        "aarch64_be" => Machine::AArch64Be,
        "arm64_32" => Machine::Arm64With32,
        "armeb" | "armebv7r" | "thumbeb" => Machine::ArmBe,
        "riscv64" => Machine::RiscV64,
        "riscv32" => Machine::RiscV32,
        "loongarch64" => Machine::LoongArch64,
        "loongarch32" => Machine::LoongArch32,
        "powerpc64le" | "ppc64le" => Machine::PowerPc64Le,
        "powerpc64" | "ppc64" => Machine::PowerPc64,
        "powerpc" | "ppc" | "ppc32" => Machine::PowerPc,
        "s390x" | "systemz" => Machine::S390x,
        "mips64el" | "mips64r6el" | "mipsisa64r6el" => Machine::Mips64El,
        "mips64" | "mips64r6" | "mipsisa64r6" => Machine::Mips64,
        "mipsel" | "mipsr6el" | "mipsisa32r6el" => Machine::MipsEl,
        "mips" | "mipsr6" | "mipsisa32r6" => Machine::Mips,
        "sparc64" | "sparcv9" => Machine::Sparc64,
        "sparc" => Machine::Sparc,
        "hexagon" => Machine::Hexagon,
        _ if arch == "arm" || arch.starts_with("armv") => Machine::Arm,
        _ if arch.starts_with("thumb") => Machine::Arm,
        _ => return None,
    })
}

/// Returns the object format of the parts after the machine, `None` for one that no host has.
fn format(rest: &[&str]) -> Option<ObjectFormat> {
    const COFF: [&str; 5] = ["windows", "win32", "mingw", "uefi", "cygwin"];
    const MACH_O: [&str; 8] =
        ["darwin", "macos", "ios", "tvos", "watchos", "xros", "visionos", "driverkit"];
    const ELF: [&str; 25] = [
        "linux",
        "freebsd",
        "netbsd",
        "openbsd",
        "dragonfly",
        "solaris",
        "illumos",
        "hurd",
        "fuchsia",
        "haiku",
        "redox",
        "android",
        "rtems",
        "none",
        "elf",
        "gnu",
        "musl",
        "helenos",
        "hermit",
        "l4re",
        "managarm",
        "psp",
        "psx",
        "vita",
        "qurt",
    ];
    let of_rustc = |part: &str| {
        matches!(part, "sim" | "gnullvm" | "gnuasan" | "gnumsan" | "gnutsan" | "softfloat")
            || part.starts_with("uclibc")
            || part.starts_with("newlib")
    };
    let starts = |prefixes: &[&str]| {
        rest.iter().any(|part| prefixes.iter().any(|prefix| part.starts_with(prefix)))
    };
    match rest.last() {
        Some(&"elf" | &"unknown") => Some(ObjectFormat::Elf),
        // Environments of rustc, which LLVM does not know, or takes for a version of another.
        Some(last) if of_rustc(last) => None,
        _ if starts(&COFF) => Some(ObjectFormat::Coff),
        _ if starts(&MACH_O) => Some(ObjectFormat::MachO),
        _ if starts(&ELF) => Some(ObjectFormat::Elf),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_layouts_name_the_object_format() {
        let mangling = |triple: &str| data_layout(triple).and_then(|layout| layout.get(2..5));
        for (triple, expected) in [
            ("x86_64-pc-linux-gnu", "m:e"),
            ("x86_64-linux-gnu", "m:e"),
            ("aarch64-linux-android", "m:e"),
            ("riscv64-unknown-elf", "m:e"),
            ("x86_64-unknown-none", "m:e"),
            ("x86_64-unknown-windows-elf", "m:e"),
            ("x86_64-pc-windows-msvc", "m:w"),
            ("x86_64-w64-mingw32", "m:w"),
            ("i686-w64-windows-gnu", "m:x"),
            ("x86_64-unknown-uefi", "m:w"),
            ("x86_64-apple-macosx14.0.0", "m:o"),
            ("arm64-apple-ios", "m:o"),
        ] {
            assert_eq!(mangling(triple), Some(expected), "{triple}");
        }
    }

    #[test]
    fn targets_that_are_not_hosts_have_no_layout() {
        for triple in [
            "nvptx64-nvidia-cuda",
            "amdgcn-amd-amdhsa",
            "wasm32-unknown-unknown",
            "powerpc64-ibm-aix",
            "riscv64be-unknown-linux-gnu",
            "riscv64gc-unknown-linux-gnu",
            "arm64-apple-ios-sim",
            "x86_64-pc-windows-gnullvm",
            "powerpc64-apple-darwin",
            "x86_64",
            "-linux-",
        ] {
            assert_eq!(data_layout(triple), None, "{triple}");
        }
    }
}
