//! Symbols of bundles, in both symbol tables.

use std::mem::offset_of;
use std::ops::Range;

use byte_parts::Source;
use object::elf::{SHN_XINDEX, SHT_DYNSYM, SHT_SYMTAB, STT_FILE, STT_TLS, SectionType};

use super::file::{File, SectionHeader, Symbol, file_range};
use super::relocations::entries;
use crate::error::Error;
use crate::patches::Patch;
use crate::pod::LE;
use crate::tables::sized;

/// Offsets in a symbol.
const VALUE: u64 = offset_of!(Symbol, st_value) as u64;
const SIZE: u64 = offset_of!(Symbol, st_size) as u64;

/// Returns whether the value of a symbol is an address in this file.
pub(super) fn is_address(symbol: &Symbol) -> bool {
    let section = symbol.st_shndx.get(LE);
    let somewhere = section == SHN_XINDEX || !section.is_special();
    somewhere && !matches!(symbol.st_type(), STT_FILE | STT_TLS)
}

/// Returns the value that a symbol gets. One at the end of another section, where the first bundle starts, stays.
pub(super) fn after(file: &File, symbol: &Symbol, moved: &dyn Fn(u64) -> u64) -> u64 {
    let value = symbol.st_value.get(LE);
    if !is_address(symbol) {
        return value;
    }
    match file.sections.get(usize::from(symbol.st_shndx.get(LE).0)) {
        Some(section) if !holds(section, value) => value,
        _ => moved(value),
    }
}

fn holds(section: &SectionHeader, address: u64) -> bool {
    let start = section.sh_addr.get(LE);
    sized(start, section.sh_size.get(LE)).contains(&address)
}

/// Returns new values for the symbols that move.
pub(super) fn repoint(
    source: &mut Source<'_>,
    file: &File,
    moved: &dyn Fn(u64) -> u64,
) -> Result<Vec<Patch>, Error> {
    let mut patches = Vec::new();
    visit(source, file, &mut |at, symbol| {
        let value = after(file, symbol, moved);
        if value != symbol.st_value.get(LE) {
            patches.push(Patch::word(at + VALUE, value));
        }
    })?;
    Ok(patches)
}

/// Returns new values for the symbols at the end of a section, such as `__stop_*`. `ends` has the number of the section,
/// its old end and its new one.
pub(super) fn repoint_ends(
    source: &mut Source<'_>,
    file: &File,
    ends: &[(usize, u64, u64)],
) -> Result<Vec<Patch>, Error> {
    let mut patches = Vec::new();
    visit(source, file, &mut |at, symbol| {
        let place = (usize::from(symbol.st_shndx.get(LE).0), symbol.st_value.get(LE));
        let end = ends.iter().find(|(section, old, _)| (*section, *old) == place);
        if let Some((_, _, new)) = end.filter(|_| is_address(symbol)) {
            patches.push(Patch::word(at + VALUE, *new));
        }
    })?;
    Ok(patches)
}

/// Returns new sizes for the symbols that are a whole bundle, or exceed the rest of one. `left` has the old range of
/// each bundle and its new size, by address.
pub(super) fn resize(
    source: &mut Source<'_>,
    file: &File,
    left: &[(Range<u64>, u64)],
) -> Result<Vec<Patch>, Error> {
    let mut patches = Vec::new();
    visit(source, file, &mut |at, symbol| {
        let value = symbol.st_value.get(LE);
        let n = left.partition_point(|(old, _)| old.end <= value);
        let Some((old, left)) = left.get(n).filter(|(old, _)| old.contains(&value)) else {
            return;
        };
        // None if it starts after what is left.
        let room = left.saturating_sub(value - old.start);
        let size = symbol.st_size.get(LE);
        let is_whole = value == old.start && size == old.end - old.start;
        // A section symbol has no size.
        if is_address(symbol) && (size > room || is_whole && size < room) {
            patches.push(Patch::word(at + SIZE, room));
        }
    })?;
    Ok(patches)
}

/// Returns the start of what is left of a section as the new value of its symbols after that, without a size, and new
/// sizes for symbols that exceed it. Symbols that loaders read stay.
pub(super) fn gather(
    source: &mut Source<'_>,
    file: &File,
    section: usize,
    left: &Range<u64>,
) -> Result<Vec<Patch>, Error> {
    let mut patches = Vec::new();
    visit_tables(source, file, &[SHT_SYMTAB], &mut |at, symbol| {
        let (value, size) = (symbol.st_value.get(LE), symbol.st_size.get(LE));
        if usize::from(symbol.st_shndx.get(LE).0) != section || !is_address(symbol) {
            return;
        }
        let rest = if left.contains(&value) {
            left.end - value
        } else {
            patches.push(Patch::word(at + VALUE, left.start));
            0
        };
        if size > rest {
            patches.push(Patch::word(at + SIZE, rest));
        }
    })?;
    Ok(patches)
}

/// Visits every symbol of both tables, with its offset in the ELF file.
pub(super) fn visit(
    source: &mut Source<'_>,
    file: &File,
    visit: &mut dyn FnMut(u64, &Symbol),
) -> Result<(), Error> {
    visit_tables(source, file, &[SHT_SYMTAB, SHT_DYNSYM], visit)
}

fn visit_tables(
    source: &mut Source<'_>,
    file: &File,
    kinds: &[SectionType],
    visit: &mut dyn FnMut(u64, &Symbol),
) -> Result<(), Error> {
    for section in &file.sections {
        if !kinds.contains(&section.sh_type.get(LE)) {
            continue;
        }
        let range = file_range(section);
        file.check("a symbol table", &range)?;
        entries(source, file, &range, &mut |_, at, symbol: &Symbol| {
            visit(at, symbol);
            Ok(())
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::sample::{DYNSYM, HIP_FATBIN, Sample, with};
    use super::*;

    #[test]
    fn ends_of_sections_move() {
        // At the end of the section; in it; at the same address in another one; absolute.
        let symbols = vec![
            (HIP_FATBIN, 0x4000, 0),
            (HIP_FATBIN, 0x3000, 0),
            (HIP_FATBIN + 1, 0x4000, 0),
            (0xfff1, 0x4000, 0),
        ];
        let bytes = Sample { symbols, ..Sample::default() }.build();
        let ends = [(usize::from(HIP_FATBIN), 0x4000, 0x2800)];
        let patches = with(&bytes, |source, file| repoint_ends(source, file, &ends).unwrap());
        let expected = [DYNSYM, 0x6300].map(|table| Patch::word(table + 24 + 8, 0x2800));
        assert_eq!(patches.unwrap(), expected);
    }

    #[test]
    fn symbols_gather_in_what_is_left() {
        // In what is left; after it, with a size; too large; in another section.
        let symbols = vec![
            (HIP_FATBIN, 0x1010, 4),
            (HIP_FATBIN, 0x2000, 0x800),
            (HIP_FATBIN, 0x1000, 0x21),
            (HIP_FATBIN + 1, 0x4000, 0),
        ];
        let bytes = Sample { symbols, ..Sample::default() }.build();
        let section = usize::from(HIP_FATBIN);
        let patches =
            with(&bytes, |source, file| gather(source, file, section, &(0x1000..0x1020)).unwrap());
        let symbol = 0x6300 + 2 * 24;
        let expected = [
            Patch::word(symbol + 8, 0x1000),
            Patch::word(symbol + 16, 0),
            Patch::word(symbol + 24 + 16, 0x20),
        ];
        assert_eq!(patches.unwrap(), expected);
    }

    #[test]
    fn sizes_shrink_with_the_bundles() {
        let symbols = vec![
            (HIP_FATBIN, 0x1000, 0x1000),
            (HIP_FATBIN, 0x1000, 0x800),
            (HIP_FATBIN, 0x2100, 0xf00),
            (HIP_FATBIN, 0x3000, 0x1000),
            (0, 0x1000, 0x1000),
        ];
        let bytes = Sample { symbols, ..Sample::default() }.build();
        let left = [(0x1000..0x2000, 0x900), (0x2000..0x3000, 0x80), (0x3000..0x4000, 0x1200)];
        let patches = with(&bytes, |source, file| resize(source, file, &left).unwrap()).unwrap();
        let symtab = 0x6300;
        let expected: Vec<_> = [DYNSYM, symtab]
            .into_iter()
            .flat_map(|table| {
                [(24, 0x900), (72, 0), (96, 0x1200)].map(|(at, n)| Patch::word(table + at + 16, n))
            })
            .collect();
        assert_eq!(patches, expected);
    }
}
