//! The wrappers that register bundles with the HIP runtime, in the forms of their pointers, and how they get others.
//!
//! A wrapper is 24 bytes in the section `.hipFatBinSegment`: magic `HIPF`, version 1, the address of the bundle, a
//! reserved word (LLVM's `OffloadWrapper.cpp`, clang's `CGCUDANV.cpp`). What the address is made of depends on the
//! linker: a relocation with or without the value in place, or the value alone in a program that is never relocated.

use zerocopy::{FromBytes, LittleEndian};

use super::file::{File, SHF_ALLOC, SHT_NOBITS, Symbol};
use super::relocations::{Machine, Relocations, entries, kind};
use super::symbols;
use crate::edit::EditError;
use crate::source::Source;
use crate::wire::HipWrapper64;

type WireWrapper = HipWrapper64<LittleEndian>;

const SECTION: &[u8] = b".hipFatBinSegment";
/// `HIPF`
const MAGIC: u32 = 0x4849_5046;
/// `HIPK`: the device code was moved to a file of its own.
const MAGIC_MOVED: u32 = 0x4849_504b;
pub(super) const ET_EXEC: u16 = 2;
/// Where the pointer lies in a wrapper.
const POINTER: u64 = 8;

/// A wrapper. Addresses are those of the file, before a loader adds its own.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrapper {
    /// Where it lies.
    pub(super) address: u64,
    /// What it points to; for a form that is [unknown](PointerForm::Unknown) only what lies in place.
    pub(super) bundle: u64,
    pub(super) form: PointerForm,
}

impl Wrapper {
    /// The address of its pointer.
    pub(super) fn pointer(&self) -> u64 {
        self.address.saturating_add(POINTER)
    }
}

/// What makes the pointer of a wrapper point to its bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PointerForm {
    /// The addend of a RELA relocation.
    Relative {
        /// Offset of the entry in the ELF file.
        entry: u64,
        /// Whether the same value also lies in place.
        in_place: bool,
    },
    /// The value in place, which a RELR table names.
    Relr,
    /// A symbol and the addend of a RELA relocation.
    Symbol {
        /// Offset of the entry in the ELF file.
        entry: u64,
        /// Offset of the symbol in the ELF file.
        symbol: u64,
        /// Whether the address also lies in place.
        in_place: bool,
    },
    /// The value in place, in a program that is not relocated.
    Plain,
    /// Something else: a relocation of this type, or 0 for none where one has to be.
    Unknown { kind: u32 },
}

/// Bytes to overwrite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Patch {
    /// In the ELF file as it was.
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
}

impl Patch {
    pub(super) fn word(offset: u64, value: u64) -> Self {
        Patch { offset, bytes: value.to_le_bytes().to_vec() }
    }
}

/// All wrappers, by address. Whether bundles start where they point to is for the caller to say.
pub(super) fn wrappers(source: &mut Source<'_>, file: &File) -> Result<Vec<Wrapper>, EditError> {
    let mut wrappers = in_place(source, file)?;
    if wrappers.is_empty() {
        return Ok(wrappers);
    }
    let machine = Machine::of(file)?;
    let relocations = Relocations::read(source, file)?;
    if file.header.e_type.get() == ET_EXEC && relocations.other.is_none() {
        wrappers.iter_mut().for_each(|wrapper| wrapper.form = PointerForm::Plain);
    }
    let mut found = vec![false; wrappers.len()];
    relocations.rela(source, file, &mut |source, entry, rela| {
        let kind = kind(rela.info.get());
        let Some((n, exact)) = pointer_at(&wrappers, rela.offset.get()) else { return Ok(()) };
        let (Some(wrapper), Some(found)) = (wrappers.get_mut(n), found.get_mut(n)) else {
            return Ok(());
        };
        let again = std::mem::replace(found, true);
        let addend = rela.addend.get();
        let value = wrapper.bundle;
        wrapper.form = PointerForm::Unknown { kind };
        if again || !exact {
            return Ok(());
        }
        if kind == machine.relative() {
            wrapper.bundle = addend;
            wrapper.form = PointerForm::Relative { entry, in_place: value == addend };
        } else if kind == machine.absolute() {
            let index = rela.info.get() >> 32;
            if let Some((symbol, address)) = defined(source, file, &relocations, index)? {
                wrapper.bundle = address.wrapping_add(addend);
                let in_place = value == wrapper.bundle;
                wrapper.form = PointerForm::Symbol { entry, symbol, in_place };
            }
        }
        Ok(())
    })?;
    relocations.relr(source, file, &mut |_, address| {
        let Some((n, exact)) = pointer_at(&wrappers, address) else { return Ok(()) };
        if let (Some(wrapper), Some(found)) = (wrappers.get_mut(n), found.get_mut(n)) {
            let known = exact && !std::mem::replace(found, true);
            wrapper.form = if known { PointerForm::Relr } else { PointerForm::Unknown { kind: 0 } };
        }
        Ok(())
    })?;
    relocations.rel(source, file, &mut |_, _, rel| {
        let Some((n, _)) = pointer_at(&wrappers, rel.offset.get()) else { return Ok(()) };
        if let Some(wrapper) = wrappers.get_mut(n) {
            wrapper.form = PointerForm::Unknown { kind: kind(rel.info.get()) };
        }
        Ok(())
    })?;
    Ok(wrappers)
}

/// The wrappers with what lies in place.
fn in_place(source: &mut Source<'_>, file: &File) -> Result<Vec<Wrapper>, EditError> {
    let mut sections: Vec<_> = (file.sections.iter())
        .filter(|section| section.flags.get() & SHF_ALLOC != 0 && file.name(section) == SECTION)
        .collect();
    sections.sort_by_key(|section| section.addr.get());
    let mut wrappers = Vec::new();
    for section in sections {
        let (address, size) = (section.addr.get(), section.size.get());
        let range = section.offset.get()..section.offset.get().saturating_add(size);
        let available = file.window.end - file.window.start;
        if section.kind.get() == SHT_NOBITS || !size.is_multiple_of(24) {
            return Err(EditError::WrapperSection { address, size });
        }
        if range.end > available {
            let (what, start, end) = ("the section of the wrappers", range.start, range.end);
            return Err(EditError::BeyondEnd { what, start, end, available });
        }
        entries(source, file, &range, &mut |_, offset, wrapper: &WireWrapper| {
            let address = address.wrapping_add(offset - range.start);
            match (wrapper.magic.get(), wrapper.version.get()) {
                (MAGIC, 1) => {
                    let bundle = wrapper.bundle.get();
                    let form = PointerForm::Unknown { kind: 0 };
                    wrappers.push(Wrapper { address, bundle, form });
                    Ok(())
                }
                (MAGIC_MOVED, _) => Err(EditError::MovedOut { how: "wrapper magic HIPK" }),
                (magic, version) => {
                    let wrapper = wrappers.len();
                    Err(EditError::WrapperForm { wrapper, address, magic, version })
                }
            }
        })?;
    }
    wrappers.sort_by_key(|wrapper| wrapper.address);
    Ok(wrappers)
}

/// The wrapper whose pointer has bytes of the word at `address`, and whether it lies just there.
fn pointer_at(wrappers: &[Wrapper], address: u64) -> Option<(usize, bool)> {
    let end = address.saturating_add(8);
    let n = wrappers.partition_point(|wrapper| wrapper.pointer().saturating_add(8) <= address);
    let pointer = wrappers.get(n)?.pointer();
    (pointer < end).then_some((n, pointer == address))
}

/// Where a symbol that this file defines lies in the file, and its value.
fn defined(
    source: &mut Source<'_>,
    file: &File,
    relocations: &Relocations,
    index: u64,
) -> Result<Option<(u64, u64)>, EditError> {
    let Some(table) = &relocations.symbols else { return Ok(None) };
    let at = table.start.saturating_add(index.saturating_mul(size_of::<Symbol>() as u64));
    let end = at.saturating_add(size_of::<Symbol>() as u64);
    if index == 0 || end > table.end {
        return Ok(None);
    }
    let mut bytes = [0; size_of::<Symbol>()];
    source.read_exact_at(file.window.start.saturating_add(at), &mut bytes)?;
    let symbol = Symbol::read_from_bytes(&bytes).ok().filter(symbols::is_address);
    Ok(symbol.map(|symbol| (at, symbol.value.get())))
}

/// What to overwrite so that the wrappers, and the symbols, point to where bundles move. `moved` answers the new
/// address of what lies at an address: another one for every address in a bundle that moves.
pub(super) fn repoint(
    source: &mut Source<'_>,
    file: &File,
    wrappers: &[Wrapper],
    moved: &dyn Fn(u64) -> u64,
) -> Result<Vec<Patch>, EditError> {
    let mut patches = Vec::new();
    for (n, wrapper) in wrappers.iter().enumerate() {
        let (old, new) = (wrapper.bundle, moved(wrapper.bundle));
        if old == new {
            continue;
        }
        let in_place = match wrapper.form {
            PointerForm::Relative { entry, in_place } => {
                patches.push(Patch::word(entry.saturating_add(16), new));
                in_place
            }
            PointerForm::Relr | PointerForm::Plain => true,
            PointerForm::Symbol { entry, symbol, in_place } => {
                let (before, after) = symbol_values(source, file, symbol, moved)?;
                // It moves along with its symbol, unless that lies elsewhere.
                if old.wrapping_sub(before) != new.wrapping_sub(after) {
                    let addend = new.wrapping_sub(after);
                    patches.push(Patch::word(entry.saturating_add(16), addend));
                }
                in_place
            }
            PointerForm::Unknown { kind } => {
                let bundle = bundle_number(wrappers, n);
                return Err(EditError::PointerForm { bundle, address: wrapper.pointer(), kind });
            }
        };
        if in_place {
            let what = "a wrapper lies outside the file";
            let offset = file
                .offset_of(wrapper.pointer())
                .ok_or(EditError::InconsistentSegments { what })?;
            patches.push(Patch::word(offset, new));
        }
    }
    if wrappers.iter().any(|wrapper| moved(wrapper.bundle) != wrapper.bundle) {
        patches.extend(symbols::repoint(source, file, moved)?);
    }
    patches.sort_by_key(|patch| patch.offset);
    patches.dedup();
    Ok(patches)
}

/// The value of a symbol, and the one that it gets.
fn symbol_values(
    source: &mut Source<'_>,
    file: &File,
    offset: u64,
    moved: &dyn Fn(u64) -> u64,
) -> Result<(u64, u64), EditError> {
    let mut bytes = [0; size_of::<Symbol>()];
    source.read_exact_at(file.window.start.saturating_add(offset), &mut bytes)?;
    let symbol = Symbol::read_from_bytes(&bytes).ok();
    let values = |symbol: Symbol| (symbol.value.get(), symbols::after(file, &symbol, moved));
    Ok(symbol.map_or((0, 0), values))
}

/// The position of the bundle of a wrapper among those that wrappers point to.
fn bundle_number(wrappers: &[Wrapper], n: usize) -> usize {
    let Some(bundle) = wrappers.get(n).map(|wrapper| wrapper.bundle) else { return 0 };
    let mut lower: Vec<_> =
        wrappers.iter().map(|wrapper| wrapper.bundle).filter(|&other| other < bundle).collect();
    lower.sort_unstable();
    lower.dedup();
    lower.len()
}
