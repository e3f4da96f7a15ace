//! From the wishes for images to new containers, and on to the files that hold them.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use bundle_format::EntryId;
use byte_parts::Source;
use fat_object::{BundleForm, ContainerKind, ImageInfo, Location, PathStep, check_agreement};
use object_edit::Output;
use target_id::Target;

use crate::check::Expected;
use crate::compress;
use crate::compress::{Job, Jobs};
use crate::decompress::Decompress;
use crate::edit::{BundleEdit, Edit, ImageEdit};
use crate::error::Problem;
use crate::offload_form::Treatment;
use crate::plan::{Change, ContainerChange, EditNote, ImageChange};
use crate::survey::{EditableContainer, EditableFile, Node};
use crate::wishes::{Incoming, NewImages, Wish, Wishes};

/// Returns the target that a bundle entry ID names.
fn target_of(id: &str) -> Target {
    match EntryId::parse(id) {
        Ok(id) => id.target(),
        Err(_) => Target::new(None, None, id),
    }
}

/// The next thing to do for a container.
pub(super) enum Step {
    /// Nothing more: this takes its place.
    Done(Change, Output),
    /// Nothing more: all that it holds is removed, as was wished.
    Removed,
    /// The plain bundle is there, and is to be compressed.
    Compress(Job, Otherwise),
}

/// Change of the compressed bundle.
pub(super) enum Otherwise {
    /// Take it if it is smaller than this one, to which that has been done.
    Smaller(Change, Output),
    /// Take it.
    Always(Change),
}

/// New containers, by where the old ones start in the source; `None` for removed ones.
pub(super) type NewContainers = BTreeMap<u64, Option<Output>>;

/// Inputs and intermediate results of a plan.
pub(super) struct Planner<'a> {
    pub(super) contents: &'a EditableFile,
    pub(super) edit: &'a Edit,
    pub(super) images: NewImages<'a>,
    /// Wishes for containers that have any.
    pub(super) wishes: BTreeMap<usize, Wishes<'a>>,
    /// Containers that cannot be edited, and stay as they are.
    pub(super) left: BTreeSet<usize>,
    pub(super) changes: Vec<ContainerChange>,
    pub(super) notes: Vec<EditNote>,
    /// The inputs [`Input::Derived`](object_edit::Input::Derived), by number.
    pub(super) derived: Vec<Decompress>,
    /// As [`Options::with_stay`](object_edit::Options::with_stay).
    pub(super) stay: bool,
}

/// A container, and where it is.
struct PlacedNode<'n> {
    node: &'n Node,
    path: Vec<PathStep>,
    /// `true` if it lies in no section and has no neighbours.
    alone: bool,
}

impl<'a> Planner<'a> {
    pub(super) fn new(contents: &'a EditableFile, edit: &'a Edit) -> Result<Self, Problem> {
        let changes = contents.containers.iter().enumerate();
        let changes = changes.map(|(container, old)| {
            let plain = old.compression.map_or(old.size, |c| c.uncompressed_size());
            ContainerChange {
                container,
                change: Change::Kept,
                size_before: old.size,
                size_after: old.size,
                uncompressed_before: plain,
                uncompressed_after: plain,
            }
        });
        let mut planner = Planner {
            contents,
            edit,
            images: NewImages::new(&edit.new_images)?,
            wishes: BTreeMap::new(),
            left: BTreeSet::new(),
            changes: changes.collect(),
            notes: Vec::new(),
            derived: Vec::new(),
            stay: matches!(edit.bundles, BundleEdit::Decompress),
        };
        planner.sort_wishes()?;
        Ok(planner)
    }

    /// Sorts the wishes of the edit by containers.
    fn sort_wishes(&mut self) -> Result<(), Problem> {
        let edit = self.edit;
        for (&index, image) in &edit.images {
            let available = self.contents.images.len();
            let old = self.contents.images.get(index);
            let old = old.ok_or_else(|| {
                Problem::missing(format!("no image {index}: the file has {available}"))
            })?;
            let wish = match *image {
                ImageEdit::Remove if old.target().is_host() && !edit.options.remove_host => {
                    let what = format!("image {index} is host code; removing it needs remove_host");
                    return Err(Problem::refused(&[], what));
                }
                ImageEdit::Remove => Wish::Remove,
                ImageEdit::Replace(number) => Wish::Replace(self.new_image(number, old.target())?),
            };
            let Some(container) = self.contents.container_of(index) else { continue };
            let first = container.images.start;
            let entries = &mut self.wishes_for(container.index)?.entries;
            if let Some(entry) = entries.get_mut(index - first) {
                *entry = wish;
            }
        }
        for added in &edit.added {
            let image = self.new_image(added.image, &target_of(&added.id))?;
            self.wishes_for(added.container)?.added.push((&added.id, image));
        }
        self.wishes.iter().try_for_each(|(&index, wishes)| self.check_composition(index, wishes))
    }

    /// Notes the fatbinaries that lose all images, if they may.
    pub(super) fn note_emptied(&mut self) -> Result<(), Problem> {
        let mut count = 0;
        for (&index, wishes) in &self.wishes {
            let Some(container) = self.contents.containers.get(index) else { continue };
            let goes = !wishes.entries.is_empty()
                && wishes.added.is_empty()
                && wishes.entries.iter().all(|wish| *wish == Wish::Remove);
            if container.kind != ContainerKind::NvFatbin || !goes {
                continue;
            }
            if !self.edit.options.allow_empty {
                return Err(Problem::nothing_left(&container.path));
            }
            count += 1;
        }
        self.notes.extend((count > 0).then_some(EditNote::EmptyFatbinaries { count }));
        Ok(())
    }

    /// Checks that entries can be added to a container, if any are.
    fn check_composition(&self, container: usize, wishes: &Wishes<'_>) -> Result<(), Problem> {
        let Some(container) = self.contents.containers.get(container) else { return Ok(()) };
        // Entries of others may be there twice.
        let is_bundle =
            !matches!(container.kind, ContainerKind::OffloadBinary | ContainerKind::NvFatbin);
        if wishes.added.is_empty() || !is_bundle {
            return Ok(());
        }
        let old = self.contents.images_in(container);
        let old = old.iter().zip(&wishes.entries).filter(|(_, wish)| **wish != Wish::Remove);
        let mut ids: Vec<&str> = old.filter_map(|(image, _)| image.id()).collect();
        let first_new = ids.len();
        ids.extend(wishes.added.iter().map(|(id, _)| *id));
        let findings = bundle_format::composition(ids);
        match findings.into_iter().find(|finding| finding.index() >= first_new) {
            Some(finding) => Err(Problem::refused(&container.path, finding)),
            None => Ok(()),
        }
    }

    /// Returns a new image, which has to be one for this target.
    fn new_image(&self, number: usize, target: &Target) -> Result<Incoming, Problem> {
        let image = self.images.get(number)?;
        if !self.edit.options.any_image {
            check_agreement(target, self.images.head(&image))
                .map_err(|disagreement| Problem::mismatch(number, target, disagreement))?;
        }
        Ok(image)
    }

    fn wishes_for(&mut self, container: usize) -> Result<&mut Wishes<'a>, Problem> {
        let available = self.contents.containers.len();
        let old = self.contents.containers.get(container);
        let old = old.ok_or_else(|| {
            Problem::missing(format!("no container {container}: the file has {available}"))
        })?;
        Ok(self.wishes.entry(container).or_insert_with(|| Wishes {
            entries: vec![Wish::Keep; old.images.len()],
            added: Vec::new(),
        }))
    }

    /// Returns the wishes for the images directly in a container.
    pub(super) fn wishes(&self, node: &Node) -> Wishes<'a> {
        let wishes = node.container.and_then(|container| self.wishes.get(&container));
        // Most containers have none.
        wishes.cloned().unwrap_or_default()
    }

    /// Returns whether there are wishes for images in or under the node.
    pub(super) fn is_wished(&self, node: &Node) -> bool {
        let wished = |c| self.wishes.get(&c).is_some_and(|wishes| !wishes.are_none());
        node.container.is_some_and(wished) || node.children.iter().any(|c| self.is_wished(c))
    }

    /// Returns the wish for a bundle as such.
    pub(super) fn bundle_edit(&self, node: &Node) -> &'a BundleEdit {
        let in_compressed = matches!(node.location, Location::Decompressed(_));
        let is_left = node.container.is_some_and(|container| self.left.contains(&container));
        match &self.edit.bundles {
            // It is compressed with what is around it.
            _ if in_compressed || is_left => &BundleEdit::Keep,
            edit => edit,
        }
    }

    /// Returns the form of a bundle, if it has images that show it.
    pub(super) fn form(&self, node: &Node) -> Option<BundleForm> {
        let container = self.contents.containers.get(node.container?)?;
        self.contents.images.get(container.images.clone())?.first()?.bundle_form()
    }

    /// Returns whether something in or under the node may change.
    pub(super) fn touches(&self, node: &Node) -> bool {
        self.changes_form(node)
            || self.is_wished(node)
            || node.children.iter().any(|child| self.touches(child))
    }

    /// Returns the container of a node, if images lie directly in it.
    pub(super) fn editable(&self, node: &Node) -> Option<&'a EditableContainer> {
        self.contents.containers.get(node.container?)
    }

    /// Returns `true` if it is a bundle or offload binary that is to be compressed or decompressed.
    fn changes_form(&self, node: &Node) -> bool {
        match self.bundle_edit(node) {
            BundleEdit::Keep => false,
            BundleEdit::Compress(options) => match node.kind() {
                ContainerKind::Bundle | ContainerKind::NvFatbin => true,
                ContainerKind::Ccob => options.recompress,
                _ => self.editable(node).is_some_and(|old| old.is_compressed_by(options)),
            },
            BundleEdit::Decompress => {
                node.compression.is_some() || node.kind() == ContainerKind::NvFatbin
            }
        }
    }

    /// Returns the most bytes that something may have without compression.
    pub(super) fn most_of(&self, edit: &BundleEdit) -> u64 {
        match edit {
            BundleEdit::Compress(options) => options.max_decompressed,
            BundleEdit::Keep | BundleEdit::Decompress => self.contents.max_decompressed,
        }
    }

    /// Returns what may have to be compressed.
    fn to_compress(&self, places: &[PlacedNode<'_>]) -> Jobs {
        let compressed = |node: &Node| match (node.kind(), node.compression) {
            (_, Some(_)) => self.touches(node),
            (ContainerKind::Bundle | ContainerKind::OffloadBinary, None) => {
                matches!(self.bundle_edit(node), BundleEdit::Compress(_))
            }
            _ => false,
        };
        let mut jobs = Jobs { most: self.most_of(&self.edit.bundles), ..Jobs::default() };
        for node in places.iter().map(|place| place.node).filter(|node| compressed(node)) {
            let size = match node.compression {
                Some(compression) => compression.uncompressed_size(),
                None => node.range.end - node.range.start,
            };
            jobs.count += 1;
            jobs.largest = jobs.largest.max(size);
        }
        jobs
    }

    fn threads(&self) -> NonZeroU32 {
        let threads = match &self.edit.bundles {
            BundleEdit::Compress(options) => options.write.threads(),
            _ => self.edit.options.threads,
        };
        NonZeroU32::new(threads).unwrap_or(NonZeroU32::MIN)
    }

    /// Plans all containers under the nodes that lie in the source. `path` is the path to the nodes.
    pub(super) fn containers(
        &mut self,
        source: &mut Source<'_>,
        nodes: &[Node],
        path: &[PathStep],
    ) -> Result<NewContainers, Problem> {
        let mut places = Vec::new();
        gather(nodes, &mut path.to_vec(), false, &mut places);
        let mut new = NewContainers::new();
        let mut pending = Vec::new();
        let mut left = places.iter();
        let (threads, expected) = (self.threads(), self.to_compress(&places));
        let compressed = compress::run(threads, &expected, || {
            for place in left.by_ref() {
                match self.container(source, place.node, &place.path, place.alone)? {
                    Step::Done(change, splices) => {
                        let plain = (change != Change::Kept).then(|| splices.size());
                        self.record(place.node, change, splices.size(), plain);
                        new.insert(place.node.range.start, Some(splices));
                    }
                    Step::Removed => {
                        self.record(place.node, Change::Removed, 0, Some(0));
                        new.insert(place.node.range.start, None);
                    }
                    Step::Compress(job, otherwise) => {
                        pending.push((place, job.data.len() as u64, otherwise));
                        return Ok(Some(job));
                    }
                }
            }
            Ok::<_, Problem>(None)
        })?;
        for ((place, plain, otherwise), compressed) in pending.into_iter().zip(compressed) {
            let compressed = compressed
                .map_err(|error| Problem::damaged(&place.path, place.node.location, error))?;
            let (change, splices) = otherwise.unless_better(compressed);
            self.record(place.node, change, splices.size(), Some(plain));
            new.insert(place.node.range.start, Some(splices));
        }
        Ok(new)
    }

    pub(super) fn record(&mut self, node: &Node, change: Change, size: u64, plain: Option<u64>) {
        let Some(record) = node.container.and_then(|c| self.changes.get_mut(c)) else { return };
        record.change = change;
        record.size_after = size;
        if let Some(plain) = plain {
            record.uncompressed_after = plain;
        }
    }

    /// Checks that all wishes are fulfilled: a file can hold containers in places that no edit reaches.
    pub(super) fn check_done(&self) -> Result<(), Problem> {
        let left = self.wishes.iter().find(|(index, wishes)| {
            let change = self.changes.get(**index).map(|change| change.change);
            wishes.change_something() && change.is_none_or(|change| change == Change::Kept)
        });
        match left.and_then(|(index, _)| self.contents.containers.get(*index)) {
            Some(container) => {
                Err(Problem::unsupported(&container.path, "containers in this place"))
            }
            None => Ok(()),
        }
    }

    /// Notes the treatment of offload binaries when the file was compressed.
    pub(super) fn note_offload_binaries(&mut self) {
        let BundleEdit::Compress(options) = &self.edit.bundles else { return };
        let (mut older, mut registered, mut upgraded) = (0, 0, 0);
        for (old, new) in self.contents.containers.iter().zip(&self.changes) {
            match old.treatment(options) {
                Some(Treatment::Older) => older += 1,
                Some(Treatment::Registered) => registered += 1,
                Some(Treatment::Upgrade) if new.change == Change::Compressed => upgraded += 1,
                _ => {}
            }
        }
        let notes = [
            EditNote::OlderOffloadBinaries { count: older },
            EditNote::RegisteredOffloadBinaries { count: registered },
            EditNote::UpgradedOffloadBinaries { count: upgraded },
        ];
        let counts = [older, registered, upgraded];
        let notes = notes.into_iter().zip(counts).filter(|&(_, count)| count > 0);
        self.notes.extend(notes.map(|(note, _)| note));
    }

    /// Returns whether the wishes leave no device image, and fails if that is not allowed.
    pub(super) fn is_emptied(
        &self,
        node: &Node,
        wishes: &Wishes<'_>,
        path: &[PathStep],
    ) -> Result<bool, Problem> {
        let container = node.container.and_then(|c| self.contents.containers.get(c));
        let images = container.into_iter().flat_map(|c| self.contents.images_in(c));
        let is_device = |image: &ImageInfo| {
            let is_metadata = image
                .offload_binary_entry()
                .is_some_and(|entry| entry.flags().contains(offload_binary::Flags::METADATA));
            !image.target().is_host() && !is_metadata
        };
        let mut left = images.zip(&wishes.entries);
        let is_left = left.any(|(image, wish)| is_device(image) && *wish != Wish::Remove);
        let empty = wishes.remove_any() && wishes.added.is_empty() && !is_left;
        if empty && !self.edit.options.allow_empty {
            Err(Problem::nothing_left(path))
        } else {
            Ok(empty)
        }
    }

    /// Returns the images that the new file has to hold.
    pub(super) fn expected(&self) -> Expected {
        let mut expected = Expected::new(self.contents, |image| self.wish(image));
        for (&index, wishes) in &self.wishes {
            let Some(container) = self.contents.containers.get(index) else { continue };
            for (_, new) in &wishes.added {
                expected.add(container.kind, new.number, new.size);
            }
        }
        expected
    }

    /// Returns the wish for an image.
    fn wish(&self, image: &ImageInfo) -> Wish {
        let container = self.contents.container_of(image.index());
        let wish = container.and_then(|container| {
            let place = image.index().checked_sub(container.images.start)?;
            self.wishes.get(&container.index)?.entries.get(place)
        });
        wish.copied().unwrap_or(Wish::Keep)
    }

    /// Returns the change of each image; added ones are last.
    pub(super) fn image_changes(&self) -> Vec<ImageChange> {
        let old = self.contents.images.iter().zip(&self.contents.containers_of);
        let old = old.map(|(image, &container)| ImageChange {
            index: Some(image.index()),
            container,
            target: image.target().clone(),
            size_before: image.size(),
            size_after: match self.wish(image) {
                Wish::Keep => Some(image.size()),
                Wish::Remove => None,
                Wish::Replace(new) => Some(new.size),
            },
        });
        let added = self.wishes.iter().flat_map(|(&container, wishes)| {
            wishes.added.iter().map(move |(id, new)| ImageChange {
                index: None,
                container,
                target: target_of(id),
                size_before: 0,
                size_after: Some(new.size),
            })
        });
        old.chain(added).collect()
    }
}

/// Collects all containers in the source, in order.
fn gather<'n>(
    nodes: &'n [Node],
    path: &mut Vec<PathStep>,
    in_section: bool,
    places: &mut Vec<PlacedNode<'n>>,
) {
    for node in nodes {
        if !matches!(node.location, Location::File(_) | Location::Decompressed(_)) {
            continue;
        }
        path.push(node.segment.clone());
        match node.kind() {
            ContainerKind::Member | ContainerKind::Slice => {
                gather(&node.children, path, false, places);
            }
            ContainerKind::Section | ContainerKind::OutsideSections => {
                gather(&node.children, path, true, places);
            }
            _ => {
                let alone = nodes.len() == 1 && !in_section;
                places.push(PlacedNode { node, path: path.clone(), alone });
            }
        }
        path.pop();
    }
}
