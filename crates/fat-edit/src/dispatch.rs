//! From new containers to the files that hold them: each goes to the editor of its format.

use std::io;
use std::ops::Range;

use byte_parts::Source;
use fat_object::{ContainerKind, FileFormat, Location, PathStep, elf_type};
use object_edit::{
    Edited, Format, Input, Item, Output, SectionChange, SectionEdit, copy_of, is_copy_of,
};

use crate::error::Problem;
use crate::inputs::Sources;
use crate::object_form::is_never_loaded;
use crate::plan::{Change, EditNote};
use crate::planner::{NewContainers, Planner};
use crate::survey::Node;
use crate::wishes::Wish;
use crate::{SNIFF_LEN, sequence};

/// Plans the edit of a file in the source, or of a member.
pub(super) fn file(
    planner: &mut Planner<'_>,
    source: &mut Source<'_>,
    window: &Range<u64>,
    nodes: &[Node],
    path: &[PathStep],
    new: &NewContainers,
) -> Result<Output, Problem> {
    if !nodes.iter().any(|node| planner.touches(node)) {
        return Ok(copy_of(window));
    }
    let host = Host::of(source, window)?;
    let edited = match host {
        Host::Unsupported(kind) => {
            return Err(Problem::unsupported(path, kind));
        }
        Host::Raw => {
            let items = items(source, nodes, new)?;
            planner.check_left(&items, path)?;
            return Ok(sequence::lay_out(source, window, items)?);
        }
        Host::Archive => {
            let members = members(planner, source, nodes, path, new)?;
            if members.is_empty() {
                return Ok(copy_of(window));
            }
            let edited = object_edit::edit_archive(source, window, members);
            return edited.map_err(|error| Problem::from(error).within(path));
        }
        Host::Sections(format) => {
            let fixed = in_place(planner, nodes, path, new)?;
            // The others are not sections, or do not change as sections.
            let mut sections = Vec::new();
            for node in nodes {
                if !node.segment.is_found_by_scan() && !planner.is_in_place(node) {
                    sections.push(section(planner, source, node, path, new)?);
                }
            }
            let is_changed = sections.iter().any(SectionEdit::is_changed);
            if !is_changed && fixed.is_empty() {
                return Ok(copy_of(window));
            }
            let stays = |edit: &SectionEdit| !edit.is_changed() || is_never_loaded(&edit.name);
            let of_sections = match format {
                Format::LinkedElf if sections.iter().all(stays) => Format::ElfObject,
                format => format,
            };
            let options = &planner.edit.options;
            let options = object_edit::Options::default()
                .with_grow(options.grow)
                .with_drop_signature(options.drop_signature)
                .with_stay(planner.stay);
            let mut inputs = Sources::new(planner.images.readers, &planner.derived);
            let edited = if is_changed {
                object_edit::edit(source, window, of_sections, sections, options, &mut inputs)
            } else {
                Ok(Edited::new(copy_of(window)))
            };
            edited.and_then(|edited| {
                let new = &mut inputs;
                object_edit::edit_in_place(source, window, format, edited, fixed, options, new)
            })
        }
    };
    let edited = edited.map_err(|error| Problem::from(error).within(path))?;
    if edited.signature_dropped {
        planner.notes.push(EditNote::SignatureDropped);
    }
    if edited.zeroed > 0 {
        planner.notes.push(EditNote::Zeroed { bytes: edited.zeroed });
    }
    Ok(edited.parts)
}

/// Returns the containers that change in place, and what they become.
fn in_place(
    planner: &Planner<'_>,
    nodes: &[Node],
    path: &[PathStep],
    new: &NewContainers,
) -> Result<Vec<(Range<u64>, Output)>, Problem> {
    let sections = nodes.iter().filter(|node| planner.is_in_place(node));
    let mut changes = Vec::new();
    for container in sections.flat_map(|node| &node.children) {
        match new.get(&container.range.start) {
            Some(Some(new)) if !is_copy_of(new, &container.range) => {
                changes.push((container.range.clone(), new.clone()));
            }
            // One that loses all images keeps its header.
            Some(None) => {
                return Err(Problem::not_as_expected(path, "a container left that has to stay"));
            }
            Some(Some(_)) | None => {}
        }
    }
    Ok(changes)
}

/// Kind of a file that holds containers.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Host {
    /// None: they follow each other.
    Raw,
    Archive,
    Sections(Format),
    /// One that is not edited.
    Unsupported(&'static str),
}

impl Host {
    pub(super) fn of(source: &mut Source<'_>, window: &Range<u64>) -> Result<Self, Problem> {
        let head = source.peek(window, SNIFF_LEN)?;
        Ok(match FileFormat::sniff(&head) {
            FileFormat::Archive if head.starts_with(b"!<thin>") => {
                Host::Unsupported("members of thin archives")
            }
            FileFormat::Archive | FileFormat::Deb => Host::Archive,
            FileFormat::Elf { .. } | FileFormat::Cubin => match elf_type(&head) {
                Some(1) => Host::Sections(Format::ElfObject),
                Some(2 | 3) => Host::Sections(Format::LinkedElf),
                _ => Host::Unsupported("ELF files that are neither objects nor linked"),
            },
            FileFormat::Pe => Host::Sections(Format::Pe),
            FileFormat::Coff => Host::Sections(Format::Coff),
            FileFormat::MachO => Host::Unsupported("device code in Mach-O files"),
            FileFormat::Wasm => Host::Unsupported("device code in WebAssembly modules"),
            FileFormat::Bitcode => Host::Unsupported("device code in LLVM bitcode files"),
            _ => Host::Raw,
        })
    }
}

impl Host {
    /// Returns the name of a section's kind, if such a section is not edited in such a file.
    pub(super) fn uneditable(self, section: &str) -> Option<&'static str> {
        match self {
            Host::Unsupported(kind) => Some(kind),
            Host::Sections(Format::LinkedElf) if is_never_loaded(section) => None,
            Host::Sections(format) => object_edit::uneditable(format, section),
            Host::Raw | Host::Archive => None,
        }
    }
}

fn items(source: &mut Source<'_>, nodes: &[Node], new: &NewContainers) -> io::Result<Vec<Item>> {
    let mut items: Vec<Item> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let old = node.range.clone();
        let joined = match items.last() {
            Some(before) => sequence::follows(source, &before.old, &old)?,
            None => false,
        };
        let new = new.get(&old.start).cloned().unwrap_or_else(|| Some(copy_of(&old)));
        items.push(Item::new(old, new).with_joined(joined));
    }
    Ok(items)
}

fn section(
    planner: &mut Planner<'_>,
    source: &mut Source<'_>,
    node: &Node,
    path: &[PathStep],
    new: &NewContainers,
) -> Result<SectionEdit, Problem> {
    let change = if node.container.is_some() {
        // It is an image itself.
        let wishes = planner.wishes(node);
        if !wishes.added.is_empty() {
            let path: Vec<_> = path.iter().chain([&node.segment]).cloned().collect();
            return Err(Problem::refused(&path, "no image can be added"));
        }
        let (change, new) = match wishes.entries.first() {
            None | Some(Wish::Keep) => (Change::Kept, copy_of(&node.range)),
            Some(Wish::Remove) => (Change::Removed, Output::new()),
            Some(Wish::Replace(image)) => {
                let mut contents = Output::new();
                contents.push_input(Input::New(image.number), 0..image.size);
                (Change::Edited, contents)
            }
        };
        planner.record(node, change, new.size(), Some(new.size()));
        match change {
            Change::Removed => SectionChange::Removed,
            _ => SectionChange::Contents(new),
        }
    } else {
        let items = items(source, &node.children, new)?;
        let path: Vec<PathStep> = path.iter().chain([&node.segment]).cloned().collect();
        if planner.check_left(&items, &path)? {
            SectionChange::Items(items)
        } else {
            SectionChange::Removed
        }
    };
    Ok(SectionEdit::new(node.range.clone(), node.segment.name(), change))
}

impl Planner<'_> {
    /// Returns whether a sequence of containers keeps any, and fails if it does not and must.
    fn check_left(&self, items: &[Item], path: &[PathStep]) -> Result<bool, Problem> {
        let is_left = items.is_empty() || items.iter().any(|item| item.new.is_some());
        if is_left || self.edit.options.allow_empty {
            Ok(is_left)
        } else {
            Err(Problem::nothing_left(path))
        }
    }
}

/// Returns the members that change.
fn members(
    planner: &mut Planner<'_>,
    source: &mut Source<'_>,
    nodes: &[Node],
    path: &[PathStep],
    new: &NewContainers,
) -> Result<Vec<(Range<u64>, Output)>, Problem> {
    let mut members = Vec::new();
    for node in nodes {
        let is_here = matches!(node.location, Location::File(_) | Location::Decompressed(_));
        if node.kind() != ContainerKind::Member || !is_here {
            continue;
        }
        let path: Vec<PathStep> = path.iter().chain([&node.segment]).cloned().collect();
        let splices = file(planner, source, &node.range, &node.children, &path, new)?;
        if !is_copy_of(&splices, &node.range) {
            members.push((node.range.clone(), splices));
        }
    }
    Ok(members)
}
