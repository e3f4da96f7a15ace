//! Where the parts of an output go, then the bytes.

use std::io::{self, Read, Write};
use std::ops::Range;

use crate::description::Blob;
use crate::error::Error;
use crate::to_u64;

/// Where everything goes in an output whose size does not depend on what the images hold.
///
/// An emitter makes it from a [`Module`](crate::Module), that is from the sizes of the images
/// alone. The images are read once, when the output is written,
/// and never held in memory as a whole; or leave them to a faster copy: write the
/// [`pieces`](Self::pieces) yourself.
#[derive(Clone, Debug)]
pub struct Layout {
    bytes: Vec<u8>,
    parts: Vec<Part>,
    inputs: Vec<u64>,
    total_size: u64,
}

/// A [`Piece`] that owns nothing.
#[derive(Clone, Debug)]
enum Part {
    Bytes(Range<usize>),
    Image(Blob),
    Zeros(u64),
}

/// A part of the output, from [`Layout::pieces`].
///
/// Exhaustive on purpose: who writes an output piece by piece has to write every kind of piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Piece<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// Bytes of an image.
    Image {
        /// Which image, in the order they were given.
        image: usize,
        /// The first of its bytes.
        offset: u64,
        /// How many of them.
        size: u64,
    },
    /// So many zeros.
    Zeros(u64),
}

impl Layout {
    /// A layout of nothing yet, for images of these sizes.
    #[must_use]
    pub fn new(inputs: &[u64]) -> Self {
        Self { bytes: Vec::new(), parts: Vec::new(), inputs: inputs.to_vec(), total_size: 0 }
    }

    /// Adds bytes.
    ///
    /// # Errors
    ///
    /// [`Error::OutputTooLarge`].
    pub fn push_bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.grow(to_u64(bytes.len()))?;
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        match self.parts.last_mut() {
            Some(Part::Bytes(range)) => range.end = self.bytes.len(),
            _ => self.parts.push(Part::Bytes(start..self.bytes.len())),
        }
        Ok(())
    }

    /// Adds a part of an image. Images must come in ascending order, once each at most.
    ///
    /// # Errors
    ///
    /// [`Error::OutputTooLarge`].
    pub fn push_image(&mut self, blob: &Blob) -> Result<(), Error> {
        self.grow(blob.size)?;
        self.parts.push(Part::Image(blob.clone()));
        Ok(())
    }

    /// Adds zeros.
    ///
    /// # Errors
    ///
    /// [`Error::OutputTooLarge`].
    pub fn push_zeros(&mut self, count: u64) -> Result<(), Error> {
        self.grow(count)?;
        if count != 0 {
            self.parts.push(Part::Zeros(count));
        }
        Ok(())
    }

    fn grow(&mut self, size: u64) -> Result<(), Error> {
        self.total_size = self.total_size.checked_add(size).ok_or(Error::OutputTooLarge)?;
        Ok(())
    }

    /// Length of the whole output in bytes.
    #[must_use]
    pub fn total_size(&self) -> u64 {
        self.total_size
    }

    /// Everything to write, in order and without gaps.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        self.parts.iter().map(|part| match part {
            Part::Bytes(range) => Piece::Bytes(self.bytes.get(range.clone()).unwrap_or_default()),
            Part::Image(blob) => {
                Piece::Image { image: blob.input, offset: blob.offset, size: blob.size }
            }
            Part::Zeros(count) => Piece::Zeros(*count),
        })
    }

    /// Where the bytes of image `index` start in the output; `None` without such an image.
    #[must_use]
    pub fn image_offset(&self, index: usize) -> Option<u64> {
        let mut at = 0_u64;
        for piece in self.pieces() {
            // What fits in total fits in parts.
            at = at.saturating_add(match piece {
                Piece::Image { image, .. } if image == index => return Some(at),
                Piece::Bytes(bytes) => to_u64(bytes.len()),
                Piece::Image { size, .. } => size,
                Piece::Zeros(count) => count,
            });
        }
        None
    }

    /// The whole output in memory.
    ///
    /// # Errors
    ///
    /// [`Error::InputCount`] and [`Error::InputSize`] when the images are not those that were
    /// laid out, [`Error::OutOfMemory`].
    pub fn to_vec(&self, images: &[&[u8]]) -> Result<Vec<u8>, Error> {
        check_inputs(&self.inputs, images)?;
        let no_room = || Error::OutOfMemory { size: self.total_size };
        let total = usize::try_from(self.total_size).map_err(|_| no_room())?;
        let mut output = Vec::new();
        output.try_reserve_exact(total).map_err(|_| no_room())?;
        for piece in self.pieces() {
            match piece {
                Piece::Bytes(bytes) => output.extend_from_slice(bytes),
                Piece::Image { image, offset, size } => {
                    let bytes = images.get(image).copied().unwrap_or_default();
                    let start = usize::try_from(offset).map_err(|_| no_room())?;
                    let size = usize::try_from(size).map_err(|_| no_room())?;
                    let range = start..start.saturating_add(size);
                    output.extend_from_slice(bytes.get(range).unwrap_or_default());
                }
                Piece::Zeros(count) => {
                    let count = usize::try_from(count).map_err(|_| no_room())?;
                    output.resize(output.len().saturating_add(count), 0);
                }
            }
        }
        Ok(output)
    }

    /// Writes the whole output, and flushes it. `images` are read once each, in their order. From file to file
    /// the kernel copies, where the platform can ([`std::io::copy`]).
    ///
    /// # Errors
    ///
    /// What reading and writing returns, and [`std::io::ErrorKind::InvalidInput`] with
    /// [`Error::InputCount`] or [`Error::InputSize`] inside when the images are not those that
    /// were laid out. By then a part of the output is written.
    pub fn write_to<R: Read>(
        &self,
        mut writer: impl Write,
        images: impl IntoIterator<Item = R>,
    ) -> io::Result<()> {
        let mut inputs = Inputs::new(&self.inputs, images);
        for part in &self.parts {
            match part {
                Part::Bytes(range) => {
                    writer.write_all(self.bytes.get(range.clone()).unwrap_or_default())?;
                }
                Part::Image(blob) => inputs.copy(blob, &mut writer)?,
                Part::Zeros(count) => {
                    io::copy(&mut io::repeat(0).take(*count), &mut writer)?;
                }
            }
        }
        inputs.finish()?;
        writer.flush()
    }
}

/// Holds images in memory to their number and sizes.
pub(crate) fn check_inputs(sizes: &[u64], images: &[&[u8]]) -> Result<(), Error> {
    if images.len() != sizes.len() {
        return Err(Error::InputCount { expected: sizes.len(), found: images.len() });
    }
    for (image, (bytes, expected)) in images.iter().zip(sizes).enumerate() {
        let (expected, found) = (*expected, to_u64(bytes.len()));
        if expected != found {
            return Err(Error::InputSize { image, expected, found });
        }
    }
    Ok(())
}

/// The images as they are read, one after the other, each held to its size.
pub(crate) struct Inputs<'a, I> {
    sizes: &'a [u64],
    images: I,
    taken: usize,
}

impl<'a, R: Read, I: Iterator<Item = R>> Inputs<'a, I> {
    pub(crate) fn new(sizes: &'a [u64], images: impl IntoIterator<IntoIter = I>) -> Self {
        Self { sizes, images: images.into_iter(), taken: 0 }
    }

    /// Copies a part of the input it is of. Inputs in front of it are skipped.
    pub(crate) fn copy(&mut self, blob: &Blob, writer: &mut impl Write) -> io::Result<()> {
        while self.taken < blob.input {
            self.skip()?;
        }
        let (mut image, size) = self.take()?;
        let before = io::copy(&mut image.by_ref().take(blob.offset), &mut io::sink())?;
        let found = io::copy(&mut image.by_ref().take(blob.size), writer)?;
        self.rest(image, before.saturating_add(found), size)
    }

    /// Holds the inputs that are left to their sizes.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        while self.taken < self.sizes.len() {
            self.skip()?;
        }
        let expected = self.sizes.len();
        match self.images.next() {
            None => Ok(()),
            Some(_) => {
                let found = expected.saturating_add(1);
                Err(invalid(Error::InputCount { expected, found }))
            }
        }
    }

    fn skip(&mut self) -> io::Result<()> {
        let (image, size) = self.take()?;
        self.rest(image, 0, size)
    }

    fn take(&mut self) -> io::Result<(R, u64)> {
        match (self.images.next(), self.sizes.get(self.taken)) {
            (Some(image), Some(size)) => Ok((image, *size)),
            _ => {
                let (expected, found) = (self.sizes.len(), self.taken);
                Err(invalid(Error::InputCount { expected, found }))
            }
        }
    }

    /// Reads what is left of an input of which `read` bytes are read. One byte too many tells one
    /// that is too long.
    fn rest(&mut self, image: R, read: u64, expected: u64) -> io::Result<()> {
        let left = expected.saturating_sub(read).saturating_add(1);
        let found = read.saturating_add(io::copy(&mut image.take(left), &mut io::sink())?);
        if found != expected {
            return Err(invalid(Error::InputSize { image: self.taken, expected, found }));
        }
        self.taken = self.taken.saturating_add(1);
        Ok(())
    }
}

/// An error of ours where `std::io` wants one of its own.
pub(crate) fn invalid(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        let mut layout = Layout::new(&[3, 4, 2]);
        layout.push_bytes(b"<").unwrap();
        layout.push_image(&Blob { input: 0, offset: 0, size: 3, package: false }).unwrap();
        layout.push_zeros(2).unwrap();
        layout.push_image(&Blob { input: 2, offset: 1, size: 1, package: false }).unwrap();
        layout.push_bytes(b"-").unwrap();
        layout.push_zeros(0).unwrap();
        layout.push_bytes(b">").unwrap();
        layout
    }

    const IMAGES: [&[u8]; 3] = [b"abc", b"defg", b"hi"];

    #[test]
    fn places() {
        let layout = layout();
        assert_eq!(layout.total_size(), 9);
        assert_eq!(layout.image_offset(0), Some(1));
        assert_eq!(layout.image_offset(1), None);
        assert_eq!(layout.image_offset(2), Some(6));
        assert_eq!(layout.to_vec(&IMAGES).unwrap(), b"<abc\0\0i->");
        let mut written = Vec::new();
        layout.write_to(&mut written, IMAGES).unwrap();
        assert_eq!(written, b"<abc\0\0i->");
    }

    fn written(images: &[&[u8]]) -> Error {
        let error = layout().write_to(io::sink(), images.iter().copied()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        let error = error.into_inner().unwrap().downcast::<Error>().unwrap();
        assert_eq!(layout().to_vec(images).unwrap_err(), *error);
        *error
    }

    #[test]
    fn images_that_do_not_fit() {
        assert_eq!(written(&IMAGES[..2]), Error::InputCount { expected: 3, found: 2 });
        let four = [&IMAGES[..], &[b""]].concat();
        assert_eq!(written(&four), Error::InputCount { expected: 3, found: 4 });
        for (image, bytes, expected, found) in [
            (0, &b"ab"[..], 3, 2),
            (0, b"abcd", 3, 4),
            (1, b"def", 4, 3),
            (1, b"defgh", 4, 5),
            (2, b"", 2, 0),
            (2, b"h", 2, 1),
            (2, b"hij", 2, 3),
        ] {
            let mut images = IMAGES;
            images[image] = bytes;
            assert_eq!(written(&images), Error::InputSize { image, expected, found });
        }
    }

    #[test]
    fn too_large() {
        let mut layout = Layout::new(&[]);
        layout.push_zeros(u64::MAX).unwrap();
        assert_eq!(layout.push_bytes(b"x"), Err(Error::OutputTooLarge));
        assert_eq!(layout.to_vec(&[]), Err(Error::OutOfMemory { size: u64::MAX }));
    }
}
