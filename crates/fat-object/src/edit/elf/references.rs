//! What else than wrappers may refer to a bundle: such a bundle keeps its address.
//!
//! Compilers refer to a bundle by nothing but its wrapper, so that there is nothing to be found, and it can be looked
//! for rather coarsely: relocations to any place in a bundle, instructions (or what would be some) to its first byte,
//! and, in a program that is not relocated, its address as a number anywhere.

use std::ops::Range;

use super::file::{File, SHF_ALLOC, SHT_NOBITS, SectionHeader, Symbol};
use super::relocations::{Relocations, entries, kind};
use super::symbols;
use super::wrappers::{ET_EXEC, Wrapper};
use crate::edit::EditError;
use crate::edit::scan::{Machine, Scanner, Targets, absolute, blocks};
use crate::source::Source;

const SHF_EXECINSTR: u64 = 4;
/// Types of sections that hold data of the program: PROGBITS, the three arrays of functions, and x86-64's unwind tables.
const DATA: [u32; 5] = [1, 14, 15, 16, 0x7000_0001];
/// The bundles that something else than a wrapper may refer to, as indices into `starts`, each with the address of a
/// reference. `starts` are ascending and lie in `slot`. What names a symbol does not count: symbols move along.
pub(super) fn foreign_references(
    source: &mut Source<'_>,
    file: &File,
    wrappers: &[Wrapper],
    slot: &Range<u64>,
    starts: &[u64],
) -> Result<Vec<(usize, u64)>, EditError> {
    let machine = Machine::of(file)?;
    let relocated = file.header.e_type.get() != ET_EXEC;
    let mut targets = Targets::new(starts, slot);
    let relocations = Relocations::read(source, file)?;
    if let Some(at) = relocations.other {
        return Ok((0..starts.len()).map(|n| (n, at)).collect());
    }
    in_relocations(source, file, machine, wrappers, &relocations, &mut targets)?;
    let mut scanner = Scanner::new(machine, relocated, got(file));
    for section in &file.sections {
        let is_code = section.flags.get() & SHF_EXECINSTR != 0;
        let is_data = !relocated && DATA.contains(&section.kind.get());
        if section.flags.get() & SHF_ALLOC == 0
            || section.kind.get() == SHT_NOBITS
            || !(is_code || is_data)
            || slot.contains(&section.addr.get())
        {
            continue;
        }
        let contents = contents(file, section)?;
        blocks(source, &contents, section.addr.get(), &mut |address, bytes| {
            if is_code {
                scanner.code(address, bytes, &mut targets);
            }
            if !relocated {
                let align = if is_code { 1 } else { 4 };
                let expected = |at| is_pointer(wrappers, at);
                absolute(address, bytes, align, &mut targets, &expected);
            }
            !targets.all_found()
        })?;
    }
    Ok(targets.found())
}

/// Whether the pointer of a wrapper lies at this address.
fn is_pointer(wrappers: &[Wrapper], address: u64) -> bool {
    wrappers.binary_search_by_key(&address, Wrapper::pointer).is_ok()
}

/// What offsets of the large code model may count from: the linker's `_GLOBAL_OFFSET_TABLE_`.
fn got(file: &File) -> Vec<u64> {
    let is_got = |section: &&SectionHeader| matches!(file.name(section), b".got" | b".got.plt");
    file.sections.iter().filter(is_got).map(|section| section.addr.get()).collect()
}

/// Where the bytes of a section lie in the walked file.
fn contents(file: &File, section: &SectionHeader) -> Result<Range<u64>, EditError> {
    let (start, size) = (section.offset.get(), section.size.get());
    let end = start.saturating_add(size);
    let available = file.window.end - file.window.start;
    if end > available {
        return Err(EditError::BeyondEnd { what: "a section", start, end, available });
    }
    Ok(file.window.start + start..file.window.start + end)
}

fn in_relocations(
    source: &mut Source<'_>,
    file: &File,
    machine: Machine,
    wrappers: &[Wrapper],
    relocations: &Relocations,
    targets: &mut Targets<'_>,
) -> Result<(), EditError> {
    let symbols = symbol_values(source, file, relocations)?;
    let mut note = |at: u64, info: u64, addend: u64, targets: &mut Targets<'_>| {
        let index = usize::try_from(info >> 32).unwrap_or(usize::MAX);
        match symbols.get(index) {
            _ if index == 0 || kind(info) == machine.relative() => targets.within(addend, at),
            Some(&Some((value, moves))) => {
                let target = value.wrapping_add(addend);
                let along = moves && targets.bundle(value) == targets.bundle(target);
                if !along {
                    targets.within(target, at);
                }
            }
            _ => {}
        }
    };
    relocations.rela(source, file, &mut |_, _, rela| {
        let at = rela.offset.get();
        if !is_pointer(wrappers, at) {
            note(at, rela.info.get(), rela.addend.get(), targets);
        }
        Ok(())
    })?;
    let mut memory = Memory::default();
    relocations.rel(source, file, &mut |source, _, rel| {
        let at = rel.offset.get();
        if !is_pointer(wrappers, at) {
            note(at, rel.info.get(), memory.word(source, file, at)?, targets);
        }
        Ok(())
    })?;
    relocations.relr(source, file, &mut |source, at| {
        if !is_pointer(wrappers, at) {
            targets.within(memory.word(source, file, at)?, at);
        }
        Ok(())
    })
}

/// The value of every dynamic symbol that is an address in this file, and whether it moves with what lies there.
fn symbol_values(
    source: &mut Source<'_>,
    file: &File,
    relocations: &Relocations,
) -> Result<Vec<Option<(u64, bool)>>, EditError> {
    let mut values = Vec::new();
    if let Some(table) = &relocations.symbols {
        entries(source, file, table, &mut |_, _, symbol: &Symbol| {
            let moves = symbols::after(file, symbol, &|value| !value) != symbol.value.get();
            let value = symbols::is_address(symbol).then(|| (symbol.value.get(), moves));
            values.push(value);
            Ok(())
        })?;
    }
    Ok(values)
}

/// Reads words by address, mostly one near the other.
#[derive(Default)]
struct Memory {
    /// The addresses of the last segment, and what to add for an offset in the file.
    segment: Range<u64>,
    offset: u64,
}

impl Memory {
    /// The word at an address; 0 where no byte of the file is.
    fn word(
        &mut self,
        source: &mut Source<'_>,
        file: &File,
        address: u64,
    ) -> Result<u64, EditError> {
        if !self.segment.contains(&address) {
            let Some(load) = file.load_at(address) else { return Ok(0) };
            let start = load.vaddr.get();
            self.segment = start..start.saturating_add(load.filesz.get());
            self.offset = load.offset.get().wrapping_sub(start);
        }
        let offset = address.wrapping_add(self.offset);
        let end = offset.saturating_add(8);
        if !self.segment.contains(&address) || end > file.window.end - file.window.start {
            return Ok(0);
        }
        let mut bytes = [0; 8];
        source.read_exact_at(file.window.start.saturating_add(offset), &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}
