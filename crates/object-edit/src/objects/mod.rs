//! Objects that a compiler or linker reads or writes: sections added to them and removed.

pub(crate) mod coff;
pub(crate) mod elf_class;
pub(crate) mod elf_object;
mod embed;
pub(crate) mod error;
mod strings;

pub use embed::{HostObject, NewSections, embed, remove_sections};
