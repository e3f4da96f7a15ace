//! Requirements for editing a linked ELF file.

use object::elf::{EM_AARCH64, EM_X86_64, ET_DYN, ET_EXEC, SHT_NULL};

use super::file::{
    File, ProgramHeader, SectionHeader, addresses, file_range, has_bytes, is_allocated,
    segment_addresses, segment_file_range,
};
use crate::error::Error;
use crate::pod::LE;

/// The kernel loads no program with a larger table than 64 KiB.
pub(super) const MOST_SEGMENTS: usize = 65_536 / 56;

pub(super) fn is_x86_64(file: &File) -> bool {
    file.header.e_machine.get(LE) == EM_X86_64
}

/// Checks that the file is of a supported kind and that its headers are consistent.
pub(super) fn validate(file: &File) -> Result<(), Error> {
    if ![ET_EXEC, ET_DYN].contains(&file.header.e_type.get(LE)) {
        return Err(Error::unsupported_elf("neither executable nor shared object"));
    }
    if ![EM_X86_64, EM_AARCH64].contains(&file.header.e_machine.get(LE)) {
        return Err(Error::unsupported_elf("neither x86-64 nor AArch64"));
    }
    if file.segments.len() > MOST_SEGMENTS {
        return Err(Error::unsupported_elf("more than 1,170 program headers"));
    }
    if file.sections.is_empty() {
        return Err(Error::no_section_table());
    }
    let untyped = |section: &SectionHeader| {
        section.sh_type.get(LE) == SHT_NULL && section.sh_size.get(LE) > 0
    };
    if file.sections.iter().any(untyped) {
        return Err(Error::unsupported_elf("a section without a type"));
    }
    for section in file.sections.iter().filter(|section| has_bytes(section)) {
        file.check("a section", &file_range(section))?;
        let align = section.sh_addralign.get(LE);
        if align > 1 && !align.is_power_of_two() {
            return Err(inconsistent("alignment of a section"));
        }
    }
    // Work on all sections touches each byte of the file at most twice.
    let mut sizes = file.sections.iter().filter(|section| has_bytes(section));
    let all = sizes.try_fold(0_u64, |all, section| all.checked_add(section.sh_size.get(LE)));
    if all.is_none_or(|all| all.div_ceil(2) > file.len()) {
        return Err(inconsistent("sections share bytes"));
    }
    for segment in file.segments.iter().filter(|segment| segment.p_filesz.get(LE) > 0) {
        file.check("a segment", &segment_file_range(segment))?;
    }
    loads(file)?;
    let loaded = |section: &SectionHeader| {
        let (memory, bytes) = (addresses(section), file_range(section));
        file.offset_of(memory.start) == Some(bytes.start)
            && file.offset_of(memory.end - 1) == Some(bytes.end - 1)
    };
    let mut sections = file.sections.iter().filter(|section| {
        is_allocated(section) && has_bytes(section) && section.sh_size.get(LE) > 0
    });
    if sections.all(loaded) {
        Ok(())
    } else {
        Err(inconsistent("a section is not loaded from where it lies"))
    }
}

fn loads(file: &File) -> Result<(), Error> {
    let mut last: Option<&ProgramHeader> = None;
    for load in file.loads() {
        let (filesz, memsz) = (load.p_filesz.get(LE), load.p_memsz.get(LE));
        if filesz > memsz {
            return Err(inconsistent("more bytes in the file than in memory"));
        }
        if load.p_vaddr.get(LE).checked_add(memsz).is_none_or(|end| end > u64::MAX >> 1) {
            return Err(inconsistent("a segment lies beyond the address space"));
        }
        let align = load.p_align.get(LE);
        if align > 1 {
            if !align.is_power_of_two() || align > 1 << 40 {
                return Err(inconsistent("alignment of a segment"));
            }
            if load.p_vaddr.get(LE).wrapping_sub(load.p_offset.get(LE)) % align != 0 {
                return Err(inconsistent("offset and address differ by more than whole pages"));
            }
        }
        if last.is_some_and(|last| segment_addresses(last).end > load.p_vaddr.get(LE)) {
            return Err(inconsistent("loadable segments overlap or are not in order"));
        }
        last = Some(load);
    }
    let mut parts: Vec<_> = file.loads().filter(|load| load.p_filesz.get(LE) > 0).collect();
    parts.sort_by_key(|load| load.p_offset.get(LE));
    let mut end = 0;
    for part in parts {
        if part.p_offset.get(LE) < end {
            return Err(inconsistent("loadable segments overlap in the file"));
        }
        end = segment_file_range(part).end;
    }
    Ok(())
}

pub(super) fn inconsistent(what: &'static str) -> Error {
    Error::inconsistent_segments(what)
}
