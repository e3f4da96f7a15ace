//! A stream to be decompressed.

use alloc::vec::Vec;
use core::fmt;

use crate::error::{Error, ErrorKind};

/// A function that sees the data while it grows.
pub(crate) type Grown<'g> = &'g mut dyn FnMut(&[u8]);

/// A compressed stream, and the size that it expands to.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The stream; trailing bytes if it is not exact.
    pub(crate) stream: &'a [u8],
    /// `true` if the stream has to end with `stream`.
    pub(crate) is_exact: bool,
    /// Expected length of the result.
    pub(crate) size: u64,
}

impl fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Input { stream, is_exact, size } = self;
        f.debug_struct("Input")
            .field("stream", &stream.len())
            .field("is_exact", is_exact)
            .field("size", size)
            .finish()
    }
}

impl<'a> Input<'a> {
    /// Returns the input of a stream that ends with these bytes, and expands to exactly `size` bytes. This limits what
    /// is written: check it before.
    #[must_use]
    pub fn new(stream: &'a [u8], size: u64) -> Self {
        Input { stream, is_exact: true, size }
    }

    /// Allows trailing bytes after the stream.
    #[must_use]
    pub fn with_trailing(self) -> Self {
        Input { is_exact: false, ..self }
    }
}

impl Input<'_> {
    /// Checks where the stream ends.
    pub(crate) fn check_end(&self, position: usize) -> Result<(), Error> {
        if self.is_exact && position != self.stream.len() {
            return Err(Error::new(ErrorKind::TrailingData(self.stream.len() as u64), position));
        }
        Ok(())
    }

    /// Checks that exactly the expected size came out.
    pub(crate) fn check_output(&self, len: usize) -> Result<(), Error> {
        let found = len as u64;
        match found.cmp(&self.size) {
            core::cmp::Ordering::Less => Err(Error::new(ErrorKind::TooShort(found), 0)),
            core::cmp::Ordering::Equal => Ok(()),
            core::cmp::Ordering::Greater => Err(too_long()),
        }
    }

    /// Returns the size of the result as this machine counts memory.
    pub(crate) fn output_len(&self) -> Result<usize, Error> {
        usize::try_from(self.size).map_err(|_| Error::new(ErrorKind::Memory(self.size), 0))
    }
}

#[cold]
pub(crate) fn too_long() -> Error {
    Error::new(ErrorKind::TooLong, 0)
}

/// Makes room for `total` bytes in total.
pub(crate) fn reserve_total(out: &mut Vec<u8>, total: usize) -> Result<(), Error> {
    // Nothing, if it is longer.
    out.try_reserve_exact(total.saturating_sub(out.len()))
        .map_err(|_| Error::new(ErrorKind::Memory(total as u64), 0))
}
