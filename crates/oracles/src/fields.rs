//! Files written field by field, whose numbers can be damaged as such: counts, offsets, sizes, indexes.

use std::ops::Range;

use arbitrary::{Result, Unstructured};

/// The encoding of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The lowest byte first.
    Little,
    /// The highest byte first.
    Big,
    /// Digits, followed by bytes of this kind.
    Decimal(u8),
    /// Five bytes of seven bits each.
    Leb128,
}

/// Bytes, and where the numbers in them are.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    /// The bytes so far.
    pub bytes: Vec<u8>,
    /// The numbers in them, in order.
    pub numbers: Vec<(Range<usize>, Form)>,
    /// `true` if numbers that are added have their highest byte first.
    pub big: bool,
}

impl Fields {
    /// Creates an empty file.
    pub fn new(big: bool) -> Self {
        Fields { big, ..Fields::default() }
    }

    /// Returns fields that start with these bytes, without numbers.
    pub fn of(bytes: Vec<u8>) -> Self {
        Fields { bytes, ..Fields::default() }
    }

    /// Returns the bytes so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether there are no bytes yet.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Adds bytes that are not a number.
    pub fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Adds bytes and the numbers in them.
    pub fn append(&mut self, fields: &Fields) -> &mut Self {
        let at = self.len();
        let moved =
            |(range, form): &(Range<usize>, Form)| (range.start + at..range.end + at, *form);
        self.numbers.extend(fields.numbers.iter().map(moved));
        self.put(&fields.bytes)
    }

    /// Adds bytes until their number is a multiple of `align`.
    pub fn pad(&mut self, align: usize, byte: u8) -> &mut Self {
        self.bytes.resize(self.len().next_multiple_of(align), byte);
        self
    }

    /// Adds a number of `width` bytes, 8 at most.
    pub fn number(&mut self, number: u64, width: usize) -> &mut Self {
        let form = if self.big { Form::Big } else { Form::Little };
        self.numbers.push((self.len()..self.len() + width, form));
        let (little, big) = (number.to_le_bytes(), number.to_be_bytes());
        if self.big { self.put(&big[8 - width..]) } else { self.put(&little[..width]) }
    }

    /// Adds a number of two bytes.
    pub fn half(&mut self, number: usize) -> &mut Self {
        self.number(number as u64, 2)
    }

    /// Adds a number of four bytes.
    pub fn word(&mut self, number: usize) -> &mut Self {
        self.number(number as u64, 4)
    }

    /// Adds a number of eight bytes.
    pub fn long(&mut self, number: usize) -> &mut Self {
        self.number(number as u64, 8)
    }

    /// Adds a number in digits, filled up with bytes of one kind.
    pub fn decimal(&mut self, number: usize, width: usize, fill: u8) -> &mut Self {
        let at = self.len();
        self.numbers.push((at..at + width, Form::Decimal(fill)));
        self.put(&vec![fill; width]);
        write(&mut self.bytes[at..], Form::Decimal(fill), number as u64);
        self
    }

    /// Adds a number of 35 bits, seven in each byte.
    pub fn leb128(&mut self, number: usize) -> &mut Self {
        let at = self.len();
        self.numbers.push((at..at + 5, Form::Leb128));
        self.put(&[0; 5]);
        write(&mut self.bytes[at..], Form::Leb128, number as u64);
        self
    }

    /// Says that there is a number in little-endian order.
    pub fn mark(&mut self, at: usize, width: usize) {
        if at + width <= self.len() {
            self.numbers.push((at..at + width, Form::Little));
        }
    }

    /// Changes some of the numbers, or none. Returns how many.
    pub fn damage(&mut self, u: &mut Unstructured<'_>) -> Result<usize> {
        let edits = if self.numbers.is_empty() { 0 } else { u.int_in_range(0..=4)? };
        for _ in 0..edits {
            let (range, form) = u.choose(&self.numbers)?.clone();
            let (other, other_form) = u.choose(&self.numbers)?.clone();
            let old = read(&self.bytes[range.clone()], form);
            let new = match u.int_in_range(0..=7)? {
                0 => old.wrapping_add(u.int_in_range(1..=64)?),
                1 => old.wrapping_sub(u.int_in_range(1..=64)?),
                2 => u.int_in_range(0..=self.len() as u64 + 1)?,
                3 => self.len() as u64 - old.min(self.len() as u64),
                4 => read(&self.bytes[other], other_form),
                5 => u64::MAX >> u.int_in_range(0..=63)?,
                6 => u64::from(u.arbitrary::<u16>()?),
                _ => u.arbitrary()?,
            };
            write(&mut self.bytes[range], form, new);
        }
        Ok(edits)
    }

    /// Returns the bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads a number that fills these bytes.
pub fn read(bytes: &[u8], form: Form) -> u64 {
    match form {
        Form::Little => bytes.iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte)),
        Form::Big => bytes.iter().fold(0, |n, &byte| n << 8 | u64::from(byte)),
        Form::Leb128 => bytes.iter().rev().fold(0, |n, &byte| n << 7 | u64::from(byte & 0x7f)),
        Form::Decimal(_) => {
            let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit());
            digits.fold(0_u64, |n, digit| n.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')))
        }
    }
}

/// Writes a number over these bytes.
pub fn write(bytes: &mut [u8], form: Form, number: u64) {
    let width = bytes.len();
    match form {
        Form::Little => bytes.copy_from_slice(&number.to_le_bytes()[..width]),
        Form::Big => bytes.copy_from_slice(&number.to_be_bytes()[8 - width..]),
        Form::Leb128 => {
            for (n, byte) in bytes.iter_mut().enumerate() {
                let more = if n + 1 < width { 0x80 } else { 0 };
                *byte = (number >> (7 * n)) as u8 & 0x7f | more;
            }
        }
        Form::Decimal(fill) => {
            let digits = number.to_string().into_bytes().into_iter();
            for (byte, digit) in bytes.iter_mut().zip(digits.chain(std::iter::repeat(fill))) {
                *byte = digit;
            }
        }
    }
}

/// Changes up to `most` bytes, which the fuzzer chooses.
pub(crate) fn change_bytes(u: &mut Unstructured<'_>, bytes: &mut [u8], most: usize) {
    for _ in 0..u.int_in_range(1..=most).unwrap_or(1) {
        let Ok(at) = u.int_in_range(0..=bytes.len() - 1) else { break };
        let Ok(byte) = u.arbitrary::<u8>() else { break };
        bytes[at] = byte;
    }
}
