//! From an archive of bundles to an archive for each target.

use super::job::{Failure, Notes, UnbundleJob};
use crate::output::Outputs;

/// Takes the entries of all members out of an archive.
pub(super) fn unbundle(
    job: &UnbundleJob,
    _outputs: &mut Outputs,
    _notes: &mut Notes,
) -> Result<(), Failure> {
    let _ = job.check_input_archive;
    Err("unbundling of archives is not there yet".to_owned().into())
}
