//! Numbers and heads of sections of WebAssembly modules (WebAssembly Core Specification, "Binary Format").

/// Magic and version of a module. Components have another version, and other sections.
pub const HEADER: [u8; 8] = *b"\0asm\x01\0\0\0";
/// `id` of a custom section.
pub const CUSTOM: u8 = 0;
/// Bytes of the largest LEB128 number that is allowed here, of 32 bits.
pub const LEB128_MAX: usize = 5;

/// The start of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Head {
    /// Its kind.
    pub id: u8,
    /// Bytes before its contents.
    pub head_len: u64,
    /// Bytes of its contents.
    pub len: u64,
}

/// Reads the start of a section from its first bytes (six are enough).
#[must_use]
pub fn head(bytes: &[u8]) -> Option<Head> {
    let (&id, rest) = bytes.split_first()?;
    let (len, leb128_len) = read_leb128(rest)?;
    Some(Head { id, head_len: leb128_len + 1, len })
}

/// Returns a number of 32 bits, and how many bytes it takes.
///
/// ```
/// use byte_parts::wasm::read_leb128;
///
/// assert_eq!(read_leb128(b"\x80\x01 and more"), Some((0x80, 2)));
/// assert_eq!(read_leb128(b"\xba\x80\x80\x80\0"), Some((58, 5)));
/// // More than 32 bits, and an end that does not come.
/// assert_eq!(read_leb128(b"\xff\xff\xff\xff\x1f"), None);
/// assert_eq!(read_leb128(b"\x80\x80\x80\x80\x80\0"), None);
/// ```
#[must_use]
pub fn read_leb128(bytes: &[u8]) -> Option<(u64, u64)> {
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
