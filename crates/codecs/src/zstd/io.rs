//! Frames one after the other, of any size, as streams of `std::io`.

use core::fmt;
use std::io::{self, BufRead, Read, Write};

#[cfg(feature = "zstd")]
use ::zstd::stream::{read::Decoder, write::Encoder};
#[cfg(feature = "zstd")]
use ::zstd::zstd_safe::CParameter;
#[cfg(not(feature = "zstd"))]
use pure::{Decoder, Encoder};

/// A reader of the data in frames one after the other.
pub struct Reader<R: BufRead>(
    #[cfg(feature = "zstd")] Decoder<'static, R>,
    #[cfg(not(feature = "zstd"))] Decoder<R>,
);

impl<R: BufRead> Reader<R> {
    /// Reads frames whose windows take at most this many bytes, a power of two.
    ///
    /// # Errors
    ///
    /// An error of libzstd, where memory is short.
    #[cfg_attr(
        not(feature = "zstd"),
        allow(clippy::unnecessary_wraps, reason = "libzstd can fail")
    )]
    pub fn new(reader: R, max_window: u64) -> io::Result<Self> {
        #[cfg(feature = "zstd")]
        let decoder = {
            let mut decoder = Decoder::with_buffer(reader)?;
            decoder.window_log_max(max_window.ilog2())?;
            decoder
        };
        #[cfg(not(feature = "zstd"))]
        let decoder = Decoder::new(reader, max_window);
        Ok(Reader(decoder))
    }
}

impl<R: BufRead> Read for Reader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf)
    }
}

impl<R: BufRead> fmt::Debug for Reader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

/// A writer that compresses to frames. Call [`finish`](Self::finish) at the end.
pub struct Writer<W: Write>(
    #[cfg(feature = "zstd")] Encoder<'static, W>,
    #[cfg(not(feature = "zstd"))] Encoder<W>,
);

/// Parameters of a [`Writer`].
///
/// ```
/// let parameters = codecs::zstd::Parameters::default().with_level(19).with_threads(8);
/// assert!(!parameters.has_checksum);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Parameters {
    /// Level of libzstd, 1 to 22.
    pub level: u32,
    /// Base-2 logarithm of the window size in bytes, 10 to 27; `None` for the size that goes with the level. From 24 on
    /// long distances are matched at levels up to 19, as by `zstd --long`.
    pub window_log: Option<u32>,
    /// `true` if frames end with a checksum.
    pub has_checksum: bool,
    /// Threads that compress; 0 is 1. The output does not depend on their number.
    pub threads: usize,
}

impl Default for Parameters {
    /// Level 3, its window, no checksum, one thread.
    fn default() -> Self {
        Parameters { level: 3, window_log: None, has_checksum: false, threads: 1 }
    }
}

impl Parameters {
    /// Sets the level.
    #[must_use]
    pub fn with_level(mut self, level: u32) -> Self {
        self.level = level;
        self
    }

    /// Sets the size of the window.
    #[must_use]
    pub fn with_window_log(mut self, window_log: Option<u32>) -> Self {
        self.window_log = window_log;
        self
    }

    /// Sets whether frames end with a checksum.
    #[must_use]
    pub fn with_checksum(mut self, has_checksum: bool) -> Self {
        self.has_checksum = has_checksum;
        self
    }

    /// Sets the number of threads.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }
}

#[cfg(feature = "zstd")]
impl Parameters {
    /// Bytes that all workers together may take.
    const MEMORY: u32 = 1 << 30;

    /// The window that libzstd takes for a stream of any size.
    fn window_log(&self) -> u32 {
        self.window_log.unwrap_or(match self.level {
            ..=1 => 19,
            2 => 20,
            3..=8 => 21,
            9..=16 => 22,
            17..=19 => 23,
            20 => 25,
            21 => 26,
            _ => 27,
        })
    }

    /// Bytes of a job. Its size decides about what is written, so it does not depend on the number of workers: four
    /// windows as by `zstd`, of large ones fewer.
    fn job(&self) -> u32 {
        let window = 1 << self.window_log().clamp(10, 27);
        window.max((4 * window).min(32 << 20)).max(1 << 20)
    }

    /// Returns the number of workers that there is memory for, at least one.
    fn workers(&self) -> u32 {
        let tables = match self.level {
            ..=8 => 8 << 20,
            9..=16 => 64 << 20,
            17..=19 => 96 << 20,
            _ => 640 << 20,
        };
        // Each has a job, the one that follows it, and what a job becomes.
        let most = Self::MEMORY / (tables + 3 * self.job());
        u32::try_from(self.threads).map_or(most, |threads| threads.min(most)).max(1)
    }

    fn encoder<W: Write>(&self, writer: W) -> io::Result<Encoder<'static, W>> {
        // libzstd knows no higher one.
        let level = i32::try_from(self.level).unwrap_or(22);
        let mut encoder = Encoder::new(writer, level)?;
        encoder.include_checksum(self.has_checksum)?;
        encoder.window_log(self.window_log())?;
        encoder.long_distance_matching(self.level < 20 && self.window_log() >= 24)?;
        // Without workers there are no jobs.
        encoder.multithread(self.workers())?;
        encoder.set_parameter(CParameter::JobSize(self.job()))?;
        Ok(encoder)
    }
}

impl<W: Write> Writer<W> {
    /// Writes frames by libzstd. Without it there is one level, about the first of libzstd's, on one thread.
    ///
    /// Workers take at most about 1 GiB together, of levels from 20 on more: fewer of them run where these are too many.
    ///
    /// # Errors
    ///
    /// An error of libzstd: where memory is short, or for a parameter out of its range.
    #[cfg_attr(
        not(feature = "zstd"),
        allow(clippy::unnecessary_wraps, reason = "libzstd can fail")
    )]
    pub fn new(writer: W, parameters: &Parameters) -> io::Result<Self> {
        #[cfg(feature = "zstd")]
        let encoder = parameters.encoder(writer)?;
        #[cfg(not(feature = "zstd"))]
        let (encoder, _) = (Encoder::new(writer), parameters);
        Ok(Writer(encoder))
    }

    /// Writes the end of the last frame, and returns the writer.
    ///
    /// # Errors
    ///
    /// Errors of the writer.
    pub fn finish(self) -> io::Result<W> {
        self.0.finish()
    }
}

impl<W: Write> Write for Writer<W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<W: Write> fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

#[cfg(not(feature = "zstd"))]
mod pure {
    use std::hash::Hasher;
    use std::io::{self, BufRead, Read, Write};
    use std::mem;
    use std::vec::Vec;

    use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
    use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
    use twox_hash::XxHash64;

    use crate::zstd::frame::checksum;
    use crate::zstd::pure::encode_code;

    /// A decoder of frames one after the other.
    pub(super) struct Decoder<R> {
        source: R,
        frame: FrameDecoder,
        /// Hash of what the frame gave.
        hash: XxHash64,
        is_open: bool,
        has_failed: bool,
    }

    impl<R: BufRead> Decoder<R> {
        pub(super) fn new(source: R, max_window: u64) -> Self {
            let mut frame = FrameDecoder::new();
            frame.set_max_window_size(max_window);
            Decoder {
                source,
                frame,
                hash: XxHash64::with_seed(0),
                is_open: false,
                has_failed: false,
            }
        }

        /// Opens the next frame; returns `false` at the end.
        fn open(&mut self) -> io::Result<bool> {
            loop {
                if self.source.fill_buf()?.is_empty() {
                    return Ok(false);
                }
                match self.frame.reset(&mut self.source) {
                    Ok(()) => {
                        self.is_open = true;
                        self.hash = XxHash64::with_seed(0);
                        return Ok(true);
                    }
                    Err(FrameDecoderError::ReadFrameHeaderError(
                        ReadFrameHeaderError::SkipFrame { length, .. },
                    )) => {
                        let length = u64::from(length);
                        let skipped =
                            io::copy(&mut self.source.by_ref().take(length), &mut io::sink())?;
                        if skipped < length {
                            return Err(io::ErrorKind::UnexpectedEof.into());
                        }
                    }
                    Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
                }
            }
        }

        fn read_some(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            loop {
                if !self.is_open && !self.open()? {
                    return Ok(0);
                }
                while self.frame.can_collect() == 0 && !self.frame.is_finished() {
                    self.frame
                        .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
                }
                let read = self.frame.read(buf)?;
                if let Some(bytes @ [_, ..]) = buf.get(..read) {
                    self.hash.write(bytes);
                    return Ok(read);
                }
                let found = checksum(self.hash.finish());
                if self.frame.get_checksum_from_data().is_some_and(|stored| stored != found) {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "zstd: the checksum of a frame differs",
                    ));
                }
                self.is_open = false;
            }
        }
    }

    impl<R: BufRead> Read for Decoder<R> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            if buf.is_empty() {
                return Ok(0);
            }
            if self.has_failed {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let read = self.read_some(buf);
            self.has_failed = read.is_err();
            read
        }
    }

    /// Bytes of one frame: the encoder of `ruzstd` needs all of them at once.
    const FRAME: usize = 8 << 20;

    pub(super) struct Encoder<W> {
        writer: W,
        held: Vec<u8>,
        is_empty: bool,
    }

    impl<W: Write> Encoder<W> {
        pub(super) fn new(writer: W) -> Self {
            Encoder { writer, held: Vec::new(), is_empty: true }
        }

        fn write_frame(&mut self) -> io::Result<()> {
            let held = mem::take(&mut self.held);
            self.is_empty = false;
            let mut frame = Vec::new();
            encode_code(&held, None, 1, &mut frame).map_err(io::Error::other)?;
            self.writer.write_all(&frame)
        }

        pub(super) fn finish(mut self) -> io::Result<W> {
            if self.is_empty || !self.held.is_empty() {
                self.write_frame()?;
            }
            Ok(self.writer)
        }
    }

    impl<W: Write> Write for Encoder<W> {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            let room = FRAME - self.held.len();
            let (taken, _) = buf.split_at(room.min(buf.len()));
            self.held.extend_from_slice(taken);
            if self.held.len() >= FRAME {
                self.write_frame()?;
            }
            Ok(taken.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            self.writer.flush()
        }
    }
}
