//! Small PE files for tests, a loader that is as strict as Windows's, and stand-ins for bundles.

use std::io::{Cursor, Read};
use std::ops::Range;

use byte_parts::Source;

use super::edit;
use crate::error::Error;
use crate::linked::host::{HostContext, Item, Options, SectionChange, SectionEdit};
use crate::output::{self, Output};

pub(super) const BASE: u64 = 0x1_8000_0000;
const CODE_AT: u32 = 0x1000;
const DATA_AT: u32 = 0x2000;
const WRAPPERS_AT: u32 = 0x4000;
pub(super) const SLOT_AT: u32 = 0x5000;
/// The load configuration of hybrid files, and its metadata.
pub(super) const LOAD_CONFIG: usize = 0x3300;
pub(super) const METADATA: usize = 0x3500;
/// Characteristics of sections.
const CODE: u32 = 0x6000_0020;
const CONSTANT: u32 = 0x4000_0040;
const DATA: u32 = 0xc000_0040;

/// Returns a stand-in for a bundle, of `len` bytes.
pub(super) fn bundle(id: u8, len: usize) -> Vec<u8> {
    let mut bytes = b"BNDL".to_vec();
    bytes.extend(u32::try_from(len).unwrap().to_le_bytes());
    bytes.resize(len, id);
    bytes
}

/// A PE file that is to be made.
#[derive(Clone)]
pub(super) struct Sample {
    pub(super) machine: u16,
    pub(super) code: Vec<u8>,
    /// Offsets of bundles in their section, and their sizes.
    pub(super) bundles: Vec<(u32, usize)>,
    /// The bundle of each wrapper.
    pub(super) wrappers: Vec<usize>,
    /// The value at the start of the section of constants.
    pub(super) pointer: u64,
    pub(super) relocations: bool,
    pub(super) exports: Vec<u32>,
    pub(super) symbols: bool,
    pub(super) checksum: bool,
    pub(super) headers_size: u32,
    pub(super) overlay: Vec<u8>,
    pub(super) certificate: Vec<u8>,
    pub(super) name: [u8; 8],
    /// The code map of a hybrid file: starts with their types, and sizes.
    pub(super) code_map: Option<Vec<[u32; 2]>>,
}

impl Default for Sample {
    fn default() -> Self {
        Sample {
            machine: 0x8664,
            code: vec![0xc3; 0x30],
            bundles: vec![(0, 0x2345), (0x3000, 0x1800), (0x5000, 0x4321)],
            wrappers: vec![0, 1, 2],
            pointer: 0,
            relocations: true,
            exports: Vec::new(),
            symbols: false,
            checksum: false,
            headers_size: 0x400,
            overlay: Vec::new(),
            certificate: Vec::new(),
            name: *b".hip_fat",
            code_map: None,
        }
    }
}

fn put(file: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    file.resize(file.len().max(at + bytes.len()), 0);
    file[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Converts an offset or a size to the width of header fields.
fn narrow(n: usize) -> u32 {
    u32::try_from(n).unwrap()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

impl Sample {
    pub(super) fn slot_size(&self) -> u32 {
        let &(start, len) = self.bundles.last().unwrap();
        start + u32::try_from(len).unwrap()
    }

    fn address(&self, bundle: usize) -> u64 {
        BASE + u64::from(SLOT_AT + self.bundles[bundle].0)
    }

    /// Adds code that takes the address of a bundle: `lea rax, [rip + ...]`.
    pub(super) fn with_lea(mut self, bundle: usize) -> Self {
        let target = SLOT_AT + self.bundles[bundle].0;
        self.code = vec![0x90; 0x21];
        self.code.extend([0x48, 0x8d, 0x05]);
        let next = CODE_AT + narrow(self.code.len()) + 4;
        self.code.extend((target - next).to_le_bytes());
        self.code.push(0xc3);
        self
    }

    /// Adds the same code for ARM64: `adrp x0, ...`.
    pub(super) fn with_adrp(mut self, bundle: usize) -> Self {
        self.machine = 0xaa64;
        let pages = (SLOT_AT + self.bundles[bundle].0 - CODE_AT) >> 12;
        let nop = 0xd503_201f_u32;
        self.code = words(&[nop, 0x9000_0000 | (pages & 3) << 29 | (pages >> 2) << 5, nop]);
        self
    }

    pub(super) fn with_pointer(mut self, bundle: usize, into: u64) -> Self {
        self.pointer = self.address(bundle) + into;
        self
    }

    pub(super) fn build(&self) -> Vec<u8> {
        let mut contents = Vec::new();
        for (id, &(at, len)) in (0..).zip(&self.bundles) {
            put(&mut contents, at as usize, &bundle(id, len));
        }
        let mut wrappers = Vec::new();
        for &bundle in &self.wrappers {
            wrappers.extend(words(&[0x4849_5046, 1]));
            wrappers.extend(self.address(bundle).to_le_bytes());
            wrappers.extend([0; 8]);
        }
        // A pointer, a debug directory with an entry, and exports.
        let mut constants = self.pointer.to_le_bytes().to_vec();
        put(&mut constants, 0x20, &words(&[0, 7, 0, 2, 4, 0x3080, 0]));
        put(&mut constants, 0x80, b"RSDS");
        let count = narrow(self.exports.len());
        put(&mut constants, 0x100, &words(&[0, 0, 0, 0, 1, count, 0, 0x3140, 0, 0]));
        put(&mut constants, 0x140, &words(&self.exports));
        if let Some(map) = &self.code_map {
            put(&mut constants, LOAD_CONFIG - 0x3000, &words(&[0x140]));
            put(&mut constants, LOAD_CONFIG - 0x3000 + 200, &(BASE + 0x3500).to_le_bytes());
            put(&mut constants, METADATA - 0x3000, &words(&[1, 0x3540, narrow(map.len())]));
            put(&mut constants, 0x540, &words(map.as_flattened()));
        }
        let mut relocations = Vec::new();
        let locations: Vec<u16> =
            (0..).map(|n| 0xa008 + 24 * n).take(self.wrappers.len()).collect();
        relocations.extend(words(&[WRAPPERS_AT, 8 + 2 * narrow(locations.len())]));
        relocations.extend(locations.iter().flat_map(|location| location.to_le_bytes()));
        if self.pointer != 0 {
            relocations.extend(words(&[0x3000, 12]));
            relocations.extend([0, 0xa0, 0, 0]);
        }

        let after = (SLOT_AT + self.slot_size()).next_multiple_of(0x1000);
        let mut sections = vec![
            (*b".text\0\0\0", CODE_AT, self.code.clone(), CODE),
            (*b".data\0\0\0", DATA_AT, Vec::new(), DATA),
            (*b".rdata\0\0", 0x3000, constants, CONSTANT),
            (*b".hipFatB", WRAPPERS_AT, wrappers, CONSTANT),
            (self.name, SLOT_AT, contents, CONSTANT),
        ];
        let mut directories = [[0; 2]; 16];
        if self.relocations {
            directories[5] = [after, narrow(relocations.len())];
            sections.push((*b".reloc\0\0", after, relocations, 0x4200_0040));
        }
        directories[0] = [0x3100, 0x60];
        if self.code_map.is_some() {
            directories[10] = [narrow(LOAD_CONFIG), 0x140];
        }
        directories[6] = [0x3020, 28];
        let end = if self.relocations { after + 0x1000 } else { after };

        let mut file = Vec::new();
        put(&mut file, 0, b"MZ");
        put(&mut file, 0x3c, &[0x80]);
        put(&mut file, 0x80, b"PE\0\0");
        let table_at = 0x98 + 112 + 16 * 8;
        let mut raw_at = self.headers_size as usize;
        let mut initialized = 0;
        for (n, (name, address, contents, flags)) in sections.iter().enumerate() {
            let raw_size = contents.len().next_multiple_of(0x200);
            let memory = if contents.is_empty() { 0xf80 } else { narrow(contents.len()) };
            let at = if contents.is_empty() { 0 } else { narrow(raw_at) };
            let header = words(&[memory, *address, narrow(raw_size), at, 0, 0, 0, *flags]);
            put(&mut file, table_at + 40 * n, name);
            put(&mut file, table_at + 40 * n + 8, &header);
            put(&mut file, raw_at, contents);
            if *address == 0x3000 {
                put(&mut file, raw_at + 0x20 + 24, &words(&[narrow(raw_at) + 0x80]));
            }
            raw_at += raw_size;
            file.resize(raw_at, 0);
            initialized += if flags & 0x40 != 0 { narrow(raw_size) } else { 0 };
        }
        let mut symbols_at = 0;
        let mut symbols = 0;
        if self.symbols {
            symbols_at = narrow(file.len());
            symbols = 2 + narrow(self.bundles.len());
            let symbol = |name: &[u8], value: u32, section: u16, auxiliary: u8| {
                let mut bytes = name.to_vec();
                bytes.resize(8, 0);
                bytes.extend(value.to_le_bytes());
                bytes.extend(section.to_le_bytes());
                bytes.extend([0, 0, 3, auxiliary]);
                bytes
            };
            for (n, &(at, _)) in (0_u8..).zip(&self.bundles) {
                file.extend(symbol(&[b'b', b'0' + n], at, 5, u8::from(n == 0)));
                if n == 0 {
                    // Looks like a symbol.
                    file.extend(symbol(b"aux", 0x3000, 5, 0));
                }
            }
            file.extend(symbol(b"main", 0, 1, 0));
            file.extend(words(&[16]));
            file.extend(b".hip_fatbin\0");
        }
        let stripped = u16::from(!self.relocations);
        put(&mut file, 0x84, &self.machine.to_le_bytes());
        put(&mut file, 0x86, &[u8::try_from(sections.len()).unwrap()]);
        put(&mut file, 0x88, &words(&[0x6543_2100, symbols_at, symbols]));
        put(&mut file, 0x94, &[240, 0]);
        put(&mut file, 0x96, &(0x2022 | stripped).to_le_bytes());
        put(&mut file, 0x98, &[0x0b, 0x02, 14, 0]);
        put(&mut file, 0x98 + 8, &words(&[initialized]));
        put(&mut file, 0x98 + 24, &BASE.to_le_bytes());
        put(&mut file, 0x98 + 32, &words(&[0x1000, 0x200]));
        put(&mut file, 0x98 + 56, &words(&[end, self.headers_size]));
        put(&mut file, 0x98 + 108, &words(&[16]));
        file.extend(&self.overlay);
        if !self.certificate.is_empty() {
            directories[4] = [narrow(file.len()), narrow(self.certificate.len())];
            file.extend(&self.certificate);
        }
        for (n, directory) in directories.iter().enumerate() {
            put(&mut file, 0x98 + 112 + 8 * n, &words(directory));
        }
        if self.checksum {
            let sum = checksum(&file);
            put(&mut file, 0x98 + 64, &sum.to_le_bytes());
        }
        file
    }
}

/// Returns the checksum that a file should have.
pub(super) fn checksum(file: &[u8]) -> u32 {
    let mut file = file.to_vec();
    put(&mut file, 0x98 + 64, &[0; 4]);
    super::checksum::checksum(&file[..], file.len() as u64).unwrap()
}

pub(super) fn u32_at(file: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(file[at..at + 4].try_into().unwrap())
}

pub(super) fn u64_at(file: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(file[at..at + 8].try_into().unwrap())
}

/// A section header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) address: usize,
    pub(super) size: usize,
    pub(super) raw: Range<usize>,
}

pub(super) fn sections(file: &[u8]) -> Vec<Section> {
    let count = usize::from(file[0x86]);
    let header = |n: usize| {
        let at = 0x98 + 240 + 40 * n;
        let name = String::from_utf8_lossy(&file[at..at + 8]);
        let field = |field: usize| u32_at(file, at + field) as usize;
        Section {
            name: name.trim_end_matches('\0').to_owned(),
            size: field(8),
            address: field(12),
            raw: field(20)..field(20) + field(16),
        }
    };
    (0..count).map(header).collect()
}

/// Loads a file to another address than it was made for, as strictly as Windows does.
pub(super) fn load(file: &[u8], base: u64) -> Vec<u8> {
    let optional = 0x98;
    let mut memory = vec![0; u32_at(file, optional + 56) as usize];
    let headers = u32_at(file, optional + 60) as usize;
    assert!(0x98 + 240 + 40 * sections(file).len() <= headers);
    memory[..headers].copy_from_slice(&file[..headers]);
    let mut next = 0x1000;
    let mut raw_end = headers;
    for section in sections(file) {
        assert_eq!(section.address, next, "{section:?}");
        next = (section.address + section.size).next_multiple_of(0x1000);
        if !section.raw.is_empty() {
            assert!(section.raw.start >= raw_end && section.raw.end <= file.len(), "{section:?}");
            assert!(section.raw.start % 0x200 == 0 && section.raw.end % 0x200 == 0);
            raw_end = section.raw.end;
        }
        let len = section.raw.len().min(next - section.address);
        memory[section.address..section.address + len]
            .copy_from_slice(&file[section.raw.start..section.raw.start + len]);
    }
    assert_eq!(next, memory.len());
    let directory = optional + 112 + 5 * 8;
    let mut at = u32_at(file, directory) as usize;
    let end = at + u32_at(file, directory + 4) as usize;
    while at < end {
        let (page, size) = (u32_at(&memory, at) as usize, u32_at(&memory, at + 4) as usize);
        for entry in (at + 8..at + size).step_by(2) {
            let entry = u16::from_le_bytes([memory[entry], memory[entry + 1]]);
            if entry >> 12 == 10 {
                let location = page + usize::from(entry & 0xfff);
                let value = u64_at(&memory, location).wrapping_sub(BASE).wrapping_add(base);
                put(&mut memory, location, &value.to_le_bytes());
            }
        }
        at += size;
    }
    memory
}

/// Returns the bundles that the wrappers point to: number and size.
pub(super) fn registered(file: &[u8]) -> Vec<(u8, usize)> {
    let base = if u32_at(file, 0x98 + 112 + 40) == 0 { BASE } else { 0x7_1234_0000 };
    let memory = load(file, base);
    let wrappers = sections(file).into_iter().find(|section| section.name == ".hipFatB").unwrap();
    let wrappers = &memory[wrappers.address..wrappers.address + wrappers.size];
    wrappers
        .chunks(24)
        .map(|wrapper| {
            assert_eq!(wrapper[..8], words(&[0x4849_5046, 1]));
            let at = usize::try_from(u64_at(wrapper, 8) - base).unwrap();
            let len = u32_at(&memory, at + 4) as usize;
            let id = memory[at + 8];
            assert_eq!(memory[at..at + len], bundle(id, len));
            (id, len)
        })
        .collect()
}

/// Returns the ranges of bundles in the file, section by section.
pub(super) fn bundles(file: &[u8]) -> Vec<(Section, Vec<Range<usize>>)> {
    let is_slot = |section: &Section| [".hip_fat", "/4"].contains(&&*section.name);
    let mut all = Vec::new();
    for section in sections(file).into_iter().filter(is_slot) {
        let mut at = section.raw.start;
        let mut found = Vec::new();
        while let Some(next) = file[at..section.raw.end].iter().position(|&byte| byte != 0) {
            at += next;
            assert_eq!(&file[at..at + 4], b"BNDL");
            let end = at + u32_at(file, at + 4) as usize;
            found.push(at..end);
            at = end;
        }
        all.push((section, found));
    }
    all
}

/// Edits a file: gives each bundle another size, and removes those of size 0.
pub(super) fn resize(
    file: &[u8],
    options: Options,
    sizes: &[usize],
) -> Result<(Vec<u8>, Notes), Error> {
    resize_in(file, 0, options, sizes)
}

/// Returns the same for a file that starts at an offset of another one.
pub(super) fn resize_in(
    file: &[u8],
    start: usize,
    options: Options,
    sizes: &[usize],
) -> Result<(Vec<u8>, Notes), Error> {
    let mut sizes = sizes.iter();
    let place = |range: &Range<usize>| (start + range.start) as u64..(start + range.end) as u64;
    let mut edits = Vec::new();
    for (section, found) in bundles(&file[start..]) {
        let items = found.iter().map(|range| {
            let (old, len) = (place(range), *sizes.next().unwrap());
            let new = match len {
                0 => None,
                _ if len == range.len() => Some(output::copy_of(&old)),
                _ => Some(output::of_bytes(bundle(file[start + range.start + 8], len))),
            };
            Item { old, new, joined: false }
        });
        let change = SectionChange::Items(items.collect());
        let range = section.raw.start..section.raw.start + section.raw.len().min(section.size);
        edits.push(SectionEdit { range: place(&range), name: ".hip_fat".to_owned(), change });
    }
    run(file, start, options, edits)
}

/// Returns edits that replace each bundle by `size` zeros.
pub(super) fn zeroing(file: &[u8], size: u64) -> Vec<SectionEdit> {
    let place = |range: &Range<usize>| range.start as u64..range.end as u64;
    let edit = |(section, found): (Section, Vec<Range<usize>>)| {
        let mut new = Output::new();
        new.push_zeros(size);
        let items = found.iter().map(|range| Item {
            old: place(range),
            new: Some(new.clone()),
            joined: false,
        });
        SectionEdit {
            range: place(&(section.raw.start..section.raw.start + section.size)),
            name: ".hip_fat".to_owned(),
            change: SectionChange::Items(items.collect()),
        }
    };
    bundles(file).into_iter().map(edit).collect()
}

/// Bytes that an edit zeroed, and whether it dropped the signature.
pub(super) type Notes = (u64, bool);

/// Runs the editor.
pub(super) fn run(
    file: &[u8],
    start: usize,
    options: Options,
    edits: Vec<SectionEdit>,
) -> Result<(Vec<u8>, Notes), Error> {
    let mut cursor = Cursor::new(file);
    let window = start as u64..file.len() as u64;
    let edited = {
        let mut source = Source::new(&mut cursor)?;
        edit(&mut source, &mut (), HostContext { window: &window, options }, edits)?
    };
    let mut out = Vec::new();
    output::reader(&edited.parts, &mut cursor, &mut ()).read_to_end(&mut out)?;
    Ok((out, (edited.zeroed, edited.signature_dropped)))
}
