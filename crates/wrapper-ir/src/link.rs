//! The arguments that the link of a module needs.

use crate::description::Module;
use crate::target::ObjectFormat;

/// The program that gets the arguments of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkTool {
    /// A compiler that calls the linker: `cc`, `clang`, `rustc -C link-arg=`, cargo's
    /// `cargo::rustc-link-arg=`.
    Compiler,
    /// The linker itself: `ld.lld`, `ld`.
    Linker,
}

impl Module {
    /// Returns the arguments that a link with this module needs, in their order.
    ///
    /// Entries of ELF objects are found through the bounds of their section. `ld.lld
    /// --gc-sections`, which Rust links with on x86-64 Linux, drops such sections unless it is
    /// told not to: `-z nostart-stop-gc`. Without the argument it fails with `undefined hidden
    /// symbol: __start_llvm_offload_entries`. GNU `ld` takes the argument from release 2.37 on and
    /// needs none, like `mold`, which warns about it, and `gold`, which refuses it.
    ///
    /// No arguments are needed for COFF and Mach-O, for SYCL, for modules that [retain](crate::Wrapper::retain) entries, and
    /// for retained [`Entries`](crate::Entries) themselves.
    ///
    /// ```no_run
    /// # let module: wrapper_ir::Module = todo!();
    /// // In a build script:
    /// for argument in module.link_args(wrapper_ir::LinkTool::Compiler) {
    ///     println!("cargo::rustc-link-arg={argument}");
    /// }
    /// ```
    #[must_use]
    pub fn link_args(&self, tool: LinkTool) -> &'static [&'static str] {
        let bounds = |name: &str| name.starts_with("__start_");
        let declared = self.globals.iter().filter(|global| global.init.is_none());
        let needed = self.target.format() == ObjectFormat::Elf
            && !self.retain
            && (!self.kept.is_empty() || declared.into_iter().any(|global| bounds(&global.name)));
        match tool {
            _ if !needed => &[],
            LinkTool::Compiler => &["-Wl,-z,nostart-stop-gc"],
            LinkTool::Linker => &["-z", "nostart-stop-gc"],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Abi, Image, Kind, Target, Wrapper};

    fn arguments(kind: Kind, abi: Abi, triple: &str, retain: bool) -> usize {
        let wrapper = Wrapper::new(kind, abi, Target::new(triple).unwrap())
            .image(Image::from_bytes(b"an image"))
            .retain(retain);
        let module = wrapper.module().unwrap();
        let [compiler, linker] =
            [LinkTool::Compiler, LinkTool::Linker].map(|tool| module.link_args(tool));
        assert_eq!(compiler.len() * 2, linker.len());
        compiler.len()
    }

    #[test]
    fn elf_linkers_define_the_bounds() {
        for triple in ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"] {
            for abi in [Abi::Legacy, Abi::Llvm18, Abi::Llvm19, Abi::Current, Abi::Llvm24] {
                for kind in [Kind::OpenMp, Kind::Cuda, Kind::Hip] {
                    assert_eq!(arguments(kind, abi, triple, false), 1, "{kind} {abi}");
                }
            }
            assert_eq!(arguments(Kind::OpenMp, Abi::Llvm18, triple, true), 1);
            assert_eq!(arguments(Kind::OpenMp, Abi::Current, triple, true), 0);
            assert_eq!(arguments(Kind::Sycl, Abi::Current, triple, false), 0);
        }
        for triple in ["x86_64-pc-windows-msvc", "aarch64-apple-darwin"] {
            assert_eq!(arguments(Kind::Hip, Abi::Current, triple, false), 0);
        }
    }
}
