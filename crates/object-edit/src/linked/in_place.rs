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

/// The ranges of memory of a list, and whether each is left alone: no loader writes to it, and nothing points into it.
pub(super) struct Untouched {
    /// In the order of their starts, each with the last end up to here and its position in the list.
    ranges: Vec<(Range<u64>, u64, usize)>,
    /// One for each of the list.
    untouched: Vec<bool>,
}

/// As many bytes as a loader writes for one relocation at most, except for a copy of a symbol.
const LARGEST_VALUE: u64 = 16;

impl Untouched {
    /// Starts with all ranges. A range that is `None` is never left alone.
    pub(super) fn new(addresses: Vec<Option<Range<u64>>>) -> Self {
        let untouched = addresses.iter().map(Option::is_some).collect();
        let mut ranges: Vec<_> = addresses
            .into_iter()
            .enumerate()
            .filter_map(|(index, addresses)| addresses.map(|addresses| (addresses, 0, index)))
            .collect();
        ranges.sort_by_key(|(range, ..)| range.start);
        let mut last = 0;
        for (range, end, _) in &mut ranges {
            last = last.max(range.end);
            *end = last;
        }
        Untouched { ranges, untouched }
    }

    /// A loader writes a value at an address.
    pub(super) fn hit(&mut self, address: u64) {
        self.write(&sized(address, LARGEST_VALUE));
    }

    /// A loader writes these bytes.
    pub(super) fn write(&mut self, addresses: &Range<u64>) {
        self.clear(addresses.end, addresses.start);
    }

    /// Something points to an address: to the start of a range it may.
    pub(super) fn point(&mut self, address: u64) {
        self.clear(address, address);
    }

    /// Something may write or point anywhere.
    pub(super) fn clear_all(&mut self) {
        self.untouched.fill(false);
    }

    /// Clears the ranges that start before one address and end after another.
    fn clear(&mut self, start: u64, end: u64) {
        let Untouched { ranges, untouched } = self;
        let before = ranges.partition_point(|(range, ..)| range.start < start);
        let before = ranges.iter().take(before).rev();
        for (range, _, index) in before.take_while(|(_, last, _)| *last > end) {
            if range.end > end
                && let Some(untouched) = untouched.get_mut(*index)
            {
                *untouched = false;
            }
        }
    }

    /// Returns whether some range is left alone.
    pub(super) fn are_some(&self) -> bool {
        self.untouched.contains(&true)
    }

    /// Returns for each range of the list whether it is left alone.
    pub(super) fn finish(self) -> Vec<bool> {
        self.untouched
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
        // The positions that are cleared, from the last range on.
        let cleared = |reference: &dyn Fn(&mut Untouched)| -> Vec<usize> {
            let mut untouched = Untouched::new(ranges.to_vec());
            reference(&mut untouched);
            let left = ranges.iter().zip(untouched.finish()).enumerate();
            let mut cleared: Vec<_> = left
                .filter(|(_, (range, is_untouched))| range.is_some() && !is_untouched)
                .filter_map(|(index, (range, _))| Some((range.clone()?.start, index)))
                .collect();
            cleared.sort_unstable();
            cleared.into_iter().rev().map(|(_, index)| index).collect()
        };
        let hits = [84, 85, 190, 200, 219, 220, 284, 285, 303, 304, u64::MAX]
            .map(|at| cleared(&|untouched| untouched.hit(at)));
        let expected: [&[usize]; 11] =
            [&[], &[0], &[3, 0], &[4, 3], &[4], &[], &[], &[2], &[2], &[], &[]];
        assert_eq!(hits, expected);
        assert_eq!(cleared(&|untouched| untouched.write(&(0..250))), [4, 3, 0]);
        let entered = [99, 100, 101, 199, 200, 201, 208, 219, 220]
            .map(|at| cleared(&|untouched| untouched.point(at)));
        let expected: [&[usize]; 9] = [&[], &[], &[0], &[0], &[], &[3], &[], &[4], &[]];
        assert_eq!(entered, expected);
        assert_eq!(cleared(&Untouched::clear_all), [2, 4, 3, 0]);
        let untouched = Untouched::new(ranges.to_vec());
        assert!(untouched.are_some());
        assert_eq!(untouched.finish(), [true, false, true, true, true]);
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
