//! Records of ELF and COFF objects as they lie in a file, little-endian.
//!
//! ELF: System V ABI, "Object Files" (gABI). COFF: Microsoft's "PE Format".

use zerocopy::little_endian::{I64, U16, U32, U64};
use zerocopy::{Immutable, IntoBytes, Unaligned};

/// `Elf64_Ehdr`
#[derive(IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct ElfHeader {
    pub(super) ident: [u8; 16],
    pub(super) e_type: U16,
    pub(super) machine: U16,
    pub(super) version: U32,
    pub(super) entry: U64,
    pub(super) phoff: U64,
    pub(super) shoff: U64,
    pub(super) flags: U32,
    pub(super) ehsize: U16,
    pub(super) phentsize: U16,
    pub(super) phnum: U16,
    pub(super) shentsize: U16,
    pub(super) shnum: U16,
    pub(super) shstrndx: U16,
}

/// `Elf64_Shdr`
#[derive(Clone, Default, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct ElfSection {
    pub(super) name: U32,
    pub(super) kind: U32,
    pub(super) flags: U64,
    pub(super) addr: U64,
    pub(super) offset: U64,
    pub(super) size: U64,
    pub(super) link: U32,
    pub(super) info: U32,
    pub(super) align: U64,
    pub(super) entsize: U64,
}

/// `Elf64_Sym`
#[derive(Default, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct ElfSymbol {
    pub(super) name: U32,
    pub(super) info: u8,
    pub(super) other: u8,
    pub(super) section: U16,
    pub(super) value: U64,
    pub(super) size: U64,
}

/// `Elf64_Rela`
#[derive(IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct ElfRelocation {
    pub(super) offset: U64,
    /// The lower half of `r_info`.
    pub(super) kind: U32,
    /// The upper half of `r_info`.
    pub(super) symbol: U32,
    pub(super) addend: I64,
}

/// `IMAGE_FILE_HEADER`
#[derive(IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct CoffHeader {
    pub(super) machine: U16,
    pub(super) sections: U16,
    pub(super) timestamp: U32,
    pub(super) symbols_at: U32,
    pub(super) symbols: U32,
    pub(super) optional_header_size: U16,
    pub(super) characteristics: U16,
}

/// `IMAGE_SECTION_HEADER`
#[derive(Default, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct CoffSection {
    pub(super) name: [u8; 8],
    pub(super) virtual_size: U32,
    pub(super) virtual_address: U32,
    pub(super) raw_size: U32,
    pub(super) raw_at: U32,
    pub(super) relocations_at: U32,
    pub(super) lines_at: U32,
    pub(super) relocations: U16,
    pub(super) lines: U16,
    pub(super) characteristics: U32,
}

/// `IMAGE_SYMBOL`
#[derive(Default, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct CoffSymbol {
    pub(super) name: [u8; 8],
    pub(super) value: U32,
    pub(super) section: U16,
    pub(super) kind: U16,
    pub(super) class: u8,
    pub(super) auxiliaries: u8,
}

/// The auxiliary record of a section (section 5.5.5 of "PE Format").
#[derive(IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct CoffSectionDefinition {
    pub(super) size: U32,
    pub(super) relocations: U16,
    pub(super) lines: U16,
    pub(super) checksum: U32,
    pub(super) section: U16,
    pub(super) selection: u8,
    pub(super) unused: [u8; 3],
}

/// `IMAGE_RELOCATION`
#[derive(IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct CoffRelocation {
    pub(super) address: U32,
    pub(super) symbol: U32,
    pub(super) kind: U16,
}

const _: () = assert!(size_of::<ElfHeader>() == 64);
const _: () = assert!(size_of::<ElfSection>() == 64);
const _: () = assert!(size_of::<ElfSymbol>() == 24);
const _: () = assert!(size_of::<ElfRelocation>() == 24);
const _: () = assert!(size_of::<CoffHeader>() == 20);
const _: () = assert!(size_of::<CoffSection>() == 40);
const _: () = assert!(size_of::<CoffSymbol>() == 18);
const _: () = assert!(size_of::<CoffSectionDefinition>() == 18);
const _: () = assert!(size_of::<CoffRelocation>() == 10);
