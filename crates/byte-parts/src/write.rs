use std::io::{self, Read, Seek, SeekFrom, Write};

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use crate::error::{Error, WriteError};
use crate::internal;
use crate::layout::Layout;
use crate::len_of;
use crate::parts::{Part, Parts};

/// The inputs of an output, by name.
///
/// Implemented for slices of files (anything that reads and seeks), named by index. Implement it for inputs of several
/// kinds, with [`copy_range`] for files, so that the kernel copies.
pub trait Inputs<I> {
    /// Error of writing the output.
    type Error: From<WriteError>;

    /// Writes a range of bytes of an input.
    ///
    /// # Errors
    ///
    /// Errors of reading and writing; an input that ends before the range is one.
    fn copy<W: Write + ?Sized>(
        &mut self,
        input: &I,
        range: Range<u64>,
        out: &mut W,
    ) -> Result<(), Self::Error>;
}

impl<R: Read + Seek> Inputs<usize> for [R] {
    type Error = WriteError;

    fn copy<W: Write + ?Sized>(
        &mut self,
        &input: &usize,
        range: Range<u64>,
        out: &mut W,
    ) -> Result<(), WriteError> {
        let (expected, found) = (input as u64 + 1, self.len() as u64);
        let file = self.get_mut(input).ok_or(Error::InputCount { expected, found })?;
        let found = copy_range(file, &range, out)? + range.start;
        if found == range.end {
            Ok(())
        } else {
            Err(Error::InputSize { input, expected: range.end, found }.into())
        }
    }
}

/// Copies a range of bytes of a file, and returns how many there were. From file to file the kernel copies, where the
/// platform can ([`io::copy`]).
///
/// # Errors
///
/// [`WriteError::Read`] and [`WriteError::Write`].
pub fn copy_range<R: Read + Seek + ?Sized, W: Write + ?Sized>(
    from: &mut R,
    range: &Range<u64>,
    out: &mut W,
) -> Result<u64, WriteError> {
    from.seek(SeekFrom::Start(range.start)).map_err(WriteError::Read)?;
    let size = len_of(range);
    // An error of copying does not tell which of the two failed: reading on does.
    io::copy(&mut from.take(size), out).map_err(|error| match from.read(&mut [0]) {
        Ok(_) => WriteError::Write(error),
        Err(error) => WriteError::Read(error),
    })
}

impl<I> Parts<I> {
    /// Writes the output. The writer is not flushed.
    ///
    /// # Errors
    ///
    /// Errors of the inputs, and [`WriteError::Write`].
    pub fn write_to<N, W>(&self, inputs: &mut N, out: &mut W) -> Result<(), N::Error>
    where
        N: Inputs<I> + ?Sized,
        W: Write + ?Sized,
    {
        let mut held = Vec::new();
        for part in self.iter() {
            if part.size() > SMALL || held.len() as u64 > MOST_HELD {
                out.write_all(&held).map_err(WriteError::Write)?;
                held.clear();
            }
            match part {
                Part::Zeros(count) if count > SMALL => zeros(count, out)?,
                Part::Zeros(count) => zeros(count, &mut held)?,
                Part::Bytes(bytes) if part.size() > SMALL => {
                    out.write_all(bytes).map_err(WriteError::Write)?;
                }
                Part::Bytes(bytes) => held.extend_from_slice(bytes),
                Part::Input(input, ref range) if part.size() > SMALL => {
                    inputs.copy(input, range.clone(), out)?;
                }
                Part::Input(input, ref range) => inputs.copy(input, range.clone(), &mut held)?,
            }
        }
        Ok(out.write_all(&held).map_err(WriteError::Write)?)
    }
}

/// Parts up to this size are written together: a system call takes longer than to copy so much.
const SMALL: u64 = 4096;
/// Bytes of small parts that are held before they are written.
const MOST_HELD: u64 = 64 << 10;

fn zeros<W: Write + ?Sized>(count: u64, out: &mut W) -> Result<(), WriteError> {
    io::copy(&mut io::repeat(0).take(count), out).map_err(WriteError::Write)?;
    Ok(())
}

impl Layout {
    /// Writes the output, and flushes it. Inputs are read once each, in order, to their ends, and never held in memory
    /// as a whole. From file to file the kernel copies, where the platform can ([`io::copy`]).
    ///
    /// # Errors
    ///
    /// Errors of reading and writing, and [`io::ErrorKind::InvalidInput`] with an [`Error`] inside if the inputs are not
    /// the planned ones. A part of the output is written then.
    pub fn write_to<R: Read>(
        &self,
        mut out: impl Write,
        inputs: impl IntoIterator<Item = R>,
    ) -> Result<(), WriteError> {
        let mut streams = Streams::new(self.sizes(), inputs);
        self.parts().write_to(&mut streams, &mut out)?;
        streams.finish()?;
        out.flush().map_err(WriteError::Write)
    }
}

/// Inputs that are streams: each is read once, in order, and must have its planned size.
///
/// Ranges must come in ascending order of inputs, and in ascending order within one.
pub struct Streams<'p, N: Iterator> {
    sizes: &'p [u64],
    next: N,
    /// Number of inputs that were opened.
    opened: usize,
    /// The last of them, and the bytes that were read of it.
    now: Option<(N::Item, u64)>,
}

impl<N: Iterator> fmt::Debug for Streams<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams").field("opened", &self.opened).finish_non_exhaustive()
    }
}

impl<'p, R: Read, N: Iterator<Item = R>> Streams<'p, N> {
    /// Inputs of these sizes in bytes.
    pub fn new(sizes: &'p [u64], inputs: impl IntoIterator<IntoIter = N, Item = R>) -> Self {
        Self { sizes, next: inputs.into_iter(), opened: 0, now: None }
    }

    fn open_next(&mut self) -> Result<(), WriteError> {
        self.close()?;
        let (expected, found) = (self.sizes.len() as u64, self.opened as u64);
        let input = self.next.next().ok_or(Error::InputCount { expected, found })?;
        self.now = Some((input, 0));
        self.opened += 1;
        Ok(())
    }

    /// Reads the rest of the open input, which has the planned size.
    fn close(&mut self) -> Result<(), WriteError> {
        let Some((mut stream, read)) = self.now.take() else { return Ok(()) };
        let input = self.opened - 1;
        let expected = self.sizes.get(input).copied().unwrap_or(0);
        // More than was planned may have been read.
        let Some(left) = expected.checked_sub(read) else {
            return Err(Error::InputSize { input, expected, found: read }.into());
        };
        // One more byte tells a stream that is too long; none is longer than any number.
        let rest = io::copy(&mut stream.by_ref().take(left.saturating_add(1)), &mut io::sink());
        let found = read + rest.map_err(WriteError::Read)?;
        if found == expected {
            Ok(())
        } else {
            Err(Error::InputSize { input, expected, found }.into())
        }
    }

    /// Reads all inputs to their ends, and checks that there are as many as were planned.
    ///
    /// # Errors
    ///
    /// [`WriteError::Read`], and [`WriteError::Input`] if they are not the planned ones.
    pub fn finish(&mut self) -> Result<(), WriteError> {
        while self.opened < self.sizes.len() {
            self.open_next()?;
        }
        self.close()?;
        let expected = self.sizes.len() as u64;
        match self.next.next() {
            None => Ok(()),
            Some(_) => Err(Error::InputCount { expected, found: expected + 1 }.into()),
        }
    }
}

impl<R: Read, N: Iterator<Item = R>> Inputs<usize> for Streams<'_, N> {
    type Error = WriteError;

    fn copy<W: Write + ?Sized>(
        &mut self,
        &input: &usize,
        range: Range<u64>,
        out: &mut W,
    ) -> Result<(), WriteError> {
        while self.opened <= input {
            self.open_next()?;
        }
        let Some((stream, read)) = &mut self.now else {
            return Err(WriteError::Read(io::Error::other(internal!("an input after the last"))));
        };
        let skip = range.start.checked_sub(*read).ok_or_else(|| {
            WriteError::Read(io::Error::other(internal!("a range before the one before")))
        })?;
        let skipped = io::copy(&mut stream.by_ref().take(skip), &mut io::sink());
        *read += skipped.map_err(WriteError::Read)?;
        let size = len_of(&range);
        let copied = io::copy(&mut stream.by_ref().take(size), out);
        let copied = copied.map_err(|error| match stream.read(&mut [0]) {
            Ok(_) => WriteError::Write(error),
            Err(error) => WriteError::Read(error),
        })?;
        *read += copied;
        if copied == size {
            Ok(())
        } else {
            let expected = self.sizes.get(input).copied().unwrap_or(range.end);
            Err(Error::InputSize { input, expected, found: *read }.into())
        }
    }
}
