//! COFF: cutting out sections.
//!
//! Headers and contents are cut out, and what follows moves. The string table is built anew.

use std::ops::Range;

use byte_parts::Source;
use zerocopy::little_endian::{I16, I32, U16, U32};
use zerocopy::{FromBytes, IntoBytes};

use super::file::{Object, Parts};
use super::{FORMAT, narrow};
use crate::embed::{CoffFile, EmbedError, ObjectPart, coff_long_name, coff_name_offset};
use crate::error::Error;
use crate::output::{Input, Output};
use crate::strings::{Limit, Strings, string_at};
use crate::tables::absolute;
use crate::wire::CoffSection;

const SECTION_HEADER_LEN: u64 = size_of::<CoffSection>() as u64;
const IMAGE_SYM_CLASS_STATIC: u8 = 3;
const IMAGE_COMDAT_SELECT_ASSOCIATIVE: u8 = 5;

/// The ranges of the object that are left out, in order and apart, each with the length of those before it.
struct Cuts(Vec<(Range<u64>, u64)>);

impl Cuts {
    fn new(ranges: impl IntoIterator<Item = Range<u64>>) -> Self {
        let mut before = 0_u64;
        let with_lengths = ranges.into_iter().map(|range| {
            let so_far = before;
            before = before.saturating_add(range.end.saturating_sub(range.start));
            (range, so_far)
        });
        Cuts(with_lengths.collect())
    }

    /// Where an offset is without them.
    fn apply(&self, offset: u64) -> u64 {
        let count = self.0.partition_point(|(cut, _)| cut.start < offset);
        let last = count.checked_sub(1).and_then(|last| self.0.get(last));
        let cut = last.map_or(0, |(cut, before)| {
            before.saturating_add(cut.end.min(offset).saturating_sub(cut.start))
        });
        offset.saturating_sub(cut)
    }

    fn adjust(&self, offset: &mut U32) -> Result<(), EmbedError> {
        *offset = narrow(self.apply(offset.get().into()))?;
        Ok(())
    }
}

/// The object in the window without the sections that `goes` says, given their indices and the names
/// from theirs on; `None` when there is nothing to remove.
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
            if section.relocations.get() != 0 {
                let section = index as u64 + 1;
                let by = ObjectPart::Relocations(section);
                return Err(EmbedError::StillReferenced { format: FORMAT, section, by }.into());
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
        cuts.adjust(&mut section.raw_at)?;
        cuts.adjust(&mut section.relocations_at)?;
        cuts.adjust(&mut section.lines_at)?;
    }
    let symbols_at = match object.header.symbols().0 {
        0 => 0,
        at => narrow(cuts.apply(at))?.get(),
    };
    let mut splices = Output::new();
    splices.push_vec(object.header.changed(kept.len() as u64, symbols_at)?);
    splices.push_bytes(kept.as_bytes());
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
    if from < window.end.saturating_sub(window.start) {
        splices.push_input(Input::File, window.start.saturating_add(from)..window.end);
    }
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
    let headers = (removed.clone().count() as u64).saturating_mul(SECTION_HEADER_LEN);
    let headers_start = object.headers_end.saturating_sub(headers);
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

/// The symbol table with new numbers of sections.
fn symbols(
    mut table: Vec<u8>,
    object: &Object,
    numbers: &[Option<u64>],
) -> Result<Vec<u8>, EmbedError> {
    let big = matches!(object.header, CoffFile::Big(_));
    let len = if big { 20 } else { 18 };
    let renumber = |old: u64| {
        let new = old.checked_sub(1).and_then(|index| numbers.get(usize::try_from(index).ok()?));
        match new {
            Some(&Some(new)) => Ok(new),
            Some(None) => {
                let by = ObjectPart::SymbolTable;
                Err(EmbedError::StillReferenced { format: FORMAT, section: old, by })
            }
            // Undefined, absolute, or no section.
            None => Ok(old),
        }
    };
    let mut auxiliary = 0_u8;
    let mut of_section = false;
    for symbol in table.chunks_exact_mut(len) {
        if auxiliary > 0 {
            if of_section {
                definition(symbol, big, &renumber)?;
            }
            auxiliary -= 1;
            of_section = false;
            continue;
        }
        let Some(number) = symbol.get_mut(12..len) else { continue };
        let (class, count) = match number {
            [.., class, count] => (*class, *count),
            _ => continue,
        };
        let defined = if big {
            let Ok((number, _)) = I32::mut_from_prefix(number) else { continue };
            let defined = u64::try_from(number.get()).unwrap_or(0);
            if defined > 0 {
                // Fits: numbers only get smaller.
                number.set(i32::try_from(renumber(defined)?).unwrap_or(number.get()));
            }
            defined
        } else {
            let Ok((number, _)) = I16::mut_from_prefix(number) else { continue };
            // The last numbers, read with a sign, mean something else.
            let defined = u64::from(number.get().cast_unsigned());
            let defined = if defined > 0xfeff { 0 } else { defined };
            if defined > 0 {
                let new = u16::try_from(renumber(defined)?).unwrap_or(0);
                number.set(new.cast_signed());
            }
            defined
        };
        auxiliary = count;
        of_section = class == IMAGE_SYM_CLASS_STATIC && defined > 0;
    }
    Ok(table)
}

/// The string table, with its size, without the names of removed sections. `None` when it is not built anew.
fn rebuild_strings(
    object: &Object,
    kept: &mut [CoffSection],
    symbols: &mut [u8],
) -> Option<Vec<u8>> {
    let old = object.strings.get(4..).filter(|old| !old.is_empty())?;
    // The size counts.
    let string = |offset: u64| string_at(old, offset.checked_sub(4)?);
    let mut limit = Limit::of(old);
    // Names of sections come first, where few digits do for their offsets, and share nothing with the others.
    let mut of_sections = Strings::default();
    for section in &*kept {
        if let Some(offset) = coff_name_offset(section) {
            of_sections.add(limit.take(string(offset?))?);
        }
    }
    let of_sections = of_sections.build(&[0; 4])?;
    let mut others = Strings::default();
    let record_len = if matches!(object.header, CoffFile::Big(_)) { 20 } else { 18 };
    for symbol in long_named(symbols, record_len) {
        let name = limit.take(string(u32::from_le_bytes(*symbol).into()))?;
        if of_sections.offset(name).is_none() {
            others.add(name);
        }
    }
    let others = others.build(&of_sections.bytes)?;

    let mut names = Vec::with_capacity(kept.len());
    for section in &*kept {
        names.push(match coff_name_offset(section) {
            Some(offset) => coff_long_name(of_sections.offset(string(offset?)?)?.into())?,
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

/// Where the names in the string table are given, of symbols that have theirs there.
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

/// The section that an auxiliary symbol of a section associates with it.
fn definition(
    symbol: &mut [u8],
    big: bool,
    renumber: &dyn Fn(u64) -> Result<u64, EmbedError>,
) -> Result<(), EmbedError> {
    if symbol.get(14) != Some(&IMAGE_COMDAT_SELECT_ASSOCIATIVE) {
        return Ok(());
    }
    let word = |at: usize| symbol.get(at..)?.get(..2).and_then(|b| U16::read_from_bytes(b).ok());
    let low = word(12).map_or(0, U16::get);
    let high = if big { word(16).map_or(0, U16::get) } else { 0 };
    let new = renumber(u64::from(high) << 16 | u64::from(low))?;
    let new = u32::try_from(new).unwrap_or(0).to_le_bytes();
    if let Some(bytes) = symbol.get_mut(12..14) {
        bytes.copy_from_slice(&[new[0], new[1]]);
    }
    if let Some(bytes) = symbol.get_mut(16..18).filter(|_| big) {
        bytes.copy_from_slice(&[new[2], new[3]]);
    }
    Ok(())
}
