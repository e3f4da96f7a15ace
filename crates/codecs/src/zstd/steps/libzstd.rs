//! Blocks decoded by libzstd.

use alloc::vec::Vec;

use ::zstd::zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

use crate::error::Error;
use crate::zstd::frame::{MAX_BLOCK, MAX_WINDOW_LOG, damaged, plain_header};

/// Room for the output of a block.
const BLOCK_ROOM: usize = MAX_BLOCK + 1;

/// Decodes block by block. libzstd holds the window; memory is asked for at once, and used as the output grows.
pub(super) struct Blocks {
    context: DCtx<'static>,
}

impl Blocks {
    /// Returns a decoder for the blocks of a frame with this window and at most this much output.
    pub(super) fn new(window: u64, size: u64) -> Result<Self, Error> {
        let mut context = DCtx::try_create().ok_or_else(|| damaged(()))?;
        context.set_parameter(DParameter::WindowLogMax(MAX_WINDOW_LOG)).map_err(damaged)?;
        let (header, _) = plain_header(window.min(size).max(MAX_BLOCK as u64));
        let mut blocks = Self { context };
        blocks.decode(&header, &mut Vec::new())?;
        Ok(blocks)
    }

    /// Decodes a block, header and body, and appends to `out` what it gave.
    pub(super) fn decode(&mut self, block: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let mut input = InBuffer::around(block);
        loop {
            let (read, written) = (input.pos(), out.len());
            // More than a block holds, so that it gives everything.
            out.try_reserve(BLOCK_ROOM).map_err(damaged)?;
            let mut output = OutBuffer::around_pos(out, written);
            self.context.decompress_stream(&mut output, &mut input).map_err(damaged)?;
            if input.pos() == block.len() {
                return Ok(());
            }
            if (input.pos(), out.len()) == (read, written) {
                return Err(damaged(()));
            }
        }
    }
}
