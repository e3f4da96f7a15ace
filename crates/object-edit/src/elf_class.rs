//! ELF files of both classes and byte orders: System V ABI, "Object Files" (gABI).

use object::elf::{
    FileHeader32, FileHeader64, SectionFlags, SectionHeader32, SectionHeader64, SectionType,
    SymbolSection,
};
use object::read::elf::{FileHeader, SectionHeader};
use object::{Endian, U32, U64};

/// A section header of either class.
#[derive(Clone, Copy)]
pub(crate) struct ElfSection {
    pub(crate) name: u32,
    pub(crate) kind: SectionType,
    pub(crate) flags: SectionFlags,
    pub(crate) addr: u64,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) link: u32,
    pub(crate) info: u32,
    pub(crate) align: u64,
    pub(crate) entsize: u64,
}

/// The file header of one class, and with it the other structs of the class.
pub(crate) trait ElfHeader: FileHeader {
    /// The largest offset or size in a file of this class.
    const LIMIT: u64;

    /// Returns the byte order.
    fn order() -> Self::Endian {
        Self::Endian::default()
    }

    /// Reads a section header.
    fn section(header: &Self::SectionHeader) -> ElfSection {
        let e = Self::order();
        ElfSection {
            name: header.sh_name(e),
            kind: header.sh_type(e),
            flags: header.sh_flags(e),
            addr: header.sh_addr(e).into(),
            offset: header.sh_offset(e).into(),
            size: header.sh_size(e).into(),
            link: header.sh_link(e),
            info: header.sh_info(e),
            align: header.sh_addralign(e).into(),
            entsize: header.sh_entsize(e).into(),
        }
    }

    /// Makes a section header; `None` when a number does not fit.
    fn section_header(fields: &ElfSection) -> Option<Self::SectionHeader>;

    /// Sets what the file header says of the section headers; `None` when the offset does not fit.
    fn set_table(&mut self, shoff: u64, shnum: u16, shstrndx: SymbolSection) -> Option<()>;

    /// Gives a symbol another name and section.
    fn set_symbol(symbol: &mut Self::Sym, name: u32, section: SymbolSection);

    /// Gives a symbol another value and size; `None` when one does not fit.
    fn set_place(symbol: &mut Self::Sym, value: u64, size: u64) -> Option<()>;
}

impl<E: Endian> ElfHeader for FileHeader32<E> {
    const LIMIT: u64 = u32::MAX as u64;

    fn section_header(fields: &ElfSection) -> Option<SectionHeader32<E>> {
        let e = E::default();
        let narrow = |wide: u64| u32::try_from(wide).ok().map(|word| U32::new(e, word));
        Some(SectionHeader32 {
            sh_name: U32::new(e, fields.name),
            sh_type: U32::new(e, fields.kind),
            sh_flags: U32::new_u64(e, fields.flags).ok()?,
            sh_addr: narrow(fields.addr)?,
            sh_offset: narrow(fields.offset)?,
            sh_size: narrow(fields.size)?,
            sh_link: U32::new(e, fields.link),
            sh_info: U32::new(e, fields.info),
            sh_addralign: narrow(fields.align)?,
            sh_entsize: narrow(fields.entsize)?,
        })
    }

    fn set_table(&mut self, shoff: u64, shnum: u16, shstrndx: SymbolSection) -> Option<()> {
        let e = E::default();
        self.e_shoff.set(e, u32::try_from(shoff).ok()?);
        self.e_shnum.set(e, shnum);
        self.e_shstrndx.set(e, shstrndx);
        Some(())
    }

    fn set_symbol(symbol: &mut Self::Sym, name: u32, section: SymbolSection) {
        symbol.st_name.set(E::default(), name);
        symbol.st_shndx.set(E::default(), section);
    }

    fn set_place(symbol: &mut Self::Sym, value: u64, size: u64) -> Option<()> {
        let e = E::default();
        symbol.st_value.set(e, u32::try_from(value).ok()?);
        symbol.st_size.set(e, u32::try_from(size).ok()?);
        Some(())
    }
}

impl<E: Endian> ElfHeader for FileHeader64<E> {
    const LIMIT: u64 = u64::MAX;

    fn section_header(fields: &ElfSection) -> Option<SectionHeader64<E>> {
        let e = E::default();
        Some(SectionHeader64 {
            sh_name: U32::new(e, fields.name),
            sh_type: U32::new(e, fields.kind),
            sh_flags: U64::new(e, fields.flags),
            sh_addr: U64::new(e, fields.addr),
            sh_offset: U64::new(e, fields.offset),
            sh_size: U64::new(e, fields.size),
            sh_link: U32::new(e, fields.link),
            sh_info: U32::new(e, fields.info),
            sh_addralign: U64::new(e, fields.align),
            sh_entsize: U64::new(e, fields.entsize),
        })
    }

    fn set_table(&mut self, shoff: u64, shnum: u16, shstrndx: SymbolSection) -> Option<()> {
        let e = E::default();
        self.e_shoff.set(e, shoff);
        self.e_shnum.set(e, shnum);
        self.e_shstrndx.set(e, shstrndx);
        Some(())
    }

    fn set_symbol(symbol: &mut Self::Sym, name: u32, section: SymbolSection) {
        symbol.st_name.set(E::default(), name);
        symbol.st_shndx.set(E::default(), section);
    }

    fn set_place(symbol: &mut Self::Sym, value: u64, size: u64) -> Option<()> {
        let e = E::default();
        symbol.st_value.set(e, value);
        symbol.st_size.set(e, size);
        Some(())
    }
}
