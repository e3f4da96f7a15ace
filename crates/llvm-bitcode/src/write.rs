//! Writing the container of LLVM bitcode: blocks and records of values of any number of bits.
//!
//! From "LLVM Bitcode File Format" (the LLVM documentation): a bitstream is made of 32-bit
//! little-endian words filled from the least significant bit. Everything in it starts with an
//! abbreviation ID, as many bits wide as the block it is in says:
//!
//! ```text
//! 0  end of the block                   -> next word
//! 1  a block    vbr8 ID, vbr4 width of abbreviation IDs in it -> next word, words in it
//! 2  an abbreviation, which gets the next free ID from 4 on
//! 3  a record   vbr6 code, vbr6 count, count x vbr6
//! 4+ a record as the abbreviation says; for a blob
//!               vbr6 size -> next word, the bytes as they are -> next word
//! ```
//!
//! Blobs make large payloads cheap: in the file they are nothing but their bytes. The bytes need not be there when the
//! stream is written: a [hole](Writer::hole) is left for them.

use alloc::format;
use alloc::vec::Vec;
use core::fmt;

use crate::error::{Error, ErrorKind};

/// Bytes of the largest block: its length is a 32-bit number of words.
const MAX_BLOCK: u64 = 0xFFFF_FFFF * 4;

/// Width of abbreviation IDs outside of any block.
const OUTER_WIDTH: u32 = 2;

/// Returns the boundary at which a hole of `size` bytes starts, if not at a word. Files are copied in pieces of 64 KiB,
/// which is fast where one does not straddle two, and file systems that can share blocks between files have blocks of 4
/// KiB. Up to a 256th of the size is spent on it.
fn boundary_of(size: u64) -> Option<u64> {
    [1 << 16, 1 << 12].into_iter().find(|boundary| size / boundary >= 256)
}

/// An ID of blocks that means nothing to LLVM, whose readers skip them.
const PADDING_BLOCK: u64 = 4095;

/// A writer of a bitstream into memory, without the bytes of its large blobs.
///
/// ```
/// use llvm_bitcode::{MAGIC, Writer};
///
/// let mut writer = Writer::new(MAGIC);
/// writer.enter_block(8, 3); // a module, with abbreviation IDs of three bits
/// writer.record(1, &[2]); // its version
/// writer.text_record(2, &[], b"x86_64-unknown-linux-gnu"); // its target triple
/// writer.end_block()?;
/// let bytes = writer.finish().0;
/// assert_eq!(llvm_bitcode::symbols(&bytes)?, Some(vec![]));
/// # Ok::<(), llvm_bitcode::Error>(())
/// ```
pub struct Writer {
    bytes: Vec<u8>,
    /// Bits that do not make a byte yet, in its low `partial_bits`.
    partial: u64,
    partial_bits: u32,
    /// The block that is being written: around all others there is one without an end.
    block: Block,
    /// The blocks around it, from the outermost.
    around: Vec<Block>,
    /// Number of bytes before each hole.
    holes: Vec<usize>,
    /// Bytes of all holes.
    hole_bytes: u64,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("bytes", &self.bytes.len())
            .field("hole_bytes", &self.hole_bytes)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug)]
struct Block {
    /// Offset of its length field in the bytes.
    length_at: usize,
    /// Position of its contents in the stream.
    start: u64,
    /// Width of abbreviation IDs in it.
    width: u32,
    /// Number of abbreviations that it defines so far.
    abbreviations: u64,
}

/// An abbreviation of the block that it was defined in: a record of one code with one blob.
#[derive(Clone, Copy, Debug)]
pub struct BlobAbbreviation(u64);

impl Writer {
    /// Creates a stream that starts with these four bytes: [`MAGIC`](crate::MAGIC) for bitcode.
    pub fn new(magic: [u8; 4]) -> Self {
        let block = Block { length_at: 0, start: 0, width: OUTER_WIDTH, abbreviations: 0 };
        Self {
            bytes: magic.to_vec(),
            partial: 0,
            partial_bits: 0,
            block,
            around: Vec::new(),
            holes: Vec::new(),
            hole_bytes: 0,
        }
    }

    /// Starts a block of this ID, in which abbreviation IDs are `width` bits wide, from 2 to 32. Each abbreviation that the
    /// block defines needs an ID of this width; the first has the ID 4.
    pub fn enter_block(&mut self, id: u64, width: u32) {
        let width = width.clamp(2, 32);
        self.fixed(1, self.block.width);
        self.vbr(id, 8);
        self.vbr(width.into(), 4);
        self.align();
        let length_at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        let start = self.position();
        self.around.push(self.block);
        self.block = Block { length_at, start, width, abbreviations: 0 };
    }

    /// Ends the innermost block. Does nothing outside of all blocks.
    ///
    /// # Errors
    ///
    /// [`Limit`](crate::ErrorKind::Limit) for a block of about 16 GiB or more, holes included: its length field is too small.
    pub fn end_block(&mut self) -> Result<(), Error> {
        let Some(outer) = self.around.pop() else { return Ok(()) };
        self.fixed(0, self.block.width);
        self.align();
        let block = core::mem::replace(&mut self.block, outer);
        let size = self.position() - block.start;
        let words = u32::try_from(size / 4).map_err(|_| {
            let message =
                format!("bitcode block has {size:#x} bytes, expected at most {MAX_BLOCK:#x}");
            Error::new(ErrorKind::Limit, None, message)
        })?;
        let length = block.length_at..block.length_at + 4;
        if let Some(bytes) = self.bytes.get_mut(length) {
            bytes.copy_from_slice(&words.to_le_bytes());
        }
        Ok(())
    }

    /// Writes a record without abbreviation.
    pub fn record(&mut self, code: u64, operands: &[u64]) {
        self.fixed(3, self.block.width);
        self.vbr(code, 6);
        self.vbr(operands.len() as u64, 6);
        for operand in operands {
            self.vbr(*operand, 6);
        }
    }

    /// Writes a record whose operands are those `before`, then one for each byte of a text.
    pub fn text_record(&mut self, code: u64, before: &[u64], text: &[u8]) {
        let operands: Vec<u64> =
            before.iter().copied().chain(text.iter().map(|byte| u64::from(*byte))).collect();
        self.record(code, &operands);
    }

    /// Defines an abbreviation in this block: a literal `code`, then a blob.
    pub fn define_blob(&mut self, code: u64) -> BlobAbbreviation {
        self.fixed(2, self.block.width);
        self.vbr(2, 5);
        self.fixed(1, 1);
        self.vbr(code, 8);
        self.fixed(0, 1);
        self.fixed(5, 3);
        self.block.abbreviations += 1;
        BlobAbbreviation(self.block.abbreviations + 3)
    }

    /// Writes a record whose blob is `bytes`.
    pub fn blob(&mut self, abbreviation: BlobAbbreviation, bytes: &[u8]) {
        self.start_blob(abbreviation, bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
        self.align();
    }

    /// Writes a record whose blob is a hole of `size` bytes, at most 2³² - 1: readers keep the length in 32 bits. A hole of
    /// 1 MiB or more starts at a multiple of 4 KiB, one of 16 MiB or more at a multiple of 64 KiB, after a block of padding.
    ///
    /// # Errors
    ///
    /// [`Limit`](crate::ErrorKind::Limit) for a larger hole.
    pub fn hole(&mut self, abbreviation: BlobAbbreviation, size: u64) -> Result<(), Error> {
        if u32::try_from(size).is_err() {
            let message = format!("bitcode blob of {size} bytes, expected at most {}", u32::MAX);
            return Err(Error::new(ErrorKind::Limit, None, message));
        }
        if let Some(boundary) = boundary_of(size) {
            self.pad(boundary, size);
        }
        self.start_blob(abbreviation, size);
        self.holes.push(self.bytes.len());
        self.hole_bytes += size;
        self.align();
        Ok(())
    }

    /// Returns the stream: the bytes between its holes, one after the other, and how many of them come before each hole.
    /// All blocks have ended.
    #[must_use]
    pub fn finish(mut self) -> (Vec<u8>, Vec<usize>) {
        self.align();
        (self.bytes, self.holes)
    }

    /// Writes a block without meaning, such that a blob of `size` bytes that follows starts at a `boundary`. The block is
    /// sound, for readers that do not skip it: abbreviation IDs in it are so wide that a record without operands is
    /// a word.
    fn pad(&mut self, boundary: u64, size: u64) {
        const WIDTH: u32 = 20;
        let outer_width = self.block.width;
        self.enter_block(PADDING_BLOCK, WIDTH);
        // The word that ends the block comes before the abbreviation ID and length of the blob.
        let head_bits = u64::from(outer_width) + vbr_bits(size, 6);
        let head = (head_bits.div_ceil(32) + 1) * 4;
        while !(self.position() + head).is_multiple_of(boundary) {
            self.record(0, &[]);
        }
        // Cannot be too long.
        let _ = self.end_block();
    }

    fn start_blob(&mut self, abbreviation: BlobAbbreviation, size: u64) {
        self.fixed(abbreviation.0, self.block.width);
        self.vbr(size, 6);
        self.align();
    }

    /// Returns the position in the finished stream, in whole bytes.
    fn position(&self) -> u64 {
        self.bytes.len() as u64 + self.hole_bytes
    }

    /// Writes the low `bits` bits of a value, at most 32; the others are zero.
    fn fixed(&mut self, value: u64, bits: u32) {
        self.partial |= value << self.partial_bits;
        self.partial_bits += bits;
        while self.partial_bits >= 8 {
            let [byte, ..] = self.partial.to_le_bytes();
            self.bytes.push(byte);
            self.partial >>= 8;
            self.partial_bits -= 8;
        }
    }

    /// Writes a value in chunks of `bits` bits, low ones first, the highest bit of each saying
    /// whether another follows.
    fn vbr(&mut self, value: u64, bits: u32) {
        let more = 1_u64 << (bits - 1);
        let mut rest = value;
        while rest >= more {
            self.fixed(rest & (more - 1) | more, bits);
            rest >>= bits - 1;
        }
        self.fixed(rest, bits);
    }

    /// Fills the word with zeros.
    fn align(&mut self) {
        if self.partial_bits != 0 {
            self.fixed(0, 8 - self.partial_bits);
        }
        while !self.position().is_multiple_of(4) {
            self.bytes.push(0);
        }
    }
}

/// Returns the number of bits that a value takes in chunks of `bits` bits.
fn vbr_bits(value: u64, bits: u32) -> u64 {
    let significant = u64::from(u64::BITS - value.leading_zeros()).max(1);
    significant.div_ceil(u64::from(bits - 1)) * u64::from(bits)
}

/// Returns a signed value as records have it: the magnitude, then the sign in the lowest bit.
pub fn signed(value: i64) -> u64 {
    let magnitude = value.unsigned_abs() << 1;
    magnitude | u64::from(value.is_negative())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    /// Bytes of the largest blob.
    const MAX_BLOB: u64 = 0xFFFF_FFFF;

    /// Returns a stream of the bits that `write` writes, without magic.
    fn bits(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
        let mut stream = Writer::new(*b"BC\xC0\xDE");
        write(&mut stream);
        let bytes = stream.finish().0;
        assert_eq!(bytes[..4], *b"BC\xC0\xDE");
        bytes[4..].to_vec()
    }

    #[test]
    fn an_empty_stream_has_no_bytes() {
        assert_eq!(bits(|_| ()), []);
    }

    #[test]
    fn fixed_fields_fill_bytes_from_the_low_bit() {
        let bytes = bits(|stream| {
            stream.fixed(0b1, 1);
            stream.fixed(0b010, 3);
            stream.fixed(0xAB, 8);
            stream.fixed(0xDEAD_BEEF, 32);
        });
        assert_eq!(bytes, [0xB5, 0xFA, 0xEE, 0xDB, 0xEA, 0x0D, 0, 0]);
    }

    #[test]
    fn numbers_are_written_in_chunks() {
        // 31 fits the five bits of a vbr6, 32 does not.
        assert_eq!(bits(|stream| stream.vbr(31, 6)), [31, 0, 0, 0]);
        assert_eq!(bits(|stream| stream.vbr(32, 6)), [0b0110_0000, 0, 0, 0]);
        // The largest value takes thirteen chunks, the last with four bits of it.
        let bytes = bits(|stream| stream.vbr(u64::MAX, 6));
        assert_eq!(bytes, [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x3C >> 2, 0, 0]);
    }

    #[test]
    fn records_are_written_without_abbreviations() {
        let bytes = bits(|stream| {
            stream.block.width = 4;
            stream.record(1, &[2, 33]);
        });
        // 0011 | 000001 | 000010 | 000010 | 100001 000001, each from its low bit on
        let value = 3_u64 | 1 << 4 | 2 << 10 | 2 << 16 | 0b10_0001 << 22 | 1 << 28;
        assert_eq!(bytes, value.to_le_bytes());
    }

    #[test]
    fn blocks_start_with_their_length() {
        let bytes = bits(|stream| {
            stream.enter_block(8, 3);
            stream.enter_block(17, 4);
            stream.end_block().unwrap();
            stream.end_block().unwrap();
        });
        let words: Vec<u32> = bytes
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
            .collect();
        let enter = |outer: u32, id: u32, width: u32| 1 | id << outer | width << (outer + 8);
        assert_eq!(words, [enter(2, 8, 3), 4, enter(3, 17, 4), 1, 0, 0]);
    }

    #[test]
    fn a_block_too_long_for_its_length_is_an_error() {
        let mut stream = Writer::new(*b"BC\xC0\xDE");
        stream.enter_block(8, 4);
        let abbreviation = stream.define_blob(8);
        let error = stream.hole(abbreviation, MAX_BLOB + 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
        for _ in 0..3 {
            stream.hole(abbreviation, MAX_BLOB).unwrap();
        }
        stream.enter_block(9, 4);
        stream.hole(abbreviation, MAX_BLOB - 3).unwrap();
        assert!(stream.end_block().is_ok());
        let error = stream.end_block().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
        let text = error.to_string();
        assert!(text.starts_with("bitcode block has 0x40"), "{text}");
        assert!(text.ends_with("expected at most 0x3fffffffc"), "{text}");
    }

    #[test]
    fn blobs_start_and_end_at_words() {
        let bytes = bits(|stream| {
            stream.block.width = 3;
            let abbreviation = stream.define_blob(1);
            stream.blob(abbreviation, b"abcde");
            stream.fixed(1, 1);
        });
        let define = 2_u64 | 2 << 3 | 1 << 8 | 1 << 9 | 5 << 18;
        let head = define | 4 << 21 | 5 << 24;
        assert_eq!(bytes[..4], head.to_le_bytes()[..4]);
        assert_eq!(bytes[4..], *b"abcde\0\0\0\x01\0\0\0");
    }

    #[test]
    fn a_hole_is_a_blob_without_its_bytes() {
        let stream = |hole: bool| {
            let mut stream = Writer::new(*b"BC\xC0\xDE");
            stream.enter_block(8, 4);
            let abbreviation = stream.define_blob(8);
            if hole {
                stream.hole(abbreviation, 6).unwrap();
            } else {
                stream.blob(abbreviation, b"abcdef");
            }
            stream.record(1, &[7]);
            stream.end_block().unwrap();
            stream.finish()
        };
        let ((whole, none), (holey, holes)) = (stream(false), stream(true));
        assert_eq!((none.len(), holes.len()), (0, 1));
        assert_eq!(holes[0] % 4, 0);
        let (before, after) = holey.split_at(holes[0]);
        assert_eq!([before, &b"abcdef"[..], after].concat(), whole);
    }

    #[test]
    fn large_holes_start_at_boundaries() {
        for (size, boundary) in [
            ((1 << 20) - 1, 4),
            (1 << 20, 1 << 12),
            ((1 << 20) + 3, 1 << 12),
            ((1 << 24) - 1, 1 << 12),
            (1 << 24, 1 << 16),
            ((1 << 30) - 1, 1 << 16),
            (1 << 30, 1 << 16),
            (MAX_BLOB, 1 << 16),
        ] {
            for records in 0..9 {
                let mut stream = Writer::new(*b"BC\xC0\xDE");
                stream.enter_block(8, 4);
                let abbreviation = stream.define_blob(8);
                for _ in 0..records {
                    stream.record(1, &[2]);
                }
                stream.hole(abbreviation, size).unwrap();
                stream.hole(abbreviation, size).unwrap();
                let [first, second] = &stream.holes[..] else { panic!("two holes") };
                for at in [*first as u64, *second as u64 + size] {
                    assert!(at.is_multiple_of(boundary), "{size} {records}: {at}");
                }
                assert!((*second as u64) < 2 * boundary + 100);
            }
        }
    }

    #[test]
    fn padding_is_records_of_a_word_in_a_block() {
        let mut stream = Writer::new(*b"BC\xC0\xDE");
        stream.enter_block(8, 4);
        let abbreviation = stream.define_blob(8);
        stream.hole(abbreviation, 1 << 20).unwrap();
        let bytes = stream.finish().0;
        assert_eq!(bytes.len(), 4096);
        let words: Vec<u32> = bytes
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
            .collect();
        // Magic; start of the block, its length; the abbreviation and the start of the padding; its length.
        // Abbreviation ID and length of the blob follow, 34 bits.
        let [length, padding @ .., end, _, _] = &words[5..] else { panic!("a block") };
        assert_eq!(*length as usize, padding.len() + 1);
        assert!(padding.iter().all(|word| *word == 3));
        assert_eq!(*end, 0);
    }

    #[test]
    fn vbr_bits_counts_the_bits_of_all_chunks() {
        for (value, bits) in [(0, 6), (31, 6), (32, 12), (1023, 12), (1024, 18), (u64::MAX, 78)] {
            assert_eq!(vbr_bits(value, 6), bits, "{value}");
        }
    }

    #[test]
    fn signed_values_have_their_sign_in_the_lowest_bit() {
        assert_eq!(signed(0), 0);
        assert_eq!(signed(5), 10);
        assert_eq!(signed(-1), 3);
        assert_eq!(signed(i64::MAX), u64::MAX - 1);
        // This magnitude does not fit; LLVM has the sign of zero for it.
        assert_eq!(signed(i64::MIN), 1);
    }
}
