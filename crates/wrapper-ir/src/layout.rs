//! The layout of an output, as the emitters write it.

use byte_parts::Layout;

use crate::description::Blob;
use crate::error::Error;
use crate::to_u64;

/// A layout that refuses to grow beyond 2⁶⁴ bytes. Its inputs are the images, in the order they were given.
pub(crate) struct Output(Layout);

impl Output {
    /// Creates an empty output, for images of these sizes in bytes.
    pub(crate) fn new(sizes: &[u64]) -> Self {
        Self(Layout::new(sizes.iter().copied()))
    }

    /// Adds bytes.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.check_room(to_u64(bytes.len()))?;
        self.0.push_bytes(bytes);
        Ok(())
    }

    /// Adds a part of an image. Images must come in ascending order, once each at most.
    pub(crate) fn push_image(&mut self, blob: &Blob) -> Result<(), Error> {
        self.check_room(blob.size)?;
        self.0.push_input(blob.input, blob.range());
        Ok(())
    }

    /// Adds zeros.
    pub(crate) fn push_zeros(&mut self, count: u64) -> Result<(), Error> {
        self.check_room(count)?;
        self.0.push_zeros(count);
        Ok(())
    }

    /// Returns the size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.0.size()
    }

    /// Checks that the output can grow by `size` bytes.
    fn check_room(&self, size: u64) -> Result<(), Error> {
        self.size().checked_add(size).map(drop).ok_or_else(Error::output_too_large)
    }

    /// Returns the layout.
    pub(crate) fn finish(self) -> Layout {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_too_large_is_an_error() {
        let mut output = Output::new(&[]);
        output.push_zeros(u64::MAX).unwrap();
        let error = output.push_bytes(b"x").unwrap_err();
        assert_eq!(error, (crate::ErrorKind::Limit, "output has more than 2^64 bytes"));
    }
}
