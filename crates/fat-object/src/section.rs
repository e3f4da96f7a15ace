//! A section of a host file.

use std::ops::Range;

/// A section that may hold device code.
pub(crate) struct Section {
    pub(crate) name: String,
    /// Offset and end in the host file.
    pub(crate) range: Range<u64>,
    pub(crate) contents: SectionContents,
}

/// The contents of a section, by its type and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SectionContents {
    DeviceCode,
    /// Symbols, relocations or a list of sections: no container starts there.
    Table,
    /// Its first bytes decide.
    Unknown,
}

/// Returns whether the section is a part of GCC's intermediate code for devices (`gcc/lto-section-names.h`).
pub(crate) fn is_gcc_section(name: &[u8]) -> bool {
    name.starts_with(b".gnu.offload_lto_")
}
