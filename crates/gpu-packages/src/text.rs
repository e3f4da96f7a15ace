//! Texts, in bytes and with fields.

/// Returns the text up to the first byte that ends it, or all.
pub(crate) fn until(text: &[u8], is_end: impl Fn(u8) -> bool) -> &[u8] {
    let end = text.iter().position(|&byte| is_end(byte)).unwrap_or(text.len());
    text.split_at(end).0
}

/// Returns the text up to the first NUL.
pub(crate) fn until_nul(text: &[u8]) -> &[u8] {
    until(text, |byte| byte == 0)
}

/// Returns the values of a field in the head of a text like `METADATA` and `WHEEL`.
pub(crate) fn fields<'t>(text: &'t str, name: &str) -> impl Iterator<Item = &'t str> {
    let head = text.lines().take_while(|line| !line.is_empty());
    let all = head.filter_map(|line| line.split_once(':'));
    let found = all.filter(move |(key, _)| key.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim())
}
