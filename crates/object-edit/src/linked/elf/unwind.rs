//! Starts and ends of functions, from the tables for exceptions: `.eh_frame_hdr`, in which one can search, and
//! `.eh_frame` (Linux Standard Base, "Exception Frames").

use std::io;
use std::ops::Range;

use byte_parts::{Source, Window};
use object::elf::PT_GNU_EH_FRAME;

use super::file::File;
use crate::linked::read::{u32_at, u64_at};
use crate::linked::scan::Function;
use crate::pod::LE;
use crate::tables::sized;

/// Version 1; a pointer of 4 bytes from where it lies, a number of 4 bytes, a table of pointers of 4 bytes from the
/// start. All linkers write just these.
const HEADER: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
const HEADER_SIZE: u64 = 12;
const ENTRY_SIZE: u64 = size_of::<[u32; 2]>() as u64;
/// The end of the largest common information entry that is read.
const LARGEST_CIE: usize = 256;

/// The table of functions.
#[derive(Debug, Default)]
pub(super) struct Unwind {
    /// The address of its header.
    address: u64,
    /// The range of its entries in the bytes read.
    entries: Range<u64>,
}

impl Unwind {
    /// Returns the table, empty where there is none of the usual form.
    pub(super) fn read(source: &mut Source<'_>, file: &File) -> io::Result<Self> {
        let mut segments = file.segments.iter();
        let Some(segment) = segments.find(|segment| segment.p_type.get(LE) == PT_GNU_EH_FRAME)
        else {
            return Ok(Unwind::default());
        };
        let (address, size) = (segment.p_vaddr.get(LE), segment.p_filesz.get(LE));
        let Some(offset) = file.offset_of(address).filter(|_| size >= HEADER_SIZE) else {
            return Ok(Unwind::default());
        };
        let start = file.at(offset);
        let header = source.peek(&(start..file.window.end), 12)?;
        let count = u64::from(u32_at(&header, 8));
        let entries = Window::new(&(start..file.window.end)).sized(HEADER_SIZE, count * ENTRY_SIZE);
        let usual = header.starts_with(&HEADER) && count * ENTRY_SIZE <= size - HEADER_SIZE;
        let entries = entries.filter(|_| usual);
        Ok(entries.map_or_else(Unwind::default, |entries| Unwind { address, entries }))
    }

    /// Returns the function at an address.
    pub(super) fn function(
        &self,
        source: &mut Source<'_>,
        file: &File,
        at: u64,
    ) -> io::Result<Option<Function>> {
        let mut below = None;
        let mut entries = 0..(self.entries.end - self.entries.start) / ENTRY_SIZE;
        while entries.start < entries.end {
            let middle = entries.start.midpoint(entries.end);
            let mut entry = [0; size_of::<[u32; 2]>()];
            source.read_exact_at(self.entries.start + middle * ENTRY_SIZE, &mut entry)?;
            let [start, frame] = *entry.as_chunks::<4>().0 else { return Ok(None) };
            let [start, frame] = [start, frame].map(|pointer| {
                self.address.wrapping_add_signed(i32::from_le_bytes(pointer).into())
            });
            if start <= at {
                below = Some((start, frame));
                entries.start = middle + 1;
            } else {
                entries.end = middle;
            }
        }
        let Some((start, frame)) = below else { return Ok(None) };
        let Some(size) = size(source, file, start, frame)? else { return Ok(None) };
        let Some(distance) = size.checked_sub(1) else { return Ok(None) };
        let last = start.checked_add(distance).and_then(|last| file.offset_of(last));
        let (Some(first), Some(last)) = (file.offset_of(start), last) else { return Ok(None) };
        let function = Function { addresses: sized(start, size), offset: file.at(first) };
        Ok((last.checked_sub(first) == Some(distance)).then_some(function))
    }
}

/// Returns the size of the function that starts at `start`, from the frame description entry at this address.
fn size(source: &mut Source<'_>, file: &File, start: u64, frame: u64) -> io::Result<Option<u64>> {
    let Some(entry) = memory(source, file, frame, 24)? else { return Ok(None) };
    let distance = u64::from(u32_at(&entry, 4));
    let common = frame.wrapping_add(4).wrapping_sub(distance);
    if distance == 0 || u32_at(&entry, 0) == u32::MAX {
        return Ok(None);
    }
    let Some(common) = memory(source, file, common, LARGEST_CIE)? else { return Ok(None) };
    let place = frame.wrapping_add(8);
    Ok(match encoding(&common) {
        // Numbers of 4 bytes from where they lie, and of 8 bytes.
        Some(0x1b) => {
            let by = u32_at(&entry, 8).cast_signed();
            (place.wrapping_add_signed(by.into()) == start).then(|| u32_at(&entry, 12).into())
        }
        Some(0x1c) => (place.wrapping_add(u64_at(&entry, 8)) == start).then(|| u64_at(&entry, 16)),
        _ => None,
    })
}

/// Returns the encoding of the addresses of functions that a common information entry sets.
fn encoding(common: &[u8]) -> Option<u8> {
    let (version, rest) = common.get(8..)?.split_first()?;
    let end = rest.iter().position(|&byte| byte == 0)?;
    let (augmentation, rest) = rest.split_at_checked(end)?;
    let mut rest = leb(leb(rest.get(1..)?)?)?;
    rest = match version {
        1 => rest.get(1..)?,
        3 => leb(rest)?,
        _ => return None,
    };
    let (b'z', augmentation) = augmentation.split_first()? else { return None };
    rest = leb(rest)?;
    for letter in augmentation {
        match letter {
            b'R' => return rest.first().copied(),
            b'P' => {
                let size = match rest.first()? & 0xf {
                    0x0 | 0x4 | 0xc => 8,
                    0x2 | 0xa => 2,
                    0x3 | 0xb => 4,
                    _ => return None,
                };
                rest = rest.get(1 + size..)?;
            }
            b'L' => rest = rest.get(1..)?,
            b'S' | b'B' => {}
            _ => return None,
        }
    }
    None
}

/// Returns the bytes after a number of variable length.
fn leb(bytes: &[u8]) -> Option<&[u8]> {
    let last = bytes.iter().position(|byte| byte & 0x80 == 0)?;
    bytes.get(last + 1..)
}

/// Returns up to `max` bytes at an address; none where the file has no byte for it.
fn memory(
    source: &mut Source<'_>,
    file: &File,
    address: u64,
    max: usize,
) -> io::Result<Option<Vec<u8>>> {
    let Some(offset) = file.offset_of(address) else { return Ok(None) };
    let start = file.at(offset);
    source.peek(&(start..file.window.end.max(start)), max).map(Some)
}
