//! Formats of host objects.

use std::fmt;

/// The format of host objects, which decides the names of sections and symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectFormat {
    /// ELF.
    Elf,
    /// COFF, of Windows and UEFI.
    Coff,
    /// Mach-O.
    MachO,
}

impl fmt::Display for ObjectFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Elf => "elf",
            Self::Coff => "coff",
            Self::MachO => "mach-o",
        })
    }
}
