//! Sums of the device code that an edit removes and leaves.

use std::collections::BTreeSet;

use device_select::{CodeSizes, Rule, Tally};
use fat_object::ImageInfo;

use crate::edit::Edit;
use crate::plan::{EditNote, EditPlan};
use crate::survey::EditableFile;

impl Edit {
    /// Returns the images in these containers that the edit removes. Indices of containers are in order.
    pub fn removed_from<'f>(
        &self,
        file: &'f EditableFile,
        containers: &[usize],
    ) -> impl Iterator<Item = &'f ImageInfo> {
        let images = file.images().iter().filter(|image| self.removes(image.index()));
        images.filter(|image| {
            let container = file.container_of(image.index());
            container.is_some_and(|container| containers.binary_search(&container.index()).is_ok())
        })
    }
}

impl EditPlan {
    /// Returns sums by a rule, of the file that is edited.
    #[must_use]
    pub fn tally(&self, rule: &Rule, file: &EditableFile) -> Tally {
        let removed = self.images().iter().filter(|image| image.size_after.is_none());
        let removed: BTreeSet<usize> = removed.filter_map(|image| image.index).collect();
        Tally::of(rule, file.images(), |image| removed.contains(&image.index()))
    }

    /// Returns the bytes of images that the edit was to remove from containers that [cannot be edited](EditNote::Uneditable), with the
    /// kinds of these.
    #[must_use]
    pub fn stuck(&self, file: &EditableFile, edit: &Edit) -> Vec<(&'static str, u64)> {
        let parts = self.notes().iter().filter_map(|note| match note {
            EditNote::Uneditable { kind, containers } => {
                let mut bytes = CodeSizes::default();
                edit.removed_from(file, containers).for_each(|image| bytes.count(image));
                Some((*kind, bytes.total()))
            }
            _ => None,
        });
        parts.collect()
    }
}
