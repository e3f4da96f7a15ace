//! Sections and symbols of ELF files for GPUs.

use alloc::vec::Vec;
use core::cell::RefCell;
use core::ops::Range;

use byte_parts::Budget;
use object::LittleEndian;
use object::elf::{ET_REL, SHT_DYNSYM, SHT_SYMTAB, SectionType};
use object::read::SectionIndex;
use object::read::elf::{FileHeader, SectionHeader, SectionTable, SymbolTable};

use super::note;
use crate::elf::{Header64, LE, Section64};
use crate::fault::Fault;

pub(super) type Symbol64 = object::elf::Sym64<LittleEndian>;

/// An ELF file of 64 bits.
pub(super) struct Elf<'a> {
    pub(super) image: &'a [u8],
    pub(super) header: &'a Header64,
    pub(super) sections: SectionTable<'a, Header64>,
    /// Bytes of names that may still be read. Names of a hostile file are one long text, each from another place on.
    names_left: RefCell<Budget>,
}

impl<'a> Elf<'a> {
    /// Reads headers. Faults are faults of the table of sections; a file without one has none.
    pub(super) fn read(image: &'a [u8], faults: &mut Vec<Fault>) -> Option<Self> {
        let Ok(header) = Header64::parse(image) else {
            note(
                faults,
                Fault {
                    offset: 0,
                    expected: "an ELF header of 64 bits",
                    found: image.len() as u64,
                },
            );
            return None;
        };
        if !header.is_little_endian() {
            note(faults, Fault { offset: 5, expected: "the smallest byte first", found: 2 });
            return None;
        }
        let sections = header.sections(LE, image).unwrap_or_else(|_| {
            let found = header.e_shoff(LE);
            note(
                faults,
                Fault { offset: 0x28, expected: "the offset of the section headers", found },
            );
            SectionTable::default()
        });
        let names_left = RefCell::new(Budget::new(4 * image.len() as u64));
        Some(Elf { image, header, sections, names_left })
    }

    /// Returns the operating system that the file is for.
    pub(super) fn os_abi(&self) -> u8 {
        self.header.e_ident().os_abi.0
    }

    /// Returns the version of the ABI, with a fault for one that is newer than the newest known.
    pub(super) fn known_abi_version(&self, newest: u8, faults: &mut Vec<Fault>) -> u8 {
        let version = self.abi_version();
        if version > newest {
            let expected = "a version of the ABI that is known";
            note(faults, Fault { offset: 8, expected, found: version.into() });
        }
        version
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

    /// Returns the name of a section; empty if it has none, or after more bytes of names than a sound file has.
    pub(super) fn name(&self, section: &Section64) -> &'a [u8] {
        self.counted(|| self.sections.section_name(LE, section).ok())
    }

    /// Returns the name of a symbol, in the same way.
    pub(super) fn symbol_name(
        &self,
        table: &SymbolTable<'a, Header64>,
        symbol: &Symbol64,
    ) -> &'a [u8] {
        self.counted(|| table.symbol_name(LE, symbol).ok())
    }

    fn counted(&self, name: impl FnOnce() -> Option<&'a [u8]>) -> &'a [u8] {
        let mut left = self.names_left.borrow_mut();
        let name = if left.left() > 0 { name().unwrap_or(b"") } else { &[] };
        // The last name may be longer than what is left.
        left.spend(name.len() as u64);
        name
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

    /// Returns the address of a section. Symbols of relocatable files count from its start, whatever address it has.
    pub(super) fn address(&self, section: &Section64) -> u64 {
        if self.is_relocatable() { 0 } else { section.sh_addr(LE) }
    }

    /// Returns where bytes of a section lie in the image, by their address; `None` if there are none.
    pub(super) fn range_of(&self, address: u64, len: u64, section: usize) -> Option<Range<usize>> {
        let section = self.section(section)?;
        let within = usize::try_from(address.checked_sub(self.address(section))?).ok()?;
        let len = usize::try_from(len).ok().filter(|len| *len != 0)?;
        // A section without bytes has none here.
        self.data(section).ok()?.get(within..within.checked_add(len)?)?;
        let start = usize::try_from(section.sh_offset(LE)).ok()?.checked_add(within)?;
        Some(start..start.checked_add(len)?)
    }
}
