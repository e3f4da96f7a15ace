//! Target of an image in a source, by its own bytes.

use std::io;
use std::ops::Range;

use device_code::{FileFormat, image_target_at};
use target_id::Target;

use crate::source::{Source, lend};

/// Returns the target that the image in `window` states, which is of this format.
pub(crate) fn of_window(
    source: &mut Source<'_>,
    window: &Range<u64>,
    format: FileFormat,
) -> io::Result<Option<Target>> {
    let window = window.start..window.end.min(source.len());
    lend(source, |source| image_target_at(source, &window, format))
}

/// Returns the target that an image in memory states, which is of this format.
pub(crate) fn of_bytes(mut image: &[u8], format: FileFormat) -> Option<Target> {
    let window = 0..image.len() as u64;
    image_target_at(&mut image, &window, format).ok().flatten()
}
