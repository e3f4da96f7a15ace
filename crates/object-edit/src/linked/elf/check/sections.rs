//! Section headers, and the sections that the memory does not show.

use byte_parts::Source;
use object::elf::{
    DT_FINI, DT_FINI_ARRAY, DT_GNU_HASH, DT_HASH, DT_INIT, DT_INIT_ARRAY, DT_JMPREL, DT_PLTGOT,
    DT_PREINIT_ARRAY, DT_REL, DT_RELA, DT_RELR, DT_STRTAB, DT_SYMTAB, DT_VERDEF, DT_VERNEED,
    DT_VERSYM, Dyn64, DynamicTag, SHF_ALLOC, SHF_INFO_LINK, SHF_TLS, SHT_DYNAMIC, SHT_DYNSYM,
    SHT_NOBITS, SHT_NULL, SHT_REL, SHT_RELA, SHT_SYMTAB, SymbolSection,
};
use object::{LittleEndian, Pod};

use super::{Check, fault};
use crate::error::Error;
use crate::linked::elf::file::{
    File, SectionHeader, Symbol, addresses, file_range, loaded, segment_addresses,
};
use crate::linked::elf::relocations::{Rela, entries};
use crate::linked::registration::Device;
use crate::pod::{LE, first};
use crate::tables::sized;

/// Returns whether a section is compared entry by entry.
pub(super) fn is_table(section: &SectionHeader) -> bool {
    matches!(section.sh_type.get(LE), SHT_SYMTAB | SHT_DYNSYM | SHT_RELA | SHT_DYNAMIC)
        && section.sh_flags.get(LE).contains(SHF_ALLOC)
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
    loaded.retain(|(old, _)| old.sh_flags.get(LE).contains(SHF_ALLOC) && old.sh_size.get(LE) > 0);
    loaded.sort_by_key(|(old, _)| old.sh_addr.get(LE));
    for &(old, new) in &pairs {
        attributes(check, old, new)?;
        contents(check, source, &loaded, old, new)?;
    }
    Ok(())
}

/// Checks that sections lie at the places in their headers, in a segment if they are loaded, and do not overlap.
fn places(file: &File) -> Result<(), Error> {
    let len = file.len();
    let segments = size_of_val(file.segments.as_slice()) as u64;
    let mut in_file = vec![sized(file.header.e_phoff.get(LE), segments), file.section_table()];
    let mut in_memory = Vec::new();
    for section in &file.sections {
        let (address, size) = (section.sh_addr.get(LE), section.sh_size.get(LE));
        let start = section.sh_offset.get(LE);
        let has_bytes = !matches!(section.sh_type.get(LE), SHT_NULL | SHT_NOBITS);
        if size == 0 || section.sh_type.get(LE) == SHT_NULL {
            continue;
        }
        if has_bytes {
            in_file.push(sized(start, size));
        }
        let per_thread = !has_bytes && section.sh_flags.get(LE).contains(SHF_TLS);
        if !section.sh_flags.get(LE).contains(SHF_ALLOC) || per_thread {
            continue;
        }
        in_memory.push(sized(address, size));
        let inside = file.load_at(address).is_some_and(|load| {
            let memory = if has_bytes { loaded(load) } else { segment_addresses(load) };
            let matches =
                load.p_offset.get(LE).wrapping_add(address - load.p_vaddr.get(LE)) == start;
            addresses(section).end <= memory.end && (matches || !has_bytes)
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

/// Returns the sections of both files without the sections of device code, whose number may differ.
fn pairs<'a>(check: &Check<'a>) -> Result<Vec<Pair<'a>>, Error> {
    fn others(file: &File, device: Device) -> Vec<&SectionHeader> {
        let is_other = |s: &&SectionHeader| !device.is_named(file.name(s));
        file.sections.iter().filter(is_other).collect()
    }
    let (old, new) = (others(check.old, check.device), others(check.new, check.device));
    if old.len() != new.len() {
        return Err(fault(0, "other sections than before"));
    }
    Ok(old.into_iter().zip(new).collect())
}

/// Returns the name of the section with this index; one name for all sections of device code.
fn name(file: &File, index: u64, device: Device) -> Option<&[u8]> {
    let name = file.name(file.sections.get(usize::try_from(index).ok()?)?);
    Some(if device.is_named(name) { device.section.as_bytes() } else { name })
}

/// Checks that a section header differs only in its place, and in its address only if it may move.
fn attributes(check: &Check<'_>, old: &SectionHeader, new: &SectionHeader) -> Result<(), Error> {
    let address = new.sh_addr.get(LE);
    let same = |section: &SectionHeader| {
        (
            (section.sh_type, section.sh_flags, section.sh_size),
            (section.sh_addralign, section.sh_entsize),
        )
    };
    let fixed = check.old.name(old) == check.new.name(new) && same(old) == same(new);
    let name = |file, index: u32| name(file, index.into(), check.device);
    let link = |old: u32, new: u32| name(check.old, old) == name(check.new, new);
    // For a table of symbols, it is a number of symbols.
    let has_info_link = old.sh_flags.get(LE).contains(SHF_INFO_LINK)
        || matches!(old.sh_type.get(LE), SHT_RELA | SHT_REL);
    let info = if has_info_link {
        link(old.sh_info.get(LE), new.sh_info.get(LE))
    } else {
        old.sh_info == new.sh_info
    };
    if !fixed || !link(old.sh_link.get(LE), new.sh_link.get(LE)) || !info {
        return Err(fault(address, "a section has other attributes"));
    }
    let moves = check.allowed.contains(old.sh_addr.get(LE)) && check.allowed.contains(address);
    if old.sh_addr != new.sh_addr && !moves {
        return Err(fault(address, "a section moved"));
    }
    // A section without bytes in the file still has an offset, which goes with its segment.
    let from_segment = |file: &File, section: &SectionHeader| {
        let load = file.load_at(section.sh_addr.get(LE))?;
        let offset = section.sh_offset.get(LE).checked_sub(load.p_offset.get(LE))?;
        Some((load.p_vaddr.get(LE), offset))
    };
    let is_nobits = old.sh_type.get(LE) == SHT_NOBITS && old.sh_size.get(LE) > 0;
    let (before, after) = (from_segment(check.old, old), from_segment(check.new, new));
    if is_nobits && before.is_some() && before.map(|b| b.0) == after.map(|a| a.0) && before != after
    {
        return Err(fault(address, "a section without bytes in the file lies elsewhere in it"));
    }
    Ok(())
}

/// Checks that the sections of device code have the attributes of the first one, and lie in permitted places.
fn device(check: &Check<'_>) -> Result<(), Error> {
    let device = |file: &'_ File| -> Vec<SectionHeader> {
        let sections = file.sections.iter();
        sections.filter(|s| check.device.is_named(file.name(s))).copied().collect()
    };
    let (old, new) = (device(check.old), device(check.new));
    let same = |section: &SectionHeader| {
        (
            section.sh_type,
            section.sh_flags,
            section.sh_addralign,
            section.sh_entsize,
            section.sh_link,
            section.sh_info,
        )
    };
    for section in &new {
        let address = section.sh_addr.get(LE);
        let allowed = check.allowed.contains(address) || section.sh_size.get(LE) == 0;
        if !allowed || !old.iter().any(|old| same(old) == same(section)) {
            return Err(fault(address, "a section of device code has other attributes"));
        }
    }
    match old.first() {
        Some(first) if new.is_empty() => Err(fault(first.sh_addr.get(LE), "device code is gone")),
        _ => Ok(()),
    }
}

/// Checks that only the intended contents of a section differ. `loaded`: the sections that are loaded, by address.
fn contents(
    check: &Check<'_>,
    source: &mut Source<'_>,
    loaded: &[Pair<'_>],
    old: &SectionHeader,
    new: &SectionHeader,
) -> Result<(), Error> {
    let (from, to, len) = (old.sh_offset.get(LE), new.sh_offset.get(LE), old.sh_size.get(LE));
    let allocated = old.sh_flags.get(LE).contains(SHF_ALLOC);
    match old.sh_type.get(LE) {
        SHT_NULL | SHT_NOBITS => Ok(()),
        SHT_SYMTAB | SHT_DYNSYM => {
            entry_pairs(check, source, old, new, &|old: &Symbol, new: &Symbol| {
                if symbols(check, old, new) {
                    Ok(())
                } else {
                    Err(fault(old.st_value.get(LE), "a symbol differs"))
                }
            })
        }
        SHT_RELA => entry_pairs(check, source, old, new, &|old: &Rela, new: &Rela| {
            let same = (old.r_offset, old.r_info) == (new.r_offset, new.r_info);
            let wrapper = check.pointers.binary_search(&old.r_offset.get(LE)).is_ok();
            if same && (old.r_addend == new.r_addend || wrapper) {
                Ok(())
            } else {
                Err(fault(old.r_offset.get(LE), "a relocation differs"))
            }
        }),
        SHT_DYNAMIC => dynamic(check, source, loaded, old, new),
        // Memory has been compared.
        _ if allocated && old.sh_addr == new.sh_addr => Ok(()),
        _ => match check.difference(source, from, to, len)? {
            Some(_) => Err(fault(new.sh_addr.get(LE), "the contents of a section differ")),
            None => Ok(()),
        },
    }
}

/// Compares a table entry by entry. `compare` gets sections with different bytes.
fn entry_pairs<T: Pod>(
    check: &Check<'_>,
    source: &mut Source<'_>,
    old: &SectionHeader,
    new: &SectionHeader,
    compare: &dyn Fn(&T, &T) -> Result<(), Error>,
) -> Result<(), Error> {
    let (from, to, len) = (old.sh_offset.get(LE), new.sh_offset.get(LE), old.sh_size.get(LE));
    check.chunks(source, from, to, len, &mut |_, before, after| {
        let size = size_of::<T>();
        if before.len() != after.len() || !before.len().is_multiple_of(size) {
            return Err(fault(new.sh_addr.get(LE), "a table ends within an entry"));
        }
        for (before, after) in before.chunks_exact(size).zip(after.chunks_exact(size)) {
            if before != after
                && let (Some(before), Some(after)) = (first(before), first(after))
            {
                compare(&before, &after)?;
            }
        }
        Ok(())
    })
}

/// Returns whether a symbol is the same: values and sizes may change where the memory may.
fn symbols(check: &Check<'_>, old: &Symbol, new: &Symbol) -> bool {
    let section = |file: &'_ File, index: SymbolSection| {
        if index.is_reserved() {
            None
        } else {
            file.sections.get(usize::from(index.0)).map(|s| (file.name(s).to_vec(), s.sh_type))
        }
    };
    let same_section = match section(check.old, old.st_shndx.get(LE)) {
        Some(before) => section(check.new, new.st_shndx.get(LE)) == Some(before),
        None => old.st_shndx == new.st_shndx,
    };
    let may_move = old.st_value == new.st_value
        || check.allowed.contains(old.st_value.get(LE))
            && check.allowed.contains(new.st_value.get(LE))
        || is_end_of_device(check, old)
            && check.allowed.contains(new.st_value.get(LE).wrapping_sub(1));
    let (start, size) = (new.st_value.get(LE), new.st_size.get(LE));
    let may_resize = check.allowed.contains(old.st_value.get(LE))
        && check.allowed.gaps(&sized(start, size)).is_empty();
    (old.st_name, old.st_info, old.st_other) == (new.st_name, new.st_info, new.st_other)
        && same_section
        && may_move
        && (old.st_size == new.st_size || may_resize)
}

/// Returns whether a symbol of the old file is the end of its section, which has device code.
fn is_end_of_device(check: &Check<'_>, old: &Symbol) -> bool {
    let section = check.old.sections.get(usize::from(old.st_shndx.get(LE).0));
    section.is_some_and(|section| {
        check.device.is_named(check.old.name(section))
            && addresses(section).end == old.st_value.get(LE)
    })
}

/// Tags whose value is an address: those of the generic ABI from `DT_PLTGOT` to `DT_RELR`, and of GNU.
const ADDRESSES: [DynamicTag; 17] = [
    DT_PLTGOT,
    DT_HASH,
    DT_STRTAB,
    DT_SYMTAB,
    DT_RELA,
    DT_INIT,
    DT_FINI,
    DT_REL,
    DT_JMPREL,
    DT_INIT_ARRAY,
    DT_FINI_ARRAY,
    DT_PREINIT_ARRAY,
    DT_RELR,
    DT_GNU_HASH,
    DT_VERSYM,
    DT_VERDEF,
    DT_VERNEED,
];

/// Returns the tags of a dynamic section and their values.
fn tags(
    source: &mut Source<'_>,
    file: &File,
    section: &SectionHeader,
) -> Result<Vec<(DynamicTag, u64)>, Error> {
    let mut tags = Vec::new();
    entries(source, file, &file_range(section), &mut |_, _, entry: &Dyn64<LittleEndian>| {
        tags.push((entry.d_tag.get(LE), entry.d_val.get(LE)));
        Ok(())
    })?;
    Ok(tags)
}

/// Checks that the dynamic section has the same tags, and that those of moved sections have the new places.
fn dynamic(
    check: &Check<'_>,
    source: &mut Source<'_>,
    loaded: &[Pair<'_>],
    old: &SectionHeader,
    new: &SectionHeader,
) -> Result<(), Error> {
    let before = tags(source, check.old, old)?;
    let after = super::with_new(source, check.splices, |source| tags(source, check.new, new))?;
    for ((old_tag, before), (tag, after)) in before.into_iter().zip(after) {
        let mut expected = Some(before);
        if ADDRESSES.contains(&tag) {
            let behind = loaded.partition_point(|(old, _)| old.sh_addr.get(LE) <= before);
            let around = behind.checked_sub(1).and_then(|last| loaded.get(last));
            if let Some((old, new)) = around.filter(|(old, _)| addresses(old).contains(&before)) {
                expected = new.sh_addr.get(LE).checked_add(before - old.sh_addr.get(LE));
            }
            if check.old.offset_of(before).is_some() && check.new.offset_of(after).is_none() {
                return Err(fault(after, "an address of the dynamic section is not in the file"));
            }
        }
        if old_tag != tag || Some(after) != expected {
            return Err(fault(after, "the dynamic section has another entry"));
        }
    }
    Ok(())
}
