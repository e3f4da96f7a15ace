//! Decoding on demand.

use alloc::vec::Vec;

use crate::decompress::check_limit;
use crate::{Error, Header, ReadOptions};

/// Decompresses the first `len` bytes of what the container that `data` starts with holds: from its first blocks, at
/// their cost.
///
/// `data` need not be the whole container. Fewer bytes are returned if it holds fewer, or if `data` ends before: then
/// more of the container gives more of them. With Zstandard a block of up to 128 KiB is read at a time.
///
/// The hash is of everything and is not checked, nor what follows the blocks that are read; [`decompress`](crate::decompress)
/// does that.
///
/// ```
/// use ccob::{ReadOptions, WriteOptions, compress, decompress_prefix};
///
/// # if ccob::Method::default().codec().is_none() { return Ok(()); }
/// let bundle = [&b"__CLANG_OFFLOAD_BUNDLE__\0\0\0\0\0\0\0\0"[..], &[7; 1 << 20]].concat();
/// let container = compress(&bundle, &WriteOptions::default())?;
/// let header = decompress_prefix(&container, 32, &ReadOptions::default())?;
/// assert_eq!(header, bundle[..32]);
/// # Ok::<(), ccob::Error>(())
/// ```
///
/// # Errors
///
/// Errors of [`Header::parse`], but not for a container that ends early after its header; of the kinds
/// [`Limit`](crate::ErrorKind::Limit) and [`Codec`](crate::ErrorKind::Codec); and for faults in what is read errors of
/// [`decompress`](crate::decompress).
pub fn decompress_prefix(data: &[u8], len: usize, options: &ReadOptions) -> Result<Vec<u8>, Error> {
    let header = Header::parse(data, u64::MAX)?;
    check_limit(&header, options)?;
    let mut stream = header.stream()?;
    // The end of the container, if it is there.
    let end = header.total_size().and_then(|end| usize::try_from(end).ok());
    let end = end.filter(|&end| end <= data.len());
    let input = data.get(header.header_len()..end.unwrap_or(data.len()));
    let input =
        input.ok_or_else(|| Error::truncated(header.header_len() as u64, data.len() as u64))?;
    let mut out = Vec::new();
    stream.append(input, len, &mut out).map_err(|error| header.fault(&error))?;
    if let Some(end) = end
        && out.len() < len
        && (out.len() as u64) < header.uncompressed_size()
    {
        let kind = codecs::ErrorKind::EndsEarly;
        return Err(Error::of_stream(header.method(), end as u64, kind));
    }
    Ok(out)
}

#[cfg(feature = "std")]
pub use reader::Decoder;

#[cfg(feature = "std")]
mod reader {
    use std::fmt;
    use std::io::{self, Read};

    use codecs::{Md5, Stream};

    use super::{Error, Header, ReadOptions, Vec, check_limit};
    use crate::decompress::check_hash;
    use crate::hash::head;

    /// Bytes that are asked for where any number of them would do.
    const CHUNK: usize = 8 << 10;

    /// [`Read`] for the contents of a compressed bundle, which are decompressed as they are read.
    ///
    /// The compressed bundle is read from any reader, from its magic to its end, and past that only if it is of version 1,
    /// which does not record its end. Parts are read as they are needed, of Zstandard block by block: a slow reader is
    /// better buffered.
    ///
    /// Nothing that is read is verified before the end: the read that hands out the last byte fails if the hash is not
    /// right, or the stream does not end as it has to.
    ///
    /// It holds in memory the window of a Zstandard frame, at most the uncompressed size in the header, and so bounded
    /// by the limit; and a block of compressed and uncompressed data.
    ///
    /// ```
    /// use std::io::Read;
    /// use ccob::{Decoder, ReadOptions, WriteOptions, compress};
    ///
    /// # if ccob::Method::default().codec().is_none() { return Ok(()); }
    /// let bundle = [&b"__CLANG_OFFLOAD_BUNDLE__\0\0\0\0\0\0\0\0"[..], &[7; 1 << 20]].concat();
    /// let container = compress(&bundle, &WriteOptions::default())?;
    ///
    /// let mut decoder = Decoder::new(&container[..], &ReadOptions::default())?;
    /// let mut header = [0; 32];
    /// decoder.read_exact(&mut header)?; // from the first block
    /// assert_eq!(header, bundle[..32]);
    /// let mut rest = Vec::new();
    /// decoder.read_to_end(&mut rest)?; // with the hash verified
    /// assert_eq!(rest, bundle[32..]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub struct Decoder<R> {
        reader: R,
        header: Header,
        stream: Stream,
        /// Bytes of the container, and how many of them were used.
        input: Vec<u8>,
        used: usize,
        /// The hash of what was read, if it is verified.
        hash: Option<Md5>,
        failed: Option<Error>,
    }

    impl<R> fmt::Debug for Decoder<R> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("Decoder")
                .field("header", &self.header)
                .field("consumed", &self.consumed())
                .finish_non_exhaustive()
        }
    }

    impl<R> Decoder<R> {
        /// Returns the header of the compressed bundle.
        #[must_use]
        pub fn header(&self) -> &Header {
            &self.header
        }

        /// Returns the number of used bytes of the compressed bundle, its header included: all of them, after
        /// everything was read.
        #[must_use]
        pub fn consumed(&self) -> u64 {
            self.header.header_len() as u64 + self.stream.position()
        }
    }

    impl<R: Read> Decoder<R> {
        /// Reads the header.
        ///
        /// # Errors
        ///
        /// An error of the reader; with an [`Error`] inside errors of [`Header::parse`], and of the kinds
        /// [`Limit`](crate::ErrorKind::Limit) and [`Codec`](crate::ErrorKind::Codec).
        pub fn new(mut reader: R, options: &ReadOptions) -> io::Result<Self> {
            let mut head = Vec::new();
            loop {
                let needed = Header::needed(&head)?;
                if needed <= head.len() {
                    break;
                }
                read_up_to(&mut reader, (needed - head.len()) as u64, &mut head)?;
                if head.len() < needed {
                    break;
                }
            }
            let header = Header::parse(&head, u64::MAX)?;
            check_limit(&header, options)?;
            let stream = header.stream()?;
            let hash = options.verify_hash().then(Md5::default);
            Ok(Self { reader, header, stream, input: Vec::new(), used: 0, hash, failed: None })
        }

        /// Takes a step, and reads what it needs before.
        fn step(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let have = self.input.len() - self.used;
            let needed = self.stream.needed();
            if have < needed {
                self.input.drain(..self.used);
                self.used = 0;
                // Nothing past the end was read.
                let left = self.stream.left().map(|left| left - have as u64);
                let wanted = if needed == 1 { CHUNK } else { needed - have } as u64;
                let wanted = left.map_or(wanted, |left| left.min(wanted));
                read_up_to(&mut self.reader, wanted, &mut self.input)?;
                if self.input.len() < needed {
                    return self.end_input().map(|()| 0);
                }
            }
            let (_, input) = self.input.split_at(self.used);
            let (read, written) =
                self.stream.step(input, to).map_err(|error| self.header.fault(&error))?;
            self.used += read;
            Ok(written)
        }

        /// Takes the end of the reader, or of the container.
        fn end_input(&mut self) -> io::Result<()> {
            let available = self.consumed() + self.input.len() as u64;
            match self.header.total_size() {
                Some(total_size) if available < total_size => {
                    Err(Error::truncated(total_size, available).into())
                }
                _ => {
                    let ended = self.stream.end_input(&self.input);
                    Ok(ended.map_err(|error| self.header.fault(&error))?)
                }
            }
        }

        /// Reads the end of the stream, after its last byte was written.
        fn finish(&mut self) -> io::Result<()> {
            while !self.stream.is_ended() {
                self.step(&mut [])?;
            }
            if let Some(hash) = &self.hash {
                check_hash(self.header.hash(), head(hash.clone()))?;
            }
            Ok(())
        }

        fn read_some(&mut self, to: &mut [u8]) -> io::Result<usize> {
            while !self.stream.is_ended() {
                let written = match self.stream.missing() {
                    0 => 0,
                    _ => self.step(to)?,
                };
                if let Some(hash) = &mut self.hash {
                    hash.update(to.split_at(written).0);
                }
                if self.stream.missing() == 0 {
                    self.finish()?;
                }
                if written > 0 {
                    return Ok(written);
                }
            }
            Ok(0)
        }
    }

    impl<R: Read> Read for Decoder<R> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            if let Some(error) = &self.failed {
                return Err(error.clone().into());
            }
            if to.is_empty() {
                return Ok(0);
            }
            self.read_some(to).inspect_err(|error| {
                self.failed = error.get_ref().and_then(|error| error.downcast_ref()).cloned();
            })
        }
    }

    /// Appends `len` bytes, fewer at the end.
    fn read_up_to(reader: &mut impl Read, len: u64, to: &mut Vec<u8>) -> io::Result<usize> {
        reader.take(len).read_to_end(to)
    }
}
