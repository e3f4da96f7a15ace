//! The new file: sections of other sizes, and everything that says where in the file something lies.

use std::ops::Range;

use byte_parts::Source;
use object::pe::{
    IMAGE_DIRECTORY_ENTRY_DEBUG, IMAGE_DIRECTORY_ENTRY_SECURITY, IMAGE_SCN_CNT_INITIALIZED_DATA,
    ImageDebugDirectory, ImageOptionalHeader64, ImageSymbol,
};
use object::pod::{bytes_of, bytes_of_slice};
use object::{LittleEndian, U32};

use super::file::{self, File, SYMBOL_SIZE, Section, file_range};
use super::place::{Placement, Places, too_large};
use super::slot::Slot;
use super::wrappers::Wrapper;
use crate::error::Error;
use crate::output::{Input, Output};
use crate::patches::Patch;
use crate::pod::LE;

/// Linkers write less than ten.
const MOST_DEBUG_ENTRIES: u64 = 4096;
/// Symbols read at once.
const SYMBOLS_AT_ONCE: u64 = 4096;

/// A part of the file with something else in its place. Offsets count from the start of the window.
struct Replacement {
    old: Range<u64>,
    new: Output,
}

/// Replacements in the order of the file, which do not overlap.
struct Replacements(Vec<Replacement>);

impl Replacements {
    fn new(mut replacements: Vec<Replacement>) -> Self {
        replacements.sort_by_key(|replacement| (replacement.old.start, replacement.old.end));
        Replacements(replacements)
    }

    /// Returns the new offset of the byte at an offset, after bytes inserted there. `None` inside a replaced range.
    fn map(&self, offset: u64) -> Option<u64> {
        let mut new = offset;
        for Replacement { old, new: with } in &self.0 {
            if old.end > offset {
                return (old.start >= offset).then_some(new);
            }
            new = new + with.size() - (old.end - old.start);
        }
        Some(new)
    }

    /// Applies [`map`](Self::map) to a 32-bit field in which 0 means nothing.
    fn map_field(&self, field: u32) -> Result<u32, Error> {
        match (field, self.map(field.into())) {
            (0, _) => Ok(0),
            (_, Some(offset)) => narrow(offset),
            (_, None) => Err(inside()),
        }
    }

    /// Returns the file with everything replaced, and with these patches of the old file, which keep its length.
    fn apply(mut self, window: &Range<u64>, patches: Vec<Patch>) -> Result<Output, Error> {
        self.0.extend(patches.into_iter().map(|Patch { offset, bytes }| {
            let old = offset..offset + bytes.len() as u64;
            let mut new = Output::new();
            new.push_vec(bytes);
            Replacement { old, new }
        }));
        let Replacements(replacements) = Replacements::new(self.0);
        let mut all = Output::new();
        let mut at = window.start;
        for Replacement { old, new } in replacements {
            let start = window.start + old.start;
            if start < at || window.start + old.end > window.end {
                return Err(Error::inconsistent_sections("tables overlap"));
            }
            all.push_input(Input::File, at..start);
            all.append(&new);
            at = window.start + old.end;
        }
        all.push_input(Input::File, at..window.end);
        Ok(all)
    }
}

fn inside() -> Error {
    Error::inconsistent_sections("other data lies in device code")
}

fn narrow(wide: u64) -> Result<u32, Error> {
    u32::try_from(wide).map_err(|_| too_large())
}

fn word(wide: u64) -> Result<U32<LittleEndian>, Error> {
    narrow(wide).map(|narrow| U32::new(LE, narrow))
}

/// A new file.
pub(super) struct Layout {
    pub(super) splices: Output,
    /// The offset of the field CheckSum in it.
    pub(super) checksum_at: u64,
}

/// Lays out the new file, with headers of this size. Its CheckSum is 0. `certificates` are cut out.
pub(super) fn lay_out(
    source: &mut Source<'_>,
    file: &File,
    slots: &[Slot],
    places: &Places,
    wrappers: &[Wrapper],
    certificates: Option<&Range<u64>>,
) -> Result<Layout, Error> {
    let mut replacements = Vec::new();
    let Places { placements, headers_size } = places;
    let old_size = u64::from(file.optional.size_of_headers.get(LE));
    if *headers_size != old_size {
        // The table, and zeros.
        let mut new = Output::new();
        new.push_zeros(headers_size - file.table_at());
        replacements.push(Replacement { old: file.table_at()..old_size, new });
    }
    let mut parts_of_slots = Vec::new();
    let mut added = Vec::new();
    let end = file.end_of_sections();
    let mut inserted = Output::new();
    for (slot, placement) in slots.iter().zip(placements) {
        let mut old = slot.sections.clone().filter_map(|index| file.sections.get(index));
        let Some(&section) = old.next() else { continue };
        let mut contents = Output::new();
        let mut parts = Vec::new();
        if placement.is_new {
            inserted.pad_to(end.next_multiple_of(file.file_alignment()) - end);
            let memory = placement.start..placement.end;
            added.push(part(file, &section, slot, placement, &memory, &mut inserted)?);
            // No section may be empty in the file.
            contents.push_zeros(file.file_alignment());
            parts.push(Section {
                name: old_name(section.name),
                virtual_size: word(slot.memory.end - slot.memory.start)?,
                size_of_raw_data: word(file.file_alignment())?,
                pointer_to_raw_data: U32::default(),
                ..section
            });
        } else {
            let mut start = slot.memory.start;
            for end in placement.cuts.iter().copied().chain([slot.memory.end.max(placement.end)]) {
                parts.push(part(file, &section, slot, placement, &(start..end), &mut contents)?);
                start = end;
            }
        }
        replacements.push(Replacement { old: file_range(&section), new: contents });
        let rest = old.map(|section| Replacement { old: file_range(section), new: Output::new() });
        replacements.extend(rest);
        parts_of_slots.push((slot, parts));
    }
    let inserted_size = inserted.size();
    replacements.push(Replacement { old: end..end, new: inserted });
    let cut = certificates.cloned();
    replacements.extend(cut.map(|old| Replacement { old, new: Output::new() }));
    let replaced = Replacements::new(replacements);

    let (mut sections, mut numbers) = (Vec::new(), Vec::new());
    for (index, section) in file.sections.iter().enumerate() {
        numbers.push(sections.len() + 1);
        let slot = parts_of_slots.iter().find(|(slot, _)| slot.sections.contains(&index));
        let raw_at = replaced.map_field(section.pointer_to_raw_data.get(LE))?;
        match slot {
            Some((slot, parts)) if slot.sections.start == index => {
                sections.extend(parts.iter().map(|part| (*part, u64::from(raw_at))));
            }
            Some(_) => {}
            None => {
                let mut section = *section;
                section.pointer_to_raw_data.set(LE, raw_at);
                section
                    .pointer_to_relocations
                    .set(LE, replaced.map_field(section.pointer_to_relocations.get(LE))?);
                section
                    .pointer_to_linenumbers
                    .set(LE, replaced.map_field(section.pointer_to_linenumbers.get(LE))?);
                sections.push((section, 0));
            }
        }
    }
    let start_of_inserted = replaced.map(end).ok_or_else(inside)? - inserted_size;
    sections.extend(added.iter().map(|section| (*section, start_of_inserted)));
    let mut table = Vec::new();
    for (mut section, base) in sections {
        section
            .pointer_to_raw_data
            .set(LE, narrow(base + u64::from(section.pointer_to_raw_data.get(LE)))?);
        table.push(section);
    }

    let mut patches =
        headers(source, file, &replaced, &table, *headers_size, certificates.is_some())?;
    let moved = moved(file, slots, placements);
    patches.extend(wrapper_pointers(file, wrappers, &moved));
    patches.extend(symbols(source, file, &moved)?);
    patches.extend(debug_entries(source, file, &replaced)?);
    patches.extend(section_number(file, &numbers)?);
    let mut splices = replaced.apply(&file.window, patches)?;
    let mut table = bytes_of_slice(&table).to_vec();
    if *headers_size == old_size {
        // Zeros in the place of headers that go.
        table.resize(table.len().max(size_of_val(file.sections.as_slice())), 0);
    }
    splices.overwrite(file.table_at(), &table);
    Ok(Layout { splices, checksum_at: file.optional_at() + CHECKSUM_AT })
}

/// Returns the section for these addresses, and appends its contents. The offset of the section counts from the start
/// of the contents.
fn part(
    file: &File,
    section: &Section,
    slot: &Slot,
    placement: &Placement,
    memory: &Range<u64>,
    contents: &mut Output,
) -> Result<Section, Error> {
    let base = contents.size();
    for (bundle, address) in slot.bundles.iter().zip(&placement.addresses) {
        if memory.contains(address) && bundle.new.size() > 0 {
            contents.pad_to(base + (address - memory.start));
            contents.append(&bundle.new.clone());
        }
    }
    let size = (contents.size() - base).next_multiple_of(file.file_alignment());
    contents.pad_to(base + size);
    Ok(Section {
        virtual_address: word(memory.start)?,
        virtual_size: word(memory.end - memory.start)?,
        size_of_raw_data: word(size)?,
        pointer_to_raw_data: word(base)?,
        ..*section
    })
}

fn headers(
    source: &mut Source<'_>,
    file: &File,
    replaced: &Replacements,
    table: &[Section],
    size: u64,
    drop_certificates: bool,
) -> Result<Vec<Patch>, Error> {
    let mut coff = file.coff;
    coff.number_of_sections.set(LE, u16::try_from(table.len()).map_err(|_| too_large())?);
    coff.pointer_to_symbol_table.set(LE, replaced.map_field(coff.pointer_to_symbol_table.get(LE))?);

    let mut optional = file.optional;
    optional.check_sum.set(LE, 0);
    optional.size_of_headers.set(LE, narrow(size)?);
    // Linkers do not agree on what they count: only what changed is taken into account, and less than that is nothing.
    let initialized = |sections: &[Section]| -> u64 {
        let counted = |section: &&Section| {
            section.characteristics.get(LE).contains(IMAGE_SCN_CNT_INITIALIZED_DATA)
        };
        sections
            .iter()
            .filter(counted)
            .map(|section| u64::from(section.size_of_raw_data.get(LE)))
            .sum()
    };
    let size = u64::from(optional.size_of_initialized_data.get(LE)) + initialized(table);
    optional
        .size_of_initialized_data
        .set(LE, narrow(size.saturating_sub(initialized(&file.sections)))?);
    if let Some(last) = table.last() {
        let end = u64::from(last.virtual_address.get(LE)) + file::memory_size(last);
        let end = narrow(end.next_multiple_of(file.section_alignment()))?;
        optional.size_of_image.set(LE, optional.size_of_image.get(LE).max(end));
    }

    let mut directories = file.directories.clone();
    if drop_certificates
        && let Some(directory) = directories.get_mut(IMAGE_DIRECTORY_ENTRY_SECURITY)
    {
        directory.virtual_address.set(LE, 0);
        directory.size.set(LE, 0);
    }

    let patches = [
        Patch::new(file.coff_at, bytes_of(&coff)),
        Patch::new(
            file.optional_at(),
            [bytes_of(&optional), bytes_of_slice(&directories)].concat(),
        ),
    ];
    let mut changed = Vec::new();
    for patch in patches {
        let size = patch.bytes.len() as u64;
        if file::bytes(source, &file.window, "the headers", patch.offset, size)? != patch.bytes {
            changed.push(patch);
        }
    }
    Ok(changed)
}

/// The offset of CheckSum in the optional header.
pub(super) const CHECKSUM_AT: u64 = std::mem::offset_of!(ImageOptionalHeader64, check_sum) as u64;

/// A bundle that replaced. Addresses count from the image base.
struct Moved {
    old: u64,
    new: u64,
    /// The start of its section.
    section_start: u64,
    /// The number of its section, where it is a new one.
    new_section: Option<u16>,
}

/// Returns the moved bundles in the order of the old addresses.
fn moved(file: &File, slots: &[Slot], placements: &[Placement]) -> Vec<Moved> {
    let mut moved = Vec::new();
    // There was room for a header for each new one.
    let mut sections = file.coff.number_of_sections.get(LE);
    for (slot, placement) in slots.iter().zip(placements) {
        sections += u16::from(placement.is_new);
        let new_section = placement.is_new.then_some(sections);
        let section_start = placement.start;
        let bundles = slot.bundles.iter().zip(&placement.addresses);
        let moving =
            bundles.filter(|(bundle, new)| bundle.new.size() > 0 && bundle.old.start != **new);
        moved.extend(moving.map(|(bundle, &new)| {
            let old = bundle.old.start;
            Moved { old, new, section_start, new_section }
        }));
    }
    moved
}

fn find(moved: &[Moved], old: u64) -> Option<&Moved> {
    moved.binary_search_by_key(&old, |moved| moved.old).ok().and_then(|index| moved.get(index))
}

fn wrapper_pointers(file: &File, wrappers: &[Wrapper], moved: &[Moved]) -> Vec<Patch> {
    let patch = |wrapper: &Wrapper| {
        let new = file.image_base().wrapping_add(find(moved, wrapper.target)?.new);
        Some(Patch::word(wrapper.pointer_at, new))
    };
    wrappers.iter().filter_map(patch).collect()
}

/// Returns the patches of the symbols of bundles that move. Their values count from the start of their section.
fn symbols(source: &mut Source<'_>, file: &File, moved: &[Moved]) -> Result<Vec<Patch>, Error> {
    let mut patches = Vec::new();
    if moved.is_empty() || !file.has_symbols() {
        return Ok(patches);
    }
    let start = u64::from(file.coff.pointer_to_symbol_table.get(LE));
    let count = u64::from(file.coff.number_of_symbols.get(LE));
    let address = |section: u16| {
        let section = file.sections.get(usize::from(section).checked_sub(1)?)?;
        Some(u64::from(section.virtual_address.get(LE)))
    };
    let mut auxiliary = 0;
    let mut first = 0;
    while first < count {
        let at_once = SYMBOLS_AT_ONCE.min(count - first);
        let mut at = start + first * SYMBOL_SIZE;
        let table: Vec<ImageSymbol> =
            file::table(source, &file.window, "the symbol table", at, at_once)?;
        for mut symbol in table {
            let symbol_at = at;
            at += SYMBOL_SIZE;
            if auxiliary > 0 {
                auxiliary -= 1;
                continue;
            }
            auxiliary = symbol.number_of_aux_symbols;
            let Some(start) = address(symbol.section_number.get(LE)) else { continue };
            let old = start + u64::from(symbol.value.get(LE));
            let Some(moved) = find(moved, old) else { continue };
            symbol.value.set(LE, narrow(moved.new - moved.section_start)?);
            symbol
                .section_number
                .set(LE, moved.new_section.unwrap_or(symbol.section_number.get(LE)));
            patches.push(Patch::new(symbol_at, bytes_of(&symbol)));
        }
        first += at_once;
    }
    Ok(patches)
}

/// Returns the patches of the entries of the debug directory whose data moved.
fn debug_entries(
    source: &mut Source<'_>,
    file: &File,
    replaced: &Replacements,
) -> Result<Vec<Patch>, Error> {
    let damaged = || Error::inconsistent_sections("the debug directory is in no section");
    let Some(directory) = file.directory(IMAGE_DIRECTORY_ENTRY_DEBUG) else {
        return Ok(Vec::new());
    };
    let at = file.offset_of(&directory).ok_or_else(damaged)?;
    let size = size_of::<ImageDebugDirectory>() as u64;
    let count = (directory.end - directory.start) / size;
    if count > MOST_DEBUG_ENTRIES {
        return Err(Error::inconsistent_sections("the debug directory is too large"));
    }
    let entries: Vec<ImageDebugDirectory> =
        file::table(source, &file.window, "the debug directory", at, count)?;
    let mut patches = Vec::new();
    for (entry, at) in entries.into_iter().zip((0..).map(|index| at + index * size)) {
        let raw_at = replaced.map_field(entry.pointer_to_raw_data.get(LE))?;
        if raw_at != entry.pointer_to_raw_data.get(LE) {
            let field = std::mem::offset_of!(ImageDebugDirectory, pointer_to_raw_data) as u64;
            patches.push(Patch::new(at + field, raw_at.to_le_bytes()));
        }
    }
    Ok(patches)
}

/// Returns the patch of the section number in the load configuration. `numbers` has the new number of each section.
fn section_number(file: &File, numbers: &[usize]) -> Result<Option<Patch>, Error> {
    let Some((address, old)) = file.section_number() else { return Ok(None) };
    // 1 is the first section.
    let Some(&new) = usize::from(old).checked_sub(1).and_then(|index| numbers.get(index)) else {
        return Ok(None);
    };
    let new = u16::try_from(new).map_err(|_| too_large())?;
    let at = file.offset_of(&(address..address + size_of_val(&new) as u64));
    let at =
        at.ok_or_else(|| Error::inconsistent_sections("the load configuration is in no section"))?;
    Ok((new != old).then(|| Patch::new(at, new.to_le_bytes())))
}

/// Returns the addresses of the offsets in the debug directory.
pub(super) fn debug_offsets(file: &File) -> Vec<Range<u64>> {
    let size = size_of::<ImageDebugDirectory>() as u64;
    let field = std::mem::offset_of!(ImageDebugDirectory, pointer_to_raw_data) as u64;
    // No directory has no entries.
    let directory = file.directory(IMAGE_DIRECTORY_ENTRY_DEBUG).unwrap_or_default();
    let count = (directory.end - directory.start) / size;
    let offsets = (0..count).map(|index| directory.start + index * size + field);
    offsets.map(|start| start..start + 4).collect()
}

/// Returns the name of a section whose contents have moved, which had this name.
fn old_name(name: [u8; 8]) -> [u8; 8] {
    if name.starts_with(b".hip") { *b".hip_old" } else { *b".nv_old\0" }
}
