//! MessagePack, as AMD's metadata has it: bounded, without recursion.

use crate::fault::Fault;

/// A value, or the start of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Nil,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Text(&'a [u8]),
    /// The number of values that follow.
    Array(u64),
    /// The number of keys with a value that follow.
    Map(u64),
    /// Binary data, an extension or a number with a fraction, which metadata has no use for.
    Other,
}

/// A reader of values, one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The place of the first byte in the image.
    start: u64,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], start: u64) -> Self {
        Reader { bytes, at: 0, start }
    }

    /// Returns the place of the next value in the image.
    pub(super) fn offset(&self) -> u64 {
        self.start + self.at as u64
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    fn left(&self) -> u64 {
        (self.bytes.len() - self.at) as u64
    }

    /// Returns the next value; of an array or a map its length only. Each member of these takes a byte at least.
    pub(super) fn next(&mut self) -> Result<Value<'a>, Fault> {
        let start = self.offset();
        let [byte] = self.take::<1>()?;
        let value = match byte {
            0x00..=0x7f => Value::Unsigned(byte.into()),
            0x80..=0x8f => Value::Map(u64::from(byte & 0xf)),
            0x90..=0x9f => Value::Array(u64::from(byte & 0xf)),
            0xa0..=0xbf => Value::Text(self.slice(u64::from(byte & 0x1f))?),
            0xc0 => Value::Nil,
            0xc1 => {
                return Err(Fault {
                    offset: start,
                    expected: "a value of MessagePack",
                    found: 0xc1,
                });
            }
            0xc2 => Value::Bool(false),
            0xc3 => Value::Bool(true),
            0xc4..=0xc6 => {
                let len = self.number(byte - 0xc4)?;
                self.other(len)?
            }
            0xc7..=0xc9 => {
                let len = self.number(byte - 0xc7)?;
                self.other(len + 1)?
            }
            0xca => self.other(4)?,
            0xcb => self.other(8)?,
            0xcc..=0xcf => Value::Unsigned(self.number(byte - 0xcc)?),
            0xd0 => Value::Signed(i64::from(i8::from_be_bytes(self.take()?))),
            0xd1 => Value::Signed(i64::from(i16::from_be_bytes(self.take()?))),
            0xd2 => Value::Signed(i64::from(i32::from_be_bytes(self.take()?))),
            0xd3 => Value::Signed(i64::from_be_bytes(self.take()?)),
            0xd4..=0xd8 => self.other((1 << (byte - 0xd4)) + 1)?,
            0xd9..=0xdb => {
                let len = self.number(byte - 0xd9)?;
                Value::Text(self.slice(len)?)
            }
            0xdc | 0xdd => Value::Array(self.number(byte - 0xdc + 1)?),
            0xde | 0xdf => Value::Map(self.number(byte - 0xde + 1)?),
            0xe0..=0xff => Value::Signed(i64::from(i8::from_be_bytes([byte]))),
        };
        let members = match value {
            Value::Array(count) => count,
            Value::Map(count) => 2 * count,
            _ => 0,
        };
        if members > self.left() {
            let expected = "an array or a map that ends in the note";
            return Err(Fault { offset: start, expected, found: members });
        }
        Ok(match value {
            Value::Signed(number) => u64::try_from(number).map_or(value, Value::Unsigned),
            value => value,
        })
    }

    /// Passes over a value with all of its members.
    pub(super) fn skip(&mut self) -> Result<(), Fault> {
        let mut left = 1_u64;
        while left > 0 {
            left -= 1;
            // Arrays may state more values in total than there are bytes.
            left = left.saturating_add(match self.next()? {
                Value::Array(count) => count,
                Value::Map(count) => 2 * count,
                _ => 0,
            });
        }
        Ok(())
    }

    /// Reads a number of 1, 2, 4 or 8 bytes, by its logarithm.
    fn number(&mut self, log: u8) -> Result<u64, Fault> {
        Ok(match log {
            0 => u8::from_be_bytes(self.take()?).into(),
            1 => u16::from_be_bytes(self.take()?).into(),
            2 => u32::from_be_bytes(self.take()?).into(),
            _ => u64::from_be_bytes(self.take()?),
        })
    }

    fn other(&mut self, len: u64) -> Result<Value<'a>, Fault> {
        self.slice(len)?;
        Ok(Value::Other)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let bytes = self.slice(N as u64)?;
        bytes.first_chunk().copied().ok_or_else(|| self.cut(N as u64))
    }

    fn slice(&mut self, len: u64) -> Result<&'a [u8], Fault> {
        let end = usize::try_from(len).ok().and_then(|len| self.at.checked_add(len));
        let found = end.and_then(|end| self.bytes.get(self.at..end));
        let found = found.ok_or_else(|| self.cut(len))?;
        self.at += found.len();
        Ok(found)
    }

    fn cut(&self, len: u64) -> Fault {
        let offset = self.offset();
        Fault { offset, expected: "a value that ends in the note", found: len }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    fn all(bytes: &[u8]) -> Result<Vec<Value<'_>>, Fault> {
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
                vec![Signed(-1), Signed(-128), Signed(-256), Unsigned(5)],
            ),
            (
                &[
                    0xd2, 0xff, 0xff, 0xff, 0xff, 0xd3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                    0xfe,
                ],
                vec![Signed(-1), Signed(-2)],
            ),
            (
                &[0xa2, b'a', b'b', 0xd9, 1, b'c', 0xda, 0, 1, b'd', 0xdb, 0, 0, 0, 0],
                vec![Text(b"ab"), Text(b"c"), Text(b"d"), Text(b"")],
            ),
            (&[0xc0, 0xc2, 0xc3], vec![Nil, Bool(false), Bool(true)]),
            (
                &[0xc4, 1, 7, 0xc7, 1, 9, 7, 0xd4, 9, 7, 0xca, 0, 0, 0, 0],
                vec![Other, Other, Other, Other],
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
    fn what_does_not_end_is_a_fault_at_its_place() {
        for (bytes, offset, found) in [
            (&[0xcd, 1][..], 0x101, 2),
            (&[1, 0xa5, b'a'], 0x102, 5),
            (&[0xc1], 0x100, 0xc1),
            (&[0xdd, 0xff, 0xff, 0xff, 0xff, 0], 0x100, 0xffff_ffff),
            (&[0x82, 1, 2, 3], 0x100, 4),
            (&[0xdb, 0xff, 0xff, 0xff, 0xff], 0x105, 0xffff_ffff),
        ] {
            let fault = all(bytes).unwrap_err();
            assert_eq!((fault.offset, fault.found), (offset, found), "{bytes:x?}");
        }
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
}
