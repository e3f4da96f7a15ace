//! Blocks decoded by `ruzstd`.

use alloc::vec::Vec;

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use ruzstd::io::{self, Read};

use crate::error::{Error, ErrorKind};
use crate::zstd::frame::{MAX_BLOCK, damaged};
use crate::zstd::pure::decoder;

/// Decodes block by block.
///
/// The decoder hands out only what lies before its window, as long as there are further blocks, so each block is
/// said to be the last. Then it hands out everything: what it holds is looked at, and taken only up to where a further
/// block may refer to it. From then on its contents are not inspected any more, as they lie in two parts; the output
/// lags by a window.
pub(super) struct Blocks {
    decoder: FrameDecoder,
    window: usize,
    /// Bytes of the frame that were taken out of the decoder.
    taken: usize,
    /// Bytes of the frame that were handed out.
    given: usize,
    /// `true` if the last block was decoded.
    ended: bool,
    /// A block with a header that says it is the last.
    block: Vec<u8>,
}

impl Blocks {
    /// Returns a decoder for the blocks of a frame with this window and at most this much output.
    pub(super) fn new(window: u64, size: u64) -> Result<Self, Error> {
        let (decoder, _, window) = decoder(window, size)?;
        let window =
            usize::try_from(window).map_err(|_| Error::new(ErrorKind::WindowTooLarge, 0))?;
        Ok(Self { decoder, window, taken: 0, given: 0, ended: false, block: Vec::new() })
    }

    /// Decodes a block, header and body, and appends to `out` what it gave, if that can be seen.
    pub(super) fn decode(
        &mut self,
        block: &[u8],
        is_last: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.block.clear();
        self.block.extend_from_slice(block);
        if let Some(first) = self.block.first_mut() {
            *first |= 1;
        }
        self.decoder
            .decode_blocks(self.block.as_slice(), BlockDecodingStrategy::UptoBlocks(1))
            .map_err(damaged)?;
        self.ended = is_last;
        let held = self.decoder.can_collect();
        if self.taken > 0 {
            return Ok(());
        }
        let before = out.len();
        // Fails, as it is to, so that the decoder keeps everything.
        let _ = self.decoder.collect_to_writer(Peek { skip: self.given, out });
        if self.decoder.can_collect() != held || out.len() - before != held - self.given {
            return Err(damaged(()));
        }
        self.given = held;
        Ok(())
    }

    /// Appends to `out` what can be had without another block, up to a block's worth.
    pub(super) fn more(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        let kept = if self.ended { 0 } else { self.window };
        // It may hold less than it has to keep.
        let can_take = self.decoder.can_collect().saturating_sub(kept);
        // Skip the bytes that were handed out before.
        let known = self.given - self.taken;
        let take = can_take.min(known + MAX_BLOCK);
        if take == 0 {
            return Ok(());
        }
        let mut taken = alloc::vec![0; take];
        let read = self.decoder.read(&mut taken).map_err(damaged)?;
        if read != take {
            return Err(damaged(()));
        }
        if let Some(new) = taken.get(known..) {
            out.extend_from_slice(new);
        }
        self.taken += take;
        self.given = self.given.max(self.taken);
        Ok(())
    }
}

/// Copies what is written except the first bytes, and takes nothing.
struct Peek<'o> {
    skip: usize,
    out: &'o mut Vec<u8>,
}

impl io::Write for Peek<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, io::Error> {
        // `decode` checks that it was all.
        if let Some(new) = bytes.get(self.skip..) {
            self.out.extend_from_slice(new);
        }
        Err(io::Error::from(io::ErrorKind::Other))
    }

    fn flush(&mut self) -> Result<(), io::Error> {
        Ok(())
    }
}
