//! The bitstream container of LLVM bitcode: fields, abbreviations, records and blocks (LLVM Bitcode File
//! Format, "Bitstream Format").
//!
//! Fields have any width and no alignment; bits count from the least significant of each byte. Only a part
//! of the file is in memory at a time; whole blocks, arrays and blobs are skipped by their lengths.

use alloc::format;
use alloc::vec::Vec;

use crate::abbreviation::{Abbreviation, Abbreviations, Encoding, Operand};
use crate::bits::{Cursor, WORD_BITS};
use crate::error::{Error, ErrorKind};

/// A block's header. Positions are bits from the start of the stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) id: u64,
    width: u32,
    start: u64,
    end: u64,
}

impl Head {
    /// Returns whether a bit of the stream is in the block.
    pub(crate) fn contains(&self, position: u64) -> bool {
        (self.start..self.end).contains(&position)
    }
}

/// A block that is being read.
#[derive(Debug)]
pub(crate) struct Block {
    head: Head,
    /// The end of the enclosing block.
    outer: u64,
    inherited: Abbreviations,
    pub(crate) own: Abbreviations,
}

/// Next item of a block.
#[derive(Debug)]
pub(crate) enum Item {
    /// A block. The cursor is after it; [`Cursor::enter`] goes back into it.
    Block(Head),
    /// A record. The cursor is after its code; [`Cursor::skip`] must follow.
    Record(Record),
    /// The block's end. The cursor is after it.
    End,
}

/// A record whose operands are read one by one. A copy continues where the original is.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) code: u64,
    abbreviation: Option<Abbreviation>,
    /// The next part of the abbreviation.
    next: usize,
    /// The array or blob that is being read, and how many elements are left of it.
    element: Encoding,
    left: u64,
    is_blob: bool,
}

impl Record {
    /// Returns a record whose operands are bytes outside of any record.
    pub(crate) fn of_bytes(count: u64) -> Self {
        let element = Encoding::Fixed(8);
        Record { code: 0, abbreviation: None, next: 0, element, left: count, is_blob: false }
    }

    /// Returns the next part of the abbreviation, if there is one.
    fn next_part(&self) -> Option<Operand> {
        self.abbreviation.as_deref()?.get(self.next).copied()
    }
}

impl Cursor<'_> {
    fn scalar(&mut self, encoding: Encoding) -> Result<u64, Error> {
        match encoding {
            Encoding::Fixed(width) => self.fixed(width),
            Encoding::Vbr(width) => self.vbr(width),
            Encoding::Char6 => self.fixed(6).map(char6),
        }
    }

    /// Reads the magic, `42 43 C0 DE`.
    pub(crate) fn magic(&mut self) -> Result<(), Error> {
        const WORD: u64 = u32::from_le_bytes(crate::MAGIC) as u64;
        let (offset, available) = (self.offset(), self.stream.len.min(4));
        let word = self.word()? & u64::from(u32::MAX);
        if word != WORD || available < 4 {
            let found = word.to_le_bytes();
            let found: Vec<_> = found.into_iter().zip(0..available).map(|(b, _)| b).collect();
            let message =
                format!("bitcode at {offset:#x} starts with {found:02x?}, expected 42 43 c0 de");
            return Err(Error::new(ErrorKind::NotBitcode, offset, message));
        }
        self.position += 32;
        Ok(())
    }

    /// Returns a block outside of all others, where abbreviation IDs have two bits. The cursor is after it.
    pub(crate) fn outer_block(&mut self) -> Result<Head, Error> {
        let offset = self.offset();
        match self.fixed(2)? {
            1 => self.head(),
            found => {
                let message = format!(
                    "bitcode has abbreviation ID {found} at byte {offset:#x}, where a block must start (1)"
                );
                Err(Error::new(ErrorKind::Malformed, offset, message))
            }
        }
    }

    fn head(&mut self) -> Result<Head, Error> {
        let id = self.vbr(8)?;
        let width = self.vbr(4)?;
        self.align()?;
        let bits = self.fixed(32)? * 32;
        let (start, offset) = (self.position, self.offset());
        if bits > self.left() {
            let (end, available) = (offset + bits / 8, self.offset_of(self.limit));
            let message = format!(
                "bitcode block {id} lies at {offset:#x}..{end:#x}, beyond the end of its parent block at {available:#x}"
            );
            return Err(Error::new(ErrorKind::Truncated, offset, message));
        }
        let end = start + bits;
        self.position = end;
        match u32::try_from(width) {
            Ok(width @ 1..=32) => Ok(Head { id, width, start, end }),
            _ => {
                let message = format!(
                    "bitcode block {id} at byte {offset:#x} has abbreviation IDs of {width} bits, expected 1 to 32"
                );
                Err(Error::new(ErrorKind::Malformed, offset, message))
            }
        }
    }

    /// Moves to the start of a block.
    pub(crate) fn enter(&mut self, head: &Head, inherited: &Abbreviations) -> Block {
        let outer = self.limit;
        self.position = head.start;
        self.limit = head.end;
        Block { head: *head, outer, inherited: inherited.clone(), own: Abbreviations::default() }
    }

    /// Returns the next item of the block. Definitions of abbreviations are added to it on the way.
    pub(crate) fn next(&mut self, block: &mut Block) -> Result<Item, Error> {
        loop {
            let offset = self.offset();
            match self.fixed(block.head.width)? {
                0 => {
                    self.position = block.head.end;
                    self.limit = block.outer;
                    return Ok(Item::End);
                }
                1 => return self.head().map(Item::Block),
                2 => {
                    let abbreviation = self.abbreviation()?;
                    block.own.push(abbreviation)?;
                }
                3 => {
                    let code = self.vbr(6)?;
                    let left = self.vbr(6)?;
                    let element = Encoding::Vbr(6);
                    self.need_all(left, element.bits())?;
                    let (abbreviation, next, is_blob) = (None, 0, false);
                    let record = Record { code, abbreviation, next, element, left, is_blob };
                    return Ok(Item::Record(record));
                }
                id => {
                    let index = usize::try_from(id - 4).ok();
                    let abbreviation =
                        index.and_then(|index| match index.checked_sub(block.inherited.len()) {
                            None => block.inherited.get(index),
                            Some(index) => block.own.get(index),
                        });
                    let Some(abbreviation) = abbreviation else {
                        let message = format!(
                            "bitcode record at byte {offset:#x} uses abbreviation {id}, which is not defined"
                        );
                        return Err(Error::new(ErrorKind::Malformed, offset, message));
                    };
                    return self.abbreviated(abbreviation).map(Item::Record);
                }
            }
        }
    }

    fn abbreviated(&mut self, abbreviation: Abbreviation) -> Result<Record, Error> {
        // The definition was checked: the first part is a single value.
        let code = match abbreviation.first() {
            Some(&Operand::Literal(code)) => code,
            Some(&Operand::Scalar(encoding)) => self.scalar(encoding)?,
            _ => 0,
        };
        let (abbreviation, element) = (Some(abbreviation), Encoding::Char6);
        Ok(Record { code, abbreviation, next: 1, element, left: 0, is_blob: false })
    }

    /// Takes the next part of a record's abbreviation, and reads the length of an array or blob. `None` if
    /// there is no further part, or for the elements of an array or blob that was begun.
    fn part(&mut self, record: &mut Record) -> Result<Option<Operand>, Error> {
        let Some(part) = record.next_part() else {
            return Ok(None);
        };
        record.next += 1;
        match part {
            Operand::Array(element) => {
                record.left = self.vbr(6)?;
                record.element = element;
                self.need_all(record.left, element.bits())?;
            }
            Operand::Blob => {
                record.left = self.vbr(6)?;
                record.element = Encoding::Fixed(8);
                record.is_blob = true;
                self.align()?;
                self.need_all(record.left, 8)?;
            }
            Operand::Literal(_) | Operand::Scalar(_) => {}
        }
        Ok(Some(part))
    }

    /// Returns a record's next operand; elements of arrays and bytes of blobs are operands, too.
    pub(crate) fn operand(&mut self, record: &mut Record) -> Result<Option<u64>, Error> {
        loop {
            if record.left > 0 {
                let value = self.scalar(record.element)?;
                record.left -= 1;
                if record.left == 0 && record.is_blob {
                    self.align()?;
                }
                return Ok(Some(value));
            }
            match self.part(record)? {
                None => return Ok(None),
                Some(Operand::Literal(value)) => return Ok(Some(value)),
                Some(Operand::Scalar(encoding)) => return self.scalar(encoding).map(Some),
                Some(Operand::Array(_) | Operand::Blob) => {}
            }
        }
    }

    /// Moves to the end of the record.
    pub(crate) fn skip(&mut self, record: &mut Record) -> Result<(), Error> {
        loop {
            self.skip_elements(record.element, record.left)?;
            record.left = 0;
            if record.is_blob {
                self.align()?;
            }
            match self.part(record)? {
                None => return Ok(()),
                Some(Operand::Scalar(encoding)) => self.skip_elements(encoding, 1)?,
                Some(Operand::Literal(_) | Operand::Array(_) | Operand::Blob) => {}
            }
        }
    }

    fn skip_elements(&mut self, encoding: Encoding, mut count: u64) -> Result<(), Error> {
        let width = match encoding {
            Encoding::Vbr(width) => width,
            Encoding::Fixed(_) | Encoding::Char6 => {
                self.need_all(count, encoding.bits())?;
                self.position += count * u64::from(encoding.bits());
                return Ok(());
            }
        };
        // As many chunks as a word holds are looked at together: each one without its highest bit ends a number.
        let chunks = WORD_BITS / width;
        let bits = u64::from(chunks * width);
        let last_bits = (1..=chunks).fold(0, |mask, chunk| mask | 1 << (chunk * width - 1));
        while count > 0 {
            if bits > self.left() {
                self.vbr(width)?;
                count -= 1;
                continue;
            }
            let mut ends = !self.word()? & last_bits;
            let ended = u64::from(ends.count_ones());
            if ended < count {
                self.position += bits;
                count -= ended;
                continue;
            }
            for _ in 1..count {
                ends &= ends.wrapping_sub(1);
            }
            self.position += u64::from(ends.trailing_zeros() + 1);
            return Ok(());
        }
        Ok(())
    }

    /// Returns whether the operands that are left are exactly these bytes.
    pub(crate) fn equals(&mut self, record: &mut Record, bytes: &[u8]) -> Result<bool, Error> {
        for &byte in bytes {
            if self.operand(record)? != Some(byte.into()) {
                return Ok(false);
            }
        }
        Ok(self.operand(record)?.is_none())
    }

    /// Moves to the first element, if an array or blob comes next.
    pub(crate) fn begin(&mut self, record: &mut Record) -> Result<(), Error> {
        let is_next = matches!(record.next_part(), Some(Operand::Array(_) | Operand::Blob));
        if is_next && record.left == 0 {
            self.part(record)?;
        }
        Ok(())
    }

    /// Returns the start of the record's next blob, in bits, and its length in bytes; `None` if it holds something
    /// else.
    pub(crate) fn blob(&mut self, record: &mut Record) -> Result<Option<(u64, u64)>, Error> {
        self.begin(record)?;
        Ok(record.is_blob.then_some((self.position, record.left)))
    }

    /// Returns all operands that are left, which must be bytes, at most `limit`.
    pub(crate) fn bytes(&mut self, record: &mut Record, limit: u64) -> Result<Vec<u8>, Error> {
        let start = self.offset();
        let mut bytes = Vec::new();
        loop {
            // The length was checked: each byte has a bit at least.
            let size = bytes.len() as u64 + record.left;
            if size > limit {
                // A lower bound where the length is not recorded.
                let message = format!(
                    "bitcode embeds {size} bytes of device code at byte {start:#x}, more than the limit of {limit}"
                );
                return Err(Error::new(ErrorKind::Limit, start, message));
            }
            if record.left > 0 {
                let left = usize::try_from(record.left).map_err(|_| out_of_memory(start))?;
                bytes.try_reserve_exact(left).map_err(|_| out_of_memory(start))?;
            }
            if record.left > 0 && record.element == Encoding::Fixed(8) {
                self.copy_bytes(record, &mut bytes)?;
            }
            let Some(value) = self.operand(record)? else {
                return Ok(bytes);
            };
            let Ok(byte) = u8::try_from(value) else {
                return Err(Error::record(self.offset(), record.code, "string of bytes"));
            };
            bytes.push(byte);
        }
    }

    /// Copies elements of eight bits, all but the last, window by window.
    fn copy_bytes(&mut self, record: &mut Record, to: &mut Vec<u8>) -> Result<(), Error> {
        let shift = u32::try_from(self.position % 8).unwrap_or(0);
        while record.left > 1 {
            self.word()?;
            let Some(window) = self.in_window(self.position / 8) else { return Ok(()) };
            let count = usize::try_from(record.left - 1).unwrap_or(window.len());
            let pairs = window.iter().zip(window.iter().skip(1)).take(count);
            let before = to.len();
            to.extend(pairs.map(|(&low, &high)| {
                let pair = u16::from_le_bytes([low, high]) >> shift;
                pair.to_le_bytes()[0]
            }));
            let copied = (to.len() - before) as u64;
            // At the end of the stream, where the caller finds the error.
            if copied == 0 {
                return Ok(());
            }
            self.position += copied * 8;
            record.left -= copied;
        }
        Ok(())
    }
}

#[cold]
fn out_of_memory(offset: u64) -> Error {
    let message = format!("bitcode at byte {offset:#x} needs more memory than is available");
    Error::new(ErrorKind::Memory, offset, message)
}

/// Returns the character of a six-bit field.
fn char6(field: u64) -> u64 {
    match field {
        0..26 => u64::from(b'a') + field,
        26..52 => u64::from(b'A') + field - 26,
        52..62 => u64::from(b'0') + field - 52,
        62 => b'.'.into(),
        _ => b'_'.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::Extent;

    fn with_cursor<T>(bytes: &[u8], f: impl FnOnce(&mut Cursor<'_>) -> T) -> T {
        let mut source = bytes;
        let stream = Extent { container: 0, start: 0, len: bytes.len() as u64 };
        f(&mut Cursor::new(&mut source, stream))
    }

    /// Returns noise, longer than two windows, in which numbers of variable width stay short.
    fn noise() -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        (0..40_000)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state.to_le_bytes()[3] & state.to_le_bytes()[5]
            })
            .collect()
    }

    #[test]
    fn fields_start_at_the_lowest_bit() {
        let bytes = [0b1010_1101, 0b0000_0010, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        with_cursor(&bytes, |cursor| {
            assert_eq!(cursor.fixed(3).unwrap(), 0b101);
            assert_eq!(cursor.fixed(7).unwrap(), 0b101_0101);
            assert_eq!(cursor.position(), 10);
            assert_eq!(cursor.fixed(6).unwrap(), 0);
            assert_eq!(cursor.fixed(64).unwrap(), u64::MAX >> 1);
            assert_eq!(cursor.fixed(1).unwrap_err().kind(), ErrorKind::Truncated);
        });
    }

    #[test]
    fn numbers_of_variable_width_are_read() {
        // 4-bit chunks of 27: 011 with more to come, then 011.
        with_cursor(&[0b0011_1011], |cursor| assert_eq!(cursor.vbr(4).unwrap(), 27));
        // 64 bits in 10 chunks of 8, and one bit too many
        let mut bytes = [0xff; 10];
        bytes[9] = 0x01;
        with_cursor(&bytes, |cursor| assert_eq!(cursor.vbr(8).unwrap(), u64::MAX));
        bytes[9] = 0x02;
        with_cursor(&bytes, |cursor| {
            let error = cursor.vbr(8).unwrap_err();
            assert_eq!((error.kind(), error.offset()), (ErrorKind::Malformed, Some(10)));
        });
    }

    #[test]
    fn skipping_ends_where_reading_ends() {
        let bytes = noise();
        for encoding in [2, 3, 5, 6, 7, 8, 9, 28, 29, 32].map(Encoding::Vbr).into_iter().chain([
            Encoding::Fixed(1),
            Encoding::Fixed(58),
            Encoding::Char6,
        ]) {
            for (start, count) in
                (0..40).flat_map(|start| [1, 2, 9, 10, 100, 1000].map(|n| (start, n)))
            {
                with_cursor(&bytes, |cursor| {
                    cursor.seek(start * 37);
                    for _ in 0..count {
                        // chunk by chunk: in noise, not every number fits into 64 bits
                        let bits = encoding.bits();
                        while cursor.fixed(bits).unwrap() >> (bits - 1) == 1
                            && encoding == Encoding::Vbr(bits)
                        {}
                    }
                    let read = cursor.position();
                    cursor.seek(start * 37);
                    cursor.skip_elements(encoding, count).unwrap();
                    assert_eq!(cursor.position(), read, "{encoding:?} {start} {count}");
                });
            }
        }
    }

    #[test]
    fn skipping_stops_at_the_end() {
        let bytes = [0; 20];
        for width in [2, 6, 32] {
            with_cursor(&bytes, |cursor| {
                let there = 160 / u64::from(width);
                cursor.skip_elements(Encoding::Vbr(width), there).unwrap();
                assert_eq!(cursor.position(), there * u64::from(width));
                cursor.seek(0);
                assert!(cursor.skip_elements(Encoding::Vbr(width), there + 1).is_err());
            });
        }
    }

    #[test]
    fn bytes_are_read_at_any_bit() {
        let bytes = noise();
        for (start, count) in [(0, 39_000), (3, 39_999), (9, 20_000), (7, 1), (8, 2), (5, 0)] {
            with_cursor(&bytes, |cursor| {
                cursor.seek(start);
                let copied = cursor.bytes(&mut Record::of_bytes(count), u64::MAX).unwrap();
                assert_eq!(cursor.position(), start + count * 8);
                cursor.seek(start);
                let single: Vec<u8> =
                    (0..count).map(|_| u8::try_from(cursor.fixed(8).unwrap()).unwrap()).collect();
                assert_eq!(copied, single);
            });
        }
    }

    #[test]
    fn characters_of_six_bits_are_read() {
        let text: Vec<u8> = (0..64).map(|i| u8::try_from(char6(i)).unwrap()).collect();
        assert_eq!(text, b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._");
    }
}
