//! Which sections may move, and what names their addresses.

use super::dynamic::{
    DT_GNU_HASH, DT_HASH, DT_JMPREL, DT_PLTRELSZ, DT_RELA, DT_RELASZ, DT_RELR, DT_RELRSZ,
    DT_STRTAB, DT_SYMTAB, DT_VERDEF, DT_VERNEED, DT_VERSYM, Dynamic,
};
use super::file::{File, SectionHeader, is_allocated, segment_file_range};

pub(super) const PT_INTERP: u32 = 3;
pub(super) const PT_NOTE: u32 = 4;
pub(super) const PT_GNU_PROPERTY: u32 = 0x6474_e553;

const SHT_PROGBITS: u32 = 1;
const SHT_STRTAB: u32 = 3;
const SHT_RELA: u32 = 4;
const SHT_HASH: u32 = 5;
pub(super) const SHT_NOTE: u32 = 7;
const SHT_DYNSYM: u32 = 11;
const SHT_RELR: u32 = 19;
const SHT_GNU_HASH: u32 = 0x6fff_fff6;
const SHT_GNU_VERDEF: u32 = 0x6fff_fffd;
const SHT_GNU_VERNEED: u32 = 0x6fff_fffe;
const SHT_GNU_VERSYM: u32 = 0x6fff_ffff;

/// How a section may move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Movable {
    /// To another place right behind the program headers: `PT_INTERP` or `PT_NOTE` name it, and those who look for
    /// notes without mapping the file expect them on its first page.
    Near,
    /// Anywhere: only this tag of the dynamic section names it.
    Far(u64),
}

/// How a section may move; `None`: not at all, since code may hold its address.
pub(super) fn movable(file: &File, dynamic: &Dynamic, section: &SectionHeader) -> Option<Movable> {
    if !is_allocated(section) || section.flags.get() & super::file::SHF_WRITE != 0 {
        return None;
    }
    let (address, size) = (section.addr.get(), section.size.get());
    let named = |tag: u64| (dynamic.get(tag) == Some(address)).then_some(Movable::Far(tag));
    let sized =
        |tag: u64, size_tag: u64| named(tag).filter(|_| dynamic.get(size_tag) == Some(size));
    match section.kind.get() {
        SHT_PROGBITS => {
            let interpreter = file.segments.iter().any(|segment| {
                segment.kind.get() == PT_INTERP
                    && segment_file_range(segment) == super::file::file_range(section)
                    && segment.vaddr.get() == address
            });
            interpreter.then_some(Movable::Near)
        }
        SHT_NOTE => Some(Movable::Near),
        SHT_HASH => named(DT_HASH),
        SHT_GNU_HASH => named(DT_GNU_HASH),
        SHT_DYNSYM => named(DT_SYMTAB),
        SHT_STRTAB => named(DT_STRTAB),
        SHT_GNU_VERSYM => named(DT_VERSYM),
        SHT_GNU_VERDEF => named(DT_VERDEF),
        SHT_GNU_VERNEED => named(DT_VERNEED),
        SHT_RELR => sized(DT_RELR, DT_RELRSZ),
        SHT_RELA => sized(DT_RELA, DT_RELASZ).or_else(|| sized(DT_JMPREL, DT_PLTRELSZ)),
        _ => None,
    }
}
