//! The string table as LLVM's ELF string tables are made: each string once, and a string that
//! another one ends with inside that one.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;

/// The bytes of a string table and where in it each string starts.
pub(crate) struct StringTable {
    /// In the order of the strings.
    offsets: Vec<u64>,
    bytes: Vec<u8>,
}

impl StringTable {
    pub(crate) fn new<'a>(strings: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut strings: Vec<_> =
            strings.enumerate().map(|(index, string)| (end(string), string, index)).collect();
        // The ends decide almost always, and lie side by side.
        strings.sort_unstable_by(|(a_end, a, _), (b_end, b, _)| {
            b_end.cmp(a_end).then_with(|| compare(a, b))
        });
        let mut bytes = vec![0];
        let mut last: &[u8] = &[];
        let mut offsets = vec![0; strings.len()];
        for (_, string, index) in strings {
            let offset = if string.is_empty() {
                0
            } else if last.ends_with(string) {
                // `last` lies at the end, with its NUL.
                bytes.len() - string.len() - 1
            } else {
                let offset = bytes.len();
                bytes.extend_from_slice(string);
                bytes.push(0);
                last = string;
                offset
            };
            if let Some(of_string) = offsets.get_mut(index) {
                *of_string = offset as u64;
            }
        }
        Self { offsets, bytes }
    }

    /// Returns the table; its first byte is NUL.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the offsets of the strings that the table was made of, in their order.
    pub(crate) fn offsets(&self) -> &[u64] {
        &self.offsets
    }
}

/// Returns the last eight bytes read backwards, as a number; missing bytes count as NUL.
fn end(string: &[u8]) -> u64 {
    string
        .iter()
        .rev()
        .zip((0..8).rev())
        .fold(0, |end, (byte, n)| end | u64::from(*byte) << (8 * n))
}

/// Compares strings in descending order of the bytes read backwards, so that a string follows the strings that end with
/// it.
fn compare(a: &[u8], b: &[u8]) -> Ordering {
    // Long common ends are passed over in words.
    let (words_a, words_b) = (a.as_rchunks::<8>().1, b.as_rchunks::<8>().1);
    let words = words_a.iter().rev().zip(words_b.iter().rev());
    let same = 8 * words.take_while(|(a, b)| a == b).count();
    let rest = |string| <[u8]>::iter(string).rev().skip(same);
    rest(b).cmp(rest(a))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(strings: &[&'static str]) -> (Vec<u8>, Vec<u64>) {
        let table = StringTable::new(strings.iter().map(|string| string.as_bytes()));
        (table.bytes().to_vec(), table.offsets().to_vec())
    }

    #[test]
    fn an_empty_table_is_one_nul() {
        assert_eq!(table(&[]), (b"\0".to_vec(), Vec::new()));
        assert_eq!(table(&["", ""]), (b"\0".to_vec(), [0, 0].to_vec()));
    }

    #[test]
    fn each_string_is_there_once() {
        assert_eq!(table(&["ab", "ab", ""]), (b"\0ab\0".to_vec(), [1, 1, 0].to_vec()));
    }

    #[test]
    fn suffixes_are_shared() {
        let (bytes, offsets) = table(&["arch", "ch", "h", "march", "a", "cha"]);
        assert_eq!(bytes, b"\0march\0cha\0");
        assert_eq!(offsets, [2, 4, 5, 1, 9, 7]);
    }

    #[test]
    fn only_suffixes_of_the_last_string_are_shared() {
        let (bytes, offsets) = table(&["xab", "ab", "yb", "b"]);
        assert_eq!(bytes, b"\0yb\0xab\0");
        assert_eq!(offsets, [4, 5, 1, 6]);
    }

    #[test]
    fn long_suffixes_are_shared() {
        let (bytes, offsets) =
            table(&["amdgcn-amd-amdhsa", "mdgcn-amd-amdhsa", "amd-amdhsa", "xmdgcn-amd-amdhsa"]);
        assert_eq!(bytes, b"\0xmdgcn-amd-amdhsa\0amdgcn-amd-amdhsa\0");
        assert_eq!(offsets, [19, 20, 26, 1]);
        for text in ["0123456789abcdef", "0123456789abcde", "1123456789abcdef", ""] {
            for other in ["0123456789abcdef", "789abcdef", "89abcdef", "9abcdef", "f", "x"] {
                let (a, b) = (text.as_bytes(), other.as_bytes());
                let by_ends = end(b).cmp(&end(a)).then_with(|| compare(a, b));
                assert_eq!(by_ends, b.iter().rev().cmp(a.iter().rev()));
                assert_eq!(compare(a, b), b.iter().rev().cmp(a.iter().rev()));
                assert_eq!(compare(b, a), a.iter().rev().cmp(b.iter().rev()));
            }
        }
    }

    #[test]
    fn values_may_hold_nuls() {
        let (bytes, offsets) = table(&["y\0z", "z", "y", "\0z"]);
        assert_eq!(bytes, b"\0y\0z\0y\0");
        assert_eq!(offsets, [1, 3, 5, 2]);
    }
}
