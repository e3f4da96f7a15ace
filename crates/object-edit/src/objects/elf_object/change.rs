//! ELF: removing and renaming sections, and laying out what is left as `llvm-objcopy` 22 does.
//!
//! The remaining sections move together in their order, string tables are rebuilt, and section indices change
//! everywhere. In a linked file what belongs to a segment stays where it is. Bytes that no header accounts for stay,
//! too: they may hold device code. Padding between sections, which is zero, is computed again.

use std::collections::BTreeMap;
use std::ops::Range;

use byte_parts::Source;
use object::U32;
use object::elf::{
    ET_REL, Machine, SHF_ALLOC, SHF_GNU_RETAIN, SHF_INFO_LINK, SHN_LORESERVE, SHN_XINDEX, SHT_CREL,
    SHT_GROUP, SHT_NOBITS, SHT_REL, SHT_RELA, SHT_SYMTAB, SHT_SYMTAB_SHNDX, STB_LOCAL,
    SymbolSection,
};
use object::pod::{bytes_of, bytes_of_mut, bytes_of_slice};
use object::read::elf::{ProgramHeader, Sym};

use super::file::{FORMAT, Object, decode, field, inside, largest, part, place, program_headers};
use super::part::{Contents, Part};
use super::string_tables::rebuild_tables;
use crate::error::Error;
use crate::objects::elf_class::{ElfHeader, ElfSection};
use crate::objects::error::ObjectPart;
use crate::objects::rename::Renames;
use crate::output::{self, Input, Output};
use crate::patches::Patches;
use crate::tables::{absolute, for_each, in_source, sized};

/// The largest alignment that bytes outside sections keep: HIP's runtime maps bundles by the page.
const PAGE_BITS: u32 = 12;

/// The new number of every section.
struct Numbers(Vec<Option<u32>>);

impl Numbers {
    /// Numbers the sections that stay.
    fn of<H: ElfHeader>(
        object: &Object<H>,
        goes: &dyn Fn(usize, &[u8]) -> bool,
    ) -> Result<Self, Error> {
        let mut next = 0_u32;
        let mut numbers = Vec::with_capacity(object.sections.len());
        for (index, section) in object.sections.iter().enumerate() {
            if index > 0 && goes(index, object.name_on(section)) {
                if index == object.names_index {
                    return Err(referenced(index as u64, 0));
                }
                numbers.push(None);
            } else {
                numbers.push(Some(next));
                next += 1;
            }
        }
        Ok(Numbers(numbers))
    }

    /// Returns the new index for a reference in the section with the old index `by`. Numbers that are not section
    /// indices do not change.
    fn renumber(&self, old: u32, by: usize) -> Result<u32, Error> {
        match usize::try_from(old).ok().and_then(|old| self.0.get(old)) {
            Some(Some(new)) => Ok(*new),
            Some(None) => Err(referenced(old.into(), by)),
            None => Ok(old),
        }
    }

    fn is_removed(&self, old: u32) -> bool {
        usize::try_from(old).ok().and_then(|old| self.0.get(old)) == Some(&None)
    }
}

fn referenced(section: u64, by: usize) -> Error {
    let by = ObjectPart::Section(by as u64);
    Error::still_referenced(FORMAT, section, by)
}

/// The segments of a linked file.
pub(crate) struct Loaded {
    /// Starts in order, each with the largest end of a segment that starts there or before.
    ranges: Vec<(u64, u64)>,
    /// The end of the last one, or of the program header table if it comes later; 0 without segments.
    end: u64,
}

impl Loaded {
    pub(crate) fn read<H: ElfHeader>(
        source: &mut Source<'_>,
        window: &Range<u64>,
        header: &H,
    ) -> Result<Self, Error> {
        let e = H::order();
        if header.e_phnum(e) == 0 {
            return Ok(Loaded { ranges: Vec::new(), end: 0 });
        }
        let len = size_of::<H::ProgramHeader>() as u64;
        if u64::from(header.e_phentsize(e)) != len {
            let expected = if len == 32 { "32 in a 32-bit file" } else { "56 in a 64-bit file" };
            return Err(field("e_phentsize", header.e_phentsize(e).into(), expected));
        }
        let phoff = header.e_phoff(e).into();
        let table_len = len * u64::from(header.e_phnum(e));
        let table_end = program_headers(header).end;
        let kind = ObjectPart::ProgramHeaders;
        let mut read = in_source(source, window.start);
        let table = part::<H::ProgramHeader>(window, &mut read, kind, phoff, table_len)?;
        let mut ranges = Vec::with_capacity(table.len());
        let mut end = table_end;
        let file_ranges = table.iter().map(|segment| segment.file_range(e));
        for (start, len) in file_ranges.filter(|&(_, len)| len > 0) {
            let segment = sized(start, len);
            inside(window, ObjectPart::Segment, &segment)?;
            end = end.max(segment.end);
            ranges.push((start, segment.end));
        }
        ranges.sort_unstable();
        let mut largest = 0;
        for (_, range_end) in &mut ranges {
            largest = largest.max(*range_end);
            *range_end = largest;
        }
        Ok(Loaded { ranges, end })
    }

    /// Returns whether a program may need the contents of this section, or something after it, in its place.
    pub(crate) fn may_need(&self, section: &ElfSection) -> bool {
        self.end > 0 && (section.flags.contains(SHF_ALLOC) || section.offset < self.end)
    }

    /// Returns whether a section is in one of them. An empty section counts as one byte.
    fn contains(&self, section: &ElfSection) -> bool {
        if section.kind == SHT_NOBITS && section.flags.contains(SHF_ALLOC) {
            return self.end != 0;
        }
        let size = if section.kind == SHT_NOBITS { 1 } else { section.size.max(1) };
        // Past the largest number: in no segment.
        let Some(end) = section.offset.checked_add(size) else { return false };
        let before = self.ranges.partition_point(|&(start, _)| start <= section.offset);
        let largest = before.checked_sub(1).and_then(|last| self.ranges.get(last));
        largest.is_some_and(|&(_, largest)| end <= largest)
    }
}

/// Returns the file in the window without the sections for which `goes` is true, given their indices and their names;
/// `None` when there is nothing to remove. A name is passed with the bytes after it.
pub(crate) fn remove<H: ElfHeader>(
    source: &mut Source<'_>,
    window: &Range<u64>,
    goes: &dyn Fn(usize, &[u8]) -> bool,
) -> Result<Option<Output>, Error> {
    change::<H>(source, window, goes, &Renames::default())
}

/// Returns the object in the window with other names; `None` when it has none that change.
pub(crate) fn rename<H: ElfHeader>(
    source: &mut Source<'_>,
    window: &Range<u64>,
    renames: &Renames,
) -> Result<Option<Output>, Error> {
    let goes = |_, name: &[u8]| renames.removes(name);
    change::<H>(source, window, &goes, renames)
}

fn change<H: ElfHeader>(
    source: &mut Source<'_>,
    window: &Range<u64>,
    goes: &dyn Fn(usize, &[u8]) -> bool,
    renames: &Renames,
) -> Result<Option<Output>, Error> {
    let mut object = Object::<H>::read(source, window)?;
    let numbers = Numbers::of(&object, goes)?;
    let removes = numbers.0.contains(&None);
    if !removes && renames.is_empty() {
        return Ok(None);
    }
    let e_type = object.header.e_type(H::order());
    if !renames.is_empty() && e_type != ET_REL {
        return Err(Error::elf_type(e_type.0));
    }
    let loaded = Loaded::read::<H>(source, window, &object.header)?;

    let limit = largest(window);
    let too_large = |value| Error::too_large(FORMAT, value, limit);
    let mut parts = Vec::new();
    for (index, fields) in object.sections.iter().enumerate() {
        if numbers.0.get(index).is_some_and(Option::is_none) {
            continue;
        }
        let contents = match place(fields) {
            nothing if nothing.is_empty() => 0..0,
            _ => object.place(fields),
        };
        let fixed = index != 0 && loaded.contains(fields);
        parts.push(Part { fields: *fields, contents: Contents::Kept(contents), index, fixed });
    }
    renumber(source, &mut parts, &numbers, &object)?;
    let retained = retain(&mut parts, &object, renames);
    if retained {
        object.header.set_gnu();
    }
    let renamed = rebuild_tables(source, &mut parts, &object, renames)?;
    if !removes && !renamed && !retained {
        return Ok(None);
    }

    let mut laid = outside(source, &object, &loaded)?;
    let after_table = laid.split_off(laid.partition_point(|(at, _)| *at < object.table.start));
    let movable = parts.iter().enumerate().filter(|(_, part)| part.index != 0 && !part.fixed);
    laid.extend(movable.map(|(at, part)| (part.fields.offset, Laid::Part(at))));
    // In their old order, after all segments; those without bytes in the file take no place.
    laid.sort_by_key(|(at, _)| *at);
    let header_len = size_of::<H>() as u64;
    let mut room = Room { end: header_len.max(loaded.end), limit };
    let mut laid_out = Vec::with_capacity(laid.len());
    for (old, laid) in laid {
        laid_out.push(match laid {
            Laid::Part(at) => {
                let Some(part) = parts.get_mut(at) else { continue };
                part.fields.offset = room.take(part.fields.align.max(1), part.len())?;
                (part.fields.offset, Laid::Part(at))
            }
            Laid::Outside(range) => room.take_outside(old, range)?,
        });
    }
    let word = if H::is_type_64_sized() { 8 } else { 4 };
    let entry_len = size_of::<H::SectionHeader>() as u64;
    let table_at = room.take(word, entry_len * parts.len() as u64)?;
    let mut after = Vec::with_capacity(after_table.len());
    for (old, laid) in after_table {
        if let Laid::Outside(range) = laid {
            after.push(room.take_outside(old, range)?);
        }
    }

    let header = new_header(&object, &mut parts, &numbers, table_at)?;
    let mut table = Vec::with_capacity(parts.len());
    for part in &parts {
        table.push(H::section_header(&part.fields).ok_or_else(|| too_large(part.fields.offset))?);
    }
    let mut splices = Output::new();
    if loaded.end > header_len {
        splices.push_input(Input::File, absolute(window.start, &(header_len..loaded.end)));
    }
    let mut patches = Patches::default();
    for part in parts.iter().filter(|part| part.fixed) {
        // Numbers of sections in it may have changed, its length has not.
        if let Contents::New(bytes) = &part.contents {
            patches.put(object.place(&part.fields).start, bytes);
        }
    }
    let (start, end) = (header_len, loaded.end);
    let loaded = patches.apply(splices).ok_or_else(|| Error::shared_bytes(start, end))?;
    let mut splices = output::of_bytes(bytes_of(&header));
    splices.append(&loaded);
    push(&mut splices, laid_out, &parts);
    splices.pad_to(table_at);
    splices.push_bytes(bytes_of_slice(&table));
    push(&mut splices, after, &parts);
    Ok(Some(splices))
}

/// Sets the flag of sections that a link is to keep. Returns true if one did not have it.
fn retain<H: ElfHeader>(parts: &mut [Part], object: &Object<H>, renames: &Renames) -> bool {
    let mut retained = false;
    for part in parts {
        let fields = &mut part.fields;
        if !fields.flags.contains(SHF_GNU_RETAIN) && renames.retains(object.name_on(fields)) {
            fields.flags |= SHF_GNU_RETAIN;
            retained = true;
        }
    }
    retained
}

/// Something whose place may change.
enum Laid {
    /// A section, by its position among the parts.
    Part(usize),
    /// A range of the walked file that no header accounts for.
    Outside(Range<u64>),
}

/// The rest of the new file.
struct Room {
    end: u64,
    limit: u64,
}

impl Room {
    /// Returns the next place for a part of this length.
    fn take(&mut self, align: u64, len: u64) -> Result<u64, Error> {
        let too_large = |value| Error::too_large(FORMAT, value, self.limit);
        let start = self.end.checked_next_multiple_of(align).ok_or_else(|| too_large(u64::MAX))?;
        let end = start.checked_add(len).ok_or_else(|| too_large(u64::MAX))?;
        if end > self.limit {
            return Err(too_large(end));
        }
        self.end = end;
        Ok(start)
    }

    /// Returns the next place for bytes outside sections, which keep the alignment that they had, up to a page.
    fn take_outside(&mut self, old: u64, range: Range<u64>) -> Result<(u64, Laid), Error> {
        let align = 1 << old.trailing_zeros().min(PAGE_BITS);
        Ok((self.take(align, range.end - range.start)?, Laid::Outside(range)))
    }
}

/// Returns the bytes that neither headers nor sections nor segments account for, from the first one that is not
/// zero to the next part, each with its offset in the object.
fn outside<H: ElfHeader>(
    source: &mut Source<'_>,
    object: &Object<H>,
    loaded: &Loaded,
) -> Result<Vec<(u64, Laid)>, Error> {
    let Range { start: base, end: file_end } = object.window;
    let mut known: Vec<Range<u64>> = object.sections.iter().map(place).collect();
    known.push(object.table.clone());
    known.retain(|range| !range.is_empty());
    known.sort_by_key(|range| range.start);
    // The end, after which nothing is known.
    known.push(file_end - base..file_end - base);
    let mut at = loaded.end.max(size_of::<H>() as u64);
    let mut outside = Vec::new();
    for range in known {
        if at < range.start {
            let gap = absolute(base, &(at..range.start));
            let first = source.skip_zeros(&gap)?;
            if first < gap.end {
                outside.push((first - base, Laid::Outside(first..gap.end)));
            }
        }
        at = at.max(range.end);
    }
    Ok(outside)
}

/// Adds what was laid out, each in its new place.
fn push(splices: &mut Output, laid_out: Vec<(u64, Laid)>, parts: &[Part]) {
    for (start, laid) in laid_out {
        let contents = match &laid {
            Laid::Outside(range) => &Contents::Kept(range.clone()),
            Laid::Part(at) => match parts.get(*at).filter(|part| part.len() > 0) {
                Some(part) => &part.contents,
                None => continue,
            },
        };
        splices.pad_to(start);
        match contents {
            Contents::Kept(range) => splices.push_input(Input::File, range.clone()),
            Contents::New(bytes) => splices.push_bytes(bytes),
        }
    }
}

/// Returns the file header. Numbers that do not fit are stored in the null section's header.
fn new_header<H: ElfHeader>(
    object: &Object<H>,
    parts: &mut [Part],
    numbers: &Numbers,
    table_at: u64,
) -> Result<H, Error> {
    let count = parts.len() as u64;
    let names_index = numbers.0.get(object.names_index).copied().flatten();
    let names_index = names_index.ok_or_else(|| referenced(object.names_index as u64, 0))?;
    let mut header = object.header;
    let shnum = u16::try_from(count).ok().filter(|&count| count < SHN_LORESERVE);
    let too_large = || Error::too_large(FORMAT, table_at, H::LIMIT);
    let shstrndx = SymbolSection::new(names_index);
    header.set_table(table_at, shnum.unwrap_or(0), shstrndx).ok_or_else(too_large)?;
    if let Some(null) = parts.first_mut().map(|part| &mut part.fields) {
        null.size = if shnum.is_some() { 0 } else { count };
        null.link = if shstrndx == SHN_XINDEX { names_index } else { 0 };
    }
    Ok(header)
}

/// Changes the numbers of sections in section headers, symbols and groups.
fn renumber<H: ElfHeader>(
    source: &mut Source<'_>,
    parts: &mut [Part],
    numbers: &Numbers,
    object: &Object<H>,
) -> Result<(), Error> {
    // Symbols of removed sections, by the section that holds the symbols.
    let mut gone = Gone::new();
    for part in &mut *parts {
        let index = part.index;
        if index == 0 {
            continue;
        }
        part.fields.link = numbers.renumber(part.fields.link, index)?;
        match part.fields.kind {
            SHT_SYMTAB => symbols::<H>(source, part, numbers, &mut gone)?,
            SHT_SYMTAB_SHNDX => words::<H>(source, part, 0, numbers)?,
            SHT_GROUP => words::<H>(source, part, 1, numbers)?,
            SHT_REL | SHT_RELA | SHT_CREL => {
                part.fields.info = numbers.renumber(part.fields.info, index)?;
            }
            _ if part.fields.flags.contains(SHF_INFO_LINK) => {
                part.fields.info = numbers.renumber(part.fields.info, index)?;
            }
            _ => {}
        }
    }
    if gone.is_empty() {
        return Ok(());
    }
    let machine = object.header.e_machine(H::order());
    for part in &*parts {
        // Fits: the link is the index of a part.
        let table = usize::try_from(part.fields.link).ok().and_then(|link| parts.get(link));
        if let Some(table) = table {
            relocations::<H>(source, part, table.index, &gone, machine)?;
        }
    }
    Ok(())
}

/// Indices of sections, from the word `skip`.
fn words<H: ElfHeader>(
    source: &mut Source<'_>,
    part: &mut Part,
    skip: usize,
    numbers: &Numbers,
) -> Result<(), Error> {
    let index = part.index;
    part.change(source, "a multiple of 4", |words: &mut [U32<H::Endian>]| {
        let e = H::order();
        for word in words.iter_mut().skip(skip) {
            word.set(e, numbers.renumber(word.get(e), index)?);
        }
        Ok(())
    })
}

/// The section in which a symbol was, by the old index of the symbol table and the index in it.
type Gone = BTreeMap<(usize, u64), u32>;

fn symbols<H: ElfHeader>(
    source: &mut Source<'_>,
    part: &mut Part,
    numbers: &Numbers,
    gone: &mut Gone,
) -> Result<(), Error> {
    let index = part.index;
    part.change(source, "a multiple of the symbol size", |symbols: &mut [H::Sym]| {
        let e = H::order();
        for (number, symbol) in symbols.iter_mut().enumerate() {
            let shndx = symbol.st_shndx(e);
            if shndx.is_reserved() {
                continue;
            }
            let section = u32::from(shndx.0);
            if numbers.is_removed(section) && symbol.st_bind() == STB_LOCAL {
                // Relocatable links make one for every section, and compilers for Arm one that says that it is data (`$d`). It
                // stays, of no section, so that the numbers of the others do.
                bytes_of_mut(symbol).fill(0);
                gone.insert((index, number as u64), section);
                continue;
            }
            // Fits: numbers only get smaller.
            let new = SymbolSection::new(numbers.renumber(section, index)?);
            H::set_symbol(symbol, symbol.st_name(e), new);
        }
        Ok(())
    })
}

/// Checks that no relocation needs a symbol that is gone.
fn relocations<H: ElfHeader>(
    source: &mut Source<'_>,
    part: &Part,
    table: usize,
    gone: &Gone,
    machine: Machine,
) -> Result<(), Error> {
    let word = if H::is_type_64_sized() { 8 } else { 4 };
    let len = match part.fields.kind {
        SHT_RELA => word * 3,
        SHT_REL => word * 2,
        // Not read here.
        SHT_CREL => {
            let of_table = gone.range((table, 0)..=(table, u64::MAX)).next();
            return of_table
                .map_or(Ok(()), |(_, &section)| Err(referenced(section.into(), part.index)));
        }
        _ => return Ok(()),
    };
    let Contents::Kept(range) = &part.contents else { return Ok(()) };
    for_each(source, range, len, |_, _, _, relocation| {
        let Some((_, symbol, _)) = decode::<H>(relocation, machine) else { return Ok(()) };
        match gone.get(&(table, symbol)) {
            Some(&section) => Err(referenced(section.into(), part.index)),
            None => Ok(()),
        }
    })
}
