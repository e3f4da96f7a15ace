//! Bytes of both files beside each other.

use std::io;
use std::ops::Range;

use byte_parts::Source;

use super::Check;
use crate::error::Error;
use crate::output::{self, Input, Output, Part};
use crate::tables::sized;

/// Bytes compared at once: whole entries of every table.
const CHUNK: u64 = 24 * 2048;

/// Sees an offset in a range, and the bytes of both files from there on.
type Visit<'v> = dyn FnMut(u64, &[u8], &[u8]) -> Result<(), Error> + 'v;

impl Check<'_> {
    /// Shows `len` bytes of both files, in chunks, with the offset of each in the range. Chunks that are the same
    /// bytes of the input are left out. Offsets count from the starts of the ELF files.
    pub(super) fn chunks(
        &self,
        source: &mut Source<'_>,
        old: u64,
        new: u64,
        len: u64,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        let old = self.old.at(old);
        if output::copies(self.splices, &sized(new, len), old) {
            return Ok(());
        }
        // Headers of the new file may name any place.
        let (Some(_), Some(_)) = (old.checked_add(len), new.checked_add(len)) else {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        };
        let mut at = 0;
        while at < len {
            let n = CHUNK.min(len - at);
            let (from, start) = (old + at, new + at);
            if !output::copies(self.splices, &sized(start, n), from) {
                let before = source.read_range(&sized(from, n))?;
                let after = read(source, self.splices, &sized(start, n))?;
                visit(at, &before, &after)?;
            }
            at += n;
        }
        Ok(())
    }

    /// Returns the offset in the range of the first byte that differs, if one does.
    pub(super) fn difference(
        &self,
        source: &mut Source<'_>,
        old: u64,
        new: u64,
        len: u64,
    ) -> Result<Option<u64>, Error> {
        let mut first = None;
        self.chunks(source, old, new, len, &mut |base, before, after| {
            if first.is_none() && before != after {
                let mut pairs = before.iter().zip(after);
                let same = pairs.position(|(before, after)| before != after);
                let same = same.unwrap_or(before.len().min(after.len()));
                first = Some(base + same as u64);
            }
            Ok(())
        })?;
        Ok(first)
    }
}

/// Returns whether what starts with one of the magics lies at this offset of the new file.
pub(super) fn is_device_code(
    source: &mut Source<'_>,
    splices: &Output,
    offset: u64,
    magics: &[&[u8]],
) -> io::Result<bool> {
    if let Some((start, Part::Input(Input::Derived(_), part))) = splices.at(offset) {
        // The contents of a compressed bundle were checked before.
        return Ok(start == offset && part.start == 0);
    }
    let longest = magics.iter().map(|magic| magic.len() as u64).max().unwrap_or(0);
    let range = sized(offset, longest);
    let bytes = read(source, splices, &range)?;
    Ok(magics.iter().any(|magic| bytes.starts_with(magic)))
}

/// Returns bytes of the new file; fewer where it ends earlier, or where parts of other files follow.
fn read(source: &mut Source<'_>, splices: &Output, range: &Range<u64>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for part in splices.slice(range.clone()).iter() {
        match part {
            Part::Input(Input::File, range) => bytes.extend(source.read_range(&range)?),
            Part::Bytes(part) => bytes.extend_from_slice(part),
            Part::Zeros(n) => bytes.extend(std::iter::repeat_n(
                0,
                usize::try_from(n).map_err(|_| io::ErrorKind::OutOfMemory)?,
            )),
            Part::Input(..) => break,
        }
    }
    Ok(bytes)
}
