//! Objects that a compiler or linker reads or writes: sections added to them and removed, other names, and archives of them.

mod archive;
pub(crate) mod coff;
pub(crate) mod elf_class;
pub(crate) mod elf_object;
mod embed;
pub(crate) mod error;
mod rename;
mod strings;

pub use archive::edit_archive;
pub use embed::{HostObject, NewSections, embed, remove_sections};
pub use rename::{Renames, rename};
