//! Headers of ELF and COFF objects as they lie in a file.
//!
//! ELF: System V ABI, "Object Files" (gABI), of both classes and byte orders. COFF: Microsoft's "PE Format".

use zerocopy::byteorder::{ByteOrder, U16, U32, U64};
use zerocopy::little_endian::{U16 as Le16, U32 as Le32};
use zerocopy::{BigEndian, FromBytes, Immutable, IntoBytes, KnownLayout, LittleEndian, Unaligned};

/// `e_ident[EI_DATA]` of a big-endian file.
pub(super) const ELFDATA2MSB: u8 = 2;
/// `e_ident[EI_DATA]` of a little-endian file.
pub(super) const ELFDATA2LSB: u8 = 1;

/// What a header type must be able to do to be read from and written to bytes.
pub(super) trait Wire:
    FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned + Copy
{
}
impl<T: FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned + Copy> Wire for T {}

/// The fields of an ELF header that matter here.
pub(super) struct ElfFields {
    pub(super) e_type: u16,
    pub(super) phoff: u64,
    pub(super) shoff: u64,
    pub(super) phentsize: u16,
    pub(super) phnum: u16,
    pub(super) shentsize: u16,
    pub(super) shnum: u16,
    pub(super) shstrndx: u16,
}

/// An ELF section header of either class.
pub(super) struct ElfSection {
    pub(super) name: u32,
    pub(super) kind: u32,
    pub(super) flags: u64,
    pub(super) addr: u64,
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) link: u32,
    pub(super) info: u32,
    pub(super) align: u64,
    pub(super) entsize: u64,
}

/// An ELF header of one class.
pub(super) trait ElfHeader: Wire {
    type Section: ElfSectionHeader;
    type Segment: ElfSegment;
    type Symbol: ElfSymbol;
    type Order: ByteOrder;
    /// The largest offset or size in a file of this class.
    const LIMIT: u64;
    fn fields(&self) -> ElfFields;
    /// Sets `e_shoff` and `e_shnum`; `None` when the offset does not fit.
    fn set_table(&mut self, shoff: u64, shnum: u16) -> Option<()>;
    /// Sets `e_shstrndx`.
    fn set_names(&mut self, shstrndx: u16);
}

/// An ELF section header of one class.
pub(super) trait ElfSectionHeader: Wire {
    fn fields(&self) -> ElfSection;
    /// `None` when a number does not fit.
    fn new(fields: &ElfSection) -> Option<Self>;
}

/// `Elf32_Ehdr`
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct ElfHeader32<O: ByteOrder> {
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
pub(super) struct ElfHeader64<O: ByteOrder> {
    ident: [u8; 16],
    e_type: U16<O>,
    machine: U16<O>,
    version: U32<O>,
    entry: U64<O>,
    phoff: U64<O>,
    shoff: U64<O>,
    flags: U32<O>,
    ehsize: U16<O>,
    phentsize: U16<O>,
    phnum: U16<O>,
    shentsize: U16<O>,
    shnum: U16<O>,
    shstrndx: U16<O>,
}

/// `Elf32_Shdr`
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct ElfSection32<O: ByteOrder> {
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
pub(super) struct ElfSection64<O: ByteOrder> {
    name: U32<O>,
    kind: U32<O>,
    flags: U64<O>,
    addr: U64<O>,
    offset: U64<O>,
    size: U64<O>,
    link: U32<O>,
    info: U32<O>,
    align: U64<O>,
    entsize: U64<O>,
}

/// An ELF program header of one class.
pub(super) trait ElfSegment: Wire {
    /// `p_offset` and `p_filesz`.
    fn file_range(&self) -> (u64, u64);
}

/// `Elf32_Phdr`
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct ElfSegment32<O: ByteOrder> {
    kind: U32<O>,
    offset: U32<O>,
    vaddr: U32<O>,
    paddr: U32<O>,
    filesz: U32<O>,
    memsz: U32<O>,
    flags: U32<O>,
    align: U32<O>,
}

/// `Elf64_Phdr`
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct ElfSegment64<O: ByteOrder> {
    kind: U32<O>,
    flags: U32<O>,
    offset: U64<O>,
    vaddr: U64<O>,
    paddr: U64<O>,
    filesz: U64<O>,
    memsz: U64<O>,
    align: U64<O>,
}

impl<O: ByteOrder> ElfSegment for ElfSegment32<O> {
    fn file_range(&self) -> (u64, u64) {
        (self.offset.get().into(), self.filesz.get().into())
    }
}

impl<O: ByteOrder> ElfSegment for ElfSegment64<O> {
    fn file_range(&self) -> (u64, u64) {
        (self.offset.get(), self.filesz.get())
    }
}

/// An ELF symbol of one class.
pub(super) trait ElfSymbol: Wire {
    fn name(&self) -> u32;
    fn set_name(&mut self, name: u32);
    /// Binding in the upper half, type in the lower.
    fn info(&self) -> u8;
    fn section(&self) -> u16;
    fn set_section(&mut self, section: u16);
}

/// `Elf32_Sym`
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct ElfSymbol32<O: ByteOrder> {
    name: U32<O>,
    value: U32<O>,
    size: U32<O>,
    info: u8,
    other: u8,
    section: U16<O>,
}

/// `Elf64_Sym`
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct ElfSymbol64<O: ByteOrder> {
    name: U32<O>,
    info: u8,
    other: u8,
    section: U16<O>,
    value: U64<O>,
    size: U64<O>,
}

/// `IMAGE_FILE_HEADER`
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct CoffHeader {
    pub(super) machine: Le16,
    pub(super) sections: Le16,
    pub(super) timestamp: Le32,
    pub(super) symbols_at: Le32,
    pub(super) symbols: Le32,
    pub(super) optional_header_size: Le16,
    pub(super) characteristics: Le16,
}

/// `ANON_OBJECT_HEADER_BIGOBJ`
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct BigCoffHeader {
    pub(super) signature: [u8; 4],
    pub(super) version: Le16,
    pub(super) machine: Le16,
    pub(super) timestamp: Le32,
    pub(super) class_id: [u8; 16],
    pub(super) unused: [u8; 16],
    pub(super) sections: Le32,
    pub(super) symbols_at: Le32,
    pub(super) symbols: Le32,
}

/// `IMAGE_SECTION_HEADER`
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct CoffSection {
    pub(super) name: [u8; 8],
    pub(super) virtual_size: Le32,
    pub(super) virtual_address: Le32,
    pub(super) raw_size: Le32,
    pub(super) raw_at: Le32,
    pub(super) relocations_at: Le32,
    pub(super) lines_at: Le32,
    pub(super) relocations: Le16,
    pub(super) lines: Le16,
    pub(super) characteristics: Le32,
}

const _: () = assert!(size_of::<ElfHeader32<LittleEndian>>() == 52);
const _: () = assert!(size_of::<ElfHeader64<BigEndian>>() == 64);
const _: () = assert!(size_of::<ElfSection32<BigEndian>>() == 40);
const _: () = assert!(size_of::<ElfSection64<LittleEndian>>() == 64);
const _: () = assert!(size_of::<ElfSegment32<BigEndian>>() == 32);
const _: () = assert!(size_of::<ElfSegment64<LittleEndian>>() == 56);
const _: () = assert!(size_of::<ElfSymbol32<LittleEndian>>() == 16);
const _: () = assert!(size_of::<ElfSymbol64<BigEndian>>() == 24);
const _: () = assert!(size_of::<CoffHeader>() == 20);
const _: () = assert!(size_of::<BigCoffHeader>() == 56);
const _: () = assert!(size_of::<CoffSection>() == 40);

impl<O: ByteOrder> ElfHeader for ElfHeader32<O> {
    type Section = ElfSection32<O>;
    type Segment = ElfSegment32<O>;
    type Symbol = ElfSymbol32<O>;
    type Order = O;
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

    fn set_names(&mut self, shstrndx: u16) {
        self.shstrndx.set(shstrndx);
    }
}

impl<O: ByteOrder> ElfHeader for ElfHeader64<O> {
    type Section = ElfSection64<O>;
    type Segment = ElfSegment64<O>;
    type Symbol = ElfSymbol64<O>;
    type Order = O;
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

    fn set_names(&mut self, shstrndx: u16) {
        self.shstrndx.set(shstrndx);
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

impl<O: ByteOrder> ElfSymbol for ElfSymbol32<O> {
    fn name(&self) -> u32 {
        self.name.get()
    }

    fn set_name(&mut self, name: u32) {
        self.name.set(name);
    }

    fn info(&self) -> u8 {
        self.info
    }

    fn section(&self) -> u16 {
        self.section.get()
    }

    fn set_section(&mut self, section: u16) {
        self.section.set(section);
    }
}

impl<O: ByteOrder> ElfSymbol for ElfSymbol64<O> {
    fn name(&self) -> u32 {
        self.name.get()
    }

    fn set_name(&mut self, name: u32) {
        self.name.set(name);
    }

    fn info(&self) -> u8 {
        self.info
    }

    fn section(&self) -> u16 {
        self.section.get()
    }

    fn set_section(&mut self, section: u16) {
        self.section.set(section);
    }
}
