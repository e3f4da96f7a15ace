//! The base relocations of a PE file, block by block ("PE Format", "The .reloc Section").

use std::ops::Range;

use byte_parts::Source;
use object::pe::{
    BaseRelocationType, IMAGE_DIRECTORY_ENTRY_BASERELOC, IMAGE_FILE_RELOCS_STRIPPED,
    IMAGE_REL_BASED_ABSOLUTE, ImageBaseRelocation,
};

use super::file::{File, PAGE};
use crate::error::Error;
use crate::pod::{LE, first};

const HEADER_SIZE: u64 = size_of::<ImageBaseRelocation>() as u64;
/// Each location of a page is listed once.
const LARGEST_BLOCK: u64 = HEADER_SIZE + 2 * PAGE;

/// Returns the addresses of the base relocations; `None` if a loader applies none.
pub(super) fn addresses(file: &File) -> Option<Range<u64>> {
    let is_stripped = file.coff.characteristics.get(LE).contains(IMAGE_FILE_RELOCS_STRIPPED);
    file.directory(IMAGE_DIRECTORY_ENTRY_BASERELOC).filter(|_| !is_stripped)
}

/// Calls `visit` for each block that has entries, with the address of its page, and with the offset in it and the type of each
/// location. Holds one block at a time.
pub(super) fn visit(
    source: &mut Source<'_>,
    file: &File,
    mut visit: impl FnMut(&mut Source<'_>, u64, &[(usize, BaseRelocationType)]) -> Result<(), Error>,
) -> Result<(), Error> {
    let damaged = || Error::inconsistent_sections("base relocations are damaged");
    let Some(addresses) = addresses(file) else { return Ok(()) };
    let mut at = file.window.start + file.offset_of(&addresses).ok_or_else(damaged)?;
    let end = at + (addresses.end - addresses.start);
    while end - at >= HEADER_SIZE {
        let header = source.read_range(&(at..at + HEADER_SIZE))?;
        let header = first::<ImageBaseRelocation>(&header).ok_or_else(damaged)?;
        let page = u64::from(header.virtual_address.get(LE));
        let size = u64::from(header.size_of_block.get(LE));
        if !(HEADER_SIZE..=(end - at).min(LARGEST_BLOCK)).contains(&size) {
            return Err(damaged());
        }
        let entries = source.read_range(&(at + HEADER_SIZE..at + size))?;
        at += size;
        let entries = entries.as_chunks::<2>().0.iter().map(|entry| u16::from_le_bytes(*entry));
        let locations: Vec<_> = entries
            .map(|entry| (usize::from(entry & 0xfff), BaseRelocationType(entry >> 12)))
            .filter(|(_, kind)| *kind != IMAGE_REL_BASED_ABSOLUTE)
            .collect();
        if !locations.is_empty() {
            visit(source, page, &locations)?;
        }
    }
    Ok(())
}
