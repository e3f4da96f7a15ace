//! Ranges of a file.

use std::collections::BTreeMap;
use std::ops::Range;

/// Ranges that do not overlap.
#[derive(Default)]
pub(crate) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds a range; false if it shares bytes with one added before.
    pub(crate) fn insert(&mut self, range: &Range<u64>) -> bool {
        if range.is_empty() {
            return true;
        }
        let before = self.0.range(..range.end).next_back();
        if before.is_some_and(|(_, &end)| end > range.start) {
            return false;
        }
        self.0.insert(range.start, range.end);
        true
    }

    /// Lets the range that starts here end earlier.
    pub(crate) fn cut(&mut self, start: u64, end: u64) {
        if let Some(old) = self.0.get_mut(&start) {
            *old = end.clamp(start, *old);
        }
    }

    /// Leaves of the range that starts here only these parts, which are in order. They may overlap and exceed the range.
    pub(crate) fn narrow(&mut self, start: u64, parts: &[Range<u64>]) {
        let Some(end) = self.0.remove(&start) else { return };
        let mut at = start;
        for part in parts {
            let first = part.start.max(at);
            at = part.end.min(end).max(first);
            self.insert(&(first..at));
        }
    }

    /// Returns the ranges between, up to `len`.
    pub(crate) fn gaps(&self, len: u64) -> impl Iterator<Item = Range<u64>> {
        let ends = std::iter::once(0).chain(self.0.values().copied());
        let starts = self.0.keys().copied().chain([len]);
        ends.zip(starts).map(|(end, start)| end..start).filter(|gap| !gap.is_empty())
    }
}
