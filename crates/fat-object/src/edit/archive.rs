//! `ar` archives: members replaced, with everything that depends on where they lie.

use std::ops::Range;

use super::EditError;
use super::host::{Edited, HostContext};
use super::splices::Splices;
use crate::source::Source;

/// A member whose data changes.
#[derive(Debug)]
pub(crate) struct MemberEdit {
    /// Where its data lies in the file.
    pub(crate) range: Range<u64>,
    pub(crate) new: Splices,
}

/// Lays out the archive in the window with other data for some members.
pub(crate) fn edit(
    _source: &mut Source<'_>,
    _context: HostContext<'_>,
    _members: Vec<MemberEdit>,
) -> Result<Edited, EditError> {
    Err(EditError::Unsupported { path: Vec::new(), kind: "archives" })
}
