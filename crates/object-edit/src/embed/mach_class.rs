//! Mach-O objects of both classes and byte orders: `mach-o/loader.h` of Apple's *Mach-O File Format Reference*.

use std::mem::offset_of;

use object::macho::{
    LC_SEGMENT, LC_SEGMENT_64, LoadCommandType, MachHeader32, MachHeader64, Section32, Section64,
    SectionFlags,
};
use object::read::macho::{MachHeader, Section, Segment};
use object::{Endian, U32, U64};

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
    pub(super) flags: SectionFlags,
}

/// The file header of one class, and with it the other structs of the class.
pub(super) trait MachClass: MachHeader {
    const SEGMENT: LoadCommandType;
    /// What load commands and tables are aligned to.
    const WORD: u64;
    /// Where `offset` is in a section header, and `reloff`.
    const OFFSETS: [usize; 2];

    /// Returns the byte order.
    fn order() -> Self::Endian {
        Self::Endian::default()
    }

    /// Reads a segment command.
    fn segment(segment: &Self::Segment) -> SegmentFields {
        let e = Self::order();
        SegmentFields {
            cmdsize: segment.cmdsize(e),
            vmaddr: segment.vmaddr(e).into(),
            vmsize: segment.vmsize(e).into(),
            fileoff: segment.fileoff(e).into(),
            filesize: segment.filesize(e).into(),
            nsects: segment.nsects(e),
        }
    }

    /// Reads a section header.
    fn section(section: &Self::Section) -> SectionFields {
        let e = Self::order();
        SectionFields {
            sectname: *section.sectname(),
            segname: *section.segname(),
            addr: section.addr(e).into(),
            size: section.size(e).into(),
            offset: section.offset(e),
            reloff: section.reloff(e),
            nreloc: section.nreloc(e),
            flags: section.flags(e),
        }
    }

    /// Sets what the file header says of the length of the load commands.
    fn set_sizeofcmds(&mut self, size: u32);

    /// Sets all these fields of a segment command; `None` when a number does not fit.
    fn set_segment(segment: &mut Self::Segment, fields: &SegmentFields) -> Option<()>;

    /// Makes the header of a section without alignment; `None` when a number does not fit.
    fn section_header(fields: &SectionFields) -> Option<Self::Section>;
}

impl<E: Endian> MachClass for MachHeader32<E> {
    const SEGMENT: LoadCommandType = LC_SEGMENT;
    const WORD: u64 = 4;
    const OFFSETS: [usize; 2] =
        [offset_of!(Section32<E>, offset), offset_of!(Section32<E>, reloff)];

    fn set_sizeofcmds(&mut self, size: u32) {
        self.sizeofcmds.set(E::default(), size);
    }

    fn set_segment(segment: &mut Self::Segment, fields: &SegmentFields) -> Option<()> {
        let e = E::default();
        segment.cmdsize.set(e, fields.cmdsize);
        segment.vmaddr.set(e, u32::try_from(fields.vmaddr).ok()?);
        segment.vmsize.set(e, u32::try_from(fields.vmsize).ok()?);
        segment.fileoff.set(e, u32::try_from(fields.fileoff).ok()?);
        segment.filesize.set(e, u32::try_from(fields.filesize).ok()?);
        segment.nsects.set(e, fields.nsects);
        Some(())
    }

    fn section_header(fields: &SectionFields) -> Option<Section32<E>> {
        let e = E::default();
        Some(Section32 {
            sectname: fields.sectname,
            segname: fields.segname,
            addr: U32::new(e, u32::try_from(fields.addr).ok()?),
            size: U32::new(e, u32::try_from(fields.size).ok()?),
            offset: U32::new(e, fields.offset),
            align: U32::default(),
            reloff: U32::new(e, fields.reloff),
            nreloc: U32::new(e, fields.nreloc),
            flags: U32::new(e, fields.flags),
            reserved1: U32::default(),
            reserved2: U32::default(),
        })
    }
}

impl<E: Endian> MachClass for MachHeader64<E> {
    const SEGMENT: LoadCommandType = LC_SEGMENT_64;
    const WORD: u64 = 8;
    const OFFSETS: [usize; 2] =
        [offset_of!(Section64<E>, offset), offset_of!(Section64<E>, reloff)];

    fn set_sizeofcmds(&mut self, size: u32) {
        self.sizeofcmds.set(E::default(), size);
    }

    fn set_segment(segment: &mut Self::Segment, fields: &SegmentFields) -> Option<()> {
        let e = E::default();
        segment.cmdsize.set(e, fields.cmdsize);
        segment.vmaddr.set(e, fields.vmaddr);
        segment.vmsize.set(e, fields.vmsize);
        segment.fileoff.set(e, fields.fileoff);
        segment.filesize.set(e, fields.filesize);
        segment.nsects.set(e, fields.nsects);
        Some(())
    }

    fn section_header(fields: &SectionFields) -> Option<Section64<E>> {
        let e = E::default();
        Some(Section64 {
            sectname: fields.sectname,
            segname: fields.segname,
            addr: U64::new(e, fields.addr),
            size: U64::new(e, fields.size),
            offset: U32::new(e, fields.offset),
            align: U32::default(),
            reloff: U32::new(e, fields.reloff),
            nreloc: U32::new(e, fields.nreloc),
            flags: U32::new(e, fields.flags),
            reserved1: U32::default(),
            reserved2: U32::default(),
            reserved3: U32::default(),
        })
    }
}
