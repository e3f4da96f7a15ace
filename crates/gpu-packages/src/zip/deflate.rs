//! New contents of members: compressed in blocks, by several threads, with the same bytes for any number of them.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read, Write};
use std::num::NonZeroUsize;
use std::thread;

use byte_parts::{Bounds, Part, Parts, in_order};
use flate2::{Compress, Compression, FlushCompress};

use super::ZipMember;
use crate::codec::check_level;
use crate::error::{Error, ErrorKind};
use crate::hash::{Algorithm, Hash, HashedByAll, Hasher};
use crate::reading::{between, given, read_at_most};

/// New contents of a member, as they will be stored.
#[derive(Clone)]
pub struct NewContents {
    pub(super) method: u16,
    /// Bits of the header's flags that say how far the encoder searched.
    pub(super) search: u16,
    pub(super) size: u64,
    pub(super) crc32: u32,
    pub(super) sha256: Hash,
    /// Other hashes, of contents that lie in a file of the caller.
    others: Option<Vec<Hash>>,
    pub(super) data: Parts,
}

impl fmt::Debug for NewContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewContents")
            .field("method", &self.method)
            .field("size", &self.size)
            .field("stored_size", &self.stored_size())
            .finish_non_exhaustive()
    }
}

/// Bytes that are compressed together.
pub(crate) const BLOCK: usize = 512 << 10;
/// Bytes before a block that its compression may refer to.
pub(crate) const WINDOW: usize = 32 << 10;

impl NewContents {
    /// Reads contents to their end and deflates them: `level` is 1 to 9, as zlib has it, 6 for published wheels. The
    /// bytes are the same for any number of threads. The compressed bytes are held in memory.
    ///
    /// ```
    /// use std::num::NonZeroUsize;
    /// use gpu_packages::NewContents;
    ///
    /// let contents = NewContents::deflate(&b"aaaaaaaaaaaaaaaaaaaaaaaa"[..], 6, NonZeroUsize::MIN)?;
    /// assert_eq!(contents.size(), 24);
    /// assert!(contents.stored_size() < 24);
    /// # Ok::<(), gpu_packages::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Errors of the reader.
    pub fn deflate(contents: impl Read, level: u32, threads: NonZeroUsize) -> Result<Self, Error> {
        Self::deflate_most(contents, level, threads, u64::MAX)
    }

    fn deflate_most(
        contents: impl Read,
        level: u32,
        threads: NonZeroUsize,
        most: u64,
    ) -> Result<Self, Error> {
        let mut data = Vec::new();
        let sums = deflate_to(contents, level, threads, |block| {
            data.extend_from_slice(block);
            if data.len() as u64 > most { Err(exceeds(most)) } else { Ok(()) }
        })?;
        let Sums { size, crc32, sha256 } = sums;
        let (search, data) = (search_of(level), parts_of(data));
        Ok(NewContents { method: 8, search, size, crc32, sha256, others: None, data })
    }

    /// Reads contents to their end and stores or deflates them, as a member is: at most `most` bytes, which are held in
    /// memory. Without a level it is the one that the member's flags name: 9, 2 or 1 where they say so, else 6, which
    /// published wheels have.
    ///
    /// # Errors
    ///
    /// Errors of the reader; [`Limit`](ErrorKind::Limit) if there are more bytes; [`Refused`](ErrorKind::Refused) for a
    /// level that is not one of 1 to 9, unless the member is stored.
    pub fn like(
        member: &ZipMember,
        contents: impl Read,
        level: Option<u32>,
        threads: NonZeroUsize,
        most: u64,
    ) -> Result<Self, Error> {
        match member.method() {
            0 => Self::store_most(contents, most),
            _ => {
                let level = level.unwrap_or(level_of(member.flags));
                check_level(level, 1..=9, &"deflate")?;
                Self::deflate_most(contents, level, threads, most)
            }
        }
    }

    /// Reads contents to their end and stores them as they are, in memory.
    ///
    /// # Errors
    ///
    /// Errors of the reader.
    pub fn store(contents: impl Read) -> Result<Self, Error> {
        Self::store_most(contents, u64::MAX)
    }

    fn store_most(contents: impl Read, most: u64) -> Result<Self, Error> {
        let data = read_at_most(contents, most)?.ok_or_else(|| exceeds(most))?;
        let mut crc = flate2::Crc::new();
        crc.update(&data);
        let sha256 = Hash::of(Algorithm::Sha256, &data);
        let size = data.len() as u64;
        Ok(NewContents {
            method: 0,
            search: 0,
            size,
            crc32: crc.sum(),
            sha256,
            others: None,
            data: parts_of(data),
        })
    }

    /// Reads contents as [`like`](Self::like) does, and writes what is stored to a file of the caller, where it starts at `at`:
    /// [`Rewrite::write_with`](crate::Rewrite::write_with) takes it from there. `algorithms` are those of its rows in `RECORD`: no
    /// hashes but these and SHA-256 are known later.
    ///
    /// # Errors
    ///
    /// Errors of the reader, and of the file.
    pub fn like_in(
        member: &ZipMember,
        contents: impl Read,
        threads: NonZeroUsize,
        algorithms: &[Algorithm],
        (file, at): (&mut dyn Write, u64),
    ) -> Result<Self, Error> {
        let others: Vec<_> =
            algorithms.iter().copied().filter(|it| *it != Algorithm::Sha256).collect();
        let mut contents = HashedByAll::new(contents, &others);
        let mut end = at;
        let mut out = |block: &[u8]| {
            file.write_all(block)?;
            end += block.len() as u64;
            Ok(())
        };
        let (method, search, sums) = match member.method() {
            0 => (0, 0, store_to(&mut contents, &mut out)?),
            _ => {
                let level = level_of(member.flags);
                (8, search_of(level), deflate_to(&mut contents, level, threads, &mut out)?)
            }
        };
        let Sums { size, crc32, sha256 } = sums;
        let others = Some(contents.finish());
        let data = Parts::from_input(1, at..end);
        Ok(NewContents { method, search, size, crc32, sha256, others, data })
    }

    /// Returns the size of the contents in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the size of the stored data in bytes.
    #[must_use]
    pub fn stored_size(&self) -> u64 {
        self.data.size()
    }

    fn bytes(&self) -> &[u8] {
        match self.data.iter().next() {
            Some(Part::Bytes(bytes)) => bytes,
            _ => &[],
        }
    }

    /// Returns a reader of the contents, which are held in memory.
    pub fn reader(&self) -> impl Read + '_ {
        match self.method {
            0 => Contents::Stored(self.bytes()),
            _ => Contents::Deflated(flate2::bufread::DeflateDecoder::new(self.bytes())),
        }
    }

    /// Returns the hash of the contents. SHA-256 is known; the others cost a decompression.
    ///
    /// # Errors
    ///
    /// None that is known; errors of the decompression.
    pub fn hash(&self, algorithm: Algorithm) -> Result<Hash, Error> {
        match (algorithm, &self.others) {
            (Algorithm::Sha256, _) => Ok(self.sha256.clone()),
            (algorithm, Some(others)) => {
                let known = others.iter().find(|hash| hash.algorithm() == algorithm).cloned();
                known.ok_or_else(|| Error::refused("the hash of new contents is not known"))
            }
            (algorithm, None) => Ok(crate::hash::hash_reader(algorithm, &mut self.reader())?.1),
        }
    }
}

/// Size and hashes of contents.
pub(super) struct Sums {
    pub(super) size: u64,
    pub(super) crc32: u32,
    pub(super) sha256: Hash,
}

/// Reads contents to their end and gives them to `out`.
pub(super) fn store_to(
    mut contents: impl Read,
    mut out: impl FnMut(&[u8]) -> Result<(), Error>,
) -> Result<Sums, Error> {
    let mut buffer = vec![0; 1 << 16];
    let (mut size, mut crc) = (0u64, flate2::Crc::new());
    let mut hasher = Hasher::new(Algorithm::Sha256);
    loop {
        let count = match contents.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        let block = given(&buffer, count)?;
        crc.update(block);
        hasher.update(block);
        out(block)?;
        size += count as u64;
    }
    Ok(Sums { size, crc32: crc.sum(), sha256: hasher.finish() })
}

/// Reads contents to their end and gives them, deflated, to `out`, in the same blocks for any number of threads.
pub(super) fn deflate_to(
    mut contents: impl Read,
    level: u32,
    threads: NonZeroUsize,
    mut out: impl FnMut(&[u8]) -> Result<(), Error>,
) -> Result<Sums, Error> {
    let mut crc = flate2::Crc::new();
    let mut hasher = Hasher::new(Algorithm::Sha256);
    let mut size = 0u64;
    let mut failure = None;
    let mut read_block = |window: &[u8]| -> io::Result<Vec<u8>> {
        let mut block = window.to_vec();
        let start = block.len();
        let read = contents.by_ref().take(BLOCK as u64).read_to_end(&mut block)?;
        let (_, new) = block.split_at(start);
        crc.update(new);
        hasher.update(new);
        size += read as u64;
        Ok(block)
    };
    // One block ahead: the last is known by the one after it, which is empty.
    let mut ahead = VecDeque::new();
    let mut is_last = false;
    let jobs = std::iter::from_fn(|| {
        while ahead.len() < 2 && !is_last && failure.is_none() {
            let before =
                ahead.back().and_then(|(block, _): &(Vec<u8>, usize)| block.rchunks(WINDOW).next());
            let window = before.unwrap_or(&[]);
            match read_block(window) {
                Ok(block) => {
                    let start = window.len();
                    is_last = block.len() - start < BLOCK;
                    // An empty block after a full one ends the stream, too.
                    ahead.push_back((block, start));
                }
                Err(error) => failure = Some(error),
            }
        }
        let (block, start) = ahead.pop_front().filter(|_| failure.is_none())?;
        let is_final = ahead.is_empty() && is_last;
        Some(((block, start, is_final), BLOCK as u64))
    });
    let level = Compression::new(level.clamp(1, 9));
    let compressed = thread::scope(|scope| -> Result<(), Error> {
        let blocks = in_order(scope, Bounds::new(threads), jobs, || {
            move |(block, start, is_final): (Vec<u8>, usize, bool)| {
                deflate_block(level, &block, start, is_final)
            }
        });
        for block in blocks {
            out(&block?)?;
        }
        Ok(())
    });
    compressed?;
    match failure {
        Some(error) => Err(error.into()),
        None => Ok(Sums { size, crc32: crc.sum(), sha256: hasher.finish() }),
    }
}

/// The bits of the flags that say how far the encoder searched (APPNOTE.TXT 6.3, 4.4.4).
pub(super) const SEARCH: u16 = 6;

/// Returns the bits for a level, as Info-ZIP sets them.
pub(super) fn search_of(level: u32) -> u16 {
    match level {
        ..=1 => 6,
        2 => 4,
        3..=7 => 0,
        8.. => 2,
    }
}

/// Returns the level for these flags.
fn level_of(flags: u16) -> u32 {
    match flags & SEARCH {
        2 => 9,
        4 => 2,
        6 => 1,
        _ => 6,
    }
}

/// The error for more bytes than may be held.
fn exceeds(most: u64) -> Error {
    let text = format!("the new contents of a member exceed the limit of {most} bytes");
    Error::new(ErrorKind::Limit, text)
}

fn parts_of(data: Vec<u8>) -> Parts {
    let mut parts = Parts::new();
    parts.push_vec(data);
    parts
}

enum Contents<'d> {
    Stored(&'d [u8]),
    Deflated(flate2::bufread::DeflateDecoder<&'d [u8]>),
}

impl Read for Contents<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Contents::Stored(data) => data.read(buf),
            Contents::Deflated(decoder) => decoder.read(buf),
        }
    }
}

/// Deflates the bytes from `start` on, which may refer to those before.
pub(crate) fn deflate_block(
    level: Compression,
    block: &[u8],
    start: usize,
    is_final: bool,
) -> Result<Vec<u8>, Error> {
    let failed =
        |error: flate2::CompressError| Error::new(ErrorKind::Codec, format!("deflating: {error}"));
    // A new one for each block: after `reset`, the output still depends on the blocks before, and so on the threads.
    let mut state = Compress::new(level, false);
    let (window, mut input) = block.split_at_checked(start).unwrap_or((&[], block));
    if !window.is_empty() {
        state.set_dictionary(window).map_err(failed)?;
    }
    let flush = if is_final { FlushCompress::Finish } else { FlushCompress::Sync };
    let mut out = Vec::with_capacity(input.len() / 2 + 64);
    loop {
        let (before_in, before_out) = (state.total_in(), out.len());
        let status = state.compress_vec(input, &mut out, flush).map_err(failed)?;
        let read = between(before_in, state.total_in())?;
        (_, input) = input.split_at(read);
        let is_done = if is_final {
            status == flate2::Status::StreamEnd
        } else {
            // Room is left after a flush that is complete.
            input.is_empty() && out.len() < out.capacity()
        };
        if is_done {
            return Ok(out);
        }
        if read == 0 && out.len() == before_out && out.len() < out.capacity() {
            return Err(Error::new(ErrorKind::Codec, "deflating: the encoder made no progress"));
        }
        out.reserve((input.len() / 2).max(64 << 10));
    }
}
