//! The checksum in the optional header, which Windows compares for drivers and system libraries.

use std::io::{self, Read};

/// Returns the checksum of a file whose field CheckSum is 0: the sum of its 16-bit words, with the carry added back,
/// plus its length.
pub(super) fn checksum(mut file: impl Read, len: u64) -> io::Result<u32> {
    let mut sum = 0_u64;
    let mut buf = vec![0; 64 * 1024];
    let mut left = len;
    while left > 0 {
        if let Ok(left) = usize::try_from(left) {
            buf.truncate(left);
        }
        file.read_exact(&mut buf)?;
        // Chunks but the last have whole words.
        let (words, odd) = buf.as_chunks::<2>();
        for word in words {
            sum += u64::from(u16::from_le_bytes(*word));
        }
        sum += odd.iter().map(|&byte| u64::from(byte)).sum::<u64>();
        left -= buf.len() as u64;
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    // It is defined modulo 2^32.
    let all = sum.wrapping_add(len) & u64::from(u32::MAX);
    u32::try_from(all).map_err(|_| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::checksum;

    #[test]
    fn words_are_added_with_the_carry() {
        assert_eq!(checksum(&[][..], 0).unwrap(), 0);
        assert_eq!(checksum(&[1, 2, 3, 4][..], 4).unwrap(), 0x0201 + 0x0403 + 4);
        assert_eq!(checksum(&[0xff, 0xff, 2, 0][..], 4).unwrap(), 2 + 4);
        assert_eq!(checksum(&[1, 2, 3][..], 3).unwrap(), 0x0201 + 3 + 3);
    }

    #[test]
    fn chunks_do_not_matter() {
        let bytes: Vec<u8> = (0..200_001_u32).map(|i| (i * 7 % 251) as u8).collect();
        let mut sum: u32 = 0;
        for word in bytes.chunks(2) {
            sum += u32::from(word[0]) | u32::from(*word.get(1).unwrap_or(&0)) << 8;
            sum = (sum & 0xffff) + (sum >> 16);
        }
        assert_eq!(checksum(&bytes[..], 200_001).unwrap(), sum + 200_001);
    }
}
