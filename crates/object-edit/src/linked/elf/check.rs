//! The self-check: a loader makes the same of the new file as of the old one, except for the intended changes.
//!
//! The new file is read as any other, through the parts that it consists of; what the editor meant to do is not asked.
//! Bytes that are the same bytes of the same file need no comparison, wherever the headers of the new file say that
//! they lie: of a large library little is read.

mod contents;
mod sections;
mod segments;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use byte_parts::Source;
use object::elf::PT_LOAD;

use super::file::{File, addresses, file_range, has_bytes, loaded, segment_file_range};
use super::wrappers::{PointerForm, Wrapper, wrappers};
use crate::error::{Error, ErrorKind};
use crate::linked::registration::{Device, Registration};
use crate::output::{self, Output};
use crate::pod::LE;
use crate::tables::sized;

/// Parts of the memory, or of the file.
#[derive(Clone, Debug, Default)]
pub(super) struct Addresses {
    /// Sorted and apart.
    ranges: Vec<Range<u64>>,
}

impl Addresses {
    pub(super) fn new(mut addresses: Vec<Range<u64>>) -> Self {
        addresses.retain(|range| !range.is_empty());
        addresses.sort_by_key(|range| range.start);
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for range in addresses {
            match ranges.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => ranges.push(range),
            }
        }
        Addresses { ranges }
    }

    /// Returns the ranges that end after an address.
    fn behind(&self, address: u64) -> &[Range<u64>] {
        let before = self.ranges.partition_point(|range| range.end <= address);
        self.ranges.split_at(before).1
    }

    fn contains(&self, address: u64) -> bool {
        self.behind(address).first().is_some_and(|range| range.contains(&address))
    }

    /// Returns the parts of `range` that are not allowed to differ.
    fn gaps(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let mut gaps = Vec::new();
        let mut at = range.start;
        for allowed in self.behind(at).iter().take_while(|allowed| allowed.start < range.end) {
            if at < allowed.start {
                gaps.push(at..allowed.start);
            }
            at = at.max(allowed.end);
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
        gaps
    }
}

/// Both files.
struct Check<'a> {
    old: &'a File,
    new: &'a File,
    splices: &'a Output,
    /// The addresses whose contents may differ.
    allowed: &'a Addresses,
    /// The allowed addresses, and those compared in another way than by their bytes in memory.
    compared: Addresses,
    /// The addresses of the pointers of the wrappers.
    pointers: Vec<u64>,
    device: Device,
}

/// Compares the file that `splices` are with the old one.
///
/// `allowed` may hold something else: the place of the device code, and the old and new places of sections that
/// moved. Other functions compare the contents of wrappers, of tables of relocations and symbols and of the dynamic
/// section entry by entry, and the ELF header, the program headers and the section headers field by field.
pub(super) fn check(
    source: &mut Source<'_>,
    old: &File,
    splices: &Output,
    allowed: &Addresses,
    device: Device,
) -> Result<(), Error> {
    let before = wrappers(source, old, device.registration)?;
    let (new, after) = with_new(source, splices, |source| {
        let window = 0..source.len();
        let new = File::read(source, &window).map_err(|error| match error.kind() {
            ErrorKind::Read => error,
            _ => fault(0, "the headers cannot be read"),
        })?;
        let wrappers = wrappers(source, &new, device.registration)?;
        Ok((new, wrappers))
    })?;
    let pointers: Vec<_> = before.iter().map(Wrapper::pointer).collect();
    let mut compared = allowed.ranges.clone();
    compared.extend(pointers.iter().map(|&at| sized(at, 8)));
    let tables = old.sections.iter().filter(|section| sections::is_table(section));
    compared.extend(tables.map(addresses));
    let headers = old.segments.len().max(new.segments.len()) as u64;
    for (offset, size) in [(0, 64), (old.header.e_phoff.get(LE), headers * 56)] {
        compared.extend(old.address_of(offset).map(|at| sized(at, size)));
    }
    for part in section_headers(old) {
        compared.extend(old.loaded_parts(&part));
    }
    let compared = Addresses::new(compared);
    let check = Check { old, new: &new, splices, allowed, compared, pointers, device };
    registrations(&check, source, &before, &after)?;
    segments::check(&check, source)?;
    sections::check(&check, source)
}

/// Returns the parts of the file that hold section headers and nothing else. patchelf 0.19 puts them into memory, where nothing
/// reads them.
fn section_headers(file: &File) -> Vec<Range<u64>> {
    let sections = file.sections.iter().filter(|section| has_bytes(section)).map(file_range);
    let others = file.segments.iter().filter(|segment| segment.p_type.get(LE) != PT_LOAD);
    let others = sections.chain(others.map(segment_file_range));
    let headers = [(0, 64), (file.header.e_phoff.get(LE), file.segments.len() as u64 * 56)];
    let headers = headers.map(|(offset, size)| sized(offset, size));
    Addresses::new(others.chain(headers).collect()).gaps(&file.section_table())
}

fn fault(address: u64, what: &'static str) -> Error {
    Error::self_check(address, what)
}

/// Reads the new file.
fn with_new<T>(
    source: &mut Source<'_>,
    splices: &Output,
    read: impl FnOnce(&mut Source<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    // New images lie inside bundles, which are not looked into.
    let mut unread = ();
    let mut reader = output::reader(splices, source.reader(), &mut unread);
    read(&mut Source::new(&mut reader)?)
}

const PAGE: u64 = 4096;

/// Checks that the same wrappers exist, and that each points to a bundle.
fn registrations(
    check: &Check<'_>,
    source: &mut Source<'_>,
    before: &[Wrapper],
    after: &[Wrapper],
) -> Result<(), Error> {
    let (old, new) = (check.old, check.new);
    let Registration { readable: needed, magics, .. } = *check.device.registration;
    if !after.iter().map(|wrapper| wrapper.address).eq(before.iter().map(|old| old.address)) {
        let address = after.first().map_or(0, |wrapper| wrapper.address);
        return Err(fault(address, "other wrappers than before"));
    }
    let device_code = |file: &File| {
        let sections = file.sections.iter();
        let device = sections.filter(|s| check.device.is_named(file.name(s)));
        Addresses::new(device.map(addresses).collect())
    };
    let (device_before, device_after) = (device_code(old), device_code(new));
    let (mut moves, mut back, mut seen) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
    for (before, after) in before.iter().zip(after) {
        let Wrapper { address, bundle, .. } = *after;
        if *moves.entry(before.bundle).or_insert(bundle) != bundle
            || *back.entry(bundle).or_insert(before.bundle) != before.bundle
        {
            return Err(fault(address, "wrappers of one bundle point to two, or of two to one"));
        }
        if device_before.contains(before.bundle) && !device_after.contains(bundle) {
            return Err(fault(address, "the wrapper points outside the sections of device code"));
        }
        if std::mem::discriminant(&before.form) != std::mem::discriminant(&after.form) {
            return Err(fault(address, "the wrapper has another form of pointer"));
        }
        if matches!(after.form, PointerForm::Unknown { .. }) || !seen.insert(bundle) {
            continue;
        }
        let offset = new
            .offset_of(bundle)
            .ok_or_else(|| fault(address, "the wrapper points outside the file"))?;
        if !contents::is_device_code(source, check.splices, offset, magics)? {
            return Err(fault(address, "the wrapper points to what is not device code"));
        }
        if readable(new, bundle, needed) < readable(old, before.bundle, needed) {
            return Err(fault(address, "the runtime cannot read enough of the device code"));
        }
    }
    Ok(())
}

/// Returns the number of bytes from an address on that can be read from pages with bytes of the file: all of them, or
/// at least the `needed` ones, which the runtime reads.
fn readable(file: &File, address: u64, needed: u64) -> u64 {
    let Some(load) = file.load_at(address) else { return 0 };
    // No system maps the last page there can be.
    let Some(mut until) = loaded(load).end.checked_next_multiple_of(PAGE) else { return 0 };
    for next in file.loads_from(address).filter(|next| next.p_vaddr.get(LE) > address) {
        if next.p_vaddr.get(LE) & !(PAGE - 1) > until || until - address >= needed {
            break;
        }
        if next.p_flags == load.p_flags {
            until = until.max(loaded(next).end);
        }
    }
    // None after the last of these pages.
    until.saturating_sub(address).min(needed)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{
        DATA, DYNSYM, HIP_FATBIN, RELA, RODATA, SLOT, STARTS, Sample, TEXT, WRAPPERS, index,
        patched, splices, with,
    };
    use super::super::wrappers::repoint;
    use super::*;
    use crate::linked::registration::HIP;
    use crate::patches::Patch;

    const DEVICE: Device = Device { registration: &HIP, section: ".hip_fatbin" };

    /// Returns the addresses that may change when bundles are packed.
    fn allowed() -> Addresses {
        Addresses::new(vec![SLOT])
    }

    fn compare(old: &[u8], new: &[u8]) -> Result<(), Error> {
        with(old, |source, file| check(source, file, &splices(new), &allowed(), DEVICE)).unwrap()
    }

    /// Returns the result of the check.
    #[track_caller]
    fn found(old: &[u8], new: &[u8]) -> String {
        compare(old, new).unwrap_err().to_string()
    }

    /// Returns two bundles, the second with two wrappers.
    fn sample() -> Sample {
        let symbols = vec![(HIP_FATBIN, STARTS[2], 0x1000), (7, TEXT, 8)];
        let mut sample = Sample { symbols, ..Sample::default() };
        (sample.wrappers[1].2, sample.rela[1].3) = (STARTS[2], STARTS[2]);
        sample
    }

    /// Returns the sample with its second bundle at 0x2000, and the rest of their place cut out.
    fn packed() -> Vec<u8> {
        let moved = |address: u64| {
            address - if SLOT.end > address && address >= STARTS[2] { 0x1000 } else { 0 }
        };
        let bytes = Sample { cut: 0x3000..0x4000, ..sample() }.build();
        let patches = with(&bytes, |source, file| {
            let wrappers = wrappers(source, file, &HIP).unwrap();
            let mut patches = repoint(source, file, &wrappers, &moved).unwrap();
            // The symbols, which are not in the section of this file any more.
            for table in [DYNSYM, 0x5300] {
                patches.push(Patch::word(table + 24 + 8, STARTS[1]));
            }
            patches
        });
        patched(&bytes, &patches.unwrap())
    }

    #[test]
    fn an_unchanged_file_passes() {
        let bytes = sample().build();
        compare(&bytes, &bytes).unwrap();
        let copy = output::copy_of(&(0..bytes.len() as u64));
        let nothing = Addresses::default();
        with(&bytes, |source, file| check(source, file, &copy, &allowed(), DEVICE).unwrap());
        // A section of device code always may change.
        let result = with(&bytes, |source, file| check(source, file, &copy, &nothing, DEVICE));
        assert!(result.unwrap().is_err());
    }

    #[test]
    fn packed_bundles_and_a_gap_pass() {
        let (old, new) = (sample().build(), packed());
        assert_eq!(new.len(), old.len() - 0x1000);
        compare(&old, &new).unwrap();
        // And back again.
        compare(&new, &old).unwrap();
    }

    #[test]
    fn changed_bytes_are_found() {
        let (old, new) = (sample().build(), packed());
        let at = |address: u64| index(if address < 0x3000 { address } else { address - 0x1000 });
        let headers = index(with(&new, |_, file| file.header.e_shoff.get(LE)).unwrap());
        let expect = |offset: usize, value: u8, address: u64, what: &'static str| {
            let mut bytes = new.clone();
            assert_ne!(std::mem::replace(&mut bytes[offset], value), value);
            assert_eq!(found(&old, &bytes), fault(address, what).to_string(), "{offset:#x}");
        };
        expect(4, 1, 0, "the headers cannot be read");
        expect(24, 1, 0, "the ELF header changed");
        // Fields of the segments: offset, address, flags, size in the file, size in memory.
        let segment = |n: usize| 64 + 56 * n;
        let cannot = "a segment cannot be mapped: offset and address differ by more than pages";
        expect(segment(2) + 8, 8, TEXT, cannot);
        expect(segment(2) + 9, 0x30, TEXT, "memory differs");
        expect(segment(1) + 17, 0x20, 0x2000, "two segments lie on one page");
        expect(segment(2) + 4, 7, TEXT, "memory has other access rights");
        expect(segment(2) + 32, 8, TEXT + 8, "memory differs");
        expect(segment(3) + 34, 8, 0x6000, "a segment lies beyond the end of the file");
        expect(segment(3) + 41, 0x0f, 0x6f00, "memory is gone");
        expect(segment(3) + 41, 0x11, 0x7000, "memory that was not there");
        expect(segment(4), 6, 0x6000, "other segments than before");
        expect(segment(4) + 32, 8, 0x6000, "a segment has another size");
        expect(segment(4) + 8, 1, 0x6000, "a segment's offset does not match its address");
        // Memory.
        expect(at(RODATA) + 3, 0, RODATA + 3, "memory differs");
        expect(at(TEXT), 0, TEXT, "memory differs");
        expect(at(DATA) + 8, 1, DATA + 8, "memory differs");
        expect(0x280, 1, 0x280, "memory differs");
        // Registrations.
        let no_bundle = "the wrapper points to what is not device code";
        expect(0x2000, 0, WRAPPERS + 24, no_bundle);
        expect(index(RELA) + 16, 8, WRAPPERS, no_bundle);
        let outside = "the wrapper points outside the sections of device code";
        expect(index(RELA) + 17, 0, WRAPPERS, outside);
        let pairs = "wrappers of one bundle point to two, or of two to one";
        expect(index(RELA) + 72 - 7, 0x10, WRAPPERS + 48, pairs);
        expect(index(RELA) + 8, 37, WRAPPERS, "the wrapper has another form of pointer");
        // Section headers: address, size, type, offset.
        let section = |n: usize| headers + 64 * n;
        expect(section(6) + 4, 7, RODATA, "a section has other attributes");
        let place = "a section does not lie in a segment as its header says";
        expect(section(6) + 17, 0x41, 0x4100, place);
        expect(section(6) + 24, 1, RODATA, place);
        expect(section(5) + 8, 6, SLOT.start, "a section of device code has other attributes");
        expect(section(10) + 32, 1, DATA, "a section has other attributes");
        expect(section(9) + 32, 24, WRAPPERS, "other wrappers than before");
        let nobits = "a section without bytes in the file lies elsewhere in it";
        expect(section(11) + 24, 8, 0x6300, nobits);
        expect(section(12) + 64 + 4, 0, 0, "a section has other attributes");
        // Symbols: the name, the value of one in code, a size.
        let other = "a symbol differs";
        expect(index(DYNSYM) + 24, 1, STARTS[2], other);
        expect(index(DYNSYM) + 48 + 8, 1, TEXT, other);
        expect(index(DYNSYM) + 24 + 17, 0x40, STARTS[2], other);
        expect(0x5300 + 48 + 8, 1, TEXT, other);
        // A tag of the dynamic section.
        expect(at(0x6000) + 8, 8, 0x208, "the dynamic section has another entry");
    }

    /// Returns a file whose section headers start a segment of their own, with some bytes after them.
    fn with_loaded_headers(bytes: &[u8]) -> Vec<u8> {
        const START: usize = 0x8000;
        let (table, count) =
            with(bytes, |_, file| (file.section_table(), file.segments.len())).unwrap();
        let table = &bytes[index(table.start)..index(table.end)];
        let mut new = bytes[..bytes.len() - table.len()].to_vec();
        new.resize(START, 0);
        new.extend(table);
        new.extend(*b"more");
        let size = (new.len() - START) as u64;
        let load = [1 | 6 << 32, START as u64, 0x9000, 0x9000, size, size, 4096];
        let at = 64 + 56 * count as u64;
        let mut patches = vec![Patch::word(40, START as u64), Patch::new(56, [bytes[56] + 1])];
        patches.extend((0..7).map(|n| Patch::word(at + 8 * n as u64, load[n])));
        patched(&new, &patches)
    }

    #[test]
    fn section_headers_may_change_in_memory_and_nothing_beside_them() {
        let (old, new) = (with_loaded_headers(&sample().build()), with_loaded_headers(&packed()));
        compare(&old, &new).unwrap();
        let mut bytes = new.clone();
        *bytes.last_mut().unwrap() ^= 1;
        let size = with(&new, |_, file| file.section_table()).map(|table| table.end - table.start);
        let more = fault(0x9000 + size.unwrap() + 3, "memory differs").to_string();
        assert_eq!(found(&old, &bytes), more);
        // They may leave the memory.
        let table = bytes[0x8000..0x8000 + index(size.unwrap())].to_vec();
        let mut moved = new.clone();
        moved[0x8000..0x8000 + table.len()].fill(0);
        let moved = patched(&[moved, table].concat(), &[Patch::word(40, new.len() as u64)]);
        compare(&old, &moved).unwrap();
        // But what a section has in the same place is memory: here .strtab, beside the size of .hip_fatbin.
        let strtab = with(&old, |_, file| file.section_table().end).unwrap() - 128;
        let place = [Patch::word(strtab + 24, 0x8000), Patch::word(strtab + 32, 8 * 64)];
        let shared = found(&patched(&old, &place), &patched(&new, &place));
        let field = 0x9000 + 64 * u64::from(HIP_FATBIN) + 33;
        assert_eq!(shared, fault(field, "memory differs").to_string());
    }

    /// Returns a file whose headers are in a segment that ends on the page where the next one goes on.
    fn with_shared_page(bytes: &[u8], split: u64) -> Vec<u8> {
        let mut new = bytes.to_vec();
        let count = u16::from_le_bytes([bytes[56], bytes[57]]);
        let first = 64..64 + 56;
        new.splice(first.end..64 + 56 * (usize::from(count) + 1), {
            let mut headers = bytes[first.clone()].to_vec();
            headers.extend(&bytes[first.end..64 + 56 * usize::from(count)]);
            headers
        });
        let size = u64::from_le_bytes(bytes[64 + 32..64 + 40].try_into().unwrap()) - split;
        let mut patches = vec![Patch::new(56, (count + 1).to_le_bytes())];
        patches.extend([32, 40].map(|field| Patch::word(64 + field, split)));
        patches.extend([8, 16, 24].map(|field| Patch::word(120 + field, split)));
        patches.extend([32, 40].map(|field| Patch::word(120 + field, size)));
        patched(&new, &patches)
    }

    #[test]
    fn segments_share_a_page_as_before() {
        let (old, new) = (sample().build(), packed());
        compare(&with_shared_page(&old, 0x680), &with_shared_page(&new, 0x680)).unwrap();
        let two = "two segments lie on one page";
        for (before, at) in [(old.clone(), 0x680), (with_shared_page(&old, 0x600), 0x680)] {
            let found = found(&before, &with_shared_page(&new, at));
            assert_eq!(found, fault(at, two).to_string());
        }
    }

    #[test]
    fn symbols_may_shrink() {
        let (old, mut new) = (sample().build(), packed());
        new[index(DYNSYM) + 24 + 17] = 8;
        compare(&old, &new).unwrap();
    }

    #[test]
    fn parts_that_must_not_change_are_compared() {
        let bytes = sample().build();
        let all = bytes.len() as u64;
        for allowed in [0x100..0x200, 0x1000..0x4000] {
            let allowed = Addresses::new(vec![allowed]);
            assert_eq!(
                allowed.gaps(&(0..all)).iter().map(|gap| gap.end - gap.start).sum::<u64>(),
                all - (allowed.ranges[0].end - allowed.ranges[0].start)
            );
        }
        let allowed = Addresses::new(vec![8..9, 2..4, 3..6, 20..30]);
        assert_eq!(allowed.gaps(&(0..10)), [0..2, 6..8, 9..10]);
        assert_eq!(allowed.gaps(&(3..5)), []);
    }
}
