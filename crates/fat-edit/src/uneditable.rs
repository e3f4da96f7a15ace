//! Containers that cannot be edited: found by the survey, refused or left by the plan.

use std::collections::BTreeMap;
use std::ops::Range;

use byte_parts::{ReadSeek, Source};
use fat_object::{ContainerKind, ErrorKind, FileFormat, Location};

use crate::dispatch::Host;
use crate::edit::BundleEdit;
use crate::error::Problem;
use crate::plan::EditNote;
use crate::planner::Planner;
use crate::survey::{EditableContainer, EditableFile, Node};
use crate::wishes::{Wish, Wishes};

impl EditableFile {
    /// Finds out which containers cannot be edited, and from which images can be removed in place.
    pub(super) fn find_uneditable(&mut self, input: &mut dyn ReadSeek) -> Result<(), Problem> {
        let mut source = Source::new(input)?;
        let mut trailing: Vec<u64> = (self.findings.iter())
            .filter(|finding| finding.error().kind() == ErrorKind::TrailingData)
            .filter_map(|finding| match finding.location() {
                Location::File(at) => Some(at),
                _ => None,
            })
            .collect();
        trailing.sort_unstable();
        let mut found = Found { trailing, uneditable: Vec::new(), in_place: Vec::new() };
        in_file(&mut source, &(0..self.size), &self.root, &mut found)?;
        self.find_readers(&mut source)?;
        for (container, kind) in found.uneditable {
            if let Some(container) = self.containers.get_mut(container) {
                container.uneditable = Some(kind);
            }
        }
        for container in found.in_place {
            if let Some(container) = self.containers.get_mut(container) {
                container.in_place = true;
            }
        }
        for container in &mut self.containers {
            let first = self.images.get(container.images.start);
            let form = first
                .filter(|_| !container.images.is_empty())
                .and_then(fat_object::ImageInfo::bundle_form);
            match (container.kind, form) {
                (ContainerKind::Kpack, _) if self.format != FileFormat::Kpack => {
                    container.uneditable = Some("kernel packs in other files");
                }
                (ContainerKind::Hcf, _) => {
                    container.uneditable = Some("HCF containers");
                }
                (ContainerKind::Syclbin, _) => {
                    container.uneditable = Some("SYCLBIN files");
                }
                (ContainerKind::Section | ContainerKind::OutsideSections, None) => {
                    let kind = "SYCL images that the file registers by tables";
                    container.uneditable.get_or_insert(kind);
                }
                (ContainerKind::File | ContainerKind::Member | ContainerKind::Slice, _) => {
                    container.uneditable = Some("device images in no container");
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Other code may refer to their addresses, and to the bytes after them.
const SCANNED: &str = "containers that only a scan finds";
/// The same for a container at the start of a section.
const BESIDE: &str = "containers beside other data";

/// Result of the search for containers that cannot be edited.
struct Found {
    /// The places of findings about other data after containers, in order.
    trailing: Vec<u64>,
    uneditable: Vec<(usize, &'static str)>,
    in_place: Vec<usize>,
}

/// Finds containers that cannot be edited because of the file around them.
fn in_file(
    source: &mut Source<'_>,
    window: &Range<u64>,
    nodes: &[Node],
    found: &mut Found,
) -> Result<(), Problem> {
    if nodes.is_empty() {
        return Ok(());
    }
    let host = Host::of(source, window)?;
    let mut places = Vec::new();
    for node in nodes {
        let kind = match (host, node.kind(), node.location) {
            _ if node.segment.is_found_by_scan() => Some(SCANNED),
            (Host::Archive, ContainerKind::Member, Location::File(_)) => {
                in_file(source, &node.range, &node.children, found)?;
                continue;
            }
            (Host::Sections(_), ContainerKind::Section, Location::File(_)) => {
                let kind = host.uneditable(node.segment.name());
                kind.or(found.is_beside_other_data(source, node)?.then_some(BESIDE))
            }
            _ => host.uneditable(node.segment.name()),
        };
        in_node(node, kind, &mut found.uneditable);
        if kind.is_some() && node.kind() == ContainerKind::Section {
            let fatbinaries = node.children.iter().filter(|child| {
                child.kind() == ContainerKind::NvFatbin
                    && matches!(child.location, Location::File(_))
            });
            places.extend(fatbinaries.filter_map(|of| Some((of.container?, of.range.clone()))));
        }
    }
    let Host::Sections(format) = host else { return Ok(()) };
    if places.is_empty() {
        return Ok(());
    }
    let (containers, ranges): (Vec<_>, Vec<_>) = places.into_iter().unzip();
    let editable = object_edit::editable_in_place(source, window, format, &ranges)?;
    let editable = containers.into_iter().zip(editable).filter(|(_, is_editable)| *is_editable);
    found.in_place.extend(editable.map(|(container, _)| container));
    Ok(())
}

impl Found {
    /// Returns whether bytes of another kind follow the containers at the start of a section, and no finding says so.
    fn is_beside_other_data(&self, source: &mut Source<'_>, node: &Node) -> Result<bool, Problem> {
        let Some(last) = node.children.last() else { return Ok(false) };
        let end = source.skip_zeros(&(last.range.end..node.range.end))?;
        let next = self.trailing.partition_point(|&at| at < last.range.end);
        let is_said = self.trailing.get(next).is_some_and(|&at| at < node.range.end);
        Ok(end < node.range.end && !is_said)
    }
}

/// Finds containers in and under the node that cannot be edited because of their place, or for the reason given.
fn in_node(node: &Node, kind: Option<&'static str>, found: &mut Vec<(usize, &'static str)>) {
    let is_here = matches!(node.location, Location::File(_) | Location::Decompressed(_));
    let kind = kind.or((!is_here).then_some("containers in this place"));
    found.extend(node.container.zip(kind));
    node.children.iter().for_each(|child| in_node(child, kind, found));
}

impl Planner<'_> {
    /// Refuses containers that would have to be edited and cannot be, before any work is done; keeps them as they are
    /// if that is allowed.
    pub(super) fn leave_uneditable(&mut self) -> Result<(), Problem> {
        let contents = self.contents;
        let mut left: BTreeMap<&'static str, Vec<usize>> = BTreeMap::new();
        for container in &contents.containers {
            let Some(kind) = container.uneditable.filter(|_| self.would_change(container)) else {
                continue;
            };
            if container.in_place && self.only_removes(container) {
                continue;
            }
            if !self.edit.options.allow_uneditable {
                return Err(Problem::unsupported(&container.path, kind));
            }
            self.wishes.remove(&container.index);
            self.left.insert(container.index);
            left.entry(kind).or_default().push(container.index);
        }
        let notes = left.into_iter();
        self.notes
            .extend(notes.map(|(kind, containers)| EditNote::Uneditable { kind, containers }));

        let is_bundle = |container: &EditableContainer| {
            matches!(
                container.kind,
                ContainerKind::Bundle
                    | ContainerKind::Ccob
                    | ContainerKind::OffloadBinary
                    | ContainerKind::NvFatbin
            )
        };
        let keeps = matches!(self.edit.bundles, BundleEdit::Keep);
        let is_allowed = keeps || self.edit.options.allow_uneditable || !self.wishes.is_empty();
        if is_allowed || contents.containers.iter().any(is_bundle) {
            Ok(())
        } else {
            Err(Problem::no_bundle())
        }
    }

    /// Returns whether the edit does nothing to this container but to remove images.
    fn only_removes(&self, container: &EditableContainer) -> bool {
        let removes = |wishes: &Wishes<'_>| {
            let is_replaced = |wish: &Wish| matches!(wish, Wish::Replace(_));
            wishes.added.is_empty() && !wishes.entries.iter().any(is_replaced)
        };
        matches!(self.edit.bundles, BundleEdit::Keep)
            && self.wishes.get(&container.index).is_none_or(removes)
    }

    /// Returns whether images are removed from containers of a section in place.
    pub(super) fn is_in_place(&self, section: &Node) -> bool {
        section.children.iter().any(|child| self.editable(child).is_some_and(|of| of.in_place))
    }

    /// Returns whether the edit would change this container, or one that it lies in.
    fn would_change(&self, container: &EditableContainer) -> bool {
        let is_wished = self.wishes.get(&container.index).is_some_and(|wishes| !wishes.are_none());
        is_wished
            || match &self.edit.bundles {
                BundleEdit::Keep => false,
                BundleEdit::Compress(options) => container.is_compressed_by(options),
                BundleEdit::Decompress => {
                    container.compression.is_some() || container.kind == ContainerKind::NvFatbin
                }
            }
    }
}
