//! MessagePack: a reader without recursion that is bounded, and a writer of the shortest forms.
//!
//! ```
//! use codecs::msgpack::{Reader, Value, Writer};
//!
//! let mut writer = Writer::new();
//! writer.map(1);
//! writer.text("size");
//! writer.unsigned(300);
//! let bytes = writer.finish()?;
//!
//! let mut reader = Reader::new(&bytes, 0);
//! assert_eq!(reader.next()?, Value::Map(1));
//! assert_eq!(reader.next()?, Value::Text(b"size"));
//! assert_eq!(reader.next()?, Value::Unsigned(300));
//! assert!(reader.is_at_end());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use alloc::vec::Vec;
use core::fmt;

/// A value, or the start of one with members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value<'d> {
    /// Nothing.
    Nil,
    /// A truth value.
    Bool(bool),
    /// A number that is not negative.
    Unsigned(u64),
    /// A negative number.
    Negative(i64),
    /// A number with a fraction, which is not read.
    Fraction,
    /// Text, not checked.
    Text(&'d [u8]),
    /// Bytes; of extensions with their type.
    Bytes(&'d [u8]),
    /// An array of this many values, which follow.
    Array(u32),
    /// A map of this many keys, each with a value, which follow.
    Map(u32),
}

impl Value<'_> {
    /// Returns the number of values that follow as members: keys count.
    #[must_use]
    pub fn members(self) -> u64 {
        match self {
            Value::Array(count) => count.into(),
            Value::Map(count) => 2 * u64::from(count),
            _ => 0,
        }
    }
}

/// An error of reading, with its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("MessagePack: {kind} (at {offset:#x})")]
#[non_exhaustive]
pub struct Error {
    /// The place.
    pub offset: u64,
    /// The kind of the error.
    pub kind: ErrorKind,
}

/// Kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The byte 0xc1 starts no value.
    #[error("the byte 0xc1 starts no value")]
    NoValue,
    /// A value does not end in the bytes.
    #[error("expected {expected} bytes, found {left}")]
    Truncated {
        /// The bytes that the value needs.
        expected: u64,
        /// The bytes that are left.
        left: u64,
    },
    /// An array or a map has more members than bytes are left for.
    #[error("{count} values do not fit in the {left} bytes left")]
    Counted {
        /// The values of the array, or the pairs of the map.
        count: u32,
        /// The values, where a pair is two.
        members: u64,
        /// The bytes that are left.
        left: u64,
    },
}

/// A reader of values one after the other.
#[derive(Clone, Copy)]
pub struct Reader<'d> {
    /// Length of the data, and what is left of it.
    len: usize,
    rest: &'d [u8],
    /// The place of the data, for errors.
    base: u64,
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reader { len, rest, base } = self;
        let mut shown = f.debug_struct("Reader");
        shown.field("len", len).field("rest", &rest.len()).field("base", base).finish()
    }
}

impl<'d> Reader<'d> {
    /// Returns a reader of data that lies at this place.
    #[must_use]
    pub fn new(data: &'d [u8], base: u64) -> Self {
        Reader { len: data.len(), rest: data, base }
    }

    /// Returns the place of the next value.
    #[must_use]
    pub fn offset(&self) -> u64 {
        // The base is the caller's word, and may be any number.
        self.base.saturating_add(self.position() as u64)
    }

    /// Returns the number of bytes read.
    #[must_use]
    pub fn position(&self) -> usize {
        self.len - self.rest.len()
    }

    /// Returns the bytes that were read since the reader was as `before`; `None` if it has read less than that one.
    #[must_use]
    pub fn since(&self, before: &Self) -> Option<&'d [u8]> {
        before.rest.get(..before.rest.len().checked_sub(self.rest.len())?)
    }

    /// Returns whether everything was read.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    fn left(&self) -> u64 {
        self.rest.len() as u64
    }

    fn truncated(&self, expected: u64) -> Error {
        let kind = ErrorKind::Truncated { expected, left: self.left() };
        Error { offset: self.offset(), kind }
    }

    fn take(&mut self, len: u64) -> Result<&'d [u8], Error> {
        let cut = usize::try_from(len).ok().and_then(|len| self.rest.split_at_checked(len));
        let (taken, rest) = cut.ok_or_else(|| self.truncated(len))?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads the bytes of a number.
    fn number<const LEN: usize>(&mut self) -> Result<[u8; LEN], Error> {
        let cut = self.rest.split_first_chunk();
        let (number, rest) = cut.ok_or_else(|| self.truncated(LEN as u64))?;
        self.rest = rest;
        Ok(*number)
    }

    /// Reads a length of one, two or four bytes.
    fn length(&mut self, log: u8) -> Result<u32, Error> {
        Ok(match log {
            0 => u8::from_be_bytes(self.number()?).into(),
            1 => u16::from_be_bytes(self.number()?).into(),
            _ => u32::from_be_bytes(self.number()?),
        })
    }

    /// Reads the next value; of an array or a map its length only. No more members are there than bytes are left for.
    ///
    /// # Errors
    ///
    /// [`NoValue`](ErrorKind::NoValue), [`Truncated`](ErrorKind::Truncated), [`Counted`](ErrorKind::Counted).
    #[allow(clippy::should_implement_trait, reason = "an iterator has no errors")]
    pub fn next(&mut self) -> Result<Value<'d>, Error> {
        let start = self.offset();
        let [byte] = self.number()?;
        let low = |bits: u8| u32::from(byte & bits);
        let value = match byte {
            0x00..=0x7f => Value::Unsigned(byte.into()),
            0x80..=0x8f => Value::Map(low(15)),
            0x90..=0x9f => Value::Array(low(15)),
            0xa0..=0xbf => Value::Text(self.take(low(31).into())?),
            0xc0 => Value::Nil,
            0xc1 => return Err(Error { offset: start, kind: ErrorKind::NoValue }),
            0xc2 | 0xc3 => Value::Bool(byte == 0xc3),
            0xc4..=0xc6 => self.bytes(byte - 0xc4, 0)?,
            0xc7..=0xc9 => self.bytes(byte - 0xc7, 1)?,
            0xca | 0xcb => {
                self.take(4 << low(1))?;
                Value::Fraction
            }
            0xcc..=0xce => Value::Unsigned(self.length(byte - 0xcc)?.into()),
            0xcf => Value::Unsigned(u64::from_be_bytes(self.number()?)),
            0xd0 => signed(i8::from_be_bytes(self.number()?).into()),
            0xd1 => signed(i16::from_be_bytes(self.number()?).into()),
            0xd2 => signed(i32::from_be_bytes(self.number()?).into()),
            0xd3 => signed(i64::from_be_bytes(self.number()?)),
            0xd4..=0xd8 => Value::Bytes(self.take((1 << (byte - 0xd4)) + 1)?),
            0xd9..=0xdb => {
                let len = self.length(byte - 0xd9)?;
                Value::Text(self.take(len.into())?)
            }
            0xdc | 0xdd => Value::Array(self.length(byte - 0xdc + 1)?),
            0xde | 0xdf => Value::Map(self.length(byte - 0xde + 1)?),
            0xe0..=0xff => signed(byte.cast_signed().into()),
        };
        let (members, left) = (value.members(), self.left());
        match value {
            Value::Array(count) | Value::Map(count) if members > left => {
                Err(Error { offset: start, kind: ErrorKind::Counted { count, members, left } })
            }
            _ => Ok(value),
        }
    }

    /// Reads bytes after their length, and a type of this length.
    fn bytes(&mut self, log: u8, kind: u64) -> Result<Value<'d>, Error> {
        let len = self.length(log)?;
        Ok(Value::Bytes(self.take(u64::from(len) + kind)?))
    }

    /// Passes over a value with all of its members, however deep they are nested.
    ///
    /// # Errors
    ///
    /// Errors of [`next`](Self::next).
    pub fn skip(&mut self) -> Result<(), Error> {
        let mut left = 1_u64;
        while left > 0 {
            let members = self.next()?.members();
            // Each takes at least a byte, and there are not as many.
            left = (left - 1).checked_add(members).ok_or_else(|| self.truncated(u64::MAX))?;
        }
        Ok(())
    }
}

fn signed(number: i64) -> Value<'static> {
    u64::try_from(number).map_or(Value::Negative(number), Value::Unsigned)
}

/// A text, bytes, an array or a map that is longer than 32 bits can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("MessagePack: a value of {len} bytes or members, expected {} at most", u32::MAX)]
#[non_exhaustive]
pub struct TooLong {
    /// The bytes or members.
    pub len: u64,
}

/// A writer of values one after the other, each in its shortest form.
#[derive(Clone, Default)]
pub struct Writer {
    out: Vec<u8>,
    /// The first value that was too long. It and its contents were not written.
    fault: Option<TooLong>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Writer { out, fault } = self;
        f.debug_struct("Writer").field("len", &out.len()).field("fault", fault).finish()
    }
}

impl Writer {
    /// Starts without a value.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the bytes of all values.
    ///
    /// # Errors
    ///
    /// [`TooLong`] for the first value whose length has no form.
    pub fn finish(self) -> Result<Vec<u8>, TooLong> {
        self.fault.map_or(Ok(self.out), Err)
    }

    /// Writes the start of a value: its length within the first byte, or after one of these bytes; then contents.
    fn value(
        &mut self,
        len: usize,
        short: (u8, usize),
        one: Option<u8>,
        [two, four]: [u8; 2],
        contents: &[u8],
    ) {
        match (u8::try_from(len), u16::try_from(len), one) {
            (Ok(len), ..) if usize::from(len) < short.1 => self.out.push(short.0 | len),
            (Ok(len), _, Some(one)) => self.out.extend([one, len]),
            (_, Ok(len), _) => {
                self.out.push(two);
                self.out.extend(len.to_be_bytes());
            }
            _ => {
                let Ok(len) = u32::try_from(len) else {
                    self.fault.get_or_insert(TooLong { len: len as u64 });
                    return;
                };
                self.out.push(four);
                self.out.extend(len.to_be_bytes());
            }
        }
        self.out.extend_from_slice(contents);
    }

    /// Writes the start of a map of this many keys; each with its value follows.
    pub fn map(&mut self, len: usize) {
        self.value(len, (0x80, 16), None, [0xde, 0xdf], &[]);
    }

    /// Writes the start of an array of this many values, which follow.
    pub fn array(&mut self, len: usize) {
        self.value(len, (0x90, 16), None, [0xdc, 0xdd], &[]);
    }

    /// Writes text.
    pub fn text(&mut self, text: &str) {
        self.value(text.len(), (0xa0, 32), Some(0xd9), [0xda, 0xdb], text.as_bytes());
    }

    /// Writes bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.value(bytes.len(), (0, 0), Some(0xc4), [0xc5, 0xc6], bytes);
    }

    /// Writes a number.
    pub fn unsigned(&mut self, number: u64) {
        if let Ok(byte) = u8::try_from(number) {
            match byte {
                0..0x80 => self.out.push(byte),
                _ => self.out.extend([0xcc, byte]),
            }
        } else if let Ok(number) = u16::try_from(number) {
            self.out.push(0xcd);
            self.out.extend(number.to_be_bytes());
        } else if let Ok(number) = u32::try_from(number) {
            self.out.push(0xce);
            self.out.extend(number.to_be_bytes());
        } else {
            self.out.push(0xcf);
            self.out.extend(number.to_be_bytes());
        }
    }

    /// Writes values that are written already.
    pub fn written(&mut self, values: &[u8]) {
        self.out.extend_from_slice(values);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use std::string::ToString;

    use super::*;

    fn written(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
        let mut writer = Writer::new();
        write(&mut writer);
        writer.finish().unwrap()
    }

    fn all(bytes: &[u8]) -> Result<Vec<Value<'_>>, Error> {
        let mut reader = Reader::new(bytes, 0x100);
        let mut values = Vec::new();
        while !reader.is_at_end() {
            values.push(reader.next()?);
        }
        Ok(values)
    }

    #[test]
    fn values_of_all_kinds_are_read() {
        use Value::*;
        for (bytes, values) in [
            (
                &[0x7f, 0xcc, 0x80, 0xcd, 1, 0, 0xce, 0, 1, 0, 0][..],
                vec![Unsigned(0x7f), Unsigned(0x80), Unsigned(0x100), Unsigned(0x1_0000)],
            ),
            (&[0xcf, 0, 0, 0, 1, 0, 0, 0, 0], vec![Unsigned(1 << 32)]),
            (
                &[0xff, 0xd0, 0x80, 0xd1, 0xff, 0, 0xd0, 5],
                vec![Negative(-1), Negative(-128), Negative(-256), Unsigned(5)],
            ),
            (
                &[
                    0xd2, 0xff, 0xff, 0xff, 0xff, 0xd3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                    0xfe,
                ],
                vec![Negative(-1), Negative(-2)],
            ),
            (
                &[0xa2, b'a', b'b', 0xd9, 1, b'c', 0xda, 0, 1, b'd', 0xdb, 0, 0, 0, 0],
                vec![Text(b"ab"), Text(b"c"), Text(b"d"), Text(b"")],
            ),
            (&[0xc0, 0xc2, 0xc3], vec![Nil, Bool(false), Bool(true)]),
            (
                &[0xc4, 1, 7, 0xc7, 1, 9, 7, 0xd4, 9, 7, 0xca, 0, 0, 0, 0],
                vec![Bytes(&[7]), Bytes(&[9, 7]), Bytes(&[9, 7]), Fraction],
            ),
            (
                &[0x92, 1, 2, 0xdc, 0, 1, 3, 0x81, 4, 5, 0xde, 0, 0],
                vec![
                    Array(2),
                    Unsigned(1),
                    Unsigned(2),
                    Array(1),
                    Unsigned(3),
                    Map(1),
                    Unsigned(4),
                    Unsigned(5),
                    Map(0),
                ],
            ),
        ] {
            assert_eq!(all(bytes), Ok(values), "{bytes:x?}");
        }
    }

    #[test]
    fn what_does_not_end_is_an_error_at_its_place() {
        let cut = |expected, left| ErrorKind::Truncated { expected, left };
        let counted = |count, members, left| ErrorKind::Counted { count, members, left };
        for (bytes, offset, kind) in [
            (&[0xcd, 1][..], 0x101, cut(2, 1)),
            (&[1, 0xa5, b'a'], 0x102, cut(5, 1)),
            (&[0xc1], 0x100, ErrorKind::NoValue),
            (&[0xdd, 0xff, 0xff, 0xff, 0xff, 0], 0x100, counted(0xffff_ffff, 0xffff_ffff, 1)),
            (&[0x82, 1, 2, 3], 0x100, counted(2, 4, 3)),
            (&[0xdb, 0xff, 0xff, 0xff, 0xff], 0x105, cut(0xffff_ffff, 0)),
        ] {
            assert_eq!(all(bytes), Err(Error { offset, kind }), "{bytes:x?}");
        }
        let text = "MessagePack: the byte 0xc1 starts no value (at 0x100)";
        assert_eq!(all(&[0xc1]).unwrap_err().to_string(), text);
    }

    /// Nested arrays end `llvm-readobj` 22.
    #[test]
    fn nesting_costs_nothing() {
        let mut bytes = vec![0x91; 200_000];
        bytes.push(0);
        let mut reader = Reader::new(&bytes, 0);
        assert_eq!(reader.skip(), Ok(()));
        assert!(reader.is_at_end());
        bytes.pop();
        assert!(Reader::new(&bytes, 0).skip().is_err());
    }

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
            let out = written(|writer| writer.unsigned(number));
            assert_eq!(out, bytes);
            assert_eq!(all(&out), Ok(vec![Value::Unsigned(number)]));
        }
    }

    #[test]
    fn lengths_have_their_shortest_form() {
        for len in [0, 1, 15, 16, 31, 32, 255, 256, 65_535, 65_536] {
            let text = "x".repeat(len);
            let out = written(|writer| writer.text(&text));
            let head = [1, 2, 3, 5]
                [usize::from(len > 31) + usize::from(len > 255) + usize::from(len > 65_535)];
            assert_eq!(out.len(), len + head);
            assert_eq!(all(&out), Ok(vec![Value::Text(text.as_bytes())]));
            let out = written(|writer| writer.bytes(text.as_bytes()));
            assert_eq!(all(&out), Ok(vec![Value::Bytes(text.as_bytes())]));
            for (write, each) in [(Writer::array as fn(&mut Writer, usize), 1), (Writer::map, 2)] {
                let out = written(|writer| {
                    write(writer, len);
                    writer.written(&vec![0; each * len]);
                });
                let mut reader = Reader::new(&out, 0);
                let before = reader;
                assert_eq!(reader.next().unwrap().members(), (each * len) as u64);
                let mut reader = before;
                reader.skip().unwrap();
                assert_eq!(reader.since(&before), Some(&out[..]));
                assert_eq!(before.since(&reader), None);
                assert_eq!(reader.position(), out.len());
            }
        }
    }

    #[test]
    fn a_length_without_a_form_is_an_error() {
        let largest = u32::MAX as usize;
        assert_eq!(written(|writer| writer.array(largest)), [0xdd, 0xff, 0xff, 0xff, 0xff]);
        let Some(len) = largest.checked_add(1) else { return };
        for write in [Writer::array as fn(&mut Writer, usize), Writer::map] {
            let mut writer = Writer::new();
            write(&mut writer, len);
            writer.text("more");
            assert_eq!(writer.finish(), Err(TooLong { len: 1 << 32 }));
        }
    }
}
