//! The places of a file that an edit empties.

use fat_object::{ContainerKind, FileFormat, ImageInfo};

use crate::edit::{Edit, ImageEdit};
use crate::error::text_of;
use crate::survey::{EditableContainer, EditableFile};

/// A place that loses all its images for devices.
#[derive(Debug)]
#[non_exhaustive]
pub struct Emptied<'f> {
    /// The [place](EditableContainer::place).
    pub place: String,
    /// The images that it has before.
    pub images: Vec<&'f ImageInfo>,
}

impl EditableContainer {
    /// Returns the place in which the loss of all images is an error, as a path: a bundle, `section:.hip_fatbin/bundle:1`;
    /// consecutive offload binaries, because each has one image; all sections of a host object that is a bundle.
    #[must_use]
    pub fn place(&self) -> String {
        let path = match (self.kind(), self.path()) {
            (ContainerKind::OffloadBinary | ContainerKind::Section, [around @ .., _]) => around,
            (_, path) => path,
        };
        match path {
            [] => "the file".to_owned(),
            path => text_of(path, ""),
        }
    }
}

impl Edit {
    /// Returns whether the image with this index is to be [removed](Self::remove).
    #[must_use]
    pub fn removes(&self, index: usize) -> bool {
        self.images.get(&index) == Some(&ImageEdit::Remove)
    }

    /// Returns the places that lose all their images for devices, if they can be edited.
    #[must_use]
    pub fn emptied<'f>(&self, file: &'f EditableFile) -> Vec<Emptied<'f>> {
        let mut places: Vec<Emptied<'f>> = Vec::new();
        let is_device = |image: &&ImageInfo| {
            !image.target().is_host() && image.format() != FileFormat::HostPlaceholder
        };
        for image in file.images().iter().filter(is_device) {
            let container = file.container_of(image.index());
            let Some(container) = container.filter(|one| one.uneditable().is_none()) else {
                continue;
            };
            let place = container.place();
            // Images in one place are walked together.
            match places.last_mut() {
                Some(last) if last.place == place => last.images.push(image),
                _ => places.push(Emptied { place, images: vec![image] }),
            }
        }
        places.retain(|place| place.images.iter().all(|image| self.removes(image.index())));
        places
    }

    /// Returns the number of NVIDIA fatbinaries that lose their last PTX, and not all other images with it.
    #[must_use]
    pub fn without_ptx(&self, file: &EditableFile) -> usize {
        let containers = file.containers().iter();
        let fatbinaries = containers.filter(|of| of.kind() == ContainerKind::NvFatbin);
        let is_removed = |image: &ImageInfo| self.removes(image.index());
        let loses = |container: &&EditableContainer| {
            let images = file.images_in(container);
            let mut ptx =
                images.iter().filter(|image| image.format() == FileFormat::Ptx).peekable();
            let is_left = images.iter().any(|image| !is_removed(image));
            is_left && ptx.peek().is_some() && ptx.all(is_removed)
        };
        fatbinaries.filter(loses).count()
    }
}
