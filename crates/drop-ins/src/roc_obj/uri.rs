//! URIs of code objects ("Loaded Code Object Path Uniform Resource Identifier" in LLVM's documentation of AMDGPU):
//! `file://PATH#offset=N&size=N` and `memory://PID#offset=N&size=N`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use tool_kit::input;

/// A range of bytes in a file or in the memory of a process.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Uri {
    pub(super) place: UriSource,
    pub(super) offset: u64,
    /// Size in bytes; `None` for the rest of the file.
    pub(super) size: Option<u64>,
}

/// The bytes that a URI names a range of.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UriSource {
    File(PathBuf),
    /// The number of a process.
    Memory(u32),
}

/// Returns the part of a file's URI that follows `file://`.
pub(super) fn of_file(path: &Path, offset: u64, size: u64) -> String {
    let mut text = String::new();
    for byte in input::bytes(path.into()) {
        // Tools of AMD's take other characters as they are, and a comma for the start of the range.
        let is_plain = byte.is_ascii_graphic() && !b"%#?,".contains(&byte);
        // Writing to a string cannot fail.
        let _ = if is_plain { text.write_char(byte.into()) } else { write!(text, "%{byte:02X}") };
    }
    format!("{text}#offset={offset}&size={size}")
}

impl Uri {
    /// Reads a URI. It may be the end of a line of `roc-obj-ls`.
    pub(super) fn parse(line: &[u8]) -> Result<Self, String> {
        let starts = |at: &usize| *at == 0 || line.get(at - 1).is_some_and(u8::is_ascii_whitespace);
        let strip = |scheme: &str| {
            // The last one: no whitespace is in what `roc-obj-ls` writes of names.
            (0..line.len()).rev().filter(starts).find_map(|at| {
                let (start, rest) = line.get(at..)?.split_at_checked(scheme.len())?;
                start.eq_ignore_ascii_case(scheme.as_bytes()).then_some(rest)
            })
        };
        let (is_memory, rest) = match (strip("file://"), strip("memory://")) {
            (Some(file), Some(memory)) if memory.len() < file.len() => (true, memory),
            (Some(file), _) => (false, file),
            (None, Some(memory)) => (true, memory),
            (None, None) => return Err("expected file:// or memory://".to_owned()),
        };
        let end = rest.iter().position(|byte| b"#?".contains(byte)).unwrap_or(rest.len());
        let (name, range) = rest.split_at(end);
        let (mut offset, mut size) = (None, None);
        let attributes = range.get(1..).map(|range| range.split(|&byte| byte == b'&'));
        for attribute in attributes.into_iter().flatten() {
            let text = String::from_utf8_lossy(attribute);
            let (key, number) = text.split_once('=').unwrap_or((&text, ""));
            let value = match key {
                "offset" => &mut offset,
                "size" => &mut size,
                "" if number.is_empty() => continue,
                _ => return Err(format!("'{text}': expected offset=N or size=N")),
            };
            *value =
                Some(self::number(number).ok_or_else(|| format!("'{text}': expected a number"))?);
        }
        let place = if is_memory {
            let pid = std::str::from_utf8(name).ok().and_then(|name| name.parse().ok());
            if offset.is_none() || size.is_none() {
                return Err("memory: expected an offset and a size".to_owned());
            }
            UriSource::Memory(pid.ok_or("memory: expected the number of a process")?)
        } else {
            UriSource::File(input::path(&decoded(name)?))
        };
        Ok(Uri { place, offset: offset.unwrap_or(0), size })
    }
}

/// Returns a number as C has it: decimal, hexadecimal after `0x`, octal after `0`.
fn number(text: &str) -> Option<u64> {
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, radix) = match (hexadecimal, text.strip_prefix('0')) {
        (Some(digits), _) => (digits, 16),
        (None, Some(digits)) if !digits.is_empty() => (digits, 8),
        _ => (text, 10),
    };
    // A sign is not a digit.
    let is_digit = digits.starts_with(|c: char| c.is_digit(radix));
    is_digit.then(|| u64::from_str_radix(digits, radix).ok()).flatten()
}

/// Returns the bytes of a name in which `%41` means `A`.
fn decoded(name: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut rest = name;
    while let [first, after @ ..] = rest {
        let (byte, after) = if *first == b'%' {
            let (digits, after) = after.split_at_checked(2).unwrap_or((after, b""));
            let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.len() == 2);
            let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
            (byte.ok_or("'%': expected two hexadecimal digits after it")?, after)
        } else {
            (*first, after)
        };
        bytes.push(byte);
        rest = after;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Uri, UriSource, of_file};

    fn file(name: &str, offset: u64, size: Option<u64>) -> Uri {
        Uri { place: UriSource::File(name.into()), offset, size }
    }

    #[test]
    fn uris_and_lines_with_uris_are_read() {
        for (line, expected) in [
            ("file://a#offset=133&size=14472", Ok(file("a", 133, Some(14472)))),
            ("file:///a/b?offset=0x20&size=010", Ok(file("/a/b", 32, Some(8)))),
            ("FILE://a%20b%2c#size=0", Ok(file("a b,", 0, Some(0)))),
            ("file://a", Ok(file("a", 0, None))),
            ("file://a#", Ok(file("a", 0, None))),
            ("file://a#size=7&offset=3", Ok(file("a", 3, Some(7)))),
            ("file://a b#offset=1", Ok(file("a b", 1, None))),
            ("1       gpu      file://a#offset=1&size=2", Ok(file("a", 1, Some(2)))),
            ("1  x file://evil  file://a#offset=1&size=2", Ok(file("a", 1, Some(2)))),
            ("1  x memory://1#offset=1&size=2  file://a", Ok(file("a", 0, None))),
            (
                "1  x file://a  memory://12#offset=0xFF&size=2",
                Ok(Uri { place: UriSource::Memory(12), offset: 255, size: Some(2) }),
            ),
        ] {
            assert_eq!(Uri::parse(line.as_bytes()), expected, "{line}");
        }
        for line in [
            "",
            "a",
            "xfile://a",
            "http://a",
            "file://a#offset=",
            "file://a#offset=+1",
            "file://a#offset=0x",
            "file://a#offset=08",
            "file://a#offset=18446744073709551616",
            "file://a#start=1",
            "file://%4",
            "file://%zz",
            "memory://1",
            "memory://1#offset=1",
            "memory://self#offset=1&size=1",
            "memory://../1#offset=1&size=1",
        ] {
            assert!(Uri::parse(line.as_bytes()).is_err(), "{line}");
        }
    }

    #[test]
    fn any_name_is_read_back() {
        for name in ["a", "/a/b-c_d.so.1", "a b", "50%,#1?&x=+'", "ü\n"] {
            let uri = format!("1  x  file://{}", of_file(Path::new(name), 1, 2));
            assert_eq!(Uri::parse(uri.as_bytes()), Ok(file(name, 1, Some(2))), "{name}");
        }
        assert_eq!(of_file(Path::new("a+b, c"), 1, 2), "a+b%2C%20c#offset=1&size=2");
    }
}
