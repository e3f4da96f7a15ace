//! A stream that is decoded step by step.

#[cfg(any(feature = "ruzstd", feature = "zstd"))]
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use crate::codec::Codec;
use crate::error::{Error, ErrorKind};
use crate::input::too_long;
#[cfg(feature = "miniz_oxide")]
use crate::zlib;
#[cfg(any(feature = "ruzstd", feature = "zstd"))]
use crate::zstd::steps::{self, Expected, Library};

/// A stream that is decompressed step by step, on demand.
///
/// It holds in memory the window of a Zstandard frame, at most the expected size, and a block of compressed and
/// uncompressed data.
///
/// ```
/// use codecs::{Codec, Stream};
///
/// # if !cfg!(any(feature = "ruzstd-encoder", feature = "zstd")) { return Ok(()); }
/// let frame = Codec::Zstd.compress(&[7; 1 << 20], 3)?;
/// let mut stream = Stream::new(Codec::Zstd, 1 << 20, Some(frame.len() as u64))?;
/// let mut start = Vec::new();
/// stream.append(&frame, 9, &mut start)?;
/// assert_eq!(start, [7; 9]);
/// # Ok::<(), codecs::Error>(())
/// ```
#[derive(Debug)]
pub struct Stream {
    /// Number of bytes that were read, and of all bytes, if that is known.
    position: u64,
    end: Option<u64>,
    size: u64,
    /// Bytes that were handed out.
    written: u64,
    steps: Steps,
    is_ended: bool,
}

pub(crate) enum Steps {
    #[cfg(feature = "miniz_oxide")]
    Zlib(zlib::Steps),
    #[cfg(any(feature = "ruzstd", feature = "zstd"))]
    Zstd(Box<steps::Steps>),
}

#[cfg(any(feature = "ruzstd", feature = "zstd"))]
impl Steps {
    pub(crate) fn zstd(library: Library) -> Self {
        Steps::Zstd(Box::new(steps::Steps::new(library)))
    }
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Steps").finish_non_exhaustive()
    }
}

impl Stream {
    /// Starts a stream that expands to exactly `size` bytes, and ends after `end` bytes: `None` if that is not known. Then
    /// Zstandard ends with the last frame.
    ///
    /// # Errors
    ///
    /// [`NoCodec`](ErrorKind::NoCodec): also for LZ4, which is not read in steps.
    pub fn new(codec: Codec, size: u64, end: Option<u64>) -> Result<Self, Error> {
        let steps = match codec {
            #[cfg(feature = "miniz_oxide")]
            Codec::Zlib => Steps::Zlib(zlib::Steps::new()),
            #[cfg(feature = "zstd")]
            Codec::Zstd => Steps::zstd(Library::Libzstd),
            #[cfg(all(feature = "ruzstd", not(feature = "zstd")))]
            Codec::Zstd => Steps::zstd(Library::Ruzstd),
            _ => return Err(Error::new(ErrorKind::NoCodec, 0)),
        };
        Ok(Self::with_steps(steps, size, end))
    }

    pub(crate) fn with_steps(steps: Steps, size: u64, end: Option<u64>) -> Self {
        Self { position: 0, end, size, written: 0, steps, is_ended: false }
    }

    /// Returns whether the stream ended as it has to, and everything was handed out.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Returns the number of bytes that were read.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the number of missing bytes of output.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.size - self.written
    }

    /// Returns the number of bytes that were not read, if the end is known.
    #[must_use]
    pub fn left(&self) -> Option<u64> {
        // None, if it was given more than that: `check_end` tells.
        self.end.map(|end| end.saturating_sub(self.position))
    }

    /// Returns the number of bytes of input that the next step needs; more are welcome, except past the end.
    #[must_use]
    pub fn needed(&self) -> usize {
        if self.is_ended {
            return 0;
        }
        match self.steps {
            #[cfg(feature = "miniz_oxide")]
            Steps::Zlib(ref steps) => steps.needed(),
            #[cfg(any(feature = "ruzstd", feature = "zstd"))]
            Steps::Zstd(ref steps) => steps.needed(),
        }
    }

    /// Takes the end of the input, after `last`, which is shorter than [needed](Self::needed): the end of a stream of
    /// frames where that is not known.
    ///
    /// # Errors
    ///
    /// [`EndsEarly`](ErrorKind::EndsEarly), [`TooShort`](ErrorKind::TooShort).
    pub fn end_input(&mut self, last: &[u8]) -> Result<(), Error> {
        let ended: bool = match self.steps {
            #[cfg(feature = "miniz_oxide")]
            Steps::Zlib(_) => false,
            #[cfg(any(feature = "ruzstd", feature = "zstd"))]
            Steps::Zstd(ref mut steps) => self.end.is_none() && steps.end_input(last),
        };
        if !ended {
            return Err(Error::new(ErrorKind::EndsEarly, last.len()).moved(self.position));
        }
        self.check_end()?;
        self.is_ended = true;
        Ok(())
    }

    /// Takes one step: reads from the start of `input`, as much as is [needed](Self::needed) at least, writes to the
    /// start of `to`, or both. Returns the number of bytes that were read and written.
    ///
    /// # Errors
    ///
    /// Errors of [`Codec::decompress`] for what is read.
    pub fn step(&mut self, input: &[u8], to: &mut [u8]) -> Result<(usize, usize), Error> {
        let mut scratch = [0];
        let missing = self.missing();
        let to = match missing {
            // The stream must end here.
            0 => &mut scratch[..],
            _ => {
                let len = usize::try_from(missing).map_or(to.len(), |len| len.min(to.len()));
                to.split_at_mut(len).0
            }
        };
        let (read, written, ended) =
            self.codec_step(input, to).map_err(|error| error.moved(self.position))?;
        self.position += read as u64;
        if missing == 0 && written > 0 {
            return Err(too_long());
        }
        self.written += written as u64;
        if ended {
            self.check_end()?;
            self.is_ended = true;
        }
        Ok((read, if missing == 0 { 0 } else { written }))
    }

    fn codec_step(&mut self, input: &[u8], to: &mut [u8]) -> Result<(usize, usize, bool), Error> {
        #[cfg(any(feature = "ruzstd", feature = "zstd"))]
        let expected = Expected { size: self.size, left: self.left() };
        match self.steps {
            #[cfg(feature = "miniz_oxide")]
            Steps::Zlib(ref mut steps) => steps.step(input, to),
            #[cfg(any(feature = "ruzstd", feature = "zstd"))]
            Steps::Zstd(ref mut steps) => steps
                .step(input, to, &expected)
                .map(|(read, written)| (read, written, steps.is_ended())),
        }
    }

    fn check_end(&self) -> Result<(), Error> {
        if let Some(end) = self.end.filter(|&end| end != self.position) {
            return Err(Error::new(ErrorKind::TrailingData(end), 0).moved(self.position));
        }
        match self.missing() {
            0 => Ok(()),
            _ => Err(Error::new(ErrorKind::TooShort(self.written), 0)),
        }
    }

    /// Appends to `to` what `input`, the rest of the stream or a part of that, gives, but not more than `len` bytes.
    ///
    /// # Errors
    ///
    /// Errors of [`step`](Self::step), and [`Memory`](ErrorKind::Memory).
    pub fn append(&mut self, mut input: &[u8], len: usize, to: &mut Vec<u8>) -> Result<(), Error> {
        const STEP: usize = 64 << 10;
        let (mut filled, mut left) = (to.len(), len);
        let result = loop {
            if left == 0 || self.is_ended || input.len() < self.needed() {
                break Ok(());
            }
            if filled == to.len() {
                let size = filled + STEP.min(left);
                if to.try_reserve(size - filled).is_err() {
                    break Err(Error::new(ErrorKind::Memory(size as u64), 0));
                }
                to.resize(size, 0);
            }
            match self.step(input, to.split_at_mut(filled).1) {
                Ok((read, written)) => {
                    input = input.split_at(read).1;
                    filled += written;
                    left -= written;
                }
                Err(error) => break Err(error),
            }
        };
        to.truncate(filled);
        result
    }
}
