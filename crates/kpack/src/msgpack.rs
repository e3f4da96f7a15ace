//! MessagePack as kernel packs use it: values of the expected types.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use byte_parts::internal;
use codecs::msgpack::{self, Value};

use crate::error::{Error, ErrorKind};

/// The most arrays and maps in each other.
const MOST_NESTED: usize = 16;

/// A reader of values one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'d>(msgpack::Reader<'d>);

impl<'d> Reader<'d> {
    pub(crate) fn new(data: &'d [u8], base: u64) -> Self {
        Reader(msgpack::Reader::new(data, base))
    }

    /// Returns the place of the next value.
    pub(crate) fn offset(&self) -> u64 {
        self.0.offset()
    }

    /// Returns the number of bytes read.
    pub(crate) fn position(&self) -> usize {
        self.0.position()
    }

    /// Returns the bytes that were read since the reader was as `before`.
    pub(crate) fn since(&self, before: &Self) -> Result<&'d [u8], Error> {
        let bytes = self.0.since(&before.0);
        bytes.ok_or_else(|| Error::malformed(self.offset(), internal!("a value before its start")))
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.0.is_at_end()
    }

    fn next(&mut self) -> Result<Value<'d>, Error> {
        self.0.next().map_err(|error| {
            let kind = match error.kind {
                msgpack::ErrorKind::NoValue => ErrorKind::Malformed,
                _ => ErrorKind::Truncated,
            };
            Error::new(kind, error.offset, format!("MessagePack: {}", error.kind))
        })
    }

    /// Reads a value; `select` takes from it what is expected.
    fn expect<T>(
        &mut self,
        what: &str,
        expected: &str,
        select: impl Fn(Value<'d>) -> Option<T>,
    ) -> Result<T, Error> {
        let start = self.offset();
        let value = self.next()?;
        select(value).ok_or_else(|| unexpected(what, expected, value, start))
    }

    /// Reads the number of pairs of a map. No more are there than bytes are left for.
    pub(crate) fn map(&mut self, what: &str) -> Result<usize, Error> {
        self.expect(what, "a map", |value| match value {
            Value::Map(count) => usize::try_from(count).ok(),
            _ => None,
        })
    }

    /// Reads the number of values of an array.
    pub(crate) fn array(&mut self, what: &str) -> Result<usize, Error> {
        self.expect(what, "an array", |value| match value {
            Value::Array(count) => usize::try_from(count).ok(),
            _ => None,
        })
    }

    pub(crate) fn text(&mut self, what: &str) -> Result<&'d str, Error> {
        let start = self.offset();
        let bytes = self.expect(what, "text", |value| match value {
            Value::Text(bytes) => Some(bytes),
            _ => None,
        })?;
        core::str::from_utf8(bytes)
            .map_err(|_| Error::malformed(start, format!("{what}: text that is not UTF-8")))
    }

    pub(crate) fn unsigned(&mut self, what: &str) -> Result<u64, Error> {
        self.expect(what, "a number that is not negative", |value| match value {
            Value::Unsigned(number) => Some(number),
            _ => None,
        })
    }

    /// Reads bytes.
    pub(crate) fn bytes(&mut self, what: &str) -> Result<&'d [u8], Error> {
        self.expect(what, "bytes", |value| match value {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        })
    }

    /// Skips a value of any type, and returns its bytes.
    pub(crate) fn skip(&mut self) -> Result<&'d [u8], Error> {
        let before = self.clone();
        // The values that are left at each level.
        let mut levels = Vec::from([1_u64]);
        while let Some(left) = levels.last_mut() {
            let Some(less) = left.checked_sub(1) else {
                levels.pop();
                continue;
            };
            *left = less;
            let start = self.offset();
            let inner = self.next()?.members();
            if inner > 0 {
                if levels.len() > MOST_NESTED {
                    let text = format!("MessagePack: more than {MOST_NESTED} values in each other");
                    return Err(Error::malformed(start, text));
                }
                levels.push(inner);
            }
        }
        self.since(&before)
    }
}

#[cold]
fn unexpected(what: &str, expected: &str, found: Value<'_>, offset: u64) -> Error {
    let found = match found {
        Value::Unsigned(_) => "a number",
        Value::Negative(_) => "a negative number",
        Value::Text(_) => "text",
        Value::Bytes(_) => "bytes",
        Value::Array(_) => "an array",
        Value::Map(_) => "a map",
        _ => "another value",
    };
    Error::malformed(offset, format!("{what}: expected {expected}, found {found}"))
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
    fn numbers_are_not_negative() {
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
