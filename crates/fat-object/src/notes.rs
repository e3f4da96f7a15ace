//! Notes of ELF files for GPUs (System V ABI, "Note Section").

use std::io;
use std::ops::Range;

use zerocopy::{FromBytes, LittleEndian};

use crate::source::Source;
use crate::wire::{ElfHeader, ElfHeader32, ElfHeader64, ElfSectionHeader, ElfSegment};

const SHT_NOTE: u32 = 7;
const PT_NOTE: u32 = 4;

/// Program headers that are read. Code objects have a dozen.
const MOST_SEGMENTS: usize = 64;
/// Segments or sections of notes that are read. Images for Intel's GPUs have one for each kernel, before the one in
/// question.
const MOST_NOTES: usize = 4096;
/// Bytes that are read of each. The notes in question have about 150, and stand first.
const LONGEST: u64 = 4096;

/// Returns the first answer of `visit` to a note of this owner, by its type and description: of the segments of notes, or,
/// in a file without segments, of the sections, the last one first. What is malformed has no notes.
pub(crate) fn find<T>(
    source: &mut Source<'_>,
    window: &Range<u64>,
    owner: &[u8],
    mut visit: impl FnMut(u32, &[u8]) -> Option<T>,
) -> io::Result<Option<T>> {
    let head = source.peek(window, size_of::<ElfHeader64<LittleEndian>>())?;
    let places = match head.get(4..6) {
        Some([1, 1]) => places::<ElfHeader32<LittleEndian>>(source, window, &head)?,
        Some([2, 1]) => places::<ElfHeader64<LittleEndian>>(source, window, &head)?,
        _ => Vec::new(),
    };
    for (offset, size) in places.into_iter().take(MOST_NOTES) {
        let start = window.start.saturating_add(offset).min(window.end);
        let end = start.saturating_add(size.min(LONGEST)).min(window.end);
        let bytes = source.read_range(&(start..end))?;
        let mut rest = &bytes[..];
        while let Some((name, kind, description)) = next(&mut rest) {
            let name = name.strip_suffix(b"\0").unwrap_or(name);
            if name == owner
                && let Some(found) = visit(kind, description)
            {
                return Ok(Some(found));
            }
        }
    }
    Ok(None)
}

/// Offsets and sizes of all notes.
fn places<H: ElfHeader>(
    source: &mut Source<'_>,
    window: &Range<u64>,
    head: &[u8],
) -> io::Result<Vec<(u64, u64)>> {
    let Ok((header, _)) = H::read_from_prefix(head) else { return Ok(Vec::new()) };
    let fields = header.fields();
    if fields.phnum > 0 {
        let count = usize::from(fields.phnum).min(MOST_SEGMENTS);
        let table = table::<H::Segment>(source, window, fields.phoff, fields.phentsize, count)?;
        let notes = table.iter().filter(|segment| segment.kind() == PT_NOTE);
        return Ok(notes.map(ElfSegment::file_range).collect());
    }
    let count = usize::from(fields.shnum);
    let table = table::<H::Section>(source, window, fields.shoff, fields.shentsize, count)?;
    let sections = table.iter().map(ElfSectionHeader::fields);
    let notes = sections.filter(|section| section.kind == SHT_NOTE);
    Ok(notes.map(|section| (section.offset, section.size)).rev().collect())
}

/// The entries of a table, as many as lie in the window.
fn table<E: FromBytes>(
    source: &mut Source<'_>,
    window: &Range<u64>,
    offset: u64,
    entry: u16,
    count: usize,
) -> io::Result<Vec<E>> {
    let start = window.start.saturating_add(offset);
    if usize::from(entry) != size_of::<E>() || start >= window.end {
        return Ok(Vec::new());
    }
    let bytes = source.peek(&(start..window.end), count * size_of::<E>())?;
    let entries = bytes.chunks_exact(size_of::<E>());
    Ok(entries.filter_map(|entry| E::read_from_bytes(entry).ok()).collect())
}

/// Takes a note from the front: owner, type and description. Both are padded to multiples of four bytes in files of
/// either class.
fn next<'b>(rest: &mut &'b [u8]) -> Option<(&'b [u8], u32, &'b [u8])> {
    let [name_len, len, kind] = [number(rest)?, number(rest)?, number(rest)?];
    let name = padded(rest, name_len)?;
    Some((name, kind, padded(rest, len)?))
}

fn padded<'b>(rest: &mut &'b [u8], len: u32) -> Option<&'b [u8]> {
    let len = usize::try_from(len).ok()?;
    let (bytes, after) = rest.split_at_checked(len)?;
    // The padding of the last one may be missing.
    *rest = after.get(len.wrapping_neg() % 4..).unwrap_or_default();
    Some(bytes)
}

/// Takes a number from the front.
pub(crate) fn number(rest: &mut &[u8]) -> Option<u32> {
    let (bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_le_bytes(*bytes))
}
