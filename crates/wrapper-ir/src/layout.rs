//! The layout of an output of known size.

use std::io::{self, Read, Write};

use byte_parts::{Parts, Plan, WriteError};

use crate::description::Blob;
use crate::error::{Error, Problem};
use crate::to_u64;

/// The layout of an output whose size does not depend on the bytes of the images.
///
/// An emitter makes it from a [`Module`](crate::Module), that is from the sizes of the images
/// alone. The images are read once, when the output is written,
/// and never held in memory as a whole; or leave them to a faster copy: write the
/// [`parts`](Self::parts) yourself.
///
/// ```
/// use wrapper_ir::{Abi, Image, Kind, Target, Wrapper};
///
/// let target = Target::new("x86_64-unknown-linux-gnu")?;
/// let module = Wrapper::new(Kind::Hip, Abi::Current, target)
///     .image(Image::from_bytes(b"image"))
///     .module()?;
/// let layout = module.object()?;
/// let object = layout.to_vec(&[b"image"])?;
/// assert_eq!(object.len() as u64, layout.size());
/// let start = layout.image_offset(0).unwrap() as usize;
/// assert_eq!(&object[start..start + 5], b"image");
/// # Ok::<(), wrapper_ir::Error>(())
/// ```
#[derive(Debug)]
pub struct Layout {
    plan: Plan,
    /// Offset of each image in the output; `None` if the output has none of its bytes.
    offsets: Vec<Option<u64>>,
}

impl Layout {
    /// Creates an empty layout, for images of these sizes in bytes.
    pub(crate) fn new(sizes: &[u64]) -> Self {
        let plan = Plan::new(sizes.iter().copied());
        Self { plan, offsets: vec![None; sizes.len()] }
    }

    /// Adds bytes.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) -> Result<(), Problem> {
        self.check_room(to_u64(bytes.len()))?;
        self.plan.parts.push_bytes(bytes);
        Ok(())
    }

    /// Adds a part of an image. Images must come in ascending order, once each at most.
    pub(crate) fn push_image(&mut self, blob: &Blob) -> Result<(), Problem> {
        self.check_room(blob.size)?;
        let start = self.size();
        if let Some(offset) = self.offsets.get_mut(blob.input) {
            offset.get_or_insert(start);
        }
        let end = blob.offset.saturating_add(blob.size);
        self.plan.parts.push_input(blob.input, blob.offset..end);
        Ok(())
    }

    /// Adds zeros.
    pub(crate) fn push_zeros(&mut self, count: u64) -> Result<(), Problem> {
        self.check_room(count)?;
        self.plan.parts.push_zeros(count);
        Ok(())
    }

    /// Checks that the output can grow by `size` bytes.
    fn check_room(&self, size: u64) -> Result<(), Problem> {
        self.size().checked_add(size).map(drop).ok_or(Problem::OutputTooLarge)
    }

    /// Returns the size of the output in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.parts().size()
    }

    /// Returns the output as a list of parts, to be written or embedded. Inputs are the images, in the order they were
    /// given.
    #[must_use]
    pub fn parts(&self) -> &Parts {
        &self.plan.parts
    }

    /// Returns the offset in the output at which the bytes of image `index` start; `None` if the output has none of
    /// them.
    #[must_use]
    pub fn image_offset(&self, index: usize) -> Option<u64> {
        self.offsets.get(index).copied().flatten()
    }

    /// Returns the whole output in memory.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) if the images are not those that were laid out,
    /// [`ErrorKind::Memory`](crate::ErrorKind::Memory).
    pub fn to_vec(&self, images: &[&[u8]]) -> Result<Vec<u8>, Error> {
        Ok(self.plan.to_vec(images)?)
    }

    /// Writes the whole output, and flushes it. `images` are read once each, in their order. From file to file
    /// the kernel copies, where the platform can ([`std::io::copy`]).
    ///
    /// # Errors
    ///
    /// Those of reading and writing, and [`std::io::ErrorKind::InvalidInput`] with an [`Error`] inside if the images are
    /// not those that were laid out. By then a part of the output is written.
    pub fn write_to<R: Read>(
        &self,
        writer: impl Write,
        images: impl IntoIterator<Item = R>,
    ) -> io::Result<()> {
        self.plan.write_to(writer, images).map_err(write_error)
    }
}

/// Returns an error of writing with ours inside.
pub(crate) fn write_error(error: WriteError) -> io::Error {
    match error {
        WriteError::Input(error) => Error::from(error).into(),
        error => error.into(),
    }
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
    fn images_have_offsets_in_the_layout() {
        let layout = layout();
        assert_eq!(layout.size(), 9);
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
        assert_eq!(written(&IMAGES[..2]), Problem::InputCount { expected: 3, found: 2 });
        let four = [&IMAGES[..], &[b""]].concat();
        assert_eq!(written(&four), Problem::InputCount { expected: 3, found: 4 });
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
            assert_eq!(written(&images), Problem::InputSize { image, expected, found });
        }
    }

    #[test]
    fn an_output_too_large_is_an_error() {
        let mut layout = Layout::new(&[]);
        layout.push_zeros(u64::MAX).unwrap();
        assert_eq!(layout.push_bytes(b"x"), Err(Problem::OutputTooLarge));
        assert_eq!(layout.to_vec(&[]), Err(Problem::OutOfMemory { size: u64::MAX }.into()));
    }
}
