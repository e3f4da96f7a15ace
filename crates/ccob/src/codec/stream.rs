//! A stream that is decoded step by step.

#[cfg(any(feature = "ruzstd", feature = "zstd"))]
use alloc::boxed::Box;
use alloc::vec::Vec;

#[cfg(feature = "miniz_oxide")]
use super::zlib;
#[cfg(any(feature = "ruzstd", feature = "zstd"))]
use super::zstd_steps::{self, Expected, StepError};
use crate::error::{Error, Fault};
use crate::header::to_u64;
use crate::method::Codec;
use crate::{Header, Method};

/// The stream of a container, and how far it is decoded.
pub(crate) struct Stream {
    method: Method,
    /// From the start of the container, what was read and where it ends, if it records that.
    position: u64,
    end: Option<u64>,
    uncompressed_size: u64,
    /// Bytes that were handed out.
    written: u64,
    steps: Steps,
    is_ended: bool,
}

enum Steps {
    #[cfg(feature = "miniz_oxide")]
    Zlib(zlib::Steps),
    #[cfg(any(feature = "ruzstd", feature = "zstd"))]
    Zstd(Box<zstd_steps::Steps>),
}

#[cfg_attr(not(feature = "std"), allow(dead_code, reason = "some of it is for readers"))]
impl Stream {
    pub(crate) fn new(header: &Header) -> Result<Self, Error> {
        let method = header.method();
        Self::with_codec(header, method.library().ok_or_else(|| Error::no_codec(method))?)
    }

    pub(super) fn with_codec(header: &Header, codec: Codec) -> Result<Self, Error> {
        let steps = match codec {
            #[cfg(feature = "miniz_oxide")]
            Codec::MinizOxide => Steps::Zlib(zlib::Steps::new()),
            #[cfg(any(feature = "ruzstd", feature = "zstd"))]
            Codec::Ruzstd | Codec::Libzstd => Steps::Zstd(Box::new(zstd_steps::Steps::new(codec))),
            #[allow(unreachable_patterns, reason = "without a codec there is none")]
            _ => return Err(Error::no_codec(header.method())),
        };
        Ok(Self {
            method: header.method(),
            position: to_u64(header.header_len()),
            end: header.total_size(),
            uncompressed_size: header.uncompressed_size(),
            written: 0,
            steps,
            is_ended: false,
        })
    }

    /// Returns whether the stream ended as it has to, and everything was handed out.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Returns the number of bytes of the container that were read, its header included.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Returns the number of missing bytes of output.
    pub(crate) fn missing(&self) -> u64 {
        self.uncompressed_size.saturating_sub(self.written)
    }

    /// Returns the number of bytes of the container that were not read, if it records its end.
    pub(crate) fn left(&self) -> Option<u64> {
        self.end.map(|end| end.saturating_sub(self.position))
    }

    /// Returns the number of bytes of input that the next step needs; more are welcome, except past the end.
    pub(crate) fn needed(&self) -> usize {
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
    /// frames whose container does not record it, or an error.
    pub(crate) fn end_input(&mut self, last: &[u8]) -> Result<(), Error> {
        let ended: bool = match self.steps {
            #[cfg(feature = "miniz_oxide")]
            Steps::Zlib(_) => false,
            #[cfg(any(feature = "ruzstd", feature = "zstd"))]
            Steps::Zstd(ref mut steps) => self.end.is_none() && steps.end_input(last),
        };
        if !ended {
            return Err(self.ends_early(last.len()));
        }
        self.check_end()?;
        self.is_ended = true;
        Ok(())
    }

    /// Returns the error for input that ends after `more` bytes, fewer than are [needed](Self::needed).
    pub(crate) fn ends_early(&self, more: usize) -> Error {
        self.bad(more, Fault::EndsEarly)
    }

    fn bad(&self, position: usize, fault: Fault) -> Error {
        let offset = self.position.saturating_add(to_u64(position));
        Error::of_stream(self.method, offset, fault)
    }

    /// Takes one step: reads from the start of `input`, as much as is [needed](Self::needed) at least, writes to the
    /// start of `to`, or both. How many bytes were read and written.
    pub(crate) fn step(&mut self, input: &[u8], to: &mut [u8]) -> Result<(usize, usize), Error> {
        let mut scratch = [0];
        let missing = usize::try_from(self.missing()).unwrap_or(usize::MAX);
        let to = match missing {
            // The stream must end here.
            0 => &mut scratch[..],
            _ => to.get_mut(..missing.min(to.len())).unwrap_or_default(),
        };
        let (read, written, ended) = self.codec_step(input, to)?;
        self.position = self.position.saturating_add(to_u64(read));
        if missing == 0 && written > 0 {
            return Err(Error::output_too_long(self.uncompressed_size));
        }
        self.written = self.written.saturating_add(to_u64(written));
        if ended {
            self.check_end()?;
            self.is_ended = true;
        }
        Ok((read, if missing == 0 { 0 } else { written }))
    }

    fn codec_step(&mut self, input: &[u8], to: &mut [u8]) -> Result<(usize, usize, bool), Error> {
        #[cfg(any(feature = "ruzstd", feature = "zstd"))]
        let expected = Expected { uncompressed_size: self.uncompressed_size, left: self.left() };
        match self.steps {
            #[cfg(feature = "miniz_oxide")]
            Steps::Zlib(ref mut steps) => {
                steps.step(input, to).map_err(|(position, fault)| self.bad(position, fault))
            }
            #[cfg(any(feature = "ruzstd", feature = "zstd"))]
            Steps::Zstd(ref mut steps) => match steps.step(input, to, &expected) {
                Ok((read, written)) => Ok((read, written, steps.is_ended())),
                Err(StepError::Faulty((position, fault))) => Err(self.bad(position, fault)),
                Err(StepError::ContentSize(frame_size)) => {
                    Err(Error::frame_size(self.uncompressed_size, frame_size))
                }
            },
        }
    }

    fn check_end(&self) -> Result<(), Error> {
        if let Some(end) = self.end.filter(|&end| end != self.position) {
            return Err(self.bad(0, Fault::TrailingBytes { end }));
        }
        match self.missing() {
            0 => Ok(()),
            _ => Err(Error::output_too_short(self.uncompressed_size, self.written)),
        }
    }

    /// Decodes into `to` what `input`, the rest of the container or a part of that, gives, but not more than `len` bytes.
    pub(crate) fn append(
        &mut self,
        mut input: &[u8],
        len: usize,
        to: &mut Vec<u8>,
    ) -> Result<(), Error> {
        const STEP: usize = 64 << 10;
        let mut filled = to.len();
        let end = filled.saturating_add(len);
        let result = loop {
            if filled >= end || self.is_ended || input.len() < self.needed() {
                break Ok(());
            }
            if filled == to.len() {
                let more = STEP.min(end.saturating_sub(filled));
                if to.try_reserve(more).is_err() {
                    let size = to_u64(filled.saturating_add(more));
                    break Err(Error::out_of_memory(size));
                }
                to.resize(filled.saturating_add(more), 0);
            }
            match self.step(input, to.get_mut(filled..).unwrap_or_default()) {
                Ok((read, written)) => {
                    input = input.get(read..).unwrap_or_default();
                    filled = filled.saturating_add(written);
                }
                Err(error) => break Err(error),
            }
        };
        to.truncate(filled);
        result
    }
}
