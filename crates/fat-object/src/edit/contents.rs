//! From the wishes for images to new containers, and on to the files that hold them.

use std::collections::BTreeMap;
use std::io::{self, SeekFrom};
use std::ops::Range;

use target_id::OffloadKind;

use super::bundle::{self, RebuildError};
use super::survey::Node;
use super::wishes::{NewImage, Wish, Wishes};
use super::{
    BundleEdit, ContainerChange, Contents, Edit, EditError, EditNote, EditPlan, ImageEdit, dispatch,
};
use crate::model::{ContainerKind, Location, Segment};
use crate::source::{Origin, ReadSeek, Source};

use super::splices::Splices;

pub(super) fn plan(
    contents: &Contents,
    input: &mut dyn ReadSeek,
    images: &mut [&mut dyn ReadSeek],
    edit: &Edit,
) -> Result<EditPlan, EditError> {
    if contents.containers.is_empty() {
        return Err(EditError::NoDeviceCode);
    }
    let mut source = Source::new(input, Origin::File)?;
    let mut planner = Planner::new(contents, edit, images)?;
    let window = 0..contents.size;
    let new = planner.containers(&mut source, &contents.root)?;
    let splices = dispatch::file(&mut planner, &mut source, &window, &contents.root, &[], &new)?;
    let Planner { changes, notes, .. } = planner;
    Ok(EditPlan { splices, input_size: contents.size, containers: changes, notes })
}

/// New containers, by where the old ones start in the source.
pub(super) type NewContainers = BTreeMap<u64, Splices>;

/// What a plan needs to know, and what it gathers.
pub(super) struct Planner<'a, 'i> {
    pub(super) contents: &'a Contents,
    pub(super) edit: &'a Edit,
    pub(super) images: &'a mut [&'i mut dyn ReadSeek],
    image_sizes: Vec<u64>,
    /// Wishes for containers that have any.
    wishes: BTreeMap<usize, Wishes<'a>>,
    changes: Vec<ContainerChange>,
    pub(super) notes: Vec<EditNote>,
}

impl<'a, 'i> Planner<'a, 'i> {
    fn new(
        contents: &'a Contents,
        edit: &'a Edit,
        images: &'a mut [&'i mut dyn ReadSeek],
    ) -> Result<Self, EditError> {
        let image_sizes = images
            .iter_mut()
            .map(|image| image.seek(SeekFrom::End(0)))
            .collect::<io::Result<Vec<u64>>>()?;
        let changes = contents.containers.iter().enumerate();
        let changes = changes.map(|(container, old)| ContainerChange {
            container,
            size_before: old.size,
            size_after: old.size,
        });
        let mut planner = Planner {
            contents,
            edit,
            images,
            image_sizes,
            wishes: BTreeMap::new(),
            changes: changes.collect(),
            notes: Vec::new(),
        };
        planner.sort_wishes()?;
        Ok(planner)
    }

    /// Sorts the wishes of the edit by containers.
    fn sort_wishes(&mut self) -> Result<(), EditError> {
        let edit = self.edit;
        for (&index, image) in &edit.images {
            let old = self.contents.images.get(index).ok_or_else(|| EditError::NoSuchImage {
                index,
                available: self.contents.images.len(),
            })?;
            let wish = match *image {
                ImageEdit::Remove => Wish::Remove,
                ImageEdit::Replace(number) => Wish::Replace(self.new_image(number)?),
            };
            let first = self.contents.containers.get(old.container).map_or(0, |c| c.images.start);
            let entries = &mut self.wishes_for(old.container)?.entries;
            if let Some(entry) = entries.get_mut(index - first) {
                *entry = wish;
            }
        }
        for added in &edit.added {
            let image = self.new_image(added.image)?;
            self.wishes_for(added.container)?.added.push((&added.id, image));
        }
        Ok(())
    }

    fn new_image(&self, number: usize) -> Result<NewImage, EditError> {
        let size = self.image_sizes.get(number).copied();
        let size =
            size.ok_or(EditError::NoSuchNewImage { number, available: self.image_sizes.len() })?;
        Ok(NewImage { number, size })
    }

    fn wishes_for(&mut self, container: usize) -> Result<&mut Wishes<'a>, EditError> {
        let available = self.contents.containers.len();
        let old = self.contents.containers.get(container);
        let old = old.ok_or(EditError::NoSuchContainer { container, available })?;
        Ok(self.wishes.entry(container).or_insert_with(|| Wishes {
            entries: vec![Wish::Keep; old.images.len()],
            added: Vec::new(),
        }))
    }

    /// The wishes for a container; none for one that nothing is wished of.
    pub(super) fn wishes(&self, node: &Node) -> Option<Wishes<'a>> {
        node.container.and_then(|container| self.wishes.get(&container)).cloned()
    }

    /// Whether something in or under the node may change.
    pub(super) fn touches(&self, node: &Node) -> bool {
        let is_plain = node.kind() == ContainerKind::Bundle;
        let is_compressed = node.kind() == ContainerKind::Ccob;
        let by_itself = match &self.edit.bundles {
            BundleEdit::Keep => false,
            BundleEdit::Compress(options) => is_plain || (is_compressed && options.recompress),
            BundleEdit::Decompress => is_compressed,
        };
        let wished = |c| self.wishes.get(&c).is_some_and(|wishes| !wishes.are_none());
        by_itself
            || node.container.is_some_and(wished)
            || node.children.iter().any(|child| self.touches(child))
    }

    /// Works out all containers under the nodes that lie in the source.
    pub(super) fn containers(
        &mut self,
        source: &mut Source<'_>,
        nodes: &[Node],
    ) -> Result<NewContainers, EditError> {
        let mut new = NewContainers::new();
        self.containers_in(source, nodes, &mut Vec::new(), &mut new)?;
        Ok(new)
    }

    fn containers_in(
        &mut self,
        source: &mut Source<'_>,
        nodes: &[Node],
        path: &mut Vec<Segment>,
        new: &mut NewContainers,
    ) -> Result<(), EditError> {
        for node in nodes {
            if !matches!(node.location, Location::File(_) | Location::Decompressed(_)) {
                continue;
            }
            path.push(node.segment.clone());
            match node.kind() {
                ContainerKind::Member | ContainerKind::Slice | ContainerKind::Section => {
                    self.containers_in(source, &node.children, path, new)?;
                }
                _ => {
                    let splices = self.container(source, node, path)?;
                    if let Some(change) = node.container.and_then(|c| self.changes.get_mut(c)) {
                        change.size_after = splices.len();
                    }
                    new.insert(node.range.start, splices);
                }
            }
            path.pop();
        }
        Ok(())
    }

    fn container(
        &mut self,
        source: &mut Source<'_>,
        node: &Node,
        path: &[Segment],
    ) -> Result<Splices, EditError> {
        let unsupported = |kind| Err(EditError::Unsupported { path: path.to_vec(), kind });
        if !self.touches(node) {
            return Ok(Splices::copy_of(&node.range));
        }
        let wishes = self.wishes(node).unwrap_or_default();
        match node.kind() {
            ContainerKind::Bundle => {
                let empty = self.is_emptied(node, &wishes, path)?;
                bundle::rebuild(source, &node.range, &wishes, empty)
                    .map_err(|error| rebuild_error(error, node, path))
            }
            ContainerKind::Ccob => unsupported("compressed bundles"),
            ContainerKind::OffloadBinary => unsupported("packages"),
            _ => unsupported("NVIDIA fatbinaries"),
        }
    }

    /// Whether the wishes leave no device image, which has to be allowed.
    fn is_emptied(
        &self,
        node: &Node,
        wishes: &Wishes<'_>,
        path: &[Segment],
    ) -> Result<bool, EditError> {
        let first = node.container.and_then(|c| self.contents.containers.get(c));
        let images = first.and_then(|container| self.contents.images.get(container.images.clone()));
        let mut left =
            images.unwrap_or_default().iter().zip(&wishes.entries).filter(|(image, wish)| {
                image.target.kind() != Some(&OffloadKind::Host) && **wish != Wish::Remove
            });
        let empty = wishes.remove_any() && wishes.added.is_empty() && left.next().is_none();
        if empty && !self.edit.options.allow_empty {
            return Err(EditError::NothingLeft { path: path.to_vec() });
        }
        Ok(empty)
    }
}

fn rebuild_error(error: RebuildError, node: &Node, path: &[Segment]) -> EditError {
    match error {
        RebuildError::Read(error) => EditError::Read(error),
        RebuildError::Format(error) => {
            EditError::Damaged { path: path.to_vec(), location: node.location, error }
        }
        RebuildError::Changed => EditError::InputChanged,
    }
}
