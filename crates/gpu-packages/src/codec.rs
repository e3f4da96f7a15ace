//! Compressed streams.

use std::fmt;
use std::io::{self, BufReader, Read, Write};

use crate::error::{Error, ErrorKind};
use crate::gzip;

/// A compression of a whole stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Codec {
    /// Not compressed.
    None,
    /// gzip, of one or more members.
    Gzip,
    /// xz, of one or more streams.
    Xz,
    /// Zstandard, of one or more frames.
    Zstd,
    /// bzip2, of one or more streams.
    Bzip2,
}

/// Memory that a window of a compressed stream may take, in bytes: `xz -9` and `zstd --ultra -22` need less.
#[cfg(any(feature = "xz", feature = "ruzstd", feature = "zstd"))]
const MAX_WINDOW: u64 = 128 << 20;

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Codec::None => "no compression",
            Codec::Gzip => "gzip",
            Codec::Xz => "xz",
            Codec::Zstd => "zstd",
            Codec::Bzip2 => "bzip2",
        })
    }
}

impl Codec {
    /// Returns the codec of a stream that starts with these bytes.
    #[must_use]
    pub fn sniff(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, 8, ..] => Codec::Gzip,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Codec::Xz,
            // A frame, or one to skip.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Codec::Zstd,
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..]
            | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, 0x45, 0x38, 0x50, 0x90, ..] => {
                Codec::Bzip2
            }
            _ => Codec::None,
        }
    }

    /// Returns a reader of the decompressed bytes.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](ErrorKind::Unsupported) if this build lacks the codec.
    pub fn decoder<'r>(self, reader: impl Read + 'r) -> Result<Box<dyn Read + 'r>, Error> {
        let buffered = BufReader::with_capacity(64 << 10, reader);
        Ok(match self {
            Codec::None => Box::new(buffered),
            Codec::Gzip => Box::new(gzip::Decoder::new(buffered)),
            #[cfg(feature = "bzip2")]
            Codec::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(buffered)),
            #[cfg(feature = "xz")]
            Codec::Xz => {
                let kib = u32::try_from((MAX_WINDOW * 2) >> 10).unwrap_or(u32::MAX);
                Box::new(lzma_rust2::XzReader::new_mem_limit(buffered, true, kib))
            }
            #[cfg(feature = "zstd")]
            Codec::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(buffered)?;
                decoder.window_log_max(MAX_WINDOW.ilog2())?;
                Box::new(decoder)
            }
            #[cfg(all(feature = "ruzstd", not(feature = "zstd")))]
            Codec::Zstd => Box::new(pure_zstd::Decoder::new(buffered)),
            #[allow(unreachable_patterns, reason = "reached where a codec is left out")]
            codec => return Err(lacks(codec)),
        })
    }

    /// Returns a writer that compresses. The output depends on nothing but the input and the level.
    ///
    /// `level` is one of the codec's own; `None` is that of the packages of its kind: 9 for gzip and bzip2, 6 for xz,
    /// 19 for Zstandard. Without libzstd there is only one level of Zstandard.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](ErrorKind::Unsupported) if this build lacks the codec; those of its encoder.
    pub fn encoder<W: Write>(self, writer: W, level: Option<u32>) -> Result<Encoder<W>, Error> {
        Ok(Encoder(match self {
            Codec::None => State::None(writer),
            Codec::Gzip => {
                let level = flate2::Compression::new(level.unwrap_or(9).min(9));
                let header = flate2::GzBuilder::new().operating_system(255);
                State::Gzip(Box::new(header.write(writer, level)))
            }
            #[cfg(feature = "bzip2")]
            Codec::Bzip2 => {
                let level = bzip2::Compression::new(level.unwrap_or(9).clamp(1, 9));
                State::Bzip2(bzip2::write::BzEncoder::new(writer, level))
            }
            #[cfg(feature = "xz")]
            Codec::Xz => {
                let options = lzma_rust2::XzOptions::with_preset(level.unwrap_or(6).min(9));
                State::Xz(Box::new(lzma_rust2::XzWriter::new(writer, options)?))
            }
            #[cfg(feature = "zstd")]
            Codec::Zstd => {
                let level = i32::try_from(level.unwrap_or(19)).unwrap_or(22);
                State::Zstd(zstd::stream::write::Encoder::new(writer, level)?)
            }
            #[cfg(all(feature = "ruzstd", not(feature = "zstd")))]
            Codec::Zstd => State::PureZstd(pure_zstd::Encoder::new(writer)),
            #[allow(unreachable_patterns, reason = "reached where a codec is left out")]
            codec => return Err(lacks(codec)),
        }))
    }
}

fn lacks(codec: Codec) -> Error {
    Error::new(ErrorKind::Unsupported, format!("this build lacks the codec {codec}"))
}

/// A writer that compresses, made by [`Codec::encoder`]. Call [`finish`](Self::finish) at the end.
pub struct Encoder<W: Write>(State<W>);

enum State<W: Write> {
    None(W),
    Gzip(Box<flate2::write::GzEncoder<W>>),
    #[cfg(feature = "bzip2")]
    Bzip2(bzip2::write::BzEncoder<W>),
    #[cfg(feature = "xz")]
    Xz(Box<lzma_rust2::XzWriter<W>>),
    #[cfg(feature = "zstd")]
    Zstd(zstd::stream::write::Encoder<'static, W>),
    #[cfg(all(feature = "ruzstd", not(feature = "zstd")))]
    PureZstd(pure_zstd::Encoder<W>),
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
    /// Those of the writer.
    pub fn finish(self) -> io::Result<W> {
        match self.0 {
            State::None(writer) => Ok(writer),
            State::Gzip(encoder) => encoder.finish(),
            #[cfg(feature = "bzip2")]
            State::Bzip2(encoder) => encoder.finish(),
            #[cfg(feature = "xz")]
            State::Xz(encoder) => encoder.finish(),
            #[cfg(feature = "zstd")]
            State::Zstd(encoder) => encoder.finish(),
            #[cfg(all(feature = "ruzstd", not(feature = "zstd")))]
            State::PureZstd(encoder) => encoder.finish(),
        }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match &mut self.0 {
            State::None(writer) => writer,
            State::Gzip(encoder) => encoder,
            #[cfg(feature = "bzip2")]
            State::Bzip2(encoder) => encoder,
            #[cfg(feature = "xz")]
            State::Xz(encoder) => encoder,
            #[cfg(feature = "zstd")]
            State::Zstd(encoder) => encoder,
            #[cfg(all(feature = "ruzstd", not(feature = "zstd")))]
            State::PureZstd(encoder) => encoder,
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

#[cfg(all(feature = "ruzstd", not(feature = "zstd")))]
mod pure_zstd {
    use std::hash::Hasher;
    use std::io::{self, BufRead, Read, Write};
    use std::mem;

    use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
    use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    use twox_hash::XxHash64;

    use super::MAX_WINDOW;

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
        pub(super) fn new(source: R) -> Self {
            let mut frame = FrameDecoder::new();
            frame.set_max_window_size(MAX_WINDOW);
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
                if read > 0 {
                    self.hash.write(buf.get(..read).unwrap_or_default());
                    return Ok(read);
                }
                let [a, b, c, d, ..] = self.hash.finish().to_le_bytes();
                let found = u32::from_le_bytes([a, b, c, d]);
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
            self.writer.write_all(&compress_to_vec(held.as_slice(), CompressionLevel::Fastest))
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
            let taken = buf.get(..room.min(buf.len())).unwrap_or_default();
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
