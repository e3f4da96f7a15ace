//! Properties of the host's triple: object format, pointers, alignments.

use std::fmt;

use target_id::Triple;

use crate::data_layouts::data_layout;
use crate::error::{Error, ErrorKind};
use crate::object_format::ObjectFormat;

/// Order of bytes in memory: there are these two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endian {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

/// The machine the registration code is for.
///
/// ```
/// use wrapper_ir::Target;
///
/// # fn main() -> Result<(), wrapper_ir::Error> {
/// let target = Target::new("s390x-unknown-linux-gnu")?;
/// assert_eq!(target.pointer_bits(), 64);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Target {
    triple: Box<str>,
    data_layout: Box<str>,
    format: ObjectFormat,
    endian: Endian,
    pointer_bits: u16,
    i64_align: u64,
    /// RISC-V: floating point arguments go in integer registers.
    soft_float: bool,
}

impl Target {
    /// Creates the target of a triple of LLVM or a target of rustc (Cargo's `TARGET`), with the data layout that
    /// clang 22 has for it.
    ///
    /// ```
    /// use wrapper_ir::Target;
    ///
    /// # fn main() -> Result<(), wrapper_ir::Error> {
    /// assert_eq!(Target::new("x86_64-apple-darwin")?.triple(), "x86_64-apple-darwin");
    /// // A name of rustc that LLVM does not know becomes what rustc gives LLVM.
    /// assert_eq!(Target::new("riscv64gc-unknown-linux-gnu")?.triple(), "riscv64-unknown-linux-gnu");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`UnknownName`](ErrorKind::UnknownName) if no data layout is known for the triple, [`Invalid`](ErrorKind::Invalid) if
    /// it is not text.
    pub fn new(triple: &str) -> Result<Self, Error> {
        if let Some(layout) = data_layout(triple) {
            return Self::with_data_layout(triple, layout);
        }
        let llvm = Triple::from_rustc(triple);
        let layout = match triple.split('-').next() {
            // The ABI for 16 registers aligns the stack to 32 bits; the LLVM triple does not show this.
            Some("riscv32e" | "riscv32em" | "riscv32emc") => Some("e-m:e-p:32:32-i64:64-n32-S32"),
            // rustc gives LLVM less than three fields for machines without a system.
            _ => data_layout(llvm.normalized().as_str()),
        };
        let layout = layout.filter(|_| llvm.as_str() != triple).ok_or_else(|| {
            let text = format!("unsupported target triple \"{}\"", triple.escape_debug());
            Error::new(ErrorKind::UnknownName, text)
        })?;
        let mut target = Self::with_data_layout(llvm.as_str(), layout)?;
        target.soft_float = has_soft_float(triple);
        Ok(target)
    }

    /// Returns the target of a triple with the data layout `data_layout`, as LLVM's language reference describes
    /// it. Everything else about the target is taken from there: byte order (`e`, `E`), object format (`m:e`,
    /// `m:m`, `m:w`, `m:x`, `m:o`), pointers (`p:`) and the alignment of 64-bit integers (`i64:`).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid).
    pub fn with_data_layout(triple: &str, data_layout: &str) -> Result<Self, Error> {
        for text in [triple, data_layout] {
            if text.bytes().any(|byte| !byte.is_ascii_graphic() || matches!(byte, b'"' | b'\\')) {
                let text = text.escape_debug();
                let text = format!("target text \"{text}\" has characters other than plain ASCII");
                return Err(Error::new(ErrorKind::Invalid, text));
            }
        }
        let unsupported = |specification: &str| {
            let text = format!(
                "data layout \"{}\" has the specification \"{}\", which is not supported",
                data_layout.escape_debug(),
                specification.escape_debug()
            );
            Error::new(ErrorKind::Invalid, text)
        };
        let mut format = None;
        let mut endian = Endian::Big;
        let mut pointer_bits = 64;
        let mut i64_align = 4;
        for specification in data_layout.split('-') {
            let mut parts = specification.split(':');
            match (parts.next(), parts.next(), parts.next()) {
                (Some("e"), None, None) => endian = Endian::Little,
                (Some("E"), None, None) => endian = Endian::Big,
                (Some("m"), Some("e" | "m"), None) => format = Some(ObjectFormat::Elf),
                (Some("m"), Some("w" | "x"), None) => format = Some(ObjectFormat::Coff),
                (Some("m"), Some("o"), None) => format = Some(ObjectFormat::MachO),
                (Some("p" | "p0"), Some("32"), Some("32")) => pointer_bits = 32,
                (Some("p" | "p0"), Some("64"), Some("64")) => pointer_bits = 64,
                (Some("i64"), Some("32"), _) => i64_align = 4,
                (Some("i64"), Some("64"), _) => i64_align = 8,
                (Some("m" | "p" | "p0" | "i64"), ..) => return Err(unsupported(specification)),
                _ => {}
            }
        }
        Ok(Self {
            triple: triple.into(),
            data_layout: data_layout.into(),
            format: format.ok_or_else(|| unsupported(""))?,
            endian,
            pointer_bits,
            i64_align,
            soft_float: false,
        })
    }

    /// Returns the triple as given, or LLVM's triple for a name that only rustc has.
    #[must_use]
    pub fn triple(&self) -> &str {
        &self.triple
    }

    /// Returns the data layout, as LLVM writes it.
    #[must_use]
    pub fn data_layout(&self) -> &str {
        &self.data_layout
    }

    /// Returns the format of objects.
    pub(crate) fn format(&self) -> ObjectFormat {
        self.format
    }

    /// Returns whether it is Windows with the runtime and linker of GNU, not of Microsoft.
    pub(crate) fn is_mingw(&self) -> bool {
        let system = self.triple.split('-').skip(2);
        let gnu = |part: &str| part.starts_with("gnu") || part.starts_with("mingw");
        self.format == ObjectFormat::Coff
            && system.into_iter().any(|part| gnu(part) || part.starts_with("cygwin"))
    }

    /// Returns whether it is RISC-V with floating point arguments in integer registers (`lp64`).
    pub(crate) fn has_soft_float(&self) -> bool {
        self.soft_float
    }

    /// Returns the byte order.
    #[must_use]
    pub(crate) fn endian(&self) -> Endian {
        self.endian
    }

    /// Returns the width of pointers in bits, 32 or 64; `size_t` has the same.
    #[must_use]
    pub fn pointer_bits(&self) -> u16 {
        self.pointer_bits
    }

    /// Returns width and alignment of pointers in bytes, 4 or 8.
    #[must_use]
    pub(crate) fn pointer_bytes(&self) -> u64 {
        u64::from(self.pointer_bits / 8)
    }

    /// Returns the alignment of a 64-bit integer in a structure in bytes: 4 on 32-bit x86 except Windows, 8
    /// elsewhere.
    #[must_use]
    pub(crate) fn i64_align(&self) -> u64 {
        self.i64_align
    }
}

/// Returns whether a RISC-V target of rustc lacks registers for `double`: its name lists extensions without `d` and `g`.
fn has_soft_float(name: &str) -> bool {
    let extensions = architecture(name).strip_prefix("riscv64");
    extensions.is_some_and(|all| all.starts_with('i') && !all.contains('d'))
}

/// Returns the first part of a triple.
pub(crate) fn architecture(triple: &str) -> &str {
    triple.split_once('-').map_or(triple, |(architecture, _)| architecture)
}

/// The triple.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.triple)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(triple: &str) -> (ObjectFormat, Endian, u16, u64) {
        let target = Target::new(triple).unwrap();
        (target.format(), target.endian(), target.pointer_bits(), target.i64_align())
    }

    #[test]
    fn facts_follow_the_triple() {
        use Endian::{Big, Little};
        use ObjectFormat::{Coff, Elf, MachO};
        assert_eq!(facts("x86_64-unknown-linux-gnu"), (Elf, Little, 64, 8));
        assert_eq!(facts("x86_64-unknown-linux-gnux32"), (Elf, Little, 32, 8));
        assert_eq!(facts("i386-unknown-linux-gnu"), (Elf, Little, 32, 4));
        assert_eq!(facts("i686-pc-windows-msvc"), (Coff, Little, 32, 8));
        assert_eq!(facts("armv7-unknown-linux-gnueabihf"), (Elf, Little, 32, 8));
        assert_eq!(facts("powerpc-unknown-linux-gnu"), (Elf, Big, 32, 8));
        assert_eq!(facts("mips-unknown-linux-gnu"), (Elf, Big, 32, 8));
        assert_eq!(facts("aarch64-apple-darwin"), (MachO, Little, 64, 8));
    }

    #[test]
    fn an_unknown_triple_is_an_error() {
        for triple in ["", "foo-bar", "x86_64", "m68k-unknown-linux-gnu"] {
            let text = format!("unsupported target triple \"{triple}\"");
            assert_eq!(Target::new(triple).unwrap_err(), (ErrorKind::UnknownName, &*text));
        }
    }

    #[test]
    fn given_data_layouts_are_checked() {
        let layout = "E-m:e-p:32:32-i64:64-n32";
        let target = Target::with_data_layout("m88k-unknown-openbsd", layout).unwrap();
        assert_eq!((target.endian(), target.pointer_bits()), (Endian::Big, 32));
        for (layout, specification) in
            [("e-i64:64", ""), ("e-m:a", "m:a"), ("e-m:e-p:16:16", "p:16:16")]
        {
            let text = format!(
                "data layout \"{layout}\" has the specification \"{specification}\", which is not supported"
            );
            let error = Target::with_data_layout("x-y-z", layout).unwrap_err();
            assert_eq!(error, (ErrorKind::Invalid, &*text));
        }
    }

    #[test]
    fn text_that_would_end_a_string_is_refused() {
        for text in ["x86_64-\"", "x86_64 linux", "x86_64-\n", "x86_64-\u{e4}"] {
            let error = Target::with_data_layout(text, "e-m:e").unwrap_err();
            let text = text.escape_debug();
            let text = format!("target text \"{text}\" has characters other than plain ASCII");
            assert_eq!(error, (ErrorKind::Invalid, &*text));
        }
    }
}
