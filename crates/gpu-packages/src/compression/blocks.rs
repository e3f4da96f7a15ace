//! Streams of blocks that several threads compress: gzip and xz.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::{mem, thread};

use byte_parts::{Bounds, in_order};

#[cfg(feature = "xz")]
use super::xz;
use crate::error::Error;
use crate::zip::{BLOCK, WINDOW, deflate_block};

/// A writer that collects blocks, and compresses several at the same time. Blocks have a fixed size, so the output
/// does not depend on the number of threads.
pub(super) struct Blocks<W> {
    writer: W,
    encoder: Encoder,
    threads: NonZeroUsize,
    is_begun: bool,
    /// Blocks to be compressed together, and the block that is collected.
    full: Vec<Block>,
    last: Block,
    /// The checksum and size of the contents of a gzip stream.
    crc: flate2::Crc,
    #[cfg(feature = "xz")]
    index: xz::Index,
}

/// A block, after the bytes that its compression may refer to.
#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
    start: usize,
}

pub(super) enum Encoder {
    /// One member without a name and a time, of this level.
    Gzip(u32),
    #[cfg(feature = "xz")]
    Xz(xz::Encoder),
}

impl Encoder {
    fn block_size(&self) -> usize {
        match self {
            Encoder::Gzip(_) => BLOCK,
            #[cfg(feature = "xz")]
            Encoder::Xz(encoder) => encoder.block_size(),
        }
    }

    /// Returns the start of the stream.
    fn header(&self) -> Vec<u8> {
        match self {
            Encoder::Gzip(level) => {
                let flag = match level {
                    9 => 2,
                    1 => 4,
                    _ => 0,
                };
                vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, flag, 255]
            }
            #[cfg(feature = "xz")]
            Encoder::Xz(encoder) => encoder.header(),
        }
    }

    fn compress(&self, block: &Block, is_last: bool) -> Result<Vec<u8>, Error> {
        match self {
            Encoder::Gzip(level) => {
                let level = flate2::Compression::new(*level);
                deflate_block(level, &block.bytes, block.start, is_last)
            }
            #[cfg(feature = "xz")]
            Encoder::Xz(encoder) => encoder.block(&block.bytes),
        }
    }
}

impl<W: Write> Blocks<W> {
    pub(super) fn new(writer: W, encoder: Encoder, threads: NonZeroUsize) -> Self {
        let threads = match &encoder {
            Encoder::Gzip(_) => threads,
            #[cfg(feature = "xz")]
            Encoder::Xz(encoder) => threads.min(encoder.most_threads()),
        };
        Blocks {
            writer,
            encoder,
            threads,
            is_begun: false,
            full: Vec::new(),
            last: Block::default(),
            crc: flate2::Crc::new(),
            #[cfg(feature = "xz")]
            index: xz::Index::default(),
        }
    }

    /// Ends the block that is collected. Returns whether the full blocks are enough for all threads.
    fn end_block(&mut self) -> bool {
        let (window, each) = match self.encoder {
            Encoder::Gzip(_) => (self.last.bytes.rchunks(WINDOW).next(), 16),
            #[cfg(feature = "xz")]
            Encoder::Xz(_) => (None, 1),
        };
        let bytes = window.unwrap_or(&[]).to_vec();
        let next = Block { start: bytes.len(), bytes };
        self.full.push(mem::replace(&mut self.last, next));
        self.full.len() / self.threads >= each
    }

    fn compress(&mut self, is_end: bool) -> io::Result<()> {
        let Blocks { writer, encoder, .. } = self;
        if !mem::replace(&mut self.is_begun, true) {
            writer.write_all(&encoder.header())?;
        }
        let blocks = mem::take(&mut self.full);
        let last = blocks.len().checked_sub(1).filter(|_| is_end);
        let jobs = blocks.into_iter().enumerate();
        let jobs = jobs.map(|(at, block)| ((block, Some(at) == last), 0));
        let encoder = &*encoder;
        let work = |(block, is_last): (Block, bool)| encoder.compress(&block, is_last);
        thread::scope(|scope| {
            for block in in_order(scope, Bounds::new(self.threads), jobs, || work) {
                let block = block?;
                #[cfg(feature = "xz")]
                let block = match encoder {
                    Encoder::Xz(_) => self.index.add(&block)?,
                    Encoder::Gzip(_) => &block,
                };
                writer.write_all(block.as_ref())?;
            }
            Ok(())
        })
    }

    /// Writes the rest of the stream, and returns the writer.
    pub(super) fn finish(mut self) -> io::Result<W> {
        if matches!(self.encoder, Encoder::Gzip(_)) || !self.last.bytes.is_empty() {
            // A block that the end of the stream needs is not compressed before.
            self.end_block();
        }
        self.compress(true)?;
        match &self.encoder {
            Encoder::Gzip(_) => {
                self.writer.write_all(&self.crc.sum().to_le_bytes())?;
                self.writer.write_all(&self.crc.amount().to_le_bytes())?;
            }
            #[cfg(feature = "xz")]
            Encoder::Xz(encoder) => self.writer.write_all(&encoder.end(&self.index)?)?,
        }
        Ok(self.writer)
    }
}

impl<W: Write> Write for Blocks<W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        // The block after it is there, so this is not the last one.
        let is_full = self.last.bytes.len() - self.last.start >= self.encoder.block_size();
        if is_full && self.end_block() {
            self.compress(false)?;
        }
        let room = self.encoder.block_size() - (self.last.bytes.len() - self.last.start);
        let (taken, _) = buf.split_at(room.min(buf.len()));
        self.last.bytes.extend_from_slice(taken);
        self.crc.update(taken);
        Ok(taken.len())
    }

    /// Flushes the writer; a block that is not full waits for more.
    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}
