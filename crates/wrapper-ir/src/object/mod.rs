//! The description as a relocatable object, without LLVM.
//!
//! Records and constants come from the crate `object`, but its writers are not used. They take contents as bytes, and an
//! image is a range of an input here, of gigabytes perhaps. They make other tables of names (a separate one for sections in ELF,
//! ends of names shared), so that files change.

mod aarch64;
mod code;
mod coff;
mod data;
mod elf;
mod model;
mod pdata;
mod riscv64;
mod unwind;
mod x86_64;

use aarch64::Aarch64;
use x86_64::X86;

use crate::description::Module;
use crate::error::{Error, ErrorKind};
use crate::layout::Output;
use crate::object_format::ObjectFormat;
use crate::target::{Endian, architecture};

impl Module {
    /// Lays out the module as a relocatable object, which a linker takes as it is: ELF for
    /// x86-64, AArch64 and RISC-V with 64 bits (all little-endian), COFF for x86-64 and AArch64.
    ///
    /// The code works in programs and shared libraries, wherever they are loaded, also if they demand landing pads for
    /// indirect jumps (the object is marked for IBT and shadow stacks on x86-64, for BTI on AArch64); RISC-V
    /// objects say that floating point arguments go in registers for `double` (`lp64d`), or in integer registers
    /// (`lp64`) for targets of rustc without them, such as `riscv64imac-unknown-none-elf`. Sections are the same as
    /// LLVM's compiler makes of the module, with three differences: images that are not offload binaries do not get the
    /// type `SHT_LLVM_OFFLOADING`, nor do images in `.llvm.offloading.relocatable`, which tools would take apart; target
    /// IDs are not merged, so that there is one for each image; and on x86-64 images of 1 GiB and more are put where
    /// they do not keep code from data (`SHF_X86_64_LARGE`).
    ///
    /// ```
    /// use wrapper_ir::{Abi, Image, OffloadKind, Target, Wrapper};
    ///
    /// # fn main() -> Result<(), wrapper_ir::Error> {
    /// let image = b"a device image";
    /// let target = Target::new("aarch64-unknown-linux-gnu")?;
    /// let module = Wrapper::new(OffloadKind::OPENMP, Abi::Current, target)
    ///     .with_image(Image::from_bytes(image))
    ///     .module()?;
    /// let object: Vec<u8> = module.object()?.to_vec(&[image])?;
    /// assert!(object.starts_with(b"\x7fELF"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotNative`](crate::ErrorKind::NotNative) for other targets,
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) for sizes that the format cannot hold.
    pub fn object(&self) -> Result<byte_parts::Layout, Error> {
        Ok(self.lay_out_object()?.finish())
    }

    fn lay_out_object(&self) -> Result<Output, Error> {
        let target = &self.target;
        let architecture = architecture(target.triple());
        let supported = target.endian() == Endian::Little && target.pointer_bits() == 64;
        match (architecture, target.format()) {
            ("x86_64" | "amd64", ObjectFormat::Elf) if supported => {
                elf::lay_out(self, &elf::X86_64, X86::new(&x86_64::SYSTEM_V))
            }
            ("x86_64" | "amd64", ObjectFormat::Coff) if supported => {
                coff::lay_out(self, &coff::X86_64, X86::new(&x86_64::WINDOWS))
            }
            ("aarch64" | "arm64", ObjectFormat::Elf) if supported => {
                elf::lay_out(self, &elf::AARCH64, Aarch64::new(&aarch64::ELF))
            }
            ("aarch64" | "arm64", ObjectFormat::Coff) if supported => {
                coff::lay_out(self, &coff::ARM64, Aarch64::new(&aarch64::COFF))
            }
            ("riscv64", ObjectFormat::Elf) if supported => {
                let soft = target.has_soft_float();
                let machine = if soft { &elf::RISCV64_SOFT } else { &elf::RISCV64 };
                elf::lay_out(self, machine, riscv64::Riscv64::default())
            }
            _ => Err(Error::new(
                ErrorKind::NotNative,
                format!(
                    "no native objects for target triple \"{}\", expected elf for x86-64, aarch64 or riscv64, \
                     or coff for x86-64 or aarch64",
                    target.triple().escape_debug()
                ),
            )),
        }
    }
}
