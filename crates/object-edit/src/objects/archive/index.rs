//! The symbol index of an archive: offsets of members among names.

use std::collections::BTreeMap;
use std::ops::Range;

use byte_parts::Source;

use super::{Member, damaged};
use crate::error::Error;
use crate::patches::Patches;

/// Offsets of members in a table, each at the end of an entry.
struct Offsets {
    /// Its range in the index.
    table: Range<usize>,
    /// The length of an entry.
    stride: usize,
    /// 4 or 8 bytes.
    width: usize,
    big_endian: bool,
}

/// Returns true if a member of this name is an index.
pub(super) fn is_index(name: &[u8]) -> bool {
    name == b"/" || name == b"/SYM64/" || name.starts_with(b"__.SYMDEF")
}

/// Returns the names in an index, each with a zero. `is_second` is true for the second index of a member's name, in Microsoft's
/// form.
pub(super) fn names<'i>(index: &'i [u8], name: &[u8], is_second: bool) -> Option<&'i [u8]> {
    let start = match name {
        b"/" if is_second => {
            let table = microsoft(index)?.table;
            let count = number(index.get(table.end..)?, 4, false)?;
            // For each symbol the number of a member, in 16 bits.
            self::table(index, table.end.checked_add(4)?, count, 2)?.end
        }
        b"/" => system_v(index, 4)?.table.end,
        b"/SYM64/" => system_v(index, 8)?.table.end,
        _ if index.is_empty() => 0,
        b"__.SYMDEF_64" | b"__.SYMDEF_64 SORTED" => bsd(index, 8)?.table.end.checked_add(8)?,
        _ => bsd(index, 4)?.table.end.checked_add(4)?,
    };
    index.get(start..)
}

/// Updates the offsets of moved members. `moved` maps old offsets to new ones.
pub(super) fn update(
    source: &mut Source<'_>,
    window: &Range<u64>,
    members: &[Member],
    moved: &BTreeMap<u64, u64>,
    patches: &mut Patches,
) -> Result<(), Error> {
    // A second one has a second index, in Microsoft's form.
    let mut first_is_slash = false;
    for (number, member) in members.iter().take(2).enumerate() {
        let read = |source: &mut Source<'_>| {
            let data = &member.data;
            source.read_range(&(window.start + data.start..window.start + data.end))
        };
        let (index, offsets) = match (number, &member.name[..]) {
            (0, b"/") => {
                first_is_slash = true;
                let index = read(source)?;
                let offsets = system_v(&index, 4);
                (index, offsets)
            }
            (0, b"/SYM64/") => {
                let index = read(source)?;
                let offsets = system_v(&index, 8);
                (index, offsets)
            }
            (0, b"__.SYMDEF" | b"__.SYMDEF SORTED") => {
                let index = read(source)?;
                let offsets = bsd(&index, 4);
                (index, offsets)
            }
            (0, b"__.SYMDEF_64" | b"__.SYMDEF_64 SORTED") => {
                let index = read(source)?;
                let offsets = bsd(&index, 8);
                (index, offsets)
            }
            (1, b"/") if first_is_slash => {
                let index = read(source)?;
                let offsets = microsoft(&index);
                (index, offsets)
            }
            _ => return Ok(()),
        };
        let offsets = offsets.ok_or_else(|| damaged(window, "the symbol index is cut short"))?;
        let new = renewed(window, &index, offsets, moved)?;
        if new != index {
            patches.put(window.start + member.data.start, &new);
        }
    }
    Ok(())
}

/// Returns the index with the new offsets.
fn renewed(
    window: &Range<u64>,
    index: &[u8],
    offsets: Offsets,
    moved: &BTreeMap<u64, u64>,
) -> Result<Vec<u8>, Error> {
    let mut new = index.to_vec();
    let Offsets { table, stride, width, big_endian } = offsets;
    let short = || damaged(window, "the symbol index is cut short");
    for entry in new.get_mut(table).ok_or_else(short)?.chunks_exact_mut(stride) {
        let (_, entry) = entry.split_at_mut(stride - width);
        let old = number(entry, width, big_endian).ok_or_else(short)?;
        // Some writers leave entries of members that are gone.
        let Some(&to) = moved.get(&old) else {
            if old == 0 {
                continue;
            }
            return Err(damaged(window, "the symbol index names a place where no member is"));
        };
        let bytes = if big_endian { to.to_be_bytes() } else { to.to_le_bytes() };
        let limit = if width == 4 { u64::from(u32::MAX) } else { u64::MAX };
        if to > limit {
            let what = "offset of a member in the symbol index";
            return Err(Error::archive_field(what, to, limit));
        }
        let bytes = if big_endian { bytes.get(8 - width..) } else { bytes.get(..width) };
        entry.copy_from_slice(bytes.ok_or_else(short)?);
    }
    Ok(new)
}

/// Returns a number at the start of `bytes`.
fn number(bytes: &[u8], width: usize, big_endian: bool) -> Option<u64> {
    let mut value = 0_u64;
    let bytes = bytes.get(..width)?;
    for n in 0..width {
        let byte = bytes.get(if big_endian { n } else { width - 1 - n })?;
        value = value << 8 | u64::from(*byte);
    }
    Some(value)
}

/// Returns the number of symbols, offsets, names. Big-endian.
fn system_v(index: &[u8], width: usize) -> Option<Offsets> {
    let table = if index.is_empty() {
        0..0
    } else {
        table(index, width, number(index, width, true)?, width)?
    };
    Some(Offsets { table, stride: width, width, big_endian: true })
}

/// Returns the number of members, their offsets, number of symbols, for each the number of a member, names.
/// Little-endian.
fn microsoft(index: &[u8]) -> Option<Offsets> {
    let table = table(index, 4, number(index, 4, false)?, 4)?;
    Some(Offsets { table, stride: 4, width: 4, big_endian: false })
}

/// Finds the offsets in an index of BSD: the size in bytes of a table of pairs, each the place of a name and an offset;
/// that table; the size of the names; the names. All in the byte order of the machine that wrote it.
fn bsd(index: &[u8], width: usize) -> Option<Offsets> {
    let stride = width * 2;
    if index.is_empty() {
        return Some(Offsets { table: 0..0, stride, width, big_endian: false });
    }
    [false, true].into_iter().find_map(|big_endian| {
        let size = number(index, width, big_endian)?;
        if !size.is_multiple_of(stride as u64) {
            return None;
        }
        let table = table(index, width, size, 1)?;
        // The size of the names follows.
        let names_at = table.end;
        let names = number(index.get(names_at..)?, width, big_endian)?;
        let room = index.len().checked_sub(names_at)?.checked_sub(width)? as u64;
        (names <= room).then_some(Offsets { table, stride, width, big_endian })
    })
}

/// Returns the range of a table of `count` entries; `None` if it is longer than the index.
fn table(index: &[u8], start: usize, count: u64, entry: usize) -> Option<Range<usize>> {
    let len = usize::try_from(count).ok()?.checked_mul(entry)?;
    let end = start.checked_add(len).filter(|&end| end <= index.len())?;
    Some(start..end)
}
