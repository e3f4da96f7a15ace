//! A loader of PE files that is as strict as Windows's, and a stand-in for the HIP runtime.

use std::collections::BTreeMap;
use std::ops::Range;

fn u16_at(bytes: &[u8], at: usize) -> usize {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()).into()
}

pub fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn until_nul(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|&byte| byte == 0).next().unwrap()).into_owned()
}

/// A section header.
#[derive(Clone, Debug)]
pub struct Section {
    pub name: String,
    pub memory: Range<usize>,
    pub raw: Range<usize>,
}

/// The headers of a file.
#[derive(Clone, Debug)]
pub struct Headers {
    pub machine: usize,
    pub optional: usize,
    pub base: u64,
    pub section_alignment: usize,
    pub file_alignment: usize,
    pub image_size: usize,
    pub headers_size: usize,
    pub checksum: usize,
    pub sections: Vec<Section>,
}

impl Headers {
    pub fn of(file: &[u8]) -> Self {
        let coff = u32_at(file, 0x3c) + 4;
        assert_eq!((&file[..2], &file[coff - 4..coff]), (&b"MZ"[..], &b"PE\0\0"[..]));
        let optional = coff + 20;
        let table = optional + u16_at(file, coff + 16);
        let section = |n: usize| {
            let header = &file[table + 40 * n..][..40];
            let range = |at: usize, size: usize| {
                let start = u32_at(header, at);
                start..start + u32_at(header, size)
            };
            let mut name = until_nul(&header[..8]);
            if let Some(offset) = name.strip_prefix('/') {
                let strings = u32_at(file, coff + 8) + 18 * u32_at(file, coff + 12);
                name = until_nul(&file[strings + offset.parse::<usize>().unwrap()..]);
            }
            Section { name, memory: range(12, 8), raw: range(20, 16) }
        };
        Headers {
            machine: u16_at(file, coff),
            optional,
            base: u64_at(file, optional + 24),
            section_alignment: u32_at(file, optional + 32),
            file_alignment: u32_at(file, optional + 36),
            image_size: u32_at(file, optional + 56),
            headers_size: u32_at(file, optional + 60),
            checksum: u32_at(file, optional + 64),
            sections: (0..u16_at(file, coff + 2)).map(section).collect(),
        }
    }

    pub fn directory(&self, file: &[u8], index: usize) -> Range<usize> {
        let at = self.optional + 112 + 8 * index;
        let start = u32_at(file, at);
        start..start + u32_at(file, at + 4)
    }

    /// Sections whose names start so.
    pub fn named(&self, name: &str) -> Vec<&Section> {
        self.sections.iter().filter(|section| section.name.starts_with(name)).collect()
    }
}

/// The memory of a file loaded to another address than it was made for, if it can be.
pub fn load(file: &[u8]) -> (Vec<u8>, u64) {
    let headers = Headers::of(file);
    let mut memory = vec![0; headers.image_size];
    memory[..headers.headers_size].copy_from_slice(&file[..headers.headers_size]);
    let mut next = headers.headers_size.next_multiple_of(headers.section_alignment);
    for section in &headers.sections {
        assert_eq!(section.memory.start, next, "a gap before {section:?}");
        next = section.memory.end.next_multiple_of(headers.section_alignment);
        assert!(section.raw.end <= file.len(), "{section:?} lies beyond the end");
        assert_eq!(section.raw.start % headers.file_alignment, 0, "{section:?}");
        let len = section.raw.len().min(next - section.memory.start);
        memory[section.memory.start..][..len].copy_from_slice(&file[section.raw.start..][..len]);
    }
    assert_eq!(next, headers.image_size, "SizeOfImage");
    let mut relocations = headers.directory(file, 5);
    let base = if relocations.is_empty() { headers.base } else { 0x12_3450_0000 };
    while !relocations.is_empty() {
        let (page, size) =
            (u32_at(&memory, relocations.start), u32_at(&memory, relocations.start + 4));
        for entry in (relocations.start + 8..relocations.start + size).step_by(2) {
            let entry = u16_at(&memory, entry);
            match entry >> 12 {
                0 => {}
                10 => {
                    let at = page + (entry & 0xfff);
                    let value = u64_at(&memory, at) - headers.base + base;
                    memory[at..at + 8].copy_from_slice(&value.to_le_bytes());
                }
                kind => panic!("base relocation of type {kind}"),
            }
        }
        relocations.start += size;
    }
    (memory, base)
}

/// Returns the images that the runtime gets from each wrapper, by their IDs.
pub fn registered(file: &[u8]) -> Vec<BTreeMap<String, Vec<u8>>> {
    let (memory, base) = load(file);
    let headers = Headers::of(file);
    let mut all = Vec::new();
    for section in headers.named(".hipFatB") {
        for wrapper in memory[section.memory.clone()].chunks_exact(24) {
            assert_eq!((u32_at(wrapper, 0), u32_at(wrapper, 4)), (0x4849_5046, 1));
            let at = usize::try_from(u64_at(wrapper, 8) - base).unwrap();
            let stored = &memory[at..];
            let bundle = if stored.starts_with(b"CCOB") {
                ccob::decompress(stored, &ccob::ReadOptions::default()).unwrap().data
            } else {
                stored.to_vec()
            };
            let bundle = bundle_format::Bundle::parse(&bundle).unwrap();
            let entries = bundle.entries().filter(|entry| entry.size() > 0);
            let images = entries.map(|entry| {
                (entry.id_str().unwrap().to_owned(), entry.payload().unwrap().to_vec())
            });
            all.push(images.collect());
        }
    }
    all
}
