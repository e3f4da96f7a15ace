//! What else may refer to bundles: everything that would have to follow a bundle that moves, and cannot.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use super::file::{
    DIRECTORY_EXPORT, DIRECTORY_RELOCATION, FILE_RELOCATIONS_STRIPPED, File, PAGE, SECTION_CODE,
    SECTION_EXECUTABLE, field_u32, field_u64, file_range,
};
use super::slot::Slot;
use super::wrappers::Wrapper;
use crate::edit::EditError;
use crate::source::Source;
use crate::wire::CoffSection;

/// Types of base relocations: none, 32 bits, 64 bits.
const BASED_ABSOLUTE: u16 = 0;
const BASED_HIGHLOW: u16 = 3;
const BASED_DIR64: u16 = 10;
const BLOCK_HEADER_SIZE: u64 = 8;
const LARGEST_BLOCK: u64 = BLOCK_HEADER_SIZE + 2 * PAGE;

/// Where the export directory says how many addresses there are, and where they are.
const EXPORT_COUNT_AT: u64 = 20;
const EXPORT_ADDRESSES_AT: u64 = 28;
const EXPORT_HEADER_SIZE: u64 = 40;

/// Bytes of a section that are looked at together, and how many more windows into them may take.
const CHUNK: u64 = 64 * 1024;
const LONGEST_WINDOW_LEN: usize = 8;
const LONGEST_WINDOW: u64 = LONGEST_WINDOW_LEN as u64;

/// The first reference to each address that has any beside the wrappers' pointers.
pub(super) struct References<'a> {
    file: &'a File,
    /// What may be referred to, in ascending order.
    starts: &'a [u64],
    /// Addresses of the wrappers' pointers, in ascending order.
    pointers: Vec<u64>,
    found: BTreeMap<u64, u64>,
}

impl<'a> References<'a> {
    /// Finds what refers to one of these addresses, which are in ascending order, in
    ///
    /// - values that a base relocation makes an address; without base relocations, values anywhere,
    /// - exports,
    /// - code: displacements that count from the end of an instruction, as x86-64 has them, and ADR and ADRP of ARM64.
    pub(super) fn find(
        source: &mut Source<'_>,
        file: &'a File,
        slots: &[Slot],
        wrappers: &[Wrapper],
        starts: &'a [u64],
    ) -> Result<BTreeMap<u64, u64>, EditError> {
        let mut pointers: Vec<_> = wrappers.iter().map(Wrapper::pointer).collect();
        pointers.sort_unstable();
        let mut references = References { file, starts, pointers, found: BTreeMap::new() };
        let stripped = file.coff.characteristics.get() & FILE_RELOCATIONS_STRIPPED != 0;
        let relocations = file.directory(DIRECTORY_RELOCATION).filter(|_| !stripped);
        if let Some(relocations) = &relocations {
            references.relocated_values(source, slots, relocations)?;
        }
        references.exports(source)?;
        for (index, section) in file.sections.iter().enumerate() {
            if slots.iter().any(|slot| slot.sections.contains(&index)) {
                continue;
            }
            let is_code = section.characteristics.get() & (SECTION_CODE | SECTION_EXECUTABLE) != 0;
            let absolute = relocations.is_none();
            if is_code || absolute {
                references.section(source, section, is_code, absolute)?;
            }
        }
        Ok(references.found)
    }

    /// Notes a reference at an address to another, if that one is of interest.
    fn note(&mut self, at: u64, target: u64) {
        if self.starts.binary_search(&target).is_ok() {
            self.found.entry(target).or_insert(at);
        }
    }

    fn relocated_values(
        &mut self,
        source: &mut Source<'_>,
        slots: &[Slot],
        relocations: &Range<u64>,
    ) -> Result<(), EditError> {
        let inconsistent = |what| EditError::InconsistentSections { what };
        let damaged = inconsistent("base relocations are damaged");
        let Some(offset) = self.file.offset_of(relocations) else { return Err(damaged) };
        let mut at = self.file.window.start + offset;
        let end = at + (relocations.end - relocations.start);
        while end - at >= BLOCK_HEADER_SIZE {
            let header = source.read_range(&(at..at + BLOCK_HEADER_SIZE))?;
            let page = u64::from(field_u32(&header, 0));
            let size = u64::from(field_u32(&header, 4));
            // Each location of a page is listed once.
            if !(BLOCK_HEADER_SIZE..=(end - at).min(LARGEST_BLOCK)).contains(&size) {
                return Err(damaged);
            }
            let entries = source.read_range(&(at + BLOCK_HEADER_SIZE..at + size))?;
            at += size;
            let values = self.page(source, page)?;
            for entry in entries.as_chunks::<2>().0 {
                let entry = u16::from_le_bytes(*entry);
                let (kind, within) = (entry >> 12, u64::from(entry & 0xfff));
                let location = page + within;
                if kind == BASED_ABSOLUTE {
                    continue;
                }
                if slots.iter().any(|slot| (slot.memory.start..slot.limit).contains(&location)) {
                    return Err(inconsistent("base relocations in device code"));
                }
                if self.pointers.binary_search(&location).is_ok() && kind == BASED_DIR64 {
                    continue;
                }
                let value = match kind {
                    BASED_DIR64 => field_u64(&values, within),
                    BASED_HIGHLOW => field_u32(&values, within).into(),
                    // Nobody knows to what it refers.
                    _ => {
                        for &start in self.starts {
                            self.found.entry(start).or_insert(location);
                        }
                        continue;
                    }
                };
                self.note(location, value.wrapping_sub(self.file.image_base()));
            }
        }
        Ok(())
    }

    /// The bytes of a page that come from the file, and some more.
    fn page(&self, source: &mut Source<'_>, page: u64) -> io::Result<Vec<u8>> {
        let Some(section) = self.file.section_at(page) else { return Ok(Vec::new()) };
        let into = page - u64::from(section.virtual_address.get());
        let size = self.file.loaded_size(section);
        let start = self.file.window.start + file_range(section).start;
        let end = size.min(into + PAGE + LONGEST_WINDOW);
        source.read_range(&(start + into.min(end)..start + end))
    }

    fn exports(&mut self, source: &mut Source<'_>) -> io::Result<()> {
        let Some(directory) = self.file.directory(DIRECTORY_EXPORT) else { return Ok(()) };
        let header = directory.start..directory.start + EXPORT_HEADER_SIZE;
        let Some(header) = self.file.read_at(source, &header)? else { return Ok(()) };
        let start = u64::from(field_u32(&header, EXPORT_ADDRESSES_AT));
        let count = u64::from(field_u32(&header, EXPORT_COUNT_AT));
        let addresses = start..start + count * 4;
        let Some(offset) = self.file.offset_of(&addresses) else { return Ok(()) };
        let mut entry = [0; 4];
        for index in 0..count {
            let at = self.file.window.start + offset + index * 4;
            source.read_exact_at(at, &mut entry)?;
            self.note(start + index * 4, u32::from_le_bytes(entry).into());
        }
        Ok(())
    }

    fn section(
        &mut self,
        source: &mut Source<'_>,
        section: &CoffSection,
        is_code: bool,
        absolute: bool,
    ) -> io::Result<()> {
        let size = self.file.loaded_size(section);
        let start = self.file.window.start + file_range(section).start;
        let mut at = 0;
        while at < size {
            let chunk = at..size.min(at + CHUNK);
            let end = size.min(chunk.end + LONGEST_WINDOW);
            let mut bytes = source.read_range(&(start + at..start + end))?;
            if end == size {
                bytes.resize(bytes.len() + LONGEST_WINDOW_LEN, 0);
            }
            let address = u64::from(section.virtual_address.get()) + at;
            let windows = usize::try_from(chunk.end - at).unwrap_or(usize::MAX);
            if is_code {
                self.displacements(&bytes, address, windows);
                self.page_addresses(&bytes, address, windows);
            }
            if absolute {
                self.absolute_values(&bytes, address, windows);
            }
            at = chunk.end;
        }
        Ok(())
    }

    /// Displacements of 32 bits, which count from the end of their instruction. An immediate value may follow them.
    fn displacements(&mut self, bytes: &[u8], address: u64, windows: usize) {
        let (Some(&first), Some(&last)) = (self.starts.first(), self.starts.last()) else { return };
        for (window, at) in bytes.windows(4).take(windows).zip(address..) {
            let Some(displacement) = window.first_chunk() else { continue };
            let displacement = i64::from(i32::from_le_bytes(*displacement));
            let target = (at + 4).wrapping_add_signed(displacement);
            if target.wrapping_add(4) < first || target > last {
                continue;
            }
            for immediate in [0, 1, 2, 4] {
                self.note(at, target.wrapping_add(immediate));
            }
        }
    }

    /// ADR, which makes an address, and ADRP, which makes that of a page.
    fn page_addresses(&mut self, bytes: &[u8], address: u64, windows: usize) {
        for (instruction, at) in
            bytes.as_chunks::<4>().0.iter().take(windows.div_ceil(4)).zip((address..).step_by(4))
        {
            let instruction = u32::from_le_bytes(*instruction);
            if instruction & 0x1f00_0000 != 0x1000_0000 {
                continue;
            }
            // 21 bits with a sign: two of them low in the instruction's upper byte, the others in the middle.
            let low = instruction >> 29 & 3;
            let high = instruction >> 5 & 0x7_ffff;
            let immediate = i64::from(((high << 2 | low) << 11).cast_signed() >> 11);
            match instruction >> 31 {
                0 => self.note(at, at.wrapping_add_signed(immediate)),
                _ => {
                    let page = (at & !(PAGE - 1)).wrapping_add_signed(immediate << 12);
                    let from = self.starts.partition_point(|&start| start < page);
                    let starts = self.starts.iter().skip(from);
                    let in_page = starts.take_while(|&&start| start - page < PAGE);
                    for &start in in_page {
                        self.found.entry(start).or_insert(at);
                    }
                }
            }
        }
    }

    /// Addresses as they are without base relocations.
    fn absolute_values(&mut self, bytes: &[u8], address: u64, windows: usize) {
        let base = self.file.image_base();
        for (window, at) in bytes.windows(LONGEST_WINDOW_LEN).take(windows).zip(address..) {
            if self.pointers.binary_search(&at).is_ok() {
                continue;
            }
            let value = field_u64(window, 0);
            self.note(at, value.wrapping_sub(base));
            let low = value & u64::from(u32::MAX);
            self.note(at, low.wrapping_sub(base));
        }
    }
}
