//! References to a bundle outside of wrappers: such a bundle keeps its address.
//!
//! Compilers refer to a bundle by nothing but its wrapper, so mostly nothing is found. Looked for are relocations to any
//! place in a bundle, operands of instructions that are the address of its first byte, and, in a program that is not
//! relocated, that address as a number of 8 bytes anywhere.

use std::ops::Range;

use byte_parts::{Source, Window};
use object::elf::{
    ET_EXEC, RelocationType, SHF_ALLOC, SHF_EXECINSTR, SHT_FINI_ARRAY, SHT_INIT_ARRAY, SHT_NOBITS,
    SHT_PREINIT_ARRAY, SHT_PROGBITS, SHT_X86_64_UNWIND, SectionType,
};

use super::file::{File, SectionHeader, Symbol, file_range, loaded};
use super::relocations::{Relocations, entries};
use super::symbols;
use super::unwind::Unwind;
use super::wrappers::Wrapper;
use crate::error::Error;
use crate::linked::scan::{Machine, Scanner, Targets, absolute, blocks, settle};
use crate::pod::LE;
use crate::tables;

/// Linkers make one or two.
const MOST_GOTS: usize = 8;
/// Types of sections that hold data of the program.
const DATA: [SectionType; 5] =
    [SHT_PROGBITS, SHT_INIT_ARRAY, SHT_FINI_ARRAY, SHT_PREINIT_ARRAY, SHT_X86_64_UNWIND];

/// Returns the bundles that something else than a wrapper may refer to, as indices into `starts`, each with the
/// address of a reference. `starts` are ascending and lie in `slot`. References by symbols do not count: symbols
/// move along.
pub(super) fn foreign_references(
    source: &mut Source<'_>,
    file: &File,
    wrappers: &[Wrapper],
    slot: &Range<u64>,
    starts: &[u64],
) -> Result<Vec<(usize, u64)>, Error> {
    let machine = Machine::of(file)?;
    let relocated = file.header.e_type.get(LE) != ET_EXEC;
    let mut targets = Targets::new(starts, slot, relocated);
    for wrapper in wrappers.iter().filter(|wrapper| wrapper.is_known()) {
        targets.wrapped(wrapper.bundle);
    }
    let relocations = Relocations::read(source, file)?;
    if let Some(at) = relocations.other {
        return Ok((0..starts.len()).map(|n| (n, at)).collect());
    }
    in_relocations(source, file, machine, wrappers, &relocations, &mut targets)?;
    let mut scanner = Scanner::new(machine, relocated, got(file));
    for section in &file.sections {
        let is_code = section.sh_flags.get(LE).contains(SHF_EXECINSTR);
        let is_data = !relocated && DATA.contains(&section.sh_type.get(LE));
        if !section.sh_flags.get(LE).contains(SHF_ALLOC)
            || section.sh_type.get(LE) == SHT_NOBITS
            || !(is_code || is_data)
            || slot.contains(&section.sh_addr.get(LE))
        {
            continue;
        }
        let contents = contents(file, section)?;
        blocks(source, &contents, section.sh_addr.get(LE), &mut |address, bytes| {
            if is_code {
                scanner.code(address, bytes, &mut targets);
            }
            if !relocated {
                let expected = |at| is_pointer(wrappers, at);
                absolute(address, bytes, &mut targets, &expected);
            }
            !targets.all_found()
        })?;
    }
    let unwind = Unwind::read(source, file)?;
    settle(source, &mut targets, &mut |source, address| unwind.function(source, file, address))?;
    Ok(targets.found())
}

/// Returns whether the pointer of a wrapper lies at this address.
fn is_pointer(wrappers: &[Wrapper], address: u64) -> bool {
    wrappers.binary_search_by_key(&address, Wrapper::pointer).is_ok()
}

/// Returns the addresses from which offsets of the large code model may count: the linker's
/// `_GLOBAL_OFFSET_TABLE_`.
fn got(file: &File) -> Vec<u64> {
    let is_got = |section: &&SectionHeader| matches!(file.name(section), b".got" | b".got.plt");
    file.sections
        .iter()
        .filter(is_got)
        .take(MOST_GOTS)
        .map(|section| section.sh_addr.get(LE))
        .collect()
}

/// Returns the range of a section's bytes in the walked file.
fn contents(file: &File, section: &SectionHeader) -> Result<Range<u64>, Error> {
    let range = file_range(section);
    file.check("a section", &range)?;
    Ok(tables::absolute(file.window.start, &range))
}

fn in_relocations(
    source: &mut Source<'_>,
    file: &File,
    machine: Machine,
    wrappers: &[Wrapper],
    relocations: &Relocations,
    targets: &mut Targets<'_>,
) -> Result<(), Error> {
    let symbols = symbol_values(source, file, relocations)?;
    type Info = (u32, RelocationType);
    let note = |at: u64, (symbol, kind): Info, addend: u64, targets: &mut Targets<'_>| {
        match usize::try_from(symbol).ok().and_then(|index| symbols.get(index)) {
            _ if symbol == 0 || kind == machine.relative() => targets.within(addend, at),
            Some(&Some((value, moves))) => {
                let target = value.wrapping_add(addend);
                let along = moves && targets.bundle(value) == targets.bundle(target);
                if !along {
                    targets.within(target, at);
                }
            }
            _ => {}
        }
    };
    relocations.rela(source, file, &mut |_, _, rela| {
        let at = rela.r_offset.get(LE);
        if !is_pointer(wrappers, at) {
            let info = (rela.r_sym(LE, false), rela.r_type(LE, false));
            note(at, info, rela.r_addend.get(LE).cast_unsigned(), targets);
        }
        Ok(())
    })?;
    let mut memory = Memory::default();
    relocations.rel(source, file, &mut |source, _, rel| {
        let at = rel.r_offset.get(LE);
        if !is_pointer(wrappers, at) {
            note(at, (rel.r_sym(LE), rel.r_type(LE)), memory.word(source, file, at)?, targets);
        }
        Ok(())
    })?;
    relocations.relr(source, file, &mut |source, at| {
        if !is_pointer(wrappers, at) {
            targets.within(memory.word(source, file, at)?, at);
        }
        Ok(())
    })
}

/// Returns the value of every dynamic symbol that is an address in this file, and whether it moves with the byte there.
fn symbol_values(
    source: &mut Source<'_>,
    file: &File,
    relocations: &Relocations,
) -> Result<Vec<Option<(u64, bool)>>, Error> {
    let mut values = Vec::new();
    if let Some(table) = &relocations.symbols {
        entries(source, file, table, &mut |_, _, symbol: &Symbol| {
            let moves = symbols::after(file, symbol, &|value| !value) != symbol.st_value.get(LE);
            let value = symbols::is_address(symbol).then(|| (symbol.st_value.get(LE), moves));
            values.push(value);
            Ok(())
        })?;
    }
    Ok(values)
}

/// Reads words by address, mostly one near the other.
#[derive(Default)]
pub(super) struct Memory {
    /// The addresses of the last segment, and what to add for an offset in the file.
    segment: Range<u64>,
    offset: u64,
}

impl Memory {
    /// Returns the word at an address; 0 where no byte of the file is.
    pub(super) fn word(
        &mut self,
        source: &mut Source<'_>,
        file: &File,
        address: u64,
    ) -> Result<u64, Error> {
        if !self.segment.contains(&address) {
            let Some(load) = file.load_at(address) else { return Ok(0) };
            self.segment = loaded(load);
            self.offset = load.p_offset.get(LE).wrapping_sub(self.segment.start);
        }
        let place = Window::new(&file.window).sized(address.wrapping_add(self.offset), 8);
        let Some(place) = place.filter(|_| self.segment.contains(&address)) else { return Ok(0) };
        let mut bytes = [0; 8];
        source.read_exact_at(place.start, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{
        AARCH64, DATA, DYN, EXEC, HIP_FATBIN, RODATA, SLOT, STARTS, Sample, TEXT, X86_64, with,
    };
    use super::super::wrappers::wrappers;
    use super::*;

    fn found(sample: &Sample) -> Vec<(usize, u64)> {
        let found = with(&sample.build(), |source, file| {
            let wrappers = wrappers(source, file, &crate::linked::registration::HIP).unwrap();
            foreign_references(source, file, &wrappers, &SLOT, &STARTS).unwrap()
        });
        found.unwrap()
    }

    /// Returns a program with these bytes in its code, `at` bytes after its start.
    fn code(e_type: u16, machine: u16, at: usize, bytes: &[u8]) -> Sample {
        let mut text = vec![0; 0x800];
        text[at..at + bytes.len()].copy_from_slice(bytes);
        Sample { e_type, machine, text, ..Sample::default() }
    }

    fn aarch64(words: &[u32]) -> Sample {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut sample = code(DYN, AARCH64, 8, &bytes);
        sample.rela.iter_mut().for_each(|rela| rela.1 = 1027);
        sample
    }

    #[test]
    fn wrappers_are_not_foreign_references() {
        assert_eq!(found(&Sample::default()), []);
        assert_eq!(found(&Sample::bare(EXEC)), []);
        assert_eq!(
            found(&Sample { relr: vec![super::super::sample::pointer(0)], ..Sample::bare(DYN) }),
            []
        );
    }

    #[test]
    fn relocations_to_any_byte_of_a_bundle_are_found() {
        let mut sample = Sample::default();
        sample.rela.extend([
            (DATA, 8, 0, 0x2fff),
            (DATA + 8, 8, 0, 0x4000),
            (DATA + 16, 8, 0, 0xfff),
        ]);
        assert_eq!(found(&sample), [(1, DATA)]);
        // The same by the value in place.
        let mut data = vec![0; 64];
        data[8..16].copy_from_slice(&0x3100_u64.to_le_bytes());
        let relr = vec![DATA, 0b11, 0x6300, 0xffff_ffff_ffff_fff0];
        assert_eq!(
            found(&Sample { relr, data: data.clone(), ..Sample::default() }),
            [(2, DATA + 8)]
        );
        assert_eq!(
            found(&Sample { rel: vec![(DATA + 8, 8)], data, ..Sample::default() }),
            [(2, DATA + 8)]
        );
    }

    #[test]
    fn symbols_move_with_their_bundles() {
        let symbols = vec![(HIP_FATBIN, 0x2000, 0), (6, 0x4000, 0), (0, 0x2000, 0), (4, 0x2000, 0)];
        let mut sample = Sample { symbols, ..Sample::default() };
        let count = sample.rela.len();
        // In the bundle of the symbol, and of a symbol that this file does not define.
        sample.rela.extend([
            (DATA, 1, 1, 0),
            (DATA + 8, 6, 1, 0),
            (DATA, 1, 1, 8),
            (DATA, 1, 3, 0),
        ]);
        assert_eq!(found(&sample), []);
        // To another one, and by a symbol that stays.
        sample.rela.truncate(count);
        sample.rela.extend([(DATA, 1, 1, 0x1000), (DATA + 8, 1, 2, 0x3000_u64.wrapping_neg())]);
        assert_eq!(found(&sample), [(0, DATA + 8), (2, DATA)]);
        sample.rela.truncate(count);
        sample.rela.push((DATA, 1, 4, 0));
        assert_eq!(found(&sample), [(1, DATA)]);
    }

    fn low(word: u64) -> u32 {
        u32::try_from(word & 0xffff_ffff).unwrap()
    }

    /// Returns the displacement from the end of an instruction.
    fn displacement(from: u64, to: u64) -> [u8; 4] {
        low(to.wrapping_sub(from)).to_le_bytes()
    }

    #[test]
    fn x86_64_displacements_are_found() {
        for at in [0_usize, 1, 5, 0x7f0] {
            for (opcode, immediate, expected) in [
                // lea, movdqu, vmovdqu
                (&[0x48, 0x8d, 0x05][..], 0, true),
                (&[0xf3, 0x0f, 0x6f, 0x0d], 0, true),
                (&[0xc5, 0x7e, 0x6f, 0x0d], 0, true),
                // cmpb, cmpw, cmpl
                (&[0x80, 0x3d], 1, true),
                (&[0x66, 0x81, 0x3d], 2, true),
                (&[0x81, 0x3d], 4, true),
                // movss, vpternlogd and the 32-bit form of lea
                (&[0xf3, 0x0f, 0x10, 0x05], 0, true),
                (&[0x62, 0xf3, 0x75, 0x48, 0x25, 0x15], 1, true),
                (&[0x67, 0x48, 0x8d, 0x05], 0, true),
                // An immediate value of another size than the instruction has, and an operand that is not in
                // memory.
                (&[0x81, 0x3d], 3, false),
                (&[0x81, 0x3d], 0, false),
                (&[0x80, 0x3d], 4, false),
                (&[0x48, 0x8d, 0x05], 1, false),
                (&[0x81, 0x7d], 4, false),
                (&[0x48, 0x8d, 0x45], 0, false),
                // Nobody calls or jumps to a bundle.
                (&[0xe8], 0, false),
                (&[0xe9], 0, false),
                (&[0x0f, 0x85], 0, false),
                // No such instruction.
                (&[0x0f, 0x04, 0x05], 0, false),
                (&[0x06, 0x05], 0, false),
            ] {
                let end = TEXT + at as u64 + opcode.len() as u64 + 4;
                let bytes = [opcode, &displacement(end + immediate, 0x2000)].concat();
                let expected: &[_] = if expected { &[(1, end - 4)] } else { &[] };
                assert_eq!(found(&code(DYN, X86_64, at, &bytes)), expected, "{opcode:x?}");
                // Into the bundle: too often by chance.
                let bytes = [opcode, &displacement(end + immediate, 0x2008)].concat();
                assert_eq!(found(&code(DYN, X86_64, at, &bytes)), []);
            }
        }
    }

    #[test]
    fn aarch64_instructions_are_found() {
        let at = TEXT + 8;
        // adrp x3 of the page of 0x2000, 3 pages before; add x3, x3, #0
        assert_eq!(found(&aarch64(&[0xb0ff_ffe3, 0x9100_0063])), [(1, at)]);
        let adr = |to: u64| 0x1000_0003 | (low(to.wrapping_sub(at)) >> 2 & 0x7_ffff) << 5;
        assert_eq!(found(&aarch64(&[adr(0x3000)])), [(2, at)]);
        assert_eq!(found(&aarch64(&[adr(0x3004)])), []);
        // ldr x3, 0x1000, and ldr q3
        for opcode in [0x5800_0003, 0x9c00_0003] {
            let ldr = opcode | adr(0x1000) & 0x00ff_ffe0;
            assert_eq!(found(&aarch64(&[ldr])), [(0, at)]);
        }
        // add and nothing to do with it
        assert_eq!(found(&aarch64(&[0x9100_0063, 0xd503_201f, 0xaa01_03e0])), []);
    }

    #[test]
    fn numbers_are_references_in_files_without_relocations() {
        let number = |at: usize, bytes: &[u8]| {
            let mut data = vec![0; 64];
            data[at..at + bytes.len()].copy_from_slice(bytes);
            data
        };
        let long = 0x2000_u64.to_le_bytes();
        let sample = |e_type: u16, rodata: Vec<u8>, data: Vec<u8>| Sample {
            rodata,
            data,
            ..Sample::bare(e_type)
        };
        assert_eq!(found(&sample(EXEC, number(3, &long), number(0, &[]))), [(1, RODATA + 3)]);
        // In data four bytes only where such a number lies, and only if no wrapper leads there.
        let short = [0, 0x30, 0, 0, 1];
        let with_two = |at: usize| {
            let mut sample = sample(EXEC, vec![], number(at, &short));
            sample.wrappers.truncate(2);
            sample
        };
        assert_eq!(found(&with_two(8)), [(2, DATA + 8)]);
        assert_eq!(found(&with_two(7)), []);
        assert_eq!(found(&sample(EXEC, vec![], number(8, &short))), []);
        assert_eq!(found(&sample(DYN, number(3, &long), number(8, &short))), []);
        let code = |bytes: &[u8]| found(&Sample { rela: vec![], ..code(EXEC, X86_64, 7, bytes) });
        // mov $0x1000, %eax; cmpq $0x1000, (%rax); lea 0x1000(%rax), %rcx; mov 0x1000, %eax; movabs
        assert_eq!(code(&[0xb8, 0, 0x10, 0, 0, 0x90]), [(0, TEXT + 8)]);
        assert_eq!(code(&[0x48, 0x81, 0x38, 0, 0x10, 0, 0]), [(0, TEXT + 10)]);
        assert_eq!(code(&[0x48, 0x8d, 0x88, 0, 0x10, 0, 0, 0x90]), [(0, TEXT + 10)]);
        assert_eq!(code(&[0x8b, 0x04, 0x25, 0, 0x10, 0, 0, 0x90]), [(0, TEXT + 10)]);
        assert_eq!(code(&[0x48, 0xb8, 0, 0x10, 0, 0, 0, 0, 0, 0]), [(0, TEXT + 9)]);
        // The distance of a branch, and what follows no opcode.
        assert_eq!(code(&[0xe8, 0, 0x10, 0, 0, 0x90]), []);
        assert_eq!(code(&[0xd6, 0, 0x10, 0, 0, 0x90]), []);
    }

    #[test]
    fn unread_tables_may_refer_to_every_bundle() {
        let mut bytes = Sample::default().build();
        // DT_RELA becomes DT_ANDROID_RELA.
        bytes[0x6010..0x6018].copy_from_slice(&0x6000_0011_u64.to_le_bytes());
        let found = with(&bytes, |source, file| {
            foreign_references(source, file, &[], &SLOT, &STARTS).unwrap()
        });
        assert_eq!(found.unwrap(), [(0, 0x300), (1, 0x300), (2, 0x300)]);
    }
}
