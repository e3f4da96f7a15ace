//! Images that are made field by field: ELF files for GPUs, notes, and MessagePack.
#![allow(unreachable_pub, dead_code, reason = "not every user needs all")]

pub const NOTE: u32 = 7;
pub const STRTAB: u32 = 3;
pub const SYMTAB: u32 = 2;
pub const NOBITS: u32 = 8;
pub const PROGBITS: u32 = 1;
pub const FUNCTION: u8 = 2;
pub const OBJECT: u8 = 1;

/// The fields of a header that differ.
#[derive(Clone, Copy)]
pub struct Head {
    pub machine: u16,
    pub os_abi: u8,
    pub abi: u8,
    pub kind: u16,
    pub flags: u32,
}

/// A code object of version 6 for gfx90a.
pub const AMD: Head = Head { machine: 224, os_abi: 64, abi: 4, kind: 3, flags: 0x53f };
/// A linked cubin for sm_80.
pub const CUBIN: Head = Head { machine: 190, os_abi: 0x33, abi: 7, kind: 2, flags: 0x50_0550 };
/// A zebin.
pub const ZEBIN: Head = Head { machine: 205, os_abi: 0, abi: 1, kind: 1, flags: 0 };

/// A section. Its address is its offset.
#[derive(Clone, Default)]
pub struct Section {
    pub name: String,
    pub kind: u32,
    pub flags: u64,
    pub data: Vec<u8>,
    pub link: u32,
    pub info: u32,
    /// The size in the header, if it is not the size of the data.
    pub size: Option<u64>,
    /// The section whose bytes it has instead of its own.
    pub same_as: Option<usize>,
}

pub fn section(name: &str, kind: u32, data: impl Into<Vec<u8>>) -> Section {
    Section { name: name.to_owned(), kind, data: data.into(), ..Section::default() }
}

/// A symbol: name, type, `st_other`, section, place in it, size.
pub type Symbol<'n> = (&'n str, u8, u8, u16, u64, u64);

/// Makes a file with these sections from number 1 on, and with a table of symbols whose names come last. Values of symbols are
/// addresses in files that are linked for AMD's GPUs.
pub fn elf(head: Head, sections: &[Section], symbols: &[Symbol<'_>]) -> Vec<u8> {
    let mut sections = sections.to_vec();
    let mut bytes = vec![0; 64];
    let mut offsets = vec![0];
    let mut names = vec![0];
    for section in &sections {
        bytes.resize(bytes.len().next_multiple_of(64), 0);
        offsets.push(bytes.len());
        bytes.extend(&section.data);
    }
    let mut table = vec![0; 24];
    for (name, kind, other, section, value, size) in symbols {
        let address = if head.kind == 3 { offsets[usize::from(*section)] as u64 } else { 0 };
        table.extend((names.len() as u32).to_le_bytes());
        table.extend([0x10 | kind, *other]);
        table.extend(section.to_le_bytes());
        table.extend((address + value).to_le_bytes());
        table.extend(size.to_le_bytes());
        names.extend(name.bytes().chain([0]));
    }
    let of_names = sections.len() as u32 + 2;
    let mut symtab = section(".symtab", SYMTAB, table);
    symtab.link = of_names;
    sections.push(symtab);
    let mut at_names = Vec::new();
    for section in sections.iter().chain([&section(".strtab", STRTAB, [])]) {
        at_names.push(names.len() as u32);
        names.extend(section.name.bytes().chain([0]));
    }
    sections.push(section(".strtab", STRTAB, names));
    for section in &sections[sections.len() - 2..] {
        bytes.resize(bytes.len().next_multiple_of(64), 0);
        offsets.push(bytes.len());
        bytes.extend(&section.data);
    }
    bytes.resize(bytes.len().next_multiple_of(64), 0);
    let headers = bytes.len() as u64;
    bytes.extend([0; 64]);
    for (number, (section, name)) in sections.iter().zip(at_names).enumerate() {
        let of = section.same_as.unwrap_or(number + 1);
        let size = section.size.unwrap_or(sections[of - 1].data.len() as u64);
        let offset = offsets[of] as u64;
        bytes.extend([name, section.kind].map(u32::to_le_bytes).concat());
        bytes.extend([section.flags, offset, offset, size].map(u64::to_le_bytes).concat());
        bytes.extend([section.link, section.info].map(u32::to_le_bytes).concat());
        let entry = if section.kind == SYMTAB { 24 } else { 0_u64 };
        bytes.extend([1, entry].map(u64::to_le_bytes).concat());
    }
    let mut header = b"\x7fELF\x02\x01\x01".to_vec();
    header.extend([head.os_abi, head.abi, 0, 0, 0, 0, 0, 0, 0]);
    header.extend([head.kind, head.machine].map(u16::to_le_bytes).concat());
    header.extend(1_u32.to_le_bytes());
    header.extend([0, 0, headers].map(u64::to_le_bytes).concat());
    header.extend(head.flags.to_le_bytes());
    let count = sections.len() as u16 + 1;
    header.extend([64, 56, 0, 64, count, count - 1].map(u16::to_le_bytes).concat());
    bytes[..64].copy_from_slice(&header);
    bytes
}

/// A note of AMD's metadata.
pub fn note(metadata: &[u8]) -> Vec<u8> {
    let mut bytes = [7, metadata.len() as u32, 32].map(u32::to_le_bytes).concat();
    bytes.extend(b"AMDGPU\0\0");
    bytes.extend(metadata);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

pub fn text(text: &str) -> Vec<u8> {
    [&[0xd9, u8::try_from(text.len()).unwrap()][..], text.as_bytes()].concat()
}

pub fn number(number: u32) -> Vec<u8> {
    [&[0xce][..], &number.to_be_bytes()].concat()
}

pub fn array(values: &[Vec<u8>]) -> Vec<u8> {
    [&[0xdd][..], &(values.len() as u32).to_be_bytes(), &values.concat()].concat()
}

pub fn map(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let values = members.iter().flat_map(|(key, value)| [text(key), value.clone()].concat());
    [&[0xdf][..], &(members.len() as u32).to_be_bytes(), &values.collect::<Vec<_>>()].concat()
}

/// Metadata with these kernels.
pub fn metadata(kernels: &[Vec<u8>]) -> Vec<u8> {
    map(&[("amdhsa.kernels", array(kernels)), ("amdhsa.target", text("amdgcn-amd-amdhsa--gfx90a"))])
}

/// The metadata of a kernel, and these members after the others.
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

/// A kernel descriptor: 8 granules of registers, 512 bytes of local memory and 32 of scratch.
pub fn descriptor() -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[0..4].copy_from_slice(&512_u32.to_le_bytes());
    bytes[4..8].copy_from_slice(&32_u32.to_le_bytes());
    bytes[48..52].copy_from_slice(&7_u32.to_le_bytes());
    bytes
}

/// A code object with this note, the descriptors of these kernels, and code of 100 bytes for each.
pub fn code_object(head: Head, notes: Vec<Section>, kernels: &[&str]) -> Vec<u8> {
    let mut sections = vec![
        section(".rodata", PROGBITS, descriptor().repeat(kernels.len())),
        section(".text", PROGBITS, vec![0; kernels.len() * 100]),
    ];
    sections.extend(notes);
    let names: Vec<_> = kernels.iter().map(|name| format!("{name}.kd")).collect();
    let mut symbols = Vec::new();
    for (n, (name, of_descriptor)) in kernels.iter().zip(&names).enumerate() {
        symbols.push((of_descriptor.as_str(), OBJECT, 3, 1, n as u64 * 64, 64));
        symbols.push((*name, FUNCTION, 3, 2, n as u64 * 100, 100));
    }
    elf(head, &sections, &symbols)
}

/// Rewrites the count of sections and the number of that with names as files with more than 65,280 sections have them.
pub fn with_many_sections(mut bytes: Vec<u8>) -> Vec<u8> {
    let headers = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
    let [count, names] =
        [60, 62].map(|at| u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()));
    bytes[60..64].copy_from_slice(&[0, 0, 0xff, 0xff]);
    bytes[headers + 32..headers + 40].copy_from_slice(&u64::from(count).to_le_bytes());
    bytes[headers + 40..headers + 44].copy_from_slice(&u32::from(names).to_le_bytes());
    bytes
}

/// A zebin with this description of its kernels, and 200 bytes of code for each name.
pub fn zebin(info: &str, kernels: &[&str]) -> Vec<u8> {
    let mut sections: Vec<_> = kernels
        .iter()
        .map(|name| section(&format!(".text.{name}"), PROGBITS, vec![0; 200]))
        .collect();
    sections.push(section(".ze_info", 0xff00_0011, info));
    elf(ZEBIN, &sections, &[])
}

/// An attribute of a cubin with a payload of numbers.
pub fn attribute(code: u8, numbers: &[u32]) -> Vec<u8> {
    let len = (numbers.len() * 4) as u16;
    let mut bytes = vec![4, code];
    bytes.extend(len.to_le_bytes());
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    bytes
}

/// The words of a SPIR-V module with these instructions: each its opcode and operands.
pub fn spirv(instructions: &[(u16, &[u32])]) -> Vec<u8> {
    let mut words = vec![0x0723_0203, 0x0001_0400, 0, 100, 0];
    for (opcode, operands) in instructions {
        words.push((operands.len() as u32 + 1) << 16 | u32::from(*opcode));
        words.extend(*operands);
    }
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}
