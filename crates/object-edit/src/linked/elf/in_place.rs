//! The bytes of a linked ELF file that can change where they are.

use std::ops::Range;

use byte_parts::Source;
use object::elf::{RelocationType, SHF_COMPRESSED, SHT_PROGBITS};

use super::file::{
    self, File, SectionHeader, Symbol, file_range, has_bytes, loaded, segment_file_range,
};
use super::references::Memory;
use super::relocations::{Machine, Relocations, entries};
use super::symbols::{self, is_address};
use super::validate::validate;
use crate::error::Error;
use crate::linked::in_place::{FileParts, Untouched};
use crate::pod::LE;
use crate::tables::{relative, sized};

/// Returns for each range whether it lies in one section of contents, in one loadable segment and nowhere else, no relocation
/// applies there, and no relocation or symbol points to a byte after its first.
pub(crate) fn editable_in_place(
    source: &mut Source<'_>,
    window: &Range<u64>,
    ranges: &[Range<u64>],
) -> Result<Vec<bool>, Error> {
    let file = File::read(source, window)?;
    validate(&file)?;
    let parts = parts(&file);
    let loads = FileParts::new(file.loads().map(|load| (segment_file_range(load), loaded(load))));
    let is_data = |section: &&SectionHeader| {
        section.sh_type.get(LE) == SHT_PROGBITS
            && !section.sh_flags.get(LE).contains(SHF_COMPRESSED)
    };
    let addresses = |range: &Range<u64>| {
        let range = relative(window, range);
        let (_, section) = parts.only(&range)?;
        section.filter(is_data)?;
        let (place, memory) = loads.only(&range)?;
        let start = memory.start.checked_add(range.start - place.start)?;
        Some(sized(start, range.end - range.start))
    };
    let untouched = Untouched::new(ranges.iter().map(addresses).collect());
    let machine = Machine::of(&file)?;
    let mut places = Places { untouched, machine, symbols: Vec::new() };
    if places.untouched.are_some() {
        places.read(source, &file)?;
    }
    Ok(places.untouched.finish())
}

/// Ranges of memory, and what is known of references to them.
struct Places {
    untouched: Untouched,
    machine: Machine,
    /// The symbols that relocations name.
    symbols: Vec<Symbol>,
}

impl Places {
    /// Reads symbols and relocations.
    fn read(&mut self, source: &mut Source<'_>, file: &File) -> Result<(), Error> {
        let relocations = Relocations::read(source, file)?;
        if relocations.other.is_some() {
            self.untouched.clear_all();
            return Ok(());
        }
        symbols::visit(source, file, &mut |_, symbol| {
            if is_address(symbol) {
                self.untouched.point(symbol.st_value.get(LE));
            }
        })?;
        if let Some(table) = &relocations.symbols {
            entries(source, file, table, &mut |_, _, symbol: &Symbol| {
                self.symbols.push(*symbol);
                Ok(())
            })?;
        }
        relocations.rela(source, file, &mut |_, _, entry| {
            let (symbol, kind) = (entry.r_sym(LE, false), entry.r_type(LE, false));
            let addend = entry.r_addend.get(LE).cast_unsigned();
            self.relocation(entry.r_offset.get(LE), symbol, kind, addend);
            Ok(())
        })?;
        let mut memory = Memory::default();
        relocations.rel(source, file, &mut |source, _, entry| {
            let at = entry.r_offset.get(LE);
            let addend = memory.word(source, file, at)?;
            self.relocation(at, entry.r_sym(LE), entry.r_type(LE), addend);
            Ok(())
        })?;
        relocations.relr(source, file, &mut |source, at| {
            let addend = memory.word(source, file, at)?;
            self.relocation(at, 0, self.machine.relative(), addend);
            Ok(())
        })
    }

    fn relocation(&mut self, at: u64, symbol: u32, kind: RelocationType, addend: u64) {
        let named = usize::try_from(symbol).ok().and_then(|index| self.symbols.get(index));
        if kind == self.machine.copy() {
            match named {
                Some(named) => self.untouched.write(&sized(at, named.st_size.get(LE))),
                None => self.untouched.clear_all(),
            }
            return;
        }
        self.untouched.hit(at);
        match named {
            _ if symbol == 0 || kind == self.machine.relative() => self.untouched.point(addend),
            Some(named) if is_address(named) => {
                self.untouched.point(named.st_value.get(LE).wrapping_add(addend));
            }
            _ => {}
        }
    }
}

/// Returns the parts of the file: sections, and headers, which are `None`.
fn parts(file: &File) -> FileParts<Option<&SectionHeader>> {
    let sections = file.sections.iter().filter(|section| has_bytes(section));
    let sections = sections.map(|section| (file_range(section), Some(section)));
    let segments = sized(file.header.e_phoff.get(LE), size_of_val(file.segments.as_slice()) as u64);
    let headers = [0..size_of::<file::Header>() as u64, segments, file.section_table()];
    FileParts::new(sections.chain(headers.map(|headers| (headers, None))))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{DATA, RODATA, Sample, TEXT, index};
    use super::*;
    use crate::patches::Patch;
    use std::io::Cursor;

    /// Two ranges of `.rodata`, one after the other.
    const FIRST: u64 = RODATA + 0x100;
    const SECOND: u64 = RODATA + 0x200;
    const END: u64 = RODATA + 0x300;

    fn sample() -> Sample {
        Sample { rodata: vec![1; 0x400], ..Sample::default() }
    }

    fn editable(bytes: &[u8]) -> Option<[bool; 2]> {
        let mut cursor = Cursor::new(bytes);
        let mut source = Source::new(&mut cursor).unwrap();
        let window = 0..bytes.len() as u64;
        let ranges = [FIRST..SECOND, SECOND..END];
        let editable = editable_in_place(&mut source, &window, &ranges).ok()?;
        Some(editable.try_into().unwrap())
    }

    #[track_caller]
    fn expect(sample: &Sample, expected: [bool; 2]) {
        assert_eq!(editable(&sample.build()), Some(expected));
    }

    /// Returns the sample with one more relocation: offset, type, symbol, addend.
    fn with(rela: (u64, u32, u32, u64)) -> Sample {
        let mut sample = sample();
        sample.rela.push(rela);
        sample
    }

    #[test]
    fn values_go_into_every_range_that_they_reach() {
        expect(&sample(), [true, true]);
        for (at, expected) in [
            (FIRST - 16, [true, true]),
            (FIRST - 8, [false, true]),
            (SECOND - 16, [false, true]),
            (SECOND - 8, [false, false]),
            (END - 8, [true, false]),
            (END, [true, true]),
        ] {
            expect(&with((at, 8, 0, TEXT)), expected);
        }
        // A copy has the size of its symbol; none is known for the third.
        let copy = |at, symbol| {
            let mut sample = with((at, 5, symbol, 0));
            sample.symbols = vec![(11, 0x6400, 0x300), (11, 0x6800, 8)];
            sample
        };
        expect(&copy(RODATA, 1), [false, false]);
        expect(&copy(RODATA, 2), [true, true]);
        expect(&copy(SECOND - 8, 2), [false, true]);
        expect(&copy(0x6400, 1), [true, true]);
        expect(&copy(0x6400, 3), [false, false]);
    }

    #[test]
    fn pointers_into_ranges_are_known() {
        for (target, expected) in [
            (FIRST, [true, true]),
            (FIRST + 1, [false, true]),
            (SECOND - 1, [false, true]),
            (SECOND, [true, true]),
            (END - 1, [true, false]),
            (END, [true, true]),
        ] {
            expect(&with((DATA, 8, 0, target)), expected);
            // An addend to a symbol.
            let mut sample = with((DATA, 1, 1, target - RODATA));
            sample.symbols = vec![(6, RODATA, 0)];
            expect(&sample, expected);
            // A symbol alone, and an absolute one, which has no address.
            let symbols = |section| vec![(section, target, 0)];
            expect(&Sample { symbols: symbols(6), ..self::sample() }, expected);
            expect(&Sample { symbols: symbols(0xfff1), ..self::sample() }, [true, true]);
            // In place.
            let data = target.to_le_bytes().to_vec();
            let plain = Sample { data, ..self::sample() };
            expect(&plain, [true, true]);
            expect(&Sample { relr: vec![DATA], ..plain.clone() }, expected);
            expect(&Sample { rel: vec![(DATA, 8)], ..plain }, expected);
        }
    }

    #[test]
    fn segments_say_where_bytes_are_loaded() {
        let bytes = with((FIRST + 8, 8, 0, TEXT)).build();
        let section = {
            let table = u64::from_le_bytes(bytes[40..48].try_into().unwrap());
            table + 6 * 64
        };
        let patched = |field: u64, value: u64| {
            let patch = [Patch::word(section + field, value)];
            editable(&super::super::sample::patched(&bytes, &patch))
        };
        assert_eq!(editable(&bytes), Some([false, true]));
        // Without SHF_ALLOC, compressed, and with another address.
        assert_eq!(patched(8, 0), Some([false, true]));
        assert_eq!(patched(8, 0x802), Some([false, false]));
        assert_eq!(patched(16, RODATA + 0x1000), None);
        // Not loaded at all.
        let mut bytes = sample().build();
        let size = index(64 + 32);
        bytes[size..size + 8].copy_from_slice(&SECOND.to_le_bytes());
        assert_eq!(editable(&bytes), None);
        bytes[index(section) + 8..index(section) + 16].fill(0);
        assert_eq!(editable(&bytes), Some([true, false]));
    }
}
