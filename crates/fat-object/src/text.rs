//! Names from files, as text.

use std::fmt::{self, Write as _};

/// Returns these bytes as text, with a replacement character for each that is not UTF-8.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A name in the text of a message: without control characters, which could move a terminal's cursor, and cut
/// where it gets long, because one name can be in many messages.
pub(crate) struct Printable<'a>(&'a str);

/// Characters.
const LONGEST_PRINTED: usize = 1024;

pub(crate) fn printable(name: &str) -> Printable<'_> {
    Printable(name)
}

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = self.0.char_indices().nth(LONGEST_PRINTED).map(|(end, _)| end);
        let name = cut.and_then(|end| self.0.get(..end)).unwrap_or(self.0);
        for c in name.chars() {
            if c.is_control() {
                write!(f, "{}", c.escape_default())?;
            } else {
                f.write_char(c)?;
            }
        }
        if cut.is_some() { f.write_str("...") } else { Ok(()) }
    }
}
