//! The slot: the addresses from the first bundle to the contents after the last one, as the linker laid them out.
//! An earlier edit may have taken pages out of them and put other sections in.

use std::ops::Range;

use byte_parts::Window;
use object::elf::{PF_W, SHF_WRITE};

use super::dynamic::Dynamic;
use super::file::{
    File, SectionHeader, addresses, down, file_range, has_bytes, is_allocated, is_thread_nobits,
    loaded, segment_addresses, segment_file_range,
};
use super::movable::{Movable, movable};
use super::validate::inconsistent;
use crate::error::Error;
use crate::output::Output;
use crate::pod::LE;
use crate::tables::sized;

pub(super) struct Slot {
    /// The indices of the program headers of its segment: one, or those of the pieces of an earlier edit.
    pub(super) pieces: Vec<usize>,
    /// The parts of the segment that lie in the file.
    runs: Vec<Run>,
    /// The sections with bundles, by address.
    pub(super) sections: Vec<usize>,
    /// For each section of the file, `true` if it is one of them.
    holds_bundles: Vec<bool>,
    /// Sections that an earlier edit moved into the slot.
    pub(super) evicted: Vec<usize>,
    /// The start of the first bundle.
    pub(super) start: u64,
    /// The next content of the segment, or the next segment.
    next: Option<u64>,
    /// `true` if the segment continues after the slot.
    pub(super) content_after: bool,
}

/// A part of memory and where it lies in the file.
#[derive(Clone, Debug)]
struct Run {
    addresses: Range<u64>,
    offset: u64,
}

impl Slot {
    /// Finds the slot. `sections` are those with bundles, `start` is the address of the first bundle.
    pub(super) fn find(
        file: &File,
        dynamic: &Dynamic,
        mut sections: Vec<usize>,
        start: u64,
    ) -> Result<Self, Error> {
        sections.sort_unstable();
        let holds_bundles =
            (0..file.sections.len()).map(|index| sections.binary_search(&index).is_ok()).collect();
        let by_address = |&index: &usize| file.sections.get(index).map(|s| s.sh_addr.get(LE));
        sections.sort_by_key(by_address);
        let mut slot = Slot {
            holds_bundles,
            pieces: Vec::new(),
            runs: Vec::new(),
            sections,
            evicted: Vec::new(),
            start,
            next: None,
            content_after: false,
        };
        slot.find_pieces(file, dynamic)?;
        slot.check_sections(file)?;
        slot.find_end(file, dynamic);
        slot.check_inside(file)?;
        Ok(slot)
    }

    fn holds_bundles(&self, index: usize) -> bool {
        self.holds_bundles.get(index).copied().unwrap_or(false)
    }

    fn find_pieces(&mut self, file: &File, dynamic: &Dynamic) -> Result<(), Error> {
        let outside = "the device code lies in no loadable segment";
        let mut loads = file.load_indices().filter_map(|n| Some((n, file.segments.get(n)?)));
        let (index, first) = loads
            .by_ref()
            .find(|(_, load)| segment_addresses(load).contains(&self.start))
            .ok_or_else(|| inconsistent(outside))?;
        let mut last = first;
        self.pieces.push(index);
        for (index, load) in loads {
            let whole = last.p_memsz == last.p_filesz && load.p_filesz.get(LE) > 0;
            let gap = segment_file_range(last).end..load.p_offset.get(LE);
            // An edit that lowers the alignment of all others leaves the alignment of the first one.
            let first = last.p_offset.get(LE) == 0 && last.p_align.get(LE) > load.p_align.get(LE);
            let alike = load.p_flags == last.p_flags && (load.p_align == last.p_align || first);
            let apart = self.fixed(file, dynamic, last).next().is_some();
            if !whole || !alike || apart || gap.start > gap.end || !is_unused(file, &gap) {
                break;
            }
            self.pieces.push(index);
            last = load;
        }
        let pieces = self.pieces.iter().filter_map(|&index| file.segments.get(index));
        let run = |load: &super::file::ProgramHeader| Run {
            addresses: loaded(load),
            offset: load.p_offset.get(LE),
        };
        self.runs = pieces.map(run).collect();
        Ok(())
    }

    /// Returns the sections in a segment, after the start of the slot, that are neither bundles nor evicted.
    fn fixed<'f>(
        &'f self,
        file: &'f File,
        dynamic: &'f Dynamic,
        load: &'f super::file::ProgramHeader,
    ) -> impl Iterator<Item = &'f SectionHeader> {
        let memory = segment_addresses(load);
        let sections = file.sections.iter().enumerate();
        let fixed = sections.filter(move |&(index, section)| {
            let range = addresses(section);
            let alike =
                section.sh_flags.get(LE).contains(SHF_WRITE) == load.p_flags.get(LE).contains(PF_W);
            let inside = memory.contains(&range.start)
                || (range.start == memory.end && range.is_empty() && alike);
            is_allocated(section)
                && !is_thread_nobits(section)
                && inside
                && range.start >= self.start
                && (alike || !range.is_empty())
                && !self.holds_bundles(index)
                && !is_far(file, dynamic, section)
        });
        fixed.map(|(_, section)| section)
    }

    /// Checks that bundles lie at the same places in the file and in memory.
    fn check_sections(&self, file: &File) -> Result<(), Error> {
        let headers = || self.sections.iter().filter_map(|&index| file.sections.get(index));
        let mut end = 0;
        for section in headers() {
            let range = addresses(section);
            if range.start < end {
                return Err(inconsistent("sections overlap"));
            }
            end = range.end;
            let run = self
                .runs
                .iter()
                .find(|run| run.addresses.start <= range.start && range.end <= run.addresses.end);
            let run =
                run.ok_or_else(|| inconsistent("the device code lies in several segments"))?;
            if run.offset.checked_add(range.start - run.addresses.start)
                != Some(section.sh_offset.get(LE))
            {
                return Err(inconsistent("the device code lies elsewhere in its segment"));
            }
        }
        let first = headers().next().map(|first| (first.sh_type, first.sh_flags, first.sh_name));
        if headers().any(|other| Some((other.sh_type, other.sh_flags, other.sh_name)) != first) {
            return Err(Error::unsupported_elf("device code in different sections"));
        }
        Ok(())
    }

    fn find_end(&mut self, file: &File, dynamic: &Dynamic) {
        let last = self.pieces.last().and_then(|&index| file.segments.get(index));
        let Some(last) = last else { return };
        let fixed = self.fixed(file, dynamic, last).map(|section| section.sh_addr.get(LE)).min();
        let end = self.segment().end;
        self.content_after = fixed.is_some() || last.p_memsz != last.p_filesz;
        self.next = if self.content_after {
            // Memory that is not in the file stays after memory that is.
            Some(fixed.unwrap_or(end).min(end))
        } else {
            file.loads().map(|load| load.p_vaddr.get(LE)).filter(|&at| at >= end).min()
        };
        let limit = if self.content_after { self.next.unwrap_or(end) } else { end };
        let evicted = file.sections.iter().enumerate().filter(|(_, section)| {
            let range = addresses(section);
            has_bytes(section)
                && is_far(file, dynamic, section)
                && range.start >= self.start
                && range.end <= limit
                && !range.is_empty()
                && self.offset_of(range.start) == Some(section.sh_offset.get(LE))
        });
        self.evicted = evicted.map(|(index, _)| index).collect();
    }

    /// Checks that evicted sections overlap nothing: no bundles, not each other.
    fn check_evicted(&self, file: &File) -> Result<(), Error> {
        let ours = self.sections.iter().chain(&self.evicted);
        let mut ranges: Vec<_> =
            ours.filter_map(|&index| file.sections.get(index)).map(addresses).collect();
        ranges.sort_by_key(|range| range.start);
        let apart = ranges.iter().zip(ranges.iter().skip(1)).all(|(a, b)| a.end <= b.start);
        if apart { Ok(()) } else { Err(inconsistent("sections overlap")) }
    }

    /// Checks that nothing else lies in the slot.
    fn check_inside(&self, file: &File) -> Result<(), Error> {
        self.check_evicted(file)?;
        let bundles = self.sections.iter().filter_map(|&index| file.sections.get(index));
        let bundles_end = bundles.map(|section| addresses(section).end).max().unwrap_or(0);
        let next = self.next.filter(|_| self.content_after);
        let end = next.unwrap_or(self.segment().end).max(bundles_end);
        for (index, section) in file.sections.iter().enumerate() {
            let range = addresses(section);
            let inside = range.start < end && range.end > self.start && !range.is_empty();
            let ours = self.holds_bundles(index) || self.evicted.contains(&index);
            if is_allocated(section) && !is_thread_nobits(section) && inside && !ours {
                return Err(inconsistent("another section lies between device code"));
            }
        }
        let part = self.file_range();
        for section in &file.sections {
            let range = file_range(section);
            let inside = range.start < part.end && range.end > part.start && !range.is_empty();
            if has_bytes(section) && !is_allocated(section) && inside {
                return Err(inconsistent("a section lies in a segment but is not loaded"));
            }
        }
        let table = file.section_table();
        if table.start < part.end && part.start < table.end {
            return Err(inconsistent("the section headers lie in the segment of the device code"));
        }
        Ok(())
    }

    /// Returns the addresses of the segment that the file has bytes for, gaps included.
    pub(super) fn segment(&self) -> Range<u64> {
        let start = self.runs.first().map_or(0, |run| run.addresses.start);
        start..self.runs.last().map_or(start, |run| run.addresses.end)
    }

    /// Returns the offsets of the segment, including the bytes between pieces.
    pub(super) fn file_range(&self) -> Range<u64> {
        let start = self.runs.first().map_or(0, |run| run.offset);
        let size = |run: &Run| run.addresses.end - run.addresses.start;
        let end = self.runs.last().map_or(start, |run| run.offset + size(run));
        start..end
    }

    /// Returns the number of bytes of memory after those in the file.
    pub(super) fn bss(&self, file: &File) -> u64 {
        let last = self.pieces.last().and_then(|&index| file.segments.get(index));
        last.map_or(0, |last| last.p_memsz.get(LE) - last.p_filesz.get(LE))
    }

    /// Returns the limit of the end of bundles if segments are cut at multiples of `align`.
    pub(super) fn end(&self, align: u64) -> u64 {
        match self.next {
            Some(next) if self.content_after => next,
            Some(next) => down(next, align),
            // Only mappings of the system follow.
            None => u64::MAX >> 1,
        }
    }

    /// Returns the number of bytes up to [that limit](Self::end): none if no page ends between.
    pub(super) fn available(&self, align: u64) -> u64 {
        Window::new(&(self.start..self.end(align))).len()
    }

    /// Returns the largest alignment of the sections with bundles.
    pub(super) fn align(&self, file: &File) -> u64 {
        let sections = self.sections.iter().filter_map(|&index| file.sections.get(index));
        let aligns = sections.map(|section| section.sh_addralign.get(LE));
        aligns.filter(|align| align.is_power_of_two()).max().unwrap_or(1)
    }

    pub(super) fn offset_of(&self, address: u64) -> Option<u64> {
        let run = self.runs.iter().find(|run| run.addresses.contains(&address))?;
        Some(run.offset + (address - run.addresses.start))
    }

    /// Returns the bytes at these addresses, zeros in gaps. `old` is the ELF file.
    pub(super) fn image(&self, old: &Output, range: &Range<u64>) -> Output {
        let mut image = Output::new();
        let mut at = range.start;
        for run in &self.runs {
            let from = run.addresses.start.max(at);
            let to = run.addresses.end.min(range.end);
            if from >= to {
                continue;
            }
            image.pad_to(from - range.start);
            let offset = run.offset + (from - run.addresses.start);
            image.append(&old.slice(sized(offset, to - from)));
            at = to;
        }
        image.pad_to(Window::new(range).len());
        image
    }
}

fn is_far(file: &File, dynamic: &Dynamic, section: &SectionHeader) -> bool {
    matches!(movable(file, dynamic, section), Some(Movable::Far(_)))
}

/// Returns whether nothing lies in a part of the file.
fn is_unused(file: &File, range: &Range<u64>) -> bool {
    let apart = |other: &Range<u64>| {
        other.is_empty() || other.end <= range.start || other.start >= range.end
    };
    let table = file.section_table();
    range.is_empty()
        || file.sections.iter().filter(|s| has_bytes(s)).all(|s| apart(&file_range(s)))
            && file.segments.iter().all(|s| apart(&segment_file_range(s)))
            && apart(&table)
}
