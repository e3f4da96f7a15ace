//! Placement of bundles, and of sections that move along, in memory, and the pages that become unused.

use std::collections::BTreeMap;
use std::ops::Range;

use super::file::{File, down, up};
use super::room::{Room, Zone};
use super::slot::Slot;
use super::validate::MOST_SEGMENTS;
use crate::error::{Error, ErrorKind};
use crate::pod::LE;
use crate::tables::sized;

pub(super) const PAGE: u64 = 4096;

/// A bundle.
#[derive(Clone, Debug)]
pub(super) struct Bundle {
    /// Its addresses.
    pub(super) old: Range<u64>,
    /// Bytes of what takes its place.
    pub(super) size: u64,
    /// `true` if it has to stay where it is.
    pub(super) pinned: bool,
}

/// Starts of bundles that all stay where they are; `None` if one is too large for that.
pub(super) fn stay(bundles: &[Bundle], end: u64) -> Option<Vec<u64>> {
    let pinned: Vec<Bundle> =
        bundles.iter().map(|bundle| Bundle { pinned: true, ..bundle.clone() }).collect();
    pack(&pinned, pinned.first()?.old.start, end, 1)
}

/// Returns the starts of bundles, each as close to the end of the previous one as `align` permits; `None` if that is not
/// close enough.
pub(super) fn pack(bundles: &[Bundle], start: u64, end: u64, align: u64) -> Option<Vec<u64>> {
    let mut starts = Vec::new();
    let mut at = start;
    for (n, bundle) in bundles.iter().enumerate() {
        let free = if n == 0 { start } else { up(at, align) };
        let place = if bundle.pinned { bundle.old.start } else { free };
        if place < at {
            return None;
        }
        at = place.checked_add(bundle.size).filter(|&at| at <= end)?;
        starts.push(place);
    }
    Some(starts)
}

/// The input of the layout.
pub(super) struct Task<'a> {
    pub(super) file: &'a File,
    pub(super) slot: &'a Slot,
    pub(super) room: &'a Room,
    pub(super) bundles: &'a [Bundle],
    /// New addresses of the bundles.
    pub(super) starts: Vec<u64>,
    /// `true` if these are in a new segment.
    pub(super) grown: bool,
}

/// The new places in memory. Addresses.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) starts: Vec<u64>,
    /// The ranges to remove from the middle of the segment, in order.
    pub(super) holes: Vec<Range<u64>>,
    /// The new end of the segment.
    pub(super) end: u64,
    /// The places of the sections after the program headers.
    pub(super) zone: Zone,
    /// Sections that move into the slot, and where to.
    pub(super) far: Vec<(usize, u64)>,
    /// Segments are cut at multiples of this.
    pub(super) align: u64,
    /// `true` if that is less than the file's segments were aligned to.
    pub(super) lowered: bool,
    /// Alignment of segments before an earlier edit lowered it, if it is to be restored.
    pub(super) raised: Option<u64>,
    /// Bytes of unused pages that remain in the file.
    pub(super) zeroed: u64,
    /// The end of the new segment that begins with the first bundle.
    pub(super) grown: Option<u64>,
    /// Sections that move, and where to.
    pub(super) moved: BTreeMap<usize, u64>,
}

impl Layout {
    /// Returns the bytes of memory that leave the file.
    pub(super) fn freed(&self, slot: &Slot) -> u64 {
        let holes: u64 = self.holes.iter().map(|hole| hole.end - hole.start).sum();
        // The segment may also become longer.
        holes + slot.segment().end.saturating_sub(self.end)
    }
}

impl Task<'_> {
    /// Returns the layout with the most and largest holes that there are program headers for.
    pub(super) fn lay_out(&self, align: u64, lowered: bool) -> Result<Layout, Error> {
        let mut extents: Vec<Range<u64>> = Vec::new();
        if self.grown {
            extents.push(self.slot.start..self.slot.start);
        } else {
            let ends = self.starts.iter().zip(self.bundles);
            extents.extend(ends.map(|(&at, bundle)| sized(at, bundle.size)));
        }
        let most = self.holes(&extents, align).len().min(MOST_SEGMENTS);
        let mut best = self.attempt(&extents, most, align);
        // Fewer holes need no more room: search for the largest number that fits.
        let (mut fits, mut too_many) = (0, if best.is_some() { 0 } else { most });
        while fits < too_many {
            let middle = fits.midpoint(too_many);
            match self.attempt(&extents, middle, align) {
                Some(layout) => (best, fits) = (Some(layout), middle + 1),
                None => too_many = middle,
            }
        }
        let layout = best.ok_or_else(|| self.no_room(&extents))?;
        Ok(Layout { lowered, ..layout })
    }

    fn no_room(&self, extents: &[Range<u64>]) -> Error {
        let headers = self.room.headers + u64::from(self.grown);
        if self.room.plan(self.file, headers).is_none() {
            return Error::new(ErrorKind::Limit, "no room for another program header");
        }
        let far = self.slot.evicted.iter().map(|&index| self.section_size(index));
        let needed = extents.iter().map(|extent| extent.end - extent.start).chain(far).sum();
        Error::no_room(needed, self.slot.available(PAGE))
    }

    fn section_size(&self, index: usize) -> u64 {
        self.file.sections.get(index).map_or(0, |section| section.sh_size.get(LE))
    }

    /// Returns the whole pages between and after parts of the slot.
    fn holes(&self, extents: &[Range<u64>], align: u64) -> Vec<Range<u64>> {
        let next = extents.iter().skip(1).map(|extent| extent.start);
        let end = self.slot.content_after.then(|| self.slot.end(align));
        let ends = extents.iter().map(|extent| extent.end);
        let gaps = ends.zip(next.chain(end)).map(|(from, to)| up(from, align)..down(to, align));
        gaps.filter(|gap| gap.start < gap.end).collect()
    }

    /// Returns the layout with up to `most` holes.
    fn attempt(&self, extents: &[Range<u64>], most: usize, align: u64) -> Option<Layout> {
        let segments = self.room.headers.checked_add(most as u64)?;
        let segments = segments.checked_add(u64::from(self.grown))?;
        let zone = self.room.plan(self.file, segments)?;
        let mut extents = extents.to_vec();
        let mut grown = None;
        let mut far = Vec::new();
        if self.grown {
            let last = self.starts.last().zip(self.bundles.last());
            let mut end = last.map(|(&at, bundle)| at + bundle.size)?;
            far = self.place(&zone.far, &mut end, u64::MAX >> 1)?;
            grown = Some(end);
        } else if !zone.far.is_empty() {
            let (n, limit) = self.host(&extents, align)?;
            far = self.place(&zone.far, &mut extents.get_mut(n)?.end, limit)?;
        }
        let mut holes = self.holes(&extents, align);
        if holes.len() < most {
            return None;
        }
        let bytes = |holes: &[Range<u64>]| -> u64 { holes.iter().map(|h| h.end - h.start).sum() };
        let idle = bytes(&holes);
        holes.sort_by_key(|hole| std::cmp::Reverse(hole.end - hole.start));
        holes.truncate(most);
        let zeroed = idle - bytes(&holes);
        holes.sort_by_key(|hole| hole.start);
        let end = if self.slot.content_after {
            self.slot.segment().end
        } else {
            self.end(extents.last()?.end)
        };
        let mut moved = BTreeMap::new();
        let near = zone.near.iter();
        let near = near.map(|&(index, at)| Some((index, self.room.base.checked_add(at)?)));
        for place in near.chain(far.iter().copied().map(Some)) {
            let (index, address) = place?;
            if self.file.sections.get(index).is_some_and(|old| old.sh_addr.get(LE) != address) {
                moved.insert(index, address);
            }
        }
        let starts = self.starts.clone();
        let (lowered, raised) = (false, None);
        Some(Layout { starts, holes, end, zone, far, align, lowered, raised, zeroed, grown, moved })
    }

    /// Returns the end of a segment, given the end of its last content.
    fn end(&self, content: u64) -> u64 {
        let kept = self.bundles.last().is_some_and(|bundle| bundle.old.end == content);
        if kept && !self.grown { self.slot.segment().end } else { content }
    }

    /// Returns the part of the slot after which evicted sections go, and the limit of their end.
    fn host(&self, extents: &[Range<u64>], align: u64) -> Option<(usize, u64)> {
        let last = extents.len().checked_sub(1)?;
        let end = self.slot.end(align);
        if !self.slot.content_after {
            return Some((last, end));
        }
        let next = extents.iter().skip(1).map(|extent| extent.start).chain([end]);
        let rooms = extents.iter().zip(next).enumerate();
        // The first of the largest. The last one may end on the page that is kept.
        rooms
            .max_by_key(|(n, (extent, next))| {
                (next.saturating_sub(extent.end), std::cmp::Reverse(*n))
            })
            .map(|(n, (_, next))| (n, next))
    }

    /// Returns places for sections one after the other.
    fn place(&self, sections: &[usize], at: &mut u64, limit: u64) -> Option<Vec<(usize, u64)>> {
        let mut places = Vec::new();
        for &index in sections {
            let section = self.file.sections.get(index)?;
            let place = up(*at, section.sh_addralign.get(LE).max(8));
            *at = place.checked_add(section.sh_size.get(LE)).filter(|&end| end <= limit)?;
            places.push((index, place));
        }
        Some(places)
    }
}
