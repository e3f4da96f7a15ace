//! The ELF file that carries SPIR-V for Intel GPUs to LLVM's OpenMP runtime.
//!
//! ```text
//! header                       ET_DYN, EM_INTELGT
//! .note.inteloneompoffload     three notes: version 1.0; image 0 is SPIR-V without options; one image
//! __openmp_offload_spirv_0     the module
//! .strtab, .shstrtab
//! section headers              at a multiple of 8
//! ```

use std::ops::Range;

use byte_parts::Parts;
use byte_parts::elf::EM_INTELGT;
use object::elf::{self, FileHeader64, Ident, NoteHeader32, SectionHeader64};
use object::pod::bytes_of;
use object::{LittleEndian, U16, U32, U64};
use target_id::Triple;

type FileHeader = FileHeader64<LittleEndian>;
type SectionHeader = SectionHeader64<LittleEndian>;

const HEADER: u64 = size_of::<FileHeader>() as u64;

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
    let ends = [notes.len() as u64, module.size(), 1, NAMES.len() as u64].into_iter();
    let mut end = HEADER;
    let ends = ends.map(|size| {
        end += size;
        end
    });
    let ends: Vec<_> = ends.collect();
    let headers = end.next_multiple_of(8);
    let mut file = Parts::from(bytes_of(&header(headers)).to_vec());
    file.push_bytes(&notes);
    file.append(module);
    file.push_bytes(b"\0");
    file.push_bytes(NAMES);
    file.pad_to(headers);
    file.push_zeros(size_of::<SectionHeader>() as u64);
    let mut start = HEADER;
    let sections = [
        (NOTE_NAME, elf::SHT_NOTE, 0),
        (MODULE_NAME, elf::SHT_PROGBITS, 0),
        (STRINGS_NAME, elf::SHT_STRTAB, 1),
        (NAMES_NAME, elf::SHT_STRTAB, 1),
    ];
    for ((name, kind, align), end) in sections.into_iter().zip(ends) {
        file.push_bytes(bytes_of(&section(name, kind, start..end, align)));
        start = end;
    }
    file
}

fn notes() -> Vec<u8> {
    let mut notes = Vec::new();
    // The notes are constants, and short.
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    for (kind, contents) in NOTES {
        let header = NoteHeader32 {
            n_namesz: U32::new(LittleEndian, length(OWNER)),
            n_descsz: U32::new(LittleEndian, length(contents)),
            n_type: U32::new(LittleEndian, elf::NoteType(kind)),
        };
        notes.extend(bytes_of(&header));
        for bytes in [OWNER, contents] {
            notes.extend(bytes);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
    }
    notes
}

/// Returns the header of the file, without program headers.
fn header(section_headers: u64) -> FileHeader {
    FileHeader {
        e_ident: Ident {
            magic: elf::ELFMAG,
            class: elf::ELFCLASS64,
            data: elf::ELFDATA2LSB,
            version: elf::EV_CURRENT,
            os_abi: elf::ELFOSABI_NONE,
            abi_version: 0,
            padding: [0; 7],
        },
        e_type: U16::new(LittleEndian, elf::ET_DYN),
        e_machine: U16::new(LittleEndian, elf::Machine(EM_INTELGT)),
        e_version: U32::new(LittleEndian, 1),
        e_entry: U64::new(LittleEndian, 0),
        e_phoff: U64::new(LittleEndian, 0),
        e_shoff: U64::new(LittleEndian, section_headers),
        e_flags: U32::new(LittleEndian, elf::FileFlags(0)),
        e_ehsize: U16::new(LittleEndian, 64),
        e_phentsize: U16::new(LittleEndian, 0),
        e_phnum: U16::new(LittleEndian, 0),
        e_shentsize: U16::new(LittleEndian, 64),
        e_shnum: U16::new(LittleEndian, 5),
        e_shstrndx: U16::new(LittleEndian, elf::SymbolSection(4)),
    }
}

fn section(name: u32, kind: elf::SectionType, range: Range<u64>, align: u64) -> SectionHeader {
    SectionHeader {
        sh_name: U32::new(LittleEndian, name),
        sh_type: U32::new(LittleEndian, kind),
        sh_flags: U64::new(LittleEndian, elf::SectionFlags(0)),
        sh_addr: U64::new(LittleEndian, 0),
        sh_offset: U64::new(LittleEndian, range.start),
        sh_size: U64::new(LittleEndian, range.end - range.start),
        sh_link: U32::new(LittleEndian, 0),
        sh_info: U32::new(LittleEndian, 0),
        sh_addralign: U64::new(LittleEndian, align),
        sh_entsize: U64::new(LittleEndian, 0),
    }
}
