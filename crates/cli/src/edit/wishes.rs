//! Changes to a file's images.

use std::collections::BTreeSet;

use device_select::is_host;
use fat_edit::{Edit, EditOptions, EditableContainer, EditableFile};
use fat_object::{ContainerKind, ImageInfo, PathStep};
use tool_kit::each_once::each_once;
use tool_kit::report;

/// An [`Edit`], and what the report says about it.
#[derive(Debug)]
pub(crate) struct Wishes {
    pub(super) edit: Edit,
    /// By the index of the image.
    removed: BTreeSet<usize>,
    pub(super) notes: Vec<String>,
    pub(super) warnings: Vec<String>,
}

impl Wishes {
    pub(crate) fn new(options: EditOptions) -> Self {
        let edit = Edit::new(options);
        Wishes { edit, removed: BTreeSet::new(), notes: Vec::new(), warnings: Vec::new() }
    }

    /// Returns the edit itself, for wishes about no single image.
    pub(crate) fn edit(&mut self) -> &mut Edit {
        &mut self.edit
    }

    pub(crate) fn remove(&mut self, image: &ImageInfo) {
        self.edit.remove(image.index());
        self.removed.insert(image.index());
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
        names(contents.images().iter().filter(|image| self.is_removed(image)).filter(is_there))
    }

    /// Returns whether the image is to go.
    pub(crate) fn is_removed(&self, image: &ImageInfo) -> bool {
        self.removed.contains(&image.index())
    }

    /// Returns the places that lose all their device images, as far as they can be edited.
    pub(crate) fn emptied(&self, contents: &EditableFile) -> Vec<Emptied> {
        let mut places: Vec<(String, Vec<&ImageInfo>)> = Vec::new();
        for image in contents.images().iter().filter(|image| !is_host(image)) {
            let Some(container) = contents.container_of(image.index()) else { continue };
            if container.uneditable().is_some() {
                continue;
            }
            let name = place(container);
            // Images in one place are walked together.
            match places.last_mut() {
                Some((last, images)) if *last == name => images.push(image),
                _ => places.push((name, vec![image])),
            }
        }
        places.retain(|(_, images)| images.iter().all(|image| self.is_removed(image)));
        places
            .into_iter()
            .map(|(name, images)| Emptied { name, had: names(images.into_iter()) })
            .collect()
    }
}

/// A place without device images.
#[derive(Debug)]
pub(crate) struct Emptied {
    /// The containers from outside in.
    pub(crate) name: String,
    /// The targets of the previous images.
    pub(crate) had: String,
}

/// Returns the place in which the loss of all images is an error: a bundle; consecutive offload binaries, because each has one
/// image; all sections of a host object that is a bundle.
pub(crate) fn place(container: &EditableContainer) -> String {
    let path = container.path();
    let path = match container.kind() {
        ContainerKind::OffloadBinary | ContainerKind::Section => {
            path.split_last().map_or(path, |(_, around)| around)
        }
        _ => path,
    };
    if path.is_empty() { "the file".to_owned() } else { path_text(path) }
}

/// Returns a path like `section:.hip_fatbin/bundle:1`.
pub(super) fn path_text(path: &[PathStep]) -> String {
    path.iter().map(ToString::to_string).collect::<Vec<_>>().join("/")
}

/// Returns the targets of images as they are loaded, each once, for a message.
pub(crate) fn names<'i>(images: impl Iterator<Item = &'i ImageInfo>) -> String {
    let name = |image: &ImageInfo| image.marked(image.label_of(&image.loaded_as()));
    report::few(each_once(images.map(name)))
}
