//! Words of command lines.

use std::fmt::Write as _;

/// Returns a word as a POSIX shell reads it: unchanged, or in quotes. A path that starts with `-` gets a `./`.
///
/// ```
/// use device_report::quoted;
///
/// assert_eq!(quoted(b"lib/libfoo.so"), "lib/libfoo.so");
/// assert_eq!(quoted(b"it's mine.so"), r"'it'\''s mine.so'");
/// assert_eq!(quoted(b"-o"), "./-o");
/// assert_eq!(quoted(b"a\nb\xff"), r"$'a\nb\377'");
/// ```
#[must_use]
pub fn quoted(word: &[u8]) -> String {
    let start = if word.starts_with(b"-") { "./" } else { "" };
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./:+,@%".contains(byte);
    match std::str::from_utf8(word) {
        Ok(text) if !word.is_empty() && word.iter().all(is_plain) => format!("{start}{text}"),
        Ok(text) if !text.chars().any(deceives) => {
            format!("'{start}{}'", text.replace('\'', r"'\''"))
        }
        _ => format!("$'{start}{}'", escaped(word)),
    }
}

/// Returns whether a character could hide something from a reader of a command line: only printed ones of ASCII, letters and
/// digits do not.
fn deceives(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_control() } else { !c.is_alphanumeric() }
}

/// Returns bytes as a shell reads them in `$'...'`, which bash, zsh and ksh have.
fn escaped(word: &[u8]) -> String {
    let mut text = String::new();
    for byte in word {
        match byte {
            b'\n' => text.push_str(r"\n"),
            b'\t' => text.push_str(r"\t"),
            b'\\' | b'\'' => text.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => text.push(char::from(*byte)),
            // Three digits: in some shells a hexadecimal number takes as many as follow.
            _ => write!(text, r"\{byte:03o}").unwrap_or(()),
        }
    }
    text
}
