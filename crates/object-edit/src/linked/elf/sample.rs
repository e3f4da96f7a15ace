//! A small linked ELF file for tests.
//!
//! ```text
//! 0x0000  R   headers, .dynsym 0x200, .rela.dyn 0x300, .relr.dyn 0x600, .rel.dyn 0x700
//! 0x1000      .hip_fatbin: bundles at 0x1000, 0x2000, 0x3000
//! 0x4000      .rodata
//! 0x5000  RX  .text
//! 0x6000  RW  .dynamic, .hipFatBinSegment 0x6100, .data 0x6200, .bss 0x6300..0x7000
//!             .symtab, .strtab, .shstrtab, section headers
//! ```
//!
//! Offsets are addresses, less what was cut.

use std::io::Cursor;
use std::ops::Range;

use byte_parts::Source;
use object::elf::{
    ELFCLASS64, ELFDATA2LSB, ELFMAG, EV_CURRENT, FileFlags, FileType, Ident, Machine, OsAbi,
    ProgramFlags, ProgramType, SectionFlags, SectionType, SymbolInfo, SymbolSection,
};
use object::pod::{bytes_of, bytes_of_slice};
use object::{U16, U32, U64};

use super::file::{File, Header, ProgramHeader, SectionHeader, Symbol};
use crate::output::Output;
use crate::pod::LE;

pub(super) const STARTS: [u64; 3] = [0x1000, 0x2000, 0x3000];
pub(super) const SLOT: Range<u64> = 0x1000..0x4000;
pub(super) const RELA: u64 = 0x300;
pub(super) const DYNSYM: u64 = 0x200;
pub(super) const RODATA: u64 = 0x4000;
pub(super) const TEXT: u64 = 0x5000;
pub(super) const WRAPPERS: u64 = 0x6100;
pub(super) const DATA: u64 = 0x6200;
/// Indices of sections.
pub(super) const HIP_FATBIN: u16 = 5;
pub(super) const X86_64: u16 = 62;
pub(super) const AARCH64: u16 = 183;
pub(super) const EXEC: u16 = 2;
pub(super) const DYN: u16 = 3;

/// The contents of the file.
#[derive(Clone)]
pub(super) struct Sample {
    pub(super) e_type: u16,
    pub(super) machine: u16,
    /// Magic, version, pointer in place.
    pub(super) wrappers: Vec<(u32, u32, u64)>,
    /// Offset, type, symbol, addend.
    pub(super) rela: Vec<(u64, u32, u32, u64)>,
    pub(super) rel: Vec<(u64, u32)>,
    pub(super) relr: Vec<u64>,
    /// Section, value, size; from the second on.
    pub(super) symbols: Vec<(u16, u64, u64)>,
    pub(super) text: Vec<u8>,
    pub(super) rodata: Vec<u8>,
    pub(super) data: Vec<u8>,
    /// Addresses that no byte of the file is loaded to.
    pub(super) cut: Range<u64>,
}

impl Default for Sample {
    /// Creates a shared object, with pointers by RELA.
    fn default() -> Self {
        Sample {
            e_type: DYN,
            machine: X86_64,
            wrappers: STARTS.map(|start| (0x4849_5046, 1, start)).to_vec(),
            rela: (0..3).map(|n| (pointer(n), 8, 0, STARTS[n])).collect(),
            rel: Vec::new(),
            relr: Vec::new(),
            symbols: Vec::new(),
            text: vec![0x90; 64],
            rodata: b"constants".to_vec(),
            data: vec![0; 64],
            cut: 0..0,
        }
    }
}

/// Returns a place in a file of this size.
pub(super) fn index(at: u64) -> usize {
    usize::try_from(at).unwrap()
}

/// Returns the address of the pointer of a wrapper.
pub(super) fn pointer(n: usize) -> u64 {
    WRAPPERS + 24 * n as u64 + 8
}

impl Sample {
    /// Returns a sample in which each wrapper points to its bundle by this means alone.
    pub(super) fn bare(e_type: u16) -> Self {
        Sample { e_type, rela: Vec::new(), ..Sample::default() }
    }

    fn offset(&self, address: u64) -> u64 {
        if address >= self.cut.end { address - (self.cut.end - self.cut.start) } else { address }
    }

    /// Returns the bytes of the file.
    pub(super) fn build(&self) -> Vec<u8> {
        let mut memory = vec![0; 0x6300];
        let put = |memory: &mut Vec<u8>, at: u64, bytes: &[u8]| {
            memory[index(at)..index(at) + bytes.len()].copy_from_slice(bytes);
        };
        let mut symbols = bytes_of(&Symbol::default()).to_vec();
        for &(section, value, size) in &self.symbols {
            symbols.extend(bytes_of(&Symbol {
                st_info: SymbolInfo(0x11),
                st_shndx: U16::new(LE, SymbolSection(section)),
                st_value: U64::new(LE, value),
                st_size: U64::new(LE, size),
                ..Symbol::default()
            }));
        }
        put(&mut memory, DYNSYM, &symbols);
        let words = |words: &[u64]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>();
        let info = |kind: u32, symbol: u32| u64::from(symbol) << 32 | u64::from(kind);
        let rela: Vec<_> = (self.rela.iter())
            .flat_map(|&(at, kind, symbol, addend)| words(&[at, info(kind, symbol), addend]))
            .collect();
        put(&mut memory, RELA, &rela);
        let rel: Vec<_> =
            self.rel.iter().flat_map(|&(at, kind)| words(&[at, info(kind, 0)])).collect();
        put(&mut memory, 0x700, &rel);
        put(&mut memory, 0x600, &words(&self.relr));
        for start in STARTS {
            put(&mut memory, start, b"__CLANG_OFFLOAD_BUNDLE__");
        }
        put(&mut memory, RODATA, &self.rodata);
        put(&mut memory, TEXT, &self.text);
        let mut dynamic = vec![6, DYNSYM];
        for (tag, at, size_tag, size) in [
            (7, RELA, 8, rela.len()),
            (17, 0x700, 18, rel.len()),
            (36, 0x600, 35, 8 * self.relr.len()),
        ] {
            if size > 0 {
                dynamic.extend([tag, at, size_tag, size as u64]);
            }
        }
        dynamic.extend([0, 0]);
        put(&mut memory, 0x6000, &words(&dynamic));
        let mut wrappers = Vec::new();
        for &(magic, version, bundle) in &self.wrappers {
            wrappers.extend(magic.to_le_bytes());
            wrappers.extend(version.to_le_bytes());
            wrappers.extend(words(&[bundle, 0]));
        }
        put(&mut memory, WRAPPERS, &wrappers);
        put(&mut memory, DATA, &self.data);

        let (text, data) = (self.text.len() as u64, self.data.len() as u64);
        let list = [
            ("", 0, 0, 0, 0),
            (".dynsym", 11, 2, DYNSYM, symbols.len() as u64),
            (".rela.dyn", 4, 2, RELA, rela.len() as u64),
            (".relr.dyn", 19, 2, 0x600, 8 * self.relr.len() as u64),
            (".rel.dyn", 9, 2, 0x700, rel.len() as u64),
            (".hip_fatbin", 1, 2, SLOT.start, SLOT.end.min(self.cut_end()) - SLOT.start),
            (".rodata", 1, 2, RODATA, self.rodata.len() as u64),
            (".text", 1, 6, TEXT, text),
            (".dynamic", 6, 3, 0x6000, 8 * dynamic.len() as u64),
            (".hipFatBinSegment", 1, 3, WRAPPERS, wrappers.len() as u64),
            (".data", 1, 3, DATA, data),
            (".bss", 8, 3, 0x6300, 0xd00),
            (".symtab", 2, 0, 0, symbols.len() as u64),
            (".strtab", 3, 0, 0, 1),
            (".shstrtab", 3, 0, 0, 0),
        ];
        let mut bytes: Vec<u8> = memory;
        bytes.drain(index(self.cut.start)..index(self.cut.end));
        let mut names = Vec::new();
        let mut headers = Vec::new();
        for (name, kind, flags, address, size) in list {
            let (link, entsize) = match name {
                ".rela.dyn" => (1, 24),
                ".symtab" | ".dynsym" => (13, 24),
                _ => (0, 0),
            };
            let mut header = SectionHeader {
                sh_name: U32::new(LE, u32::try_from(names.len()).unwrap()),
                sh_type: U32::new(LE, SectionType(kind)),
                sh_flags: U64::new(LE, SectionFlags(flags)),
                sh_addr: U64::new(LE, address),
                sh_offset: U64::new(LE, self.offset(address)),
                sh_size: U64::new(LE, size),
                sh_link: U32::new(LE, link),
                sh_info: U32::new(LE, 0),
                sh_addralign: U64::new(LE, 1),
                sh_entsize: U64::new(LE, entsize),
            };
            names.extend(name.bytes().chain([0]));
            if kind != 0 && flags == 0 {
                header.sh_offset.set(LE, bytes.len() as u64);
                match name {
                    ".symtab" => bytes.extend(&symbols),
                    ".strtab" => bytes.push(0),
                    _ => {
                        header.sh_size.set(LE, names.len() as u64);
                        bytes.extend(&names);
                    }
                }
            }
            headers.push(header);
        }
        let segments = self.segments();
        let half = |n: usize| U16::new(LE, u16::try_from(n).unwrap());
        let elf = Header {
            e_ident: Ident {
                magic: ELFMAG,
                class: ELFCLASS64,
                data: ELFDATA2LSB,
                version: EV_CURRENT,
                os_abi: OsAbi(0),
                abi_version: 0,
                padding: [0; 7],
            },
            e_type: U16::new(LE, FileType(self.e_type)),
            e_machine: U16::new(LE, Machine(self.machine)),
            e_version: U32::new(LE, 1),
            e_entry: U64::new(LE, 0),
            e_phoff: U64::new(LE, 64),
            e_shoff: U64::new(LE, bytes.len() as u64),
            e_flags: U32::new(LE, FileFlags(0)),
            e_ehsize: half(64),
            e_phentsize: half(56),
            e_phnum: half(segments.len()),
            e_shentsize: half(64),
            e_shnum: half(headers.len()),
            e_shstrndx: U16::new(LE, SymbolSection(u16::try_from(headers.len() - 1).unwrap())),
        };
        bytes.extend(bytes_of_slice(&headers));
        put(&mut bytes, 0, bytes_of(&elf));
        put(&mut bytes, 64, bytes_of_slice(&segments));
        bytes
    }

    /// Returns the end of the device code.
    fn cut_end(&self) -> u64 {
        if self.cut.is_empty() { SLOT.end } else { self.cut.start }
    }

    fn segments(&self) -> Vec<ProgramHeader> {
        let mut segments = Vec::new();
        let mut add = |kind: u32, flags: u32, start: u64, end: u64, memory_end: u64| {
            segments.push(ProgramHeader {
                p_type: U32::new(LE, ProgramType(kind)),
                p_flags: U32::new(LE, ProgramFlags(flags)),
                p_offset: U64::new(LE, self.offset(start)),
                p_vaddr: U64::new(LE, start),
                p_paddr: U64::new(LE, start),
                p_filesz: U64::new(LE, end - start),
                p_memsz: U64::new(LE, memory_end - start),
                p_align: U64::new(LE, 4096),
            });
        };
        let rodata = RODATA + self.rodata.len() as u64;
        if self.cut.is_empty() {
            add(1, 4, 0, rodata, rodata);
        } else {
            add(1, 4, 0, self.cut.start, self.cut.start);
            add(1, 4, self.cut.end, rodata, rodata);
        }
        let text = TEXT + self.text.len() as u64;
        add(1, 5, TEXT, text, text);
        add(1, 6, 0x6000, 0x6300, 0x7000);
        add(2, 6, 0x6000, 0x6100, 0x6100);
        segments
    }
}

/// Calls `test` with the file that the bytes are, if they are one.
pub(super) fn with<T>(bytes: &[u8], test: impl FnOnce(&mut Source<'_>, &File) -> T) -> Option<T> {
    let mut cursor = Cursor::new(bytes);
    let mut source = Source::new(&mut cursor).unwrap();
    let file = File::read(&mut source, &(0..bytes.len() as u64)).ok()?;
    Some(test(&mut source, &file))
}

/// Returns the bytes after some patches.
pub(super) fn patched(bytes: &[u8], patches: &[crate::patches::Patch]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for patch in patches {
        let at = index(patch.offset);
        bytes[at..at + patch.bytes.len()].copy_from_slice(&patch.bytes);
    }
    bytes
}

/// Returns a file of these bytes.
pub(super) fn splices(bytes: &[u8]) -> Output {
    let mut splices = Output::new();
    splices.push_bytes(bytes);
    splices
}
