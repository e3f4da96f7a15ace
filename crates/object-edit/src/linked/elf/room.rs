//! Room for program headers: the sections directly after their table move, including to places that an earlier edit
//! left.

use std::ops::Range;

use object::elf::{ET_EXEC, PT_GNU_PROPERTY, PT_NOTE, SHT_NOTE};

use super::dynamic::Dynamic;
use super::file::{
    File, file_range, has_bytes, is_allocated, segment_addresses, segment_file_range, up,
};
use super::movable::{Movable, movable};
use super::slot::Slot;
use super::validate::MOST_SEGMENTS;
use crate::pod::LE;

/// The start of the table of the program headers: directly after the ELF header. Others look for it nowhere else.
pub(super) const TABLE: u64 = 64;
pub(super) const HEADER: u64 = 56;
/// Programs that read the build ID of a file without mapping it read its first page.
const FIRST_PAGE: u64 = 4096;

/// Sections that stay together.
#[derive(Debug)]
struct Unit {
    /// Their indices, by offset.
    sections: Vec<usize>,
    /// The place of the first section, now or before an earlier edit: an offset, and an address of the segment with
    /// the headers.
    place: u64,
    size: u64,
    align: u64,
    /// `true` if it has to stay after the table.
    near: bool,
}

impl Unit {
    /// Returns the end of its place, which is in the file.
    fn end(&self) -> u64 {
        self.place + self.size
    }

    /// Returns the next place for it with the same alignment, which may be 2^63; `None` if it does not fit there.
    fn fit(&self, at: u64) -> Option<Range<u64>> {
        let start = at.checked_add(self.place.wrapping_sub(at) & (self.align - 1))?;
        Some(start..start.checked_add(self.size)?)
    }

    /// Returns the place to which it moves; `None` if there is none, or it has to stay on the first page.
    fn moved(&self, at: u64) -> Option<Range<u64>> {
        let place = self.fit(at)?;
        let leaves_page = place.end > FIRST_PAGE.max(self.end()) && self.end() <= FIRST_PAGE;
        (!self.near || !leaves_page).then_some(place)
    }
}

/// The contents between the table of the program headers and the first content that cannot move.
pub(super) struct Room {
    /// Program headers of the file as its linker made it: without headers that pieces of the slot took.
    pub(super) headers: u64,
    /// The units that may move, by place.
    units: Vec<Unit>,
    /// Evicted sections that no longer fit after the table, by index.
    homeless: Vec<usize>,
    /// Sections that an edit of another slot moved, by index.
    elsewhere: Vec<usize>,
    /// The start of the first content that cannot move.
    barrier: u64,
    /// `true` if the table lies where it is looked for, in memory.
    usable: bool,
    /// The address of the file's first byte.
    pub(super) base: u64,
}

/// For the first units after a table, as many as must move: the new place; `None` for one that leaves.
type Moves = Vec<Option<u64>>;

/// The places of the sections after a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Zone {
    /// Sections and their offsets, also sections that do not move.
    pub(super) near: Vec<(usize, u64)>,
    /// Sections that have to go elsewhere, by index.
    pub(super) far: Vec<usize>,
}

impl Room {
    pub(super) fn find(file: &File, dynamic: &Dynamic, slot: &Slot) -> Self {
        let count = u64::from(file.header.e_phnum.get(LE));
        let headers = count + 1 - slot.pieces.len() as u64;
        let first =
            file.loads().find(|load| load.p_offset.get(LE) == 0 && load.p_filesz.get(LE) > TABLE);
        let usable = file.header.e_phoff.get(LE) == TABLE && first.is_some();
        let base = first.map_or(0, |load| load.p_vaddr.get(LE));
        let (units, homeless, elsewhere) = (Vec::new(), Vec::new(), Vec::new());
        let mut room = Room { headers, units, homeless, elsewhere, barrier: 0, usable, base };
        let Some(first) = first.filter(|_| usable) else {
            room.homeless.clone_from(&slot.evicted);
            return room;
        };
        let in_place = |index: usize| {
            let section = file.sections.get(index)?;
            let address = section.sh_addr.get(LE);
            let near = segment_addresses(first).contains(&address)
                && address - base == section.sh_offset.get(LE);
            near.then(|| movable(file, dynamic, section)).flatten()
        };
        let zone = |index: &usize| in_place(*index).is_some() && !slot.evicted.contains(index);
        room.barrier = barrier(file, slot, &zone);
        let barrier = room.barrier;
        let mut sections: Vec<usize> = (0..file.sections.len()).filter(zone).collect();
        sections.retain(|&index| offset(file, index) < barrier);
        sections.sort_by_key(|&index| (offset(file, index), index));
        room.units = self::units(file, &sections, &|index| in_place(index) == Some(Movable::Near));
        // Sections that share bytes do not move.
        let overlap = room.units.iter().zip(room.units.iter().skip(1));
        if let Some(n) = overlap.into_iter().position(|(a, b)| a.end() > b.place) {
            room.barrier = room.units.get(n).map_or(0, |unit| unit.place);
            room.units.truncate(n);
        }
        // An edit of another slot moved these.
        let is_elsewhere = |index: &usize| {
            let section = file.sections.get(*index);
            let is_movable = section.and_then(|it| movable(file, dynamic, it)).is_some();
            let is_here = room.units.iter().any(|unit| unit.sections.contains(index));
            is_movable && !is_here && !slot.evicted.contains(index)
        };
        let elsewhere = (0..file.sections.len()).filter(is_elsewhere).collect();
        room.elsewhere = elsewhere;
        room.restore(file, &slot.evicted);
        room
    }

    /// Returns the offset of the end of a table of `count` headers.
    fn table_end(count: u64) -> u64 {
        TABLE + HEADER * count
    }

    /// Returns evicted sections, and those before them, to the places after the table that a linker gave them.
    fn restore(&mut self, file: &File, evicted: &[usize]) {
        let Some(&last) = evicted.iter().max() else { return };
        let mut back: Vec<Unit> = (evicted.iter())
            .filter_map(|&index| unit(file, vec![index], false))
            .map(|unit| Unit { place: 0, ..unit })
            .collect();
        let (moved, mut units): (Vec<Unit>, Vec<Unit>) = std::mem::take(&mut self.units)
            .into_iter()
            .partition(|unit| unit.sections.iter().all(|&index| index < last));
        let places: Vec<u64> = moved.iter().map(|unit| unit.place).collect();
        back.extend(moved);
        back.sort_by_key(|unit| unit.sections.first().copied());
        let next = units.iter().map(|unit| unit.place).min().unwrap_or(self.barrier);
        let are_all_here = self.elsewhere.iter().all(|&index| index > last);
        let end = back.iter_mut().try_fold(Room::table_end(self.headers), |at, unit| {
            let place = unit.fit(at)?;
            unit.place = place.start;
            Some(place.end)
        });
        if are_all_here && end.is_some_and(|end| end <= next) {
            units.extend(back);
        } else {
            // Another table fills the place: they stay where they are.
            self.homeless = evicted.to_vec();
            let moved = back
                .into_iter()
                .filter(|unit| unit.sections.first().is_none_or(|index| !evicted.contains(index)));
            let moved = moved.zip(places).map(|(unit, place)| Unit { place, ..unit });
            units.extend(moved);
        }
        units.sort_by_key(|unit| (unit.place, unit.sections.first().copied()));
        self.units = units;
    }

    /// Returns the places of the sections for a table of `count` headers; `None` if it has no place.
    pub(super) fn plan(&self, file: &File, count: u64) -> Option<Zone> {
        let table_end = Room::table_end(count);
        if !self.usable {
            let fits = count <= u64::from(file.header.e_phnum.get(LE));
            return fits.then(|| Zone { near: Vec::new(), far: self.homeless.clone() });
        }
        if count > MOST_SEGMENTS as u64 {
            return None;
        }
        let mut far = self.homeless.clone();
        let is_fixed = file.header.e_type.get(LE) == ET_EXEC;
        let smallest = if is_fixed { self.smallest(table_end) } else { None };
        let moves = smallest.or_else(|| self.all(table_end))?;
        let mut near = Vec::new();
        for (n, unit) in self.units.iter().enumerate() {
            match moves.get(n) {
                Some(None) => far.extend(&unit.sections),
                Some(&Some(place)) => near.extend(unit.places(file, place)),
                None => near.extend(unit.places(file, unit.place)),
            }
        }
        far.sort_unstable();
        Some(Zone { near, far })
    }

    /// Returns the moves with which one unit leaves, the smallest before whose successor those before it fit: units that lie as
    /// [`restore`](Self::restore) puts them back. Into the gap that a larger one leaves, patchelf before 0.19 moves the dynamic
    /// section of a program at a fixed address, and nothing can write to it there.
    fn smallest(&self, table_end: u64) -> Option<Moves> {
        let indices = self.units.iter().flat_map(|unit| &unit.sections);
        if !self.homeless.is_empty() || !indices.is_sorted() {
            return None;
        }
        let mut best: Option<(u64, usize)> = None;
        let mut moves = Moves::new();
        let (mut end, mut end_before) = (table_end, Room::table_end(self.headers));
        for (n, unit) in self.units.iter().enumerate() {
            let before = unit.fit(end_before).filter(|before| before.start == unit.place);
            let Some(before) = before.filter(|_| end > unit.place) else { break };
            // An edit of another slot may have left a gap after it.
            let after = self.units.get(n + 1);
            let last = unit.sections.last().copied();
            let first = after.and_then(|after| after.sections.first().copied());
            let is_between = |index: &&usize| last < Some(**index) && Some(**index) < first;
            let has_gap = self.elsewhere.iter().any(|index| is_between(&index));
            let next = after.filter(|_| has_gap).map_or(unit.end(), |after| after.place);
            let fits = !unit.near && end <= next;
            if fits && best.is_none_or(|(size, _)| unit.size < size) {
                best = Some((unit.size, moves.len()));
            }
            let Some(place) = unit.moved(end) else { break };
            moves.push(Some(place.start));
            (end, end_before) = (place.end, before.end);
        }
        let (_, n) = best?;
        moves.truncate(n);
        moves.push(None);
        Some(moves)
    }

    /// Returns the moves with which all units leave that are in the way and may; `None` if the others have no place.
    fn all(&self, table_end: u64) -> Option<Moves> {
        let mut moves = Moves::new();
        let mut at = table_end;
        // Units are in the way of the table, or of one that goes a little further.
        loop {
            let unit = self.units.get(moves.len());
            let next = unit.map_or(self.barrier, |unit| unit.place);
            if at <= next.min(self.barrier) {
                return Some(moves);
            }
            let unit = unit?;
            let place = if unit.near { Some(unit.moved(at)?) } else { None };
            at = place.as_ref().map_or(at, |place| place.end);
            moves.push(place.map(|place| place.start));
        }
    }
}

impl Unit {
    /// Returns the places of its sections when the first lies at `place`, where all of it fits.
    fn places<'a>(&'a self, file: &'a File, place: u64) -> impl Iterator<Item = (usize, u64)> + 'a {
        let first = self.sections.first().map_or(0, |&index| offset(file, index));
        self.sections.iter().map(move |&index| {
            let into = offset(file, index) - first;
            (index, place + into)
        })
    }
}

fn offset(file: &File, index: usize) -> u64 {
    file.sections.get(index).map_or(0, |section| section.sh_offset.get(LE))
}

/// Returns the sections as one unit, where they lie.
fn unit(file: &File, sections: Vec<usize>, near: bool) -> Option<Unit> {
    let members = || sections.iter().filter_map(|&index| file.sections.get(index));
    let start = members().map(|section| section.sh_offset.get(LE)).min()?;
    let end = members().map(|section| file_range(section).end).max()?;
    let align = members().map(|section| section.sh_addralign.get(LE)).max()?.max(1);
    let align = members()
        .flat_map(|section| note_segments(file, &file_range(section)))
        .map(|index| file.segments.get(index).map_or(1, |segment| segment.p_align.get(LE)))
        .filter(|align| align.is_power_of_two() && *align <= FIRST_PAGE)
        .fold(align, u64::max);
    Some(Unit { sections, place: start, size: end - start, align, near })
}

/// Returns the indices of the segments of notes that cover a part of the file.
fn note_segments<'f>(file: &'f File, range: &Range<u64>) -> impl Iterator<Item = usize> + use<'f> {
    let range = range.clone();
    file.segments.iter().enumerate().filter_map(move |(index, segment)| {
        let covered = segment_file_range(segment);
        let is_note = matches!(segment.p_type.get(LE), PT_NOTE | PT_GNU_PROPERTY);
        (is_note && covered.start <= range.start && range.end <= covered.end).then_some(index)
    })
}

/// Groups sections, sorted by offset, into units: all sections in one segment of notes are one unit.
fn units(file: &File, sections: &[usize], is_near: &dyn Fn(usize) -> bool) -> Vec<Unit> {
    let mut groups: Vec<(Vec<usize>, u64)> = Vec::new();
    for &index in sections {
        let Some(section) = file.sections.get(index) else { continue };
        // How far the segments of notes that start no later reach.
        let reach = match section.sh_type.get(LE) {
            SHT_NOTE => note_segments(file, &file_range(section))
                .filter_map(|n| file.segments.get(n))
                .map(|segment| segment_file_range(segment).end)
                .max()
                .unwrap_or(0),
            _ => 0,
        };
        match groups.last_mut() {
            Some((group, end)) if file_range(section).end <= *end => {
                group.push(index);
                *end = reach.max(*end);
            }
            _ => groups.push((vec![index], reach)),
        }
    }
    let unit = |(group, _): (Vec<usize>, u64)| {
        let near = group.first().is_some_and(|&index| is_near(index));
        unit(file, group, near)
    };
    groups.into_iter().filter_map(unit).collect()
}

/// Returns the offset of the first content after the file's header that is not in the zone.
fn barrier(file: &File, slot: &Slot, in_zone: &dyn Fn(&usize) -> bool) -> u64 {
    let sections = file.sections.iter().enumerate().filter(|(index, section)| {
        let counts = is_allocated(section) || section.sh_size.get(LE) > 0;
        has_bytes(section) && counts && !in_zone(index) && !slot.evicted.contains(index)
    });
    let sections = sections.map(|(_, section)| section.sh_offset.get(LE));
    let loads = file.loads().filter(|load| load.p_filesz.get(LE) > 0 && load.p_offset.get(LE) > 0);
    let tables = [file.header.e_shoff.get(LE), file.len()];
    let head = file.loads().find(|load| load.p_offset.get(LE) == 0);
    // Nothing can be put into memory without bytes in the file.
    let empty = file.sections.iter().filter(|section| {
        let within = |load| segment_addresses(load).contains(&section.sh_addr.get(LE));
        is_allocated(section) && !has_bytes(section) && head.is_some_and(within)
    });
    let base = head.map_or(0, |load| load.p_vaddr.get(LE));
    let first = sections
        .chain(loads.map(|load| load.p_offset.get(LE)))
        .chain(tables.into_iter().filter(|&at| at > 0))
        .chain(empty.map(|section| section.sh_addr.get(LE) - base))
        .min();
    // The segment with the headers can only become longer up to the end of its last page.
    let end = head.map_or(0, |load| {
        if load.p_filesz == load.p_memsz {
            up(load.p_filesz.get(LE), FIRST_PAGE)
        } else {
            load.p_filesz.get(LE)
        }
    });
    first.unwrap_or(0).min(end)
}
