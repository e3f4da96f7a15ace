//! The self-check: a loader makes the same of the new file as of the old one, except for the intended changes.

use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use byte_parts::Source;

use super::file::{File, file_range, memory_size};
use super::place::Places;
use super::slot::Slot;
use super::wrappers::{self, Wrapper};
use crate::error::Error;
use crate::output::{self, NewInputs, Output};
use crate::pod::LE;
use crate::tables::sized;

/// Bytes compared at once.
const CHUNK: u64 = 64 * 1024;

/// The subject of the check: the old file, and the new one.
pub(super) struct Check<'a> {
    pub(super) file: &'a File,
    pub(super) slots: &'a [Slot],
    pub(super) places: &'a Places,
    pub(super) wrappers: &'a [Wrapper],
    pub(super) splices: &'a Output,
}

/// The source of a part of the memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    /// Bytes from this offset of the file on.
    File(u64),
    Zeros,
    /// Nothing is there.
    Nothing,
}

/// A part of the memory.
struct Piece {
    memory: Range<u64>,
    content: Content,
}

impl Check<'_> {
    pub(super) fn run(
        &self,
        source: &mut Source<'_>,
        inputs: &mut dyn NewInputs,
    ) -> Result<(), Error> {
        let (new, new_wrappers) = {
            let mut reader = output::reader(self.splices, source.reader(), inputs);
            let mut output = Source::new(&mut reader)?;
            let new = File::read(&mut output, &(0..self.splices.size()))?;
            self.headers(&mut output, &new)?;
            let wrappers = wrappers::read(&mut output, &new)?;
            (new, wrappers)
        };
        self.sections(&new)?;
        self.bundles(&new)?;
        self.new_wrappers(&new_wrappers)?;
        self.memory(source, inputs, &new)
    }

    fn fault(&self, address: u64, what: &'static str) -> Error {
        let address = self.file.image_base().wrapping_add(address);
        Error::self_check(address, what)
    }

    /// Checks that headers of another size have the section table and zeros after it, and end before the bytes of
    /// sections and in the same page as before.
    fn headers(&self, output: &mut Source<'_>, new: &File) -> Result<(), Error> {
        let size = |file: &File| u64::from(file.optional.size_of_headers.get(LE));
        let end = size(new);
        if end == size(self.file) {
            return Ok(());
        }
        let in_file = new.sections.iter().map(file_range).filter(|range| !range.is_empty());
        let alignment = self.file.section_alignment();
        if new.table_end() > end
            || in_file.fold(end, |least, range| least.min(range.start)) < end
            || end % self.file.file_alignment() != 0
            || end.next_multiple_of(alignment) != size(self.file).next_multiple_of(alignment)
            || output.skip_zeros(&(new.table_end()..end))? != end
        {
            return Err(self.fault(0, "the headers"));
        }
        Ok(())
    }

    /// Checks that each section starts at the end of the one before, if the old ones do, and that none becomes empty.
    fn sections(&self, new: &File) -> Result<(), Error> {
        let gap = |file: &File| {
            let pairs = file.sections.iter().zip(file.sections.iter().skip(1));
            let mut gaps = pairs.filter_map(|(section, next)| {
                let end = u64::from(section.virtual_address.get(LE)) + memory_size(section);
                let start = u64::from(next.virtual_address.get(LE));
                (end.next_multiple_of(file.section_alignment()) != start).then_some(start)
            });
            gaps.next()
        };
        if gap(self.file).is_none()
            && let Some(address) = gap(new)
        {
            return Err(self.fault(address, "a gap between sections"));
        }
        if self.file.image_end() == u64::from(self.file.optional.size_of_image.get(LE))
            && new.image_end() != u64::from(new.optional.size_of_image.get(LE))
        {
            return Err(self.fault(new.image_end(), "SizeOfImage"));
        }
        let empty = |file: &File| {
            file.sections.iter().filter(|section| section.size_of_raw_data.get(LE) == 0).count()
        };
        if empty(new) > empty(self.file) {
            return Err(self.fault(0, "a section without bytes in the file"));
        }
        Ok(())
    }

    /// Checks that the intended bundle lies at each address.
    fn bundles(&self, new: &File) -> Result<(), Error> {
        for (slot, placement) in self.slots.iter().zip(&self.places.placements) {
            for (bundle, &address) in slot.bundles.iter().zip(&placement.addresses) {
                let size = bundle.new.size();
                if size == 0 {
                    continue;
                }
                let offset = new.offset_of(&(address..address + size));
                let found = offset.map(|at| self.splices.slice(at..at + size));
                if found.as_ref() != Some(&bundle.new) {
                    return Err(self.fault(address, "a bundle"));
                }
            }
        }
        Ok(())
    }

    /// Checks that each wrapper points to its old bundle.
    fn new_wrappers(&self, new: &[Wrapper]) -> Result<(), Error> {
        for (old, new) in self.wrappers.iter().zip(new) {
            let mut placed = self.slots.iter().zip(&self.places.placements);
            let address = placed.find_map(|(slot, placement)| {
                placement.addresses.get(slot.bundle_at(old.target)?).copied()
            });
            let target = address.unwrap_or(old.target);
            if (new.address, new.target) != (old.address, target) {
                return Err(self.fault(old.address, "a wrapper"));
            }
        }
        if new.len() != self.wrappers.len() {
            return Err(self.fault(0, "the number of wrappers"));
        }
        Ok(())
    }

    /// Checks that memory is unchanged except for headers, sections of device code, and offsets into the file.
    fn memory(
        &self,
        source: &mut Source<'_>,
        inputs: &mut dyn NewInputs,
        new: &File,
    ) -> Result<(), Error> {
        let mut may_differ = wrappers::pointers(self.wrappers);
        may_differ.extend(self.slots.iter().map(|slot| slot.memory.start..slot.limit));
        may_differ.extend(super::layout::debug_offsets(self.file));
        may_differ.extend(self.section_number(new)?);
        may_differ.sort_unstable_by_key(|range| range.start);
        let (old_pieces, new_pieces) = (pieces(self.file), pieces(new));
        let start = u64::from(self.file.optional.size_of_headers.get(LE));
        let mut at = start.next_multiple_of(self.file.section_alignment());
        let end = self.file.image_end();
        let mut excepted = may_differ.iter().peekable();
        while at < end {
            while excepted.next_if(|range| range.end <= at).is_some() {}
            let mut until = end;
            if let Some(range) = excepted.peek() {
                if range.contains(&at) {
                    at = range.end;
                    continue;
                }
                until = until.min(range.start);
            }
            let (old_content, old_end) = content_at(&old_pieces, at);
            let (new_content, new_end) = content_at(&new_pieces, at);
            until = until.min(old_end).min(new_end);
            self.same(source, inputs, (old_content, new_content), &(at..until))?;
            at = until;
        }
        Ok(())
    }

    /// Returns the place of the section number in the load configuration, which must lead to the same section.
    fn section_number(&self, new: &File) -> Result<Option<Range<u64>>, Error> {
        let section = |file: &File| {
            let (at, number) = file.section_number()?;
            let section = file.sections.get(usize::from(number).checked_sub(1)?)?;
            Some((at, section.virtual_address.get(LE)))
        };
        let old = section(self.file);
        if old != section(new) {
            return Err(self.fault(0, "the section number in the load configuration"));
        }
        Ok(old.map(|(at, _)| sized(at, size_of::<u16>() as u64)))
    }

    /// Compares a part of the memory.
    fn same(
        &self,
        source: &mut Source<'_>,
        inputs: &mut dyn NewInputs,
        (old, new): (Content, Content),
        memory: &Range<u64>,
    ) -> Result<(), Error> {
        let size = memory.end - memory.start;
        let differs = self.fault(memory.start, "memory");
        match (old, new) {
            (Content::File(old), Content::File(new)) => {
                let old = self.file.window.start + old;
                // Copied bytes need no reading.
                if output::copies(self.splices, &(new..new + size), old) {
                    return Ok(());
                }
                let mut done = 0;
                while done < size {
                    let n = CHUNK.min(size - done);
                    let before = source.read_range(&(old + done..old + done + n))?;
                    let mut reader = output::reader(self.splices, source.reader(), inputs);
                    reader.seek(SeekFrom::Start(new + done))?;
                    let mut after = vec![0; before.len()];
                    reader.read_exact(&mut after)?;
                    if before != after {
                        return Err(differs);
                    }
                    done += n;
                }
                Ok(())
            }
            (old, new) if old == new => Ok(()),
            _ => Err(differs),
        }
    }
}

/// Returns the memory as a loader fills it: bytes of the file, then zeros.
fn pieces(file: &File) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for section in &file.sections {
        let start = u64::from(section.virtual_address.get(LE));
        let filled = start + file.loaded_size(section);
        let end = (start + memory_size(section)).next_multiple_of(file.section_alignment());
        let content = Content::File(file_range(section).start);
        pieces.push(Piece { memory: start..filled, content });
        pieces.push(Piece { memory: filled..end, content: Content::Zeros });
    }
    pieces.retain(|piece| !piece.memory.is_empty());
    pieces
}

/// Returns the source of the memory at an address, and its end.
fn content_at(pieces: &[Piece], at: u64) -> (Content, u64) {
    let next = pieces.partition_point(|piece| piece.memory.end <= at);
    match pieces.get(next) {
        Some(piece) if piece.memory.start <= at => {
            let content = match piece.content {
                Content::File(start) => Content::File(start + (at - piece.memory.start)),
                other => other,
            };
            (content, piece.memory.end)
        }
        Some(piece) => (Content::Nothing, piece.memory.start),
        None => (Content::Nothing, u64::MAX),
    }
}
