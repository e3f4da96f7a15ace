//! The wrappers that register bundles with a runtime, in the forms of their pointers, and how they get others.
//!
//! They are in a section of their own. The source of a bundle's address depends on the linker: a
//! relocation with or without the value in place, or the value alone in a program that is never relocated.

use std::ops::Range;

use byte_parts::{Source, Window};
use object::elf::{ET_EXEC, SHF_ALLOC, SHT_NOBITS};

use super::file::{File, Symbol, file_range};
use super::relocations::{Machine, Relocations, entries};
use super::symbols;
use crate::error::Error;
use crate::linked::registration::{NO_MULTIPLE, NUMBER, POINTER, Record, Registration};
use crate::patches::Patch;
use crate::pod::{LE, first};

/// A wrapper. Addresses are as in the file, before a loader adds its own.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrapper {
    /// Its address. A wrapper that ends after the last address is refused.
    pub(super) address: u64,
    /// The address that it points to; for an [unknown](PointerForm::Unknown) form, the value in place.
    pub(super) bundle: u64,
    pub(super) form: PointerForm,
}

impl Wrapper {
    /// Returns the address of its pointer.
    pub(super) fn pointer(&self) -> u64 {
        self.address + POINTER
    }

    /// Returns the address of its last word.
    pub(super) fn number(&self) -> u64 {
        self.address + NUMBER
    }

    /// Returns whether its target is known.
    pub(super) fn is_known(&self) -> bool {
        !matches!(self.form, PointerForm::Null | PointerForm::Unknown { .. })
    }
}

/// The form of the pointer from a wrapper to its bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PointerForm {
    /// The addend of a RELA relocation.
    Relative {
        /// Offset of the entry in the ELF file.
        entry: u64,
        /// `true` if the same value also lies in place.
        in_place: bool,
    },
    /// The value in place, which a RELR table names.
    Relr,
    /// A symbol and the addend of a RELA relocation.
    Symbol {
        /// Offset of the entry in the ELF file.
        entry: u64,
        /// Offset of the symbol in the ELF file.
        symbol: u64,
        /// `true` if the address also lies in place.
        in_place: bool,
    },
    /// The value in place, in a program that is not relocated.
    Plain,
    /// No address: 0, which nothing relocates.
    Null,
    /// Something else: a relocation of this type, or 0 for none where one has to be.
    Unknown { kind: u32 },
}

/// Returns all wrappers, by address. Does not check that bundles start at their targets.
pub(super) fn wrappers(
    source: &mut Source<'_>,
    file: &File,
    registration: &'static Registration,
) -> Result<Vec<Wrapper>, Error> {
    let mut wrappers = in_place(source, file, registration)?;
    if wrappers.is_empty() {
        return Ok(wrappers);
    }
    let machine = Machine::of(file)?;
    let relocations = Relocations::read(source, file)?;
    if relocations.other.is_none() {
        let is_fixed = file.header.e_type.get(LE) == ET_EXEC;
        for wrapper in &mut wrappers {
            match wrapper.bundle {
                0 => wrapper.form = PointerForm::Null,
                _ if is_fixed => wrapper.form = PointerForm::Plain,
                _ => {}
            }
        }
    }
    let mut found = vec![false; wrappers.len()];
    relocations.rela(source, file, &mut |source, entry, rela| {
        let kind = rela.r_type(LE, false);
        let Some((n, exact)) = pointer_at(&wrappers, rela.r_offset.get(LE)) else { return Ok(()) };
        let (Some(wrapper), Some(found)) = (wrappers.get_mut(n), found.get_mut(n)) else {
            return Ok(());
        };
        let again = std::mem::replace(found, true);
        let addend = rela.r_addend.get(LE).cast_unsigned();
        let value = wrapper.bundle;
        wrapper.form = PointerForm::Unknown { kind: kind.0 };
        if again || !exact {
            return Ok(());
        }
        if kind == machine.relative() {
            wrapper.bundle = addend;
            wrapper.form = PointerForm::Relative { entry, in_place: value == addend };
        } else if kind == machine.absolute() {
            let index = rela.r_sym(LE, false).into();
            if let Some((symbol, address)) = defined(source, file, &relocations, index)? {
                wrapper.bundle = address.wrapping_add(addend);
                let in_place = value == wrapper.bundle;
                wrapper.form = PointerForm::Symbol { entry, symbol, in_place };
            }
        }
        Ok(())
    })?;
    relocations.relr(source, file, &mut |_, address| {
        let Some((n, exact)) = pointer_at(&wrappers, address) else { return Ok(()) };
        if let (Some(wrapper), Some(found)) = (wrappers.get_mut(n), found.get_mut(n)) {
            let known = exact && !std::mem::replace(found, true);
            wrapper.form = if known { PointerForm::Relr } else { PointerForm::Unknown { kind: 0 } };
        }
        Ok(())
    })?;
    relocations.rel(source, file, &mut |_, _, rel| {
        let Some((n, _)) = pointer_at(&wrappers, rel.r_offset.get(LE)) else { return Ok(()) };
        if let Some(wrapper) = wrappers.get_mut(n) {
            wrapper.form = PointerForm::Unknown { kind: rel.r_type(LE).0 };
        }
        Ok(())
    })?;
    Ok(wrappers)
}

/// Returns the wrappers with their values in the file, before relocations.
fn in_place(
    source: &mut Source<'_>,
    file: &File,
    registration: &'static Registration,
) -> Result<Vec<Wrapper>, Error> {
    let name = registration.wrappers.as_bytes();
    let mut sections: Vec<_> = (file.sections.iter())
        .filter(|section| {
            section.sh_flags.get(LE).contains(SHF_ALLOC) && file.name(section) == name
        })
        .collect();
    sections.sort_by_key(|section| section.sh_addr.get(LE));
    let mut wrappers = Vec::new();
    for section in sections {
        let (address, size) = (section.sh_addr.get(LE), section.sh_size.get(LE));
        let range = file_range(section);
        let what = match section.sh_type.get(LE) {
            SHT_NOBITS => Some("none of them in the file (NOBITS)"),
            _ if !size.is_multiple_of(24) => Some(NO_MULTIPLE),
            _ if address.checked_add(size).is_none() => Some("beyond the last address"),
            _ => None,
        };
        if let Some(what) = what {
            return Err(Error::wrapper_section(address, size, what));
        }
        file.check("the section of the wrappers", &range)?;
        entries(source, file, &range, &mut |_, offset, record: &Record| {
            let address = address + (offset - range.start);
            let bundle = registration.target(record, wrappers.len(), address)?;
            wrappers.push(Wrapper { address, bundle, form: PointerForm::Unknown { kind: 0 } });
            Ok(())
        })?;
    }
    wrappers.sort_by_key(|wrapper| wrapper.address);
    Ok(wrappers)
}

/// Returns the wrapper whose pointer shares bytes with the word at `address`, and whether it starts there.
fn pointer_at(wrappers: &[Wrapper], address: u64) -> Option<(usize, bool)> {
    let n = wrappers.partition_point(|wrapper| wrapper.number() <= address);
    let pointer = wrappers.get(n)?.pointer();
    (pointer.abs_diff(address) < 8).then_some((n, pointer == address))
}

/// Returns the place of a symbol that this file defines, and its value.
fn defined(
    source: &mut Source<'_>,
    file: &File,
    relocations: &Relocations,
    index: u64,
) -> Result<Option<(u64, u64)>, Error> {
    const SIZE: u64 = size_of::<Symbol>() as u64;
    let table = relocations.symbols.as_ref().filter(|_| index != 0).map(Window::new);
    let entry = table.and_then(|table| table.sized(index.checked_mul(SIZE)?, SIZE));
    let Some(Range { start: at, .. }) = entry else { return Ok(None) };
    let mut bytes = [0; size_of::<Symbol>()];
    source.read_exact_at(file.at(at), &mut bytes)?;
    let symbol = first(&bytes).filter(symbols::is_address);
    Ok(symbol.map(|symbol| (at, symbol.st_value.get(LE))))
}

/// Returns the patches that make the wrappers, and the symbols, point to the new places of bundles. `moved` returns the
/// new address of a byte: a different one for every address in a bundle that moves.
pub(super) fn repoint(
    source: &mut Source<'_>,
    file: &File,
    wrappers: &[Wrapper],
    moved: &dyn Fn(u64) -> u64,
) -> Result<Vec<Patch>, Error> {
    let mut patches = Vec::new();
    for (n, wrapper) in wrappers.iter().enumerate() {
        let (old, new) = (wrapper.bundle, moved(wrapper.bundle));
        if old == new {
            continue;
        }
        let in_place = match wrapper.form {
            PointerForm::Relative { entry, in_place } => {
                patches.push(Patch::word(entry + 16, new));
                in_place
            }
            PointerForm::Relr | PointerForm::Plain => true,
            PointerForm::Symbol { entry, symbol, in_place } => {
                let (before, after) = symbol_values(source, file, symbol, moved)?;
                // It moves along with its symbol, unless that lies elsewhere.
                if old.wrapping_sub(before) != new.wrapping_sub(after) {
                    let addend = new.wrapping_sub(after);
                    patches.push(Patch::word(entry + 16, addend));
                }
                in_place
            }
            // Nothing moves what it leads to.
            PointerForm::Null => continue,
            PointerForm::Unknown { kind } => {
                let bundle = bundle_number(wrappers, n);
                return Err(Error::pointer_form(bundle, wrapper.pointer(), kind));
            }
        };
        if in_place {
            let what = "a wrapper lies outside the file";
            let offset = file
                .offset_of(wrapper.pointer())
                .ok_or_else(|| Error::inconsistent_segments(what))?;
            patches.push(Patch::word(offset, new));
        }
    }
    if wrappers.iter().any(|wrapper| moved(wrapper.bundle) != wrapper.bundle) {
        patches.extend(symbols::repoint(source, file, moved)?);
    }
    patches.sort_by_key(|patch| patch.offset);
    patches.dedup();
    Ok(patches)
}

/// Returns the value of a symbol, and the one that it gets.
fn symbol_values(
    source: &mut Source<'_>,
    file: &File,
    offset: u64,
    moved: &dyn Fn(u64) -> u64,
) -> Result<(u64, u64), Error> {
    let mut bytes = [0; size_of::<Symbol>()];
    source.read_exact_at(file.at(offset), &mut bytes)?;
    let symbol = first(&bytes);
    let values = |symbol: Symbol| (symbol.st_value.get(LE), symbols::after(file, &symbol, moved));
    Ok(symbol.map_or((0, 0), values))
}

/// Returns the position of the bundle of a wrapper among the bundles that wrappers point to.
fn bundle_number(wrappers: &[Wrapper], n: usize) -> usize {
    let Some(bundle) = wrappers.get(n).map(|wrapper| wrapper.bundle) else { return 0 };
    let mut lower: Vec<_> =
        wrappers.iter().map(|wrapper| wrapper.bundle).filter(|&other| other < bundle).collect();
    lower.sort_unstable();
    lower.dedup();
    lower.len()
}

#[cfg(test)]
mod tests {
    use super::super::sample::{
        AARCH64, DYN, DYNSYM, EXEC, HIP_FATBIN, RELA, STARTS, Sample, WRAPPERS, index, patched,
        pointer, with,
    };
    use super::*;
    use crate::error::ErrorKind;
    use crate::linked::registration::HIP;

    fn resolve(sample: &Sample) -> Result<Vec<Wrapper>, Error> {
        with(&sample.build(), |source, file| wrappers(source, file, &HIP)).unwrap()
    }

    fn forms(sample: &Sample) -> Vec<(u64, PointerForm)> {
        let wrappers = resolve(sample).unwrap();
        for (n, wrapper) in wrappers.iter().enumerate() {
            assert_eq!(wrapper.pointer(), pointer(n));
        }
        wrappers.into_iter().map(|wrapper| (wrapper.bundle, wrapper.form)).collect()
    }

    /// Returns the new address: the second bundle moves to 0x1800, the third to 0x2800.
    fn moved(address: u64) -> u64 {
        if (STARTS[1]..0x4000).contains(&address) { address - 0x800 } else { address }
    }

    /// Repoints, reads again, and compares. Returns the offsets of changed bytes.
    fn repointed(sample: &Sample) -> Vec<u64> {
        let bytes = sample.build();
        let patches = with(&bytes, |source, file| {
            let wrappers = wrappers(source, file, &HIP).unwrap();
            repoint(source, file, &wrappers, &moved).unwrap()
        });
        let patches = patches.unwrap();
        let before = resolve(sample).unwrap();
        let after = with(&patched(&bytes, &patches), |s, f| wrappers(s, f, &HIP)).unwrap().unwrap();
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(after.bundle, moved(before.bundle));
            assert_eq!((before.address, before.form), (after.address, after.form));
        }
        patches.iter().map(|patch| patch.offset).collect()
    }

    #[test]
    fn addends_are_read_with_and_without_the_value_in_place() {
        for (machine, kind) in [(62, 8), (AARCH64, 1027)] {
            let mut sample = Sample { machine, ..Sample::default() };
            sample.wrappers[2].2 = 0;
            sample.rela.iter_mut().for_each(|rela| rela.1 = kind);
            let entry = |n: u64| RELA + 24 * n;
            assert_eq!(
                forms(&sample),
                [
                    (STARTS[0], PointerForm::Relative { entry: entry(0), in_place: true }),
                    (STARTS[1], PointerForm::Relative { entry: entry(1), in_place: true }),
                    (STARTS[2], PointerForm::Relative { entry: entry(2), in_place: false }),
                ]
            );
            assert_eq!(repointed(&sample), [entry(1) + 16, entry(2) + 16, pointer(1)]);
        }
    }

    #[test]
    fn relr_names_words_by_address_and_by_bit() {
        let mut sample = Sample::bare(DYN);
        // The first pointer, and then every third word.
        sample.relr = vec![pointer(0), 0b1_0010_0001];
        sample.relr[1] = 1 | 1 << 3 | 1 << 6;
        assert_eq!(forms(&sample), STARTS.map(|start| (start, PointerForm::Relr)));
        assert_eq!(repointed(&sample), [pointer(1), pointer(2)]);
        // A bitmap of 63 words goes before.
        sample.relr = vec![pointer(0) - 64 * 8, 1, 1 | 1 << 1 | 1 << 4 | 1 << 7];
        assert_eq!(forms(&sample), STARTS.map(|start| (start, PointerForm::Relr)));
    }

    #[test]
    fn pointers_may_use_symbols_with_and_without_addends() {
        let mut sample = Sample::bare(DYN);
        sample.wrappers[2].2 = 0;
        sample.symbols =
            vec![(HIP_FATBIN, STARTS[1], 0), (HIP_FATBIN, STARTS[0], 0), (HIP_FATBIN, 0x3010, 8)];
        sample.rela =
            vec![(pointer(0), 1, 2, 0), (pointer(1), 1, 1, 0), (pointer(2), 1, 2, 0x2000)];
        let form = |n: u64, symbol: u64, in_place: bool| {
            let (entry, symbol) = (RELA + 24 * n, DYNSYM + 24 * symbol);
            (STARTS[index(n)], PointerForm::Symbol { entry, symbol, in_place })
        };
        assert_eq!(forms(&sample), [form(0, 2, true), form(1, 1, true), form(2, 2, false)]);
        // The symbols at 0x2000 and in the third bundle, in both tables; the addend of the third pointer, whose
        // symbol stays; the value in place of the second.
        let changed = repointed(&sample);
        let symtab = 0x6300;
        assert_eq!(
            changed,
            [
                DYNSYM + 24 + 8,
                DYNSYM + 72 + 8,
                RELA + 48 + 16,
                pointer(1),
                symtab + 24 + 8,
                symtab + 72 + 8
            ]
        );
    }

    #[test]
    fn pointers_are_plain_values_in_files_without_relocations() {
        let sample = Sample::bare(EXEC);
        assert_eq!(forms(&sample), STARTS.map(|start| (start, PointerForm::Plain)));
        assert_eq!(repointed(&sample), [pointer(1), pointer(2)]);
    }

    #[test]
    fn several_wrappers_may_share_a_bundle() {
        let mut sample = Sample::default();
        for n in 0..3 {
            (sample.wrappers[n].2, sample.rela[n].3) = (STARTS[1], STARTS[1]);
        }
        assert_eq!(repointed(&sample).len(), 6);
    }

    #[test]
    fn symbols_of_other_sections_stay() {
        // `_end` of what lies before, a constant, an undefined one, one of another section.
        let symbols =
            vec![(4, STARTS[1], 0), (0xfff1, STARTS[1], 0), (0, STARTS[1], 0), (6, 0x4000, 0)];
        let sample = Sample { symbols, ..Sample::default() };
        assert_eq!(repointed(&sample), [RELA + 24 + 16, RELA + 48 + 16, pointer(1), pointer(2)]);
    }

    fn unknown(sample: &Sample, expected: u32) {
        let wrappers = resolve(sample).unwrap();
        assert_eq!(wrappers[1].form, PointerForm::Unknown { kind: expected });
        let error = with(&sample.build(), |source, file| {
            repoint(source, file, &wrappers, &moved).unwrap_err()
        });
        let expected = Error::pointer_form(1, pointer(1), expected).to_string();
        assert_eq!(error.unwrap(), (ErrorKind::Refused, &*expected));
    }

    #[test]
    fn other_forms_are_unknown() {
        // No relocation where one has to be.
        let mut sample = Sample::default();
        sample.rela.remove(1);
        unknown(&sample, 0);
        // A symbol of another library, and a type that stores something else.
        for (kind, symbol) in [(1, 1), (1, 9), (6, 0)] {
            let mut sample = Sample { symbols: vec![(0, 0, 0)], ..Sample::default() };
            sample.rela[1] = (pointer(1), kind, symbol, STARTS[1]);
            unknown(&sample, kind);
        }
        // Two of them, and one that writes half of it.
        let mut sample = Sample::default();
        sample.rela.push((pointer(1), 8, 0, STARTS[2]));
        unknown(&sample, 8);
        let mut sample = Sample::default();
        sample.rela.push((pointer(1) + 4, 10, 0, 0));
        unknown(&sample, 10);
        // REL, and RELR beside RELA.
        let mut sample = Sample::bare(DYN);
        sample.rel = (0..3).map(|n| (pointer(n), 8)).collect();
        unknown(&sample, 8);
        let sample = Sample { relr: vec![pointer(1)], ..Sample::default() };
        unknown(&sample, 0);
    }

    #[test]
    fn wrappers_of_moved_code_and_of_other_forms_are_refused() {
        let mut sample = Sample::default();
        sample.wrappers[1].0 = 0x4b50_4948;
        assert!(resolve(&sample).unwrap_err().is_moved_out());
        sample.wrappers[1] = (0x4849_5046, 2, 0);
        let error = resolve(&sample).unwrap_err();
        assert_eq!(
            error.to_string(),
            "wrapper 1 at 0x6118: magic 0x48495046 and version 2, expected 0x48495046 and 1"
        );
    }

    #[test]
    fn a_part_of_a_wrapper_is_an_error() {
        let mut bytes = Sample::default().build();
        let at = with(&bytes, |_, file| {
            let index = file
                .sections
                .iter()
                .position(|section| file.name(section) == HIP.wrappers.as_bytes());
            file.header.e_shoff.get(LE) + 64 * index.unwrap() as u64
        });
        let at = index(at.unwrap());
        bytes[at + 32] = 71;
        let error = with(&bytes, |source, file| wrappers(source, file, &HIP)).unwrap().unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "wrappers at {WRAPPERS:#x}: 71 bytes, not a multiple of the 24 bytes of a wrapper"
            )
        );
        bytes[at + 32] = 72;
        bytes[at + 24 + 3] = 1;
        let error = with(&bytes, |source, file| wrappers(source, file, &HIP)).unwrap().unwrap_err();
        assert!(error.to_string().starts_with("the section of the wrappers lies at "), "{error}");
    }

    #[test]
    fn unsupported_machines_and_misplaced_tables_are_errors() {
        let sample = Sample { machine: 243, ..Sample::default() };
        let expected = (ErrorKind::Unsupported, "unsupported ELF: machine");
        assert_eq!(resolve(&sample).unwrap_err(), expected);
        let mut bytes = Sample::default().build();
        // DT_RELA: beyond all segments
        bytes[0x6000 + 16 + 8 + 2] = 1;
        let error = with(&bytes, |source, file| wrappers(source, file, &HIP)).unwrap().unwrap_err();
        assert!(error.to_string().starts_with("inconsistent program headers: "), "{error}");
    }

    #[test]
    fn wrappers_that_end_after_the_last_address_are_refused() {
        let bytes = Sample::default().build();
        let patch = with(&bytes, |_, file| {
            let number = file.sections.iter().position(|s| s.sh_addr.get(LE) == WRAPPERS).unwrap();
            let header = file.header.e_shoff.get(LE) + 64 * number as u64;
            Patch::word(header + 16, u64::MAX - 71)
        });
        let bytes = patched(&bytes, &[patch.unwrap()]);
        let error = with(&bytes, |source, file| wrappers(source, file, &HIP).unwrap_err()).unwrap();
        assert_eq!(error.kind(), ErrorKind::Malformed);
        let text = "wrappers at 0xffffffffffffffb8: 72 bytes, beyond the last address";
        assert_eq!(error.to_string(), text);
    }
}
