//! Changes to a file's images.

use device_select::names;
use fat_edit::{Edit, EditOptions, EditableFile};

/// An [`Edit`], and what the report says about it.
#[derive(Debug)]
pub struct Wishes {
    /// The edit.
    pub edit: Edit,
    /// Remarks that do not report a problem.
    pub notes: Vec<String>,
    /// Remarks that may report a problem.
    pub warnings: Vec<String>,
}

impl Wishes {
    /// Returns no changes, by these options.
    pub fn new(options: EditOptions) -> Self {
        Wishes { edit: Edit::new(options), notes: Vec::new(), warnings: Vec::new() }
    }

    /// Returns the places that lose all their device images, if they can be edited, and the targets of these.
    pub fn emptied(&self, file: &EditableFile) -> impl Iterator<Item = (String, String)> {
        let emptied = self.edit.emptied(file).into_iter();
        emptied.map(|one| (one.place, names(one.images)))
    }
}
