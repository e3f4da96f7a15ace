//! Program headers, and the memory that they make.

use std::collections::BTreeSet;
use std::ops::Range;

use byte_parts::Source;
use object::elf::{PT_DYNAMIC, PT_LOAD, PT_NULL, PT_PHDR, ProgramFlags};
use object::pod::bytes_of;
use object::{U16, U64};

use super::{Check, fault};
use crate::error::Error;
use crate::linked::elf::file::{
    File, Header, ProgramHeader, loaded, segment_addresses, segment_file_range,
};
use crate::pod::LE;

const PAGE: u64 = 4096;

pub(super) fn check(check: &Check<'_>, source: &mut Source<'_>) -> Result<(), Error> {
    header(check)?;
    let shared = shared_pages(check.old);
    loads(check.new, granule(check.old), &|end, start| shared.contains(&(end, start)))?;
    table(check)?;
    others(check, source)?;
    memory(check, source)
}

/// Checks that the ELF header differs only in counts and in the place of the section headers.
fn header(check: &Check<'_>) -> Result<(), Error> {
    let (old, new) = (&check.old.header, &check.new.header);
    let what = |header: &Header| {
        let zero = U16::default();
        let same = Header {
            e_shoff: U64::default(),
            e_phentsize: zero,
            e_phnum: zero,
            e_shentsize: zero,
            e_shnum: zero,
            e_shstrndx: U16::default(),
            ..*header
        };
        bytes_of(&same).to_vec()
    };
    if what(old) == what(new) { Ok(()) } else { Err(fault(0, "the ELF header changed")) }
}

fn end(load: &ProgramHeader) -> u64 {
    segment_addresses(load).end
}

/// Returns the size of the pages that the segments of a file keep apart.
fn granule(file: &File) -> u64 {
    let align = file.loads().map(|load| load.p_align.get(LE)).max().unwrap_or(PAGE).max(PAGE);
    if loads(file, align, &|_, _| false).is_ok() { align } else { PAGE }
}

/// Returns whether the second of two segments goes on with the page of the file that the first ends on. Both map all of it.
fn goes_on(first: &ProgramHeader, second: &ProgramHeader) -> bool {
    let base = |load: &ProgramHeader| load.p_vaddr.get(LE).wrapping_sub(load.p_offset.get(LE));
    first.p_filesz == first.p_memsz && base(first) == base(second)
}

/// Returns the end of a segment and the start of the next one where they may share a page, as patchelf 0.17 leaves some.
fn shared_pages(file: &File) -> BTreeSet<(u64, u64)> {
    let pairs = file.loads().zip(file.loads().skip(1)).filter(|(a, b)| goes_on(a, b));
    pairs.map(|(a, b)| (end(a), b.p_vaddr.get(LE))).collect()
}

/// Checks that each page belongs to one segment, in ascending order, and that pages can be mapped from the file. Two
/// segments may share one where `may_share` has it, for the end of the first and the start of the second.
fn loads(file: &File, granule: u64, may_share: &dyn Fn(u64, u64) -> bool) -> Result<(), Error> {
    let len = file.len();
    // The end of the last segment, and what that is aligned to.
    let (mut last_end, mut last_align) = (0_u64, PAGE);
    let mut last: Option<&ProgramHeader> = None;
    for load in file.loads() {
        let start = load.p_vaddr.get(LE);
        let align = load.p_align.get(LE).max(PAGE);
        if !align.is_power_of_two() || start.wrapping_sub(load.p_offset.get(LE)) % align != 0 {
            return Err(fault(
                start,
                "a segment cannot be mapped: offset and address differ by more than pages",
            ));
        }
        if load.p_filesz.get(LE) > load.p_memsz.get(LE) || segment_file_range(load).end > len {
            return Err(fault(start, "a segment lies beyond the end of the file"));
        }
        let granule = granule.min(align).min(last_align);
        let next_free = last_end.checked_next_multiple_of(granule);
        let shares = || last.is_some_and(|last| goes_on(last, load) && may_share(last_end, start));
        if next_free.is_none_or(|free| start & !(granule - 1) < free) && !shares() {
            return Err(fault(start, "two segments lie on one page"));
        }
        (last_end, last_align, last) = (end(load), align, Some(load));
    }
    Ok(())
}

/// Checks that the program headers are loaded at their old address.
fn table(check: &Check<'_>) -> Result<(), Error> {
    let header = &check.new.header;
    let start = header.e_phoff.get(LE);
    let (old, new) = (check.old.address_of(start), check.new.address_of(start));
    if old != new {
        return Err(fault(old.unwrap_or(0), "the program headers are loaded elsewhere"));
    }
    // The file may be without a table.
    let size = u64::from(header.e_phnum.get(LE)) * 56;
    if let (Some(new), Some(rest)) = (new, size.checked_sub(1)) {
        let loaded = start.checked_add(rest).and_then(|last| check.new.address_of(last));
        if loaded.is_none() || loaded != new.checked_add(rest) {
            return Err(fault(new, "the program headers are not loaded as a whole"));
        }
    }
    Ok(())
}

/// Checks that the other segments do not differ.
fn others(check: &Check<'_>, source: &mut Source<'_>) -> Result<(), Error> {
    let others = |file: &'_ File| -> Vec<ProgramHeader> {
        let other = |segment: &&ProgramHeader| !matches!(segment.p_type.get(LE), PT_NULL | PT_LOAD);
        file.segments.iter().filter(other).copied().collect()
    };
    let (old, new) = (others(check.old), others(check.new));
    if old.len() != new.len() {
        return Err(fault(0, "other segments than before"));
    }
    for (old, new) in old.iter().zip(&new) {
        let address = new.p_vaddr.get(LE);
        if (old.p_type, old.p_flags) != (new.p_type, new.p_flags) {
            return Err(fault(address, "other segments than before"));
        }
        // Segments without bytes in the file may have any offset.
        if new.p_filesz.get(LE) > 0
            && old.p_filesz.get(LE) > 0
            && check.old.offset_of(old.p_vaddr.get(LE)) == Some(old.p_offset.get(LE))
            && check.new.offset_of(address) != Some(new.p_offset.get(LE))
        {
            return Err(fault(address, "a segment's offset does not match its address"));
        }
        if new.p_type.get(LE) == PT_PHDR {
            let size = u64::from(check.new.header.e_phnum.get(LE)) * 56;
            if (new.p_offset, new.p_filesz.get(LE)) != (check.new.header.e_phoff, size) {
                return Err(fault(address, "PT_PHDR does not describe the program headers"));
            }
            continue;
        }
        if (old.p_filesz, old.p_memsz) != (new.p_filesz, new.p_memsz) {
            return Err(fault(address, "a segment has another size"));
        }
        // Memory is compared by address.
        if old.p_vaddr == new.p_vaddr || new.p_type.get(LE) == PT_DYNAMIC {
            continue;
        }
        let moved = check.allowed.contains(old.p_vaddr.get(LE)) && check.allowed.contains(address);
        let (from, to, len) = (old.p_offset.get(LE), new.p_offset.get(LE), new.p_filesz.get(LE));
        if !moved || check.difference(source, from, to, len)?.is_some() {
            return Err(fault(address, "a segment moved and has other contents"));
        }
    }
    Ok(())
}

/// The source of a piece of memory.
#[derive(Clone, Copy)]
enum Backing {
    /// Bytes of the file from this offset.
    File(u64),
    Zeros,
}

/// Returns the source of the memory at `address`, its end, and its flags.
fn backing(file: &File, address: u64) -> Option<(Backing, u64, ProgramFlags)> {
    let load = file.load_at(address)?;
    let (backing, to) = match file.offset_of(address) {
        Some(offset) => (Backing::File(offset), loaded(load).end),
        None => (Backing::Zeros, end(load)),
    };
    Some((backing, to, load.p_flags.get(LE)))
}

/// Checks that memory outside of the allowed addresses is unchanged, and that none is added.
fn memory(check: &Check<'_>, source: &mut Source<'_>) -> Result<(), Error> {
    let ranges = |file: &File| -> Vec<Range<u64>> {
        file.loads().map(|l| l.p_vaddr.get(LE)..end(l)).collect()
    };
    for range in ranges(check.old).iter().flat_map(|range| check.compared.gaps(range)) {
        let mut at = range.start;
        while at < range.end {
            let (Some((before, until, flags)), Some((after, new_until, new_flags))) =
                (backing(check.old, at), backing(check.new, at))
            else {
                return Err(fault(at, "memory is gone"));
            };
            if flags != new_flags {
                return Err(fault(at, "memory has other access rights"));
            }
            let to = range.end.min(until).min(new_until);
            let difference = match (before, after) {
                (Backing::File(old), Backing::File(new)) => {
                    check.difference(source, old, new, to - at)?
                }
                (Backing::Zeros, Backing::Zeros) => None,
                _ => Some(0),
            };
            if let Some(skip) = difference {
                return Err(fault(at + skip, "memory differs"));
            }
            at = to;
        }
    }
    for gap in ranges(check.new).iter().flat_map(|range| check.compared.gaps(range)) {
        let mut at = gap.start;
        while at < gap.end {
            at =
                end(check.old.load_at(at).ok_or_else(|| fault(at, "memory that was not there"))?);
        }
    }
    Ok(())
}
