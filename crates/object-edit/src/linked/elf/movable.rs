//! Sections that may move, and the fields with their addresses.

use object::elf::{
    DT_GNU_HASH, DT_HASH, DT_JMPREL, DT_PLTRELSZ, DT_RELA, DT_RELASZ, DT_RELR, DT_RELRSZ,
    DT_STRTAB, DT_SYMTAB, DT_VERDEF, DT_VERNEED, DT_VERSYM, DynamicTag, PT_INTERP, SHF_WRITE,
    SHT_DYNSYM, SHT_GNU_HASH, SHT_GNU_VERDEF, SHT_GNU_VERNEED, SHT_GNU_VERSYM, SHT_HASH, SHT_NOTE,
    SHT_PROGBITS, SHT_RELA, SHT_RELR, SHT_STRTAB,
};

use super::dynamic::Dynamic;
use super::file::{File, SectionHeader, is_allocated, segment_file_range};
use crate::pod::LE;

/// The ways in which a section may move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Movable {
    /// To another place directly after the program headers: `PT_INTERP` or `PT_NOTE` name it, and programs that look
    /// for notes without mapping the file expect them on its first page.
    Near,
    /// Anywhere: only this tag of the dynamic section names it.
    Far(DynamicTag),
}

/// Returns how a section may move; `None`: not at all, since code may hold its address.
pub(super) fn movable(file: &File, dynamic: &Dynamic, section: &SectionHeader) -> Option<Movable> {
    if !is_allocated(section) || section.sh_flags.get(LE).contains(SHF_WRITE) {
        return None;
    }
    let (address, size) = (section.sh_addr.get(LE), section.sh_size.get(LE));
    let named = |tag: DynamicTag| (dynamic.get(tag) == Some(address)).then_some(Movable::Far(tag));
    let sized = |tag: DynamicTag, size_tag: DynamicTag| {
        named(tag).filter(|_| dynamic.get(size_tag) == Some(size))
    };
    match section.sh_type.get(LE) {
        SHT_PROGBITS => {
            let interpreter = file.segments.iter().any(|segment| {
                segment.p_type.get(LE) == PT_INTERP
                    && segment_file_range(segment) == super::file::file_range(section)
                    && segment.p_vaddr.get(LE) == address
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
