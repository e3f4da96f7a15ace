//! References to bundles other than wrappers: places that cannot follow a bundle that moves.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use byte_parts::Source;
use object::pe::{
    IMAGE_DIRECTORY_ENTRY_EXCEPTION, IMAGE_DIRECTORY_ENTRY_EXPORT, IMAGE_REL_BASED_DIR64,
    IMAGE_REL_BASED_HIGHLOW, IMAGE_SCN_CNT_CODE, IMAGE_SCN_MEM_EXECUTE, ImageExportDirectory,
    ImageRuntimeFunctionEntry,
};

use super::base_relocations;
use super::file::{File, PAGE, file_range};
use super::hybrid::Code;
use super::slot::Slot;
use super::wrappers::Wrapper;
use crate::error::Error;
use crate::linked::read::{u32_at, u64_at};
use crate::linked::scan::{Function, Machine, Scanner, Targets, absolute, blocks, settle};
use crate::pod::{LE, first};
use crate::tables::sized;

/// Bytes of the largest value that is relocated.
const LARGEST_VALUE: u64 = 8;

/// Bytes of an entry of the table of functions.
const FUNCTION_SIZE: u64 = size_of::<ImageRuntimeFunctionEntry>() as u64;

/// The target of a search. Its addresses count from the image base, those of what is found from 0.
struct Search<'a> {
    file: &'a File,
    slots: &'a [Slot],
    /// Addresses of the wrappers' pointers, in ascending order.
    pointers: Vec<u64>,
    targets: Targets<'a>,
}

/// Returns the bundles that something else than a wrapper may refer to, by their addresses, each with the address
/// of a reference. Looked at are
///
/// - values that a base relocation makes an address; without base relocations, values anywhere,
/// - exports,
/// - code.
pub(super) fn find(
    source: &mut Source<'_>,
    file: &File,
    slots: &[Slot],
    wrappers: &[Wrapper],
) -> Result<BTreeMap<u64, u64>, Error> {
    let base = file.image_base();
    let bundles = || slots.iter().flat_map(|slot| &slot.bundles);
    let mut starts: Vec<_> = bundles().map(|bundle| base.wrapping_add(bundle.old.start)).collect();
    starts.sort_unstable();
    let all = starts.first().copied().unwrap_or(0)..u64::MAX;
    let mut pointers: Vec<_> = wrappers.iter().map(Wrapper::pointer).collect();
    pointers.sort_unstable();
    let relocated = base_relocations::addresses(file).is_some();
    let mut targets = Targets::new(&starts, &all, relocated);
    for wrapper in wrappers {
        targets.wrapped(base.wrapping_add(wrapper.target));
    }
    let mut search = Search { file, slots, pointers, targets };
    search.relocated_values(source)?;
    search.exports(source)?;
    let code = Code::read(source, file)?;
    search.sections(source, &code, relocated)?;
    let is_x86_64 = code.only() == Some(Machine::X86_64);
    settle(source, &mut search.targets, &mut |source, address| {
        if is_x86_64 { function(source, file, address) } else { Ok(None) }
    })?;

    let found = search.targets.found().into_iter();
    let from_base = |address: u64| address.wrapping_sub(base);
    Ok(found.filter_map(|(n, at)| Some((from_base(*starts.get(n)?), from_base(at)))).collect())
}

/// Returns the function at an address, or a part of one, from the exception directory of a file with code for x86-64
/// alone: a table of functions ("PE Format", "The .pdata Section").
fn function(source: &mut Source<'_>, file: &File, address: u64) -> io::Result<Option<Function>> {
    let at = address.wrapping_sub(file.image_base());
    let table = file.directory(IMAGE_DIRECTORY_ENTRY_EXCEPTION);
    let Some((table, offset)) =
        table.and_then(|table| Some((table.clone(), file.offset_of(&table)?)))
    else {
        return Ok(None);
    };
    let mut functions = 0..(table.end - table.start) / FUNCTION_SIZE;
    while functions.start < functions.end {
        let middle = functions.start.midpoint(functions.end);
        let mut entry = [0; size_of::<ImageRuntimeFunctionEntry>()];
        let place = file.window.start + offset + middle * FUNCTION_SIZE;
        source.read_exact_at(place, &mut entry)?;
        let Some(entry) = first::<ImageRuntimeFunctionEntry>(&entry) else { return Ok(None) };
        let code = entry.begin_address.get(LE).into()..entry.end_address.get(LE).into();
        if code.contains(&at) {
            let offset = file.offset_of(&code).map(|offset| file.window.start + offset);
            let base = file.image_base();
            let addresses = base.wrapping_add(code.start)..base.wrapping_add(code.end);
            return Ok(offset.map(|offset| Function { addresses, offset }));
        }
        if code.start <= at {
            functions.start = middle + 1;
        } else {
            functions.end = middle;
        }
    }
    Ok(None)
}

impl Search<'_> {
    fn relocated_values(&mut self, source: &mut Source<'_>) -> Result<(), Error> {
        base_relocations::visit(source, self.file, |source, page, locations| {
            let values = self.page(source, page)?;
            for &(within, kind) in locations {
                let location = page + within as u64;
                if self.slots.iter().any(|slot| (slot.memory.start..slot.limit).contains(&location))
                {
                    return Err(Error::inconsistent_sections("base relocations in device code"));
                }
                let is_wrapper = self.pointers.binary_search(&location).is_ok();
                match kind {
                    IMAGE_REL_BASED_DIR64 if is_wrapper => {}
                    IMAGE_REL_BASED_DIR64 => self.pointer(location, u64_at(&values, within)),
                    IMAGE_REL_BASED_HIGHLOW => {
                        self.pointer(location, u32_at(&values, within).into());
                    }
                    // Its target is not known.
                    _ => self.targets.all(self.file.image_base().wrapping_add(location)),
                }
            }
            Ok(())
        })
    }

    /// Returns the bytes of a page that come from the file, and some more.
    fn page(&self, source: &mut Source<'_>, page: u64) -> io::Result<Vec<u8>> {
        let Some(section) = self.file.section_at(page) else { return Ok(Vec::new()) };
        let into = page - u64::from(section.virtual_address.get(LE));
        let size = self.file.loaded_size(section);
        let start = self.file.window.start + file_range(section).start;
        let end = size.min(into + PAGE + LARGEST_VALUE);
        source.read_range(&(start + into.min(end)..start + end))
    }

    /// Notes a pointer to any place in device code.
    fn pointer(&mut self, at: u64, value: u64) {
        let base = self.file.image_base();
        let target = value.wrapping_sub(base);
        let slot = self.slots.iter().find(|slot| slot.memory.contains(&target));
        if slot.is_some_and(|slot| slot.bundles.first().is_some_and(|b| b.old.start <= target)) {
            self.targets.within(value, base.wrapping_add(at));
        }
    }

    fn exports(&mut self, source: &mut Source<'_>) -> io::Result<()> {
        let base = self.file.image_base();
        let Some(directory) = self.file.directory(IMAGE_DIRECTORY_ENTRY_EXPORT) else {
            return Ok(());
        };
        let size = size_of::<ImageExportDirectory>() as u64;
        let header = directory.start..directory.start + size;
        let header = self.file.read_at(source, &header)?;
        let header = header.and_then(|header| first::<ImageExportDirectory>(&header));
        let Some(header) = header else { return Ok(()) };
        let start = u64::from(header.address_of_functions.get(LE));
        let count = u64::from(header.number_of_functions.get(LE));
        let Some(offset) = self.file.offset_of(&(start..start + count * 4)) else { return Ok(()) };
        let mut entry = [0; 4];
        for index in 0..count {
            source.read_exact_at(self.file.window.start + offset + index * 4, &mut entry)?;
            let exported = u64::from(u32::from_le_bytes(entry));
            self.pointer(start + index * 4, base.wrapping_add(exported));
        }
        Ok(())
    }

    fn sections(
        &mut self,
        source: &mut Source<'_>,
        code: &Code,
        relocated: bool,
    ) -> io::Result<()> {
        let Search { file, slots, pointers, targets } = self;
        let base = file.image_base();
        let is_pointer = |at: u64| pointers.binary_search(&at.wrapping_sub(base)).is_ok();
        for (index, section) in file.sections.iter().enumerate() {
            let is_code = section
                .characteristics
                .get(LE)
                .intersects(IMAGE_SCN_CNT_CODE | IMAGE_SCN_MEM_EXECUTE);
            let is_slot = slots.iter().any(|slot| slot.sections.contains(&index));
            if is_slot || !is_code && relocated {
                continue;
            }
            let memory = sized(section.virtual_address.get(LE).into(), file.loaded_size(section));
            let start = file.window.start + file_range(section).start;
            let in_file = |part: &Range<u64>| {
                start + (part.start - memory.start)..start + (part.end - memory.start)
            };
            let parts = if is_code { code.parts(&memory) } else { Vec::new() };
            for (part, machines) in parts {
                let new = |machine: &Machine| Scanner::new(*machine, relocated, Vec::new());
                let mut scanners: Vec<_> = machines.iter().map(new).collect();
                let address = base.wrapping_add(part.start);
                blocks(source, &in_file(&part), address, &mut |address, bytes| {
                    for scanner in &mut scanners {
                        scanner.code(address, bytes, targets);
                    }
                    !targets.all_found()
                })?;
            }
            if !relocated {
                let address = base.wrapping_add(memory.start);
                blocks(source, &in_file(&memory), address, &mut |address, bytes| {
                    absolute(address, bytes, targets, &is_pointer);
                    !targets.all_found()
                })?;
            }
        }
        Ok(())
    }
}
