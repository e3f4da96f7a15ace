//! Changes to a file's images.

use device_select::{each_once, few};
use fat_edit::{Edit, EditOptions, EditableFile};
use fat_object::{ImageInfo, PathStep};

/// An [`Edit`], and what the report says about it.
#[derive(Debug)]
pub(crate) struct Wishes {
    pub(super) edit: Edit,
    pub(super) notes: Vec<String>,
    pub(super) warnings: Vec<String>,
}

impl Wishes {
    pub(crate) fn new(options: EditOptions) -> Self {
        let edit = Edit::new(options);
        Wishes { edit, notes: Vec::new(), warnings: Vec::new() }
    }

    /// Returns the edit itself, for wishes about no single image.
    pub(crate) fn edit(&mut self) -> &mut Edit {
        &mut self.edit
    }

    pub(crate) fn remove(&mut self, image: &ImageInfo) {
        self.edit.remove(image.index());
    }

    /// Replaces the image by the new one with this number.
    pub(crate) fn replace(&mut self, image: &ImageInfo, number: usize) {
        self.edit.replace(image.index(), number);
    }

    /// Appends the new image with this number to a container.
    pub(crate) fn add(&mut self, container: usize, id: &str, number: usize) {
        self.edit.add(container, id, number);
    }

    /// Adds a note, which does not report a problem.
    pub(crate) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Adds a warning.
    pub(crate) fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    /// Returns the targets of the images that were to leave these containers.
    pub(super) fn removed_from(&self, contents: &EditableFile, containers: &[usize]) -> String {
        let is_there = |image: &&ImageInfo| {
            let container = contents.container_of(image.index());
            container.is_some_and(|container| containers.binary_search(&container.index()).is_ok())
        };
        names(
            contents
                .images()
                .iter()
                .filter(|image| self.edit.removes(image.index()))
                .filter(is_there),
        )
    }

    /// Returns the places that lose all their device images, as far as they can be edited, and the targets of these.
    pub(crate) fn emptied(
        &self,
        contents: &EditableFile,
    ) -> impl Iterator<Item = (String, String)> {
        let emptied = self.edit.emptied(contents).into_iter();
        emptied.map(|one| (one.place, names(one.images.into_iter())))
    }
}

/// Returns a path like `section:.hip_fatbin/bundle:1`.
pub(super) fn path_text(path: &[PathStep]) -> String {
    path.iter().map(ToString::to_string).collect::<Vec<_>>().join("/")
}

/// Returns the targets of images as they are loaded, each once, for a message.
pub(crate) fn names<'i>(images: impl Iterator<Item = &'i ImageInfo>) -> String {
    let name = |image: &ImageInfo| image.marked(image.label_of(&image.loaded_as()));
    few(each_once(images.map(name)))
}
