//! Sections that no linked file loads.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;

use byte_parts::Source;
use object::read::coff::CoffHeader;
use object::read::elf::{FileHeader, SectionHeader};
use object::read::{FileKind, ReadRef};
use object::{Endianness, elf, pe};

/// Returns the starts, in the source, of those sections of the ELF file or COFF object in the window that no linked
/// file loads: they are not part of its memory, or a linker drops them. Returns nothing for other files, and for files
/// with unreadable headers.
///
/// # Errors
///
/// The error of reading.
pub fn sections_never_loaded(
    source: &mut Source<'_>,
    window: &Range<u64>,
) -> io::Result<BTreeSet<u64>> {
    let starts = source.with_headers(window, |data| match FileKind::parse(data) {
        Ok(FileKind::Elf32) => of_elf::<elf::FileHeader32<Endianness>>(data),
        Ok(FileKind::Elf64) => of_elf::<elf::FileHeader64<Endianness>>(data),
        Ok(FileKind::Coff) => of_coff::<pe::ImageFileHeader>(data),
        Ok(FileKind::CoffBig) => of_coff::<pe::AnonObjectHeaderBigobj>(data),
        _ => Ok(Vec::new()),
    })?;
    // A section may say that it starts after the last byte that there can be.
    let start = |start| window.start.checked_add(start);
    Ok(starts.into_iter().flatten().filter_map(start).collect())
}

fn of_elf<'d, Elf: FileHeader<Endian = Endianness>>(
    data: impl ReadRef<'d>,
) -> object::read::Result<Vec<u64>> {
    let header = Elf::parse(data)?;
    let endian = header.endian()?;
    let table = header.sections(endian, data)?;
    let never_loaded = table.iter().filter(|section| {
        let flags = section.sh_flags(endian).0;
        flags & elf::SHF_ALLOC.0 == 0 || flags & elf::SHF_EXCLUDE.0 != 0
    });
    Ok(never_loaded.map(|section| section.sh_offset(endian).into()).collect())
}

fn of_coff<'d, Coff: CoffHeader>(data: impl ReadRef<'d>) -> object::read::Result<Vec<u64>> {
    let mut offset = 0;
    let header = Coff::parse(data, &mut offset)?;
    let table = header.sections(data, offset)?;
    let dropped = table.iter().filter(|section| {
        section.characteristics.get(object::LittleEndian).0 & pe::IMAGE_SCN_LNK_REMOVE.0 != 0
    });
    Ok(dropped.map(|s| s.pointer_to_raw_data.get(object::LittleEndian).into()).collect())
}
