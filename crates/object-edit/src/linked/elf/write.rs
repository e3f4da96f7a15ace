//! The new file, put together.

use object::pod::{bytes_of, bytes_of_slice};

use super::file::{File, ProgramHeader, file_range, up};
use super::layout::Layout;
use super::room::HEADER;
use super::sections::Sections;
use super::segments::{Map, next_content};
use super::slot::Slot;
use crate::output::{self, Output};
use crate::patches::{Patch, overwrite};
use crate::pod::LE;
use crate::tables::sized;

/// The parts of the new file.
pub(super) struct Parts<'a> {
    pub(super) file: &'a File,
    pub(super) slot: &'a Slot,
    pub(super) layout: &'a Layout,
    pub(super) map: &'a Map,
    pub(super) segments: &'a [ProgramHeader],
    pub(super) sections: &'a Sections,
    /// The old ELF file with other bytes for symbols, relocations, wrappers, tags.
    pub(super) old: Output,
    /// The new contents in place of the bundles.
    pub(super) bundles: Vec<Output>,
}

/// Contents at places from `start` on, zeros between them and up to `end`; `None` if they overlap.
fn lay(start: u64, end: u64, mut contents: Vec<(u64, Output)>) -> Option<Output> {
    contents.sort_by_key(|&(at, _)| at);
    let mut out = Output::new();
    for (at, content) in contents {
        let at = at.checked_sub(start).filter(|&at| at >= out.size())?;
        out.pad_to(at);
        out.append(&content);
    }
    out.pad_to(end.checked_sub(start)?);
    (out.size() == end - start).then_some(out)
}

impl Parts<'_> {
    /// Returns the new file; `None` if parts of it overlap.
    pub(super) fn write(mut self) -> Option<Output> {
        let mut contents: Vec<(u64, Output)> = Vec::new();
        let bundles = std::mem::take(&mut self.bundles);
        contents.extend(self.layout.starts.iter().copied().zip(bundles));
        for &(index, at) in &self.layout.far {
            contents.push((at, self.contents(index)?));
        }
        let mut out = self.old.slice(0..self.map.segment.start);
        let (inside, behind) = match self.map.grown {
            Some(_) => (Vec::new(), contents),
            None => (contents, Vec::new()),
        };
        let image = self.segment(inside)?;
        let base = self.slot.segment().start;
        for piece in &self.map.pieces {
            let part = piece.addresses.start - base..piece.addresses.end - base;
            out.append(&image.slice(part));
        }
        let mut copied = self.map.segment.end;
        out.pad_to(self.map.rest);
        if let Some(grown) = &self.map.grown {
            out.append(&self.old.slice(copied..grown.before));
            copied = grown.before;
            out.pad_to(grown.offset);
            out.append(&lay(grown.addresses.start, grown.addresses.end, behind)?);
            out.pad_to(grown.rest);
        }
        (out.size() == self.map.offset(copied)).then_some(())?;
        self.finish(out, copied)
    }

    /// Returns the segment of the device code as one piece, gaps included.
    fn segment(&self, bundles: Vec<(u64, Output)>) -> Option<Output> {
        let all = self.slot.segment();
        let start = self.slot.start;
        let end = if self.slot.content_after { self.slot.end(1) } else { self.layout.end };
        let mut image = self.slot.image(&self.old, &(all.start..start));
        image.append(&lay(start, end, bundles)?);
        if self.slot.content_after {
            image.append(&self.slot.image(&self.old, &(end..all.end)));
        }
        Some(image)
    }

    /// Appends the contents after the segments, and the headers.
    fn finish(&self, mut out: Output, copied: u64) -> Option<Output> {
        let header = &self.file.header;
        let old_size = size_of_val(self.file.sections.as_slice());
        let old = self.file.section_table();
        let mut bytes = bytes_of_slice(&self.sections.headers).to_vec();
        let place = self.map.offset(old.start);
        let mut patches = Vec::new();
        let is_last = old.end == self.file.len() && !self.file.loads_section_table();
        let table = if is_last && old.start >= copied {
            out.append(&self.old.slice(copied..old.start));
            out.push_vec(bytes);
            place
        } else {
            out.append(&self.old.slice(copied..u64::MAX));
            if bytes.len() <= old_size {
                bytes.resize(old_size, 0);
                patches.push(Patch::new(place, bytes));
                place
            } else {
                patches.push(Patch::new(place, vec![0; old_size]));
                out.pad_to(up(out.size(), 8));
                let end = out.size();
                out.push_vec(bytes);
                end
            }
        };
        let out = overwrite(&out, patches);
        let mut new = *header;
        new.e_shoff.set(LE, table);
        new.e_shnum.set(LE, u16::try_from(self.sections.headers.len()).ok()?);
        new.e_phnum.set(LE, u16::try_from(self.segments.len()).ok()?);
        new.e_shstrndx.set(LE, self.sections.index(header.e_shstrndx.get(LE), 0));
        let mut file = Output::new();
        file.push_bytes(bytes_of(&new));
        let phoff = header.e_phoff.get(LE);
        file.append(&out.slice(file.size()..phoff));
        file.append(&self.front(phoff)?);
        file.append(&out.slice(file.size()..u64::MAX));
        (file.size() == out.size()).then_some(file)
    }

    /// Returns the program headers and the sections after them. Bytes that belong to nothing do not change.
    fn front(&self, phoff: u64) -> Option<Output> {
        let table = |count: usize| sized(phoff, HEADER * count as u64);
        let old_table = table(self.file.segments.len());
        let mut gone = vec![old_table.clone()];
        let mut contents = vec![(phoff, output::of_bytes(bytes_of_slice(self.segments)))];
        for &(index, at) in &self.layout.zone.near {
            if self.layout.moved.contains_key(&index) {
                contents.push((at, self.contents(index)?));
            }
        }
        for index in self.layout.moved.keys() {
            if !self.slot.evicted.contains(index) {
                gone.push(file_range(self.file.sections.get(*index)?));
            }
        }
        let mut end = gone.iter().map(|range| range.end).max()?;
        for (at, content) in &contents {
            end = end.max(at.checked_add(content.size())?);
        }
        let mut zeroed = Output::new();
        gone.sort_by_key(|range| range.start);
        for range in gone {
            zeroed.append(&self.old.slice(zeroed.size()..range.start));
            zeroed.pad_to(range.end);
        }
        zeroed.append(&self.old.slice(zeroed.size()..end));
        // Bytes that the shorter table frees get the following bytes, if those belong to nothing: patchelf's
        // filler.
        let new_end = table(self.segments.len()).end;
        if let Some(back @ 1..) = old_table.end.checked_sub(new_end) {
            let free = sized(old_table.end, back);
            if next_content(self.file, free.start) >= free.end {
                zeroed.replace(new_end, &self.old.slice(free));
            }
        }
        contents.sort_by_key(|&(at, _)| at);
        let mut front = Output::new();
        for (at, content) in contents {
            front.append(&zeroed.slice(phoff.checked_add(front.size())?..at));
            (phoff.checked_add(front.size())? == at).then(|| front.append(&content))?;
        }
        front.append(&zeroed.slice(phoff.checked_add(front.size())?..end));
        (phoff.checked_add(front.size())? == end).then_some(front)
    }

    fn contents(&self, index: usize) -> Option<Output> {
        Some(self.old.slice(file_range(self.file.sections.get(index)?)))
    }
}
