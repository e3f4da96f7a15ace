//! Symbols of host code, which no loader reads.

use std::io;
use std::ops::Range;

use byte_parts::ReadSeek;
use object::read::elf::{FileHeader, SectionHeader};
use object::read::{FileKind, ReadRef};
use object::{Endianness, elf};

/// Returns the bytes of the symbol table and of its names in a linked ELF file: those of `.symtab` and `.strtab`, which `strip`
/// removes. 0 for all other files, damaged ones too.
///
/// ```
/// let library = std::fs::File::open("../../examples/data/hip-two-units.so")?;
/// assert!(fat_object::host_symbols(library)? < 4096);
/// assert_eq!(fat_object::host_symbols(std::io::Cursor::new(b"text"))?, 0);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// An error of reading.
pub fn host_symbols(file: impl ReadSeek) -> io::Result<u64> {
    let mut source = byte_parts::Source::new(file)?;
    let window: Range<u64> = 0..source.len();
    let size = source.with_headers(&window, |data| match FileKind::parse(data) {
        Ok(FileKind::Elf32) => size_in::<elf::FileHeader32<Endianness>>(data),
        Ok(FileKind::Elf64) => size_in::<elf::FileHeader64<Endianness>>(data),
        _ => Ok(0),
    })?;
    // Headers of a damaged file state any size.
    Ok(size.unwrap_or(0).min(source.len()))
}

fn size_in<'d, Elf: FileHeader<Endian = Endianness>>(
    data: impl ReadRef<'d>,
) -> object::read::Result<u64> {
    let header = Elf::parse(data)?;
    let endian = header.endian()?;
    let is_linked = [elf::ET_EXEC, elf::ET_DYN].contains(&header.e_type(endian));
    let is_gpu = [elf::EM_CUDA, elf::EM_AMDGPU].contains(&header.e_machine(endian));
    if !is_linked || is_gpu {
        return Ok(0);
    }
    let sections = header.sections(endian, data)?;
    let mut size: u64 = 0;
    for table in sections.iter().filter(|it| it.sh_type(endian) == elf::SHT_SYMTAB) {
        let names = sections.section(table.link(endian))?;
        for part in [table, names] {
            let (_, part) = part.file_range(endian).unwrap_or((0, 0));
            // Headers of a damaged file state any size.
            size = size.checked_add(part).unwrap_or(0);
        }
    }
    Ok(size)
}
