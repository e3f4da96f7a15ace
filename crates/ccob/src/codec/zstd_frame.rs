//! The outside of a Zstandard frame: header and block headers, as RFC 8878 has them.
//!
//! Reading them first gives, without decoding anything, the exact end of the frame and the most it
//! can expand to, and it rejects what the two decoders would judge differently.

use super::Input;
use crate::{Error, Fault, Method};

const MAGIC: u32 = 0xFD2F_B528;
const SKIPPABLE: core::ops::RangeInclusive<u32> = 0x184D_2A50..=0x184D_2A5F;

/// RFC 8878, 3.1.1.2.4: blocks hold at most the window and at most this.
const MAX_BLOCK: u64 = 128 << 10;
/// libzstd's `ZSTD_WINDOWLOG_MAX` on 64-bit machines.
const MAX_WINDOW_LOG: u32 = 31;

/// A frame whose outside is in order.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "ruzstd"), allow(dead_code, reason = "libzstd reads these itself"))]
pub(super) struct Frame {
    /// The window size, in bytes.
    pub(super) window: u64,
    /// Where the blocks start, from the start of the frame.
    pub(super) blocks_start: usize,
    /// Where the blocks end; a checksum may follow.
    pub(super) blocks_end: usize,
    /// The checksum at the end: the low half of the XXH64 of the content.
    pub(super) checksum: Option<u32>,
    /// The length of the frame.
    pub(super) len: usize,
}

/// A position in the frame.
struct Reader<'a> {
    input: &'a Input<'a>,
    position: usize,
}

impl Reader<'_> {
    fn fail(&self, fault: Fault) -> Error {
        self.input.bad_stream(Method::ZSTD, self.position, fault)
    }

    /// Passes over this many bytes.
    fn skip(&mut self, len: usize) -> Result<&[u8], Error> {
        let end = self.position.checked_add(len);
        let bytes = end.and_then(|end| self.input.stream.get(self.position..end));
        let bytes = bytes.ok_or_else(|| {
            let end = self.input.stream.len();
            self.input.bad_stream(Method::ZSTD, end, Fault::EndsEarly)
        })?;
        self.position = self.position.saturating_add(len);
        Ok(bytes)
    }

    /// Reads a little-endian number of up to 8 bytes.
    fn number(&mut self, len: usize) -> Result<u64, Error> {
        let bytes = self.skip(len)?;
        Ok(bytes.iter().rev().fold(0, |number, &byte| (number << 8) | u64::from(byte)))
    }

    fn number32(&mut self) -> Result<u32, Error> {
        Ok(u32::try_from(self.number(4)?).unwrap_or_default())
    }
}

impl Frame {
    /// Reads the frame that `input` starts with, and checks its size and its end against the
    /// header of the container.
    pub(super) fn parse(input: &Input<'_>) -> Result<Self, Error> {
        let mut reader = Reader { input, position: 0 };
        let magic = reader.number32()?;
        if magic != MAGIC {
            reader.position = 0;
            return Err(reader.fail(if SKIPPABLE.contains(&magic) {
                Fault::SkippableFrame
            } else {
                Fault::BadMagic
            }));
        }

        let descriptor = reader.number(1)?;
        let single_segment = descriptor & 0x20 != 0;
        let has_checksum = descriptor & 0x04 != 0;
        if descriptor & 0x08 != 0 {
            return Err(reader.fail(Fault::ReservedBit));
        }
        let mut window = 0;
        if !single_segment {
            let byte = reader.number(1)?;
            let log = 10 + u32::try_from(byte >> 3).unwrap_or_default();
            if log > MAX_WINDOW_LOG {
                return Err(reader.fail(Fault::WindowTooLarge));
            }
            window = (1_u64 << log) + (1_u64 << (log - 3)) * (byte & 7);
        }
        let dictionary = reader.number(match descriptor & 3 {
            3 => 4,
            1 => 1,
            2 => 2,
            _ => 0,
        })?;
        if dictionary != 0 {
            return Err(reader.fail(Fault::Dictionary));
        }
        let content_size = match (descriptor >> 6, single_segment) {
            (0, false) => None,
            (0, true) => Some(reader.number(1)?),
            (1, _) => Some(reader.number(2)? + 256),
            (2, _) => Some(reader.number(4)?),
            _ => Some(reader.number(8)?),
        };
        if let Some(frame_size) = content_size
            && frame_size != input.uncompressed_size
        {
            return Err(Error::FrameSizeMismatch {
                uncompressed_size: input.uncompressed_size,
                frame_size,
            });
        }
        if single_segment {
            window = content_size.unwrap_or_default();
        }

        let blocks_start = reader.position;
        let at_most = Self::walk_blocks(&mut reader, window.min(MAX_BLOCK))?;
        let blocks_end = reader.position;
        let checksum = if has_checksum { Some(reader.number32()?) } else { None };

        input.check_end(Method::ZSTD, reader.position)?;
        if input.uncompressed_size > at_most {
            return Err(Error::ImplausibleSize {
                uncompressed_size: input.uncompressed_size,
                at_most,
            });
        }
        Ok(Self { window, blocks_start, blocks_end, checksum, len: reader.position })
    }

    /// Passes over all blocks; returns the most they can expand to.
    fn walk_blocks(reader: &mut Reader<'_>, max_block: u64) -> Result<u64, Error> {
        let mut at_most = 0_u64;
        loop {
            let start = reader.position;
            let block = reader.number(3)?;
            let size = block >> 3;
            let fail = |fault| Err(reader.input.bad_stream(Method::ZSTD, start, fault));
            if size > max_block {
                return fail(Fault::BlockTooLarge);
            }
            // Raw bytes, one byte to repeat, or a compressed block of unknown content.
            let (len, content) = match (block >> 1) & 3 {
                0 => (size, size),
                1 => (1, size),
                2 => (size, max_block),
                _ => return fail(Fault::ReservedBlock),
            };
            at_most = at_most.saturating_add(content);
            reader.skip(usize::try_from(len).unwrap_or(usize::MAX))?;
            if block & 1 != 0 {
                return Ok(at_most);
            }
        }
    }
}

/// Where in the container the stream of `input` starts; for faults without a better place.
pub(super) fn damaged(input: &Input<'_>) -> Error {
    input.bad_stream(Method::ZSTD, 0, Fault::Damaged)
}
