//! COFF: cutting out sections that another tool added.

use std::ops::Range;

use zerocopy::little_endian::{I16, I32, U16, U32};
use zerocopy::{FromBytes, IntoBytes};

use super::super::coff::{
    FORMAT, Header, SECTION_HEADER_LEN, STRING_SIZE_LEN, long_name, too_large,
};
use super::super::error::{EmbedError, ObjectPart};
use super::super::slice;
use super::coff::{Coff, name_offset};
use super::strings::Strings;
use super::{MAX_SHARED, PREFIX, string_at, with_capacity};
use crate::wire::CoffSection;

const IMAGE_SCN_CNT_UNINITIALIZED_DATA: u32 = 0x0000_0080;
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
        let new = self.apply(offset.get().into());
        *offset = U32::new(u32::try_from(new).map_err(|_| too_large(new))?);
        Ok(())
    }
}

/// `None` when there is nothing to remove.
pub(super) fn remove(object: &[u8]) -> Result<Option<Vec<u8>>, EmbedError> {
    let coff = Coff::read(object)?;
    // New numbers, from 1.
    let mut numbers = Vec::with_capacity(coff.sections.len());
    let mut kept = Vec::new();
    for section in coff.sections {
        if coff.name(section).is_some_and(|name| name.starts_with(PREFIX)) {
            numbers.push(None);
        } else {
            kept.push(*section);
            numbers.push(Some(kept.len() as u64));
        }
    }
    if kept.len() == numbers.len() {
        return Ok(None);
    }
    let mut number = 0_u64;
    for (section, new) in coff.sections.iter().zip(&numbers) {
        number = number.saturating_add(1);
        if new.is_none() && section.relocations.get() != 0 {
            let by = ObjectPart::Relocations(number);
            return Err(EmbedError::StillReferenced { format: FORMAT, section: number, by });
        }
    }
    let mut symbols = symbols(object, &coff, &numbers)?;
    let strings = rebuild_strings(&coff, &mut kept, &mut symbols);

    let cuts = cuts(&coff, &kept, &numbers);
    for section in &mut kept {
        cuts.adjust(&mut section.raw_at)?;
        cuts.adjust(&mut section.relocations_at)?;
        cuts.adjust(&mut section.lines_at)?;
    }
    let symbols_at = match coff.header.symbols().0 {
        0 => 0,
        at => cuts.apply(at),
    };
    let symbols_at = u32::try_from(symbols_at).map_err(|_| too_large(symbols_at))?;
    let mut bytes = with_capacity(object.len() as u64)?;
    bytes.extend_from_slice(&coff.header.changed(kept.len() as u64, symbols_at)?);
    bytes.extend_from_slice(kept.as_bytes());
    let mut at = coff.headers_end;
    for (cut, _) in &cuts.0 {
        // The first starts in the section headers.
        bytes.extend_from_slice(slice(object, at..cut.start).unwrap_or_default());
        at = cut.end;
    }
    bytes.extend_from_slice(slice(object, at..coff.tables.start).unwrap_or_default());
    bytes.extend_from_slice(&symbols);
    let from = match strings {
        Some(strings) => {
            bytes.extend_from_slice(&strings);
            coff.tables.end
        }
        None => coff.tables.strings_at,
    };
    let rest = from..object.len() as u64;
    bytes.extend_from_slice(slice(object, rest).unwrap_or_default());
    Ok(Some(bytes))
}

/// Headers and contents of removed sections; contents that another section shares stay.
fn cuts(coff: &Coff<'_>, kept: &[CoffSection], numbers: &[Option<u64>]) -> Cuts {
    let contents = |section: &CoffSection| {
        let start = u64::from(section.raw_at.get());
        let uninitialized =
            section.characteristics.get() & IMAGE_SCN_CNT_UNINITIALIZED_DATA != 0 || start == 0;
        let size = if uninitialized { 0 } else { u64::from(section.raw_size.get()) };
        start..start.saturating_add(size)
    };
    let mut taken = Vec::new();
    for section in kept {
        let relocations = u64::from(section.relocations_at.get());
        let count = u64::from(section.relocations.get());
        let lines = u64::from(section.lines_at.get());
        taken.push(contents(section));
        taken.push(relocations..relocations.saturating_add(count.saturating_mul(10)));
        taken.push(lines..lines.saturating_add(u64::from(section.lines.get()).saturating_mul(6)));
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

    let removed = coff.sections.iter().zip(numbers).filter(|(_, new)| new.is_none());
    let headers = removed.clone().count() as u64;
    let headers_start = coff.headers_end.saturating_sub(headers.saturating_mul(SECTION_HEADER_LEN));
    let mut ranges = removed.map(|(section, _)| contents(section)).collect::<Vec<_>>();
    ranges.retain(|range| {
        !range.is_empty()
            && range.start >= coff.headers_end
            && range.end <= coff.tables.start
            && is_free(range)
    });
    ranges.sort_by_key(|range| range.start);
    let mut cuts: Vec<Range<u64>> = Vec::new();
    cuts.push(headers_start..coff.headers_end);
    for range in ranges {
        match cuts.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => cuts.push(range),
        }
    }
    Cuts::new(cuts)
}

/// The symbol table with new numbers of sections.
fn symbols(object: &[u8], coff: &Coff<'_>, numbers: &[Option<u64>]) -> Result<Vec<u8>, EmbedError> {
    let big = matches!(coff.header, Header::Big(_));
    let len = if big { 20 } else { 18 };
    let table = slice(object, coff.tables.start..coff.tables.strings_at).unwrap_or_default();
    let mut table = table.to_vec();
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
fn rebuild_strings<'s>(
    coff: &Coff<'s>,
    kept: &mut [CoffSection],
    symbols: &mut [u8],
) -> Option<Vec<u8>> {
    let old = Some(coff.tables.strings).filter(|old| !old.is_empty())?;
    let string = |offset: u64| string_at(old, offset.checked_sub(STRING_SIZE_LEN)?);
    let mut budget = (old.len() as u64).saturating_mul(MAX_SHARED);
    let mut checked = |string: Option<&'s [u8]>| {
        let counted = (string?.len() as u64).saturating_sub(MAX_SHARED);
        budget = budget.checked_sub(counted)?;
        string
    };
    // Names of sections come first, where few digits do for their offsets, and share nothing with the others.
    let mut of_sections = Strings::default();
    for section in &*kept {
        if let Some(offset) = name_offset(section) {
            of_sections.add(checked(string(offset?))?);
        }
    }
    let of_sections = of_sections.build(&[0; 4])?;
    let mut others = Strings::default();
    let record_len = if matches!(coff.header, Header::Big(_)) { 20 } else { 18 };
    for symbol in long_named(symbols, record_len) {
        let name = checked(string(u32::from_le_bytes(*symbol).into()))?;
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
