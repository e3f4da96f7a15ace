//! From the wishes for images to the contents of sections, and on to the editors of host files.

use crate::source::ReadSeek;

use super::{Contents, Edit, EditError, EditPlan};

pub(super) fn plan(
    _contents: &Contents,
    _input: &mut dyn ReadSeek,
    _images: &mut [&mut dyn ReadSeek],
    _edit: &Edit,
) -> Result<EditPlan, EditError> {
    Err(EditError::NoDeviceCode)
}
