//! Zstandard frames, each of one code object.

#[cfg(any(feature = "ruzstd", feature = "zstd"))]
use alloc::format;
#[cfg(any(feature = "ruzstd", feature = "zstd"))]
use alloc::vec::Vec;

#[cfg(any(feature = "ruzstd", feature = "zstd"))]
use crate::error::{Error, ErrorKind};

/// Compresses a code object to a frame that has its size, as loaders expect. AMD's tools use level 3. Without libzstd there is
/// one level.
///
/// # Errors
///
/// [`Codec`](ErrorKind::Codec), which libzstd gives where memory is short.
#[cfg(any(feature = "ruzstd", feature = "zstd"))]
#[cfg_attr(docsrs, doc(cfg(any(feature = "ruzstd", feature = "zstd"))))]
pub fn compress(code: &[u8], level: i32) -> Result<Vec<u8>, Error> {
    #[cfg(feature = "zstd")]
    {
        zstd::bulk::compress(code, level)
            .map_err(|error| Error::new(ErrorKind::Codec, 0, format!("zstd: {error}")))
    }
    #[cfg(not(feature = "zstd"))]
    {
        let _ = level;
        let fastest = ruzstd::encoding::CompressionLevel::Fastest;
        Ok(with_size(&ruzstd::encoding::compress_to_vec(code, fastest), code.len() as u64))
    }
}

/// The first bytes of a Zstandard frame.
const FRAME: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Returns the size of the contents that a Zstandard frame says it has; `None` if it does not say, or is not a frame. AMD's Python
/// tools refuse frames without, ROCm's loader reads them.
///
/// ```
/// let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 4, 0x21, 0, 0, b'c', b'o', b'd', b'e'];
/// assert_eq!(kpack::content_size(&frame), Some(4));
/// ```
#[must_use]
pub fn content_size(frame: &[u8]) -> Option<u64> {
    // RFC 8878, 3.1.1.1: a descriptor, the window, the number of a dictionary, the size.
    let (descriptor, rest) = frame.strip_prefix(&FRAME)?.split_first()?;
    let is_single = descriptor & 0b0010_0000 > 0;
    let dictionary = [0, 1, 2, 4].get(usize::from(descriptor & 3))?;
    let rest = rest.get(usize::from(!is_single) + dictionary..)?;
    match (descriptor >> 6, is_single) {
        (0, false) => None,
        (0, true) => rest.first().map(|size| u64::from(*size)),
        (1, _) => rest.first_chunk().map(|size| u64::from(u16::from_le_bytes(*size)) + 256),
        (2, _) => rest.first_chunk().map(|size| u32::from_le_bytes(*size).into()),
        _ => rest.first_chunk().map(|size| u64::from_le_bytes(*size)),
    }
}

/// Returns whether the bytes start with a Zstandard frame.
pub(crate) fn is_frame(bytes: &[u8]) -> bool {
    bytes.starts_with(&FRAME)
}

/// Puts the size of the contents into the header of a frame that lacks it. Zstandard's format (RFC 8878), 3.1.1.1.
#[cfg(all(feature = "ruzstd", not(feature = "zstd")))]
fn with_size(frame: &[u8], size: u64) -> Vec<u8> {
    const HAS_SIZE: u8 = 0b1110_0000;
    match frame {
        [m0, m1, m2, m3, descriptor, window, rest @ ..] if descriptor & HAS_SIZE == 0 => {
            let mut new = Vec::from([*m0, *m1, *m2, *m3, descriptor | 0b1100_0000, *window]);
            new.extend(size.to_le_bytes());
            new.extend_from_slice(rest);
            new
        }
        _ => frame.to_vec(),
    }
}

/// Decompresses the frame of a code object of this size. Memory: as much, and a window. The size is what a table says: callers
/// with a limit compare it before. Frames that do not say their size are read, too.
///
/// # Errors
///
/// [`Codec`](ErrorKind::Codec): the frame is damaged, or holds more or fewer bytes.
#[cfg(any(feature = "ruzstd", feature = "zstd"))]
#[cfg_attr(docsrs, doc(cfg(any(feature = "ruzstd", feature = "zstd"))))]
pub fn decompress(frame: &[u8], size: u64) -> Result<Vec<u8>, Error> {
    let failed = |text| Error::new(ErrorKind::Codec, 0, text);
    // A block of 128 KiB takes 3 bytes at least.
    if size.div_ceil(1 << 16) > frame.len() as u64 {
        return Err(failed(format!("expected {size} bytes of code, more than the frame can hold")));
    }
    let room = usize::try_from(size).map_err(|_| failed(format!("{size} bytes of code")))?;
    let mut code = Vec::new();
    let out_of_memory = |_| failed(format!("no memory for {size} bytes of code"));
    code.try_reserve_exact(room).map_err(out_of_memory)?;
    #[cfg(feature = "zstd")]
    zstd::bulk::Decompressor::new()
        .and_then(|mut decoder| decoder.decompress_to_buffer(frame, &mut code))
        .map_err(|error| failed(format!("zstd: {error}")))?;
    #[cfg(not(feature = "zstd"))]
    {
        let mut decoder = ruzstd::decoding::FrameDecoder::new();
        decoder.set_max_window_size(size.max(8 << 20));
        let decoded = decoder.decode_all_to_vec(frame, &mut code);
        decoded.map_err(|error| failed(format!("zstd: {error}")))?;
    }
    match code.len() {
        found if found == room => Ok(code),
        found => Err(failed(format!("expected {size} bytes of code, found {found}"))),
    }
}
