//! Changes to the sections of an object.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use super::host::{SectionChange, SectionEdit};
use super::moves::Changed;
use crate::error::Error;
use crate::tables::relative;

/// A section of an object, as the walk knows it, too.
pub(super) struct WalkedSection<'o> {
    /// Its number, from 0.
    pub(super) index: usize,
    /// The range of its contents in the walked file.
    pub(super) range: Range<u64>,
    pub(super) name: &'o [u8],
}

/// Returns the edits with the indices of the sections that they are about. There may be many of both, and several
/// sections of one name in one place: they are taken in their order.
pub(super) fn numbered<'o>(
    window: &Range<u64>,
    edits: Vec<SectionEdit>,
    places: impl Iterator<Item = WalkedSection<'o>>,
) -> Result<Vec<(usize, SectionEdit)>, Error> {
    let place = |range: &Range<u64>| (range.start, range.end);
    let mut wanted: BTreeMap<(u64, u64), BTreeMap<Cow<'_, str>, VecDeque<usize>>> =
        edits.iter().map(|edit| (place(&edit.range), BTreeMap::new())).collect();
    for WalkedSection { index, range, name } in places {
        if let Some(sections) = wanted.get_mut(&place(&range)) {
            sections.entry(String::from_utf8_lossy(name)).or_default().push_back(index);
        }
    }
    let mut numbered = Vec::with_capacity(edits.len());
    for edit in edits {
        let (start, end) = place(&edit.range);
        let sections = wanted.get_mut(&(start, end));
        let indices = sections.and_then(|sections| sections.get_mut(edit.name.as_str()));
        let index = indices.and_then(VecDeque::pop_front).ok_or_else(|| {
            let inside = relative(window, &edit.range);
            Error::shared_bytes(inside.start, inside.end)
        })?;
        numbered.push((index, edit));
    }
    Ok(numbered)
}

/// By the indices of the sections.
pub(super) struct Changes {
    pub(super) removed: BTreeSet<usize>,
    pub(super) changed: BTreeMap<usize, Changed>,
}

impl Changes {
    /// Works out the new contents of sections that are [aligned](Changed::new) like this.
    pub(super) fn new(
        edits: Vec<(usize, SectionEdit)>,
        align: impl Fn(usize) -> u64,
    ) -> Result<Self, Error> {
        let mut changes = Changes { removed: BTreeSet::new(), changed: BTreeMap::new() };
        for (index, edit) in edits {
            match edit.change {
                SectionChange::Removed => {
                    changes.removed.insert(index);
                }
                change => {
                    let new = Changed::new(&edit.range, align(index), change)?;
                    changes.changed.extend(new.map(|new| (index, new)));
                }
            }
        }
        Ok(changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(range: Range<u64>, name: &str) -> SectionEdit {
        SectionEdit { range, name: name.to_owned(), change: SectionChange::Removed }
    }

    #[test]
    fn sections_of_one_place_are_taken_in_order() {
        let places = || {
            let all: [(Range<u64>, &[u8]); 6] = [
                (10..10, b"b"),
                (10..10, b"a"),
                (10..12, b"a"),
                (10..10, b"a"),
                (0..99, b""),
                (20..21, b"\xff"),
            ];
            (0..).zip(all).map(|(index, (range, name))| WalkedSection { index, range, name })
        };
        let find = |edits| {
            let found = numbered(&(0..99), edits, places());
            found.map(|found| found.into_iter().map(|(index, _)| index).collect::<Vec<_>>())
        };
        let edits = vec![edit(10..10, "a"), edit(20..21, "\u{fffd}"), edit(10..10, "a")];
        assert_eq!(find(edits).unwrap(), [1, 5, 3]);
        assert_eq!(find(vec![edit(10..10, "b"), edit(10..12, "a")]).unwrap(), [0, 2]);
        for absent in [edit(10..10, "c"), edit(10..11, "a"), edit(20..21, "a")] {
            let error = find(vec![absent]).unwrap_err();
            assert!(error.to_string().ends_with("share bytes with others"), "{error}");
        }
        assert!(find(vec![edit(10..12, "a"), edit(10..12, "a")]).is_err());
    }
}
