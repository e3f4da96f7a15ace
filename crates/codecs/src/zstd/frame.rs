//! The outside of Zstandard frames: headers of frames and of blocks, as RFC 8878 has them.
//!
//! Reading them first gives, without decoding anything, the exact end of the stream and the most it can expand to, and
//! it rejects what the two decoders would judge differently.

use core::ops::Range;

use crate::error::{Error, ErrorKind};
use crate::input::{Input, too_long};

/// The first bytes of a frame with data.
pub const MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

const SKIPPABLE: core::ops::RangeInclusive<u32> = 0x184D_2A50..=0x184D_2A5F;

/// RFC 8878, 3.1.1.2.4: blocks hold at most the window and at most this.
pub(super) const MAX_BLOCK: usize = 128 << 10;
/// libzstd's `ZSTD_WINDOWLOG_MAX` on 64-bit machines.
pub(super) const MAX_WINDOW_LOG: u32 = 31;

/// Bytes of the header of a block.
pub(super) const BLOCK_HEADER_LEN: usize = 3;
/// Bytes of a magic.
pub(super) const MAGIC_LEN: usize = 4;
/// Bytes of a checksum: the low half of the XXH64 of the content.
pub(super) const CHECKSUM_LEN: usize = 4;

/// Returns what frames store of the XXH64 of their content, with seed 0: its low half.
pub(crate) fn checksum(hash: u64) -> u32 {
    let [a, b, c, d, ..] = hash.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// A part of a stream, or how many bytes from its start are needed to read it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed<T> {
    Whole(T),
    Needs(usize),
}

/// The start of a frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Start {
    Frame(FrameHeader),
    /// A frame without data, of this many bytes.
    Skippable(u64),
}

/// The header of a frame with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    /// Bytes of the header.
    pub(super) len: usize,
    /// The window size, in bytes.
    pub(super) window: u64,
    /// `true` if the window is the content.
    is_single: bool,
    pub(super) content_size: Option<u64>,
    pub(super) has_checksum: bool,
}

impl Start {
    /// Reads the start of a frame at the start of `bytes`.
    pub(super) fn parse(bytes: &[u8]) -> Result<Parsed<Self>, Error> {
        let mut reader = Reader { rest: bytes, position: 0, is_strict: true };
        match reader.header() {
            Ok(start) => Ok(Parsed::Whole(start)),
            Err(Stop::Needs(len)) => Ok(Parsed::Needs(len)),
            Err(Stop::Fault(kind)) => Err(Error::new(kind, reader.position)),
        }
    }
}

/// Returns the size of the contents that a frame records in its header; `None` if it does not, or if this is not a frame.
///
/// ```
/// let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 4, 0x21, 0, 0, b'c', b'o', b'd', b'e'];
/// assert_eq!(codecs::zstd::content_size(&frame), Some(4));
/// ```
#[must_use]
pub fn content_size(frame: &[u8]) -> Option<u64> {
    match (Reader { rest: frame, position: 0, is_strict: false }).header() {
        Ok(Start::Frame(header)) => header.content_size,
        _ => None,
    }
}

/// The start of the first frame of a stream, for encoders that compress its content again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrameStart {
    /// Base-2 logarithm of the window size in bytes, rounded up; `None` where the window is the content, of at most 8 MiB.
    /// A larger one shows that the encoder looked further back than libzstd does up to level 19.
    pub window_log: Option<u32>,
    /// `true` if a checksum follows the content.
    pub has_checksum: bool,
    /// The frame without the blocks that are not whole, and without its end.
    pub blocks: Range<usize>,
}

impl FrameStart {
    /// Reads the start of a stream, up to `most` blocks of its first frame; `None` if no frame with data starts there.
    ///
    /// ```
    /// let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58, 0x21, 0, 0, b'c', b'o', b'd', b'e'];
    /// let start = codecs::zstd::FrameStart::read(&frame, 16).unwrap();
    /// assert_eq!((start.window_log, start.blocks), (Some(21), 0..13));
    /// ```
    #[must_use]
    pub fn read(stream: &[u8], most: usize) -> Option<Self> {
        let mut at = 0;
        let header = loop {
            match Start::parse(stream.get(at..)?) {
                Ok(Parsed::Whole(Start::Frame(header))) => break header,
                Ok(Parsed::Whole(Start::Skippable(len))) => {
                    at = usize::try_from(len).ok()?.checked_add(at)?;
                }
                _ => return None,
            }
        };
        let mut end = at + header.len;
        for _ in 0..most {
            let Some(bytes) = stream.get(end..).and_then(<[u8]>::first_chunk) else { break };
            let Ok(block) = BlockHeader::parse(*bytes, header.max_block()) else { break };
            let next = end + BLOCK_HEADER_LEN + block.len;
            if next > stream.len() {
                break;
            }
            end = next;
            if block.is_last {
                break;
            }
        }
        // The window of an empty content is 0.
        let log = |window: u64| u64::BITS - (window.max(1) - 1).leading_zeros();
        Some(FrameStart {
            window_log: (!header.is_single || header.window > 8 << 20).then(|| log(header.window)),
            has_checksum: header.has_checksum,
            blocks: at..end,
        })
    }
}

/// Returns whether a frame can start with these bytes.
pub(super) fn is_magic(bytes: &[u8]) -> bool {
    bytes.first_chunk().is_some_and(|&magic| {
        let magic = u32::from_le_bytes(magic);
        magic == u32::from_le_bytes(MAGIC) || SKIPPABLE.contains(&magic)
    })
}

impl FrameHeader {
    /// Returns the most bytes that a block of this frame can hold.
    pub(super) fn max_block(&self) -> u64 {
        self.window.min(MAX_BLOCK as u64)
    }
}

/// The header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockHeader {
    pub(super) is_last: bool,
    /// Bytes that follow the header.
    pub(super) len: usize,
    /// The most bytes that the block expands to.
    pub(super) at_most: u64,
}

impl BlockHeader {
    pub(super) fn parse(bytes: [u8; BLOCK_HEADER_LEN], max_block: u64) -> Result<Self, ErrorKind> {
        let [a, b, c] = bytes;
        let header = u32::from_le_bytes([a, b, c, 0]);
        let size = header >> 3;
        let content = u64::from(size);
        if content > max_block {
            return Err(ErrorKind::BlockTooLarge);
        }
        // Raw bytes, one byte to repeat, or a compressed block of unknown content.
        let (len, at_most) = match (header >> 1) & 3 {
            0 => (size, content),
            1 => (1, content),
            2 => (size, max_block),
            _ => return Err(ErrorKind::ReservedBlock),
        };
        Ok(Self { is_last: header & 1 != 0, len: len as usize, at_most })
    }
}

/// The reason why a header was not read.
enum Stop {
    Needs(usize),
    Fault(ErrorKind),
}

impl From<ErrorKind> for Stop {
    fn from(kind: ErrorKind) -> Self {
        Stop::Fault(kind)
    }
}

/// A position in a header.
struct Reader<'a> {
    rest: &'a [u8],
    position: usize,
    /// `true` if what no library decodes is an error.
    is_strict: bool,
}

impl Reader<'_> {
    /// Reads the bytes of a field. A header has at most 18.
    fn take<const LEN: usize>(&mut self) -> Result<[u8; LEN], Stop> {
        let end = self.position + LEN;
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(Stop::Needs(end))?;
        (self.rest, self.position) = (rest, end);
        Ok(*bytes)
    }

    fn header(&mut self) -> Result<Start, Stop> {
        let magic = u32::from_le_bytes(self.take()?);
        if SKIPPABLE.contains(&magic) {
            let len = u32::from_le_bytes(self.take()?);
            return Ok(Start::Skippable(self.position as u64 + u64::from(len)));
        }
        if magic != u32::from_le_bytes(MAGIC) {
            self.position = 0;
            return Err(ErrorKind::BadMagic.into());
        }
        let [descriptor] = self.take()?;
        let single_segment = descriptor & 0x20 != 0;
        let has_checksum = descriptor & 0x04 != 0;
        if descriptor & 0x08 != 0 && self.is_strict {
            return Err(ErrorKind::ReservedBit.into());
        }
        let mut window = None;
        if !single_segment {
            let [byte] = self.take()?;
            let log = 10 + u32::from(byte >> 3);
            if log > MAX_WINDOW_LOG && self.is_strict {
                return Err(ErrorKind::WindowTooLarge.into());
            }
            window = Some((1_u64 << log) + (1_u64 << (log - 3)) * u64::from(byte & 7));
        }
        let dictionary = match descriptor & 3 {
            0 => 0,
            1 => u8::from_le_bytes(self.take()?).into(),
            2 => u16::from_le_bytes(self.take()?).into(),
            _ => u32::from_le_bytes(self.take()?),
        };
        if dictionary != 0 && self.is_strict {
            return Err(ErrorKind::Dictionary.into());
        }
        let (window, content_size) = match (descriptor >> 6, window) {
            (0, Some(window)) => (window, None),
            (field, window) => {
                let size = match field {
                    0 => u8::from_le_bytes(self.take()?).into(),
                    1 => u64::from(u16::from_le_bytes(self.take()?)) + 256,
                    2 => u32::from_le_bytes(self.take()?).into(),
                    _ => u64::from_le_bytes(self.take()?),
                };
                // A single segment is its own window.
                (window.unwrap_or(size), Some(size))
            }
        };
        let (len, is_single) = (self.position, single_segment);
        Ok(Start::Frame(FrameHeader { len, window, is_single, content_size, has_checksum }))
    }
}

/// A frame with data, whose outside is in order.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "ruzstd"), allow(dead_code, reason = "libzstd reads these itself"))]
pub(super) struct Frame<'a> {
    pub(super) header: FrameHeader,
    pub(super) blocks: &'a [u8],
    /// End of the blocks, from the start of the stream; a checksum may follow.
    pub(super) blocks_end: usize,
    pub(super) checksum: Option<u32>,
    /// The most bytes that the blocks expand to.
    at_most: u64,
}

/// The frames of a stream, whose outsides are in order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frames<'a> {
    /// The first frame with data.
    pub(super) first: Frame<'a>,
    /// Frames with data.
    pub(super) count: usize,
    /// The largest window.
    pub(super) window: u64,
    /// The bytes of all frames.
    pub(super) stream: &'a [u8],
}

impl<'a> Frames<'a> {
    /// Reads the frames that `input` starts with, and checks their sizes and their end against those of the
    /// input. Where trailing bytes are allowed, the stream ends with the last frame.
    pub(super) fn parse(input: &Input<'a>) -> Result<Self, Error> {
        let mut walk = Walk::new(input);
        let first = walk.next()?.ok_or_else(|| {
            // Nothing but skippable frames.
            Error::new(ErrorKind::SkippableFrame, 0)
        })?;
        let (mut count, mut window) = (1_usize, first.header.window);
        let (mut content, mut at_most) = (first.header.content_size, first.at_most);
        while let Some(frame) = walk.next()? {
            count += 1;
            window = window.max(frame.header.window);
            content = match content.zip(frame.header.content_size) {
                Some((sum, more)) => Some(sum.checked_add(more).ok_or_else(too_long)?),
                None => None,
            };
            at_most += frame.at_most;
        }
        if let Some(size) = content.filter(|size| *size != input.size) {
            return Err(Error::new(ErrorKind::ContentSize(size), 0));
        }
        input.check_end(walk.position())?;
        if input.size > at_most {
            return Err(Error::new(ErrorKind::AtMost(at_most), 0));
        }
        let stream = walk.since(input.stream)?;
        Ok(Self { first, count, window, stream })
    }
}

/// Goes from frame to frame.
pub(super) struct Walk<'a> {
    stream: &'a [u8],
    /// The stream from the next frame on.
    rest: &'a [u8],
    /// `true` if there was a frame.
    begun: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn new(input: &Input<'a>) -> Self {
        Self { stream: input.stream, rest: input.stream, begun: false }
    }

    /// Returns the position in the stream.
    fn position(&self) -> usize {
        self.stream.len() - self.rest.len()
    }

    /// Returns the start of `rest`, an earlier rest of the stream, up to the position.
    fn since(&self, rest: &'a [u8]) -> Result<&'a [u8], Error> {
        let len = rest.len().checked_sub(self.rest.len());
        len.and_then(|len| rest.get(..len)).ok_or_else(|| self.ends_early())
    }

    fn ends_early(&self) -> Error {
        Error::new(ErrorKind::EndsEarly, self.stream.len())
    }

    /// Passes over this many bytes.
    fn skip(&mut self, len: usize) -> Result<&'a [u8], Error> {
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or_else(|| self.ends_early())?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Returns the next frame with data; `None` where none follows.
    pub(super) fn next(&mut self) -> Result<Option<Frame<'a>>, Error> {
        loop {
            if self.begun && !is_magic(self.rest) {
                return Ok(None);
            }
            self.begun = true;
            let start = Start::parse(self.rest);
            let header = match start.map_err(|error| error.moved(self.position() as u64))? {
                Parsed::Whole(Start::Frame(header)) => header,
                Parsed::Whole(Start::Skippable(len)) => {
                    self.skip(usize::try_from(len).map_err(|_| self.ends_early())?)?;
                    continue;
                }
                Parsed::Needs(_) => return Err(self.ends_early()),
            };
            self.skip(header.len)?;
            return self.blocks(header).map(Some);
        }
    }

    /// Passes over all blocks of a frame.
    fn blocks(&mut self, header: FrameHeader) -> Result<Frame<'a>, Error> {
        let all = self.rest;
        let mut at_most = 0_u64;
        loop {
            let start = self.position();
            let Some(&bytes) = self.skip(BLOCK_HEADER_LEN)?.first_chunk() else {
                return Err(self.ends_early());
            };
            let block = BlockHeader::parse(bytes, header.max_block())
                .map_err(|kind| Error::new(kind, start))?;
            // No memory holds a stream for which this overflows: three bytes give at most 2^17.
            at_most += block.at_most;
            self.skip(block.len)?;
            if block.is_last {
                break;
            }
        }
        let (blocks, blocks_end) = (self.since(all)?, self.position());
        let checksum = if header.has_checksum {
            self.skip(CHECKSUM_LEN)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
        } else {
            None
        };
        Ok(Frame { header, blocks, blocks_end, checksum, at_most })
    }
}

/// Returns a header for the blocks of a frame, with nothing in it but a window that is not smaller than `window`,
/// and that window.
pub(super) fn plain_header(window: u64) -> ([u8; 6], u64) {
    let (descriptor, window) = window_descriptor(window);
    let [m0, m1, m2, m3] = MAGIC;
    ([m0, m1, m2, m3, 0x00, descriptor], window)
}

/// Returns the smallest window that a frame header can express and that is not smaller than `size`: the byte for
/// it, and its size.
fn window_descriptor(size: u64) -> (u8, u64) {
    let mut byte = 0;
    loop {
        let log = 10 + (byte >> 3);
        let window = (1_u64 << log) + (1_u64 << (log - 3)) * u64::from(byte & 7);
        // 2^41 is the largest exponent there is; results are far smaller.
        if window >= size || byte == u8::MAX {
            return (byte, window);
        }
        byte += 1;
    }
}

/// Returns an error at the start of the stream, for faults without a better place.
pub(super) fn damaged<E>(_: E) -> Error {
    Error::new(ErrorKind::Damaged, 0)
}

#[cfg(test)]
mod tests {
    use super::window_descriptor;

    #[test]
    fn windows_cover_the_requested_size() {
        assert_eq!(window_descriptor(0), (0, 1 << 10));
        assert_eq!(window_descriptor(1024), (0, 1 << 10));
        assert_eq!(window_descriptor(1025), (1, 1024 + 128));
        assert_eq!(window_descriptor(128 << 10), (7 << 3, 128 << 10));
        let (_, window) = window_descriptor(149_000_000);
        assert!((149_000_000..170_000_000).contains(&window));
        assert!(window_descriptor(1 << 33).1 >= 1 << 33);
    }
}
