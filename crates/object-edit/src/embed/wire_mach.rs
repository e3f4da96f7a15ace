//! Headers of Mach-O objects as they lie in a file: `mach-o/loader.h` of Apple's *Mach-O File Format Reference*,
//! of both classes and byte orders.

use std::marker::PhantomData;

use zerocopy::byteorder::{ByteOrder, U32, U64};
use zerocopy::{BigEndian, FromBytes, Immutable, IntoBytes, KnownLayout, LittleEndian, Unaligned};

/// What a header type must be able to do to be read from and written to bytes.
pub(super) trait Wire:
    FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned + Copy
{
}
impl<T: FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned + Copy> Wire for T {}

/// `mach_header`; that of 64-bit files has four bytes more.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct MachHeader<O: ByteOrder> {
    pub(super) magic: U32<O>,
    pub(super) cputype: U32<O>,
    pub(super) cpusubtype: U32<O>,
    pub(super) filetype: U32<O>,
    pub(super) ncmds: U32<O>,
    pub(super) sizeofcmds: U32<O>,
    pub(super) flags: U32<O>,
}

/// `load_command`: how every load command starts.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct MachCommand<O: ByteOrder> {
    pub(super) cmd: U32<O>,
    pub(super) cmdsize: U32<O>,
}

/// `segment_command`
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct MachSegment32<O: ByteOrder> {
    cmd: U32<O>,
    cmdsize: U32<O>,
    segname: [u8; 16],
    vmaddr: U32<O>,
    vmsize: U32<O>,
    fileoff: U32<O>,
    filesize: U32<O>,
    maxprot: U32<O>,
    initprot: U32<O>,
    nsects: U32<O>,
    flags: U32<O>,
}

/// `segment_command_64`
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct MachSegment64<O: ByteOrder> {
    cmd: U32<O>,
    cmdsize: U32<O>,
    segname: [u8; 16],
    vmaddr: U64<O>,
    vmsize: U64<O>,
    fileoff: U64<O>,
    filesize: U64<O>,
    maxprot: U32<O>,
    initprot: U32<O>,
    nsects: U32<O>,
    flags: U32<O>,
}

/// `section`
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct MachSection32<O: ByteOrder> {
    sectname: [u8; 16],
    segname: [u8; 16],
    addr: U32<O>,
    size: U32<O>,
    offset: U32<O>,
    align: U32<O>,
    reloff: U32<O>,
    nreloc: U32<O>,
    flags: U32<O>,
    reserved1: U32<O>,
    reserved2: U32<O>,
}

/// `section_64`
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct MachSection64<O: ByteOrder> {
    sectname: [u8; 16],
    segname: [u8; 16],
    addr: U64<O>,
    size: U64<O>,
    offset: U32<O>,
    align: U32<O>,
    reloff: U32<O>,
    nreloc: U32<O>,
    flags: U32<O>,
    reserved1: U32<O>,
    reserved2: U32<O>,
    reserved3: U32<O>,
}

/// The fields of a segment command that matter here.
#[derive(Clone, Copy)]
pub(super) struct SegmentFields {
    pub(super) cmdsize: u32,
    pub(super) vmaddr: u64,
    pub(super) vmsize: u64,
    pub(super) fileoff: u64,
    pub(super) filesize: u64,
    pub(super) nsects: u32,
}

/// The fields of a section header that matter here.
#[derive(Clone, Copy)]
pub(super) struct SectionFields {
    pub(super) sectname: [u8; 16],
    pub(super) segname: [u8; 16],
    pub(super) addr: u64,
    pub(super) size: u64,
    pub(super) offset: u32,
    pub(super) reloff: u32,
    pub(super) nreloc: u32,
    pub(super) flags: u32,
}

/// What differs between 32-bit and 64-bit files.
pub(super) trait MachClass {
    type Order: ByteOrder;
    type Segment: MachSegment;
    type Section: MachSection;
    /// `LC_SEGMENT` or `LC_SEGMENT_64`.
    const SEGMENT: u32;
    const HEADER_LEN: u64;
    /// Length of `nlist` or `nlist_64`. In both `n_type` is byte 4 and `n_sect` byte 5.
    const SYMBOL_LEN: u64;
    /// What load commands and tables are aligned to.
    const WORD: u64;
}

/// A 32-bit file.
pub(super) struct Mach32<O>(PhantomData<O>);
/// A 64-bit file.
pub(super) struct Mach64<O>(PhantomData<O>);

impl<O: ByteOrder> MachClass for Mach32<O> {
    type Order = O;
    type Segment = MachSegment32<O>;
    type Section = MachSection32<O>;
    const SEGMENT: u32 = 0x1;
    const HEADER_LEN: u64 = 28;
    const SYMBOL_LEN: u64 = 12;
    const WORD: u64 = 4;
}

impl<O: ByteOrder> MachClass for Mach64<O> {
    type Order = O;
    type Segment = MachSegment64<O>;
    type Section = MachSection64<O>;
    const SEGMENT: u32 = 0x19;
    const HEADER_LEN: u64 = 32;
    const SYMBOL_LEN: u64 = 16;
    const WORD: u64 = 8;
}

/// A segment command of one class.
pub(super) trait MachSegment: Wire {
    fn fields(&self) -> SegmentFields;
    /// Sets all of them; `None` when a number does not fit.
    fn set(&mut self, fields: &SegmentFields) -> Option<()>;
}

/// A section header of one class.
pub(super) trait MachSection: Wire {
    /// Where `offset` is in it, and `reloff`.
    const OFFSETS: [u64; 2];
    fn fields(&self) -> SectionFields;
    /// One without alignment; `None` when a number does not fit.
    fn new(fields: &SectionFields) -> Option<Self>;
}

const _: () = assert!(size_of::<MachHeader<LittleEndian>>() == 28);
const _: () = assert!(size_of::<MachSegment32<BigEndian>>() == 56);
const _: () = assert!(size_of::<MachSegment64<LittleEndian>>() == 72);
const _: () = assert!(size_of::<MachSection32<BigEndian>>() == 68);
const _: () = assert!(size_of::<MachSection64<LittleEndian>>() == 80);

fn narrow<O: ByteOrder>(wide: u64) -> Option<U32<O>> {
    u32::try_from(wide).ok().map(U32::new)
}

impl<O: ByteOrder> MachSegment for MachSegment32<O> {
    fn fields(&self) -> SegmentFields {
        SegmentFields {
            cmdsize: self.cmdsize.get(),
            vmaddr: self.vmaddr.get().into(),
            vmsize: self.vmsize.get().into(),
            fileoff: self.fileoff.get().into(),
            filesize: self.filesize.get().into(),
            nsects: self.nsects.get(),
        }
    }

    fn set(&mut self, fields: &SegmentFields) -> Option<()> {
        self.cmdsize = U32::new(fields.cmdsize);
        self.vmaddr = narrow(fields.vmaddr)?;
        self.vmsize = narrow(fields.vmsize)?;
        self.fileoff = narrow(fields.fileoff)?;
        self.filesize = narrow(fields.filesize)?;
        self.nsects = U32::new(fields.nsects);
        Some(())
    }
}

impl<O: ByteOrder> MachSegment for MachSegment64<O> {
    fn fields(&self) -> SegmentFields {
        SegmentFields {
            cmdsize: self.cmdsize.get(),
            vmaddr: self.vmaddr.get(),
            vmsize: self.vmsize.get(),
            fileoff: self.fileoff.get(),
            filesize: self.filesize.get(),
            nsects: self.nsects.get(),
        }
    }

    fn set(&mut self, fields: &SegmentFields) -> Option<()> {
        self.cmdsize = U32::new(fields.cmdsize);
        self.vmaddr = U64::new(fields.vmaddr);
        self.vmsize = U64::new(fields.vmsize);
        self.fileoff = U64::new(fields.fileoff);
        self.filesize = U64::new(fields.filesize);
        self.nsects = U32::new(fields.nsects);
        Some(())
    }
}

impl<O: ByteOrder> MachSection for MachSection32<O> {
    const OFFSETS: [u64; 2] = [40, 48];

    fn fields(&self) -> SectionFields {
        SectionFields {
            sectname: self.sectname,
            segname: self.segname,
            addr: self.addr.get().into(),
            size: self.size.get().into(),
            offset: self.offset.get(),
            reloff: self.reloff.get(),
            nreloc: self.nreloc.get(),
            flags: self.flags.get(),
        }
    }

    fn new(fields: &SectionFields) -> Option<Self> {
        Some(MachSection32 {
            sectname: fields.sectname,
            segname: fields.segname,
            addr: narrow(fields.addr)?,
            size: narrow(fields.size)?,
            offset: U32::new(fields.offset),
            align: U32::ZERO,
            reloff: U32::new(fields.reloff),
            nreloc: U32::new(fields.nreloc),
            flags: U32::new(fields.flags),
            reserved1: U32::ZERO,
            reserved2: U32::ZERO,
        })
    }
}

impl<O: ByteOrder> MachSection for MachSection64<O> {
    const OFFSETS: [u64; 2] = [48, 56];

    fn fields(&self) -> SectionFields {
        SectionFields {
            sectname: self.sectname,
            segname: self.segname,
            addr: self.addr.get(),
            size: self.size.get(),
            offset: self.offset.get(),
            reloff: self.reloff.get(),
            nreloc: self.nreloc.get(),
            flags: self.flags.get(),
        }
    }

    fn new(fields: &SectionFields) -> Option<Self> {
        Some(MachSection64 {
            sectname: fields.sectname,
            segname: fields.segname,
            addr: U64::new(fields.addr),
            size: U64::new(fields.size),
            offset: U32::new(fields.offset),
            align: U32::ZERO,
            reloff: U32::new(fields.reloff),
            nreloc: U32::new(fields.nreloc),
            flags: U32::new(fields.flags),
            reserved1: U32::ZERO,
            reserved2: U32::ZERO,
            reserved3: U32::ZERO,
        })
    }
}
