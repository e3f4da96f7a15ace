//! Sections and symbols of ELF files for GPUs.

use object::LittleEndian;
use object::elf::{ET_REL, SHT_DYNSYM, SHT_SYMTAB, SectionType};
use object::read::SectionIndex;
use object::read::elf::{FileHeader, SectionHeader, SectionTable, Sym, SymbolTable};

use crate::elf::{Header64, LE, Section64};
use crate::fault::Fault;

pub(super) type Symbol64 = object::elf::Sym64<LittleEndian>;

/// An ELF file of 64 bits.
pub(super) struct Elf<'a> {
    pub(super) image: &'a [u8],
    pub(super) header: &'a Header64,
    pub(super) sections: SectionTable<'a, Header64>,
}

impl<'a> Elf<'a> {
    /// Reads headers. Faults are about the table of sections; a file without has none.
    pub(super) fn read(image: &'a [u8], faults: &mut alloc::vec::Vec<Fault>) -> Option<Self> {
        let Ok(header) = Header64::parse(image) else {
            faults.push(Fault {
                offset: 0,
                expected: "an ELF header of 64 bits",
                found: image.len() as u64,
            });
            return None;
        };
        if !header.is_little_endian() {
            faults.push(Fault { offset: 5, expected: "the smallest byte first", found: 2 });
            return None;
        }
        let sections = header.sections(LE, image).unwrap_or_else(|_| {
            let found = header.e_shoff(LE);
            faults.push(Fault {
                offset: 0x28,
                expected: "the offset of the section headers",
                found,
            });
            SectionTable::default()
        });
        Some(Elf { image, header, sections })
    }

    /// Returns the version of the ABI.
    pub(super) fn abi_version(&self) -> u8 {
        self.header.e_ident().abi_version
    }

    /// Returns whether a linker has yet to make a program of it.
    pub(super) fn is_relocatable(&self) -> bool {
        self.header.e_type(LE) == ET_REL
    }

    /// Returns a section with its number.
    pub(super) fn section(&self, index: usize) -> Option<&'a Section64> {
        self.sections.section(SectionIndex(index)).ok()
    }

    /// Returns all sections with their numbers.
    pub(super) fn all(&self) -> impl Iterator<Item = (usize, &'a Section64)> {
        self.sections.enumerate().map(|(index, section)| (index.0, section))
    }

    pub(super) fn name(&self, section: &Section64) -> &'a [u8] {
        self.sections.section_name(LE, section).unwrap_or_default()
    }

    /// Returns the bytes of a section; a fault if they do not lie in the file.
    pub(super) fn data(&self, section: &Section64) -> Result<&'a [u8], Fault> {
        section.data(LE, self.image).map_err(|_| Fault {
            offset: section.sh_offset(LE),
            expected: "a section that ends in the image",
            found: section.sh_size(LE),
        })
    }

    /// Returns the symbols of the first table of a type that has any.
    pub(super) fn symbols(&self, types: &[SectionType]) -> SymbolTable<'a, Header64> {
        let tables =
            types.iter().filter_map(|kind| self.sections.symbols(LE, self.image, *kind).ok());
        tables.into_iter().find(|table| !table.is_empty()).unwrap_or_default()
    }

    /// Returns the symbols for loaders, or all if there are none.
    pub(super) fn loaded_symbols(&self) -> SymbolTable<'a, Header64> {
        self.symbols(&[SHT_DYNSYM, SHT_SYMTAB])
    }

    /// Returns the bytes of a symbol in the image, by its section.
    pub(super) fn bytes_of(&self, symbol: &Symbol64) -> Option<(u64, &'a [u8])> {
        let section = self.section(symbol.st_shndx(LE).0.into())?;
        let start = symbol.st_value(LE).checked_sub(section.sh_addr(LE))?;
        let data = self.data(section).ok()?;
        let end = start.checked_add(symbol.st_size(LE))?;
        let bytes = data.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)?;
        Some((section.sh_offset(LE).saturating_add(start), bytes))
    }
}
