//! What the editors of host files are told, and what they answer.

use std::ops::Range;

use super::output::{self, Output};
use super::{EditNote, EditOptions};

/// What becomes of one section (or of all of a file that has none).
#[derive(Debug)]
pub(crate) struct SectionEdit {
    /// Where its contents lie in the file.
    pub(crate) range: Range<u64>,
    pub(crate) name: String,
    pub(crate) change: SectionChange,
}

impl SectionEdit {
    pub(crate) fn is_changed(&self) -> bool {
        match &self.change {
            SectionChange::Containers(items) => items.iter().any(Item::is_changed),
            SectionChange::Contents(new) => !output::is_copy_of(new, &self.range),
            SectionChange::Removed => true,
        }
    }
}

/// How the contents of a section change.
#[derive(Debug)]
pub(crate) enum SectionChange {
    /// It holds containers, one after the other with zeros between them. All of them are here, in order, changed or
    /// not; those without a [`new`](Item::new) one go.
    Containers(Vec<Item>),
    /// Its contents are these.
    Contents(Output),
    /// It goes.
    Removed,
}

/// A container in a section.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// Where it lies in the file.
    pub(crate) old: Range<u64>,
    /// The new contents; `None` if it is removed, which only a wish for that can cause.
    pub(crate) new: Option<Output>,
}

impl Item {
    pub(crate) fn is_changed(&self) -> bool {
        self.new.as_ref().is_none_or(|new| !output::is_copy_of(new, &self.old))
    }
}

/// A host file that has been edited.
#[derive(Debug)]
pub(crate) struct Edited {
    pub(crate) splices: Output,
    pub(crate) notes: Vec<EditNote>,
}

/// What the editors need to know beside the sections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostContext<'a> {
    /// Where the host file lies in the walked file: all of it, or a member of an archive.
    pub(crate) window: &'a Range<u64>,
    pub(crate) options: &'a EditOptions,
    /// `true` if bundles of linked files stay where they are as long as they fit there, although closing up would free
    /// more: so each can get its old contents back.
    pub(crate) stay: bool,
}
