//! The new file: sections of other sizes, and everything that says where in the file something lies.

use std::ops::Range;

use byte_parts::Source;
use zerocopy::IntoBytes;

use super::file::{
    self, DIRECTORY_CERTIFICATE, DIRECTORY_DEBUG, File, SECTION_INITIALIZED, SYMBOL_SIZE,
    file_range,
};
use super::place::{Placement, TOO_LARGE};
use super::slot::Slot;
use super::wrappers::Wrapper;
use crate::error::Error;
use crate::output::{Input, Output};
use crate::wire::{CoffSection, CoffSymbol, PeDebugEntry, PeOptionalHeader64};

/// What a section is called whose contents have a new place.
const OLD_NAME: [u8; 8] = *b".hip_old";
/// Linkers write less than ten.
const MOST_DEBUG_ENTRIES: u64 = 4096;
/// Symbols read at once.
const SYMBOLS_AT_ONCE: u64 = 4096;

/// Other bytes at an offset.
type Patch = (u64, Vec<u8>);

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

    /// Where the byte at an offset goes: behind what is inserted there. `None` in the middle of what is replaced.
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

    /// [`map`](Self::map) of a number of 32 bits that is 0 where there is nothing.
    fn map_field(&self, field: u32) -> Result<u32, Error> {
        match (field, self.map(field.into())) {
            (0, _) => Ok(0),
            (_, Some(offset)) => narrow(offset),
            (_, None) => Err(INSIDE),
        }
    }

    /// The file with everything replaced, and these bytes of the old file by as many others.
    fn apply(mut self, window: &Range<u64>, patches: Vec<Patch>) -> Result<Output, Error> {
        self.0.extend(patches.into_iter().map(|(offset, bytes)| {
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
                return Err(Error::InconsistentSections { what: "tables overlap" });
            }
            all.push_input(Input::File, at..start);
            all.append(&new);
            at = window.start + old.end;
        }
        all.push_input(Input::File, at..window.end);
        Ok(all)
    }
}

const INSIDE: Error = Error::InconsistentSections { what: "other data lies in device code" };

fn narrow(wide: u64) -> Result<u32, Error> {
    u32::try_from(wide).map_err(|_| TOO_LARGE)
}

/// A new file.
pub(super) struct Layout {
    pub(super) splices: Output,
    /// Where in it the field CheckSum lies.
    pub(super) checksum_at: u64,
}

/// Lays out the new file. Its CheckSum is 0. `certificates` are cut out.
pub(super) fn lay_out(
    source: &mut Source<'_>,
    file: &File,
    slots: &[Slot],
    placements: &[Placement],
    wrappers: &[Wrapper],
    certificates: Option<&Range<u64>>,
) -> Result<Layout, Error> {
    let mut replacements = Vec::new();
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
            parts.push(CoffSection {
                name: OLD_NAME,
                virtual_size: narrow(slot.memory.end - slot.memory.start)?.into(),
                raw_size: narrow(file.file_alignment())?.into(),
                raw_at: 0.into(),
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

    let mut sections = Vec::new();
    for (index, section) in file.sections.iter().enumerate() {
        let slot = parts_of_slots.iter().find(|(slot, _)| slot.sections.contains(&index));
        let raw_at = replaced.map_field(section.raw_at.get())?;
        match slot {
            Some((slot, parts)) if slot.sections.start == index => {
                sections.extend(parts.iter().map(|part| (*part, u64::from(raw_at))));
            }
            Some(_) => {}
            None => {
                let mut section = *section;
                section.raw_at.set(raw_at);
                section.relocations_at.set(replaced.map_field(section.relocations_at.get())?);
                section.lines_at.set(replaced.map_field(section.lines_at.get())?);
                sections.push((section, 0));
            }
        }
    }
    let start_of_inserted = replaced.map(end).ok_or(INSIDE)? - inserted_size;
    sections.extend(added.iter().map(|section| (*section, start_of_inserted)));
    let mut table = Vec::new();
    for (mut section, base) in sections {
        section.raw_at.set(narrow(base + u64::from(section.raw_at.get()))?);
        table.push(section);
    }

    let mut patches = headers(source, file, &replaced, &table, certificates.is_some())?;
    let moved = moved(file, slots, placements);
    patches.extend(wrapper_pointers(file, wrappers, &moved));
    patches.extend(symbols(source, file, &moved)?);
    patches.extend(debug_entries(source, file, &replaced)?);
    let splices = replaced.apply(&file.window, patches)?;
    Ok(Layout { splices, checksum_at: file.optional_at() + CHECKSUM_AT })
}

/// The section for these addresses, and its contents behind the others. Where it starts counts from their start.
fn part(
    file: &File,
    section: &CoffSection,
    slot: &Slot,
    placement: &Placement,
    memory: &Range<u64>,
    contents: &mut Output,
) -> Result<CoffSection, Error> {
    let base = contents.size();
    for (bundle, address) in slot.bundles.iter().zip(&placement.addresses) {
        if memory.contains(address) && bundle.new.size() > 0 {
            contents.pad_to(base + (address - memory.start));
            contents.append(&bundle.new.clone());
        }
    }
    let size = (contents.size() - base).next_multiple_of(file.file_alignment());
    contents.pad_to(base + size);
    Ok(CoffSection {
        virtual_address: narrow(memory.start)?.into(),
        virtual_size: narrow(memory.end - memory.start)?.into(),
        raw_size: narrow(size)?.into(),
        raw_at: narrow(base)?.into(),
        ..*section
    })
}

fn headers(
    source: &mut Source<'_>,
    file: &File,
    replaced: &Replacements,
    table: &[CoffSection],
    drop_certificates: bool,
) -> Result<Vec<Patch>, Error> {
    let mut coff = file.coff;
    coff.sections.set(u16::try_from(table.len()).map_err(|_| TOO_LARGE)?);
    coff.symbols_at.set(replaced.map_field(coff.symbols_at.get())?);

    let mut optional = file.optional;
    optional.checksum.set(0);
    // Linkers do not agree on what they count: only what changed is taken into account.
    let initialized = |sections: &[CoffSection]| -> u64 {
        let counted =
            |section: &&CoffSection| section.characteristics.get() & SECTION_INITIALIZED != 0;
        sections.iter().filter(counted).map(|section| u64::from(section.raw_size.get())).sum()
    };
    let size = u64::from(optional.initialized_size.get()) + initialized(table);
    optional.initialized_size.set(narrow(size.saturating_sub(initialized(&file.sections)))?);
    if let Some(last) = table.last() {
        let end = u64::from(last.virtual_address.get()) + file::memory_size(last);
        let end = narrow(end.next_multiple_of(file.section_alignment()))?;
        optional.image_size.set(optional.image_size.get().max(end));
    }

    let mut directories = file.directories.clone();
    if drop_certificates && let Some(directory) = directories.get_mut(DIRECTORY_CERTIFICATE) {
        directory.address.set(0);
        directory.size.set(0);
    }

    let mut table = table.as_bytes().to_vec();
    let old_size = file.sections.as_bytes().len();
    table.resize(table.len().max(old_size), 0);
    let patches = [
        (file.coff_at, coff.as_bytes().to_vec()),
        (file.optional_at(), [optional.as_bytes(), directories.as_bytes()].concat()),
        (file.table_at(), table),
    ];
    let mut changed = Vec::new();
    for (offset, new) in patches {
        let size = new.len() as u64;
        if file::bytes(source, &file.window, "the headers", offset, size)? != new {
            changed.push((offset, new));
        }
    }
    Ok(changed)
}

/// Where CheckSum lies in the optional header.
const CHECKSUM_AT: u64 = std::mem::offset_of!(PeOptionalHeader64, checksum) as u64;

/// A bundle that replaced. Addresses count from the image base.
struct Moved {
    old: u64,
    new: u64,
    /// Where its section starts.
    section_start: u64,
    /// The number of its section, where it is a new one.
    new_section: Option<u16>,
}

/// In the order of the old addresses.
fn moved(file: &File, slots: &[Slot], placements: &[Placement]) -> Vec<Moved> {
    let mut moved = Vec::new();
    let mut sections = u16::try_from(file.sections.len()).unwrap_or(u16::MAX);
    for (slot, placement) in slots.iter().zip(placements) {
        sections = sections.saturating_add(placement.is_new.into());
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
        Some((wrapper.pointer_at, new.to_le_bytes().to_vec()))
    };
    wrappers.iter().filter_map(patch).collect()
}

/// Symbols of bundles that move. Their values count from the start of their section.
fn symbols(source: &mut Source<'_>, file: &File, moved: &[Moved]) -> Result<Vec<Patch>, Error> {
    let mut patches = Vec::new();
    if moved.is_empty() || !file.has_symbols() {
        return Ok(patches);
    }
    let start = u64::from(file.coff.symbols_at.get());
    let count = u64::from(file.coff.symbols.get());
    let address = |section: u16| {
        let section = file.sections.get(usize::from(section).checked_sub(1)?)?;
        Some(u64::from(section.virtual_address.get()))
    };
    let mut auxiliary = 0;
    let mut first = 0;
    while first < count {
        let at_once = SYMBOLS_AT_ONCE.min(count - first);
        let mut at = start + first * SYMBOL_SIZE;
        let table: Vec<CoffSymbol> =
            file::table(source, &file.window, "the symbol table", at, at_once)?;
        for mut symbol in table {
            let symbol_at = at;
            at += SYMBOL_SIZE;
            if auxiliary > 0 {
                auxiliary -= 1;
                continue;
            }
            auxiliary = symbol.auxiliary;
            let Some(start) = address(symbol.section.get()) else { continue };
            let old = start + u64::from(symbol.value.get());
            let Some(moved) = find(moved, old) else { continue };
            symbol.value.set(narrow(moved.new - moved.section_start)?);
            symbol.section.set(moved.new_section.unwrap_or(symbol.section.get()));
            patches.push((symbol_at, symbol.as_bytes().to_vec()));
        }
        first += at_once;
    }
    Ok(patches)
}

/// Entries of the debug directory, as far as their data lies elsewhere now.
fn debug_entries(
    source: &mut Source<'_>,
    file: &File,
    replaced: &Replacements,
) -> Result<Vec<Patch>, Error> {
    let damaged = Error::InconsistentSections { what: "the debug directory is in no section" };
    let Some(directory) = file.directory(DIRECTORY_DEBUG) else { return Ok(Vec::new()) };
    let at = file.offset_of(&directory).ok_or(damaged)?;
    let size = size_of::<PeDebugEntry>() as u64;
    let count = (directory.end - directory.start) / size;
    if count > MOST_DEBUG_ENTRIES {
        return Err(Error::InconsistentSections { what: "the debug directory is too large" });
    }
    let entries: Vec<PeDebugEntry> =
        file::table(source, &file.window, "the debug directory", at, count)?;
    let mut patches = Vec::new();
    for (entry, at) in entries.into_iter().zip((0..).map(|index| at + index * size)) {
        let raw_at = replaced.map_field(entry.raw_at.get())?;
        if raw_at != entry.raw_at.get() {
            let field = std::mem::offset_of!(PeDebugEntry, raw_at) as u64;
            patches.push((at + field, raw_at.to_le_bytes().to_vec()));
        }
    }
    Ok(patches)
}

/// Addresses of the offsets in the debug directory.
pub(super) fn debug_offsets(file: &File) -> Vec<Range<u64>> {
    let size = size_of::<PeDebugEntry>() as u64;
    let field = std::mem::offset_of!(PeDebugEntry, raw_at) as u64;
    let directory = file.directory(DIRECTORY_DEBUG).unwrap_or_default();
    let count = (directory.end - directory.start) / size;
    let offsets = (0..count).map(|index| directory.start + index * size + field);
    offsets.map(|start| start..start + 4).collect()
}
