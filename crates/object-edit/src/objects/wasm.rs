//! Numbers and heads of sections of WebAssembly modules (WebAssembly Core Specification, "Binary Format").

/// Magic and version of a module. Components have another version, and other sections.
pub(crate) const HEADER: [u8; 8] = *b"\0asm\x01\0\0\0";
/// `id` of a custom section.
pub(crate) const CUSTOM: u8 = 0;
/// Bytes of the largest LEB128 number that is allowed here, of 32 bits.
const LEB128_MAX: usize = 5;

/// The header of a section.
pub(crate) struct Head {
    pub(crate) id: u8,
    /// Bytes before its contents.
    pub(crate) head_len: u64,
    pub(crate) len: u64,
}

/// Reads the header of a section from its first bytes; six are enough.
pub(crate) fn head(bytes: &[u8]) -> Option<Head> {
    let (&id, rest) = bytes.split_first()?;
    let (len, leb128_len) = read_leb128(rest)?;
    Some(Head { id, head_len: leb128_len + 1, len })
}

/// Returns a number of 32 bits, and how many bytes it takes.
pub(crate) fn read_leb128(bytes: &[u8]) -> Option<(u64, u64)> {
    let mut value = 0_u64;
    for (index, &byte) in bytes.iter().take(LEB128_MAX).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            let len = index as u64 + 1;
            return Some((value, len)).filter(|_| value <= u32::MAX.into());
        }
    }
    None
}

/// Returns a number in as few bytes as it needs, but `min` of them.
pub(crate) fn leb128(mut value: u64, min: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = value.to_le_bytes()[0] & 0x7f;
        value >>= 7;
        if value == 0 && bytes.len() + 1 >= min {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leb128_is_written_and_read() {
        for (value, min, bytes) in [
            (0, 1, &b"\0"[..]),
            (0x7f, 1, b"\x7f"),
            (0x80, 1, b"\x80\x01"),
            (58, 5, b"\xba\x80\x80\x80\0"),
            (u64::from(u32::MAX), 1, b"\xff\xff\xff\xff\x0f"),
        ] {
            assert_eq!(leb128(value, min), bytes);
            assert_eq!(read_leb128(bytes), Some((value, bytes.len() as u64)));
            assert_eq!(read_leb128(&bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(read_leb128(b"\xff\xff\xff\xff\x1f"), None);
        assert_eq!(read_leb128(b"\x80\x80\x80\x80\x80\0"), None);
    }
}
