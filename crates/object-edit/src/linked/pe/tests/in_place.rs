//! Bytes that change in their place, and the base relocations that forbid it.

use std::cell::Cell;
use std::io::{self, Cursor, Read, Seek, SeekFrom};

use byte_parts::Source;

use super::super::editable_in_place;
use super::*;

#[test]
fn base_relocations_apply_to_no_editable_range() {
    let file = Sample::default().build();
    let wrappers = sections(&file)[3].raw.start as u64;
    let slot = sections(&file)[4].raw.start as u64;
    let ranges = [wrappers..wrappers + 8, wrappers..wrappers + 9, slot..slot + 16, 0..16];
    let mut cursor = Cursor::new(&file);
    let mut source = Source::new(&mut cursor).unwrap();
    let editable = editable_in_place(&mut source, &(0..file.len() as u64), &ranges).unwrap();
    assert_eq!(editable, [true, false, true, false]);
}

/// A file with zeros after its bytes, which counts what is read.
struct Sparse<'a> {
    file: Cursor<Vec<u8>>,
    read: &'a Cell<usize>,
}

impl Read for Sparse<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.read.set(self.read.get() + buf.len());
        let read = self.file.read(buf)?;
        buf[read..].fill(0);
        Ok(buf.len())
    }
}

impl Seek for Sparse<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

#[test]
fn huge_base_relocations_are_not_held() {
    let mut file = Sample::default().build();
    let (size, header) = (0xf000_0000_u32, 0x98 + 240 + 5 * 40);
    // VirtualSize, SizeOfRawData, and the size in the directory
    for at in [header + 8, header + 16, 0x98 + 112 + 5 * 8 + 4] {
        file[at..at + 4].copy_from_slice(&size.to_le_bytes());
    }
    let len = (sections(&file)[5].raw.start + size as usize) as u64;
    let slot = sections(&file)[4].raw.start as u64;
    let read = Cell::new(0);
    let mut source = Source::with_len(Sparse { file: Cursor::new(file), read: &read }, len);
    let range = slot..slot + 16;
    let error = editable_in_place(&mut source, &(0..len), &[range]).unwrap_err().to_string();
    assert_eq!(error, "inconsistent section headers: base relocations are damaged");
    assert!(read.get() < 1 << 20, "{}", read.get());
}
