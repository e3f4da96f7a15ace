//! Headers of ELF files of both classes and byte orders: System V ABI, "Object Files" (gABI).

use zerocopy::byteorder::{ByteOrder, U16, U32, U64};
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

const _: () = assert!(size_of::<ElfHeader32<LittleEndian>>() == 52);
const _: () = assert!(size_of::<ElfHeader64<BigEndian>>() == 64);
const _: () = assert!(size_of::<ElfSection32<BigEndian>>() == 40);
const _: () = assert!(size_of::<ElfSection64<LittleEndian>>() == 64);

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
