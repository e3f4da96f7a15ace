//! Headers of ELF files for GPUs as they lie in a file: all are little-endian (System V ABI, "Object Files").

pub(crate) use byte_parts::elf::EM_INTELGT;
use object::elf::{ELFCLASS64, ELFDATA2LSB, ELFMAG};
pub(crate) use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{LittleEndian, Pod, elf, pod};

pub(crate) type Header32 = elf::FileHeader32<LittleEndian>;
pub(crate) type Header64 = elf::FileHeader64<LittleEndian>;
pub(crate) type Section64 = elf::SectionHeader64<LittleEndian>;

/// The byte order of all of them.
pub(crate) const LE: LittleEndian = LittleEndian;

/// Returns the header, segment or section that the bytes start with; `None` if there are too few.
pub(crate) fn first<T: Pod>(bytes: &[u8]) -> Option<&T> {
    pod::from_bytes(bytes).ok().map(|(first, _)| first)
}

/// Returns the header of a file of 64 bits that the bytes start with.
pub(crate) fn header64(bytes: &[u8]) -> Option<&Header64> {
    let header: &Header64 = first(bytes)?;
    let ident = header.e_ident();
    let is_it = ident.magic == ELFMAG && ident.class == ELFCLASS64 && ident.data == ELFDATA2LSB;
    is_it.then_some(header)
}

/// NVIDIA's GPUs.
pub(crate) const EM_CUDA: u16 = elf::EM_CUDA.0;
pub(crate) const EM_AMDGPU: u16 = elf::EM_AMDGPU.0;
