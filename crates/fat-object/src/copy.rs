//! The bytes of one image, by its index.

use std::io::{self, Read, Seek, Write};

use crate::options::Options;
use crate::walker::{Event, Walk};

/// Writes the bytes of the image with this [index](crate::ImageInfo::index) to `out`, as its container stores them:
/// decompressed, if it is a compressed bundle that they lie in. Returns how many they are.
///
/// It is a second [walk](Walk) of the file up to the image, so `options` must be the options of the listing with this
/// index: for an index of `fat_edit::survey` they are [`Options::with_enter_images`]`(false)`. For several images, use
/// a visitor. An image in a compressed bundle is written only if the bundle agrees with its hash, unless
/// [`Options::with_verify_hash`] allows it.
///
/// ```
/// use std::io::Cursor;
/// use fat_object::{Options, copy_image, list};
///
/// let layout = bundle_format::layout([("hip-amdgcn-amd-amdhsa--gfx906", 4)], 1)?;
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
    mut out: W,
) -> io::Result<u64> {
    let mut walk = Walk::new(input, &options.clone().with_tables_only(false))?;
    while let Some(event) = walk.next()? {
        if let Event::Image(mut image) = event
            && image.index() == index
        {
            return io::copy(&mut image.reader(), &mut out);
        }
    }
    let message = format!("there is no image {index}, of {}", walk.summary().images);
    Err(io::Error::new(io::ErrorKind::NotFound, message))
}
