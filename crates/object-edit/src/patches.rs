//! Bytes that change where they are.

use std::collections::BTreeMap;

use crate::output::{Input, Output, Part};
use crate::pod::rest;

/// Other bytes at an offset of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Patch {
    pub(crate) offset: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Patch {
    pub(crate) fn new(offset: u64, bytes: impl Into<Vec<u8>>) -> Self {
        Patch { offset, bytes: bytes.into() }
    }

    pub(crate) fn word(offset: u64, value: u64) -> Self {
        Patch::new(offset, value.to_le_bytes())
    }
}

/// Overwrites bytes in some places.
pub(crate) fn overwrite(splices: &Output, mut patches: Vec<Patch>) -> Output {
    patches.sort_by_key(|patch| patch.offset);
    let mut out = Output::new();
    for patch in patches {
        let at = out.size();
        out.append(&splices.slice(at..patch.offset));
        // Bytes that another patch has already put there.
        let covered = out.size().saturating_sub(patch.offset);
        out.push_bytes(rest(&patch.bytes, covered));
    }
    let at = out.size();
    out.append(&splices.slice(at..u64::MAX));
    out
}

/// The new bytes of a patch, which take the place of as many old ones.
pub(crate) trait Contents {
    /// Returns the number of bytes.
    fn size(&self) -> u64;
    /// Adds the bytes to an output.
    fn push_to(&self, out: &mut Output);
}

impl Contents for Vec<u8> {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn push_to(&self, out: &mut Output) {
        out.push_bytes(self);
    }
}

impl Contents for Output {
    fn size(&self) -> u64 {
        Output::size(self)
    }

    fn push_to(&self, out: &mut Output) {
        out.append(self);
    }
}

/// Bytes to be changed in what stays, by their offset in the edited file.
#[derive(Debug)]
pub(crate) struct Patches<C = Vec<u8>>(BTreeMap<u64, C>);

impl<C> Default for Patches<C> {
    fn default() -> Self {
        Patches(BTreeMap::new())
    }
}

impl<C> FromIterator<(u64, C)> for Patches<C> {
    fn from_iter<P: IntoIterator<Item = (u64, C)>>(patches: P) -> Self {
        Patches(patches.into_iter().collect())
    }
}

impl Patches {
    pub(crate) fn put(&mut self, offset: u64, bytes: &[u8]) {
        self.0.insert(offset, bytes.to_vec());
    }
}

impl<C: Contents> Patches<C> {
    /// Changes them. `None` when some of them are not there any more, or more than once.
    pub(crate) fn apply(&self, splices: Output) -> Option<Output> {
        if self.0.is_empty() {
            return Some(splices);
        }
        let mut out = Output::new();
        let mut applied = 0;
        for part in splices.iter() {
            let Part::Input(Input::File, range) = part else {
                out.push_part(part);
                continue;
            };
            let mut at = range.start;
            for (&offset, bytes) in self.0.range(range.clone()) {
                let end = offset.checked_add(bytes.size())?;
                if offset < at || end > range.end {
                    return None;
                }
                out.push_input(Input::File, at..offset);
                bytes.push_to(&mut out);
                at = end;
                applied += 1;
            }
            out.push_input(Input::File, at..range.end);
        }
        (applied == self.0.len()).then_some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output;
    use std::io::{Cursor, Read};

    fn text(input: &[u8], splices: &Output) -> String {
        let mut input = Cursor::new(input);
        let mut out = String::new();
        output::reader(splices, &mut input, &mut ()).read_to_string(&mut out).unwrap();
        out.replace('\0', ".")
    }

    #[test]
    fn patches_go_into_kept_parts() {
        let mut splices = output::copy_of(&(0..4));
        splices.push_bytes(b"new");
        splices.push_input(Input::File, 6..10);
        let mut patches = Patches::default();
        patches.put(1, b"a");
        patches.put(2, b"bc");
        patches.put(9, b"d");
        let patched = patches.apply(splices.clone()).unwrap();
        assert_eq!(text(b"0123456789", &patched), "0abcnew678d");
        // Not in what was replaced, nor across.
        for (offset, bytes) in [(4, &b"x"[..]), (3, b"xy"), (9, b"xy"), (10, b"x"), (2, b"y")] {
            let mut patches = Patches::default();
            patches.put(1, b"ab");
            patches.put(offset, bytes);
            assert!(patches.apply(splices.clone()).is_none(), "{offset}");
        }
    }

    #[test]
    fn patches_may_come_in_any_order() {
        let patch = |offset, bytes: &[u8]| Patch::new(offset, bytes);
        // Tables may stand in another order than their headers, and share bytes.
        let patches = vec![patch(6, b"dd"), patch(2, b"aaa"), patch(4, b"abb"), patch(9, b"e")];
        let new = overwrite(&output::copy_of(&(0..10)), patches);
        let mut expected = output::copy_of(&(0..2));
        expected.push_bytes(b"aaabbd");
        expected.push_input(Input::File, 8..9);
        expected.push_bytes(b"e");
        assert_eq!(new, expected);
    }
}
