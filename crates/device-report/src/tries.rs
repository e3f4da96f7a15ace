//! Trials of edits.

use std::collections::BTreeMap;
use std::ops::Range;

use fat_object::ImageInfo;

/// The result of a trial of `offload thin --keep`, for a GPU of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tried {
    /// It would succeed, but the size of the new file is not known: it has to be compressed.
    #[default]
    Unknown,
    /// The file would get smaller by these bytes.
    Saves(u64),
    /// It would fail, for this reason.
    Refused(String),
}

/// Known results of `offload thin --keep` for a file. Default: none.
#[derive(Clone, Debug, Default)]
pub struct Tries {
    refused: Option<String>,
    by_gpu: BTreeMap<String, Tried>,
    /// Images that cannot be removed, and why.
    uneditable: Vec<(Range<usize>, String)>,
}

impl Tries {
    /// Returns the results for a file that no edit can change, for this reason.
    #[must_use]
    pub fn refused(why: &str) -> Self {
        Tries { refused: Some(why.to_owned()), ..Tries::default() }
    }

    /// Adds the result for a GPU, by the name that [`choices`](crate::choices) gives.
    #[must_use]
    pub fn with_gpu(mut self, name: String, tried: Tried) -> Self {
        self.by_gpu.insert(name, tried);
        self
    }

    /// Adds images that cannot be removed, by their [indices](ImageInfo::index), and the reason.
    #[must_use]
    pub fn with_uneditable(mut self, images: Range<usize>, why: &str) -> Self {
        self.uneditable.push((images, why.to_owned()));
        self
    }

    /// Returns the result for a GPU if these images are removed.
    pub(crate) fn of<'i>(
        &self,
        gpu: &str,
        removed: impl IntoIterator<Item = &'i ImageInfo>,
    ) -> Tried {
        let refused = || {
            let removed: Vec<_> = removed.into_iter().map(ImageInfo::index).collect();
            let is_removed = |(images, _): &&(Range<usize>, String)| {
                let first = removed.partition_point(|index| *index < images.start);
                removed.get(first).is_some_and(|index| images.contains(index))
            };
            self.uneditable.iter().find(is_removed).map(|(_, why)| why.clone())
        };
        match self.refused.clone().or_else(refused) {
            Some(why) => Tried::Refused(why),
            None => self.by_gpu.get(gpu).cloned().unwrap_or(Tried::Unknown),
        }
    }
}
