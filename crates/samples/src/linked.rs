//! Linked ELF files with device code, as linkers lay them out, made without a linker.

use std::ops::Range;

use crate::longs as words;

/// `ET_EXEC`.
pub const EXEC: u16 = 2;
/// `ET_DYN`.
pub const DYN: u16 = 3;
/// `EM_X86_64`.
pub const X86_64: u16 = 62;
/// `EM_AARCH64`.
pub const AARCH64: u16 = 183;

/// Place of the device code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// In the segment with the headers; segments share pages of the file: `ld.lld`.
    First,
    /// In the third segment, each on pages of its own: `ld.bfd`.
    Third,
}

/// Form of the pointers of the wrappers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pointers {
    /// RELA, with the value in place, too.
    Rela,
    /// RELR.
    Relr,
    /// RELA against symbols.
    Symbols,
    /// The values alone.
    Plain,
}

/// Names of the section of device code and of the section of wrappers, the first words of a wrapper, and the alignment.
type Registration = (&'static str, &'static str, u64, u64);
const HIP: Registration = (".hip_fatbin", ".hipFatBinSegment", 0x1_4849_5046, 4096);
const CUDA: Registration = (".nv_fatbin", ".nvFatBinSegment", 0x1_4662_43b1, 8);

/// Description of the file.
#[derive(Clone, Debug)]
pub struct Linked {
    /// Place of the device code.
    pub style: Style,
    /// The device code is CUDA's, not HIP's.
    pub cuda: bool,
    /// Its type.
    pub e_type: u16,
    /// Its machine.
    pub machine: u16,
    /// Size of a page.
    pub page: u64,
    /// Units of device code, one for each wrapper.
    pub bundles: Vec<Vec<u8>>,
    /// Form of the pointers of the wrappers.
    pub pointers: Pointers,
    /// Type of the relocations, if it is not the right one.
    pub relocation: Option<u32>,
    /// There is an interpreter.
    pub interpreter: bool,
    /// There is content after the device code in its segment.
    pub after: bool,
    /// Bytes of `.gnu.hash`.
    pub hash: usize,
    /// There is a dynamic section. Without one, `.rela.plt` cannot move.
    pub dynamic: bool,
    /// There is a note; without one and [`dynamic`](Self::dynamic), the first segment has nothing but headers.
    pub note: bool,
    /// Program headers that there is room for.
    pub free_headers: u64,
    /// There is a symbol table.
    pub symbols: bool,
    /// Bundle that code refers to.
    pub reference: Option<usize>,
    /// Zeros after the last bundle in its section.
    pub tail: usize,
    /// Addresses that instructions refer to.
    pub operands: Vec<u64>,
    /// Contents of `.rodata`, if they are not filler.
    pub rodata: Option<Vec<u8>>,
    /// The section headers start a segment of their own, as patchelf 0.19 leaves them, with this number of bytes after them.
    pub loaded_headers: Option<usize>,
}

impl Default for Linked {
    fn default() -> Self {
        Linked {
            style: Style::Third,
            cuda: false,
            e_type: DYN,
            machine: X86_64,
            page: 4096,
            bundles: Vec::new(),
            pointers: Pointers::Rela,
            relocation: None,
            interpreter: false,
            after: true,
            hash: 72,
            dynamic: true,
            note: true,
            free_headers: 0,
            symbols: true,
            reference: None,
            tail: 0,
            operands: Vec::new(),
            rodata: None,
            loaded_headers: None,
        }
    }
}

struct Section {
    name: &'static str,
    kind: u32,
    flags: u64,
    align: u64,
    bytes: Vec<u8>,
    /// Size of NOBITS.
    size: u64,
    link: &'static str,
    info: u32,
    entsize: u64,
    segment: usize,
    address: u64,
    offset: u64,
}

fn filler(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| ((i * 7 + seed * 13) % 250) as u8 + 1).collect()
}

/// A symbol: section, value, size, info.
fn symbol(section: u16, value: u64, size: u64, info: u8) -> Vec<u8> {
    let mut bytes = 0u32.to_le_bytes().to_vec();
    bytes.extend([info, 0]);
    bytes.extend(section.to_le_bytes());
    bytes.extend(words(&[value, size]));
    bytes
}

impl Linked {
    /// Creates a file of this style with these bundles.
    #[must_use]
    pub fn new(style: Style, bundles: Vec<Vec<u8>>) -> Self {
        Linked { style, bundles, ..Linked::default() }
    }

    fn sections(&self) -> Vec<Section> {
        let mut sections = Vec::new();
        let mut add = |name, kind, flags, align, segment, bytes: Vec<u8>| {
            let size = bytes.len() as u64;
            let (link, info, entsize, address, offset) = ("", 0, 0, 0, 0);
            sections.push(Section {
                name,
                kind,
                flags,
                align,
                bytes,
                size,
                link,
                info,
                entsize,
                segment,
                address,
                offset,
            });
        };
        let third = match self.style {
            Style::First => 0,
            Style::Third => 2,
        };
        let count = self.bundles.len();
        add("", 0, 0, 0, usize::MAX, Vec::new());
        if self.interpreter {
            add(".interp", 1, 2, 1, 0, b"/lib64/ld-linux-x86-64.so.2\0".to_vec());
        }
        if self.note {
            let note = [words(&[0x14_0000_0004, 0x0055_4e47_0000_0003]), filler(1, 20)].concat();
            add(".note.gnu.build-id", 7, 2, 4, 0, note);
        }
        if self.dynamic {
            add(".gnu.hash", 0x6fff_fff6, 2, 8, 0, filler(2, self.hash));
            add(".dynsym", 11, 2, 8, 0, vec![0; 24 * (2 + count)]);
            add(".dynstr", 3, 2, 1, 0, [vec![0], filler(3, 30), vec![0]].concat());
        }
        match self.pointers {
            Pointers::Rela | Pointers::Symbols if self.dynamic => {
                add(".rela.dyn", 4, 2, 8, 0, vec![0; 24 * count]);
            }
            Pointers::Relr if self.dynamic => add(".relr.dyn", 19, 2, 8, 0, vec![0; 8 * count]),
            _ => {}
        }
        if !self.dynamic && self.note {
            add(".rela.plt", 4, 0x42, 8, 0, words(&[self.base(), 37, 0]));
        }
        if self.style == Style::Third {
            add(".text", 1, 6, 16, 1, vec![0x90; 64 + 7 * self.operands.len()]);
        }
        let rodata = self.rodata.clone().unwrap_or_else(|| filler(4, 100));
        add(".rodata", 1, 2, 16, third, rodata);
        let (device_name, wrappers_name, _, align) = if self.cuda { CUDA } else { HIP };
        let mut device = Vec::new();
        for bundle in &self.bundles {
            device.resize(device.len().next_multiple_of(align as usize), 0);
            device.extend(bundle);
        }
        device.resize(device.len() + self.tail, 0);
        add(device_name, 1, 2, align, third, device);
        if self.after {
            add(".eh_frame", 1, 2, 8, third, filler(5, 90));
        }
        if self.style == Style::First {
            add(".text", 1, 6, 16, 1, vec![0x90; 64 + 7 * self.operands.len()]);
        }
        let last = third.max(1) + 1;
        add(".tdata", 1, 0x403, 4, last, filler(6, 12));
        if self.dynamic {
            add(".dynamic", 6, 3, 8, last, vec![0; 16 * 12]);
        }
        add(wrappers_name, 1, 3, 8, last, vec![0; 24 * count]);
        // As mold leaves it: empty, at the end of what is in the file.
        add(".tm_clone_table", 1, 3, 8, last, Vec::new());
        add(".bss", 8, 3, 16, last, Vec::new());
        add(".comment", 1, 0, 1, usize::MAX, filler(7, 33));
        if self.symbols {
            add(".symtab", 2, 0, 8, usize::MAX, Vec::new());
            add(".strtab", 3, 0, 1, usize::MAX, vec![0]);
        }
        add(".shstrtab", 3, 0, 1, usize::MAX, Vec::new());
        for section in &mut sections {
            let (link, entsize) = match section.name {
                ".gnu.hash" => (".dynsym", 0),
                ".dynsym" => (".dynstr", 24),
                ".rela.dyn" => (".dynsym", 24),
                ".dynamic" => (".dynstr", 16),
                ".symtab" => (".strtab", 24),
                _ => ("", 0),
            };
            (section.link, section.entsize) = (link, entsize);
            match section.name {
                ".bss" => section.size = 5000,
                ".dynsym" => section.info = 1,
                _ => {}
            }
        }
        sections
    }

    fn base(&self) -> u64 {
        if self.e_type == EXEC { 0x40_0000 } else { 0 }
    }

    /// Returns the bytes of the file.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        let mut sections = self.sections();
        let loads =
            sections.iter().filter_map(|s| (s.segment < 9).then_some(s.segment)).max().unwrap() + 1;
        let headers = loads
            + 2
            + usize::from(self.note)
            + usize::from(self.dynamic)
            + 2 * usize::from(self.interpreter)
            + usize::from(self.loaded_headers.is_some());
        let front = 64 + 56 * (headers as u64 + self.free_headers);
        let mut offset = front;
        let mut ranges = vec![(0, 0, 0, 0); loads];
        ranges[0] = (0, self.base(), front, front);
        let mut shift = self.base();
        for (segment, range) in ranges.iter_mut().enumerate() {
            if segment > 0 {
                match self.style {
                    Style::First => shift += self.page,
                    Style::Third => {
                        let address = (offset + shift).next_multiple_of(self.page);
                        let writable = segment == loads - 1;
                        // The writable segment starts somewhere on its page.
                        offset = if writable { offset } else { offset.next_multiple_of(self.page) };
                        shift = if writable {
                            address + offset % self.page - offset
                        } else {
                            address - offset
                        };
                    }
                }
                *range = (offset, offset + shift, 0, 0);
            }
            for section in sections.iter_mut().filter(|s| s.segment == segment) {
                let at = (offset + shift).next_multiple_of(section.align);
                if section.kind == 8 {
                    (section.address, section.offset) = (at, offset);
                    range.3 = at + section.size - range.1;
                    continue;
                }
                offset = at - shift;
                (section.address, section.offset) = (at, offset);
                offset += section.size;
                range.2 = offset - range.0;
                range.3 = range.3.max(range.2);
            }
        }
        for section in sections.iter_mut().filter(|s| s.segment == usize::MAX && s.kind != 0) {
            offset = offset.next_multiple_of(section.align);
            section.offset = offset;
            match section.name {
                ".symtab" => section.size = 24 * (1 + 12 + self.bundles.len() as u64),
                ".shstrtab" => section.size = 512,
                _ => {}
            }
            offset += section.size;
        }
        let mut shoff = offset.next_multiple_of(8);
        if let Some(after) = self.loaded_headers {
            shoff = offset.next_multiple_of(self.page);
            let memory = ranges.iter().map(|range| range.1 + range.3).max().unwrap();
            let size = (64 * sections.len() + after) as u64;
            ranges.push((shoff, memory.next_multiple_of(self.page), size, size));
        }
        self.fill(&mut sections);

        let mut file = vec![0; shoff as usize];
        let put = |file: &mut Vec<u8>, at: u64, bytes: &[u8]| {
            file[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
        };
        let index = |name: &str| sections.iter().position(|s| s.name == name).unwrap_or(0);
        let mut names = Vec::new();
        let mut table = Vec::new();
        for section in &sections {
            let name = names.len() as u32;
            names.extend(section.name.bytes().chain([0]));
            put(&mut file, section.offset, &section.bytes);
            for half in [name, section.kind] {
                table.extend(half.to_le_bytes());
            }
            table.extend(words(&[section.flags, section.address, section.offset, section.size]));
            for half in [index(section.link) as u32, section.info] {
                table.extend(half.to_le_bytes());
            }
            table.extend(words(&[section.align, section.entsize]));
        }
        put(&mut file, sections[index(".shstrtab")].offset, &names);
        file.extend(table);
        file.extend(filler(8, self.loaded_headers.unwrap_or(0)));

        let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
        elf.resize(16, 0);
        for half in [self.e_type, self.machine] {
            elf.extend(half.to_le_bytes());
        }
        elf.extend(1u32.to_le_bytes());
        elf.extend(words(&[self.base() + 0x1000, 64, shoff]));
        elf.extend(0u32.to_le_bytes());
        for half in [64, 56, headers as u16, 64, sections.len() as u16, index(".shstrtab") as u16] {
            elf.extend(half.to_le_bytes());
        }
        let at = |name: &str| {
            let section = &sections[index(name)];
            (section.offset, section.address, section.size, section.size)
        };
        let table = (64, self.base() + 64, 56 * headers as u64, 56 * headers as u64);
        let mut list = Vec::new();
        if self.interpreter {
            list.push((6, 4, table, 8));
            list.push((3, 4, at(".interp"), 1));
        }
        for (segment, &range) in ranges.iter().enumerate() {
            let flags = if segment >= loads - 1 {
                6
            } else if segment == 1 {
                5
            } else {
                4
            };
            list.push((1, flags, range, self.page));
        }
        if self.dynamic {
            list.push((2, 6, at(".dynamic"), 8));
        }
        if self.note {
            list.push((4, 4, at(".note.gnu.build-id"), 4));
        }
        list.push((7, 4, at(".tdata"), 4));
        list.push((0x6474_e551, 6, (0, 0, 0, 0), 16));
        for (kind, flags, (offset, address, size, memory), align) in list {
            for half in [kind, flags] {
                elf.extend(u32::to_le_bytes(half));
            }
            elf.extend(words(&[offset, address, address, size, memory, align]));
        }
        put(&mut file, 0, &elf);
        file
    }

    /// Fills in everything that depends on addresses.
    fn fill(&self, sections: &mut [Section]) {
        let find = |sections: &[Section], name: &str| sections.iter().position(|s| s.name == name);
        let (device, wrappers, magic, align) = if self.cuda { CUDA } else { HIP };
        let Some(device) = find(sections, device) else { return };
        let Some(wrappers) = find(sections, wrappers) else { return };
        let mut starts = Vec::new();
        let mut at = sections[device].address;
        for bundle in &self.bundles {
            at = at.next_multiple_of(align);
            starts.push(at);
            at += bundle.len() as u64;
        }
        let in_place = self.pointers != Pointers::Symbols;
        let wrapper = |&start: &u64| words(&[magic, if in_place { start } else { 0 }, 0]);
        sections[wrappers].bytes = starts.iter().flat_map(wrapper).collect();
        let pointer = |n: usize| sections[wrappers].address + 24 * n as u64 + 8;
        let pointers: Vec<u64> = (0..starts.len()).map(pointer).collect();
        let relative = if self.machine == X86_64 { 8 } else { 1027 };
        let absolute = if self.machine == X86_64 { 1 } else { 257 };
        let pairs = pointers.iter().zip(&starts).enumerate();
        let rela: Vec<u8> = pairs
            .flat_map(|(n, (&pointer, &start))| match self.pointers {
                Pointers::Symbols => words(&[pointer, (n as u64 + 2) << 32 | absolute, 0]),
                _ => words(&[pointer, self.relocation.map_or(relative, u64::from), start]),
            })
            .collect();
        let mut tags = Vec::new();
        for (name, tag, size_tag) in [
            (".gnu.hash", 0x6fff_fef5, 0),
            (".dynsym", 6, 0),
            (".dynstr", 5, 0),
            (".rela.dyn", 7, 8),
            (".relr.dyn", 36, 35),
        ] {
            let Some(n) = find(sections, name) else { continue };
            tags.extend([tag, sections[n].address]);
            if size_tag > 0 {
                tags.extend([size_tag, sections[n].size]);
            }
        }
        let text = find(sections, ".text").unwrap_or(0);
        let tdata = find(sections, ".tdata").unwrap_or(0);
        let symbols: Vec<Vec<u8>> = (sections.iter().enumerate())
            .filter(|(_, section)| section.flags & 2 != 0)
            .map(|(n, section)| symbol(n as u16, section.address, 0, 3))
            .take(11)
            .collect();
        let device_symbols: Vec<u8> =
            starts.iter().flat_map(|&start| symbol(device as u16, start, 0, 0x11)).collect();
        let own = symbol(text as u16, sections[text].address, 16, 0x12);
        let per_thread = symbol(tdata as u16, 4, 4, 0x16);
        let mut lea = |at: usize, address: u64| {
            // lea rdi, [rip + address]
            let from = sections[text].address + at as u64 + 7;
            let by = address.wrapping_sub(from) as u32;
            let lea = [vec![0x48, 0x8d, 0x3d], by.to_le_bytes().to_vec()].concat();
            sections[text].bytes[at..at + 7].copy_from_slice(&lea);
        };
        if let Some(reference) = self.reference {
            lea(0, starts[reference]);
        }
        for (n, &address) in self.operands.iter().enumerate() {
            lea(64 + 7 * n, address);
        }
        for section in sections {
            match section.name {
                ".rela.dyn" => section.bytes.clone_from(&rela),
                ".relr.dyn" => section.bytes = words(&pointers),
                ".dynamic" => {
                    section.bytes = words(&tags);
                    section.bytes.resize(section.size as usize, 0);
                }
                ".dynsym" => {
                    section.bytes = [vec![0; 24], own.clone(), device_symbols.clone()].concat();
                }
                ".symtab" => {
                    section.bytes = [vec![0; 24], symbols.concat()].concat();
                    section.bytes.extend(&per_thread);
                    section.bytes.extend(&device_symbols);
                    section.info = 12;
                }
                _ => {}
            }
        }
    }
}

/// A file as a loader sees it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A section header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: u32,
    /// Its flags.
    pub flags: u64,
    /// Its address.
    pub address: u64,
    /// Its offset in the file.
    pub offset: u64,
    /// Its size in the file.
    pub size: u64,
    /// The section that it refers to.
    pub link: u32,
}

/// A program header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its type.
    pub kind: u32,
    /// Its flags.
    pub flags: u32,
    /// Its offset in the file.
    pub offset: u64,
    /// Its address.
    pub address: u64,
    /// Its size in the file.
    pub size: u64,
    /// Its size in memory.
    pub memory: u64,
    /// Its alignment.
    pub align: u64,
}

impl Loaded {
    /// Takes a file.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Loaded { bytes: bytes.to_vec() }
    }

    /// Returns the number of 16 bits at an offset.
    #[must_use]
    pub fn half(&self, at: u64) -> u16 {
        u16::from_le_bytes(self.bytes[at as usize..at as usize + 2].try_into().unwrap())
    }

    /// Returns the number of 32 bits at an offset.
    #[must_use]
    pub fn word(&self, at: u64) -> u32 {
        u32::from_le_bytes(self.bytes[at as usize..at as usize + 4].try_into().unwrap())
    }

    /// Returns the number of 64 bits at an offset.
    #[must_use]
    pub fn long(&self, at: u64) -> u64 {
        u64::from_le_bytes(self.bytes[at as usize..at as usize + 8].try_into().unwrap())
    }

    /// Returns all segments.
    #[must_use]
    pub fn segments(&self) -> Vec<Segment> {
        (0..u64::from(self.half(56)))
            .map(|n| self.long(32) + 56 * n)
            .map(|at| Segment {
                kind: self.word(at),
                flags: self.word(at + 4),
                offset: self.long(at + 8),
                address: self.long(at + 16),
                size: self.long(at + 32),
                memory: self.long(at + 40),
                align: self.long(at + 48),
            })
            .collect()
    }

    /// Returns the segments that are loaded.
    #[must_use]
    pub fn loads(&self) -> Vec<Segment> {
        self.segments().into_iter().filter(|segment| segment.kind == 1).collect()
    }

    /// Returns all sections.
    #[must_use]
    pub fn sections(&self) -> Vec<Header> {
        let table = self.long(40);
        let names = self.long(table + 64 * u64::from(self.half(62)) + 24);
        (0..u64::from(self.half(60)))
            .map(|n| table + 64 * n)
            .map(|at| {
                let name = &self.bytes[(names + u64::from(self.word(at))) as usize..];
                let name = name.split(|&byte| byte == 0).next().unwrap();
                Header {
                    name: String::from_utf8(name.to_vec()).unwrap(),
                    kind: self.word(at + 4),
                    flags: self.long(at + 8),
                    address: self.long(at + 16),
                    offset: self.long(at + 24),
                    size: self.long(at + 32),
                    link: self.word(at + 40),
                }
            })
            .collect()
    }

    /// Returns a section by its name.
    #[must_use]
    pub fn section(&self, name: &str) -> Header {
        self.sections().into_iter().find(|section| section.name == name).unwrap()
    }

    /// Returns the bytes of a section.
    #[must_use]
    pub fn contents(&self, section: &Header) -> &[u8] {
        let Range { start, end } = section.offset..section.offset + section.size;
        &self.bytes[start as usize..end as usize]
    }

    /// Returns memory of whole pages that the file has bytes for, as it is mapped.
    #[must_use]
    pub fn read(&self, address: u64, len: u64) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        while (out.len() as u64) < len {
            let at = address + out.len() as u64;
            let load = self.loads().into_iter().find(|load| {
                let end = (load.address + load.size).next_multiple_of(4096);
                (load.address & !4095..end).contains(&at)
            })?;
            let offset = load.offset.wrapping_add(at.wrapping_sub(load.address));
            let left = (len - out.len() as u64).min(4096 - at % 4096);
            let end = (offset + left).min(self.bytes.len() as u64);
            out.extend(self.bytes.get(offset as usize..end as usize)?);
            out.resize(out.len() + (left - (end - offset)) as usize, 0);
        }
        Some(out)
    }

    fn read_long(&self, address: u64) -> u64 {
        u64::from_le_bytes(self.read(address, 8).unwrap().try_into().unwrap())
    }

    /// Returns the value of a tag of the dynamic section.
    #[must_use]
    pub fn tag(&self, wanted: u64) -> Option<u64> {
        let dynamic = self.segments().into_iter().find(|segment| segment.kind == 2)?;
        (0..dynamic.size / 16)
            .map(|n| dynamic.address + 16 * n)
            .find(|&at| self.read_long(at) == wanted)
            .map(|at| self.read_long(at + 8))
    }

    /// Returns the addresses that the wrappers hold once the relocations are applied, for a load address of 0.
    #[must_use]
    pub fn registered(&self) -> Vec<u64> {
        let mut sections = self.sections().into_iter();
        let section = sections.find(|s| [HIP.1, CUDA.1].contains(&&*s.name)).unwrap();
        let rela = self.tag(7).zip(self.tag(8)).map_or(0..0, |(at, size)| at..at + size);
        (0..section.size / 24)
            .map(|n| section.address + 24 * n + 8)
            .map(|pointer| {
                let entry = rela.clone().step_by(24).find(|&at| self.read_long(at) == pointer);
                let Some(entry) = entry else { return self.read_long(pointer) };
                let info = self.read_long(entry + 8);
                let addend = self.read_long(entry + 16);
                match info >> 32 {
                    0 => addend,
                    symbol => {
                        addend.wrapping_add(self.read_long(self.tag(6).unwrap() + 24 * symbol + 8))
                    }
                }
            })
            .collect()
    }
}

/// Checks that headers agree, and that everything except device code is unchanged and in its place.
///
/// # Panics
///
/// If it is not.
pub fn check_same(old: &[u8], new: &[u8]) {
    check_same_but(old, new, &[]);
}

/// Checks the same, except the contents of these sections.
pub fn check_same_but(old: &[u8], new: &[u8], changed: &[&str]) {
    let (old, new) = (Loaded::new(old), Loaded::new(new));
    let mut last_end = 0;
    for load in new.loads() {
        assert_eq!((load.address - load.offset) % load.align, 0);
        assert!(load.address & !4095 >= last_end, "two segments on a page");
        last_end = (load.address + load.memory).next_multiple_of(4096);
    }
    let others = |file: &Loaded| -> Vec<Header> {
        file.sections().into_iter().filter(|s| ![HIP.0, CUDA.0].contains(&&*s.name)).collect()
    };
    let (before, after) = (others(&old), others(&new));
    assert_eq!(before.len(), after.len());
    for (before, after) in before.iter().zip(&after) {
        assert_eq!((&before.name, before.kind, before.size), (&after.name, after.kind, after.size));
        let tag = match before.name.as_str() {
            ".gnu.hash" => 0x6fff_fef5,
            ".dynsym" => 6,
            ".dynstr" => 5,
            ".rela.dyn" => 7,
            ".relr.dyn" => 36,
            _ => 0,
        };
        let is_near = [".interp", ".note.gnu.build-id"].contains(&before.name.as_str());
        if tag > 0 {
            assert_eq!(new.tag(tag), Some(after.address), "{}", before.name);
        } else if !is_near {
            assert_eq!(before.address, after.address, "{}", before.name);
        }
        if after.flags & 2 != 0 && after.kind != 8 && after.size > 0 {
            let memory = new.read(after.address, after.size).unwrap();
            assert!(memory == new.contents(after), "{} lies elsewhere in memory", after.name);
        }
        let tables = [".dynamic", ".dynsym", ".symtab", ".rela.dyn", HIP.1, CUDA.1];
        let name = after.name.as_str();
        if after.kind != 8 && !tables.contains(&name) && !changed.contains(&name) {
            assert!(old.contents(before) == new.contents(after), "{}", before.name);
        }
    }
}
