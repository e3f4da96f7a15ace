//! Notes of ELF files for GPUs (System V ABI, "Note Section").

use alloc::vec::Vec;
use core::ops::Range;

use byte_parts::Window;
use llvm_bitcode::{ReadAt, Unreadable};
use object::elf::{PT_NOTE, SHT_NOTE};
use object::{LittleEndian, Pod};

use crate::elf::{FileHeader, Header32, Header64, LE, ProgramHeader, SectionHeader, first};
use crate::read::{peek, read_range};

/// Program headers that are read. Code objects have a dozen.
const MOST_SEGMENTS: usize = 64;
/// Segments or sections of notes that are read. Images for Intel's GPUs have one for each kernel, before the one in
/// question.
const MOST_NOTES: usize = 4096;
/// Bytes that are read of each. The notes in question have about 150, and stand first.
const LONGEST: u64 = 4096;

/// Returns the first answer of `visit` to a note of this owner, by its type and description: of the segments of
/// notes, or, in a file without segments, of the sections, the last one first. Malformed files have no notes.
pub(crate) fn find<T>(
    source: &mut dyn ReadAt,
    window: &Range<u64>,
    owner: &[u8],
    mut visit: impl FnMut(u32, &[u8]) -> Option<T>,
) -> Result<Option<T>, Unreadable> {
    let head = peek(source, window, size_of::<Header64>())?;
    let places = match head.get(4..6) {
        Some([1, 1]) => places::<Header32>(source, window, &head)?,
        Some([2, 1]) => places::<Header64>(source, window, &head)?,
        _ => Vec::new(),
    };
    for (offset, size) in places.into_iter().take(MOST_NOTES) {
        let Some(Range { start, end }) = Window::new(window).rest(offset) else { continue };
        let bytes = read_range(source, &(start..start + size.min(LONGEST).min(end - start)))?;
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

/// Returns offsets and sizes of all notes.
fn places<H: FileHeader<Endian = LittleEndian>>(
    source: &mut dyn ReadAt,
    window: &Range<u64>,
    head: &[u8],
) -> Result<Vec<(u64, u64)>, Unreadable> {
    let Some(header) = first::<H>(head) else { return Ok(Vec::new()) };
    if header.e_phnum(LE) > 0 {
        let count = usize::from(header.e_phnum(LE)).min(MOST_SEGMENTS);
        let offset = header.e_phoff(LE).into();
        let table =
            table::<H::ProgramHeader>(source, window, offset, header.e_phentsize(LE), count)?;
        let notes = table.iter().filter(|segment| segment.p_type(LE) == PT_NOTE);
        return Ok(notes
            .map(|note| (note.p_offset(LE).into(), note.p_filesz(LE).into()))
            .collect());
    }
    let count = usize::from(header.e_shnum(LE));
    let offset = header.e_shoff(LE).into();
    let table = table::<H::SectionHeader>(source, window, offset, header.e_shentsize(LE), count)?;
    let notes = table.iter().filter(|section| section.sh_type(LE) == SHT_NOTE);
    Ok(notes.map(|note| (note.sh_offset(LE).into(), note.sh_size(LE).into())).rev().collect())
}

/// Returns the entries of a table, as many as lie in the window.
fn table<E: Pod>(
    source: &mut dyn ReadAt,
    window: &Range<u64>,
    offset: u64,
    entry: u16,
    count: usize,
) -> Result<Vec<E>, Unreadable> {
    let rest = Window::new(window).rest(offset).filter(|_| usize::from(entry) == size_of::<E>());
    let Some(rest) = rest else { return Ok(Vec::new()) };
    let bytes = peek(source, &rest, count * size_of::<E>())?;
    let entries = bytes.chunks_exact(size_of::<E>());
    Ok(entries.filter_map(|entry| first::<E>(entry).copied()).collect())
}

/// Takes a note from the front: owner, type and description. Both are padded to multiples of four bytes in files of
/// either class.
pub(crate) fn next<'b>(rest: &mut &'b [u8]) -> Option<(&'b [u8], u32, &'b [u8])> {
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
