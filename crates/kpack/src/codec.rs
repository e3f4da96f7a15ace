//! Zstandard frames, each of one code object.

use alloc::format;
use alloc::vec::Vec;

use codecs::{Codec, Input};

use crate::error::{Error, ErrorKind};

/// Compresses a code object to a frame that has its size, as loaders expect. AMD's tools use level 3. Without libzstd there is
/// one level.
///
/// # Errors
///
/// [`Codec`](ErrorKind::Codec), which libzstd gives where memory is short, and builds without a codec.
pub fn compress(code: &[u8], level: i32) -> Result<Vec<u8>, Error> {
    Codec::Zstd
        .compress(code, level)
        .map_err(|error| Error::new(ErrorKind::Codec, 0, format!("zstd: {}", error.kind())))
}

/// Returns the size of the contents that a Zstandard frame says it has; `None` if it does not say, or is not a frame. AMD's Python
/// tools refuse frames without, ROCm's loader reads them.
///
/// ```
/// let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 4, 0x21, 0, 0, b'c', b'o', b'd', b'e'];
/// assert_eq!(kpack::content_size(&frame), Some(4));
/// ```
#[must_use]
pub fn content_size(frame: &[u8]) -> Option<u64> {
    codecs::zstd::content_size(frame)
}

/// Decompresses the frame of a code object of this size. Memory: as much, and a window. The size is what a table says: callers
/// with a limit compare it before. Frames that do not say their size are read, too.
///
/// # Errors
///
/// [`Codec`](ErrorKind::Codec): the frame is damaged, or holds more or fewer bytes, or this build has no codec.
pub fn decompress(frame: &[u8], size: u64) -> Result<Vec<u8>, Error> {
    let decoded = Codec::Zstd.decompress(&Input::new(frame, size), &mut |_| {});
    decoded.map(|(code, _)| code).map_err(|error| {
        let text = match error.kind() {
            codecs::ErrorKind::AtMost(_) => {
                format!("expected {size} bytes of code, more than the frame can hold")
            }
            codecs::ErrorKind::TooShort(found) | codecs::ErrorKind::ContentSize(found) => {
                format!("expected {size} bytes of code, found {found}")
            }
            codecs::ErrorKind::Memory(_) => format!("no memory for {size} bytes of code"),
            kind => format!("zstd: {kind}"),
        };
        Error::new(ErrorKind::Codec, 0, text)
    })
}
