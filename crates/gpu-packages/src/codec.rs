//! Compressed streams.

use std::fmt;
use std::io::{self, BufReader, Cursor, Read};
use std::ops::RangeInclusive;

#[cfg(any(feature = "ruzstd", feature = "zstd"))]
use codecs::zstd;

use crate::error::{Error, ErrorKind};
use crate::gzip;
use crate::reading::read_full;

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

/// Memory that a window of a compressed stream may take, in KiB: `xz -9` and `zstd --ultra -22` need less.
#[cfg(any(feature = "xz", feature = "ruzstd", feature = "zstd"))]
const MAX_WINDOW: u32 = 128 << 10;

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

    /// Returns the levels at which this build compresses: 1 to 9 of gzip and bzip2, 0 to 9 of xz, 1 to 22 of Zstandard by
    /// libzstd and only 1 without it, 0 of no compression.
    ///
    /// ```
    /// assert_eq!(gpu_packages::Codec::Xz.levels(), 0..=9);
    /// ```
    #[must_use]
    pub fn levels(self) -> RangeInclusive<u32> {
        match self {
            Codec::None => 0..=0,
            Codec::Gzip | Codec::Bzip2 => 1..=9,
            Codec::Xz => 0..=9,
            Codec::Zstd => 1..=if cfg!(feature = "zstd") { 22 } else { 1 },
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
                Box::new(lzma_rust2::XzReader::new_mem_limit(buffered, true, 2 * MAX_WINDOW))
            }
            #[cfg(any(feature = "ruzstd", feature = "zstd"))]
            Codec::Zstd => Box::new(zstd::Reader::new(buffered, u64::from(MAX_WINDOW) << 10)?),
            #[allow(unreachable_patterns, reason = "reached where a codec is left out")]
            codec => return Err(lacks(codec)),
        })
    }
}

/// A decoder whose errors are ours.
pub(crate) struct Decoded<R> {
    pub(crate) reader: R,
    pub(crate) codec: Codec,
}

impl<R: Read> Read for Decoded<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buf).map_err(|error| {
            if is_codec_error(&error) { codec_error(self.codec, error).into() } else { error }
        })
    }
}

/// Returns the decoder of a stream, by its first bytes.
pub(crate) fn decoded<'r>(
    mut reader: impl Read + 'r,
) -> Result<Decoded<Box<dyn Read + 'r>>, Error> {
    let mut head = [0; 16];
    let head = read_full(&mut reader, &mut head)?.to_vec();
    decoded_after(head, reader)
}

/// Returns the decoder of a stream whose first bytes were read.
pub(crate) fn decoded_after<'r>(
    head: Vec<u8>,
    reader: impl Read + 'r,
) -> Result<Decoded<Box<dyn Read + 'r>>, Error> {
    let codec = Codec::sniff(&head);
    Ok(Decoded { reader: codec.decoder(Cursor::new(head).chain(reader))?, codec })
}

/// Returns an error of a decoder or of the file as one of ours.
pub(crate) fn codec_error(codec: Codec, error: io::Error) -> Error {
    if is_codec_error(&error) {
        Error::new(ErrorKind::Codec, format!("malformed {codec} data: {error}"))
    } else {
        error.into()
    }
}

/// Returns whether an error is one of a decoder, and not of the file.
pub(crate) fn is_codec_error(error: &io::Error) -> bool {
    let is_ours = error.get_ref().is_some_and(|inner| inner.is::<Error>());
    !is_ours
        && matches!(
            error.kind(),
            io::ErrorKind::InvalidData
                | io::ErrorKind::InvalidInput
                | io::ErrorKind::UnexpectedEof
                | io::ErrorKind::OutOfMemory
                | io::ErrorKind::Unsupported
        )
        || !is_ours && error.kind() == io::ErrorKind::Other && error.raw_os_error().is_none()
}

/// Fails for a level that a codec lacks.
pub(crate) fn check_level(
    level: u32,
    levels: RangeInclusive<u32>,
    codec: &dyn fmt::Display,
) -> Result<(), Error> {
    if levels.contains(&level) {
        return Ok(());
    }
    let (first, last) = levels.into_inner();
    let text = format!("level of {codec}: expected {first} to {last}, found {level}");
    Err(Error::new(ErrorKind::Refused, text))
}

pub(crate) fn lacks(codec: Codec) -> Error {
    Error::new(ErrorKind::Unsupported, format!("this build lacks the codec {codec}"))
}
