//! ELF objects, field by field, whole or wrong on purpose.

use std::collections::HashMap;

use crate::{longs, words};

/// `SHT_PROGBITS`.
pub const PROGBITS: u32 = 1;
/// `SHT_SYMTAB`.
pub const SYMTAB: u32 = 2;
/// `SHT_STRTAB`.
pub const STRTAB: u32 = 3;
/// `SHT_RELA`.
pub const RELA: u32 = 4;
/// `SHT_NOTE`.
pub const NOTE: u32 = 7;
/// `SHT_NOBITS`.
pub const NOBITS: u32 = 8;
/// `SHT_REL`.
pub const REL: u32 = 9;
/// `SHT_DYNSYM`.
pub const DYNSYM: u32 = 11;
/// `SHT_GROUP`.
pub const GROUP: u32 = 17;
/// `SHT_SYMTAB_SHNDX`.
pub const SYMTAB_SHNDX: u32 = 18;
/// `SHT_LLVM_OFFLOADING`.
pub const LLVM_OFFLOADING: u32 = 0x6fff_4c0b;

/// A section.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: u32,
    /// Its flags.
    pub flags: u64,
    /// Its bytes.
    pub contents: Vec<u8>,
    /// The size in the header, if it is not the size of the contents.
    pub size: Option<u64>,
    /// The number of the section whose bytes it has instead of its own, from 1.
    pub same_as: Option<usize>,
    /// Its alignment.
    pub align: u64,
    /// The section that it refers to.
    pub link: u32,
    /// More about it.
    pub info: u32,
}

/// Returns a section of this name, type and contents.
#[must_use]
pub fn section(name: &str, kind: u32, contents: impl Into<Vec<u8>>) -> Section {
    let (name, contents) = (name.to_owned(), contents.into());
    let (flags, align, link, info) = (0, 1, 0, 0);
    Section { name, kind, flags, contents, size: None, same_as: None, align, link, info }
}

/// Returns a section of bytes.
#[must_use]
pub fn progbits(name: &str, contents: &[u8]) -> Section {
    section(name, PROGBITS, contents)
}

/// An ELF file. The string table with all names lies after the other sections.
#[derive(Clone, Debug)]
pub struct Elf {
    /// 64 bits, not 32.
    pub wide: bool,
    /// The highest byte first.
    pub big: bool,
    /// The operating system's ABI and its version.
    pub os_abi: [u8; 2],
    /// Its type.
    pub kind: u16,
    /// Its machine.
    pub machine: u16,
    /// The flags of its machine.
    pub flags: u32,
    /// The sections from number 1 on, without the string table.
    pub sections: Vec<Section>,
    /// More names in the string table.
    pub symbol_names: Vec<String>,
    /// Addresses of sections are their offsets, not 0.
    pub loaded: bool,
    /// The numbers of sections and of the string table are in the first section header, as they are if there are many.
    pub extended: bool,
    /// The string table is section 1, not the last one.
    pub names_first: bool,
    /// The section headers come first.
    pub table_first: bool,
    /// Bytes after the end.
    pub trailing: Vec<u8>,
}

/// Returns an object with five bytes of data.
#[must_use]
pub fn elf(wide: bool, big: bool) -> Elf {
    Elf { wide, big, ..object(vec![progbits(".data", b"DATA!")]) }
}

/// Returns an object for x86-64 with these sections.
#[must_use]
pub fn object(sections: Vec<Section>) -> Elf {
    Elf {
        wide: true,
        big: false,
        os_abi: [0; 2],
        kind: 1,
        machine: 62,
        flags: 0,
        sections,
        symbol_names: Vec::new(),
        loaded: false,
        extended: false,
        names_first: false,
        table_first: false,
        trailing: Vec::new(),
    }
}

/// Returns an [`elf`] of each width and byte order.
pub fn all_elf() -> impl Iterator<Item = Elf> {
    let forms = [(false, false), (false, true), (true, false), (true, true)];
    forms.into_iter().map(|(wide, big)| elf(wide, big))
}

impl Elf {
    /// Returns a number of 16 bits.
    #[must_use]
    pub fn half(&self, n: u16) -> Vec<u8> {
        if self.big { n.to_be_bytes().to_vec() } else { n.to_le_bytes().to_vec() }
    }

    /// Returns a number of 32 bits.
    #[must_use]
    pub fn word(&self, n: u32) -> Vec<u8> {
        if self.big { n.to_be_bytes().to_vec() } else { n.to_le_bytes().to_vec() }
    }

    /// Returns a number of the width of the file.
    #[must_use]
    pub fn long(&self, n: u64) -> Vec<u8> {
        match (self.wide, self.big) {
            (true, true) => n.to_be_bytes().to_vec(),
            (true, false) => n.to_le_bytes().to_vec(),
            (false, _) => self.word(n as u32),
        }
    }

    /// Returns numbers of 32 bits.
    #[must_use]
    pub fn words(&self, words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|&word| self.word(word)).collect()
    }

    /// Returns the offset of a name in the string table.
    #[must_use]
    pub fn name(&self, name: &str) -> u32 {
        self.names().1[name]
    }

    /// Returns the string table, and the offset of each name.
    #[must_use]
    pub fn names(&self) -> (Vec<u8>, HashMap<&str, u32>) {
        let mut table = b"\0.strtab\0".to_vec();
        let mut names = HashMap::from([("", 0), (".strtab", 1)]);
        let sections = self.sections.iter().map(|section| &section.name);
        for name in self.symbol_names.iter().chain(sections) {
            names.entry(name.as_str()).or_insert_with(|| {
                let at = table.len() as u32;
                table.extend(name.bytes().chain([0]));
                at
            });
        }
        (table, names)
    }

    /// Returns a symbol.
    #[must_use]
    pub fn symbol(&self, name: &str, info: u8, section: u16, value: u64) -> Vec<u8> {
        self.whole_symbol(self.name(name), [info, 0], section, value, 0)
    }

    /// Returns a global object of this size.
    #[must_use]
    pub fn sized_symbol(&self, name: &str, section: u16, value: u64, size: u64) -> Vec<u8> {
        self.whole_symbol(self.name(name), [0x11, 0], section, value, size)
    }

    /// Returns a symbol whose name is at this offset, with `st_info` and `st_other`.
    #[must_use]
    pub fn whole_symbol(
        &self,
        name: u32,
        info: [u8; 2],
        section: u16,
        value: u64,
        size: u64,
    ) -> Vec<u8> {
        let name = self.word(name);
        let rest = [info.to_vec(), self.half(section)].concat();
        let numbers = [self.long(value), self.long(size)].concat();
        if self.wide { [name, rest, numbers].concat() } else { [name, numbers, rest].concat() }
    }

    /// Returns a relocation; without addend one of the form that has none.
    #[must_use]
    pub fn relocation(&self, place: u64, symbol: u64, kind: u64, addend: Option<i64>) -> Vec<u8> {
        let info = if self.wide { symbol << 32 | kind } else { symbol << 8 | kind };
        let mut relocation = [self.long(place), self.long(info)].concat();
        relocation.extend(addend.map(|addend| self.long(addend as u64)).unwrap_or_default());
        relocation
    }

    /// Returns a relocation of a symbol.
    #[must_use]
    pub fn rela(&self, symbol: u64) -> Vec<u8> {
        self.relocation(0, symbol, 1, Some(0))
    }

    fn header_len(&self) -> u64 {
        if self.wide { 64 } else { 52 }
    }

    fn entry_len(&self) -> u64 {
        if self.wide { 64 } else { 40 }
    }

    /// Returns the offset of each section, from number 1 on, and of the string table.
    #[must_use]
    pub fn offsets(&self) -> Vec<u64> {
        let count = self.sections.len() as u64 + 2;
        let mut at = self.header_len();
        at += if self.table_first { count * self.entry_len() } else { 0 };
        let mut offsets = Vec::new();
        for section in &self.sections {
            at = at.next_multiple_of(section.align);
            offsets.push(at);
            at += section.contents.len() as u64;
        }
        offsets.push(at);
        offsets
    }

    /// Returns the file's header, with the section headers at an offset.
    #[must_use]
    pub fn head(&self, table: u64) -> Vec<u8> {
        let count = if table == 0 { 0 } else { self.sections.len() + 2 };
        let names = if self.names_first { 1 } else { count.saturating_sub(1) };
        let number =
            |number| if self.extended || number >= 0xff00 { None } else { Some(number as u16) };
        let numbers = [number(count).unwrap_or(0), number(names).unwrap_or(0xffff)];
        let class = [1 + u8::from(self.wide), 1 + u8::from(self.big), 1];
        let mut file = [b"\x7fELF", &class[..], &self.os_abi, &[0; 7]].concat();
        file.extend([self.half(self.kind), self.half(self.machine), self.word(1)].concat());
        file.extend([0, 0, table].map(|n| self.long(n)).concat());
        file.extend(self.word(self.flags));
        let lens = [self.header_len() as u16, 0, 0, self.entry_len() as u16];
        file.extend(lens.into_iter().chain(numbers).flat_map(|n| self.half(n)));
        file
    }

    /// Returns the file.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        let (names, places) = self.names();
        let offsets = self.offsets();
        let count = self.sections.len() + 2;
        let header = |fields: [u32; 2], flags, at: [u64; 3], rest: [u32; 2], last: [u64; 2]| {
            let [address, offset, size] = at;
            let numbers = [flags, address, offset, size].map(|n| self.long(n)).concat();
            let last = last.map(|n| self.long(n)).concat();
            [self.words(&fields), numbers, self.words(&rest), last].concat()
        };
        let names_number = if self.names_first { 1 } else { count - 1 };
        let many = |number| if self.extended || number >= 0xff00 { number } else { 0 };
        let first = (many(count) as u64, many(names_number) as u32);
        let mut table = vec![header([0, 0], 0, [0, 0, first.0], [first.1, 0], [0, 0])];
        let mut file = self.head(0);
        if self.table_first {
            file.resize(file.len() + count * self.entry_len() as usize, 0);
        }
        for (section, &own) in self.sections.iter().zip(&offsets) {
            file.resize(own as usize, 0);
            file.extend(&section.contents);
            let entry = match (section.kind, self.wide) {
                (SYMTAB | DYNSYM | RELA, true) => 24,
                (SYMTAB | DYNSYM, false) | (REL, true) => 16,
                (RELA, false) => 12,
                (REL, false) => 8,
                _ => 0,
            };
            let name = places[section.name.as_str()];
            let same = section.same_as.map(|number| number - 1);
            let contents = same.map_or(section, |same| &self.sections[same]).contents.len();
            let offset = same.map_or(own, |same| offsets[same]);
            let address = if self.loaded { offset } else { 0 };
            let place = [address, offset, section.size.unwrap_or(contents as u64)];
            let rest = [section.link, section.info];
            let fields = [name, section.kind];
            table.push(header(fields, section.flags, place, rest, [section.align, entry]));
        }
        let place = [0, offsets[count - 2], names.len() as u64];
        table.insert(names_number, header([1, STRTAB], 0, place, [0, 0], [1, 0]));
        let table = table.concat();
        file.extend(names);
        let mut table_at = self.header_len();
        if self.table_first {
            crate::put(&mut file, table_at as usize, &table);
        } else {
            file.resize(file.len().next_multiple_of(8), 0);
            table_at = file.len() as u64;
            file.extend(table);
        }
        crate::put(&mut file, 0, &self.head(table_at));
        file.extend(&self.trailing);
        file
    }
}

/// A section header.
#[derive(Clone, Copy, Debug, Default)]
pub struct Header {
    /// The offset of its name in the table of names.
    pub name: u32,
    /// Its type.
    pub kind: u32,
    /// Its flags.
    pub flags: u64,
    /// Its address.
    pub address: u64,
    /// Its offset in the file.
    pub offset: u64,
    /// Its size.
    pub size: u64,
    /// The section that it refers to.
    pub link: u32,
    /// More about it.
    pub info: u32,
    /// Its alignment.
    pub align: u64,
    /// The size of an entry.
    pub entry: u64,
}

/// A part of the file that is loaded.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// Its type.
    pub kind: u32,
    /// Its flags.
    pub flags: u32,
    /// The offset of its first byte.
    pub start: u64,
    /// The offset of its end.
    pub end: u64,
    /// The distance from offsets to addresses.
    pub base: u64,
}

/// Returns names one after the other, and the offset of each.
#[must_use]
pub fn names<const N: usize>(names: [&str; N]) -> (Vec<u8>, [u32; N]) {
    let mut table = vec![0];
    let starts = names.map(|name| {
        let start = table.len() as u32;
        table.extend(name.bytes().chain([0]));
        start
    });
    (table, starts)
}

/// Returns a file of 64 bits for x86-64 whose section headers may say anything. `body` has room for the headers at its start;
/// the names and the section headers come after it, the header of the names last.
#[must_use]
pub fn placed(
    kind: u16,
    segments: &[Segment],
    sections: &[Header],
    names: &[u8],
    body: Vec<u8>,
) -> Vec<u8> {
    let mut file = body;
    let (offset, size) = (file.len() as u64, names.len() as u64);
    let last = Header { kind: STRTAB, offset, size, align: 1, ..Header::default() };
    file.extend(names);
    file.resize(file.len().next_multiple_of(8), 0);
    let table = file.len() as u64;
    let count = sections.len() + 2;
    let many = count >= 0xff00;
    let (size, link) = if many { (count as u64, count as u32 - 1) } else { (0, 0) };
    let null = Header { size, link, ..Header::default() };
    for header in [&null].into_iter().chain(sections).chain([&last]) {
        file.extend(words(&[header.name, header.kind]));
        file.extend(longs(&[header.flags, header.address, header.offset, header.size]));
        file.extend(words(&[header.link, header.info]));
        file.extend(longs(&[header.align, header.entry]));
    }
    let first = if segments.is_empty() { 0 } else { 64 };
    let mut head = [b"\x7fELF\x02\x01\x01".as_slice(), &[0; 9]].concat();
    head.extend([kind, 62, 1, 0].map(u16::to_le_bytes).concat());
    head.extend(longs(&[0, first, table]));
    let numbers = if many { [0, 0xffff] } else { [count as u16, count as u16 - 1] };
    let lens = [0, 0, 64, 56, segments.len() as u16, 64];
    head.extend(lens.into_iter().chain(numbers).flat_map(u16::to_le_bytes));
    for segment in segments {
        let (start, size) = (segment.start, segment.end - segment.start);
        let address = segment.base + start;
        head.extend(words(&[segment.kind, segment.flags]));
        head.extend(longs(&[start, address, address, size, size, 4096]));
    }
    crate::put(&mut file, 0, &head);
    file
}

/// Symbols of an object: `name` is defined, `-name` is referred to, `?name` is a weak reference, `~name` a weak
/// definition, `=name` a common symbol.
pub type SymbolList<'s> = &'s [&'s str];

/// Returns an ELF file with a symbol table: an object, or a shared library.
#[must_use]
pub fn with_symbols(is_shared: bool, symbols: SymbolList<'_>) -> Vec<u8> {
    let read = |symbol: &str| match symbol.split_at(1) {
        ("-", name) => (1, 0, name.to_owned()),
        ("?", name) => (2, 0, name.to_owned()),
        ("~", name) => (2, 0xfff1, name.to_owned()),
        ("=", name) => (1, 0xfff2, name.to_owned()),
        _ => (1, 0xfff1, symbol.to_owned()),
    };
    let symbols: Vec<(u8, u16, String)> = symbols.iter().map(|symbol| read(symbol)).collect();
    let mut file = object(Vec::new());
    file.symbol_names = symbols.iter().map(|(.., name)| name.clone()).collect();
    let (name, kind) = if is_shared { (".dynsym", DYNSYM) } else { (".symtab", SYMTAB) };
    file.kind = if is_shared { 3 } else { 1 };
    file.sections = vec![Section { link: 2, info: 1, ..section(name, kind, []) }];
    let symbols = symbols
        .iter()
        .flat_map(|(binding, section, name)| file.symbol(name, binding << 4, *section, 0));
    let table = [0; 24].into_iter().chain(symbols).collect();
    file.sections[0].contents = table;
    file.build()
}

/// Rewrites the count of sections and the number of the string table of a file of 64 bits as files with more than 65,280
/// sections have them.
#[must_use]
pub fn with_many_sections(mut bytes: Vec<u8>) -> Vec<u8> {
    let headers = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
    let [count, names] =
        [60, 62].map(|at| u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()));
    crate::put(&mut bytes, 60, &[0, 0, 0xff, 0xff]);
    crate::put(&mut bytes, headers + 32, &words(&[count.into(), 0, names.into()]));
    bytes
}
