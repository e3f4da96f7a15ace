//! Sparse files: a map of the parts that are stored, with zeros between them.

use std::io::{self, Read};

use super::BLOCK;
use crate::reading::at_most;

/// The parts of a sparse file that are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SparseMap {
    /// Offset and size, in ascending order. None is empty.
    parts: Vec<(u64, u64)>,
    size: u64,
}

impl SparseMap {
    /// Checks the parts of a file of `size` bytes, with `stored` bytes in the tar file.
    pub(crate) fn new(parts: &[(u64, u64)], size: u64, stored: u64) -> Result<Self, String> {
        let mut kept = Vec::new();
        let (mut end, mut total) = (0, 0u64);
        let mut is_aligned = true;
        for &(offset, len) in parts {
            let next = offset.checked_add(len).filter(|&next| next <= size);
            let Some(next) = next else {
                return Err(format!("{len} bytes at {offset} reach past its size of {size}"));
            };
            if offset < end {
                return Err(format!("the part at {offset} starts before the end of another"));
            }
            end = next;
            if len == 0 {
                continue;
            }
            // Some programs fill a part up to a block, others do not: all parts but the last must have whole blocks.
            if !is_aligned {
                return Err("a part before the last does not fill its blocks".into());
            }
            is_aligned = len % BLOCK as u64 == 0;
            // No overflow: the parts do not overlap.
            total += len;
            kept.push((offset, len));
        }
        if total != stored {
            return Err(format!("it maps {total} bytes, {stored} are stored"));
        }
        Ok(SparseMap { parts: kept, size })
    }

    /// Returns the size of the file.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Starts at the first byte of the file.
    pub(crate) fn expand(self) -> Expansion {
        Expansion { map: self, next: 0, at: 0 }
    }
}

/// The contents of a sparse file, made from the stored parts.
#[derive(Debug)]
pub(crate) struct Expansion {
    map: SparseMap,
    /// Index of the part at or after this place.
    next: usize,
    at: u64,
}

impl Expansion {
    /// Reads contents; `stored` gives the bytes of the parts.
    pub(crate) fn read(
        &mut self,
        buf: &mut [u8],
        stored: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let (start, end) = match self.map.parts.get(self.next) {
            Some(&(start, len)) => (start, start + len),
            None => (self.map.size, self.map.size),
        };
        let is_stored = self.at >= start;
        let left = if is_stored { end - self.at } else { start - self.at };
        let buf = at_most(buf, left);
        if buf.is_empty() {
            return Ok(0);
        }
        let read = if is_stored {
            stored(buf)?
        } else {
            buf.fill(0);
            buf.len()
        };
        self.at += read as u64;
        if is_stored && self.at == end {
            self.next += 1;
        }
        Ok(read)
    }
}

/// An [`Expansion`] with the reader of its parts.
pub(crate) struct Expanded<R> {
    pub(crate) expansion: Expansion,
    pub(crate) stored: R,
}

impl<R: Read> Read for Expanded<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.expansion.read(buf, |part| self.stored.read(part))
    }
}

/// Returns the number of lines of a map of version 1.0, with which the contents start: the count of parts, and two for each
/// part. The first line must be there as a whole.
pub(crate) fn count_lines(text: &[u8]) -> Result<u64, String> {
    let count = lines(text).next().flatten().ok_or_else(not_lines)?;
    count.checked_mul(2).and_then(|lines| lines.checked_add(1)).ok_or_else(not_lines)
}

/// Parses all lines of a map of version 1.0.
pub(crate) fn parse_lines(text: &[u8]) -> Result<Vec<(u64, u64)>, String> {
    let count = count_lines(text)?;
    let mut numbers = lines(text).skip(1);
    let mut next = || numbers.next().flatten().ok_or_else(not_lines);
    (0..count / 2).map(|_| Ok((next()?, next()?))).collect()
}

/// Returns the number in each line.
fn lines(text: &[u8]) -> impl Iterator<Item = Option<u64>> {
    text.split_inclusive(|&byte| byte == b'\n').map(|line| decimal(line.strip_suffix(b"\n")?))
}

fn not_lines() -> String {
    "expected numbers in lines".to_owned()
}

/// Parses a number of digits only.
pub(crate) fn decimal(text: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(text).ok().filter(|text| !text.starts_with('+'))?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::{Expanded, SparseMap, count_lines, parse_lines};

    #[test]
    fn maps_are_checked_and_expanded() {
        let map = |parts: &[(u64, u64)], size, stored| SparseMap::new(parts, size, stored);
        for (parts, size, stored) in [
            (&[(0, 512), (600, 3)][..], 700, 514),
            (&[(0, 512), (600, 101)], 700, 613),
            (&[(512, 512), (0, 512)], 1024, 1024),
            (&[(0, 512), (511, 1)], 1024, 513),
            (&[(0, 3), (600, 3)], 700, 6),
            (&[(u64::MAX, 1)], 700, 1),
            (&[(0, u64::MAX)], u64::MAX, 0),
        ] {
            map(parts, size, stored).unwrap_err();
        }
        let text = [b'x'; 515];
        let expansion = map(&[(1, 512), (600, 3), (700, 0)], 700, 515).unwrap().expand();
        let mut found = Vec::new();
        Expanded { expansion, stored: &text[..] }.read_to_end(&mut found).unwrap();
        let mut expected = vec![0; 700];
        expected[1..513].fill(b'x');
        expected[600..603].fill(b'x');
        assert_eq!(found, expected);
        let mut empty = Vec::new();
        let expansion = map(&[], 0, 0).unwrap().expand();
        Expanded { expansion, stored: &text[..] }.read_to_end(&mut empty).unwrap();
        assert!(empty.is_empty());
    }

    #[test]
    fn maps_of_lines_are_parsed() {
        let text = b"2\n0\n512\n600\n3\n\0\0";
        assert_eq!((count_lines(text), parse_lines(text)), (Ok(5), Ok(vec![(0, 512), (600, 3)])));
        assert_eq!(parse_lines(b"0\n"), Ok(Vec::new()));
        for bad in [&b""[..], b"2", b"x\n", b"18446744073709551615\n", b"+1\n"] {
            count_lines(bad).unwrap_err();
        }
        for bad in [&b"1\n0\n"[..], b"1\n0\n512", b"1\n-1\n3\n", b"1\n\n3\n"] {
            parse_lines(bad).unwrap_err();
        }
    }
}
