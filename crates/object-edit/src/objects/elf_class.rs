//! ELF files of both classes and byte orders: System V ABI, "Object Files" (gABI).

use object::elf::{
    ELFOSABI_GNU, ELFOSABI_NONE, FileHeader32, FileHeader64, SectionFlags, SectionHeader32,
    SectionHeader64, SectionType, SymbolSection,
};
use object::read::elf::{FileHeader, SectionHeader};
use object::{Endian, U32, U64};

/// The class of an ELF file and its byte order.
#[derive(Clone, Copy)]
pub(crate) enum Class {
    Little32,
    Big32,
    Little64,
    Big64,
}

impl Class {
    /// Returns the class that the first bytes of a file name, if it is a known one.
    pub(crate) fn of(head: &[u8]) -> Option<Self> {
        match head.get(4..6)? {
            [1, 1] => Some(Class::Little32),
            [1, 2] => Some(Class::Big32),
            [2, 1] => Some(Class::Little64),
            [2, 2] => Some(Class::Big64),
            _ => None,
        }
    }
}

/// Evaluates an expression with the file header of a class as a type.
macro_rules! by_class {
    ($class:expr, $H:ident => $result:expr) => {{
        use object::elf::{FileHeader32, FileHeader64};
        use object::{BigEndian, LittleEndian};
        use $crate::objects::elf_class::Class;
        match $class {
            Class::Little32 => {
                type $H = FileHeader32<LittleEndian>;
                $result
            }
            Class::Big32 => {
                type $H = FileHeader32<BigEndian>;
                $result
            }
            Class::Little64 => {
                type $H = FileHeader64<LittleEndian>;
                $result
            }
            Class::Big64 => {
                type $H = FileHeader64<BigEndian>;
                $result
            }
        }
    }};
}
pub(crate) use by_class;

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

    /// Sets the fields of the file header about the section headers; `None` when the offset does not fit.
    fn set_table(&mut self, shoff: u64, shnum: u16, shstrndx: SymbolSection) -> Option<()>;

    /// Says that the file needs what GNU's linkers know, unless it says more already.
    fn set_gnu(&mut self);

    /// Gives a symbol another name and section.
    fn set_symbol(symbol: &mut Self::Sym, name: u32, section: SymbolSection);

    /// Gives a symbol another value and size; `None` when one does not fit.
    fn set_place(symbol: &mut Self::Sym, value: u64, size: u64) -> Option<()>;
}

/// Writes numbers of a class: `$word` and `$flags` make them, or `None` when they do not fit.
macro_rules! class {
    ($Header:ident, $Section:ident, $limit:expr, $word:expr, $flags:expr) => {
        impl<E: Endian> ElfHeader for $Header<E> {
            const LIMIT: u64 = $limit;

            fn section_header(fields: &ElfSection) -> Option<$Section<E>> {
                let e = E::default();
                Some($Section {
                    sh_name: U32::new(e, fields.name),
                    sh_type: U32::new(e, fields.kind),
                    sh_flags: $flags(e, fields.flags)?,
                    sh_addr: $word(e, fields.addr)?,
                    sh_offset: $word(e, fields.offset)?,
                    sh_size: $word(e, fields.size)?,
                    sh_link: U32::new(e, fields.link),
                    sh_info: U32::new(e, fields.info),
                    sh_addralign: $word(e, fields.align)?,
                    sh_entsize: $word(e, fields.entsize)?,
                })
            }

            fn set_table(&mut self, shoff: u64, shnum: u16, shstrndx: SymbolSection) -> Option<()> {
                let e = E::default();
                self.e_shoff = $word(e, shoff)?;
                self.e_shnum.set(e, shnum);
                self.e_shstrndx.set(e, shstrndx);
                Some(())
            }

            fn set_gnu(&mut self) {
                if self.e_ident.os_abi == ELFOSABI_NONE {
                    self.e_ident.os_abi = ELFOSABI_GNU;
                }
            }

            fn set_symbol(symbol: &mut Self::Sym, name: u32, section: SymbolSection) {
                symbol.st_name.set(E::default(), name);
                symbol.st_shndx.set(E::default(), section);
            }

            fn set_place(symbol: &mut Self::Sym, value: u64, size: u64) -> Option<()> {
                symbol.st_value = $word(E::default(), value)?;
                symbol.st_size = $word(E::default(), size)?;
                Some(())
            }
        }
    };
}

class!(
    FileHeader32,
    SectionHeader32,
    u32::MAX as u64,
    |e, wide| u32::try_from(wide).ok().map(|word| U32::new(e, word)),
    |e, flags| U32::new_u64(e, flags).ok()
);
class!(
    FileHeader64,
    SectionHeader64,
    u64::MAX,
    |e, wide| Some(U64::new(e, wide)),
    |e, flags| Some(U64::new(e, flags))
);
