//! Linked ELF files: pages of device code leave the file, and an address gap stays.

mod check;
mod code;
mod file;
mod references;
mod relocations;
mod symbols;
mod wrappers;

use crate::edit::EditError;
use crate::edit::host::{Edited, HostContext, SectionEdit};
use crate::source::Source;

/// Lays out the file in the window with other device code in its sections.
pub(crate) fn edit(
    _source: &mut Source<'_>,
    _context: HostContext<'_>,
    _sections: Vec<SectionEdit>,
) -> Result<Edited, EditError> {
    Err(EditError::Unsupported { path: Vec::new(), kind: "linked ELF files" })
}
