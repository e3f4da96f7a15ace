//! Changes to a file's images.

use device_select::names;
use fat_edit::{Edit, EditOptions, EditableFile};

/// An [`Edit`], and what the report says about it.
#[derive(Debug)]
pub(crate) struct Wishes {
    pub(crate) edit: Edit,
    /// Remarks that do not report a problem.
    pub(crate) notes: Vec<String>,
    pub(crate) warnings: Vec<String>,
}

impl Wishes {
    pub(crate) fn new(options: EditOptions) -> Self {
        Wishes { edit: Edit::new(options), notes: Vec::new(), warnings: Vec::new() }
    }

    /// Returns the places that lose all their device images, if they can be edited, and the targets of these.
    pub(crate) fn emptied(&self, file: &EditableFile) -> impl Iterator<Item = (String, String)> {
        let emptied = self.edit.emptied(file).into_iter();
        emptied.map(|one| (one.place, names(one.images)))
    }
}
