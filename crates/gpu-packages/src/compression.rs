//! Streams that are compressed again, as they were.

mod blocks;
#[cfg(feature = "xz")]
mod xz;

use std::fmt;
use std::io::{self, Write};
#[cfg(feature = "zstd")]
use std::io::{Cursor, Read};
use std::num::NonZeroUsize;

use blocks::Blocks;
#[cfg(any(feature = "ruzstd", feature = "zstd"))]
use codecs::zstd;

use crate::codec::{Codec, check_level, lacks};
use crate::error::Error;

/// Compression of a stream: its codec and level, and what else an encoder can choose.
///
/// ```
/// use std::io::{Read, Write};
/// use gpu_packages::{Codec, Compression};
///
/// let mut encoder = Compression::new(Codec::Gzip).with_level(9)?.encoder(Vec::new())?;
/// encoder.write_all(b"code")?;
/// let stream = encoder.finish()?;
/// let like_it = Compression::of(&stream);
/// assert_eq!((like_it.codec(), like_it.level()), (Codec::Gzip, 9));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Compression {
    codec: Codec,
    level: u32,
    threads: NonZeroUsize,
    /// Window and checksum.
    #[cfg(any(feature = "ruzstd", feature = "zstd"))]
    zstd: zstd::Parameters,
    #[cfg(feature = "xz")]
    xz: xz::Form,
}

/// Bytes of a stream that tell its compression.
pub(crate) const HEAD: u64 = 1 << 20;

impl Compression {
    /// Returns the compression of a codec at the level that its own program has by default: 6 of gzip and xz, 9 of
    /// bzip2, 3 of Zstandard, on one thread. Without libzstd there is only level 1 of Zstandard.
    #[must_use]
    pub fn new(codec: Codec) -> Self {
        Compression {
            codec,
            level: match codec {
                Codec::None => 0,
                Codec::Gzip | Codec::Xz => 6,
                Codec::Bzip2 => 9,
                Codec::Zstd => 3.min(*codec.levels().end()),
            },
            threads: NonZeroUsize::MIN,
            #[cfg(any(feature = "ruzstd", feature = "zstd"))]
            zstd: zstd::Parameters::default(),
            #[cfg(feature = "xz")]
            xz: xz::Form::default(),
        }
    }

    /// Returns the compression of a stream that starts like this; 1 MiB is enough. No format stores the level.
    ///
    /// - Zstandard: the lowest of the levels 1, 3, 5, 7, 9, 12, 15 and 17 that makes the first 16 whole blocks (at most
    ///   2 MiB) at most 1 % larger than they are, else 19. The window size says little: 8 MiB may be level 19 of libzstd, or a
    ///   fast level of another encoder. The new stream has the same window size, and a checksum if this one has.
    /// - xz: the highest level whose dictionary is at most as large. Check and filters are the same.
    /// - gzip: 9 or 1 where the header has the flag for best or fastest, else 6.
    /// - bzip2: the level in the header.
    #[must_use]
    pub fn of(head: &[u8]) -> Self {
        let like = Compression::form_of(head);
        #[cfg(feature = "zstd")]
        if like.codec == Codec::Zstd {
            return like.at_level_of(head);
        }
        like
    }

    /// Returns the same without the level of Zstandard, which costs attempts.
    pub(crate) fn form_of(head: &[u8]) -> Self {
        let new = Compression::new(Codec::sniff(head));
        match (new.codec, head) {
            (Codec::Gzip, [_, _, _, _, _, _, _, _, flag, ..]) => {
                Compression { level: gzip_level(*flag), ..new }
            }
            (Codec::Bzip2, [_, _, _, digit, ..]) => {
                Compression { level: u32::from(digit.wrapping_sub(b'0')), ..new }
            }
            #[cfg(feature = "xz")]
            (Codec::Xz, _) => {
                let (level, xz) = xz::Form::read(head);
                Compression { level, xz, ..new }
            }
            #[cfg(feature = "zstd")]
            (Codec::Zstd, _) => {
                let Some(start) = zstd::FrameStart::read(head, 0) else { return new };
                // Larger windows are not read.
                let window_log = start.window_log.filter(|log| (10..=27).contains(log));
                let has_checksum = start.has_checksum;
                let zstd = new.zstd.with_window_log(window_log).with_checksum(has_checksum);
                Compression { zstd, ..new }
            }
            _ => new,
        }
    }

    /// Returns the codec.
    #[must_use]
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// Returns the level.
    #[must_use]
    pub fn level(&self) -> u32 {
        self.level
    }

    /// Sets [one of the levels](Codec::levels) of the codec, and the window size that goes with it. A stream that is not
    /// compressed has none.
    ///
    /// # Errors
    ///
    /// [`Refused`](crate::ErrorKind::Refused) for another level.
    pub fn with_level(mut self, level: u32) -> Result<Self, Error> {
        if self.codec == Codec::None {
            return Ok(self);
        }
        check_level(level, self.codec.levels(), &self.codec)?;
        self.level = level;
        #[cfg(any(feature = "ruzstd", feature = "zstd"))]
        {
            self.zstd.window_log = None;
        }
        Ok(self)
    }

    /// Sets the number of threads that compress gzip, xz and Zstandard. The output does not depend on it. Fewer of them
    /// run where xz or Zstandard would take more than 1 GiB.
    #[must_use]
    pub fn with_threads(self, threads: NonZeroUsize) -> Self {
        Compression { threads, ..self }
    }

    /// Returns a writer that compresses.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](crate::ErrorKind::Unsupported) if this build lacks the codec; errors of its encoder.
    pub fn encoder<W: Write>(&self, writer: W) -> Result<Encoder<W>, Error> {
        Ok(Encoder(match self.codec {
            Codec::None => State::None(writer),
            Codec::Gzip => {
                let encoder = blocks::Encoder::Gzip(self.level);
                State::Blocks(Box::new(Blocks::new(writer, encoder, self.threads)))
            }
            #[cfg(feature = "bzip2")]
            Codec::Bzip2 => {
                let level = bzip2::Compression::new(self.level);
                State::Bzip2(bzip2::write::BzEncoder::new(writer, level))
            }
            #[cfg(feature = "xz")]
            Codec::Xz => {
                let encoder = blocks::Encoder::Xz(xz::Encoder::new(self.level, &self.xz));
                State::Blocks(Box::new(Blocks::new(writer, encoder, self.threads)))
            }
            #[cfg(any(feature = "ruzstd", feature = "zstd"))]
            Codec::Zstd => {
                let zstd = self.zstd.clone().with_level(self.level);
                let zstd = zstd.with_threads(self.threads.get());
                State::Zstd(zstd::Writer::new(writer, &zstd)?)
            }
            #[allow(unreachable_patterns, reason = "reached where a codec is left out")]
            codec => return Err(lacks(codec)),
        }))
    }
}

#[cfg(feature = "zstd")]
impl Compression {
    /// The levels that are tried, in order, and the one that is left.
    const TRIED: [u32; 8] = [1, 3, 5, 7, 9, 12, 15, 17];
    const HIGHEST: u32 = 19;

    /// Returns the same at the level of the frame that a stream starts with.
    fn at_level_of(self, head: &[u8]) -> Self {
        let Some(start) = zstd::FrameStart::read(head, 16) else { return self };
        let Some(had) = head.get(start.blocks) else { return self };
        let mut content = Vec::new();
        // The end is missing, which is an error after all that is there.
        if let Ok(mut decoder) = Codec::Zstd.decoder(Cursor::new(had)) {
            _ = decoder.read_to_end(&mut content);
        }
        if content.is_empty() {
            return self;
        }
        let most = had.len() + had.len() / 100;
        let fits = |level: &u32| {
            let new = Compression { level: *level, ..self.clone() }.compress(&content);
            // An encoder that fails here fails at the level that is found, and says so.
            new.map_or(true, |new| new.len() <= most)
        };
        let level = Self::TRIED.into_iter().find(fits).unwrap_or(Self::HIGHEST);
        Compression { level, ..self }
    }

    fn compress(&self, content: &[u8]) -> Result<Vec<u8>, Error> {
        let mut encoder = self.encoder(Vec::new())?;
        encoder.write_all(content)?;
        Ok(encoder.finish()?)
    }
}

/// Returns the level of the flag in the header of a gzip stream (RFC 1952, XFL).
fn gzip_level(flag: u8) -> u32 {
    match flag {
        2 => 9,
        4 => 1,
        _ => 6,
    }
}

/// A writer that compresses, made by [`Compression::encoder`]. Call [`finish`](Self::finish) at the end.
pub struct Encoder<W: Write>(State<W>);

enum State<W: Write> {
    None(W),
    Blocks(Box<Blocks<W>>),
    #[cfg(feature = "bzip2")]
    Bzip2(bzip2::write::BzEncoder<W>),
    #[cfg(any(feature = "ruzstd", feature = "zstd"))]
    Zstd(zstd::Writer<W>),
}

impl<W: Write> fmt::Debug for Encoder<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").finish_non_exhaustive()
    }
}

impl<W: Write> Encoder<W> {
    /// Writes the end of the compressed stream, and returns the writer.
    ///
    /// # Errors
    ///
    /// Errors of the writer.
    pub fn finish(self) -> io::Result<W> {
        match self.0 {
            State::None(writer) => Ok(writer),
            State::Blocks(encoder) => encoder.finish(),
            #[cfg(feature = "bzip2")]
            State::Bzip2(encoder) => encoder.finish(),
            #[cfg(any(feature = "ruzstd", feature = "zstd"))]
            State::Zstd(encoder) => encoder.finish(),
        }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match &mut self.0 {
            State::None(writer) => writer,
            State::Blocks(encoder) => &mut **encoder,
            #[cfg(feature = "bzip2")]
            State::Bzip2(encoder) => encoder,
            #[cfg(any(feature = "ruzstd", feature = "zstd"))]
            State::Zstd(encoder) => encoder,
        }
    }
}

impl<W: Write> Write for Encoder<W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.writer().write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }
}
