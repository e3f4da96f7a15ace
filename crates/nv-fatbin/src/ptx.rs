//! PTX as `fatbinary` stores it, and what its directives say.

use alloc::vec::Vec;

use crate::error::Error;
use crate::kinds::Architecture;

/// White space in C.
const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Returns the text without comments and without blanks that follow white space, and with a NUL at its end, as
/// `fatbinary` 13.5 does. A comment of one line ends before its line break; one that is not closed reaches to the end.
/// Strings stay as they are. A quote after a backslash neither opens nor closes one.
pub(crate) fn normalize(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 1);
    let mut is_string = false;
    let mut before = 0;
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        let taken = match (*byte, after.first()) {
            (b'"', _) if before != b'\\' => {
                is_string = !is_string;
                1
            }
            _ if is_string => 1,
            (b'/', Some(b'/')) => {
                let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                rest = rest.split_at(end.unwrap_or(rest.len())).1;
                before = 0;
                continue;
            }
            (b'/', Some(b'*')) => {
                // The star that opens the comment may close it.
                let end = after.windows(2).position(|pair| pair == b"*/");
                rest = after.split_at(end.map_or(after.len(), |end| end + 2)).1;
                before = 0;
                continue;
            }
            (space, _) if is_space(space) => {
                let blanks = after.iter().take_while(|byte| matches!(byte, b' ' | b'\t'));
                blanks.count() + 1
            }
            _ => 1,
        };
        out.push(*byte);
        let (passed, left) = rest.split_at(taken);
        before = *passed.last().unwrap_or(byte);
        rest = left;
    }
    out.push(0);
    out
}

/// Returns the version after the first `.version` of the text, comments included, as `fatbinary` finds it: a number, a dot,
/// and one digit.
pub(crate) fn version(text: &[u8]) -> Result<(u16, u16), Error> {
    let read = || {
        let words = after(text, b".version")?;
        let (major, rest) = number(words)?;
        let minor = rest.strip_prefix(b".")?.first().filter(|byte| byte.is_ascii_digit())?;
        Some((u16::try_from(major).ok()?, u16::from(minor.wrapping_sub(b'0'))))
    };
    read().ok_or_else(|| Error::malformed("expected PTX with its version, such as .version 8.7"))
}

/// Returns what follows the first `.target`: `sm_90a`.
pub(crate) fn target(text: &[u8]) -> Option<&str> {
    let words = after(text, b".target")?;
    let end = words.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
    core::str::from_utf8(words.get(..end.unwrap_or(words.len()))?).ok()
}

/// Returns whether addresses have 64 bits. Without `.address_size` they have 32.
pub(crate) fn is_64(text: &[u8]) -> bool {
    after(text, b".address_size").and_then(number).is_some_and(|(size, _)| size == 64)
}

/// Returns what follows the first such word and white space, up to a NUL.
fn after<'text>(text: &'text [u8], word: &[u8]) -> Option<&'text [u8]> {
    let text = text.split(|&byte| byte == 0).next()?;
    let at = text.windows(word.len()).position(|found| found == word)?;
    let rest = text.get(at + word.len()..)?;
    rest.get(rest.iter().take_while(|byte| is_space(**byte)).count()..)
}

fn number(text: &[u8]) -> Option<(u32, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at_checked(digits)?;
    Some((core::str::from_utf8(digits).ok()?.parse().ok()?, rest))
}

impl Architecture {
    /// Returns the architecture that PTX names in `.target`.
    #[must_use]
    pub fn of_ptx(text: &[u8]) -> Option<Self> {
        Self::from_name(target(&normalize(text))?)
    }
}
