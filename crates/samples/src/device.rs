//! Code for GPUs, field by field: ELF files, notes and MessagePack of AMD, attributes of NVIDIA, SPIR-V.

use crate::elf::{self, PROGBITS, SYMTAB, Section, section};
use crate::{put, words};

/// `STT_OBJECT`.
pub const OBJECT: u8 = 1;
/// `STT_FUNC`.
pub const FUNCTION: u8 = 2;

/// The fields of a header that differ.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// Its machine.
    pub machine: u16,
    /// The operating system's ABI.
    pub os_abi: u8,
    /// The version of that.
    pub abi: u8,
    /// Its type.
    pub kind: u16,
    /// The flags of its machine.
    pub flags: u32,
}

/// A code object of version 6 for gfx90a.
pub const AMD: Head = Head { machine: 224, os_abi: 64, abi: 4, kind: 3, flags: 0x53f };
/// A linked cubin for sm_80.
pub const CUBIN: Head = Head { machine: 190, os_abi: 0x33, abi: 7, kind: 2, flags: 0x50_0550 };
/// A zebin.
pub const ZEBIN: Head = Head { machine: 205, os_abi: 0, abi: 1, kind: 1, flags: 0 };

impl Head {
    fn elf(self) -> elf::Elf {
        let os_abi = [self.os_abi, self.abi];
        let Head { machine, kind, flags, .. } = self;
        // Sections of cubins have no address.
        let loaded = kind == 3;
        elf::Elf { os_abi, kind, machine, flags, loaded, ..elf::object(Vec::new()) }
    }

    /// Returns the header alone, of a file without sections.
    #[must_use]
    pub fn bytes(self) -> Vec<u8> {
        self.elf().head(0)
    }
}

/// Returns the header of a code object of version 5 with these flags.
#[must_use]
pub fn amd(flags: u32) -> Vec<u8> {
    Head { abi: 3, flags, ..AMD }.bytes()
}

/// Returns a code object of version 5 with these flags: the header, and bytes up to this size.
#[must_use]
pub fn amd_of(flags: u32, size: usize) -> Vec<u8> {
    let mut bytes = amd(flags);
    bytes.resize(size.max(64), 0x55);
    bytes
}

/// Returns the header of a cubin as CUDA up to 12 writes it.
#[must_use]
pub fn old_cubin(sm: u32) -> Vec<u8> {
    Head { flags: 0x50_0500 | sm | sm << 16, ..CUBIN }.bytes()
}

/// Returns the header of a cubin as CUDA 13 writes it.
#[must_use]
pub fn new_cubin(sm: u32) -> Vec<u8> {
    Head { os_abi: 0x41, abi: 8, flags: 0x600_0004 | sm << 8, ..CUBIN }.bytes()
}

/// A symbol: name, type, `st_other`, section, place in it, size.
pub type Symbol<'n> = (&'n str, u8, u8, u16, u64, u64);

/// Returns a file with these sections from number 1 on, and after them a table of symbols. Addresses are offsets. Values of
/// symbols are addresses in files that are linked for AMD's GPUs.
#[must_use]
pub fn elf(head: Head, sections: &[Section], symbols: &[Symbol<'_>]) -> Vec<u8> {
    let mut file = head.elf();
    file.symbol_names = symbols.iter().map(|symbol| symbol.0.to_owned()).collect();
    file.sections = sections.iter().cloned().map(|of| Section { align: 64, ..of }).collect();
    let link = sections.len() as u32 + 2;
    file.sections.push(Section { link, align: 64, ..section(".symtab", SYMTAB, []) });
    let offsets = file.offsets();
    let (_, names) = file.names();
    let symbols = symbols.iter().flat_map(|&(name, kind, other, section, value, size)| {
        let address = if head.kind == 3 { offsets[usize::from(section) - 1] } else { 0 };
        file.whole_symbol(names[name], [0x10 | kind, other], section, address + value, size)
    });
    let table = [0; 24].into_iter().chain(symbols).collect();
    file.sections[sections.len()].contents = table;
    file.build()
}

/// Returns a note of this owner and type.
#[must_use]
pub fn note_of(owner: &str, kind: u32, description: &[u8]) -> Vec<u8> {
    let mut bytes = words(&[owner.len() as u32 + 1, description.len() as u32, kind]);
    bytes.extend(owner.bytes().chain([0]));
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes.extend(description);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Returns a note of AMD's metadata.
#[must_use]
pub fn note(metadata: &[u8]) -> Vec<u8> {
    note_of("AMDGPU", 32, metadata)
}

/// Returns a text of `MessagePack`.
#[must_use]
pub fn text(text: &str) -> Vec<u8> {
    [&[0xd9, u8::try_from(text.len()).unwrap()][..], text.as_bytes()].concat()
}

/// Returns a number of `MessagePack`.
#[must_use]
pub fn number(number: u32) -> Vec<u8> {
    [&[0xce][..], &number.to_be_bytes()].concat()
}

/// Returns an array of `MessagePack`.
#[must_use]
pub fn array(values: &[Vec<u8>]) -> Vec<u8> {
    [&[0xdd][..], &(values.len() as u32).to_be_bytes(), &values.concat()].concat()
}

/// Returns a map of `MessagePack`.
#[must_use]
pub fn map(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let values = members.iter().flat_map(|(key, value)| [text(key), value.clone()].concat());
    [&[0xdf][..], &(members.len() as u32).to_be_bytes(), &values.collect::<Vec<_>>()].concat()
}

/// Returns metadata with these kernels.
#[must_use]
pub fn metadata(kernels: &[Vec<u8>]) -> Vec<u8> {
    map(&[("amdhsa.kernels", array(kernels)), ("amdhsa.target", text("amdgcn-amd-amdhsa--gfx90a"))])
}

/// Returns the metadata of a kernel, and these members after the others.
#[must_use]
pub fn kernel(name: &str, more: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut members = vec![
        (".name", text(name)),
        (".symbol", text(&format!("{name}.kd"))),
        (".kernarg_segment_size", number(24)),
        (".group_segment_fixed_size", number(1024)),
        (".private_segment_fixed_size", number(16)),
        (".wavefront_size", number(64)),
        (".vgpr_count", number(47)),
    ];
    members.extend(more.iter().cloned());
    map(&members)
}

/// Returns a kernel descriptor: 8 granules of registers, 512 bytes of local memory and 32 of scratch.
#[must_use]
pub fn descriptor() -> Vec<u8> {
    let mut bytes = vec![0; 64];
    put(&mut bytes, 0, &words(&[512, 32]));
    put(&mut bytes, 48, &words(&[7]));
    bytes
}

/// Returns a code object with this note, the descriptors of these kernels, and code of 100 bytes for each.
#[must_use]
pub fn code_object(head: Head, notes: &[Section], kernels: &[&str]) -> Vec<u8> {
    let mut descriptors = descriptor().repeat(kernels.len());
    for n in 0..kernels.len() {
        // The code of a kernel is this far from its descriptor. The sections have no bytes between them.
        let entry = (kernels.len() * 64 + n * 100 - n * 64) as u64;
        put(&mut descriptors, n * 64 + 16, &entry.to_le_bytes());
    }
    let mut sections = vec![
        section(".rodata", PROGBITS, descriptors),
        section(".text", PROGBITS, vec![0; kernels.len() * 100]),
    ];
    sections.extend_from_slice(notes);
    let names: Vec<_> = kernels.iter().map(|name| format!("{name}.kd")).collect();
    let mut symbols = Vec::new();
    for (n, (name, of_descriptor)) in kernels.iter().zip(&names).enumerate() {
        symbols.push((of_descriptor.as_str(), OBJECT, 3, 1, n as u64 * 64, 64));
        symbols.push((*name, FUNCTION, 3, 2, n as u64 * 100, 100));
    }
    elf(head, &sections, &symbols)
}

/// Returns a zebin with this description of its kernels, and 200 bytes of code for each name.
#[must_use]
pub fn zebin(info: &str, kernels: &[&str]) -> Vec<u8> {
    let mut sections: Vec<_> = kernels
        .iter()
        .map(|name| section(&format!(".text.{name}"), PROGBITS, vec![0; 200]))
        .collect();
    sections.push(section(".ze_info", 0xff00_0011, info));
    elf(ZEBIN, &sections, &[])
}

/// Returns an attribute of a cubin with a payload of numbers.
#[must_use]
pub fn attribute(code: u8, numbers: &[u32]) -> Vec<u8> {
    let len = (numbers.len() * 4) as u16;
    let mut bytes = vec![4, code];
    bytes.extend(len.to_le_bytes());
    bytes.extend(words(numbers));
    bytes
}

/// Returns the words of a SPIR-V module with these instructions: each its opcode and operands.
#[must_use]
pub fn spirv(instructions: &[(u16, &[u32])]) -> Vec<u8> {
    let mut module = vec![0x0723_0203, 0x0001_0400, 0, 100, 0];
    for (opcode, operands) in instructions {
        module.push((operands.len() as u32 + 1) << 16 | u32::from(*opcode));
        module.extend(*operands);
    }
    words(&module)
}
