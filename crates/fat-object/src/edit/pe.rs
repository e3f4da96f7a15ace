//! PE executables and libraries: device code cut at the end of its section, bundles moved together.

use super::EditError;
use super::host::{Edited, HostContext, SectionEdit};
use crate::source::Source;

/// Lays out the file in the window with other device code in its sections.
pub(crate) fn edit(
    _source: &mut Source<'_>,
    _context: HostContext<'_>,
    _sections: Vec<SectionEdit>,
) -> Result<Edited, EditError> {
    Err(EditError::Unsupported { path: Vec::new(), kind: "PE files" })
}
