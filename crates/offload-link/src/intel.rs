//! The ELF file that carries SPIR-V for Intel GPUs to LLVM's OpenMP runtime.
//!
//! ```text
//! header                       ET_DYN, EM_INTELGT
//! .note.inteloneompoffload     three notes: version 1.0; image 0 is SPIR-V without options; one image
//! __openmp_offload_spirv_0     the module
//! .strtab, .shstrtab
//! section headers              at a multiple of 8
//! ```

use byte_parts::Parts;
use object::elf::{ET_DYN, SHT_NOTE, SHT_PROGBITS, SHT_STRTAB};
use target_id::Triple;

const EM_INTELGT: u16 = 205;

const HEADER: u64 = 64;
const SECTION: u16 = 64;

const OWNER: &[u8] = b"INTELONEOMPOFFLOAD\0";
/// Types and contents of the notes.
const NOTES: [(u32, &[u8]); 3] = [(1, b"1.0"), (3, b"0\x001\0\0"), (2, b"1")];
/// The names of sections, and where they start.
const NAMES: &[u8] = b"\0.note.inteloneompoffload\0.shstrtab\0.strtab\0__openmp_offload_spirv_0\0";
const NOTE_NAME: u32 = 1;
const NAMES_NAME: u32 = 26;
const STRINGS_NAME: u32 = 36;
const MODULE_NAME: u32 = 44;

/// Returns whether OpenMP images for the triple lie in such a file.
pub(crate) fn wants_file(triple: &str) -> bool {
    let triple = Triple::parse(triple);
    triple.is_spirv() && triple.vendor() == "intel"
}

/// Returns the file for a module.
pub(crate) fn file(module: &Parts) -> Parts {
    let notes = notes();
    let size = |bytes: &[u8]| u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let ends = [size(&notes), module.size(), 1, size(NAMES)].into_iter();
    let mut end = HEADER;
    let ends = ends.map(|size| {
        end = end.saturating_add(size);
        end
    });
    let ends: Vec<_> = ends.collect();
    let headers = end.next_multiple_of(8);
    let mut file = Parts::from(header(headers));
    file.push_bytes(&notes);
    file.append(module);
    file.push_bytes(b"\0");
    file.push_bytes(NAMES);
    file.pad_to(headers);
    file.push_zeros(SECTION.into());
    let mut start = HEADER;
    let sections = [
        (NOTE_NAME, SHT_NOTE.0, 0),
        (MODULE_NAME, SHT_PROGBITS.0, 0),
        (STRINGS_NAME, SHT_STRTAB.0, 1),
        (NAMES_NAME, SHT_STRTAB.0, 1),
    ];
    for ((name, kind, align), end) in sections.into_iter().zip(ends) {
        file.push_bytes(&section(name, kind, start..end, align));
        start = end;
    }
    file
}

fn notes() -> Vec<u8> {
    let mut notes = Vec::new();
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
    for (kind, contents) in NOTES {
        notes.extend([length(OWNER), length(contents), kind.to_le_bytes()].concat());
        for bytes in [OWNER, contents] {
            notes.extend(bytes);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
    }
    notes
}

fn header(section_headers: u64) -> Vec<u8> {
    let mut header = b"\x7fELF\x02\x01\x01".to_vec();
    header.resize(16, 0);
    header.extend([ET_DYN.0, EM_INTELGT].map(u16::to_le_bytes).concat());
    header.extend(1_u32.to_le_bytes());
    // No entry, no program headers.
    header.extend([0, 0, section_headers].map(u64::to_le_bytes).concat());
    header.extend(0_u32.to_le_bytes());
    header.extend([64, 0, 0, SECTION, 5, 4].map(u16::to_le_bytes).concat());
    header
}

fn section(name: u32, kind: u32, range: std::ops::Range<u64>, align: u64) -> Vec<u8> {
    let size = range.end.saturating_sub(range.start);
    let mut header = [name, kind].map(u32::to_le_bytes).concat();
    header.extend([0, 0, range.start, size, 0, align, 0].map(u64::to_le_bytes).concat());
    header
}
