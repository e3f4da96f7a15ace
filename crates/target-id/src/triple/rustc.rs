//! The triples that rustc gives LLVM for its targets.

use alloc::borrow::Cow;

/// Returns the LLVM triple of a target of rustc, or the text itself where rustc gives LLVM the name as it is.
pub(super) fn llvm_triple(name: &str) -> Cow<'_, str> {
    if let Ok(found) = TARGETS.binary_search_by_key(&name, |(rustc, _)| rustc)
        && let Some((_, llvm)) = TARGETS.get(found)
    {
        return Cow::Borrowed(llvm);
    }
    // rustc writes the extensions of RISC-V into the name, LLVM knows the base only.
    for base in ["riscv32", "riscv64"] {
        if let Some((extensions, rest)) =
            name.strip_prefix(base).and_then(|rest| rest.split_once('-'))
            && !extensions.is_empty()
            && extensions != "be"
        {
            return Cow::Owned(alloc::format!("{base}-{rest}"));
        }
    }
    Cow::Borrowed(name)
}

/// Names of rustc and the triples it gives LLVM, in order, where they differ by more than the extensions of RISC-V.
///
/// From `RUSTC_BOOTSTRAP=1 rustc -Z unstable-options --print all-target-specs-json` of rustc 1.95.0 and
/// 1.97.0-nightly (2026-05-19), which agree except for `wasm32-wali-linux-musl`, which only the latter has. The test
/// `llvm_triples` of `tool-tests` asks the installed rustc.
const TARGETS: &[(&str, &str)] = &[
    ("aarch64-apple-darwin", "arm64-apple-macosx"),
    ("aarch64-apple-ios", "arm64-apple-ios"),
    ("aarch64-apple-ios-macabi", "arm64-apple-ios-macabi"),
    ("aarch64-apple-ios-sim", "arm64-apple-ios-simulator"),
    ("aarch64-apple-tvos", "arm64-apple-tvos"),
    ("aarch64-apple-tvos-sim", "arm64-apple-tvos-simulator"),
    ("aarch64-apple-visionos", "arm64-apple-xros"),
    ("aarch64-apple-visionos-sim", "arm64-apple-xros-simulator"),
    ("aarch64-apple-watchos", "arm64-apple-watchos"),
    ("aarch64-apple-watchos-sim", "arm64-apple-watchos-simulator"),
    ("aarch64-kmc-solid_asp3", "aarch64-unknown-none"),
    ("aarch64-nintendo-switch-freestanding", "aarch64-unknown-none"),
    ("aarch64-pc-windows-gnullvm", "aarch64-pc-windows-gnu"),
    ("aarch64-unknown-illumos", "aarch64-unknown-solaris2.11"),
    ("aarch64-unknown-none-softfloat", "aarch64-unknown-none"),
    ("aarch64-unknown-nto-qnx700", "aarch64-unknown-unknown"),
    ("aarch64-unknown-nto-qnx710", "aarch64-unknown-unknown"),
    ("aarch64-unknown-nto-qnx710_iosock", "aarch64-unknown-unknown"),
    ("aarch64-unknown-nto-qnx800", "aarch64-unknown-unknown"),
    ("aarch64-unknown-nuttx", "aarch64-unknown-none"),
    ("aarch64-unknown-teeos", "aarch64-unknown-none"),
    ("aarch64-unknown-trusty", "aarch64-unknown-unknown-musl"),
    ("aarch64-unknown-uefi", "aarch64-unknown-windows"),
    ("aarch64-uwp-windows-msvc", "aarch64-pc-windows-msvc"),
    ("aarch64-wrs-vxworks", "aarch64-unknown-linux-gnu"),
    ("aarch64_be-unknown-none-softfloat", "aarch64_be-unknown-none"),
    ("aarch64v8r-unknown-none", "aarch64-unknown-none"),
    ("aarch64v8r-unknown-none-softfloat", "aarch64-unknown-none"),
    ("arm64e-apple-darwin", "arm64e-apple-macosx"),
    ("armv5te-unknown-linux-uclibceabi", "armv5te-unknown-linux-gnueabi"),
    ("armv6-unknown-freebsd", "armv6-unknown-freebsd-gnueabihf"),
    ("armv6-unknown-netbsd-eabihf", "armv6-unknown-netbsdelf-eabihf"),
    ("armv6k-nintendo-3ds", "armv6k-none-eabihf"),
    ("armv7-linux-androideabi", "armv7-none-linux-android"),
    ("armv7-rtems-eabihf", "armv7-unknown-none-eabihf"),
    ("armv7-sony-vita-newlibeabihf", "thumbv7a-sony-vita-eabihf"),
    ("armv7-unknown-freebsd", "armv7-unknown-freebsd-gnueabihf"),
    ("armv7-unknown-linux-uclibceabi", "armv7-unknown-linux-gnueabi"),
    ("armv7-unknown-linux-uclibceabihf", "armv7-unknown-linux-gnueabihf"),
    ("armv7-unknown-netbsd-eabihf", "armv7-unknown-netbsdelf-eabihf"),
    ("armv7-unknown-trusty", "armv7-unknown-unknown-gnueabi"),
    ("armv7-wrs-vxworks-eabihf", "armv7-unknown-linux-gnueabihf"),
    ("armv7a-kmc-solid_asp3-eabi", "armv7a-none-eabi"),
    ("armv7a-kmc-solid_asp3-eabihf", "armv7a-none-eabihf"),
    ("armv7a-nuttx-eabi", "armv7a-none-eabi"),
    ("armv7a-nuttx-eabihf", "armv7a-none-eabihf"),
    ("armv7a-vex-v5", "armv7a-none-eabihf"),
    ("avr-none", "avr-unknown-unknown"),
    ("bpfeb-unknown-none", "bpfeb"),
    ("bpfel-unknown-none", "bpfel"),
    ("csky-unknown-linux-gnuabiv2hf", "csky-unknown-linux-gnuabiv2"),
    ("hexagon-unknown-qurt", "hexagon-unknown-elf"),
    ("i386-apple-ios", "i386-apple-ios-simulator"),
    ("i586-unknown-netbsd", "i586-unknown-netbsdelf"),
    ("i686-apple-darwin", "i686-apple-macosx"),
    ("i686-pc-nto-qnx700", "i586-pc-unknown"),
    ("i686-pc-windows-gnullvm", "i686-pc-windows-gnu"),
    ("i686-unknown-netbsd", "i686-unknown-netbsdelf"),
    ("i686-unknown-uefi", "i686-unknown-windows-gnu"),
    ("i686-uwp-windows-gnu", "i686-pc-windows-gnu"),
    ("i686-uwp-windows-msvc", "i686-pc-windows-msvc"),
    ("i686-win7-windows-gnu", "i686-pc-windows-gnu"),
    ("i686-win7-windows-msvc", "i686-pc-windows-msvc"),
    ("i686-wrs-vxworks", "i686-unknown-linux-gnu"),
    ("loongarch32-unknown-none-softfloat", "loongarch32-unknown-none"),
    ("loongarch64-unknown-none-softfloat", "loongarch64-unknown-none"),
    ("m68k-unknown-none-elf", "m68k"),
    ("mips-mti-none-elf", "mips"),
    ("mips-unknown-linux-uclibc", "mips-unknown-linux-gnu"),
    ("mips64-openwrt-linux-musl", "mips64-unknown-linux-musl"),
    ("mips64-unknown-linux-muslabi64", "mips64-unknown-linux-musl"),
    ("mips64el-unknown-linux-muslabi64", "mips64el-unknown-linux-musl"),
    ("mipsel-mti-none-elf", "mipsel"),
    ("mipsel-unknown-linux-uclibc", "mipsel-unknown-linux-gnu"),
    ("powerpc-unknown-freebsd", "powerpc-unknown-freebsd13.0"),
    ("powerpc-wrs-vxworks", "powerpc-unknown-linux-gnu"),
    ("powerpc-wrs-vxworks-spe", "powerpc-unknown-linux-gnuspe"),
    ("powerpc64-wrs-vxworks", "powerpc64-unknown-linux-gnu"),
    ("riscv32-wrs-vxworks", "riscv32-unknown-linux-gnu"),
    ("riscv32e-unknown-none-elf", "riscv32"),
    ("riscv32em-unknown-none-elf", "riscv32"),
    ("riscv32emc-unknown-none-elf", "riscv32"),
    ("riscv32i-unknown-none-elf", "riscv32"),
    ("riscv32im-risc0-zkvm-elf", "riscv32"),
    ("riscv32im-unknown-none-elf", "riscv32"),
    ("riscv32ima-unknown-none-elf", "riscv32"),
    ("riscv32imac-esp-espidf", "riscv32"),
    ("riscv32imac-unknown-none-elf", "riscv32"),
    ("riscv32imac-unknown-nuttx-elf", "riscv32"),
    ("riscv32imac-unknown-xous-elf", "riscv32"),
    ("riscv32imafc-esp-espidf", "riscv32"),
    ("riscv32imafc-unknown-none-elf", "riscv32"),
    ("riscv32imafc-unknown-nuttx-elf", "riscv32"),
    ("riscv32imc-esp-espidf", "riscv32"),
    ("riscv32imc-unknown-none-elf", "riscv32"),
    ("riscv32imc-unknown-nuttx-elf", "riscv32"),
    ("riscv64-wrs-vxworks", "riscv64-unknown-linux-gnu"),
    ("riscv64gc-unknown-none-elf", "riscv64"),
    ("riscv64gc-unknown-nuttx-elf", "riscv64"),
    ("riscv64im-unknown-none-elf", "riscv64"),
    ("riscv64imac-unknown-none-elf", "riscv64"),
    ("riscv64imac-unknown-nuttx-elf", "riscv64"),
    ("s390x-unknown-none-softfloat", "s390x-unknown-linux-gnu"),
    ("thumbv6m-nuttx-eabi", "thumbv6m-none-eabi"),
    ("thumbv7a-nuttx-eabi", "thumbv7a-none-eabi"),
    ("thumbv7a-nuttx-eabihf", "thumbv7a-none-eabihf"),
    ("thumbv7a-uwp-windows-msvc", "thumbv7a-pc-windows-msvc"),
    ("thumbv7em-nuttx-eabi", "thumbv7em-none-eabi"),
    ("thumbv7em-nuttx-eabihf", "thumbv7em-none-eabihf"),
    ("thumbv7m-nuttx-eabi", "thumbv7m-none-eabi"),
    ("thumbv7neon-linux-androideabi", "armv7-none-linux-android"),
    ("thumbv7neon-unknown-linux-gnueabihf", "armv7-unknown-linux-gnueabihf"),
    ("thumbv7neon-unknown-linux-musleabihf", "armv7-unknown-linux-musleabihf"),
    ("thumbv8m.base-nuttx-eabi", "thumbv8m.base-none-eabi"),
    ("thumbv8m.main-nuttx-eabi", "thumbv8m.main-none-eabi"),
    ("thumbv8m.main-nuttx-eabihf", "thumbv8m.main-none-eabihf"),
    ("wasm32-wali-linux-musl", "wasm32-linux-muslwali"),
    ("wasm32-wasip1-threads", "wasm32-wasi"),
    ("wasm32v1-none", "wasm32-unknown-unknown"),
    ("x86_64-apple-darwin", "x86_64-apple-macosx"),
    ("x86_64-apple-ios", "x86_64-apple-ios-simulator"),
    ("x86_64-apple-tvos", "x86_64-apple-tvos-simulator"),
    ("x86_64-apple-watchos-sim", "x86_64-apple-watchos-simulator"),
    ("x86_64-fortanix-unknown-sgx", "x86_64-elf"),
    ("x86_64-lynx-lynxos178", "x86_64-unknown-unknown-gnu"),
    ("x86_64-pc-nto-qnx710", "x86_64-pc-unknown"),
    ("x86_64-pc-nto-qnx710_iosock", "x86_64-pc-unknown"),
    ("x86_64-pc-nto-qnx800", "x86_64-pc-unknown"),
    ("x86_64-pc-windows-gnullvm", "x86_64-pc-windows-gnu"),
    ("x86_64-unikraft-linux-musl", "x86_64-unknown-linux-musl"),
    ("x86_64-unknown-illumos", "x86_64-pc-solaris"),
    ("x86_64-unknown-l4re-uclibc", "x86_64-unknown-l4re-gnu"),
    ("x86_64-unknown-linux-gnuasan", "x86_64-unknown-linux-gnu"),
    ("x86_64-unknown-linux-gnumsan", "x86_64-unknown-linux-gnu"),
    ("x86_64-unknown-linux-gnutsan", "x86_64-unknown-linux-gnu"),
    ("x86_64-unknown-motor", "x86_64-unknown-none-elf"),
    ("x86_64-unknown-none", "x86_64-unknown-none-elf"),
    ("x86_64-unknown-trusty", "x86_64-unknown-unknown-musl"),
    ("x86_64-unknown-uefi", "x86_64-unknown-windows"),
    ("x86_64-uwp-windows-gnu", "x86_64-pc-windows-gnu"),
    ("x86_64-uwp-windows-msvc", "x86_64-pc-windows-msvc"),
    ("x86_64-win7-windows-gnu", "x86_64-pc-windows-gnu"),
    ("x86_64-win7-windows-msvc", "x86_64-pc-windows-msvc"),
    ("x86_64-wrs-vxworks", "x86_64-unknown-linux-gnu"),
    ("x86_64h-apple-darwin", "x86_64h-apple-macosx"),
    ("xtensa-esp32-espidf", "xtensa-none-elf"),
    ("xtensa-esp32-none-elf", "xtensa-none-elf"),
    ("xtensa-esp32s2-espidf", "xtensa-none-elf"),
    ("xtensa-esp32s2-none-elf", "xtensa-none-elf"),
    ("xtensa-esp32s3-espidf", "xtensa-none-elf"),
    ("xtensa-esp32s3-none-elf", "xtensa-none-elf"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order() {
        assert!(TARGETS.is_sorted_by(|(a, _), (b, _)| a < b));
        assert!(TARGETS.iter().all(|(rustc, llvm)| rustc != llvm));
    }

    #[test]
    fn names_become_triples_of_llvm() {
        for (name, expected) in [
            ("x86_64-unknown-linux-gnu", "x86_64-unknown-linux-gnu"),
            ("riscv64gc-unknown-linux-gnu", "riscv64-unknown-linux-gnu"),
            ("riscv64a23-unknown-linux-gnu", "riscv64-unknown-linux-gnu"),
            ("riscv64-unknown-linux-gnu", "riscv64-unknown-linux-gnu"),
            ("riscv64be-unknown-linux-gnu", "riscv64be-unknown-linux-gnu"),
            ("riscv64gc-unknown-none-elf", "riscv64"),
            ("riscv64gcv-unknown-linux-gnu", "riscv64-unknown-linux-gnu"),
            ("aarch64-apple-darwin", "arm64-apple-macosx"),
            ("aarch64-apple-ios-sim", "arm64-apple-ios-simulator"),
            ("aarch64-pc-windows-gnullvm", "aarch64-pc-windows-gnu"),
            ("x86_64-unknown-illumos", "x86_64-pc-solaris"),
            ("thumbv7neon-linux-androideabi", "armv7-none-linux-android"),
            ("riscv64gc", "riscv64gc"),
            ("foo-bar", "foo-bar"),
            ("", ""),
        ] {
            assert_eq!(llvm_triple(name), expected, "{name}");
        }
    }
}
