//! Words of command lines.

use std::fmt::Write as _;

use serde::Serialize;

/// A shell that reads command lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Shell {
    /// A POSIX shell.
    Posix,
    /// PowerShell; `cmd` reads most words alike.
    Windows,
}

impl Shell {
    /// Returns a word as the shell reads it: unchanged, or in quotes. A path that starts with `-` gets the directory that it is in. `None`
    /// for a word that the shell cannot read.
    ///
    /// ```
    /// use device_report::Shell::{Posix, Windows};
    ///
    /// assert_eq!(Posix.quoted(b"lib/libfoo.so").unwrap(), "lib/libfoo.so");
    /// assert_eq!(Posix.quoted(b"it's mine.so").unwrap(), r"'it'\''s mine.so'");
    /// assert_eq!(Posix.quoted(b"-o").unwrap(), "./-o");
    /// assert_eq!(Posix.quoted(b"a\nb\xff").unwrap(), r"$'a\nb\377'");
    /// assert_eq!(Windows.quoted(br"lib\foo.dll").unwrap(), r"lib\foo.dll");
    /// assert_eq!(Windows.quoted(b"it's mine.dll").unwrap(), r#""it's mine.dll""#);
    /// assert_eq!(Windows.quoted(b"$HOME's.dll").unwrap(), "'$HOME''s.dll'");
    /// assert_eq!(Windows.quoted(b"a\nb"), None);
    /// ```
    #[must_use]
    pub fn quoted(self, word: &[u8]) -> Option<String> {
        match self {
            Shell::Posix => Some(posix(word)),
            Shell::Windows => windows(std::str::from_utf8(word).ok()?),
        }
    }
}

fn posix(word: &[u8]) -> String {
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

/// PowerShell takes curved quotes for straight ones, and expands variables between double ones. `cmd` knows no single ones.
fn windows(word: &str) -> Option<String> {
    const SINGLE: [char; 5] = ['\'', '\u{2018}', '\u{2019}', '\u{201a}', '\u{201b}'];
    // No name of a file has such quotes.
    let is_hidden = |c| c == '"' || (deceives(c) && !SINGLE.contains(&c));
    if word.chars().any(is_hidden) {
        return None;
    }
    let start = if word.starts_with('-') { r".\" } else { "" };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || r"_-./:+\".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return Some(format!("{start}{word}"));
    }
    if !word.contains(['$', '`', '%', '!']) && !word.ends_with('\\') {
        return Some(format!("\"{start}{word}\""));
    }
    let mut text = format!("'{start}");
    for c in word.chars() {
        text.push(c);
        text.extend(Some(c).filter(|c| SINGLE.contains(c)));
    }
    Some(text + "'")
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
