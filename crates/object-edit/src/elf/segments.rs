//! The program headers of the new file, and where the parts of the old one lie in it.

use std::ops::Range;

use super::file::{
    File, PT_LOAD, ProgramHeader, down, file_range, has_bytes, segment_addresses,
    segment_file_range, up,
};
use super::layout::Layout;
use super::movable::{PT_GNU_PROPERTY, PT_INTERP, PT_NOTE};
use super::room::{HEADER, TABLE};
use super::slot::Slot;
use super::validate::inconsistent;
use crate::error::Error;

const PT_PHDR: u32 = 6;
const PF_R: u32 = 4;

/// Where parts of the old file lie in the new one. Offsets in the ELF file.
#[derive(Debug)]
pub(super) struct Map {
    /// The old segment of the device code, with the padding behind it that goes.
    pub(super) segment: Range<u64>,
    /// The new segment's pieces.
    pub(super) pieces: Vec<Piece>,
    /// Where what comes behind the segment starts.
    pub(super) rest: u64,
    /// What a new segment is put in front of, where that starts and where what comes behind it goes on.
    pub(super) grown: Option<Grown>,
}

/// A part of the segment of the device code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) addresses: Range<u64>,
    pub(super) offset: u64,
}

/// A new segment.
#[derive(Clone, Debug)]
pub(super) struct Grown {
    /// The old offset of what comes behind it.
    pub(super) before: u64,
    pub(super) addresses: Range<u64>,
    pub(super) offset: u64,
    /// The new offset of what comes behind it.
    pub(super) rest: u64,
}

impl Map {
    pub(super) fn new(file: &File, slot: &Slot, layout: &Layout) -> Self {
        let old = slot.file_range();
        let mut pieces = Vec::new();
        let mut offset = old.start;
        let mut at = slot.segment().start;
        let last = layout.end..layout.end;
        for hole in layout.holes.iter().chain([&last]) {
            if hole.start > at {
                pieces.push(Piece { addresses: at..hole.start, offset });
                offset = offset.saturating_add(hole.start - at);
            }
            at = hole.end.max(at);
        }
        let behind = if layout.end == slot.segment().end {
            old.end
        } else {
            // The last part ends elsewhere: the padding behind it is made anew.
            next_content(file, old.end)
        };
        let rest = behind_at(file, layout, behind, offset);
        let mut map = Map { segment: old.start..behind, pieces, rest, grown: None };
        if let Some(end) = layout.grown {
            map.grow(file, layout, end);
        }
        map
    }

    /// Makes place for a new segment behind all others.
    fn grow(&mut self, file: &File, layout: &Layout, end: u64) {
        let before = file.loads().map(|load| segment_file_range(load).end).max().unwrap_or(0);
        let before = before.max(self.segment.end);
        let start = layout.starts.first().copied().unwrap_or(end);
        let offset = up(self.offset(before), layout.align);
        let behind = file
            .sections
            .iter()
            .filter(|section| has_bytes(section) && section.offset.get() >= before);
        let align = behind.map(|section| section.align.get()).fold(16, u64::max);
        let old = offset.saturating_add(end - start).saturating_sub(before);
        let rest = before.saturating_add(up(old, align));
        self.grown = Some(Grown { before, addresses: start..end, offset, rest });
    }

    /// The new offset of a byte outside the segment of the device code.
    pub(super) fn offset(&self, old: u64) -> u64 {
        if let Some(grown) = &self.grown
            && let Some(into) = old.checked_sub(grown.before)
        {
            return grown.rest.saturating_add(into);
        }
        match old.checked_sub(self.segment.end) {
            Some(into) => self.rest.saturating_add(into),
            None => old,
        }
    }
}

/// Where what lies behind the segment starts: at `offset` or as little behind it as the alignment of other segments
/// lets it. `old`: where it started.
fn behind_at(file: &File, layout: &Layout, old: u64, offset: u64) -> u64 {
    let mut behind = file.loads().filter(|load| load.filesz.get() > 0 && load.offset.get() >= old);
    if let Some(align) = layout.raised
        && let Some(next) = behind.next()
    {
        let place = next.vaddr.get().wrapping_sub(next.offset.get() - old);
        return offset.saturating_add(place.wrapping_sub(offset) % align);
    }
    let align = behind.map(|load| load.align.get()).fold(layout.align, u64::max);
    let align = if layout.lowered { layout.align } else { align };
    match offset.checked_sub(old) {
        Some(by) => old.saturating_add(up(by, align)),
        None => old.saturating_sub(down(old - offset, align)),
    }
}

/// The offset of the first thing in the file at or behind this one.
pub(super) fn next_content(file: &File, from: u64) -> u64 {
    let sections =
        file.sections.iter().filter(|section| has_bytes(section) && section.size.get() > 0);
    let segments = file.segments.iter().filter(|segment| segment.filesz.get() > 0);
    let starts = sections
        .map(|section| file_range(section).start)
        .chain(segments.map(|segment| segment.offset.get()))
        .chain([file.header.shoff.get()]);
    starts.filter(|&start| start >= from).min().unwrap_or(file.len()).min(file.len())
}

/// The new program headers.
pub(super) fn segments(
    file: &File,
    slot: &Slot,
    layout: &Layout,
    map: &Map,
) -> Result<Vec<ProgramHeader>, Error> {
    let mut headers: Vec<ProgramHeader> = Vec::new();
    let mut last_load = 0;
    for (index, old) in file.segments.iter().enumerate() {
        if slot.pieces.first() == Some(&index) {
            headers.extend(pieces(file, slot, old, map));
        } else if slot.pieces.contains(&index) {
            continue;
        } else {
            let mut header = *old;
            if old.kind.get() == PT_LOAD {
                header.offset.set(load_offset(old, map));
            }
            headers.push(header);
        }
        if old.kind.get() == PT_LOAD {
            last_load = headers.len();
        }
    }
    if let Some(grown) = &map.grown {
        let mut header = *file.loads().next().ok_or(inconsistent("no loadable segment"))?;
        header.flags.set(PF_R);
        place(&mut header, &grown.addresses, grown.offset);
        header.align.set(layout.align);
        headers.insert(last_load, header);
    }
    let end = |count: usize| TABLE.saturating_add(HEADER.saturating_mul(count as u64));
    let (old_end, table_end) = (end(file.segments.len()), end(headers.len()));
    let near = layout.zone.near.iter().filter_map(|&(index, at)| {
        let section = file.sections.get(index)?;
        Some(at.saturating_add(section.size.get()))
    });
    let front = near.fold(table_end, u64::max);
    for header in headers.iter_mut().filter(|header| header.kind.get() == PT_LOAD) {
        // The one with the headers tells what it was.
        let tells = header.offset.get() == 0;
        if layout.lowered && header.align.get() > layout.align && !tells {
            header.align.set(layout.align);
        }
        // The segment with the headers reaches at least as far as they do; one that holds nothing else, just as far.
        let in_first = header.offset.get() == 0 && header.filesz == header.memsz;
        let size = header.filesz.get();
        if in_first && size > 0 && (size < front || size == old_end) {
            header.filesz.set(front);
            header.memsz.set(front);
        }
    }
    raise(&mut headers, layout);
    let loads = Loads::new(file, &headers);
    let count = headers.len() as u64;
    for header in headers.iter_mut().filter(|header| header.kind.get() != PT_LOAD) {
        others(file, layout, map, &loads, header, count);
    }
    Ok(headers)
}

/// Aligns segments to what they were aligned to, if all of them are.
fn raise(headers: &mut [ProgramHeader], layout: &Layout) {
    let Some(align) = layout.raised else { return };
    let mut loads = headers.iter_mut().filter(|header| header.kind.get() == PT_LOAD);
    let fits = |load: &ProgramHeader| {
        load.vaddr.get().wrapping_sub(load.offset.get()).is_multiple_of(align)
    };
    if !loads.all(|load| fits(load)) {
        return;
    }
    for load in headers.iter_mut().filter(|header| header.kind.get() == PT_LOAD) {
        load.align.set(align);
    }
}

fn place(header: &mut ProgramHeader, addresses: &Range<u64>, offset: u64) {
    let size = addresses.end - addresses.start;
    header.offset.set(offset);
    header.vaddr.set(addresses.start);
    header.paddr.set(addresses.start);
    header.filesz.set(size);
    header.memsz.set(size);
}

/// The parts of the segment of the device code.
fn pieces(file: &File, slot: &Slot, old: &ProgramHeader, map: &Map) -> Vec<ProgramHeader> {
    // The difference of the two kinds of addresses stays.
    let physical = old.paddr.get().wrapping_sub(old.vaddr.get());
    let mut headers: Vec<_> = (map.pieces.iter())
        .map(|piece| {
            let mut header = *old;
            place(&mut header, &piece.addresses, piece.offset);
            header.paddr.set(piece.addresses.start.wrapping_add(physical));
            header
        })
        .collect();
    if let Some(last) = headers.last_mut() {
        last.memsz.set(last.filesz.get().saturating_add(slot.bss(file)));
    }
    headers
}

fn load_offset(load: &ProgramHeader, map: &Map) -> u64 {
    let offset = load.offset.get();
    // An empty one is behind what it follows.
    match load.filesz.get() == 0 && map.segment.contains(&offset) {
        true => map.segment.start,
        false => map.offset(offset),
    }
}

/// Another segment than a loadable one.
fn others(
    file: &File,
    layout: &Layout,
    map: &Map,
    loads: &Loads<'_>,
    header: &mut ProgramHeader,
    count: u64,
) {
    let covered = segment_file_range(header);
    match header.kind.get() {
        PT_PHDR => {
            header.filesz.set(HEADER.saturating_mul(count));
            header.memsz.set(HEADER.saturating_mul(count));
            return;
        }
        PT_INTERP | PT_NOTE | PT_GNU_PROPERTY => {
            let moved = layout.moved.iter().find_map(|(&index, &address)| {
                let old = file.sections.get(index)?;
                let range = file_range(old);
                let inside = covered.start <= range.start && range.end <= covered.end;
                inside.then(|| address.wrapping_sub(old.addr.get()))
            });
            if let Some(by) = moved {
                let address = header.vaddr.get().wrapping_add(by);
                header.paddr.set(header.paddr.get().wrapping_add(by));
                header.vaddr.set(address);
                header.offset.set(loads.new_offset(address).unwrap_or(covered.start));
                return;
            }
        }
        _ => {}
    }
    if covered.is_empty() && header.memsz.get() == 0 {
        return;
    }
    let address = header.vaddr.get();
    let offset = match loads.shift(address, false) {
        Some(shift) => covered.start.wrapping_add(shift),
        None => map.offset(covered.start),
    };
    header.offset.set(offset);
}

/// The loadable segments, old and new.
pub(super) struct Loads<'f> {
    old: Vec<&'f ProgramHeader>,
    new: Vec<ProgramHeader>,
}

impl<'f> Loads<'f> {
    pub(super) fn new(file: &'f File, headers: &[ProgramHeader]) -> Self {
        let loads = headers.iter().filter(|header| header.kind.get() == PT_LOAD);
        Loads { old: file.loads().collect(), new: loads.copied().collect() }
    }

    /// The new offset of an address.
    pub(super) fn new_offset(&self, address: u64) -> Option<u64> {
        let load = self.new.iter().find(|load| segment_addresses(load).contains(&address))?;
        Some(load.offset.get().wrapping_add(address - load.vaddr.get()))
    }

    /// By how much the offset of what lies at an address grows, modulo 2^64. Something empty may also lie at the end
    /// of a segment, rather of one that is writable if it is.
    pub(super) fn shift(&self, address: u64, writable: bool) -> Option<u64> {
        let old = find(self.old.iter().copied(), address, writable)?;
        let new = find(self.new.iter(), address, writable)?;
        let bias = |load: &ProgramHeader| load.offset.get().wrapping_sub(load.vaddr.get());
        Some(bias(new).wrapping_sub(bias(old)))
    }
}

fn find<'l>(
    loads: impl Iterator<Item = &'l ProgramHeader>,
    address: u64,
    writable: bool,
) -> Option<&'l ProgramHeader> {
    let mut best = None;
    for load in loads {
        let range = segment_addresses(load);
        let alike = (load.flags.get() & super::file::PF_W != 0) == writable;
        if range.contains(&address) {
            return Some(load);
        }
        if range.end == address && (alike || best.is_none()) {
            best = Some(load);
        }
    }
    best
}
