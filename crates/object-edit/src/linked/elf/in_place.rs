//! The bytes of a linked ELF file that can change where they are.

use std::ops::Range;

use byte_parts::Source;
use object::elf::SHT_PROGBITS;

use super::file::{self, File, SectionHeader, file_range, has_bytes, is_allocated};
use super::relocations::Relocations;
use crate::error::Error;
use crate::linked::in_place::{FileParts, Untouched};
use crate::pod::LE;
use crate::tables::{relative, sized};

/// Returns for each range whether it lies in one section of contents and nowhere else, and no relocation applies there.
pub(crate) fn editable_in_place(
    source: &mut Source<'_>,
    window: &Range<u64>,
    ranges: &[Range<u64>],
) -> Result<Vec<bool>, Error> {
    let file = File::read(source, window)?;
    let parts = parts(&file);
    let places: Vec<_> = (ranges.iter())
        .map(|range| {
            let range = relative(window, range);
            let (_, section) = parts.only(&range).filter(|_| range.end <= file.len())?;
            let section = section.filter(|section| section.sh_type.get(LE) == SHT_PROGBITS)?;
            Some((section, range))
        })
        .collect();
    let mut editable: Vec<bool> = places.iter().map(Option::is_some).collect();
    let addresses = |place: &Option<(&SectionHeader, Range<u64>)>| {
        let (section, range) = place.as_ref().filter(|(section, _)| is_allocated(section))?;
        let into = range.start - file_range(section).start;
        let start = section.sh_addr.get(LE).checked_add(into)?;
        Some(sized(start, range.end - range.start))
    };
    let untouched = Untouched::new(places.iter().map(addresses));
    let mut clear = |index: Option<usize>| {
        if let Some(editable) = index.and_then(|index| editable.get_mut(index)) {
            *editable = false;
        }
    };
    let relocations = Relocations::read(source, &file)?;
    if relocations.other.is_some() {
        untouched.all().for_each(|index| clear(Some(index)));
        return Ok(editable);
    }
    relocations.rela(source, &file, &mut |_, _, entry| {
        clear(untouched.hit(entry.r_offset.get(LE)));
        Ok(())
    })?;
    relocations.rel(source, &file, &mut |_, _, entry| {
        clear(untouched.hit(entry.r_offset.get(LE)));
        Ok(())
    })?;
    relocations.relr(source, &file, &mut |_, address| {
        clear(untouched.hit(address));
        Ok(())
    })?;
    Ok(editable)
}

/// Returns the parts of the file: sections, and headers, which are `None`.
fn parts(file: &File) -> FileParts<Option<&SectionHeader>> {
    let sections = file.sections.iter().filter(|section| has_bytes(section));
    let sections = sections.map(|section| (file_range(section), Some(section)));
    let segments = sized(file.header.e_phoff.get(LE), size_of_val(file.segments.as_slice()) as u64);
    let headers = [0..size_of::<file::Header>() as u64, segments, file.section_table()];
    FileParts::new(sections.chain(headers.map(|headers| (headers, None))))
}
