//! The arguments that the link of a module needs.

use crate::description::Module;
use crate::object_format::ObjectFormat;

impl Module {
    /// Returns the arguments that a compiler which calls the linker (`cc`, `clang`, `rustc -C link-arg=`, cargo's
    /// `cargo::rustc-link-arg=`) needs to link with this module, in their order.
    ///
    /// Entries of ELF objects are found through the bounds of their section. `ld.lld
    /// --gc-sections`, which Rust links with on x86-64 Linux, drops such sections unless it is
    /// told not to: `-z nostart-stop-gc`. Without the argument it fails with `undefined hidden
    /// symbol: __start_llvm_offload_entries`. GNU `ld` takes the argument from release 2.37 on and
    /// needs none, like `mold`, which warns about it, and `gold`, which refuses it.
    ///
    /// No arguments are needed for COFF and Mach-O, for SYCL, for modules that [retain](crate::Wrapper::with_retain) entries, and
    /// for retained [`Entries`](crate::Entries) themselves.
    ///
    /// ```no_run
    /// # let module: wrapper_ir::Module = todo!();
    /// // In a build script:
    /// for argument in module.compiler_args() {
    ///     println!("cargo::rustc-link-arg={argument}");
    /// }
    /// ```
    #[must_use]
    pub fn compiler_args(&self) -> &'static [&'static str] {
        if self.needs_all_sections() { &["-Wl,-z,nostart-stop-gc"] } else { &[] }
    }

    /// Returns the [arguments](Self::compiler_args) for the linker itself: `ld.lld`, `ld`.
    #[must_use]
    pub fn linker_args(&self) -> &'static [&'static str] {
        if self.needs_all_sections() { &["-z", "nostart-stop-gc"] } else { &[] }
    }

    /// Returns whether a linker could drop sections whose bounds the module refers to.
    fn needs_all_sections(&self) -> bool {
        let bounds = |name: &str| name.starts_with("__start_");
        let mut declared = self.globals.iter().filter(|global| global.init.is_none());
        self.target.format() == ObjectFormat::Elf
            && !self.retain
            && (!self.kept.is_empty() || declared.any(|global| bounds(&global.name)))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Abi, Image, OffloadKind, Target, Wrapper};

    fn arguments(kind: OffloadKind, abi: Abi, triple: &str, retain: bool) -> usize {
        let wrapper = Wrapper::new(kind, abi, Target::new(triple).unwrap())
            .with_image(Image::from_bytes(b"an image"))
            .with_retain(retain);
        let module = wrapper.module().unwrap();
        let compiler = module.compiler_args().len();
        assert_eq!(compiler * 2, module.linker_args().len());
        compiler
    }

    #[test]
    fn elf_linkers_define_the_bounds() {
        for triple in ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"] {
            for abi in [Abi::Llvm18, Abi::Llvm19, Abi::Current, Abi::Llvm24] {
                for kind in [OffloadKind::OPENMP, OffloadKind::CUDA, OffloadKind::HIP] {
                    assert_eq!(arguments(kind, abi, triple, false), 1, "{kind} {abi}");
                }
            }
            assert_eq!(arguments(OffloadKind::OPENMP, Abi::Llvm18, triple, true), 1);
            assert_eq!(arguments(OffloadKind::OPENMP, Abi::Current, triple, true), 0);
            assert_eq!(arguments(OffloadKind::SYCL, Abi::Current, triple, false), 0);
        }
        for triple in ["x86_64-pc-windows-msvc", "aarch64-apple-darwin"] {
            assert_eq!(arguments(OffloadKind::HIP, Abi::Current, triple, false), 0);
        }
    }
}
