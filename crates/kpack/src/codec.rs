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

/// Decompresses the frame of a code object of this size. Memory: as much, and a window.
///
/// # Errors
///
/// [`Codec`](ErrorKind::Codec): the frame is damaged, or holds more or fewer bytes.
#[cfg(any(feature = "ruzstd", feature = "zstd"))]
#[cfg_attr(docsrs, doc(cfg(any(feature = "ruzstd", feature = "zstd"))))]
pub fn decompress(frame: &[u8], size: u64) -> Result<Vec<u8>, Error> {
    let failed = |text| Error::new(ErrorKind::Codec, 0, text);
    // A block of 128 KiB takes 3 bytes at least.
    let most = (frame.len() as u64).saturating_mul(1 << 16);
    if size > most {
        return Err(failed(format!("expected {size} bytes of code, more than the frame can hold")));
    }
    let room = usize::try_from(size).map_err(|_| failed(format!("{size} bytes of code")))?;
    let mut code = alloc::vec![0; room];
    #[cfg(feature = "zstd")]
    let found = zstd::bulk::decompress_to_buffer(frame, &mut code)
        .map_err(|error| failed(format!("zstd: {error}")))?;
    #[cfg(not(feature = "zstd"))]
    let found = {
        let mut decoder = ruzstd::decoding::FrameDecoder::new();
        decoder.set_max_window_size(size.max(8 << 20));
        decoder.decode_all(frame, &mut code).map_err(|error| failed(format!("zstd: {error}")))?
    };
    match found == room {
        true => Ok(code),
        false => Err(failed(format!("expected {size} bytes of code, found {found}"))),
    }
}
