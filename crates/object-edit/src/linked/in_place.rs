//! Changes of linked files in which nothing moves: bytes become others or zeros where they are.
//!
//! Nothing has to be known about what refers to these bytes: every other byte keeps its offset and its address, and so does
//! the first of these.

use std::ops::Range;

use byte_parts::Source;

use crate::error::{Error, ErrorKind};
use crate::linked::edit::Format;
use crate::linked::host::{Edited, HostContext, Options};
use crate::linked::{elf, pe};
use crate::output::{NewInputs, Output, is_copy_of};
use crate::patches::Patches;
use crate::tables::relative;

/// Returns for each of these ranges of a file whether [`edit_in_place`] can change it: it lies in one section of a linked file
/// whose bytes have no meaning for a loader, and no relocation applies to it. All are `false` in files of other formats, and
/// in files whose headers cannot be read.
///
/// # Errors
///
/// [`Read`](ErrorKind::Read).
pub fn editable_in_place(
    source: &mut Source<'_>,
    window: &Range<u64>,
    format: Format,
    ranges: &[Range<u64>],
) -> Result<Vec<bool>, Error> {
    let editable = match format {
        Format::LinkedElf => elf::editable_in_place(source, window, ranges),
        Format::Pe => pe::editable_in_place(source, window, ranges),
        Format::ElfObject | Format::Coff => return Ok(vec![false; ranges.len()]),
    };
    match editable {
        Err(error) if error.kind() != ErrorKind::Read => Ok(vec![false; ranges.len()]),
        editable => editable,
    }
}

/// Puts other bytes into ranges of the file in the window, which may be [edited](crate::edit) already: zeros follow them up to the
/// end of each range. Nothing moves. The ranges are of the file before any edit.
///
/// # Errors
///
/// [`Refused`](ErrorKind::Refused) for a range that is not [editable](editable_in_place) or that `edited` has not kept,
/// [`NoRoom`](ErrorKind::NoRoom) for bytes that are longer than their range, [`Signed`](ErrorKind::Signed), and
/// [`Read`](ErrorKind::Read).
pub fn edit_in_place(
    source: &mut Source<'_>,
    window: &Range<u64>,
    format: Format,
    edited: Edited,
    changes: Vec<(Range<u64>, Output)>,
    options: Options,
    new: &mut dyn NewInputs,
) -> Result<Edited, Error> {
    let ranges: Vec<_> = changes.iter().map(|(range, _)| range.clone()).collect();
    let Some(first) = ranges.first() else { return Ok(edited) };
    let editable = editable_in_place(source, window, format, &ranges)?;
    if let Some((range, _)) = ranges.iter().zip(editable).find(|(_, editable)| !editable) {
        return Err(refused(window, range));
    }
    let mut edited = match format {
        Format::Pe if is_copy_of(&edited.parts, window) => {
            pe::unsigned(source, HostContext { window, options })?
        }
        _ => edited,
    };
    let mut patches = Vec::with_capacity(changes.len());
    for (range, mut contents) in changes {
        let room = range.end - range.start;
        let free = room
            .checked_sub(contents.size())
            .ok_or_else(|| Error::no_room(contents.size(), room))?;
        contents.push_zeros(free);
        edited.zeroed += free;
        patches.push((range.start, contents));
    }
    let patches: Patches<Output> = patches.into_iter().collect();
    edited.parts = patches.apply(edited.parts).ok_or_else(|| refused(window, first))?;
    if format == Format::Pe {
        pe::set_checksum(source, new, window, &mut edited.parts)?;
    }
    Ok(edited)
}

fn refused(window: &Range<u64>, range: &Range<u64>) -> Error {
    let Range { start, end } = relative(window, range);
    let message = format!("bytes at {start:#x}..{end:#x} cannot change in place");
    Error::new(ErrorKind::Refused, message)
}

/// The parts of a file, in its order, to find the only one that has some bytes.
pub(super) struct FileParts<T> {
    /// With the end of the part before it that ends last.
    parts: Vec<(Range<u64>, u64, T)>,
}

impl<T> FileParts<T> {
    pub(super) fn new(parts: impl IntoIterator<Item = (Range<u64>, T)>) -> Self {
        let mut parts: Vec<_> = parts.into_iter().map(|(range, part)| (range, 0, part)).collect();
        parts.retain(|(range, ..)| !range.is_empty());
        parts.sort_by_key(|(range, ..)| range.start);
        let mut last = 0;
        for (range, before, _) in &mut parts {
            *before = last;
            last = last.max(range.end);
        }
        FileParts { parts }
    }

    /// Returns the part that has all bytes of a range, and its place, if no other part has one of them.
    pub(super) fn only(&self, range: &Range<u64>) -> Option<(&Range<u64>, &T)> {
        let index =
            self.parts.partition_point(|(part, ..)| part.start < range.end).checked_sub(1)?;
        let (part, before, found) = self.parts.get(index)?;
        let is_inside = part.start <= range.start && range.end <= part.end;
        (is_inside && *before <= range.start && !range.is_empty()).then_some((part, found))
    }
}

/// Ranges of memory that no loader may write to, by their positions in a list.
pub(super) struct Untouched {
    /// In the order of their starts, with their positions in the list.
    ranges: Vec<(Range<u64>, usize)>,
}

/// As many bytes as a loader writes for one relocation at most.
const LARGEST_VALUE: u64 = 16;

impl Untouched {
    pub(super) fn new(addresses: impl Iterator<Item = Option<Range<u64>>>) -> Self {
        let mut ranges: Vec<_> = addresses
            .enumerate()
            .filter_map(|(index, addresses)| addresses.map(|addresses| (addresses, index)))
            .collect();
        ranges.sort_by_key(|(range, _)| range.start);
        Untouched { ranges }
    }

    /// Returns the position of the range that a value at an address is written into.
    pub(super) fn hit(&self, address: u64) -> Option<usize> {
        // No section lies so near to the last address.
        let end = address.checked_add(LARGEST_VALUE)?;
        let index = self.ranges.partition_point(|(range, _)| range.start < end).checked_sub(1)?;
        self.ranges.get(index).filter(|(range, _)| range.end > address).map(|(_, index)| *index)
    }

    /// Returns the positions of all ranges.
    pub(super) fn all(&self) -> impl Iterator<Item = usize> {
        self.ranges.iter().map(|(_, index)| *index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_part_may_have_the_bytes() {
        let parts = FileParts::new([(10..20, 'a'), (20..30, 'b'), (25..40, 'c'), (50..50, 'd')]);
        let only = |range| parts.only(&range).map(|(_, part)| *part);
        assert_eq!(only(10..20), Some('a'));
        assert_eq!(only(12..13), Some('a'));
        assert_eq!(only(20..25), Some('b'));
        assert_eq!(only(30..40), Some('c'));
        for range in [9..12, 19..21, 24..26, 26..28, 29..31, 39..41, 50..50, 12..12, 60..61] {
            assert_eq!(only(range.clone()), None, "{range:?}");
        }
        let around = FileParts::new([(0..100, 'a'), (10..20, 'b'), (30..40, 'c')]);
        for range in [12..14, 32..34, 50..51, 22..24] {
            assert!(around.only(&range).is_none(), "{range:?}");
        }
    }

    #[test]
    fn values_that_reach_into_a_range_are_seen() {
        let ranges = [Some(100..200), None, Some(300..304)];
        let untouched = Untouched::new(ranges.into_iter());
        let hits = [84, 85, 199, 200, 284, 285, 303, 304].map(|at| untouched.hit(at));
        assert_eq!(hits, [None, Some(0), Some(0), None, None, Some(2), Some(2), None]);
        assert_eq!(untouched.all().collect::<Vec<_>>(), [0, 2]);
    }
}
