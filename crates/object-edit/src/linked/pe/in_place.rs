//! The bytes of a PE file that can change where they are, and what else such a change asks for.

use std::ops::Range;

use byte_parts::Source;
use object::pe::{
    IMAGE_DIRECTORY_ENTRY_BASERELOC, IMAGE_FILE_RELOCS_STRIPPED, IMAGE_REL_BASED_ABSOLUTE,
    ImageBaseRelocation,
};

use super::file::{File, PAGE, file_range};
use super::place::Places;
use super::{certificates, checksum, layout};
use crate::error::Error;
use crate::linked::host::{Edited, HostContext};
use crate::linked::in_place::{FileParts, Untouched};
use crate::output::{self, NewInputs, Output};
use crate::pod::{LE, first};
use crate::tables::{relative, sized};

const BLOCK_HEADER: u64 = size_of::<ImageBaseRelocation>() as u64;

/// Returns for each range whether it lies in one section, and no base relocation applies there.
pub(crate) fn editable_in_place(
    source: &mut Source<'_>,
    window: &Range<u64>,
    ranges: &[Range<u64>],
) -> Result<Vec<bool>, Error> {
    let file = File::read(source, window)?;
    let parts = FileParts::new(file.sections.iter().map(|section| (file_range(section), section)));
    let addresses: Vec<_> = (ranges.iter())
        .map(|range| {
            let range = relative(window, range);
            let (place, section) = parts.only(&range)?;
            let start = u64::from(section.virtual_address.get(LE)) + (range.start - place.start);
            Some(sized(start, range.end - range.start))
        })
        .collect();
    let mut editable: Vec<bool> = addresses.iter().map(Option::is_some).collect();
    let untouched = Untouched::new(addresses.into_iter());
    relocated(source, &file, |address| {
        for index in untouched.hits(address) {
            if let Some(editable) = editable.get_mut(index) {
                *editable = false;
            }
        }
    })?;
    Ok(editable)
}

/// Calls `visit` with every address to which a base relocation applies.
fn relocated(
    source: &mut Source<'_>,
    file: &File,
    mut visit: impl FnMut(u64),
) -> Result<(), Error> {
    let is_stripped = file.coff.characteristics.get(LE).contains(IMAGE_FILE_RELOCS_STRIPPED);
    let directory = file.directory(IMAGE_DIRECTORY_ENTRY_BASERELOC).filter(|_| !is_stripped);
    let Some(addresses) = directory else { return Ok(()) };
    let damaged = || Error::inconsistent_sections("base relocations are damaged");
    let table = file.read_at(source, &addresses)?.ok_or_else(damaged)?;
    let mut rest = table.as_slice();
    while rest.len() as u64 >= BLOCK_HEADER {
        let header = first::<ImageBaseRelocation>(rest).ok_or_else(damaged)?;
        let page = u64::from(header.virtual_address.get(LE));
        let size = u64::from(header.size_of_block.get(LE));
        let block;
        (block, rest) = usize::try_from(size)
            .ok()
            .filter(|_| (BLOCK_HEADER..=BLOCK_HEADER + 2 * PAGE).contains(&size))
            .and_then(|size| rest.split_at_checked(size))
            .ok_or_else(damaged)?;
        for entry in block.as_chunks::<2>().0.iter().skip(size_of::<ImageBaseRelocation>() / 2) {
            let entry = u16::from_le_bytes(*entry);
            if entry >> 12 != IMAGE_REL_BASED_ABSOLUTE.0 {
                visit(page + u64::from(entry & 0xfff));
            }
        }
    }
    Ok(())
}

/// Returns the file without its signature, if that may go, and nothing else changed.
pub(crate) fn unsigned(source: &mut Source<'_>, context: HostContext<'_>) -> Result<Edited, Error> {
    let file = File::read(source, context.window)?;
    let Some(certificates) = certificates(&file, context)? else {
        return Ok(Edited::new(output::copy_of(context.window)));
    };
    let headers_size = u64::from(file.optional.size_of_headers.get(LE));
    let places = Places { placements: Vec::new(), headers_size };
    let layout = layout::lay_out(source, &file, &[], &places, &[], Some(&certificates))?;
    Ok(Edited { signature_dropped: true, ..Edited::new(layout.splices) })
}

/// Makes the checksum of an edited file right, if it had one before the edit.
pub(crate) fn set_checksum(
    source: &mut Source<'_>,
    new: &mut dyn NewInputs,
    window: &Range<u64>,
    parts: &mut Output,
) -> Result<(), Error> {
    let file = File::read(source, window)?;
    if file.optional.check_sum.get(LE) == 0 {
        return Ok(());
    }
    // The headers stay where they are.
    let at = file.optional_at() + layout::CHECKSUM_AT;
    parts.overwrite(at, &[0; 4]);
    let len = parts.size();
    let sum = checksum::checksum(output::reader(parts, source.reader(), new), len)?;
    parts.overwrite(at, &sum.to_le_bytes());
    Ok(())
}
