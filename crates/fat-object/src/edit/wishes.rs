//! What is wished of one container.

/// A new image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NewImage {
    /// Which one.
    pub(super) number: usize,
    /// Bytes.
    pub(super) size: u64,
}

/// What is to become of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Keep,
    Remove,
    Replace(NewImage),
}

/// What is to become of the entries of a container.
#[derive(Clone, Debug, Default)]
pub(super) struct Wishes<'e> {
    /// In their order, all of them.
    pub(super) entries: Vec<Wish>,
    /// New ones behind them, by their bundle entry IDs.
    pub(super) added: Vec<(&'e str, NewImage)>,
}

impl Wishes<'_> {
    /// Whether everything is to stay as it is.
    pub(super) fn are_none(&self) -> bool {
        self.added.is_empty() && self.entries.iter().all(|wish| *wish == Wish::Keep)
    }

    pub(super) fn remove_any(&self) -> bool {
        self.entries.contains(&Wish::Remove)
    }
}
