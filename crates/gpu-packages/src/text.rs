//! Texts in bytes.

/// Returns the text up to the first byte that ends it, or all.
pub(crate) fn until(text: &[u8], is_end: impl Fn(u8) -> bool) -> &[u8] {
    let end = text.iter().position(|&byte| is_end(byte)).unwrap_or(text.len());
    text.split_at(end).0
}

/// Returns the text up to the first NUL.
pub(crate) fn until_nul(text: &[u8]) -> &[u8] {
    until(text, |byte| byte == 0)
}
