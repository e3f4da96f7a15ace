//! ELF: removing sections that another tool added, as `llvm-objcopy` 22 lays out what is left.

use std::borrow::Cow;
use std::collections::BTreeMap;

use zerocopy::byteorder::U32;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::super::elf::{
    FORMAT, SHN_LORESERVE, SHN_XINDEX, SHT_NOBITS, SHT_NULL, SHT_STRTAB, Sections, kept, outside,
    part, sections,
};
use super::super::error::{EmbedError, ObjectPart};
use super::super::slice;
use super::elf::check_type;
use super::strings::{Strings, Table};
use super::{MAX_SHARED, PREFIX, string_at, with_capacity};
use crate::wire::{ElfFields, ElfHeader, ElfSection, ElfSectionHeader, ElfSegment, ElfSymbol};

const EM_MIPS: u16 = 8;
const SHT_SYMTAB: u32 = 2;
const SHT_RELA: u32 = 4;
const SHT_REL: u32 = 9;
const SHT_GROUP: u32 = 17;
const SHT_SYMTAB_SHNDX: u32 = 18;
/// LLVM's compact relocations.
const SHT_CREL: u32 = 0x4000_0014;
const SHF_ALLOC: u64 = 0x2;
const SHF_INFO_LINK: u64 = 0x40;
/// `STB_LOCAL` and `STT_SECTION`.
const LOCAL_SECTION_SYMBOL: u8 = 3;
/// What a result may have more than twice the object: alignments that the object kept fit by far.
const SLACK: u64 = 0x1_0000;

/// A section with what it will hold.
struct Part<'a> {
    fields: ElfSection,
    contents: Cow<'a, [u8]>,
    /// By its old index.
    index: usize,
    /// Whether it belongs to a segment and stays where it is.
    fixed: bool,
}

/// The new number of every section.
struct Numbers(Vec<Option<u32>>);

impl Numbers {
    /// Of a reference in the section with the old index `by`. What names no section stays.
    fn renumber(&self, old: u32, by: usize) -> Result<u32, EmbedError> {
        match usize::try_from(old).ok().and_then(|old| self.0.get(old)) {
            Some(Some(new)) => Ok(*new),
            Some(None) => Err(referenced(old, by)),
            None => Ok(old),
        }
    }

    fn is_removed(&self, old: u32) -> bool {
        usize::try_from(old).ok().and_then(|old| self.0.get(old)) == Some(&None)
    }
}

fn referenced(section: u32, by: usize) -> EmbedError {
    let by = ObjectPart::Section(by as u64);
    EmbedError::StillReferenced { format: FORMAT, section: section.into(), by }
}

/// The segments of a linked file.
struct Loaded {
    /// Starts in order, each with the largest end of a segment that starts there or before.
    ranges: Vec<(u64, u64)>,
    /// Where the last one ends, or the program header table if it comes later; 0 without segments.
    end: u64,
}

impl Loaded {
    fn read<H: ElfHeader>(object: &[u8], fields: &ElfFields) -> Result<Self, EmbedError> {
        if fields.phnum == 0 {
            return Ok(Loaded { ranges: Vec::new(), end: 0 });
        }
        let len = size_of::<H::Segment>() as u64;
        if u64::from(fields.phentsize) != len {
            let expected = if len == 32 { "32 in a 32-bit file" } else { "56 in a 64-bit file" };
            return Err(EmbedError::Field {
                format: FORMAT,
                field: "e_phentsize",
                offset: 0,
                found: fields.phentsize.into(),
                expected,
            });
        }
        let table_len = len.saturating_mul(fields.phnum.into());
        let bytes = part(object, ObjectPart::ProgramHeaders, fields.phoff, table_len)?;
        let table = <[H::Segment]>::ref_from_bytes(bytes).unwrap_or_default();
        let mut ranges = Vec::with_capacity(table.len());
        let mut end = fields.phoff.saturating_add(table_len);
        for (start, len) in table.iter().map(ElfSegment::file_range).filter(|&(_, len)| len > 0) {
            part(object, ObjectPart::Segment, start, len)?;
            ranges.push((start, start.saturating_add(len)));
            end = end.max(start.saturating_add(len));
        }
        ranges.sort_unstable();
        let mut largest = 0;
        for (_, range_end) in &mut ranges {
            largest = largest.max(*range_end);
            *range_end = largest;
        }
        Ok(Loaded { ranges, end })
    }

    /// Whether a section is in one of them. An empty one is where its byte would be.
    fn contains(&self, section: &ElfSection) -> bool {
        if section.kind == SHT_NOBITS && section.flags & SHF_ALLOC != 0 {
            return self.end != 0;
        }
        let size = if section.kind == SHT_NOBITS { 1 } else { section.size.max(1) };
        let end = section.offset.saturating_add(size);
        let before = self.ranges.partition_point(|&(start, _)| start <= section.offset);
        let largest = before.checked_sub(1).and_then(|last| self.ranges.get(last));
        largest.is_some_and(|&(_, largest)| end <= largest)
    }
}

/// `None` when there is nothing to remove.
pub(super) fn remove<H: ElfHeader>(object: &[u8]) -> Result<Option<Vec<u8>>, EmbedError> {
    let header_len = size_of::<H>() as u64;
    let beyond_end = || outside(object, ObjectPart::FileHeader, &(0..header_len));
    let (&header, _) = H::ref_from_prefix(object).map_err(|_| beyond_end())?;
    let fields = header.fields();
    check_type(&fields)?;
    let sections = sections::<H>(object, &fields)?;
    kept::<H>(object, &fields, &sections, true)?;
    let Some(numbers) = numbers::<H>(&sections)? else { return Ok(None) };
    let loaded = Loaded::read::<H>(object, &fields)?;

    let limit = (object.len() as u64).saturating_mul(2).saturating_add(SLACK);
    let too_large = |value| EmbedError::TooLarge { format: FORMAT, value, limit };
    let mut parts = Vec::new();
    let mut total = 0_u64;
    for (index, section) in sections.table.iter().enumerate() {
        if numbers.0.get(index).is_some_and(Option::is_none) {
            continue;
        }
        let fields = section.fields();
        let empty = [SHT_NULL, SHT_NOBITS].contains(&fields.kind) || fields.size == 0;
        let end = if empty { fields.offset } else { fields.offset.saturating_add(fields.size) };
        let contents = if empty { None } else { slice(object, fields.offset..end) };
        let contents = contents.unwrap_or_default();
        total = total.saturating_add(contents.len() as u64);
        if total > limit {
            return Err(too_large(total));
        }
        let fixed = index != 0 && loaded.contains(&fields);
        parts.push(Part { fields, contents: Cow::Borrowed(contents), index, fixed });
    }
    renumber::<H>(&mut parts, &numbers, object)?;
    for new_index in 1..parts.len() {
        // Tables that others use as well stay as they are.
        let _rebuilt = rebuild::<H>(&mut parts, &sections, new_index);
    }

    // In the order they have lain in, behind all segments; those that have no place in the file take none.
    let mut order =
        parts.iter_mut().filter(|part| part.index != 0 && !part.fixed).collect::<Vec<_>>();
    order.sort_by_key(|part| part.fields.offset);
    let mut end = header_len.max(loaded.end);
    for part in &mut order {
        let align = part.fields.align.max(1);
        end = end.checked_next_multiple_of(align).ok_or_else(|| too_large(u64::MAX))?;
        part.fields.offset = end;
        end = end.saturating_add(part.contents.len() as u64);
        if end > limit {
            return Err(too_large(end));
        }
    }
    let word = if size_of::<H::Section>() == 40 { 4 } else { 8 };
    let table_at = end.next_multiple_of(word);

    let order = order.into_iter().map(|part| (part.index, part.fields.offset)).collect::<Vec<_>>();
    let count = parts.len() as u64;
    let names_index = u32::try_from(sections.names_index).unwrap_or(u32::MAX);
    let names_index = numbers.renumber(names_index, 0)?;
    let mut header = header;
    let shnum = u16::try_from(count).ok().filter(|_| count < SHN_LORESERVE);
    header.set_table(table_at, shnum.unwrap_or(0)).ok_or_else(|| too_large(table_at))?;
    let shstrndx = u16::try_from(names_index).ok();
    let shstrndx = shstrndx.filter(|_| u64::from(names_index) < SHN_LORESERVE);
    header.set_names(shstrndx.unwrap_or(SHN_XINDEX));
    if let Some(null) = parts.first_mut().map(|part| &mut part.fields) {
        null.size = if shnum.is_some() { 0 } else { count };
        null.link = if shstrndx.is_some() { 0 } else { names_index };
    }

    let mut table = Vec::with_capacity(parts.len());
    for part in &parts {
        table.push(H::Section::new(&part.fields).ok_or_else(|| too_large(part.fields.offset))?);
    }
    let size = table_at.saturating_add(table.as_bytes().len() as u64);
    let mut bytes = with_capacity(size)?;
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(slice(object, header_len..loaded.end).unwrap_or_default());
    for part in parts.iter().filter(|part| part.fixed) {
        // Numbers of sections in it may have changed, its length has not.
        let at = usize::try_from(part.fields.offset).unwrap_or(usize::MAX);
        let place = at..at.saturating_add(part.contents.len());
        if let Some(place) = bytes.get_mut(place) {
            place.copy_from_slice(&part.contents);
        }
    }
    let fill = |bytes: &mut Vec<u8>, to: u64| {
        let missing = to.saturating_sub(bytes.len() as u64);
        bytes.extend((0..missing).map(|_| 0));
    };
    for (index, offset) in order {
        // Sorted by index, as the table was.
        let Ok(at) = parts.binary_search_by_key(&index, |part| part.index) else { continue };
        let Some(part) = parts.get(at).filter(|part| !part.contents.is_empty()) else { continue };
        fill(&mut bytes, offset);
        bytes.extend_from_slice(&part.contents);
    }
    fill(&mut bytes, table_at);
    bytes.extend_from_slice(table.as_bytes());
    Ok(Some(bytes))
}

/// `None` when no section is to be removed.
fn numbers<H: ElfHeader>(
    sections: &Sections<'_, H::Section>,
) -> Result<Option<Numbers>, EmbedError> {
    let mut next = 0_u32;
    let mut numbers = Vec::with_capacity(sections.table.len());
    for (index, section) in sections.table.iter().enumerate() {
        let name = usize::try_from(section.fields().name).ok();
        let name = name.and_then(|name| sections.names.get(name..));
        if index > 0 && name.is_some_and(|name| name.starts_with(PREFIX)) {
            if index == sections.names_index {
                return Err(referenced(u32::try_from(index).unwrap_or(u32::MAX), 0));
            }
            numbers.push(None);
        } else {
            numbers.push(Some(next));
            next = next.saturating_add(1);
        }
    }
    Ok(numbers.contains(&None).then_some(Numbers(numbers)))
}

/// Changes the numbers of sections in section headers, symbols and groups.
fn renumber<H: ElfHeader>(
    parts: &mut [Part<'_>],
    numbers: &Numbers,
    object: &[u8],
) -> Result<(), EmbedError> {
    // Symbols of removed sections, by the section that holds the symbols.
    let mut gone = Gone::new();
    for part in &mut *parts {
        let index = part.index;
        let old_link = part.fields.link;
        if index == 0 {
            continue;
        }
        part.fields.link = numbers.renumber(old_link, index)?;
        match part.fields.kind {
            SHT_SYMTAB => symbols::<H>(part, numbers, &mut gone)?,
            SHT_SYMTAB_SHNDX => words::<H>(part, 0, numbers)?,
            SHT_GROUP => words::<H>(part, 1, numbers)?,
            SHT_REL | SHT_RELA | SHT_CREL => {
                part.fields.info = numbers.renumber(part.fields.info, index)?;
            }
            _ if part.fields.flags & SHF_INFO_LINK != 0 => {
                part.fields.info = numbers.renumber(part.fields.info, index)?;
            }
            _ => {}
        }
    }
    if gone.is_empty() {
        return Ok(());
    }
    let machine = object.get(18..20).and_then(|bytes| bytes.try_into().ok());
    let mips = machine.is_some_and(|bytes: [u8; 2]| u16::from_le_bytes(bytes) == EM_MIPS);
    for part in &*parts {
        // Fits: the link is the index of a part.
        let table = usize::try_from(part.fields.link).ok().and_then(|link| parts.get(link));
        if let Some(table) = table {
            relocations::<H>(part, table.index, &gone, mips)?;
        }
    }
    Ok(())
}

/// Indices of sections, from the word `skip`.
fn words<H: ElfHeader>(
    part: &mut Part<'_>,
    skip: usize,
    numbers: &Numbers,
) -> Result<(), EmbedError> {
    let (index, offset) = (part.index, part.fields.offset);
    let words = <[U32<H::Order>]>::mut_from_bytes(part.contents.to_mut());
    let words = words.map_err(|_| odd_size(offset, part.fields.size, "a multiple of 4"))?;
    for word in words.iter_mut().skip(skip) {
        word.set(numbers.renumber(word.get(), index)?);
    }
    Ok(())
}

fn odd_size(offset: u64, found: u64, expected: &'static str) -> EmbedError {
    EmbedError::Field { format: FORMAT, field: "sh_size", offset, found, expected }
}

/// The section in which a symbol was, by the old index of the symbol table and the index in it.
type Gone = BTreeMap<(usize, u64), u32>;

fn symbols<H: ElfHeader>(
    part: &mut Part<'_>,
    numbers: &Numbers,
    gone: &mut Gone,
) -> Result<(), EmbedError> {
    let (index, offset) = (part.index, part.fields.offset);
    let symbols = <[H::Symbol]>::mut_from_bytes(part.contents.to_mut());
    let symbols =
        symbols.map_err(|_| odd_size(offset, part.fields.size, "a multiple of the symbol size"))?;
    for (number, symbol) in symbols.iter_mut().enumerate() {
        let section = symbol.section();
        if u64::from(section) >= SHN_LORESERVE {
            continue;
        }
        if numbers.is_removed(section.into()) && symbol.info() == LOCAL_SECTION_SYMBOL {
            // Relocatable links make one for every section. It stays, of no section, so that the numbers of
            // the others do.
            *symbol = H::Symbol::new_zeroed();
            gone.insert((index, number as u64), section.into());
            continue;
        }
        // Fits: numbers only get smaller.
        let new = numbers.renumber(section.into(), index)?;
        symbol.set_section(u16::try_from(new).unwrap_or(section));
    }
    Ok(())
}

/// Checks that no relocation needs a symbol that is gone.
fn relocations<H: ElfHeader>(
    part: &Part<'_>,
    table: usize,
    gone: &Gone,
    mips: bool,
) -> Result<(), EmbedError> {
    let wide = size_of::<H::Section>() == 64;
    let len = match (part.fields.kind, wide) {
        (SHT_RELA, true) => 24,
        (SHT_REL, true) => 16,
        (SHT_RELA, false) => 12,
        (SHT_REL, false) => 8,
        // Not read here.
        (SHT_CREL, _) => {
            let of_table = gone.range((table, 0)..=(table, u64::MAX)).next();
            return of_table.map_or(Ok(()), |(_, &section)| Err(referenced(section, part.index)));
        }
        _ => return Ok(()),
    };
    for relocation in part.contents.chunks_exact(len) {
        let word = |at: usize| {
            let bytes = relocation.get(at..at.saturating_add(4)).unwrap_or_default();
            U32::<H::Order>::read_from_bytes(bytes).map_or(0, U32::get)
        };
        // `r_info` follows `r_offset`: the symbol is its upper part. Little-endian 64-bit MIPS has it first.
        let symbol = match (wide, U32::<H::Order>::new(1).as_bytes() == [1, 0, 0, 0]) {
            (true, true) if mips => word(8),
            (true, true) => word(12),
            (true, false) => word(8),
            (false, _) => word(4) >> 8,
        };
        if let Some(&section) = gone.get(&(table, symbol.into())) {
            return Err(referenced(section, part.index));
        }
    }
    Ok(())
}

/// Leaves the names of removed sections out of a table of strings that section headers and symbols refer to.
/// `None` when it is none, or cannot be.
fn rebuild<H: ElfHeader>(
    parts: &mut [Part<'_>],
    sections: &Sections<'_, H::Section>,
    new_index: usize,
) -> Option<()> {
    let table = parts.get(new_index).filter(|part| part.fields.kind == SHT_STRTAB)?;
    let names = table.index == sections.names_index;
    let fixed = table.fixed || table.fields.flags & SHF_ALLOC != 0;
    let old = table.contents.clone();
    let uses =
        |part: &Part<'_>| part.index != 0 && usize::try_from(part.fields.link) == Ok(new_index);
    let symbols_only = |part: &Part<'_>| !uses(part) || part.fields.kind == SHT_SYMTAB;
    if fixed || !parts.iter().all(symbols_only) || !(names || parts.iter().any(uses)) {
        return None;
    }
    let mut strings = Strings::default();
    let mut budget = (old.len() as u64).saturating_mul(MAX_SHARED);
    let mut add = |offset: u32| {
        let string = string_at(&old, offset.into())?;
        // Short names that occur often are no trouble.
        budget = budget.checked_sub((string.len() as u64).saturating_sub(MAX_SHARED))?;
        strings.add(string);
        Some(())
    };
    if names {
        for part in &*parts {
            add(part.fields.name)?;
        }
    }
    for part in parts.iter().filter(|part| uses(part)) {
        for symbol in <[H::Symbol]>::ref_from_bytes(&part.contents).ok()? {
            add(symbol.name())?;
        }
    }
    let built = strings.build(b"\0")?;
    let lookup = |built: &Table<'_>, name: u32| built.offset(string_at(&old, name.into())?);
    for part in &mut *parts {
        if names {
            part.fields.name = lookup(&built, part.fields.name)?;
        }
        if part.index != 0 && usize::try_from(part.fields.link) == Ok(new_index) {
            for symbol in <[H::Symbol]>::mut_from_bytes(part.contents.to_mut()).ok()? {
                symbol.set_name(lookup(&built, symbol.name())?);
            }
        }
    }
    let bytes = built.bytes;
    let table = parts.get_mut(new_index)?;
    table.fields.size = bytes.len() as u64;
    table.contents = Cow::Owned(bytes);
    Some(())
}
