//! The members of layers that images see.

use std::collections::HashMap;
use std::fmt;

use crate::error::{Error, ErrorKind};
use crate::member::Member;
use crate::path::without_dot;

use super::archive::may_be_of_image;
use super::images::Images;
use super::layer::{LayerMembers, normal};
use super::view::{ImageView, LayerFile};

/// The members of layers that images see, with their paths in these: a walk through an archive or a layout meets the others, too.
pub struct VisibleMembers {
    /// The visible files of each layer, by the name of its file.
    layers: HashMap<String, HashMap<Box<[u8]>, Visible>>,
    most: u64,
    room: u64,
}

/// A file of a layer that images see.
struct Visible {
    /// The place of its header: of several members of this path the last counts.
    offset: u64,
    /// The numbers of the images, with its path in each if that is not the one in the layer.
    seen: Vec<(usize, Option<Box<[u8]>>)>,
}

/// Bytes that are held for each visible file, beside its name.
const FILE: u64 = 96;

impl fmt::Debug for VisibleMembers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VisibleMembers").field("layers", &self.layers.len()).finish_non_exhaustive()
    }
}

impl VisibleMembers {
    /// Creates those of no image. Names may take `most` bytes of memory.
    #[must_use]
    pub fn new(images: &Images, most: u64) -> Self {
        let names = images.layers().iter().map(|it| it.file().to_owned());
        let layers = names.map(|name| (name, HashMap::new())).collect();
        VisibleMembers { layers, most, room: most }
    }

    /// Counts bytes of memory that are held beside the names, such as those of the [members](LayerMembers::held).
    ///
    /// # Errors
    ///
    /// [`Limit`](ErrorKind::Limit) if all exceed the most bytes.
    pub fn hold(&mut self, bytes: u64) -> Result<(), Error> {
        self.room = self.room.checked_sub(bytes).ok_or_else(|| {
            let most = self.most;
            let text = format!(
                "the names of the files in all images exceed the limit of {most} bytes held"
            );
            Error::new(ErrorKind::Limit, text)
        })?;
        Ok(())
    }

    /// Adds the files of an image, with its number among the [views](Images::views) and the members of all layers.
    ///
    /// # Errors
    ///
    /// [`Limit`](ErrorKind::Limit) if the names exceed the most bytes.
    pub fn add(
        &mut self,
        image: usize,
        view: &ImageView,
        (images, members): (&Images, &[LayerMembers]),
    ) -> Result<(), Error> {
        for (path, LayerFile { layer, member, .. }) in view.files() {
            let own = members.get(layer).and_then(|it| it.path(member).zip(it.offset(member)));
            let Some(((own, offset), layer)) = own.zip(images.layers().get(layer)) else {
                continue;
            };
            let other: Option<Box<[u8]>> = (path != own).then(|| path.into());
            self.hold(FILE + (own.len() + other.as_ref().map_or(0, |it| it.len())) as u64)?;
            let Some(files) = self.layers.get_mut(layer.file()) else { continue };
            let new = || Visible { offset, seen: Vec::new() };
            let visible = files.entry(own.into()).or_insert_with(new);
            // A hard link has several names, which may lead to variants and libraries of their own.
            visible.seen.push((image, other));
        }
        Ok(())
    }

    /// Returns the places of a member: numbers of images, and its paths in these. `None` if no image sees it, none for a member that
    /// does not lie in a layer. A member of a package in a layer has the paths of the package. `layer` is the name of the file that
    /// the path of the member counts from; `None` for an archive.
    #[must_use]
    pub fn places(&self, layer: Option<&str>, member: &Member) -> Option<Vec<(usize, &[u8])>> {
        let mut names = member.path().names();
        let first = layer.map(str::as_bytes).or_else(|| names.next().map(without_dot));
        let files = first.and_then(|it| self.layers.get(std::str::from_utf8(it).ok()?));
        let (Some(files), Some(path)) = (files, names.next()) else { return Some(Vec::new()) };
        let (path, visible) = files.get_key_value(&*normal(path))?;
        if names.len() == 0 && member.offset() != visible.offset {
            return None;
        }
        let seen = visible.seen.iter();
        Some(seen.map(|(image, other)| (*image, other.as_deref().unwrap_or(path))).collect())
    }

    /// Returns whether a member of an archive lies beside its images: not a document of one, and without a hash in its name.
    #[must_use]
    pub fn is_beside(&self, member: &Member) -> bool {
        member.path().names().next().is_some_and(|name| !may_be_of_image(without_dot(name)))
    }

    /// Returns whether a file is a layer of an image.
    #[must_use]
    pub fn is_layer(&self, file: &str) -> bool {
        self.layers.contains_key(file)
    }
}
