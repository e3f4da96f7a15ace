//! The bytes of one image, by its index.

use std::io::{self, Read, Seek, Write};

use crate::image::Image;
use crate::model::{Finding, Visitor};
use crate::walker::{Options, walk};

/// Writes the bytes of the image with this [index](crate::ListedImage::index) to `out`, as its container stores them:
/// decompressed, if it is a compressed bundle that they lie in. Returns how many they are.
///
/// It is a second [`walk`] of the file up to the image, so `options` have to be those that the index is from: for one out
/// of `fat_edit::survey` that is [`Options::with_enter_images`]`(false)`. Who wants several images visits them.
/// What a compressed bundle holds is written only when it agrees with its hash, unless [`Options::verify_hash`] is off.
///
/// ```
/// use std::io::Cursor;
/// use fat_object::{Options, copy_image, list};
///
/// let layout = bundle_format::Layout::new([("hip-amdgcn-amd-amdhsa--gfx906", 4)], 1)?;
/// let mut file = Cursor::new(layout.to_vec(&[b"code"])?);
/// let listing = list(&mut file, &Options::default())?;
/// let mut code = Vec::new();
/// copy_image(&mut file, &Options::default(), listing.images()[0].index(), &mut code)?;
/// assert_eq!(code, b"code");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`NotFound`](io::ErrorKind::NotFound) if there is no such image; an error of reading, or of `out`, where a part of the
/// image may be written.
pub fn copy_image<R: Read + Seek, W: Write>(
    input: R,
    options: &Options,
    index: usize,
    out: W,
) -> io::Result<u64> {
    let mut copier = Copier { index, out, result: None };
    let options = options.clone().with_early_images(false).with_tables_only(false);
    let walked = walk(input, &options, &mut copier);
    match (copier.result, walked) {
        (Some(result), _) => result,
        (None, Err(error)) => Err(error),
        (None, Ok(summary)) => {
            let message = format!("there is no image {index}, of {}", summary.images);
            Err(io::Error::new(io::ErrorKind::NotFound, message))
        }
    }
}

struct Copier<W> {
    index: usize,
    out: W,
    result: Option<io::Result<u64>>,
}

impl<W: Write> Visitor for Copier<W> {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        if image.index() != self.index {
            return Ok(());
        }
        let copied = io::copy(&mut image.reader(), &mut self.out);
        self.result = Some(copied);
        Err(io::Error::other("the walk was ended"))
    }

    fn finding(&mut self, _: &Finding<'_>) -> io::Result<()> {
        Ok(())
    }
}
