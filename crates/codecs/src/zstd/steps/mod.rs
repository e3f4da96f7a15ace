//! Zstandard step by step: the outside of frames is read here, and each block given to a codec as a whole.

#[cfg(feature = "ruzstd")]
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hash::Hasher;

use twox_hash::XxHash64;

use super::frame::{
    BLOCK_HEADER_LEN, BlockHeader, CHECKSUM_LEN, FrameHeader, MAGIC_LEN, Parsed, Start, checksum,
    damaged, is_magic,
};
use crate::error::{Error, ErrorKind};
use crate::input::too_long;

#[cfg(feature = "zstd")]
mod libzstd;
#[cfg(feature = "ruzstd")]
mod pure;

/// The library that decodes blocks.
#[cfg_attr(feature = "zstd", allow(dead_code, reason = "libzstd is preferred; tests compare them"))]
#[derive(Clone, Copy, Debug)]
pub(crate) enum Library {
    #[cfg(feature = "ruzstd")]
    Ruzstd,
    #[cfg(feature = "zstd")]
    Libzstd,
}

/// A stream of frames, and how far it is decoded.
pub(crate) struct Steps {
    library: Library,
    state: State,
    /// Bytes of input that the state needs.
    needed: usize,
    blocks: Option<Blocks>,
    /// Output that was not handed out.
    out: Vec<u8>,
    /// Number of bytes of it that were given.
    given: usize,
    /// Hash of the frame's output, if the frame has a checksum.
    hash: Option<XxHash64>,
    /// `true` if there was a frame with data.
    has_data: bool,
    /// The content sizes of the frames so far.
    content: u64,
    /// Bytes that are to come from the frame, if it records that.
    left_in_frame: Option<u64>,
}

enum State {
    /// A frame starts, or the stream ended.
    Between,
    /// A skippable frame with this many bytes left.
    Skipping(u64),
    Block(FrameHeader),
    Checksum,
    /// All of the stream was read.
    Ended,
    /// And all output handed out.
    Done,
}

enum Blocks {
    #[cfg(feature = "ruzstd")]
    Ruzstd(Box<pure::Blocks>),
    #[cfg(feature = "zstd")]
    Libzstd(libzstd::Blocks),
}

#[cfg_attr(
    not(feature = "ruzstd"),
    allow(
        unused_variables,
        clippy::unnecessary_wraps,
        clippy::ptr_arg,
        reason = "libzstd hands everything out at once"
    )
)]
impl Blocks {
    fn new(library: Library, window: u64, size: u64) -> Result<Self, Error> {
        match library {
            #[cfg(feature = "ruzstd")]
            Library::Ruzstd => {
                pure::Blocks::new(window, size).map(|blocks| Blocks::Ruzstd(Box::new(blocks)))
            }
            #[cfg(feature = "zstd")]
            Library::Libzstd => libzstd::Blocks::new(window, size).map(Blocks::Libzstd),
        }
    }

    /// Decodes a block, and appends what it gave to `out`, if that can be seen.
    fn decode(&mut self, block: &[u8], is_last: bool, out: &mut Vec<u8>) -> Result<(), Error> {
        match self {
            #[cfg(feature = "ruzstd")]
            Blocks::Ruzstd(blocks) => blocks.decode(block, is_last, out),
            #[cfg(feature = "zstd")]
            Blocks::Libzstd(blocks) => blocks.decode(block, out),
        }
    }

    /// Appends to `out` what can be had without another block, up to a block's worth.
    fn more(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        match self {
            #[cfg(feature = "ruzstd")]
            Blocks::Ruzstd(blocks) => blocks.more(out),
            #[cfg(feature = "zstd")]
            Blocks::Libzstd(_) => Ok(()),
        }
    }
}

/// The expected state of the stream.
pub(crate) struct Expected {
    /// Expected length of the result.
    pub(crate) size: u64,
    /// Bytes of the stream that are left, if its end is known.
    pub(crate) left: Option<u64>,
}

impl Steps {
    pub(crate) fn new(library: Library) -> Self {
        Self {
            library,
            state: State::Between,
            needed: MAGIC_LEN,
            blocks: None,
            out: Vec::new(),
            given: 0,
            hash: None,
            has_data: false,
            content: 0,
            left_in_frame: None,
        }
    }

    pub(crate) fn is_ended(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Returns the number of bytes of input that the next step needs.
    pub(crate) fn needed(&self) -> usize {
        if self.given < self.out.len() { 0 } else { self.needed }
    }

    /// Takes one step: hands out output, or reads a part of the stream. How many bytes were read and written.
    pub(crate) fn step(
        &mut self,
        input: &[u8],
        to: &mut [u8],
        expected: &Expected,
    ) -> Result<(usize, usize), Error> {
        if self.given == self.out.len() {
            self.out.clear();
            self.given = 0;
            if let Some(blocks) = &mut self.blocks {
                blocks.more(&mut self.out)?;
            }
        }
        let Some(rest @ [_, ..]) = self.out.get(self.given..) else {
            return self.read(input, expected).map(|read| (read, 0));
        };
        let len = rest.len().min(to.len());
        if let (Some(to), Some(from)) = (to.get_mut(..len), rest.get(..len)) {
            to.copy_from_slice(from);
            if let Some(hash) = &mut self.hash {
                hash.write(from);
            }
        }
        if let Some(left) = &mut self.left_in_frame {
            *left = left.checked_sub(len as u64).ok_or_else(|| damaged(()))?;
        }
        self.given += len;
        Ok((0, len))
    }

    /// Reads a part of the stream, if enough of it is there.
    fn read(&mut self, input: &[u8], expected: &Expected) -> Result<usize, Error> {
        if !matches!(self.state, State::Block(_))
            && self.left_in_frame.take().is_some_and(|n| n > 0)
        {
            return Err(damaged(()));
        }
        match self.state {
            State::Between => self.between(input, expected),
            State::Skipping(left) => {
                let len = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
                let left = left - len as u64;
                if left == 0 {
                    self.between_frames(expected, len as u64);
                } else {
                    self.state = State::Skipping(left);
                }
                Ok(len)
            }
            State::Block(header) => self.block(input, header, expected),
            State::Checksum => {
                let Some(&stored) = input.first_chunk::<CHECKSUM_LEN>() else { return Ok(0) };
                if self
                    .hash
                    .take()
                    .is_some_and(|hash| checksum(hash.finish()) != u32::from_le_bytes(stored))
                {
                    return Err(Error::new(ErrorKind::Checksum, 0));
                }
                self.between_frames(expected, CHECKSUM_LEN as u64);
                Ok(CHECKSUM_LEN)
            }
            State::Ended | State::Done => {
                self.state = State::Done;
                Ok(0)
            }
        }
    }

    /// Handles the position between frames, after `read` more bytes.
    fn between_frames(&mut self, expected: &Expected, read: u64) {
        match expected.left {
            Some(left) if left <= read => self.end(),
            left => {
                self.state = State::Between;
                let left = left.and_then(|left| usize::try_from(left - read).ok());
                self.needed = left.map_or(MAGIC_LEN, |left| left.min(MAGIC_LEN));
            }
        }
    }

    /// Takes the end of the input for the end of the stream, if no frame has begun in these last bytes.
    pub(crate) fn end_input(&mut self, last: &[u8]) -> bool {
        let ends = matches!(self.state, State::Between) && self.has_data && !is_magic(last);
        if ends {
            self.state = State::Done;
        }
        ends
    }

    fn end(&mut self) {
        self.state = State::Ended;
        self.needed = 0;
    }

    fn between(&mut self, input: &[u8], expected: &Expected) -> Result<usize, Error> {
        if self.has_data && !is_magic(input) {
            self.end();
            return Ok(0);
        }
        let header = match Start::parse(input)? {
            Parsed::Needs(needed) => {
                self.needed = needed;
                return Ok(0);
            }
            Parsed::Whole(Start::Skippable(len)) => {
                self.state = State::Skipping(len);
                self.needed = 1;
                return Ok(0);
            }
            Parsed::Whole(Start::Frame(header)) => header,
        };
        if let Some(content) = header.content_size {
            self.content = self.content.checked_add(content).ok_or_else(too_long)?;
            if self.content > expected.size {
                return Err(Error::new(ErrorKind::ContentSize(self.content), 0));
            }
        }
        let blocks = Blocks::new(self.library, header.window, expected.size);
        self.blocks = Some(blocks?);
        self.hash = header.has_checksum.then(|| XxHash64::with_seed(0));
        self.left_in_frame = header.content_size;
        self.has_data = true;
        self.state = State::Block(header);
        self.needed = BLOCK_HEADER_LEN;
        Ok(header.len)
    }

    fn block(
        &mut self,
        input: &[u8],
        header: FrameHeader,
        expected: &Expected,
    ) -> Result<usize, Error> {
        let Some(&bytes) = input.first_chunk() else { return Ok(0) };
        let block =
            BlockHeader::parse(bytes, header.max_block()).map_err(|kind| Error::new(kind, 0))?;
        let len = BLOCK_HEADER_LEN + block.len;
        let Some(whole) = input.get(..len) else {
            self.needed = len;
            return Ok(0);
        };
        if let Some(blocks) = &mut self.blocks {
            blocks.decode(whole, block.is_last, &mut self.out)?;
        }
        match (block.is_last, header.has_checksum) {
            (false, _) => self.needed = BLOCK_HEADER_LEN,
            (true, true) => {
                self.state = State::Checksum;
                self.needed = CHECKSUM_LEN;
            }
            (true, false) => self.between_frames(expected, len as u64),
        }
        Ok(len)
    }
}
