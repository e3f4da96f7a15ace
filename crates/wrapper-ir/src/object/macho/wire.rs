//! Records of Mach-O objects as they lie in a file, 64 bits and little-endian (`mach-o/loader.h`, `mach-o/nlist.h`).

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{Immutable, IntoBytes, Unaligned};

/// `mach_header_64`
#[derive(IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Header {
    pub(super) magic: U32,
    pub(super) cpu: U32,
    pub(super) cpu_subtype: U32,
    pub(super) kind: U32,
    pub(super) commands: U32,
    pub(super) commands_size: U32,
    pub(super) flags: U32,
    pub(super) reserved: U32,
}

/// `segment_command_64`
#[derive(IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Segment {
    pub(super) command: U32,
    pub(super) command_size: U32,
    pub(super) name: [u8; 16],
    pub(super) address: U64,
    pub(super) size: U64,
    pub(super) file_offset: U64,
    pub(super) file_size: U64,
    pub(super) max_protection: U32,
    pub(super) protection: U32,
    pub(super) sections: U32,
    pub(super) flags: U32,
}

/// `section_64`
#[derive(Default, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct SectionHeader {
    pub(super) name: [u8; 16],
    pub(super) segment: [u8; 16],
    pub(super) address: U64,
    pub(super) size: U64,
    pub(super) offset: U32,
    /// The exponent of a power of two.
    pub(super) align: U32,
    pub(super) relocations_at: U32,
    pub(super) relocations: U32,
    pub(super) flags: U32,
    pub(super) reserved: [U32; 3],
}

/// `build_version_command`
#[derive(IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct BuildVersion {
    pub(super) command: U32,
    pub(super) command_size: U32,
    pub(super) platform: U32,
    pub(super) minimum: U32,
    pub(super) sdk: U32,
    pub(super) tools: U32,
}

/// `symtab_command`
#[derive(IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct SymbolTable {
    pub(super) command: U32,
    pub(super) command_size: U32,
    pub(super) symbols_at: U32,
    pub(super) symbols: U32,
    pub(super) strings_at: U32,
    pub(super) strings_size: U32,
}

/// `dysymtab_command`
#[derive(IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct SymbolRanges {
    pub(super) command: U32,
    pub(super) command_size: U32,
    pub(super) first_local: U32,
    pub(super) locals: U32,
    pub(super) first_defined: U32,
    pub(super) defined: U32,
    pub(super) first_undefined: U32,
    pub(super) undefined: U32,
    /// Only used in linked files.
    pub(super) unused: [U32; 12],
}

/// `nlist_64`
#[derive(IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct SymbolRecord {
    pub(super) name: U32,
    pub(super) kind: u8,
    /// Counted from 1.
    pub(super) section: u8,
    pub(super) description: U16,
    pub(super) value: U64,
}

/// `relocation_info`
#[derive(IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct RelocationRecord {
    pub(super) address: U32,
    /// 24 bits of a symbol or section, 8 of the type.
    pub(super) target: U32,
}

/// `compact_unwind_entry`
#[derive(IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct UnwindEntry {
    pub(super) function: U64,
    pub(super) size: U32,
    pub(super) encoding: U32,
    pub(super) personality: U64,
    pub(super) lsda: U64,
}

const _: () = assert!(size_of::<Header>() == 32);
const _: () = assert!(size_of::<Segment>() == 72);
const _: () = assert!(size_of::<SectionHeader>() == 80);
const _: () = assert!(size_of::<BuildVersion>() == 24);
const _: () = assert!(size_of::<SymbolTable>() == 24);
const _: () = assert!(size_of::<SymbolRanges>() == 80);
const _: () = assert!(size_of::<SymbolRecord>() == 16);
const _: () = assert!(size_of::<RelocationRecord>() == 8);
const _: () = assert!(size_of::<UnwindEntry>() == 32);
