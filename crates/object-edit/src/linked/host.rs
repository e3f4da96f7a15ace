//! The questions to the editors of host files, and their answers.

use std::ops::Range;

use byte_parts::Source;

use crate::error::Error;
use crate::output::{self, Output};

/// The change of one section.
#[derive(Debug)]
#[non_exhaustive]
pub struct SectionEdit {
    /// The range of its contents in the file.
    pub range: Range<u64>,
    /// Its name, as a walk shows it: with U+FFFD for bytes that are not UTF-8.
    pub name: String,
    /// The change of its contents.
    pub change: SectionChange,
}

impl SectionEdit {
    /// Creates the change of a section at this range of the file.
    #[must_use]
    pub fn new(range: Range<u64>, name: impl Into<String>, change: SectionChange) -> Self {
        SectionEdit { range, name: name.into(), change }
    }

    /// Returns whether the edit changes anything.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        match &self.change {
            SectionChange::Items(items) => items.iter().any(Item::is_changed),
            SectionChange::Contents(new) => !output::is_copy_of(new, &self.range),
            SectionChange::Removed => true,
        }
    }
}

/// A change of the contents of a section.
#[derive(Debug)]
#[non_exhaustive]
pub enum SectionChange {
    /// It holds items, one after the other with zeros between them, that others may refer to. All of them are here, in
    /// order, changed or not; those without [`new`](Item::new) contents go.
    Items(Vec<Item>),
    /// Its contents are these.
    Contents(Output),
    /// It goes.
    Removed,
}

/// A range of a section that others may refer to.
#[derive(Debug)]
#[non_exhaustive]
pub struct Item {
    /// Its range in the file.
    pub old: Range<u64>,
    /// The new contents; `None` if it is removed.
    pub new: Option<Output>,
    /// `true` if it is laid out as one with the item directly before it, should nothing but its place tell where it is.
    pub joined: bool,
}

impl Item {
    /// Creates an item that is laid out by itself; without `new` contents it is removed.
    #[must_use]
    pub fn new(old: Range<u64>, new: Option<Output>) -> Self {
        Item { old, new, joined: false }
    }

    /// Sets whether it is laid out as one with the item directly before it. Default: `false`.
    #[must_use]
    pub fn with_joined(mut self, joined: bool) -> Self {
        self.joined = joined;
        self
    }

    /// Returns whether the edit changes anything.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.new.as_ref().is_none_or(|new| !output::is_copy_of(new, &self.old))
    }
}

/// A host file that has been edited.
#[derive(Debug)]
#[non_exhaustive]
pub struct Edited {
    /// All of the new file.
    pub parts: Output,
    /// The number of bytes that are not needed any more but could not leave the file: they are zeros now.
    pub zeroed: u64,
    /// True if the signature of the file was removed.
    pub signature_dropped: bool,
}

impl Edited {
    /// Creates a file with these contents, for [`edit_in_place`](crate::edit_in_place): none of its bytes are zeroed, and it keeps its
    /// signature.
    #[must_use]
    pub fn new(parts: Output) -> Self {
        Edited { parts, zeroed: 0, signature_dropped: false }
    }

    /// Edits an output as if it were a file already. New images cannot be read.
    pub(crate) fn again(
        old: &Output,
        source: &mut Source<'_>,
        edit: impl FnOnce(&mut Source<'_>, &Range<u64>) -> Result<Self, Error>,
    ) -> Result<Self, Error> {
        let mut edited = Edited::new(Output::new());
        let parts = output::edited(old, source, |source, window| {
            edited = edit(source, window)?;
            Ok(Some(std::mem::take(&mut edited.parts)))
        })?;
        Ok(Edited { parts, ..edited })
    }
}

/// The freedom of an edit.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    pub(crate) grow: bool,
    pub(crate) drop_signature: bool,
    pub(crate) stay: bool,
}

impl Options {
    /// Allows contents that are larger than their place in a linked file to get a new place at the end of the program's
    /// memory. Default: `false`.
    #[must_use]
    pub fn with_grow(mut self, grow: bool) -> Self {
        self.grow = grow;
        self
    }

    /// Removes a signature that the edit makes invalid. Otherwise signed files are refused. Default: `false`.
    #[must_use]
    pub fn with_drop_signature(mut self, drop_signature: bool) -> Self {
        self.drop_signature = drop_signature;
        self
    }

    /// Keeps items of linked files where they are as long as they fit there, although closing up would free more: so each
    /// can get its old contents back. Default: `false`.
    #[must_use]
    pub fn with_stay(mut self, stay: bool) -> Self {
        self.stay = stay;
        self
    }
}

/// The place of a host file, and what an edit of it may do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostContext<'a> {
    /// The range of the host file in the walked file: all of it, or a member of an archive.
    pub(crate) window: &'a Range<u64>,
    pub(crate) options: Options,
}
