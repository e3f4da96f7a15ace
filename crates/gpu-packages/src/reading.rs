//! Reading from streams: no more than was asked for, and no less.

use std::io::{self, Read, Seek};

use byte_parts::internal;

use crate::error::{Error, ErrorKind};

/// Reads until the buffer is full or the stream ends, and returns the bytes.
pub(crate) fn read_full<'b>(reader: &mut dyn Read, buf: &'b mut [u8]) -> io::Result<&'b mut [u8]> {
    let mut total = 0;
    while let Some(room) = buf.get_mut(total..).filter(|room| !room.is_empty()) {
        match reader.read(room) {
            Ok(0) => break,
            Ok(read) => total += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    buf.get_mut(..total).ok_or_else(too_much)
}

/// Reads a record, up to a limit.
pub(crate) fn read_held(contents: &mut dyn Read, limit: u64) -> Result<Vec<u8>, Error> {
    read_at_most(contents, limit)?.ok_or_else(|| {
        let text = format!("a record exceeds the limit of {limit} bytes");
        Error::new(ErrorKind::Limit, text)
    })
}

/// Reads to the end of a stream; `None` if it has more than `most` bytes.
pub(crate) fn read_at_most(mut reader: impl Read, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    reader.by_ref().take(most).read_to_end(&mut bytes)?;
    let is_whole = read_full(&mut reader, &mut [0])?.is_empty();
    Ok(is_whole.then_some(bytes))
}

/// Reads some of the `left` bytes that must follow; none of an empty buffer. `ended` makes the error of a stream that ends before,
/// from the number of bytes that are missing.
pub(crate) fn read_part(
    reader: &mut (impl Read + ?Sized),
    left: &mut u64,
    buf: &mut [u8],
    ended: impl FnOnce(u64) -> Error,
) -> io::Result<usize> {
    let buf = at_most(buf, *left);
    if buf.is_empty() {
        return Ok(0);
    }
    let read = reader.read(buf)?;
    *left -= given(buf, read)?.len() as u64;
    if read == 0 { Err(ended(*left).into()) } else { Ok(read) }
}

/// Returns the start of a buffer, of at most `most` bytes.
pub(crate) fn at_most(buf: &mut [u8], most: u64) -> &mut [u8] {
    match usize::try_from(most) {
        Ok(most) if most < buf.len() => buf.split_at_mut(most).0,
        _ => buf,
    }
}

/// Returns the bytes that a reader gave, or that a writer took, by the number that it returned.
pub(crate) fn given(buf: &[u8], count: usize) -> io::Result<&[u8]> {
    buf.get(..count).ok_or_else(too_much)
}

/// Returns the number of bytes between two totals of a codec.
pub(crate) fn between(before: u64, after: u64) -> io::Result<usize> {
    let count = after.checked_sub(before).and_then(|count| usize::try_from(count).ok());
    count.ok_or_else(too_much)
}

pub(crate) fn too_much() -> io::Error {
    io::Error::other(internal!("a stream of more bytes than its buffer has"))
}

/// A reader of a known number of bytes of the file itself, whose errors are told from those of decoders. A file that ends before
/// became shorter while it was read.
pub(crate) struct Raw<R> {
    pub(crate) reader: R,
    left: u64,
}

impl<R: Read> Raw<R> {
    pub(crate) fn new(reader: R, len: u64) -> Self {
        Raw { reader, left: len }
    }
}

impl<R: Seek> Raw<R> {
    /// Passes over bytes that need not be read; fewer if the file ends.
    pub(crate) fn skip(&mut self, len: u64) -> io::Result<u64> {
        let len = len.min(self.left);
        let by = i64::try_from(len).map_err(io::Error::other)?;
        self.reader.seek_relative(by).map_err(Error::of_file)?;
        self.left -= len;
        Ok(len)
    }
}

impl<R: Read> Read for Raw<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut reader = OfFile(&mut self.reader);
        read_part(&mut reader, &mut self.left, buf, |left| {
            let text = format!("the file ends {left} bytes too early");
            Error::of_file(io::Error::new(io::ErrorKind::UnexpectedEof, text))
        })
    }
}

/// A reader of the file itself, whose errors are ours.
struct OfFile<'r, R>(&'r mut R);

impl<R: Read> Read for OfFile<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => error,
            _ => Error::of_file(error).into(),
        })
    }
}
