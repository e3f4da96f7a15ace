//! JSON that a terminal can show: characters that deceive are escaped, in names from files as well.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};

use crate::style::deceives;

/// Writes a value on one line.
pub(crate) fn write(out: &mut dyn Write, value: &(impl Serialize + ?Sized)) -> io::Result<()> {
    Ok(value.serialize(&mut Serializer::with_formatter(out, Escaping(CompactFormatter)))?)
}

/// Writes a value on lines of their own, the last one ended.
pub(crate) fn write_pretty(
    out: &mut dyn Write,
    value: &(impl Serialize + ?Sized),
) -> io::Result<()> {
    let formatter = Escaping(PrettyFormatter::new());
    value.serialize(&mut Serializer::with_formatter(&mut *out, formatter))?;
    writeln!(out)
}

/// A formatter that escapes characters of strings as `\\uXXXX`.
struct Escaping<F>(F);

impl<F: Formatter> Formatter for Escaping<F> {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| deceives(*c)) {
            let (plain, others) = rest.split_at(at);
            out.write_all(plain.as_bytes())?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            (_, rest) = others.split_at(c.len_utf8());
        }
        out.write_all(rest.as_bytes())
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_array(out)
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array(out)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(out, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array_value(out)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object(out)
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object(out)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(out, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object_value(out)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object_value(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_kept_and_escaped() {
        for text in [
            "plain \"text\" \\ ä 語 😀",
            "\u{7f}\u{80}\u{9b}31m\u{9f}\u{a0}",
            "a\u{202e}b\u{2066}c\u{200b}d\u{feff}e\u{61c}\u{e0041}",
            "\n\u{1b}[31m\0",
        ] {
            for pretty in [false, true] {
                let mut out = Vec::new();
                if pretty {
                    write_pretty(&mut out, &[text]).unwrap();
                } else {
                    write(&mut out, &[text]).unwrap();
                }
                let json = String::from_utf8(out).unwrap();
                assert!(!json.trim_end().chars().any(|c| deceives(c) && c != '\n'), "{json:?}");
                assert_eq!(serde_json::from_str::<Vec<String>>(&json).unwrap(), [text]);
            }
        }
        let mut out = Vec::new();
        write(&mut out, &"ä\u{9b}\u{e0041}").unwrap();
        assert_eq!(out, "\"ä\\u009b\\udb40\\udc41\"".as_bytes());
    }

    #[test]
    fn the_layout_is_that_of_serde_json() {
        let value = serde_json::json!({"a": [1, {"b": null}], "c": [], "d": {}});
        let mut out = Vec::new();
        write_pretty(&mut out, &value).unwrap();
        let mut usual = serde_json::to_vec_pretty(&value).unwrap();
        usual.push(b'\n');
        assert_eq!(out, usual);
        out.clear();
        write(&mut out, &value).unwrap();
        assert_eq!(out, serde_json::to_vec(&value).unwrap());
    }
}
