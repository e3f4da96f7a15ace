//! Headers of ELF and COFF objects and of PE files as they lie in a file.
//!
//! ELF: System V ABI, "Object Files" (gABI), of both classes and byte orders. COFF: Microsoft's "PE Format".

use zerocopy::byteorder::{ByteOrder, U16, U32, U64};
use zerocopy::little_endian::{U16 as Le16, U32 as Le32, U64 as Le64};
use zerocopy::{BigEndian, FromBytes, Immutable, IntoBytes, KnownLayout, LittleEndian, Unaligned};

/// `e_ident[EI_DATA]` of a big-endian file.
pub(crate) const ELFDATA2MSB: u8 = 2;
/// `e_ident[EI_DATA]` of a little-endian file.
pub(crate) const ELFDATA2LSB: u8 = 1;

/// What a header type must be able to do to be read from and written to bytes.
pub(crate) trait Wire:
    FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned + Copy
{
}
impl<T: FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned + Copy> Wire for T {}

/// The fields of an ELF header that matter here.
pub(crate) struct ElfFields {
    pub(crate) e_type: u16,
    pub(crate) phoff: u64,
    pub(crate) shoff: u64,
    pub(crate) phentsize: u16,
    pub(crate) phnum: u16,
    pub(crate) shentsize: u16,
    pub(crate) shnum: u16,
    pub(crate) shstrndx: u16,
}

/// An ELF section header of either class.
#[derive(Clone, Copy)]
pub(crate) struct ElfSection {
    pub(crate) name: u32,
    pub(crate) kind: u32,
    pub(crate) flags: u64,
    pub(crate) addr: u64,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) link: u32,
    pub(crate) info: u32,
    pub(crate) align: u64,
    pub(crate) entsize: u64,
}

/// An ELF header of one class.
pub(crate) trait ElfHeader: Wire {
    type Section: ElfSectionHeader;
    /// The largest offset or size in a file of this class.
    const LIMIT: u64;
    fn fields(&self) -> ElfFields;
    /// Sets `e_shoff` and `e_shnum`; `None` when the offset does not fit.
    fn set_table(&mut self, shoff: u64, shnum: u16) -> Option<()>;
}

/// An ELF section header of one class.
pub(crate) trait ElfSectionHeader: Wire {
    fn fields(&self) -> ElfSection;
    /// `None` when a number does not fit.
    fn new(fields: &ElfSection) -> Option<Self>;
}

/// `Elf32_Ehdr`
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct ElfHeader32<O: ByteOrder> {
    ident: [u8; 16],
    e_type: U16<O>,
    machine: U16<O>,
    version: U32<O>,
    entry: U32<O>,
    phoff: U32<O>,
    shoff: U32<O>,
    flags: U32<O>,
    ehsize: U16<O>,
    phentsize: U16<O>,
    phnum: U16<O>,
    shentsize: U16<O>,
    shnum: U16<O>,
    shstrndx: U16<O>,
}

/// `Elf64_Ehdr`
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct ElfHeader64<O: ByteOrder> {
    pub(crate) ident: [u8; 16],
    pub(crate) e_type: U16<O>,
    pub(crate) machine: U16<O>,
    pub(crate) version: U32<O>,
    pub(crate) entry: U64<O>,
    pub(crate) phoff: U64<O>,
    pub(crate) shoff: U64<O>,
    pub(crate) flags: U32<O>,
    pub(crate) ehsize: U16<O>,
    pub(crate) phentsize: U16<O>,
    pub(crate) phnum: U16<O>,
    pub(crate) shentsize: U16<O>,
    pub(crate) shnum: U16<O>,
    pub(crate) shstrndx: U16<O>,
}

/// `Elf32_Shdr`
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct ElfSection32<O: ByteOrder> {
    name: U32<O>,
    kind: U32<O>,
    flags: U32<O>,
    addr: U32<O>,
    offset: U32<O>,
    size: U32<O>,
    link: U32<O>,
    info: U32<O>,
    align: U32<O>,
    entsize: U32<O>,
}

/// `Elf64_Shdr`
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct ElfSection64<O: ByteOrder> {
    pub(crate) name: U32<O>,
    pub(crate) kind: U32<O>,
    pub(crate) flags: U64<O>,
    pub(crate) addr: U64<O>,
    pub(crate) offset: U64<O>,
    pub(crate) size: U64<O>,
    pub(crate) link: U32<O>,
    pub(crate) info: U32<O>,
    pub(crate) align: U64<O>,
    pub(crate) entsize: U64<O>,
}

/// `IMAGE_FILE_HEADER`
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct CoffHeader {
    pub(crate) machine: Le16,
    pub(crate) sections: Le16,
    pub(crate) timestamp: Le32,
    pub(crate) symbols_at: Le32,
    pub(crate) symbols: Le32,
    pub(crate) optional_header_size: Le16,
    pub(crate) characteristics: Le16,
}

/// `ANON_OBJECT_HEADER_BIGOBJ`
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct BigCoffHeader {
    pub(crate) signature: [u8; 4],
    pub(crate) version: Le16,
    pub(crate) machine: Le16,
    pub(crate) timestamp: Le32,
    pub(crate) class_id: [u8; 16],
    pub(crate) unused: [u8; 16],
    pub(crate) sections: Le32,
    pub(crate) symbols_at: Le32,
    pub(crate) symbols: Le32,
}

/// `IMAGE_SECTION_HEADER`
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct CoffSection {
    pub(crate) name: [u8; 8],
    pub(crate) virtual_size: Le32,
    pub(crate) virtual_address: Le32,
    pub(crate) raw_size: Le32,
    pub(crate) raw_at: Le32,
    pub(crate) relocations_at: Le32,
    pub(crate) lines_at: Le32,
    pub(crate) relocations: Le16,
    pub(crate) lines: Le16,
    pub(crate) characteristics: Le32,
}

/// `IMAGE_SYMBOL`
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct CoffSymbol {
    pub(crate) name: [u8; 8],
    pub(crate) value: Le32,
    /// From 1; 0 and what is negative as a signed number stand for no section.
    pub(crate) section: Le16,
    pub(crate) kind: Le16,
    pub(crate) class: u8,
    /// So many records of the same size follow, which are no symbols.
    pub(crate) auxiliary: u8,
}

/// `IMAGE_OPTIONAL_HEADER64` up to its data directories
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct PeOptionalHeader64 {
    pub(crate) magic: Le16,
    pub(crate) linker_version: [u8; 2],
    pub(crate) code_size: Le32,
    pub(crate) initialized_size: Le32,
    pub(crate) uninitialized_size: Le32,
    pub(crate) entry: Le32,
    pub(crate) code_base: Le32,
    pub(crate) image_base: Le64,
    pub(crate) section_alignment: Le32,
    pub(crate) file_alignment: Le32,
    pub(crate) versions: [u8; 16],
    pub(crate) image_size: Le32,
    pub(crate) headers_size: Le32,
    pub(crate) checksum: Le32,
    pub(crate) subsystem: Le16,
    pub(crate) dll_characteristics: Le16,
    pub(crate) stack_and_heap: [u8; 32],
    pub(crate) loader_flags: Le32,
    pub(crate) directories: Le32,
}

/// `IMAGE_DATA_DIRECTORY`
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct PeDirectory {
    pub(crate) address: Le32,
    pub(crate) size: Le32,
}

/// `IMAGE_DEBUG_DIRECTORY`
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct PeDebugEntry {
    pub(crate) characteristics: Le32,
    pub(crate) timestamp: Le32,
    pub(crate) version: [u8; 4],
    pub(crate) kind: Le32,
    pub(crate) size: Le32,
    pub(crate) address: Le32,
    pub(crate) raw_at: Le32,
}

const _: () = assert!(size_of::<ElfHeader32<LittleEndian>>() == 52);
const _: () = assert!(size_of::<ElfHeader64<BigEndian>>() == 64);
const _: () = assert!(size_of::<ElfSection32<BigEndian>>() == 40);
const _: () = assert!(size_of::<ElfSection64<LittleEndian>>() == 64);
const _: () = assert!(size_of::<CoffHeader>() == 20);
const _: () = assert!(size_of::<BigCoffHeader>() == 56);
const _: () = assert!(size_of::<CoffSection>() == 40);
const _: () = assert!(size_of::<CoffSymbol>() == 18);
const _: () = assert!(size_of::<PeOptionalHeader64>() == 112);
const _: () = assert!(size_of::<PeDirectory>() == 8);
const _: () = assert!(size_of::<PeDebugEntry>() == 28);

impl<O: ByteOrder> ElfHeader for ElfHeader32<O> {
    type Section = ElfSection32<O>;
    const LIMIT: u64 = u32::MAX as u64;

    fn fields(&self) -> ElfFields {
        ElfFields {
            e_type: self.e_type.get(),
            phoff: self.phoff.get().into(),
            shoff: self.shoff.get().into(),
            phentsize: self.phentsize.get(),
            phnum: self.phnum.get(),
            shentsize: self.shentsize.get(),
            shnum: self.shnum.get(),
            shstrndx: self.shstrndx.get(),
        }
    }

    fn set_table(&mut self, shoff: u64, shnum: u16) -> Option<()> {
        self.shoff.set(u32::try_from(shoff).ok()?);
        self.shnum.set(shnum);
        Some(())
    }
}

impl<O: ByteOrder> ElfHeader for ElfHeader64<O> {
    type Section = ElfSection64<O>;
    const LIMIT: u64 = u64::MAX;

    fn fields(&self) -> ElfFields {
        ElfFields {
            e_type: self.e_type.get(),
            phoff: self.phoff.get(),
            shoff: self.shoff.get(),
            phentsize: self.phentsize.get(),
            phnum: self.phnum.get(),
            shentsize: self.shentsize.get(),
            shnum: self.shnum.get(),
            shstrndx: self.shstrndx.get(),
        }
    }

    fn set_table(&mut self, shoff: u64, shnum: u16) -> Option<()> {
        self.shoff.set(shoff);
        self.shnum.set(shnum);
        Some(())
    }
}

impl<O: ByteOrder> ElfSectionHeader for ElfSection32<O> {
    fn fields(&self) -> ElfSection {
        ElfSection {
            name: self.name.get(),
            kind: self.kind.get(),
            flags: self.flags.get().into(),
            addr: self.addr.get().into(),
            offset: self.offset.get().into(),
            size: self.size.get().into(),
            link: self.link.get(),
            info: self.info.get(),
            align: self.align.get().into(),
            entsize: self.entsize.get().into(),
        }
    }

    fn new(fields: &ElfSection) -> Option<Self> {
        let narrow = |wide: u64| u32::try_from(wide).ok().map(U32::new);
        Some(ElfSection32 {
            name: U32::new(fields.name),
            kind: U32::new(fields.kind),
            flags: narrow(fields.flags)?,
            addr: narrow(fields.addr)?,
            offset: narrow(fields.offset)?,
            size: narrow(fields.size)?,
            link: U32::new(fields.link),
            info: U32::new(fields.info),
            align: narrow(fields.align)?,
            entsize: narrow(fields.entsize)?,
        })
    }
}

impl<O: ByteOrder> ElfSectionHeader for ElfSection64<O> {
    fn fields(&self) -> ElfSection {
        ElfSection {
            name: self.name.get(),
            kind: self.kind.get(),
            flags: self.flags.get(),
            addr: self.addr.get(),
            offset: self.offset.get(),
            size: self.size.get(),
            link: self.link.get(),
            info: self.info.get(),
            align: self.align.get(),
            entsize: self.entsize.get(),
        }
    }

    fn new(fields: &ElfSection) -> Option<Self> {
        Some(ElfSection64 {
            name: U32::new(fields.name),
            kind: U32::new(fields.kind),
            flags: U64::new(fields.flags),
            addr: U64::new(fields.addr),
            offset: U64::new(fields.offset),
            size: U64::new(fields.size),
            link: U32::new(fields.link),
            info: U32::new(fields.info),
            align: U64::new(fields.align),
            entsize: U64::new(fields.entsize),
        })
    }
}
