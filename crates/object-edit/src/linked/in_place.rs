//! Changes of linked files in which nothing moves: bytes become others or zeros where they are.
//!
//! Every other byte keeps its offset and its address, and so does the first byte of each range. A known pointer to another
//! byte of a range in an ELF file makes the range uneditable. Pointers that code computes are unknown, and so are checksums
//! of data around the range.

use std::ops::Range;

use byte_parts::Source;

use crate::error::{Error, ErrorKind};
use crate::linked::edit::Format;
use crate::linked::host::{Edited, HostContext, Options};
use crate::linked::{elf, pe};
use crate::output::{Input, NewInputs, Output, Part, is_copy_of};
use crate::patches::Patches;
use crate::tables::{relative, sized};

/// Returns for each of these ranges of a file whether [`edit_in_place`] can change it: it lies in one section of a linked file
/// whose bytes have no meaning for a loader, no relocation applies to it, and in an ELF file no relocation or symbol points to a
/// byte after its first. All are `false` in files of other formats, and
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
/// [`Refused`](ErrorKind::Refused) for a range that is not [editable](editable_in_place), that shares bytes with another, or that `edited` has
/// not kept,
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
    if ranges.is_empty() {
        return Ok(edited);
    }
    apart(window, &ranges, ranges.iter().cloned())?;
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
    let kept = edited.parts.iter().filter_map(|part| match part {
        Part::Input(Input::File, range) => Some(range),
        _ => None,
    });
    apart(window, &ranges, kept)?;
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
    let lost = || Error::self_check(0, "bytes that change in place are not in the new file");
    edited.parts = patches.apply(edited.parts).ok_or_else(lost)?;
    if format == Format::Pe {
        pe::set_checksum(source, new, window, &mut edited.parts)?;
    }
    Ok(edited)
}

/// Fails for a range that does not lie in one of these parts of the file alone.
fn apart(
    window: &Range<u64>,
    ranges: &[Range<u64>],
    parts: impl Iterator<Item = Range<u64>>,
) -> Result<(), Error> {
    let parts = FileParts::new(parts.map(|part| (part, ())));
    match ranges.iter().find(|range| parts.only(range).is_none()) {
        Some(range) => Err(refused(window, range)),
        None => Ok(()),
    }
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
    /// In the order of their starts, each with the last end up to here and its position in the list.
    ranges: Vec<(Range<u64>, u64, usize)>,
}

/// As many bytes as a loader writes for one relocation at most, except for a copy of a symbol.
const LARGEST_VALUE: u64 = 16;

impl Untouched {
    pub(super) fn new(addresses: impl Iterator<Item = Option<Range<u64>>>) -> Self {
        let mut ranges: Vec<_> = addresses
            .enumerate()
            .filter_map(|(index, addresses)| addresses.map(|addresses| (addresses, 0, index)))
            .collect();
        ranges.sort_by_key(|(range, ..)| range.start);
        let mut last = 0;
        for (range, end, _) in &mut ranges {
            last = last.max(range.end);
            *end = last;
        }
        Untouched { ranges }
    }

    /// Returns the positions of the ranges that a value at an address is written into.
    pub(super) fn hits(&self, address: u64) -> impl Iterator<Item = usize> {
        let written = sized(address, LARGEST_VALUE);
        self.around(written.end, written.start)
    }

    /// Returns the positions of the ranges that have some of these bytes.
    pub(super) fn written(&self, addresses: &Range<u64>) -> impl Iterator<Item = usize> {
        self.around(addresses.end, addresses.start)
    }

    /// Returns the positions of the ranges that have the byte at an address, but do not start there.
    pub(super) fn entered(&self, address: u64) -> impl Iterator<Item = usize> {
        self.around(address, address)
    }

    /// Returns the positions of the ranges that start before one address and end after another.
    fn around(&self, start: u64, end: u64) -> impl Iterator<Item = usize> {
        let before = self.ranges.partition_point(|(range, ..)| range.start < start);
        let before = self.ranges.iter().take(before).rev();
        let near = before.take_while(move |(_, last, _)| *last > end);
        near.filter(move |(range, ..)| range.end > end).map(|(.., index)| *index)
    }

    /// Returns the positions of all ranges.
    pub(super) fn all(&self) -> impl Iterator<Item = usize> {
        self.ranges.iter().map(|(.., index)| *index)
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
        let ranges = [Some(100..200), None, Some(300..304), Some(200..208), Some(208..220)];
        let untouched = Untouched::new(ranges.into_iter());
        let hits = [84, 85, 190, 200, 219, 220, 284, 285, 303, 304, u64::MAX]
            .map(|at| untouched.hits(at).collect::<Vec<_>>());
        let expected: [&[usize]; 11] =
            [&[], &[0], &[3, 0], &[4, 3], &[4], &[], &[], &[2], &[2], &[], &[]];
        assert_eq!(hits, expected);
        assert_eq!(untouched.written(&(0..250)).collect::<Vec<_>>(), [4, 3, 0]);
        let entered = [99, 100, 101, 199, 200, 201, 208, 219, 220]
            .map(|at| untouched.entered(at).collect::<Vec<_>>());
        let expected: [&[usize]; 9] = [&[], &[], &[0], &[0], &[], &[3], &[], &[4], &[]];
        assert_eq!(entered, expected);
        assert_eq!(untouched.all().collect::<Vec<_>>(), [0, 3, 4, 2]);
    }

    #[test]
    fn ranges_and_what_is_kept_are_apart() {
        let window = 100..200;
        let kept = || [100..150, 160..200].into_iter();
        apart(&window, &[110..120, 120..150, 160..161], kept()).unwrap();
        for (ranges, named) in
            [(vec![110..120, 149..151], "0x31..0x33"), (vec![150..155, 110..120], "0x32..0x37")]
        {
            let error = apart(&window, &ranges, kept()).unwrap_err();
            assert_eq!(error.to_string(), format!("bytes at {named} cannot change in place"));
        }
        for ranges in [[110..120, 110..120], [110..120, 119..130], [110..120, 112..114]] {
            assert!(apart(&window, &ranges, ranges.iter().cloned()).is_err());
        }
    }
}
