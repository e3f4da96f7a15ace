//! Section headers, and the sections that the memory does not show.

use byte_parts::Source;
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use super::{Check, DEVICE_SECTION, fault};
use crate::elf::file::{File, SHF_ALLOC, SHT_NOBITS, SectionHeader, Symbol, addresses};
use crate::elf::relocations::{Rela, SHT_DYNSYM, entries};
use crate::error::Error;

const SHT_NULL: u32 = 0;
const SHT_SYMTAB: u32 = 2;
const SHT_RELA: u32 = 4;
const SHT_DYNAMIC: u32 = 6;
const SHT_REL: u32 = 9;
const SHF_TLS: u64 = 0x400;
const SHF_INFO_LINK: u64 = 0x40;
const SHN_LORESERVE: u16 = 0xff00;

/// Whether a section is compared entry by entry.
pub(super) fn is_table(section: &SectionHeader) -> bool {
    matches!(section.kind.get(), SHT_SYMTAB | SHT_DYNSYM | SHT_RELA | SHT_DYNAMIC)
        && section.flags.get() & SHF_ALLOC != 0
}

/// A section in both files.
type Pair<'a> = (&'a SectionHeader, &'a SectionHeader);

pub(super) fn check(check: &Check<'_>, source: &mut Source<'_>) -> Result<(), Error> {
    if let Err(fault) = places(check.new)
        && places(check.old).is_ok()
    {
        return Err(fault);
    }
    device(check)?;
    let pairs = pairs(check)?;
    let mut loaded = pairs.clone();
    loaded.retain(|(old, _)| old.flags.get() & SHF_ALLOC != 0 && old.size.get() > 0);
    loaded.sort_by_key(|(old, _)| old.addr.get());
    for &(old, new) in &pairs {
        attributes(check, old, new)?;
        contents(check, source, &loaded, old, new)?;
    }
    Ok(())
}

/// That sections lie where their headers say, in a segment if they are loaded, and each alone.
fn places(file: &File) -> Result<(), Error> {
    let len = file.window.end - file.window.start;
    let table = |start: u64, size: u64| start..start.saturating_add(size);
    let mut in_file = vec![
        table(file.header.phoff.get(), u64::from(file.header.phnum.get()) * 56),
        table(file.header.shoff.get(), u64::from(file.header.shnum.get()) * 64),
    ];
    let mut in_memory = Vec::new();
    for section in &file.sections {
        let (address, size) = (section.addr.get(), section.size.get());
        let start = section.offset.get();
        let has_bytes = !matches!(section.kind.get(), SHT_NULL | SHT_NOBITS);
        if size == 0 || section.kind.get() == SHT_NULL {
            continue;
        }
        if has_bytes {
            in_file.push(start..start.saturating_add(size));
        }
        let per_thread = !has_bytes && section.flags.get() & SHF_TLS != 0;
        if section.flags.get() & SHF_ALLOC == 0 || per_thread {
            continue;
        }
        in_memory.push(address..address.saturating_add(size));
        let inside = file.load_at(address).is_some_and(|load| {
            let end = load.vaddr.get().saturating_add(load.memsz.get());
            let from_file = load.vaddr.get().saturating_add(load.filesz.get());
            let matches = load.offset.get().wrapping_add(address - load.vaddr.get()) == start;
            let end = if has_bytes { from_file } else { end };
            address.saturating_add(size) <= end && (matches || !has_bytes)
        });
        if !inside {
            return Err(fault(address, "a section does not lie in a segment as its header says"));
        }
    }
    for (ranges, what) in [
        (&mut in_file, "sections overlap in the file"),
        (&mut in_memory, "sections overlap in memory"),
    ] {
        ranges.sort_by_key(|range| range.start);
        let overlap = ranges.windows(2).find_map(|pair| match pair {
            [first, second] if second.start < first.end => Some(second.start),
            _ => None,
        });
        if let Some(at) = overlap {
            return Err(fault(at, what));
        }
    }
    match in_file.last() {
        Some(last) if last.end > len => Err(fault(last.start, "a section lies beyond the file")),
        _ => Ok(()),
    }
}

/// The sections of both files without those of device code, of which there may be more or fewer.
fn pairs<'a>(check: &Check<'a>) -> Result<Vec<Pair<'a>>, Error> {
    fn others(file: &File) -> Vec<&SectionHeader> {
        let is_other = |s: &&SectionHeader| !file.name(s).starts_with(DEVICE_SECTION);
        file.sections.iter().filter(is_other).collect()
    }
    let (old, new) = (others(check.old), others(check.new));
    if old.len() != new.len() {
        return Err(fault(0, "other sections than before"));
    }
    Ok(old.into_iter().zip(new).collect())
}

/// The name of the section with this index; that of device code for all such.
fn name(file: &File, index: u64) -> Option<&[u8]> {
    let name = file.name(file.sections.get(usize::try_from(index).ok()?)?);
    Some(if name.starts_with(DEVICE_SECTION) { DEVICE_SECTION } else { name })
}

/// That a section header says the same but for its place, and an address only if it may move.
fn attributes(check: &Check<'_>, old: &SectionHeader, new: &SectionHeader) -> Result<(), Error> {
    let address = new.addr.get();
    let same = |section: &SectionHeader| {
        ((section.kind, section.flags, section.size), (section.align, section.entsize))
    };
    let fixed = check.old.name(old) == check.new.name(new) && same(old) == same(new);
    let link = |old: u32, new: u32| name(check.old, old.into()) == name(check.new, new.into());
    // Of a table of symbols it is a number of symbols.
    let has_info_link =
        old.flags.get() & SHF_INFO_LINK != 0 || matches!(old.kind.get(), SHT_RELA | SHT_REL);
    let info =
        if has_info_link { link(old.info.get(), new.info.get()) } else { old.info == new.info };
    if !fixed || !link(old.link.get(), new.link.get()) || !info {
        return Err(fault(address, "a section has other attributes"));
    }
    let moves = check.allowed.contains(old.addr.get()) && check.allowed.contains(address);
    if old.addr != new.addr && !moves {
        return Err(fault(address, "a section moved"));
    }
    // A section without bytes in the file still has an offset, which goes with its segment.
    let from_segment = |file: &File, section: &SectionHeader| {
        let load = file.load_at(section.addr.get())?;
        let offset = section.offset.get().checked_sub(load.offset.get())?;
        Some((load.vaddr.get(), offset))
    };
    let is_nobits = old.kind.get() == SHT_NOBITS && old.size.get() > 0;
    let (before, after) = (from_segment(check.old, old), from_segment(check.new, new));
    if is_nobits && before.is_some() && before.map(|b| b.0) == after.map(|a| a.0) && before != after
    {
        return Err(fault(address, "a section without bytes in the file lies elsewhere in it"));
    }
    Ok(())
}

/// That the sections of device code are like the first one was, and lie where such may.
fn device(check: &Check<'_>) -> Result<(), Error> {
    let device = |file: &'_ File| -> Vec<SectionHeader> {
        let sections = file.sections.iter();
        sections.filter(|s| file.name(s).starts_with(DEVICE_SECTION)).copied().collect()
    };
    let (old, new) = (device(check.old), device(check.new));
    let same = |section: &SectionHeader| {
        (section.kind, section.flags, section.align, section.entsize, section.link, section.info)
    };
    for section in &new {
        let address = section.addr.get();
        let allowed = check.allowed.contains(address) || section.size.get() == 0;
        if !allowed || !old.iter().any(|old| same(old) == same(section)) {
            return Err(fault(address, "a section of device code has other attributes"));
        }
    }
    match old.first() {
        Some(first) if new.is_empty() => Err(fault(first.addr.get(), "device code is gone")),
        _ => Ok(()),
    }
}

/// That a section holds the same but for what was to change. `loaded`: the sections that are loaded, by address.
fn contents(
    check: &Check<'_>,
    source: &mut Source<'_>,
    loaded: &[Pair<'_>],
    old: &SectionHeader,
    new: &SectionHeader,
) -> Result<(), Error> {
    let (from, to, len) = (old.offset.get(), new.offset.get(), old.size.get());
    let allocated = old.flags.get() & SHF_ALLOC != 0;
    match old.kind.get() {
        SHT_NULL | SHT_NOBITS => Ok(()),
        SHT_SYMTAB | SHT_DYNSYM => {
            entry_pairs(check, source, old, new, &|old: &Symbol, new: &Symbol| match symbols(
                check, old, new,
            ) {
                true => Ok(()),
                false => Err(fault(old.value.get(), "a symbol differs")),
            })
        }
        SHT_RELA => entry_pairs(check, source, old, new, &|old: &Rela, new: &Rela| {
            let same = (old.offset, old.info) == (new.offset, new.info);
            let wrapper = check.pointers.binary_search(&old.offset.get()).is_ok();
            match same && (old.addend == new.addend || wrapper) {
                true => Ok(()),
                false => Err(fault(old.offset.get(), "a relocation differs")),
            }
        }),
        SHT_DYNAMIC => dynamic(check, source, loaded, old, new),
        // Memory has been compared.
        _ if allocated && old.addr == new.addr => Ok(()),
        _ => match check.difference(source, from, to, len)? {
            Some(_) => Err(fault(new.addr.get(), "the contents of a section differ")),
            None => Ok(()),
        },
    }
}

/// Compares a table entry by entry. `compare` gets those that are not the same bytes.
fn entry_pairs<T: FromBytes + Immutable + KnownLayout + Unaligned>(
    check: &Check<'_>,
    source: &mut Source<'_>,
    old: &SectionHeader,
    new: &SectionHeader,
    compare: &dyn Fn(&T, &T) -> Result<(), Error>,
) -> Result<(), Error> {
    let (from, to, len) = (old.offset.get(), new.offset.get(), old.size.get());
    check.chunks(source, from, to, len, &mut |_, before, after| {
        let size = size_of::<T>();
        if before.len() != after.len() || !before.len().is_multiple_of(size) {
            return Err(fault(new.addr.get(), "a table ends within an entry"));
        }
        for (before, after) in before.chunks_exact(size).zip(after.chunks_exact(size)) {
            if before != after
                && let (Ok(before), Ok(after)) =
                    (T::ref_from_bytes(before), T::ref_from_bytes(after))
            {
                compare(before, after)?;
            }
        }
        Ok(())
    })
}

/// Returns whether a symbol is the same: values and sizes may change where the memory may.
fn symbols(check: &Check<'_>, old: &Symbol, new: &Symbol) -> bool {
    let section = |file: &'_ File, index: u16| match index {
        SHN_LORESERVE.. => None,
        _ => file.sections.get(usize::from(index)).map(|s| (file.name(s).to_vec(), s.kind)),
    };
    let same_section = match section(check.old, old.section.get()) {
        Some(before) => section(check.new, new.section.get()) == Some(before),
        None => old.section == new.section,
    };
    let may_move = old.value == new.value
        || check.allowed.contains(old.value.get()) && check.allowed.contains(new.value.get());
    let (start, size) = (new.value.get(), new.size.get());
    let may_resize = check.allowed.contains(old.value.get())
        && check.allowed.gaps(&(start..start.saturating_add(size))).is_empty();
    (old.name, old.info, old.other) == (new.name, new.info, new.other)
        && same_section
        && may_move
        && (old.size == new.size || may_resize)
}

/// Tags whose value is an address: those of the generic ABI from `DT_PLTGOT` to `DT_RELR`, and of GNU.
const ADDRESSES: [u64; 17] = [
    3,
    4,
    5,
    6,
    7,
    12,
    13,
    17,
    23,
    25,
    26,
    32,
    36,
    0x6fff_fef5,
    0x6fff_fff0,
    0x6fff_fffc,
    0x6fff_fffe,
];

/// That the dynamic section has the same tags, and that those of sections that moved say where to.
fn dynamic(
    check: &Check<'_>,
    source: &mut Source<'_>,
    loaded: &[Pair<'_>],
    old: &SectionHeader,
    new: &SectionHeader,
) -> Result<(), Error> {
    let range = old.offset.get()..old.offset.get().saturating_add(old.size.get());
    let mut before = Vec::new();
    entries(source, check.old, &range, &mut |_, _, entry: &[u8; 16]| {
        before.push(*entry);
        Ok(())
    })?;
    let range = new.offset.get()..new.offset.get().saturating_add(new.size.get());
    let mut after = Vec::new();
    super::with_new(source, check.splices, |source| {
        entries(source, check.new, &range, &mut |_, _, entry: &[u8; 16]| {
            after.push(*entry);
            Ok(())
        })
    })?;
    let words = |entry: [u8; 16]| {
        let entry = u128::from_le_bytes(entry);
        let low = |word: u128| u64::try_from(word & u128::from(u64::MAX)).unwrap_or_default();
        (low(entry), low(entry >> 64))
    };
    for (before, after) in before.into_iter().zip(after) {
        let ((old_tag, before), (tag, after)) = (words(before), words(after));
        let mut expected = before;
        if ADDRESSES.contains(&tag) {
            let behind = loaded.partition_point(|(old, _)| old.addr.get() <= before);
            let around = behind.checked_sub(1).and_then(|last| loaded.get(last));
            if let Some((old, new)) = around.filter(|(old, _)| addresses(old).contains(&before)) {
                expected = new.addr.get().saturating_add(before - old.addr.get());
            }
            if check.old.offset_of(before).is_some() && check.new.offset_of(after).is_none() {
                return Err(fault(after, "an address of the dynamic section is not in the file"));
            }
        }
        if old_tag != tag || after != expected {
            return Err(fault(after, "the dynamic section has another entry"));
        }
    }
    Ok(())
}
