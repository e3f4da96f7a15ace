//! Mach-O: cutting out sections after another tool has rewritten the file.

use std::ops::Range;

use object::Endian;
use object::macho::{
    ARM64_RELOC_ADDEND, CPU_TYPE_ARM64, N_SECT, R_SCATTERED, Relocation, SymbolFlags,
};
use object::pod::slice_from_all_bytes_mut;

use super::super::mach_class::MachClass;
use super::super::slice;
use super::macho::{FORMAT, MachO, RELOCATION_LEN, contents, is_named, put_changed, too_large};
use super::with_capacity;
use crate::error::{ObjectPart, ObjectProblem};

/// Removes the section of this name; `None` when there is nothing to remove.
pub(super) fn remove<C: MachClass>(
    object: &[u8],
    name: &str,
) -> Result<Option<Vec<u8>>, ObjectProblem> {
    let macho = MachO::<C>::read(object)?;
    // New numbers, from 1.
    let mut numbers = Vec::with_capacity(macho.sections.len());
    let mut kept = Vec::new();
    let mut gone = Vec::new();
    for section in macho.sections {
        let fields = C::section(section);
        if is_named(&fields, name) {
            numbers.push(None);
            gone.push(fields);
        } else {
            kept.push((fields, section));
            numbers.push(Some(kept.len() as u64));
        }
    }
    if gone.is_empty() {
        return Ok(None);
    }
    let cuts = Cuts::new::<C>(
        &macho,
        gone.iter().map(contents),
        kept.iter().map(|(section, _)| contents(section)),
    );
    let too_large = || too_large(u64::MAX);
    let mut out = with_capacity(object.len() as u64)?;
    out.extend(headers(object, &macho, name, &numbers, &cuts).ok_or_else(too_large)?);
    let mut at = macho.headers_end;
    for cut in &cuts.contents {
        out.extend_from_slice(slice(object, at..cut.start).unwrap_or_default());
        at = cut.end;
    }
    out.extend_from_slice(slice(object, at..object.len() as u64).unwrap_or_default());

    // Bytes of removed contents that stay, to keep what follows aligned.
    let range_in =
        |range: Range<u64>| usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
    for rest in &cuts.rests {
        let range = cuts.apply(rest.start)..cuts.apply(rest.end);
        if let Some((start, end)) = range_in(range)
            && let Some(bytes) = out.get_mut(start..end)
        {
            bytes.fill(0);
        }
    }
    let symbols = cuts.apply(macho.symbols.start)..cuts.apply(macho.symbols.end);
    if let Some((start, end)) = range_in(symbols)
        && let Some(symbols) = out.get_mut(start..end)
    {
        renumber_symbols::<C>(symbols, &numbers)?;
    }
    for (number, section) in (1..).zip(macho.sections).map(|(n, s)| (n, C::section(s))) {
        let start = cuts.apply(section.reloff.into());
        let len = RELOCATION_LEN.saturating_mul(section.nreloc.into());
        let range = range_in(start..start.saturating_add(len));
        let relocations = range.and_then(|(start, end)| out.get_mut(start..end));
        if is_named(&section, name) && section.nreloc != 0 {
            let by = ObjectPart::Relocations(number);
            return Err(ObjectProblem::StillReferenced { format: FORMAT, section: number, by });
        }
        let arm64 = macho.header.cputype(C::order()) == CPU_TYPE_ARM64;
        renumber_relocations::<C>(relocations.unwrap_or_default(), &numbers, number, arm64)?;
    }
    Ok(Some(out))
}

/// The ranges to remove from the file.
struct Cuts {
    headers_end: u64,
    /// Length of the section headers that go.
    headers: u64,
    /// In order and apart, each a multiple of the class's word long.
    contents: Vec<Range<u64>>,
    /// The rests of removed contents, less than a word each: none if the size is the one that we write.
    rests: Vec<Range<u64>>,
}

impl Cuts {
    fn new<C: MachClass>(
        macho: &MachO<'_, C>,
        gone: impl Iterator<Item = Range<u64>>,
        kept: impl Iterator<Item = Range<u64>>,
    ) -> Self {
        let mut kept = kept.filter(|range| !range.is_empty()).collect::<Vec<_>>();
        kept.sort_by_key(|range| range.start);
        let mut gone = gone.collect::<Vec<_>>();
        gone.sort_by_key(|range| range.start);
        let headers = (size_of::<C::Section>() as u64).saturating_mul(gone.len() as u64);
        let (mut contents, mut rests) = (Vec::<Range<u64>>::new(), Vec::new());
        for range in gone.into_iter().filter(|range| !range.is_empty()) {
            let overlaps = |other: &Range<u64>| other.start < range.end && range.start < other.end;
            // Shared bytes stay, and bytes of another removed section are removed once.
            if kept.iter().any(overlaps) || contents.last().is_some_and(overlaps) {
                continue;
            }
            let len = range.end.saturating_sub(range.start);
            let end = range.end.saturating_sub(len % C::WORD);
            contents.push(range.start..end);
            rests.push(end..range.end);
        }
        Cuts { headers_end: macho.headers_end, headers, contents, rests }
    }

    /// Returns the offset without the removed ranges.
    fn apply(&self, offset: u64) -> u64 {
        if offset < self.headers_end {
            return offset;
        }
        let cut = self.contents.iter().take_while(|cut| cut.start < offset);
        let cut = cut.map(|cut| cut.end.min(offset).saturating_sub(cut.start)).sum::<u64>();
        offset.saturating_sub(self.headers).saturating_sub(cut)
    }
}

/// Returns the header and load commands without the removed sections.
fn headers<C: MachClass>(
    object: &[u8],
    macho: &MachO<'_, C>,
    name: &str,
    numbers: &[Option<u64>],
    cuts: &Cuts,
) -> Option<Vec<u8>> {
    let mut bytes = macho.headers(object, |offset| Some(cuts.apply(offset)))?;
    let mut segment = macho.segment;
    let mut fields = C::segment(&segment);
    let headers_len = u32::try_from(cuts.headers).ok()?;
    let gone = numbers.iter().filter(|number| number.is_none()).count();
    fields.cmdsize = fields.cmdsize.checked_sub(headers_len)?;
    fields.nsects = fields.nsects.checked_sub(u32::try_from(gone).ok()?)?;
    // A section after everything else goes with the padding before it, and with its addresses.
    let data_end = |goes: bool| {
        let sections = macho.sections.iter().map(C::section);
        let ends =
            sections.filter(move |section| is_named(section, name) == goes).map(|s| contents(&s));
        ends.filter(|range| !range.is_empty()).map(|range| range.end).max()
    };
    let (gone, others) = (data_end(true), data_end(false).unwrap_or(fields.fileoff));
    let last = gone == Some(macho.data_end) && others < macho.data_end;
    let end = cuts.apply(if last { others } else { macho.data_end });
    fields.fileoff = cuts.apply(fields.fileoff);
    fields.filesize = end.checked_sub(fields.fileoff)?;
    let ends = |goes: bool| {
        let sections = macho.sections.iter().map(C::section);
        let ends = sections.filter(move |section| is_named(section, name) == goes);
        ends.map(|section| section.addr.saturating_add(section.size)).max().unwrap_or(0)
    };
    let (gone, others) = (ends(true), ends(false));
    if others < gone && gone == fields.vmaddr.saturating_add(fields.vmsize) {
        let needed = others.saturating_sub(fields.vmaddr);
        fields.vmsize = needed.max(fields.filesize).min(fields.vmsize);
    }
    C::set_segment(&mut segment, &fields)?;
    let mut header = macho.header;
    header.set_sizeofcmds(header.sizeofcmds(C::order()).checked_sub(headers_len)?);
    put_changed::<C>(&mut bytes, &header, &segment, macho.segment_at)?;

    let sections_at = usize::try_from(macho.sections_at()).ok()?;
    let old_len = size_of_val(macho.sections);
    let rest = bytes.split_off(sections_at.checked_add(old_len)?);
    let sections = bytes.split_off(sections_at);
    let sections = sections.chunks_exact(size_of::<C::Section>());
    for (section, number) in sections.zip(numbers) {
        if number.is_some() {
            bytes.extend_from_slice(section);
        }
    }
    bytes.extend(rest);
    Some(bytes)
}

/// Returns the new number of a section. Numbers that are not section numbers do not change.
fn renumber(number: u64, numbers: &[Option<u64>], by: ObjectPart) -> Result<u64, ObjectProblem> {
    let index = number.checked_sub(1).and_then(|index| usize::try_from(index).ok());
    match index.and_then(|index| numbers.get(index)) {
        Some(Some(new)) => Ok(*new),
        Some(None) => Err(ObjectProblem::StillReferenced { format: FORMAT, section: number, by }),
        None => Ok(number),
    }
}

fn renumber_symbols<C: MachClass>(
    symbols: &mut [u8],
    numbers: &[Option<u64>],
) -> Result<(), ObjectProblem> {
    for symbol in symbols.chunks_exact_mut(size_of::<C::Nlist>()) {
        let [_, _, _, _, kind, section, ..] = symbol else { continue };
        let kind = SymbolFlags(*kind);
        // Debugging symbols number theirs as well.
        if kind.is_stab() || kind.typ() == N_SECT {
            let new = renumber((*section).into(), numbers, ObjectPart::SymbolTable)?;
            // Fits: numbers only get smaller.
            *section = u8::try_from(new).unwrap_or(*section);
        }
    }
    Ok(())
}

fn renumber_relocations<C: MachClass>(
    relocations: &mut [u8],
    numbers: &[Option<u64>],
    section: u64,
    arm64: bool,
) -> Result<(), ObjectProblem> {
    let e = C::order();
    let Ok(relocations) = slice_from_all_bytes_mut::<Relocation<C::Endian>>(relocations) else {
        return Ok(());
    };
    for relocation in relocations {
        let info = relocation.info(e);
        // One of 32 bits may name an address instead of a section.
        let scattered = C::WORD == 4 && info.r_address & R_SCATTERED != 0;
        // `ARM64_RELOC_ADDEND` has an addend where others have a section or symbol.
        let addend = arm64 && info.r_type == ARM64_RELOC_ADDEND;
        if scattered || info.r_extern || addend {
            continue;
        }
        let new = renumber(info.r_symbolnum.into(), numbers, ObjectPart::Relocations(section))?;
        // Fits: numbers only get smaller.
        let new = u32::try_from(new).unwrap_or(info.r_symbolnum);
        // By hand: `object` puts it to the wrong place in big-endian files.
        let word = relocation.r_word1.get(e);
        relocation.r_word1.set(
            e,
            if e.is_little_endian() { word & !0xff_ffff | new } else { word & 0xff | new << 8 },
        );
    }
    Ok(())
}
