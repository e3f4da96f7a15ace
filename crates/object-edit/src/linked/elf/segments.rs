//! The program headers of the new file, and where the parts of the old one lie in it.

use std::ops::Range;

use object::elf::{PF_R, PF_W, PT_GNU_PROPERTY, PT_INTERP, PT_LOAD, PT_NOTE, PT_PHDR};

use super::file::{
    File, ProgramHeader, down, file_range, has_bytes, segment_addresses, segment_file_range, up,
};
use super::layout::Layout;
use super::room::{HEADER, TABLE};
use super::slot::Slot;
use super::validate::inconsistent;
use crate::error::Error;
use crate::pod::LE;

/// The new places of parts of the old file. Offsets in the ELF file.
#[derive(Debug)]
pub(super) struct Map {
    /// The old segment of the device code, with the padding after it that is removed.
    pub(super) segment: Range<u64>,
    /// The new segment's pieces.
    pub(super) pieces: Vec<Piece>,
    /// The start of the contents after the segment.
    pub(super) rest: u64,
    /// The insertion of a new segment, and the places of the contents after it.
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
    /// The old offset of the contents after it.
    pub(super) before: u64,
    pub(super) addresses: Range<u64>,
    pub(super) offset: u64,
    /// The new offset of the contents after it.
    pub(super) rest: u64,
}

impl Map {
    /// Returns the new places; `None` for headers with which a new segment has none.
    pub(super) fn new(file: &File, slot: &Slot, layout: &Layout) -> Option<Self> {
        let old = slot.file_range();
        let mut pieces = Vec::new();
        let mut offset = old.start;
        let mut at = slot.segment().start;
        let last = layout.end..layout.end;
        for hole in layout.holes.iter().chain([&last]) {
            if hole.start > at {
                pieces.push(Piece { addresses: at..hole.start, offset });
                offset += hole.start - at;
            }
            at = hole.end.max(at);
        }
        let behind = if layout.end == slot.segment().end {
            old.end
        } else {
            // The last part ends elsewhere: its padding is new.
            next_content(file, old.end)
        };
        let rest = behind_at(file, layout, behind, offset);
        let mut map = Map { segment: old.start..behind, pieces, rest, grown: None };
        if let Some(end) = layout.grown {
            map.grow(file, layout, end)?;
        }
        Some(map)
    }

    /// Makes room for a new segment after all others.
    fn grow(&mut self, file: &File, layout: &Layout, end: u64) -> Option<()> {
        let before = file.loads().map(|load| segment_file_range(load).end).max().unwrap_or(0);
        let before = before.max(self.segment.end);
        let start = layout.starts.first().copied().unwrap_or(end);
        let offset = up(self.offset(before), layout.align);
        let behind = file
            .sections
            .iter()
            .filter(|section| has_bytes(section) && section.sh_offset.get(LE) >= before);
        let align = behind.map(|section| section.sh_addralign.get(LE)).fold(16, u64::max);
        // Contents that it ends before need not move.
        let further = offset.checked_add(end - start)?.saturating_sub(before);
        let rest = before.checked_add(up(further, align))?;
        self.grown = Some(Grown { before, addresses: start..end, offset, rest });
        Some(())
    }

    /// Returns the new offset of a byte outside the segment of the device code.
    pub(super) fn offset(&self, old: u64) -> u64 {
        let (from, to) = match &self.grown {
            Some(grown) if old >= grown.before => (grown.before, grown.rest),
            _ => (self.segment.end, self.rest),
        };
        // A segment without bytes may say that it lies anywhere.
        old.checked_sub(from).map_or(old, |into| to.saturating_add(into))
    }
}

/// Returns the start of the contents after the segment: at `offset`, or as little after it as the alignment of
/// other segments permits. `old`: where it started.
fn behind_at(file: &File, layout: &Layout, old: u64, offset: u64) -> u64 {
    let mut behind =
        file.loads().filter(|load| load.p_filesz.get(LE) > 0 && load.p_offset.get(LE) >= old);
    if let Some(align) = layout.raised
        && let Some(next) = behind.next()
    {
        let place = next.p_vaddr.get(LE).wrapping_sub(next.p_offset.get(LE) - old);
        return offset + place.wrapping_sub(offset) % align;
    }
    let align = behind.map(|load| load.p_align.get(LE)).fold(layout.align, u64::max);
    let align = if layout.lowered { layout.align } else { align };
    match offset.checked_sub(old) {
        Some(by) => old + up(by, align),
        None => old - down(old - offset, align),
    }
}

/// Returns the offset of the first content of the file at or after this one.
pub(super) fn next_content(file: &File, from: u64) -> u64 {
    let sections =
        file.sections.iter().filter(|section| has_bytes(section) && section.sh_size.get(LE) > 0);
    let segments = file.segments.iter().filter(|segment| segment.p_filesz.get(LE) > 0);
    let starts = sections
        .map(|section| file_range(section).start)
        .chain(segments.map(|segment| segment.p_offset.get(LE)))
        .chain([file.header.e_shoff.get(LE)]);
    starts.filter(|&start| start >= from).min().unwrap_or(file.len()).min(file.len())
}

/// Returns the new program headers.
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
            if old.p_type.get(LE) == PT_LOAD {
                header.p_offset.set(LE, load_offset(old, map));
            }
            headers.push(header);
        }
        if old.p_type.get(LE) == PT_LOAD {
            last_load = headers.len();
        }
    }
    if let Some(grown) = &map.grown {
        let mut header = *file.loads().next().ok_or_else(|| inconsistent("no loadable segment"))?;
        header.p_flags.set(LE, PF_R);
        place(&mut header, &grown.addresses, grown.offset);
        header.p_align.set(LE, layout.align);
        headers.insert(last_load, header);
    }
    let end = |count: usize| TABLE + HEADER * count as u64;
    let (old_end, table_end) = (end(file.segments.len()), end(headers.len()));
    let near = layout.zone.near.iter().filter_map(|&(index, at)| {
        let section = file.sections.get(index)?;
        Some(at + section.sh_size.get(LE))
    });
    let front = near.fold(table_end, u64::max);
    for header in headers.iter_mut().filter(|header| header.p_type.get(LE) == PT_LOAD) {
        // The one with the headers tells what it was.
        let tells = header.p_offset.get(LE) == 0;
        if layout.lowered && header.p_align.get(LE) > layout.align && !tells {
            header.p_align.set(LE, layout.align);
        }
        // The segment with the headers reaches at least to their end; one that holds nothing else ends there.
        let in_first = header.p_offset.get(LE) == 0 && header.p_filesz == header.p_memsz;
        let size = header.p_filesz.get(LE);
        if in_first && size > 0 && (size < front || size == old_end) {
            header.p_filesz.set(LE, front);
            header.p_memsz.set(LE, front);
        }
    }
    raise(&mut headers, layout);
    keep_aligned(&mut headers, layout);
    let loads = Loads::new(file, &headers);
    let count = headers.len() as u64;
    for header in headers.iter_mut().filter(|header| header.p_type.get(LE) != PT_LOAD) {
        others(file, layout, map, &loads, header, count);
    }
    Ok(headers)
}

/// Raises the alignment of all segments to the old one, if all of them still have it.
fn raise(headers: &mut [ProgramHeader], layout: &Layout) {
    let Some(align) = layout.raised else { return };
    let mut loads = headers.iter_mut().filter(|header| header.p_type.get(LE) == PT_LOAD);
    let fits = |load: &ProgramHeader| {
        load.p_vaddr.get(LE).wrapping_sub(load.p_offset.get(LE)).is_multiple_of(align)
    };
    if !loads.all(|load| fits(load)) {
        return;
    }
    for load in headers.iter_mut().filter(|header| header.p_type.get(LE) == PT_LOAD) {
        load.p_align.set(LE, align);
    }
}

/// Gives the alignment of the layout to segments that no longer have their own, such as the parts of one that an earlier edit left as
/// it was.
fn keep_aligned(headers: &mut [ProgramHeader], layout: &Layout) {
    for load in headers.iter_mut().filter(|header| header.p_type.get(LE) == PT_LOAD) {
        let (start, align) = (load.p_vaddr.get(LE), load.p_align.get(LE));
        if align > layout.align && !start.wrapping_sub(load.p_offset.get(LE)).is_multiple_of(align)
        {
            load.p_align.set(LE, layout.align);
        }
    }
}

fn place(header: &mut ProgramHeader, addresses: &Range<u64>, offset: u64) {
    let size = addresses.end - addresses.start;
    header.p_offset.set(LE, offset);
    header.p_vaddr.set(LE, addresses.start);
    header.p_paddr.set(LE, addresses.start);
    header.p_filesz.set(LE, size);
    header.p_memsz.set(LE, size);
}

/// Returns the parts of the segment of the device code.
fn pieces(file: &File, slot: &Slot, old: &ProgramHeader, map: &Map) -> Vec<ProgramHeader> {
    // The difference of the two kinds of addresses stays.
    let physical = old.p_paddr.get(LE).wrapping_sub(old.p_vaddr.get(LE));
    let mut headers: Vec<_> = (map.pieces.iter())
        .map(|piece| {
            let mut header = *old;
            place(&mut header, &piece.addresses, piece.offset);
            header.p_paddr.set(LE, piece.addresses.start.wrapping_add(physical));
            header
        })
        .collect();
    if let Some(last) = headers.last_mut() {
        last.p_memsz.set(LE, last.p_filesz.get(LE) + slot.bss(file));
    }
    headers
}

fn load_offset(load: &ProgramHeader, map: &Map) -> u64 {
    let offset = load.p_offset.get(LE);
    // An empty one comes after the content that it follows.
    if load.p_filesz.get(LE) == 0 && map.segment.contains(&offset) {
        map.segment.start
    } else {
        map.offset(offset)
    }
}

/// Updates the header of a segment that is not loadable.
fn others(
    file: &File,
    layout: &Layout,
    map: &Map,
    loads: &Loads<'_>,
    header: &mut ProgramHeader,
    count: u64,
) {
    let covered = segment_file_range(header);
    match header.p_type.get(LE) {
        PT_PHDR => {
            header.p_filesz.set(LE, HEADER * count);
            header.p_memsz.set(LE, HEADER * count);
            return;
        }
        PT_INTERP | PT_NOTE | PT_GNU_PROPERTY => {
            let moved = layout.moved.iter().find_map(|(&index, &address)| {
                let old = file.sections.get(index)?;
                let range = file_range(old);
                let inside = covered.start <= range.start && range.end <= covered.end;
                inside.then(|| address.wrapping_sub(old.sh_addr.get(LE)))
            });
            if let Some(by) = moved {
                let address = header.p_vaddr.get(LE).wrapping_add(by);
                header.p_paddr.set(LE, header.p_paddr.get(LE).wrapping_add(by));
                header.p_vaddr.set(LE, address);
                header.p_offset.set(LE, loads.new_offset(address).unwrap_or(covered.start));
                return;
            }
        }
        _ => {}
    }
    if covered.is_empty() && header.p_memsz.get(LE) == 0 {
        return;
    }
    let address = header.p_vaddr.get(LE);
    let offset = match loads.shift(address, false) {
        Some(shift) => covered.start.wrapping_add(shift),
        None => map.offset(covered.start),
    };
    header.p_offset.set(LE, offset);
}

/// The loadable segments, old and new.
pub(super) struct Loads<'f> {
    old: Vec<&'f ProgramHeader>,
    new: Vec<ProgramHeader>,
}

impl<'f> Loads<'f> {
    pub(super) fn new(file: &'f File, headers: &[ProgramHeader]) -> Self {
        let loads = headers.iter().filter(|header| header.p_type.get(LE) == PT_LOAD);
        Loads { old: file.loads().collect(), new: loads.copied().collect() }
    }

    /// Returns the new offset of an address.
    pub(super) fn new_offset(&self, address: u64) -> Option<u64> {
        let load = self.new.iter().find(|load| segment_addresses(load).contains(&address))?;
        Some(load.p_offset.get(LE).wrapping_add(address - load.p_vaddr.get(LE)))
    }

    /// Returns the growth of the offset at an address, modulo 2^64. An empty section may also lie at the end of a
    /// segment, preferably of a writable one if it is writable itself.
    pub(super) fn shift(&self, address: u64, writable: bool) -> Option<u64> {
        let old = find(self.old.iter().copied(), address, writable)?;
        let new = find(self.new.iter(), address, writable)?;
        let bias = |load: &ProgramHeader| load.p_offset.get(LE).wrapping_sub(load.p_vaddr.get(LE));
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
        let alike = load.p_flags.get(LE).contains(PF_W) == writable;
        if range.contains(&address) {
            return Some(load);
        }
        if range.end == address && (alike || best.is_none()) {
            best = Some(load);
        }
    }
    best
}
