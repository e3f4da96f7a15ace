//! From new containers to the files that hold them: each goes to the editor of its format.

use std::ops::Range;

use super::archive::MemberEdit;
use super::contents::{NewContainers, Planner};
use super::host::{HostContext, Item, SectionChange, SectionEdit};
use super::output::{self, Input, Output};
use super::survey::Node;
use super::wishes::Wish;
use super::{Change, EditError, archive, coff, elf, object, pe, sequence};
use crate::image_format::{ImageFormat, SNIFF_LEN};
use crate::model::{ContainerKind, Location, Segment};
use crate::source::Source;

/// A file of the source, or a member: what it becomes.
pub(super) fn file(
    planner: &mut Planner<'_, '_>,
    source: &mut Source<'_>,
    window: &Range<u64>,
    nodes: &[Node],
    path: &[Segment],
    new: &NewContainers,
) -> Result<Output, EditError> {
    if !nodes.iter().any(|node| planner.touches(node)) {
        return Ok(output::copy_of(window));
    }
    let host = Host::of(source, window)?;
    let context = HostContext { window, options: &planner.edit.options, stay: planner.stay };
    let edited = match host {
        Host::Unsupported(kind) => {
            return Err(EditError::Unsupported { path: path.to_vec(), kind });
        }
        Host::Raw => {
            let items = items(nodes, new);
            planner.check_left(&items, path)?;
            return Ok(sequence::lay_out(source, window, items)?);
        }
        Host::Archive => {
            let members = members(planner, source, nodes, path, new)?;
            if members.is_empty() {
                return Ok(output::copy_of(window));
            }
            archive::edit(source, context, members)
        }
        _ => {
            // The others stay: they are no sections.
            let sections = nodes.iter().filter(|node| !node.segment.is_found_by_scan());
            let sections = sections.map(|node| section(planner, node, path, new));
            let sections = sections.collect::<Result<Vec<SectionEdit>, EditError>>()?;
            if !sections.iter().any(SectionEdit::is_changed) {
                return Ok(output::copy_of(window));
            }
            let unloaded =
                |edit: &SectionEdit| !edit.is_changed() || object::is_never_loaded(&edit.name);
            match host {
                Host::LinkedElf if sections.iter().all(unloaded) => {
                    object::edit(source, context, sections)
                }
                Host::LinkedElf => elf::edit(source, context, sections),
                Host::ElfObject => object::edit(source, context, sections),
                Host::Pe => pe::edit(source, planner.images.readers, context, sections),
                _ => coff::edit(source, context, sections),
            }
        }
    };
    let edited = edited.map_err(|error| error.within(path))?;
    planner.notes.extend(edited.notes);
    Ok(edited.splices)
}

/// What kind of file holds containers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    /// None: they follow each other.
    Raw,
    Archive,
    LinkedElf,
    ElfObject,
    Coff,
    Pe,
    /// One that is not edited.
    Unsupported(&'static str),
}

impl Host {
    pub(super) fn of(source: &mut Source<'_>, window: &Range<u64>) -> Result<Self, EditError> {
        let head = source.peek(window, SNIFF_LEN)?;
        Ok(match ImageFormat::sniff(&head) {
            ImageFormat::Archive if head.starts_with(b"!<thin>") => {
                Host::Unsupported("members of thin archives")
            }
            ImageFormat::Archive | ImageFormat::Deb => Host::Archive,
            ImageFormat::Elf { .. } | ImageFormat::Cubin => match elf_type(&head) {
                1 => Host::ElfObject,
                2 | 3 => Host::LinkedElf,
                _ => Host::Unsupported("ELF files that are neither objects nor linked"),
            },
            ImageFormat::Coff if head.starts_with(b"MZ") => Host::Pe,
            ImageFormat::Coff => Host::Coff,
            ImageFormat::MachO => Host::Unsupported("device code in Mach-O files"),
            ImageFormat::Wasm => Host::Unsupported("device code in WebAssembly modules"),
            ImageFormat::Bitcode => Host::Unsupported("device code in LLVM bitcode files"),
            _ => Host::Raw,
        })
    }
}

impl Host {
    /// Returns the name of a section's kind, if such a section is not edited in such a file.
    pub(super) fn uneditable(self, section: &str) -> Option<&'static str> {
        match self {
            Host::Unsupported(kind) => Some(kind),
            Host::LinkedElf if !object::is_never_loaded(section) => elf::uneditable(section),
            Host::Pe => pe::uneditable(section),
            _ => None,
        }
    }
}

/// `e_type`, in the byte order that byte 5 names.
fn elf_type(head: &[u8]) -> u16 {
    match (head.get(5), head.get(16..18)) {
        (Some(2), Some(&[high, low])) => u16::from_be_bytes([high, low]),
        (_, Some(&[low, high])) => u16::from_le_bytes([low, high]),
        _ => 0,
    }
}

fn items(nodes: &[Node], new: &NewContainers) -> Vec<Item> {
    let new = |node: &Node| new.get(&node.range.start).cloned();
    nodes
        .iter()
        .map(|node| Item {
            old: node.range.clone(),
            new: new(node).unwrap_or_else(|| Some(output::copy_of(&node.range))),
        })
        .collect()
}

fn section(
    planner: &mut Planner<'_, '_>,
    node: &Node,
    path: &[Segment],
    new: &NewContainers,
) -> Result<SectionEdit, EditError> {
    let change = if node.container.is_some() {
        // It is an image itself.
        let wishes = planner.wishes(node);
        if !wishes.added.is_empty() {
            let path = path.iter().chain([&node.segment]).cloned().collect();
            return Err(EditError::CannotAdd { path });
        }
        let (change, new) = match wishes.entries.first() {
            None | Some(Wish::Keep) => (Change::Kept, output::copy_of(&node.range)),
            Some(Wish::Remove) => (Change::Removed, Output::new()),
            Some(Wish::Replace(image)) => {
                let mut contents = Output::new();
                contents.push_input(Input::Image(image.number), 0..image.size);
                (Change::Edited, contents)
            }
        };
        planner.record(node, change, new.size(), Some(new.size()));
        match change {
            Change::Removed => SectionChange::Removed,
            _ => SectionChange::Contents(new),
        }
    } else {
        let items = items(&node.children, new);
        let path: Vec<Segment> = path.iter().chain([&node.segment]).cloned().collect();
        match planner.check_left(&items, &path)? {
            true => SectionChange::Containers(items),
            false => SectionChange::Removed,
        }
    };
    Ok(SectionEdit { range: node.range.clone(), name: node.segment.name().to_owned(), change })
}

impl Planner<'_, '_> {
    /// Whether a sequence of containers keeps any, as it has to if that is not allowed otherwise.
    fn check_left(&self, items: &[Item], path: &[Segment]) -> Result<bool, EditError> {
        let is_left = items.is_empty() || items.iter().any(|item| item.new.is_some());
        match is_left || self.edit.options.allow_empty {
            true => Ok(is_left),
            false => Err(EditError::NothingLeft { path: path.to_vec() }),
        }
    }
}

/// The members that change.
fn members(
    planner: &mut Planner<'_, '_>,
    source: &mut Source<'_>,
    nodes: &[Node],
    path: &[Segment],
    new: &NewContainers,
) -> Result<Vec<MemberEdit>, EditError> {
    let mut members = Vec::new();
    for node in nodes {
        let is_here = matches!(node.location, Location::File(_) | Location::Decompressed(_));
        if node.kind() != ContainerKind::Member || !is_here {
            continue;
        }
        let path: Vec<Segment> = path.iter().chain([&node.segment]).cloned().collect();
        let splices = file(planner, source, &node.range, &node.children, &path, new)?;
        if !output::is_copy_of(&splices, &node.range) {
            members.push(MemberEdit { range: node.range.clone(), new: splices });
        }
    }
    Ok(members)
}
