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
    /// The alignment of load commands and tables.
    const WORD: u64;
    /// The positions of `offset` and `reloff` in a section header.
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

    /// Sets the length of the load commands in the file header.
    fn set_sizeofcmds(&mut self, size: u32);

    /// Sets all these fields of a segment command; `None` when a number does not fit.
    fn set_segment(segment: &mut Self::Segment, fields: &SegmentFields) -> Option<()>;

    /// Makes the header of a section without alignment; `None` when a number does not fit.
    fn section_header(fields: &SectionFields) -> Option<Self::Section>;
}

/// Writes numbers of a class: `$word` makes them, or `None` when they do not fit. `$rest` are fields of sections that only
/// the class has.
macro_rules! class {
    ($Header:ident, $Section:ident, $segment:expr, $len:expr, $word:expr $(, $rest:ident)?) => {
        impl<E: Endian> MachClass for $Header<E> {
            const SEGMENT: LoadCommandType = $segment;
            const WORD: u64 = $len;
            const OFFSETS: [usize; 2] =
                [offset_of!($Section<E>, offset), offset_of!($Section<E>, reloff)];

            fn set_sizeofcmds(&mut self, size: u32) {
                self.sizeofcmds.set(E::default(), size);
            }

            fn set_segment(segment: &mut Self::Segment, fields: &SegmentFields) -> Option<()> {
                let e = E::default();
                segment.cmdsize.set(e, fields.cmdsize);
                segment.vmaddr = $word(e, fields.vmaddr)?;
                segment.vmsize = $word(e, fields.vmsize)?;
                segment.fileoff = $word(e, fields.fileoff)?;
                segment.filesize = $word(e, fields.filesize)?;
                segment.nsects.set(e, fields.nsects);
                Some(())
            }

            fn section_header(fields: &SectionFields) -> Option<$Section<E>> {
                let e = E::default();
                Some($Section {
                    sectname: fields.sectname,
                    segname: fields.segname,
                    addr: $word(e, fields.addr)?,
                    size: $word(e, fields.size)?,
                    offset: U32::new(e, fields.offset),
                    align: U32::default(),
                    reloff: U32::new(e, fields.reloff),
                    nreloc: U32::new(e, fields.nreloc),
                    flags: U32::new(e, fields.flags),
                    reserved1: U32::default(),
                    reserved2: U32::default(),
                    $($rest: U32::default(),)?
                })
            }
        }
    };
}

class!(MachHeader32, Section32, LC_SEGMENT, 4, |e, wide| u32::try_from(wide)
    .ok()
    .map(|word| U32::new(e, word)));
class!(MachHeader64, Section64, LC_SEGMENT_64, 8, |e, wide| Some(U64::new(e, wide)), reserved3);
