//! References to the contents of a section of a COFF object: symbols and relocations.

use std::collections::BTreeMap;

use byte_parts::{Budget, Source};
use object::Endian;
use object::pe::{
    IMAGE_FILE_MACHINE_AMD64, IMAGE_FILE_MACHINE_ARM64, IMAGE_FILE_MACHINE_ARM64EC,
    IMAGE_FILE_MACHINE_ARM64X, IMAGE_FILE_MACHINE_ARMNT, IMAGE_FILE_MACHINE_I386,
    IMAGE_REL_AMD64_ADDR32, IMAGE_REL_AMD64_ADDR32NB, IMAGE_REL_AMD64_ADDR64,
    IMAGE_REL_AMD64_SECREL, IMAGE_REL_AMD64_SECTION, IMAGE_REL_ARM_ADDR32, IMAGE_REL_ARM_ADDR32NB,
    IMAGE_REL_ARM_SECREL, IMAGE_REL_ARM_SECTION, IMAGE_REL_ARM64_ADDR32, IMAGE_REL_ARM64_ADDR32NB,
    IMAGE_REL_ARM64_ADDR64, IMAGE_REL_ARM64_SECREL, IMAGE_REL_ARM64_SECTION, IMAGE_REL_I386_DIR32,
    IMAGE_REL_I386_DIR32NB, IMAGE_REL_I386_SECREL, IMAGE_REL_I386_SECTION, ImageAuxSymbolSection,
    ImageRelocation, Machine, RelocationType,
};

use super::checksum;
use crate::error::Error;
use crate::linked::moves::{Addend, Changed, Reference};
use crate::objects::coff::{Object, Symbol, narrow, too_large};
use crate::output::{self, NewInputs, Output};
use crate::patches::Patches;
use crate::pod::{LE, first};
use crate::tables::{absolute, for_each, sized};

/// A symbol in a section whose contents change.
struct Target<'c> {
    changed: &'c Changed,
    value: u64,
    of_section: bool,
}

/// The auxiliary symbol with size and checksum of a section. GNU's linker keeps one of each section that it puts
/// together to one.
struct Definition {
    /// Index of the section.
    section: usize,
    /// The start of the symbol in the section.
    value: u64,
    /// Offset in the walked file.
    at: u64,
    size: u32,
    checksum: u32,
}

/// The contents of the symbol table.
#[derive(Default)]
struct Symbols<'c> {
    /// By number.
    targets: BTreeMap<u64, Target<'c>>,
    definitions: Vec<Definition>,
}

/// Changes symbols and relocated places so that they keep their targets.
pub(super) fn follow(
    source: &mut Source<'_>,
    inputs: &mut dyn NewInputs,
    object: &Object,
    changed: &BTreeMap<usize, Changed>,
    patches: &mut Patches,
) -> Result<(), Error> {
    let symbols = symbols(source, object, changed, patches)?;
    // New contents of sections, by index.
    let mut contents = BTreeMap::new();
    for (index, changed) in changed {
        if object.parts.get(*index).is_some_and(|parts| !parts.relocations.is_empty()) {
            return Err(Error::unsupported_kind("sections of device code with relocations"));
        }
        contents.insert(*index, changed.contents.clone());
    }
    if !symbols.targets.is_empty() {
        for (index, parts) in object.parts.iter().enumerate() {
            let places = relocations(source, object, index, &symbols)?;
            if !places.0.is_empty() {
                let old = output::copy_of(&absolute(object.window.start, &parts.contents));
                contents.insert(index, patched(old, &places)?);
                places.0.into_iter().for_each(|(at, bytes)| patches.put(at, &bytes));
            }
        }
    }
    let mut to_sum = Budget::new(0);
    contents.values().for_each(|new| to_sum.grow(new.size(), 2));
    for definition in symbols.definitions {
        let Definition { section, value, at, size, checksum } = definition;
        let (Some(new), Some(parts)) = (contents.get(&section), object.parts.get(section)) else {
            continue;
        };
        let old = sized(value, size.into());
        if old.end > parts.contents.end - parts.contents.start {
            continue;
        }
        let moves = changed.get(&section).map(|changed| &changed.moves);
        let new_start = moves.map_or(value, |moves| moves.value(value));
        let new_size = moves.map_or(size.into(), |moves| moves.size(value, size.into()));
        let new = new.slice(sized(new_start, new_size));
        let old = absolute(object.window.start + parts.contents.start, &old);
        if output::is_copy_of(&new, &old) {
            continue;
        }
        if new_size != u64::from(size) {
            patches.put(at, &narrow(new_size)?.get(LE).to_le_bytes());
        }
        // Without one there was none.
        if checksum != 0 {
            // None for definitions that share bytes until they are too many.
            let new = if to_sum.take(new.size()) {
                checksum::of(source, inputs, &new)?.unwrap_or(0)
            } else {
                0
            };
            patches.put(at + 8, &new.to_le_bytes());
        }
    }
    Ok(())
}

/// Changes values of symbols, and finds symbols that relocations may use.
fn symbols<'c>(
    source: &mut Source<'_>,
    object: &Object,
    changed: &'c BTreeMap<usize, Changed>,
    patches: &mut Patches,
) -> Result<Symbols<'c>, Error> {
    let mut symbols = Symbols::default();
    let mut auxiliary = 0_u8;
    // The section that the next auxiliary symbol is about, and where in it.
    let mut of_section = None;
    let len = object.header.symbol_len() as u64;
    let table = absolute(object.window.start, &object.symbols);
    for_each(source, &table, len, |_, number, at, entry| {
        if auxiliary > 0 {
            auxiliary -= 1;
            if let (Some((section, value)), Some(record)) =
                (of_section.take(), first::<ImageAuxSymbolSection>(entry))
            {
                let (size, checksum) = (record.length.get(LE), record.check_sum.get(LE));
                symbols.definitions.push(Definition { section, value, at, size, checksum });
            }
            return Ok(());
        }
        let Some(symbol) = Symbol::read(&object.header, entry) else { return Ok(()) };
        auxiliary = symbol.auxiliary;
        let section = usize::try_from(symbol.section).ok();
        let Some(section) = section.and_then(|number| number.checked_sub(1)) else { return Ok(()) };
        let (value, defines) = (symbol.value, symbol.defines());
        of_section = defines.then_some((section, value.into()));
        let Some(changed) = changed.get(&section) else { return Ok(()) };
        // At the start it may mean all of it.
        let of_section = defines && value == 0;
        let new = if of_section { value.into() } else { changed.moves.value(value.into()) };
        if new != u64::from(value) {
            patches.put(at + 8, &narrow(new)?.get(LE).to_le_bytes());
        }
        symbols.targets.insert(number, Target { changed, value: value.into(), of_section });
        Ok(())
    })?;
    Ok(symbols)
}

/// New bytes for places of a section that relocations apply to, by their offset in the walked file.
#[derive(Default)]
struct Places(BTreeMap<u64, Vec<u8>>);

fn relocations(
    source: &mut Source<'_>,
    object: &Object,
    index: usize,
    symbols: &Symbols<'_>,
) -> Result<Places, Error> {
    let mut places = Places::default();
    let (Some(section), Some(parts)) = (object.sections.get(index), object.parts.get(index)) else {
        return Ok(places);
    };
    let contents = absolute(object.window.start, &parts.contents);
    let base = u64::from(section.virtual_address.get(LE));
    let machine = object.header.machine();
    let table = absolute(object.window.start, &parts.relocations);
    for_each(source, &table, size_of::<ImageRelocation>() as u64, |source, number, at, entry| {
        let Some(entry) = first::<ImageRelocation>(entry) else { return Ok(()) };
        let (place, kind) = (entry.virtual_address.get(LE), entry.typ.get(LE));
        let symbol = entry.symbol_table_index.get(LE);
        let Some(target) = symbols.targets.get(&symbol.into()) else { return Ok(()) };
        let Form::Adds(width) = form(machine, kind) else {
            if form(machine, kind) == Form::Unknown {
                let addend = Addend::Unknown;
                let reference =
                    Reference { symbol: target.value, of_section: target.of_section, addend };
                let lost = target.changed.moves.addend(reference);
                lost.map_err(|lost| lost.at(at, kind.0.into()))?;
            }
            return Ok(());
        };
        let start =
            u64::from(place).checked_sub(base).and_then(|at| contents.start.checked_add(at));
        let range = start.map(|start| sized(start, width));
        let Some(range) = range.filter(|range| range.end <= contents.end) else {
            let section = index as u64 + 1;
            return Err(Error::relocation_place(section, number, place.into()));
        };
        let stored = source.read_range(&range)?;
        let addend = match (stored.first_chunk(), stored.first_chunk()) {
            (Some(bytes), _) => LE.read_i64(*bytes),
            (None, Some(bytes)) => LE.read_i32(*bytes).into(),
            (None, None) => 0,
        };
        let addend = Addend::Known(addend);
        let reference = Reference { symbol: target.value, of_section: target.of_section, addend };
        let new = target.changed.moves.addend(reference);
        if let Some(new) = new.map_err(|lost| lost.at(at, kind.0.into()))? {
            let bytes = new.to_le_bytes();
            let fits = width == 8 || i32::try_from(new).is_ok() || u32::try_from(new).is_ok();
            let len = usize::try_from(width).unwrap_or(8);
            match bytes.get(..len).filter(|_| fits) {
                Some(bytes) => places.0.insert(range.start, bytes.to_vec()),
                None => return Err(too_large(new.unsigned_abs())),
            };
        }
        Ok(())
    })?;
    Ok(places)
}

/// The effect of a relocation on the place that it applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Nothing that has to do with a place in a section.
    Nothing,
    /// Adds the symbol, minus something that does not move, to this many bytes of it.
    Adds(u64),
    Unknown,
}

fn form(machine: Machine, kind: RelocationType) -> Form {
    // `IMAGE_REL_*_ABSOLUTE` of all machines.
    if kind == RelocationType(0) {
        return Form::Nothing;
    }
    match machine {
        IMAGE_FILE_MACHINE_AMD64 => match kind {
            IMAGE_REL_AMD64_SECTION => Form::Nothing,
            IMAGE_REL_AMD64_ADDR64 => Form::Adds(8),
            IMAGE_REL_AMD64_ADDR32 | IMAGE_REL_AMD64_ADDR32NB | IMAGE_REL_AMD64_SECREL => {
                Form::Adds(4)
            }
            _ => Form::Unknown,
        },
        IMAGE_FILE_MACHINE_I386 => match kind {
            IMAGE_REL_I386_SECTION => Form::Nothing,
            IMAGE_REL_I386_DIR32 | IMAGE_REL_I386_DIR32NB | IMAGE_REL_I386_SECREL => Form::Adds(4),
            _ => Form::Unknown,
        },
        IMAGE_FILE_MACHINE_ARM64 | IMAGE_FILE_MACHINE_ARM64EC | IMAGE_FILE_MACHINE_ARM64X => {
            match kind {
                IMAGE_REL_ARM64_SECTION => Form::Nothing,
                IMAGE_REL_ARM64_ADDR64 => Form::Adds(8),
                IMAGE_REL_ARM64_ADDR32 | IMAGE_REL_ARM64_ADDR32NB | IMAGE_REL_ARM64_SECREL => {
                    Form::Adds(4)
                }
                _ => Form::Unknown,
            }
        }
        IMAGE_FILE_MACHINE_ARMNT => match kind {
            IMAGE_REL_ARM_SECTION => Form::Nothing,
            IMAGE_REL_ARM_ADDR32 | IMAGE_REL_ARM_ADDR32NB | IMAGE_REL_ARM_SECREL => Form::Adds(4),
            _ => Form::Unknown,
        },
        _ => Form::Unknown,
    }
}

/// Returns a section with other bytes in some places.
fn patched(contents: Output, places: &Places) -> Result<Output, Error> {
    let mut patches = Patches::default();
    for (at, bytes) in &places.0 {
        patches.put(*at, bytes);
    }
    let (start, end) = places
        .0
        .first_key_value()
        .zip(places.0.last_key_value())
        .map_or((0, 0), |((start, _), (last, bytes))| (*start, last + bytes.len() as u64));
    patches.apply(contents).ok_or_else(|| Error::shared_bytes(start, end))
}
