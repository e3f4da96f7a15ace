//! The hash in the header.

/// The hash that a header records: the first 8 bytes of the MD5 digest of the uncompressed data,
/// as a little-endian number.
///
/// MD5 finds damage, not malice: whoever makes a container chooses the hash too.
#[must_use]
pub fn hash(data: &[u8]) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = md5::compute(data).0;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

#[cfg(test)]
mod tests {
    use super::hash;

    #[test]
    fn is_the_head_of_the_md5_digest() {
        // RFC 1321, appendix A.5: d41d8cd98f00b204... and 900150983cd24fb0...
        assert_eq!(hash(b"").to_le_bytes(), [0xd4, 0x1d, 0x8c, 0xd9, 0x8f, 0x00, 0xb2, 0x04]);
        assert_eq!(hash(b"abc"), 0xb04f_d23c_9850_0190);
    }
}
