//! COFF: cutting out sections.
//!
//! Headers and contents are cut out, and what follows moves. The string table is rebuilt.

use std::ops::Range;

use byte_parts::Source;
use object::pe::{IMAGE_COMDAT_SELECT_ASSOCIATIVE, ImageAuxSymbolSection};
use object::pod::{bytes_of_slice, from_bytes_mut};
use object::{LittleEndian, U32};

use super::file::{Object, Parts};
use super::header::{Section, long_name, name_offset};
use super::symbol::{Symbol, set_section};
use super::{FORMAT, narrow};
use crate::error::Error;
use crate::objects::error::ObjectPart;
use crate::objects::strings::{Limit, Strings, string_at};
use crate::output::{Input, Output};
use crate::pod::LE;
use crate::tables::absolute;

const SECTION_HEADER_LEN: u64 = size_of::<Section>() as u64;

/// The ranges of the object that are left out, in order and apart, each with the length of those before it.
struct Cuts(Vec<(Range<u64>, u64)>);

impl Cuts {
    fn new(ranges: impl IntoIterator<Item = Range<u64>>) -> Self {
        let mut before = 0_u64;
        let with_lengths = ranges.into_iter().map(|range| {
            let so_far = before;
            before += range.end - range.start;
            (range, so_far)
        });
        Cuts(with_lengths.collect())
    }

    /// Returns the offset without the removed ranges.
    fn apply(&self, offset: u64) -> u64 {
        let count = self.0.partition_point(|(cut, _)| cut.start < offset);
        let last = count.checked_sub(1).and_then(|last| self.0.get(last));
        let cut = last.map_or(0, |(cut, before)| before + cut.end.min(offset) - cut.start);
        offset - cut
    }

    fn adjust(&self, offset: &mut U32<LittleEndian>) -> Result<(), Error> {
        *offset = narrow(self.apply(offset.get(LE).into()))?;
        Ok(())
    }
}

/// Returns the object in the window without the sections for which `goes` is true, given their indices and their names;
/// `None` when there is nothing to remove. A name is passed with the bytes after it.
pub(crate) fn remove(
    source: &mut Source<'_>,
    window: &Range<u64>,
    goes: &dyn Fn(usize, &[u8]) -> bool,
) -> Result<Option<Output>, Error> {
    let object = Object::read(source, window)?;
    // New numbers, from 1.
    let mut numbers = Vec::with_capacity(object.sections.len());
    let mut kept = Vec::new();
    for (index, section) in object.sections.iter().enumerate() {
        if goes(index, object.name_on(section)) {
            if section.number_of_relocations.get(LE) != 0 {
                let section = index as u64 + 1;
                let by = ObjectPart::Relocations(section);
                return Err(Error::still_referenced(FORMAT, section, by));
            }
            numbers.push(None);
        } else {
            kept.push(*section);
            numbers.push(Some(kept.len() as u64));
        }
    }
    if kept.len() == numbers.len() {
        return Ok(None);
    }
    let table = source.read_range(&absolute(window.start, &object.symbols))?;
    let mut symbols = symbols(table, &object, &numbers)?;
    let strings = rebuild_strings(&object, &mut kept, &mut symbols);

    let cuts = cuts(&object, &numbers);
    for section in &mut kept {
        cuts.adjust(&mut section.pointer_to_raw_data)?;
        cuts.adjust(&mut section.pointer_to_relocations)?;
        cuts.adjust(&mut section.pointer_to_linenumbers)?;
    }
    let symbols_at = match object.header.symbols().0 {
        0 => 0,
        at => narrow(cuts.apply(at.into()))?.get(LE),
    };
    let mut splices = Output::new();
    splices.push_vec(object.header.changed(kept.len() as u64, symbols_at)?);
    splices.push_bytes(bytes_of_slice(&kept));
    let mut copy = |range: Range<u64>| {
        if !range.is_empty() {
            splices.push_input(Input::File, absolute(window.start, &range));
        }
    };
    let mut at = object.headers_end;
    for (cut, _) in &cuts.0 {
        // The first starts in the section headers.
        copy(at..cut.start);
        at = cut.end;
    }
    copy(at..object.symbols.start);
    splices.push_vec(symbols);
    let from = match strings {
        Some(strings) => {
            splices.push_vec(strings);
            object.strings_end
        }
        None => object.symbols.end,
    };
    splices.push_input(Input::File, window.start + from..window.end);
    Ok(Some(splices))
}

/// Headers and contents of removed sections; contents that another section shares stay.
fn cuts(object: &Object, numbers: &[Option<u64>]) -> Cuts {
    let stays = |parts: &&(&Parts, &Option<u64>)| parts.1.is_some();
    let all: Vec<_> = object.parts.iter().zip(numbers).collect();
    let mut taken = Vec::new();
    for (parts, _) in all.iter().filter(stays) {
        taken.extend([&parts.contents, &parts.relocations, &parts.lines].map(Range::clone));
    }
    taken.retain(|range| !range.is_empty());
    taken.sort_by_key(|range| range.start);
    // Up to where something is taken before each.
    let mut taken_to = Vec::with_capacity(taken.len());
    let mut end = 0;
    for range in &taken {
        end = range.end.max(end);
        taken_to.push(end);
    }
    let is_free = |range: &Range<u64>| {
        let before = taken.partition_point(|taken| taken.start < range.end);
        let last = before.checked_sub(1).and_then(|last| taken_to.get(last));
        last.is_none_or(|&end| end <= range.start)
    };

    let removed = all.iter().filter(|parts| !stays(parts));
    let headers = removed.clone().count() as u64 * SECTION_HEADER_LEN;
    let headers_start = object.headers_end - headers;
    let mut ranges = removed.map(|(parts, _)| parts.contents.clone()).collect::<Vec<_>>();
    ranges.retain(|range| {
        !range.is_empty()
            && range.start >= object.headers_end
            && range.end <= object.symbols.start
            && is_free(range)
    });
    ranges.sort_by_key(|range| range.start);
    let mut cuts: Vec<Range<u64>> = Vec::new();
    cuts.push(headers_start..object.headers_end);
    for range in ranges {
        match cuts.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => cuts.push(range),
        }
    }
    Cuts::new(cuts)
}

/// Returns the symbol table with new numbers of sections.
fn symbols(mut table: Vec<u8>, object: &Object, numbers: &[Option<u64>]) -> Result<Vec<u8>, Error> {
    let header = &object.header;
    let renumber = |old: u32| {
        let new = old.checked_sub(1).and_then(|index| numbers.get(usize::try_from(index).ok()?));
        match new {
            // Fits: numbers only get smaller.
            Some(&Some(new)) => Ok(u32::try_from(new).unwrap_or(old)),
            Some(None) => {
                let (section, by) = (old.into(), ObjectPart::SymbolTable);
                Err(Error::still_referenced(FORMAT, section, by))
            }
            // Undefined, absolute, or no section.
            None => Ok(old),
        }
    };
    let mut auxiliary = 0_u8;
    let mut of_section = false;
    for record in table.chunks_exact_mut(header.symbol_len()) {
        if auxiliary > 0 {
            if of_section {
                definition(record, header.is_big(), &renumber)?;
            }
            auxiliary -= 1;
            of_section = false;
            continue;
        }
        let Some(symbol) = Symbol::read(header, record) else { continue };
        if symbol.section > 0 {
            set_section(header, record, renumber(symbol.section)?);
        }
        auxiliary = symbol.auxiliary;
        of_section = symbol.is_static();
    }
    Ok(table)
}

/// Returns the string table, with its size, without the names of removed sections. `None` if it is not rebuilt.
fn rebuild_strings(object: &Object, kept: &mut [Section], symbols: &mut [u8]) -> Option<Vec<u8>> {
    let old = object.strings.get(4..).filter(|old| !old.is_empty())?;
    // The size counts.
    let string = |offset: u64| string_at(old, offset.checked_sub(4)?);
    let mut limit = Limit::of(old);
    // Names of sections come first, where few digits do for their offsets, and share nothing with the others.
    let mut of_sections = Strings::default();
    for section in &*kept {
        if let Some(offset) = name_offset(section) {
            of_sections.add(limit.take(string(offset?))?);
        }
    }
    let of_sections = of_sections.build(&[0; 4])?;
    let mut others = Strings::default();
    let record_len = object.header.symbol_len();
    for symbol in long_named(symbols, record_len) {
        let name = limit.take(string(u32::from_le_bytes(*symbol).into()))?;
        if of_sections.offset(name).is_none() {
            others.add(name);
        }
    }
    let others = others.build(&of_sections.bytes)?;

    let mut names = Vec::with_capacity(kept.len());
    for section in &*kept {
        names.push(match name_offset(section) {
            Some(offset) => long_name(of_sections.offset(string(offset?)?)?.into())?,
            None => section.name,
        });
    }
    let mut bytes = others.bytes.clone();
    let size = u32::try_from(bytes.len()).ok()?;
    bytes.get_mut(..4)?.copy_from_slice(&size.to_le_bytes());
    // All names are there: from here on nothing fails.
    for symbol in long_named(symbols, record_len) {
        let name = string(u32::from_le_bytes(*symbol).into())?;
        *symbol = of_sections.offset(name).or_else(|| others.offset(name))?.to_le_bytes();
    }
    for (section, name) in kept.iter_mut().zip(names) {
        section.name = name;
    }
    Some(bytes)
}

/// Returns the fields with the string table offsets of long symbol names.
fn long_named(symbols: &mut [u8], record_len: usize) -> impl Iterator<Item = &mut [u8; 4]> {
    let mut auxiliary = 0_u8;
    symbols.chunks_exact_mut(record_len).filter_map(move |symbol| {
        if auxiliary > 0 {
            auxiliary -= 1;
            return None;
        }
        auxiliary = symbol.last().copied().unwrap_or(0);
        let (zeros, rest) = symbol.split_first_chunk_mut::<4>()?;
        let (offset, _) = rest.split_first_chunk_mut::<4>()?;
        (*zeros == [0; 4] && *offset != [0; 4]).then_some(offset)
    })
}

/// Renumbers the section in the auxiliary symbol of an associated section.
fn definition(
    record: &mut [u8],
    big: bool,
    renumber: &dyn Fn(u32) -> Result<u32, Error>,
) -> Result<(), Error> {
    let Ok((record, _)) = from_bytes_mut::<ImageAuxSymbolSection>(record) else { return Ok(()) };
    if record.selection != IMAGE_COMDAT_SELECT_ASSOCIATIVE {
        return Ok(());
    }
    let high = if big { record.high_number.get(LE) } else { 0 };
    let new = renumber(u32::from(high) << 16 | u32::from(record.number.get(LE)))?.to_le_bytes();
    let [low @ .., _, _] = new;
    let [_, _, high @ ..] = new;
    record.number.set(LE, u16::from_le_bytes(low));
    if big {
        record.high_number.set(LE, u16::from_le_bytes(high));
    }
    Ok(())
}
