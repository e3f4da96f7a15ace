//! MessagePack, as far as kernel packs use it: a reader that skips what it does not know, and a writer of the shortest forms.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::error::{Error, ErrorKind};

/// The most arrays and maps in each other.
const MOST_NESTED: usize = 16;

/// A reader of values one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'d> {
    data: &'d [u8],
    at: usize,
    /// The place of the data, for errors.
    base: u64,
}

/// The start of a value.
#[derive(Debug, PartialEq)]
enum Head {
    /// A value without a length: nothing, a truth value, a fraction.
    Other,
    Unsigned(u64),
    Negative,
    Text(usize),
    /// Bytes; of extensions with their type.
    Bytes(usize),
    Array(usize),
    Map(usize),
}

impl<'d> Reader<'d> {
    pub(crate) fn new(data: &'d [u8], base: u64) -> Self {
        Reader { data, at: 0, base }
    }

    /// Returns the place of the next value.
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Returns the number of bytes read.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Returns the bytes that were read since the reader was as `before`.
    pub(crate) fn since(&self, before: &Self) -> &'d [u8] {
        self.data.get(before.at..self.at).unwrap_or_default()
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.data.len()
    }

    fn take(&mut self, len: usize) -> Result<&'d [u8], Error> {
        let taken = self.at.checked_add(len).and_then(|end| self.data.get(self.at..end));
        let taken = taken.ok_or_else(|| {
            let left = self.data.len() - self.at;
            let text = format!("MessagePack: expected {len} bytes, found {left}");
            Error::new(ErrorKind::Truncated, self.offset(), text)
        })?;
        self.at += len;
        Ok(taken)
    }

    fn number(&mut self, len: usize) -> Result<u64, Error> {
        let bytes = self.take(len)?;
        Ok(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn length(&mut self, len: usize) -> Result<usize, Error> {
        let number = self.number(len)?;
        Ok(usize::try_from(number).unwrap_or(usize::MAX))
    }

    fn head(&mut self) -> Result<Head, Error> {
        let start = self.offset();
        let byte = self.take(1)?.first().copied().unwrap_or(0xc1);
        let low = |bits: u8| usize::from(byte & bits);
        Ok(match byte {
            0x00..=0x7f => Head::Unsigned(byte.into()),
            0x80..=0x8f => Head::Map(low(15)),
            0x90..=0x9f => Head::Array(low(15)),
            0xa0..=0xbf => Head::Text(low(31)),
            0xc0 | 0xc2 | 0xc3 => Head::Other,
            0xc4..=0xc6 => Head::Bytes(self.length(1 << low(3))?),
            0xc7..=0xc9 => {
                let len = self.length(1 << (low(15) - 7))?;
                // Not on machines of 32 bits.
                Head::Bytes(len.saturating_add(1))
            }
            0xca | 0xcb => {
                self.take(4 << low(1))?;
                Head::Other
            }
            0xcc..=0xcf => Head::Unsigned(self.number(1 << low(3))?),
            0xd0..=0xd3 => {
                let (len, shift) = (1_usize << low(3), 64 - (8 << low(3)));
                let number = (self.number(len)? << shift).cast_signed() >> shift;
                u64::try_from(number).map_or(Head::Negative, Head::Unsigned)
            }
            0xd4..=0xd8 => Head::Bytes((1 << (low(15) - 4)) + 1),
            0xd9..=0xdb => Head::Text(self.length(1 << (low(15) - 9))?),
            0xdc | 0xdd => Head::Array(self.length(2 << low(1))?),
            0xde | 0xdf => Head::Map(self.length(2 << low(1))?),
            0xe0..=0xff => Head::Negative,
            0xc1 => {
                return Err(Error::malformed(start, "MessagePack: the byte 0xc1 starts no value"));
            }
        })
    }

    /// Reads the number of pairs of a map. No more are there than bytes are left for.
    pub(crate) fn map(&mut self, what: &str) -> Result<usize, Error> {
        let start = self.offset();
        match self.head()? {
            Head::Map(count) => self.counted(count, 2, start),
            found => Err(unexpected(what, "a map", &found, start)),
        }
    }

    /// Reads the number of values of an array.
    pub(crate) fn array(&mut self, what: &str) -> Result<usize, Error> {
        let start = self.offset();
        match self.head()? {
            Head::Array(count) => self.counted(count, 1, start),
            found => Err(unexpected(what, "an array", &found, start)),
        }
    }

    fn counted(&self, count: usize, each: usize, start: u64) -> Result<usize, Error> {
        let left = self.data.len() - self.at;
        if count > left / each {
            let text = format!("MessagePack: {count} values do not fit in the {left} bytes left");
            return Err(Error::new(ErrorKind::Truncated, start, text));
        }
        Ok(count)
    }

    pub(crate) fn text(&mut self, what: &str) -> Result<&'d str, Error> {
        let start = self.offset();
        match self.head()? {
            Head::Text(len) => {
                let bytes = self.take(len)?;
                core::str::from_utf8(bytes)
                    .map_err(|_| Error::malformed(start, format!("{what}: text that is not UTF-8")))
            }
            found => Err(unexpected(what, "text", &found, start)),
        }
    }

    pub(crate) fn unsigned(&mut self, what: &str) -> Result<u64, Error> {
        let start = self.offset();
        match self.head()? {
            Head::Unsigned(number) => Ok(number),
            found => Err(unexpected(what, "a number that is not negative", &found, start)),
        }
    }

    /// Reads bytes.
    pub(crate) fn bytes(&mut self, what: &str) -> Result<&'d [u8], Error> {
        let start = self.offset();
        match self.head()? {
            Head::Bytes(len) => self.take(len),
            found => Err(unexpected(what, "bytes", &found, start)),
        }
    }

    /// Skips a value of any type, and returns its bytes.
    pub(crate) fn skip(&mut self) -> Result<&'d [u8], Error> {
        let from = self.at;
        // The values that are left at each level.
        let mut levels = Vec::from([1_usize]);
        while let Some(left) = levels.last_mut() {
            let Some(less) = left.checked_sub(1) else {
                levels.pop();
                continue;
            };
            *left = less;
            let start = self.offset();
            let inner = match self.head()? {
                Head::Text(len) | Head::Bytes(len) => {
                    self.take(len)?;
                    0
                }
                Head::Array(count) => self.counted(count, 1, start)?,
                Head::Map(count) => 2 * self.counted(count, 2, start)?,
                Head::Other | Head::Unsigned(_) | Head::Negative => 0,
            };
            if inner > 0 {
                if levels.len() > MOST_NESTED {
                    let text = format!("MessagePack: more than {MOST_NESTED} values in each other");
                    return Err(Error::malformed(start, text));
                }
                levels.push(inner);
            }
        }
        Ok(self.data.get(from..self.at).unwrap_or_default())
    }
}

#[cold]
fn unexpected(what: &str, expected: &str, found: &Head, offset: u64) -> Error {
    let found = match found {
        Head::Other => "another value",
        Head::Unsigned(_) => "a number",
        Head::Negative => "a negative number",
        Head::Text(_) => "text",
        Head::Bytes(_) => "bytes",
        Head::Array(_) => "an array",
        Head::Map(_) => "a map",
    };
    Error::malformed(offset, format!("{what}: expected {expected}, found {found}"))
}

/// Writes the start of a value: its length within the first byte, or after one of these bytes.
fn head(out: &mut Vec<u8>, len: usize, short: (u8, usize), one: Option<u8>, two: u8, four: u8) {
    let number = u32::try_from(len).unwrap_or(u32::MAX);
    match (u8::try_from(len), u16::try_from(len), one) {
        (Ok(len), ..) if usize::from(len) < short.1 => out.push(short.0 | len),
        (Ok(len), _, Some(one)) => out.extend([one, len]),
        (_, Ok(len), _) => {
            out.push(two);
            out.extend(len.to_be_bytes());
        }
        _ => {
            out.push(four);
            out.extend(number.to_be_bytes());
        }
    }
}

pub(crate) fn write_map(out: &mut Vec<u8>, len: usize) {
    head(out, len, (0x80, 16), None, 0xde, 0xdf);
}

pub(crate) fn write_array(out: &mut Vec<u8>, len: usize) {
    head(out, len, (0x90, 16), None, 0xdc, 0xdd);
}

pub(crate) fn write_text(out: &mut Vec<u8>, text: &str) {
    head(out, text.len(), (0xa0, 32), Some(0xd9), 0xda, 0xdb);
    out.extend_from_slice(text.as_bytes());
}

pub(crate) fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    head(out, bytes.len(), (0, 0), Some(0xc4), 0xc5, 0xc6);
    out.extend_from_slice(bytes);
}

pub(crate) fn write_unsigned(out: &mut Vec<u8>, number: u64) {
    if let Ok(byte) = u8::try_from(number) {
        match byte {
            0..0x80 => out.push(byte),
            _ => out.extend([0xcc, byte]),
        }
    } else if let Ok(number) = u16::try_from(number) {
        out.push(0xcd);
        out.extend(number.to_be_bytes());
    } else if let Ok(number) = u32::try_from(number) {
        out.push(0xce);
        out.extend(number.to_be_bytes());
    } else {
        out.push(0xcf);
        out.extend(number.to_be_bytes());
    }
}

/// Returns text that is safe to show, and no longer than a line or two: each fault of a file names its entry.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(MOST_SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(MOST_SHOWN).is_some() {
        shown.push_str("...");
    }
    shown
}

/// The most characters of a text that errors show.
const MOST_SHOWN: usize = 160;

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;
    use std::vec;

    #[test]
    fn numbers_have_their_shortest_form() {
        for (number, bytes) in [
            (0, vec![0]),
            (127, vec![127]),
            (128, vec![0xcc, 128]),
            (255, vec![0xcc, 255]),
            (256, vec![0xcd, 1, 0]),
            (65_536, vec![0xce, 0, 1, 0, 0]),
            (1 << 32, vec![0xcf, 0, 0, 0, 1, 0, 0, 0, 0]),
        ] {
            let mut out = Vec::new();
            write_unsigned(&mut out, number);
            assert_eq!(out, bytes);
            assert_eq!(Reader::new(&out, 0).unsigned("it").unwrap(), number);
        }
        // Signed forms that are not negative are numbers, too.
        for (bytes, number) in
            [(&[0xd0, 5][..], 5), (&[0xd1, 1, 0], 256), (&[0xd3, 0, 0, 0, 0, 0, 0, 0, 9], 9)]
        {
            assert_eq!(Reader::new(bytes, 0).unsigned("it").unwrap(), number);
        }
        for bytes in [&[0xd0, 0xff][..], &[0xe0], &[0xd2, 0xff, 0, 0, 0]] {
            assert!(Reader::new(bytes, 0).unsigned("it").is_err());
        }
    }

    #[test]
    fn lengths_have_their_shortest_form() {
        for len in [0, 1, 15, 16, 31, 32, 255, 256, 65_535, 65_536] {
            let text = "x".repeat(len);
            let mut out = Vec::new();
            write_text(&mut out, &text);
            let head = [1, 2, 3, 5]
                [usize::from(len > 31) + usize::from(len > 255) + usize::from(len > 65_535)];
            assert_eq!(out.len(), len + head);
            assert_eq!(Reader::new(&out, 0).text("it").unwrap(), text);
            let mut out = Vec::new();
            write_bytes(&mut out, text.as_bytes());
            assert_eq!(Reader::new(&out, 0).bytes("it").unwrap(), text.as_bytes());
            let mut out = Vec::new();
            write_array(&mut out, len);
            out.extend(vec![0; len]);
            assert_eq!(Reader::new(&out, 0).array("it").unwrap(), len);
            let mut out = Vec::new();
            write_map(&mut out, len);
            out.extend(vec![0; 2 * len]);
            assert_eq!(Reader::new(&out, 0).map("it").unwrap(), len);
            assert_eq!(Reader::new(&out, 0).skip().unwrap(), out);
        }
    }

    #[test]
    fn any_value_can_be_skipped() {
        let value = [
            &[0x9a][..],
            &[0xc0, 0xc3, 0xca, 0, 0, 0, 0],
            &[0xcb, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0xc7, 2, 9, 1, 1],
            &[0xd4, 1, 1, 0xd8, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0x81, 0xa1, b'a', 0x91, 0xc2, 0xe0],
            &[0xc4, 1, 7],
        ]
        .concat();
        let mut reader = Reader::new(&value, 0);
        assert_eq!(reader.skip().unwrap(), value);
        assert!(reader.is_at_end());
        for len in 0..value.len() {
            assert!(Reader::new(&value[..len], 0).skip().is_err(), "{len}");
        }
        assert!(Reader::new(&[0xc1], 7).skip().unwrap_err().to_string().ends_with("(at 0x7)"));
        assert!(Reader::new(&[0x91; 17], 0).skip().is_err());
        let mut nested = vec![0x91; 16];
        nested.push(0);
        assert!(Reader::new(&nested, 0).skip().is_ok());
        // Counts that the bytes cannot hold.
        assert!(Reader::new(&[0xdd, 0xff, 0xff, 0xff, 0xff, 0], 0).skip().is_err());
        assert!(Reader::new(&[0xdf, 0, 0, 0, 2, 0, 0], 0).map("it").is_err());
    }
}
