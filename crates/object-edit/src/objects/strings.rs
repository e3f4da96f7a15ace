//! String tables in which a string that another one ends with shares its bytes, in the order of LLVM's tools.

use std::collections::{BTreeMap, BTreeSet};

/// Limit of bytes of names for each byte of their table, above which it is not rebuilt. Many that are the ends of
/// one long string would take long to sort.
const MAX_SHARED: u64 = 64;

/// Returns the string that starts at `offset` of a table, without its zero.
pub(crate) fn string_at(table: &[u8], offset: u64) -> Option<&[u8]> {
    let rest = table.get(usize::try_from(offset).ok()?..)?;
    let end = rest.iter().position(|&b| b == 0)?;
    rest.get(..end)
}

/// A limit that keeps tables with heavily shared strings from being rebuilt.
pub(super) struct Limit(u64);

impl Limit {
    /// Returns the limit for the strings in this table.
    pub(super) fn of(table: &[u8]) -> Self {
        Limit(table.len() as u64 * MAX_SHARED)
    }

    /// Returns the string, unless it is one too many. Short strings that occur often do not count.
    pub(super) fn take<'s>(&mut self, string: Option<&'s [u8]>) -> Option<&'s [u8]> {
        let counted = (string?.len() as u64).saturating_sub(MAX_SHARED);
        self.0 = self.0.checked_sub(counted)?;
        string
    }
}

/// The strings that a table is to hold.
#[derive(Default)]
pub(super) struct Strings<'a>(BTreeSet<&'a [u8]>);

/// A table of strings, and where in it they are.
pub(super) struct Table<'a> {
    pub(super) bytes: Vec<u8>,
    offsets: BTreeMap<&'a [u8], u32>,
}

impl<'a> Strings<'a> {
    pub(super) fn add(&mut self, string: &'a [u8]) {
        self.0.insert(string);
    }

    /// Builds the table after `start`. `None` when it would not fit 32-bit offsets.
    pub(super) fn build(self, start: &[u8]) -> Option<Table<'a>> {
        let mut sorted = self.0.into_iter().filter(|string| !string.is_empty()).collect::<Vec<_>>();
        // From the last byte; of two that end alike the longer one first.
        sorted.sort_by(|a, b| b.iter().rev().cmp(a.iter().rev()));
        let mut table = Table { bytes: start.to_vec(), offsets: BTreeMap::from([(&b""[..], 0)]) };
        let mut last: &[u8] = b"";
        for string in sorted {
            let offset = if last.ends_with(string) {
                table.bytes.len().checked_sub(string.len().checked_add(1)?)?
            } else {
                let end = table.bytes.len();
                table.bytes.extend_from_slice(string);
                table.bytes.push(0);
                last = string;
                end
            };
            table.offsets.insert(string, u32::try_from(offset).ok()?);
        }
        Some(table)
    }
}

impl Table<'_> {
    pub(super) fn offset(&self, string: &[u8]) -> Option<u32> {
        self.offsets.get(string).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_share_bytes_and_strings_are_sorted_from_the_last_byte() {
        let mut strings = Strings::default();
        for string in [&b"text"[..], b"", b".rela.text", b".text", b"x", b"a"] {
            strings.add(string);
        }
        let table = strings.build(b"\0").unwrap();
        // By the last byte from "x" to "a"; "text" and ".text" are ends of ".rela.text".
        assert_eq!(table.bytes, b"\0x\0.rela.text\0a\0");
        assert_eq!(table.offset(b"text"), Some(9));
        assert_eq!(table.offset(b""), Some(0));
        assert_eq!(table.offset(b"y"), None);
    }
}
