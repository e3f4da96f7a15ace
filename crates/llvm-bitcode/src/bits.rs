//! Bits of a stream: numbers at any position.

use alloc::format;
use alloc::vec::Vec;

use crate::error::{Error, ErrorKind};
use crate::source::{ReadAt, Unreadable};

/// Bytes read at one time.
pub(crate) const WINDOW: u64 = 16 * 1024;
/// As many bits as a window surely yields at any position, whatever its bit in the first byte.
pub(crate) const WORD_BITS: u32 = 57;

/// Bytes of the longest stream: positions in it, in bits, leave room for sums.
pub(crate) const MAX_STREAM: u64 = 1 << 60;

/// The place of a stream in its source. It has at most [`MAX_STREAM`] bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Offset in the source of the file, member or entry from which errors count.
    pub(crate) container: u64,
    /// Offset in the source of the stream's first byte.
    pub(crate) start: u64,
    /// Bytes.
    pub(crate) len: u64,
}

/// A position in a stream, and the window of bytes around it.
pub(crate) struct Cursor<'s> {
    pub(crate) source: &'s mut dyn ReadAt,
    pub(crate) stream: Extent,
    /// In bits from the start of the stream.
    pub(crate) position: u64,
    /// End of the innermost block, in bits: nothing is read beyond.
    pub(crate) limit: u64,
    pub(crate) window: Vec<u8>,
    /// Offset of the window in the stream, in bytes.
    pub(crate) window_start: u64,
}

impl<'s> Cursor<'s> {
    pub(crate) fn new(source: &'s mut dyn ReadAt, stream: Extent) -> Self {
        let limit = stream.len * 8;
        Cursor { source, stream, position: 0, limit, window: Vec::new(), window_start: 0 }
    }

    /// Returns the place of the stream.
    pub(crate) fn stream(&self) -> Extent {
        self.stream
    }

    /// Returns the position in bits from the start of the stream.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Returns the position as errors state it.
    pub(crate) fn offset(&self) -> u64 {
        self.offset_of(self.position)
    }

    pub(crate) fn offset_of(&self, bit: u64) -> u64 {
        self.stream.start - self.stream.container + bit / 8
    }

    /// Returns the bytes that are left of the innermost block.
    pub(crate) fn bytes_left(&self) -> u64 {
        self.left() / 8
    }

    /// Returns the bits that are left of the innermost block: none, past its end.
    pub(crate) fn left(&self) -> u64 {
        self.limit.saturating_sub(self.position)
    }

    /// Moves to a position outside of all blocks.
    pub(crate) fn leave_to(&mut self, position: u64) {
        self.limit = self.stream.len * 8;
        self.position = position;
    }

    /// Moves to a position, without changing where the innermost block ends.
    pub(crate) fn seek(&mut self, position: u64) {
        self.position = position;
    }

    pub(crate) fn need(&self, bits: u64) -> Result<(), Error> {
        if bits > self.left() {
            return Err(self.beyond_end(bits.into()));
        }
        Ok(())
    }

    /// Checks that there is room for as many fields of at least `bits` bits.
    pub(crate) fn need_all(&self, count: u64, bits: u32) -> Result<(), Error> {
        let bits = u128::from(count) * u128::from(bits);
        if bits > self.left().into() {
            return Err(self.beyond_end(bits));
        }
        Ok(())
    }

    /// Creates the error of a field that reaches past the end of the block or file that holds it. The bits of an array or
    /// blob are at least the bits of all its elements.
    #[cold]
    fn beyond_end(&self, bits: u128) -> Error {
        let (offset, end) = (self.offset(), self.offset_of(self.limit));
        let message = format!(
            "bitcode field of {bits} bits at byte {offset:#x} reaches beyond the end of its block at {end:#x}"
        );
        Error::new(ErrorKind::Truncated, offset, message)
    }

    /// Returns at least [`WORD_BITS`] bits from the position on, with zeros past the end of the stream.
    #[inline]
    pub(crate) fn word(&mut self) -> Result<u64, Error> {
        let byte = self.position / 8;
        let mut word = self.word_at(byte);
        if word.is_none() {
            self.load(byte)?;
            word = self.word_at(byte);
        }
        Ok(word.map_or(0, u64::from_le_bytes) >> (self.position % 8))
    }

    #[inline]
    fn word_at(&self, byte: u64) -> Option<[u8; 8]> {
        self.in_window(byte)?.first_chunk().copied()
    }

    /// Returns the part of the window from an offset in the stream on; `None` if it is not in the window.
    #[inline]
    pub(crate) fn in_window(&self, byte: u64) -> Option<&[u8]> {
        self.window.get(usize::try_from(byte.checked_sub(self.window_start)?).ok()?..)
    }

    #[cold]
    pub(crate) fn load(&mut self, byte: u64) -> Result<(), Error> {
        let end = self.stream.len.min(byte + WINDOW).max(byte);
        self.window_start = byte;
        self.window.clear();
        self.window.resize(usize::try_from(end - byte).unwrap_or(0), 0);
        let read = self.source.read_exact_at(self.stream.start + byte, &mut self.window);
        if let Err(Unreadable) = read {
            self.window.clear();
            return Err(Error::unreadable(self.offset_of(byte * 8)));
        }
        if end == self.stream.len {
            self.window.extend([0; 8]);
        }
        Ok(())
    }

    /// Returns a field of 1 to 64 bits.
    #[inline]
    pub(crate) fn fixed(&mut self, width: u32) -> Result<u64, Error> {
        if width > WORD_BITS {
            let low = self.fixed(32)?;
            return Ok(low | self.fixed(width - 32)? << 32);
        }
        self.need(width.into())?;
        let word = self.word()?;
        self.position += u64::from(width);
        Ok(word & ((1 << width) - 1))
    }

    /// Returns a number in chunks of 2 to 32 bits, whose highest bit says that more follow.
    #[inline]
    pub(crate) fn vbr(&mut self, width: u32) -> Result<u64, Error> {
        let more = 1u64 << (width - 1);
        let (mut value, mut shift) = (0, 0);
        loop {
            let chunk = self.fixed(width)?;
            let bits = chunk & (more - 1);
            if bits != 0 {
                if shift >= u64::BITS || bits > u64::MAX >> shift {
                    return Err(self.number_too_large());
                }
                value |= bits << shift;
            }
            if chunk & more == 0 {
                return Ok(value);
            }
            // There may be any number of chunks without a bit.
            if shift < u64::BITS {
                shift += width - 1;
            }
        }
    }

    #[cold]
    fn number_too_large(&self) -> Error {
        let offset = self.offset();
        let message = format!("bitcode number before byte {offset:#x} does not fit into 64 bits");
        Error::new(ErrorKind::Malformed, offset, message)
    }

    /// Moves to the next multiple of 32 bits.
    pub(crate) fn align(&mut self) -> Result<(), Error> {
        let padding = self.position.wrapping_neg() % 32;
        self.need(padding)?;
        self.position += padding;
        Ok(())
    }
}
