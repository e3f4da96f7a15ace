//! What refers to the contents of a section of a COFF object: symbols and relocations.

use std::collections::BTreeMap;

use byte_parts::{Budget, Source};
use zerocopy::FromBytes;
use zerocopy::little_endian::{I32, U16, U32};

use super::file::Object;
use super::{checksum, narrow};
use crate::error::Error;
use crate::moves::{Addend, Changed, Reference};
use crate::output::{self, NewInputs, Output};
use crate::relayout::Patches;
use crate::tables::{absolute, for_each};

const I386: u16 = 0x14c;
const ARMNT: u16 = 0x1c4;
const AMD64: u16 = 0x8664;
const ARM64: u16 = 0xaa64;
const ARM64EC: u16 = 0xa641;
const ARM64X: u16 = 0xa64e;

const IMAGE_SYM_CLASS_STATIC: u8 = 3;
const RELOCATION_LEN: u64 = 10;

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
    /// Where in it this one starts.
    value: u64,
    /// Offset in the walked file.
    at: u64,
    size: u32,
    checksum: u32,
}

/// What the symbol table says.
#[derive(Default)]
struct Symbols<'c> {
    /// By number.
    targets: BTreeMap<u64, Target<'c>>,
    definitions: Vec<Definition>,
}

/// Changes symbols and relocated places so that they are about what they were about.
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
            return Err(Error::Unsupported { kind: "sections of device code with relocations" });
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
    let all = contents.values().fold(0, |sum: u64, new| sum.saturating_add(new.size()));
    let mut to_sum = Budget::new(all.saturating_mul(2));
    for definition in symbols.definitions {
        let Definition { section, value, at, size, checksum } = definition;
        let (Some(new), Some(parts)) = (contents.get(&section), object.parts.get(section)) else {
            continue;
        };
        let old = value..value.saturating_add(size.into());
        if old.end > parts.contents.end - parts.contents.start {
            continue;
        }
        let moves = changed.get(&section).map(|changed| &changed.moves);
        let new_start = moves.map_or(value, |moves| moves.value(value));
        let new_size = moves.map_or(size.into(), |moves| moves.size(value, size.into()));
        let new = new.slice(new_start..new_start.saturating_add(new_size));
        let old = absolute(object.window.start.saturating_add(parts.contents.start), &old);
        if output::is_copy_of(&new, &old) {
            continue;
        }
        if new_size != u64::from(size) {
            patches.put(at, &narrow(new_size)?.get().to_le_bytes());
        }
        // Without one there was none.
        if checksum != 0 {
            // None for definitions that share bytes until they are too many.
            let new = match to_sum.take(new.size()) {
                true => checksum::of(source, inputs, &new)?.unwrap_or(0),
                false => 0,
            };
            patches.put(at.saturating_add(8), &new.to_le_bytes());
        }
    }
    Ok(())
}

/// Changes values of symbols, and finds those that relocations may use.
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
    let len = object.symbol_len();
    let table = absolute(object.window.start, &object.symbols);
    for_each(source, &table, len, |_, number, at, entry| {
        if auxiliary > 0 {
            auxiliary -= 1;
            if let (Some((section, value)), Some(size), Some(checksum)) =
                (of_section.take(), word(entry, 0), word(entry, 8))
            {
                symbols.definitions.push(Definition { section, value, at, size, checksum });
            }
            return Ok(());
        }
        let [.., class, count] = *entry else { return Ok(()) };
        auxiliary = count;
        let section = match len {
            20 => entry.get(12..16).and_then(|bytes| I32::read_from_bytes(bytes).ok()),
            // The last numbers, read with a sign, mean something else.
            _ => {
                entry.get(12..14).and_then(|bytes| U16::read_from_bytes(bytes).ok()).map(|number| {
                    I32::from(if number.get() > 0xfeff { 0 } else { i32::from(number.get()) })
                })
            }
        };
        let section = section.and_then(|number| usize::try_from(number.get()).ok());
        let Some(section) = section.and_then(|number| number.checked_sub(1)) else { return Ok(()) };
        let value = word(entry, 8).unwrap_or(0);
        let kind = entry.get(len_of_section(len)..).and_then(|rest| rest.first_chunk::<2>());
        let defines = class == IMAGE_SYM_CLASS_STATIC && kind == Some(&[0, 0]) && count > 0;
        of_section = defines.then_some((section, value.into()));
        let Some(changed) = changed.get(&section) else { return Ok(()) };
        // At the start it may stand for all of it.
        let of_section = defines && value == 0;
        let new = if of_section { value.into() } else { changed.moves.value(value.into()) };
        if new != u64::from(value) {
            patches.put(at.saturating_add(8), &narrow(new)?.get().to_le_bytes());
        }
        symbols.targets.insert(number, Target { changed, value: value.into(), of_section });
        Ok(())
    })?;
    Ok(symbols)
}

/// Where the type of a symbol stands, in entries of this length.
fn len_of_section(len: u64) -> usize {
    if len == 20 { 16 } else { 14 }
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
    let base = u64::from(section.virtual_address.get());
    let machine = object.machine();
    let table = absolute(object.window.start, &parts.relocations);
    for_each(source, &table, RELOCATION_LEN, |source, number, at, entry| {
        let (Some(place), Some(symbol), Some(kind)) =
            (word(entry, 0), word(entry, 4), half(entry, 8))
        else {
            return Ok(());
        };
        let Some(target) = symbols.targets.get(&symbol.into()) else { return Ok(()) };
        let Form::Adds(width) = form(machine, kind) else {
            if form(machine, kind) == Form::Unknown {
                let addend = Addend::Unknown;
                let reference =
                    Reference { symbol: target.value, of_section: target.of_section, addend };
                let lost = target.changed.moves.addend(reference);
                lost.map_err(|lost| lost.at(at, kind.into()))?;
            }
            return Ok(());
        };
        let start =
            u64::from(place).checked_sub(base).and_then(|at| contents.start.checked_add(at));
        let range = start.map(|start| start..start.saturating_add(width));
        let Some(range) = range.filter(|range| range.end <= contents.end) else {
            let section = index as u64 + 1;
            return Err(Error::RelocationPlace { section, index: number, place: place.into() });
        };
        let stored = source.read_range(&range)?;
        let addend = match stored.first_chunk::<8>() {
            Some(bytes) => i64::from_le_bytes(*bytes),
            None => I32::read_from_bytes(&stored).map_or(0, |addend| addend.get().into()),
        };
        let addend = Addend::Known(addend);
        let reference = Reference { symbol: target.value, of_section: target.of_section, addend };
        let new = target.changed.moves.addend(reference);
        if let Some(new) = new.map_err(|lost| lost.at(at, kind.into()))? {
            let bytes = new.to_le_bytes();
            let fits = width == 8 || i32::try_from(new).is_ok() || u32::try_from(new).is_ok();
            let len = usize::try_from(width).unwrap_or(8);
            match bytes.get(..len).filter(|_| fits) {
                Some(bytes) => places.0.insert(range.start, bytes.to_vec()),
                None => return Err(super::too_large(new.unsigned_abs()).into()),
            };
        }
        Ok(())
    })?;
    Ok(places)
}

/// What a relocation does with the place that it applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Nothing that has to do with a place in a section.
    Nothing,
    /// Adds the symbol, less something that does not move, to so many bytes of it.
    Adds(u64),
    Unknown,
}

fn form(machine: u16, kind: u16) -> Form {
    match (machine, kind) {
        // IMAGE_REL_*_ABSOLUTE, and the number of the section
        (_, 0) | (AMD64 | I386, 0xa) | (ARM64 | ARM64EC | ARM64X, 0xd) | (ARMNT, 0xe) => {
            Form::Nothing
        }
        // ADDR64
        (AMD64, 1) | (ARM64 | ARM64EC | ARM64X, 0xe) => Form::Adds(8),
        // ADDR32, ADDR32NB, and the offset in the section
        (AMD64, 2 | 3 | 0xb)
        | (I386, 6 | 7 | 0xb)
        | (ARM64 | ARM64EC | ARM64X, 1 | 2 | 8)
        | (ARMNT, 1 | 2 | 0xf) => Form::Adds(4),
        _ => Form::Unknown,
    }
}

/// A section with other bytes in some places.
fn patched(contents: Output, places: &Places) -> Result<Output, Error> {
    let mut patches = Patches::default();
    for (at, bytes) in &places.0 {
        patches.put(*at, bytes);
    }
    let (start, end) = places
        .0
        .first_key_value()
        .zip(places.0.last_key_value())
        .map_or((0, 0), |((start, _), (last, bytes))| {
            (*start, last.saturating_add(bytes.len() as u64))
        });
    patches.apply(contents).ok_or(Error::SharedBytes { start, end })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    U32::read_from_bytes(bytes.get(at..)?.get(..4)?).ok().map(U32::get)
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    U16::read_from_bytes(bytes.get(at..)?.get(..2)?).ok().map(U16::get)
}
