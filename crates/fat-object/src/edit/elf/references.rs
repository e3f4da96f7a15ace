//! What else than wrappers may refer to a bundle: such a bundle keeps its address.
//!
//! Compilers refer to a bundle by nothing but its wrapper, so that there is nothing to be found, and it can be looked
//! for rather coarsely: relocations to any place in a bundle, instructions (or what would be some) to its first byte,
//! and, in a program that is not relocated, its address as a number anywhere.

use std::ops::Range;

use super::code;
use super::file::{File, SHF_ALLOC, SHT_NOBITS, SectionHeader, Symbol};
use super::relocations::{Machine, Relocations, entries, kind};
use super::symbols;
use super::wrappers::{ET_EXEC, Wrapper};
use crate::edit::EditError;
use crate::source::Source;

const SHF_EXECINSTR: u64 = 4;
/// Types of sections that hold data of the program: PROGBITS, the three arrays of functions, and x86-64's unwind tables.
const DATA: [u32; 5] = [1, 14, 15, 16, 0x7000_0001];
/// Bytes scanned at once.
const BLOCK: u64 = 64 * 1024;
/// Bytes before and after a block that are looked at too.
pub(super) const MARGIN: u64 = 16;

/// Bundle starts that are looked for, and what was found.
pub(super) struct Targets<'a> {
    starts: &'a [u64],
    slot: &'a Range<u64>,
    /// The lower bits that all starts have in common, and what they are.
    mask: u64,
    low: u64,
    /// Where the first reference to each lies.
    found: Vec<Option<u64>>,
}

impl<'a> Targets<'a> {
    pub(super) fn new(starts: &'a [u64], slot: &'a Range<u64>) -> Self {
        let first = starts.first().copied().unwrap_or(0);
        let differences = starts.iter().fold(0x1000, |all, start| all | (start ^ first));
        let mask = (1 << differences.trailing_zeros()) - 1;
        Targets { starts, slot, mask, low: first & mask, found: vec![None; starts.len()] }
    }

    /// Whether a start may be at `address`, or up to `further` bytes behind it: most are not.
    #[inline]
    pub(super) fn maybe(&self, address: u64, further: u64) -> bool {
        address.wrapping_add(further).wrapping_sub(self.low) & self.mask <= further
    }

    /// A reference to just this address.
    pub(super) fn exact(&mut self, address: u64, at: u64) {
        if self.slot.contains(&address)
            && let Ok(n) = self.starts.binary_search(&address)
        {
            self.note(n, at);
        }
    }

    /// A reference to the page of this address.
    pub(super) fn page(&mut self, address: u64, at: u64) {
        let page = address & !0xfff;
        let first = self.starts.partition_point(|&start| start < page);
        let in_page = self.starts.iter().skip(first).take_while(|&start| start & !0xfff == page);
        for n in first..first + in_page.count() {
            self.note(n, at);
        }
    }

    /// The bundle at this address.
    fn bundle(&self, address: u64) -> Option<usize> {
        let n = self.starts.partition_point(|&start| start <= address);
        if self.slot.contains(&address) { n.checked_sub(1) } else { None }
    }

    /// A reference to any part of a bundle.
    fn within(&mut self, address: u64, at: u64) {
        if let Some(n) = self.bundle(address) {
            self.note(n, at);
        }
    }

    fn note(&mut self, n: usize, at: u64) {
        if let Some(found) = self.found.get_mut(n) {
            found.get_or_insert(at);
        }
    }

    fn all_found(&self) -> bool {
        self.found.iter().all(Option::is_some)
    }

    pub(super) fn found(self) -> Vec<(usize, u64)> {
        let found = self.found.into_iter().enumerate();
        found.filter_map(|(n, at)| at.map(|at| (n, at))).collect()
    }
}

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
    let mut scanner = code::Scanner::new(machine, relocated, got(file));
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
        blocks(source, file, section, &mut |address, bytes| {
            if is_code {
                scanner.code(address, bytes, &mut targets);
            }
            if !relocated {
                let align = if is_code { 1 } else { 4 };
                let expected = |at| is_pointer(wrappers, at);
                code::absolute(address, bytes, align, &mut targets, &expected);
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

/// The contents of a section in blocks, each with [`MARGIN`] bytes before and behind it: those of the section, and
/// zeros at its ends. The address is that of the block without its margins.
fn blocks(
    source: &mut Source<'_>,
    file: &File,
    section: &SectionHeader,
    visit: &mut dyn FnMut(u64, &[u8]) -> bool,
) -> Result<(), EditError> {
    let (offset, size) = (section.offset.get(), section.size.get());
    let end = offset.saturating_add(size);
    let available = file.window.end - file.window.start;
    if end > available {
        return Err(EditError::BeyondEnd { what: "a section", start: offset, end, available });
    }
    let offset = file.window.start.saturating_add(offset);
    let mut at = 0;
    while at < size {
        let end = size.min(at + BLOCK);
        let (from, to) = (at.saturating_sub(MARGIN), size.min(end + MARGIN));
        let read = source.read_range(&(offset + from..offset + to))?;
        let zeros = |n: u64| std::iter::repeat_n(0, usize::try_from(n).unwrap_or_default());
        let mut bytes = Vec::with_capacity(read.len() + 2 * zeros(MARGIN).len());
        bytes.extend(zeros(MARGIN - (at - from)));
        bytes.extend(read);
        bytes.extend(zeros(MARGIN - (to - end)));
        if !visit(section.addr.get().wrapping_add(at), &bytes) {
            break;
        }
        at = end;
    }
    Ok(())
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
