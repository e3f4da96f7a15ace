//! ELF files for GPUs whose end nothing but their own headers tells.

use core::ops::Range;

use byte_parts::Window;
use llvm_bitcode::{ReadAt, Unreadable};
use object::elf::{SHT_NOBITS, SHT_NULL};
use object::{LittleEndian, Pod};

use crate::elf::{FileHeader, Header32, Header64, LE, ProgramHeader, SectionHeader, first};
use crate::read::read_range;

/// Headers that are read at a time.
const HEADERS: u64 = 512;

/// `e_ident[EI_CLASS]`, `e_ident[EI_DATA]`, `e_ident[EI_VERSION]`, after the magic.
const IDENT_32: &[u8] = b"\x7fELF\x01\x01\x01";
const IDENT_64: &[u8] = b"\x7fELF\x02\x01\x01";

/// Returns the size of the ELF file for a GPU that starts in `window`; `None` if none does that is in order.
///
/// All headers of segments and sections lie in the window, and so do the bytes that they name: the last of these is the
/// end. `read` counts the bytes that were looked at.
pub(crate) fn size(
    source: &mut dyn ReadAt,
    window: &Range<u64>,
    head: &[u8],
    read: &mut u64,
) -> Result<Option<u64>, Unreadable> {
    match head {
        _ if head.starts_with(IDENT_64) => of_class::<Header64>(source, window, head, read),
        _ if head.starts_with(IDENT_32) => of_class::<Header32>(source, window, head, read),
        _ => Ok(None),
    }
}

fn of_class<Elf: FileHeader<Endian = LittleEndian>>(
    source: &mut dyn ReadAt,
    window: &Range<u64>,
    head: &[u8],
    read: &mut u64,
) -> Result<Option<u64>, Unreadable> {
    let Some(header) = first::<Elf>(head) else { return Ok(None) };
    let header_len = size_of::<Elf>();
    let (phnum, shnum, shoff) = (header.e_phnum(LE), header.e_shnum(LE), header.e_shoff(LE).into());
    if usize::from(header.e_ehsize(LE)) != header_len || (phnum, shnum, shoff) == (0, 0, 0) {
        return Ok(None);
    }
    let mut extent = Extent { source, window: window.clone(), end: header_len as u64, read };
    let (offset, entry_len) = (header.e_phoff(LE).into(), header.e_phentsize(LE));
    let segments = Table { offset, count: phnum.into(), entry_len };
    let is_sound = extent.table::<Elf::ProgramHeader>(segments, |segment| {
        Some((segment.p_offset(LE).into(), segment.p_filesz(LE).into()))
    })?;
    if !is_sound {
        return Ok(None);
    }
    let mut sections =
        Table { offset: shoff, count: shnum.into(), entry_len: header.e_shentsize(LE) };
    if sections.count == 0 && sections.offset != 0 {
        // More than the field holds: the first header tells.
        let first = Table { count: 1, ..sections };
        if !extent.table::<Elf::SectionHeader>(first, |section| {
            sections.count = section.sh_size(LE).into();
            None
        })? {
            return Ok(None);
        }
    }
    let names = u64::from(header.e_shstrndx(LE).0);
    let is_sound = (sections.count == 0 || names < sections.count.max(0xff00))
        && extent.table::<Elf::SectionHeader>(sections, |section| {
            let is_stored = section.sh_type(LE) != SHT_NULL && section.sh_type(LE) != SHT_NOBITS;
            is_stored.then_some((section.sh_offset(LE).into(), section.sh_size(LE).into()))
        })?;
    Ok(is_sound.then_some(extent.end))
}

#[derive(Clone, Copy)]
struct Table {
    offset: u64,
    count: u64,
    entry_len: u16,
}

/// The bytes that an ELF file names.
struct Extent<'a> {
    source: &'a mut dyn ReadAt,
    window: Range<u64>,
    /// The end of what was named, from the start of the window.
    end: u64,
    read: &'a mut u64,
}

impl Extent<'_> {
    /// Counts a table and what its entries name; `false` if something of it leaves the window.
    fn table<Entry: Pod>(
        &mut self,
        table: Table,
        mut range: impl FnMut(&Entry) -> Option<(u64, u64)>,
    ) -> Result<bool, Unreadable> {
        if table.count == 0 {
            return Ok(true);
        }
        let len = size_of::<Entry>();
        let all = table.count.checked_mul(len as u64);
        if usize::from(table.entry_len) != len
            || !all.is_some_and(|all| self.add(table.offset, all))
        {
            return Ok(false);
        }
        let mut at = self.window.start + table.offset;
        let mut left = table.count;
        while left > 0 {
            let count = left.min(HEADERS);
            let end = at + count * len as u64;
            *self.read += end - at;
            let entries = read_range(self.source, &(at..end))?;
            for entry in entries.chunks_exact(len) {
                let range = first::<Entry>(entry).and_then(&mut range);
                if range.is_some_and(|(start, size)| !self.add(start, size)) {
                    return Ok(false);
                }
            }
            (at, left) = (end, left - count);
        }
        Ok(true)
    }

    /// Counts bytes; `false` if they leave the window.
    fn add(&mut self, start: u64, size: u64) -> bool {
        let end = start.checked_add(size);
        let end = end.filter(|&end| end <= Window::new(&self.window).len());
        self.end = self.end.max(end.unwrap_or(0));
        end.is_some()
    }
}
