//! The files of an image: its layers on top of each other, without what higher layers replace or remove.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::ops::Bound;

use crate::error::{Error, ErrorKind};

use super::images::Images;
use super::layer::{Entry, LayerMembers};

/// The contents of a file: the number of a layer, and the number of a member in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct LayerFile {
    /// Number of the layer.
    pub layer: usize,
    /// Number of the member of the layer.
    pub member: usize,
}

impl LayerFile {
    /// Returns a member of a layer, by their numbers.
    #[must_use]
    pub fn new(layer: usize, member: usize) -> Self {
        LayerFile { layer, member }
    }
}

/// The files of an image, by their paths (OCI image specification, "Image Layer Filesystem Changeset").
#[derive(Default)]
pub struct ImageView {
    paths: BTreeMap<Vec<u8>, Node>,
    /// Files that a hard link of another layer leads to.
    linked: BTreeSet<LayerFile>,
    /// A directory that was looked up, and the one that it is.
    last: (Vec<u8>, Vec<u8>),
}

impl fmt::Debug for ImageView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImageView").field("paths", &self.paths.len()).finish_non_exhaustive()
    }
}

struct Node {
    what: What,
    /// The place of the layer that has it among those of the image.
    placed: usize,
    /// `true` if a lower layer has something at the same path.
    covers: bool,
}

enum What {
    File(LayerFile),
    Symlink(Box<[u8]>),
    Directory,
    Other,
}

/// As many links may lead to each other, as Linux has it.
const MOST_LINKS: usize = 40;
/// The most members of the layers of all images, which bounds the time.
const MOST_MEMBERS: usize = 64 << 20;

impl Images {
    /// Returns the files of each image, once for images with the same layers. There are members for each layer. A view is made
    /// when the iterator comes to it.
    ///
    /// # Errors
    ///
    /// [`Limit`](ErrorKind::Limit) for layers with more than 64 Mi members, counted again for each image with other layers.
    pub fn views<'a>(
        &'a self,
        members: &'a [LayerMembers],
    ) -> Result<impl Iterator<Item = ImageView> + 'a, Error> {
        let lists = self.lists_of_layers();
        let members_of =
            |layer: &usize| members.get(*layer).map_or(0, |members| members.members.len());
        let all: usize = lists.iter().flat_map(|list| list.iter()).map(members_of).sum();
        if all > MOST_MEMBERS {
            let text = format!("the images exceed the limit of {MOST_MEMBERS} members of layers");
            return Err(Error::new(ErrorKind::Limit, text));
        }
        Ok(lists.into_iter().map(|layers| ImageView::of(layers, members)))
    }

    /// Returns the lists of layers of the images, each once.
    pub(super) fn lists_of_layers(&self) -> Vec<&[usize]> {
        let mut known = HashSet::new();
        let lists = self.images.iter().map(|image| &image.layers[..]);
        lists.filter(|list| known.insert(*list)).collect()
    }
}

impl ImageView {
    pub(super) fn of(layers: &[usize], members: &[LayerMembers]) -> Self {
        let mut view = ImageView::default();
        for (placed, &layer) in layers.iter().enumerate() {
            if let Some(members) = members.get(layer) {
                view.add(placed, layer, members);
            }
        }
        view
    }

    /// Returns the regular files: path and contents. Hard links share theirs.
    pub fn files(&self) -> impl Iterator<Item = (&[u8], LayerFile)> {
        self.paths.iter().filter_map(|(path, node)| match node.what {
            What::File(file) => Some((&path[..], file)),
            _ => None,
        })
    }

    /// Returns the contents of the regular file at a path.
    #[must_use]
    pub fn file(&self, path: &[u8]) -> Option<LayerFile> {
        match self.paths.get(path)?.what {
            What::File(file) => Some(file),
            _ => None,
        }
    }

    /// Returns whether a file of a lower layer would appear at a path if the file there were deleted.
    #[must_use]
    pub fn covers(&self, path: &[u8]) -> bool {
        self.paths.get(path).is_some_and(|node| node.covers)
    }

    /// Returns files that a hard link of another layer leads to. Without them, that layer cannot be unpacked.
    pub fn linked(&self) -> impl Iterator<Item = LayerFile> {
        self.linked.iter().copied()
    }

    fn add(&mut self, placed: usize, layer: usize, members: &LayerMembers) {
        // Whiteouts hide lower layers only, wherever they stand.
        for (path, _) in &members.members {
            let (directory, name) = split(path);
            let Some(name) = name.strip_prefix(b".wh.") else { continue };
            let directory = self.real(directory);
            if name == b".wh..opq" {
                self.remove_below(&directory);
            } else if !name.starts_with(b".wh.") {
                let path = join(&directory, name);
                self.remove_below(&path);
                self.take(&path);
            }
        }
        for (member, (path, entry)) in members.members.iter().enumerate() {
            let (directory, name) = split(path);
            if name.is_empty() || name.starts_with(b".wh.") {
                continue;
            }
            let path = join(&self.real(directory), name);
            let what = match entry {
                Entry::File(_) => What::File(LayerFile { layer, member }),
                Entry::HardLink(target) => {
                    let (directory, name) = split(target);
                    let target = join(&self.real(directory), name);
                    let file = self.file(&target);
                    self.linked.extend(file.filter(|file| file.layer != layer));
                    file.map_or(What::Other, What::File)
                }
                Entry::Symlink(target) => What::Symlink(target.clone()),
                Entry::Directory => What::Directory,
                Entry::Other => What::Other,
            };
            if !matches!(what, What::Directory) {
                self.remove_below(&path);
            }
            let old = self.take(&path);
            let covers = old.is_some_and(|old| old.placed < placed || old.covers);
            self.paths.insert(path, Node { what, placed, covers });
        }
    }

    fn take(&mut self, path: &[u8]) -> Option<Node> {
        let old = self.paths.remove(path);
        if matches!(old, Some(Node { what: What::Symlink(_), .. })) {
            self.last = Default::default();
        }
        old
    }

    fn remove_below(&mut self, directory: &[u8]) {
        if directory.is_empty() {
            self.paths.clear();
            self.last = Default::default();
            return;
        }
        let start = [directory, b"/"].concat();
        let from = (Bound::Included(&start[..]), Bound::Unbounded);
        let below = self.paths.range::<[u8], _>(from).map(|(path, _)| path);
        let below: Vec<_> = below.take_while(|path| path.starts_with(&start)).cloned().collect();
        for path in below {
            self.take(&path);
        }
    }

    /// Returns the directory that a path leads to, by symbolic links.
    fn real(&mut self, directory: &[u8]) -> Vec<u8> {
        if self.last.0 == directory && !directory.is_empty() {
            return self.last.1.clone();
        }
        let found = self.follow(directory);
        self.last = (directory.to_vec(), found.clone());
        found
    }

    /// As `real`, without memory of the last one.
    pub(super) fn follow(&self, directory: &[u8]) -> Vec<u8> {
        let mut left: Vec<&[u8]> = names(directory).rev().collect();
        let (mut found, mut links) = (Vec::new(), 0);
        while let Some(name) = left.pop() {
            if name == b".." {
                let parent = split(&found).0.len();
                found.truncate(parent);
                continue;
            }
            let parent = found.len();
            if parent > 0 {
                found.push(b'/');
            }
            found.extend_from_slice(name);
            if let Some(Node { what: What::Symlink(target), .. }) = self.paths.get(&found)
                && links < MOST_LINKS
            {
                links += 1;
                found.truncate(if target.starts_with(b"/") { 0 } else { parent });
                left.extend(names(target).rev());
            }
        }
        found
    }
}

fn names(path: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    path.split(|&byte| byte == b'/').filter(|name| !matches!(name, [] | [b'.']))
}

/// Returns the directory and the name of a path.
pub(super) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(at) => (path.split_at(at).0, path.split_at(at + 1).1),
        None => (&[], path),
    }
}

pub(super) fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() { name.to_vec() } else { [directory, b"/", name].concat() }
}
