//! Zstandard frames written by `ruzstd`.

use alloc::vec::Vec;

use ruzstd::encoding::{CompressionLevel, compress};

use super::frame::CHECKSUM_LEN;
use crate::error::Error;

/// The bit in a frame's descriptor, its fifth byte, that announces a checksum.
const DESCRIPTOR_CHECKSUM: u8 = 0x04;

/// Compresses to one frame with its size.
pub(crate) fn encode(data: &[u8], level: i32) -> Result<Vec<u8>, Error> {
    let mut frame = Vec::new();
    encode_code(data, Some(level), 1, &mut frame)?;
    Ok(with_size(&frame, data.len() as u64))
}

/// Appends a frame without its size to `out`. `Fastest` is the only level that is implemented and compresses, the others
/// panic.
#[allow(clippy::unnecessary_wraps, reason = "the signature of all libraries")]
pub(crate) fn encode_code(
    data: &[u8],
    _: Option<i32>,
    _: u32,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let start = out.len();
    compress(data, &mut *out, CompressionLevel::Fastest);
    drop_checksum(out, start);
    Ok(())
}

/// Takes away the checksum of the frame at `start`: whether `ruzstd` writes one depends on a
/// feature that any crate in the build may turn on, and the bytes written shall not.
fn drop_checksum(out: &mut Vec<u8>, start: usize) {
    if let Some([_, _, _, _, descriptor, .., _, _, _, _]) = out.get_mut(start..)
        && *descriptor & DESCRIPTOR_CHECKSUM != 0
    {
        *descriptor &= !DESCRIPTOR_CHECKSUM;
        out.truncate(out.len() - CHECKSUM_LEN);
    }
}

/// Puts the size of the contents into the header of a frame that lacks it (RFC 8878, 3.1.1.1).
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

#[cfg(test)]
mod tests {
    use super::drop_checksum;

    #[test]
    fn checksums_are_removed() {
        // `printf abc | zstd -c` of zstd 1.5.4, after one other byte.
        let mut out = alloc::vec![
            0xEE, // not ours
            0x28, 0xB5, 0x2F, 0xFD, 0x04, 0x58, // window 2 MiB, checksum
            0x19, 0x00, 0x00, b'a', b'b', b'c', // last block, raw, 3 bytes
            0x99, 0x09, 0x77, 0xAD, // checksum
        ];
        drop_checksum(&mut out, 1);
        let bare = [0xEE, 0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x58, 0x19, 0x00, 0x00, b'a', b'b', b'c'];
        assert_eq!(out, bare);
        drop_checksum(&mut out, 1);
        assert_eq!(out, bare);
    }
}
