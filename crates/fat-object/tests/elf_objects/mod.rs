//! ELF objects built by hand.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    unreachable_pub,
    dead_code,
    reason = "a test fails by panicking; not every test uses all"
)]

/// A section of an object built by hand.
#[derive(Clone)]
pub struct Section {
    pub name: &'static str,
    pub kind: u32,
    pub flags: u64,
    pub contents: Vec<u8>,
    pub align: u64,
    pub link: u32,
    pub info: u32,
}

/// An ELF object built by hand; the string table with all names comes last.
#[derive(Clone)]
pub struct Elf {
    pub wide: bool,
    pub big: bool,
    pub sections: Vec<Section>,
    pub symbol_names: &'static [&'static str],
    pub extended: bool,
    pub table_first: bool,
    pub trailing: Vec<u8>,
}

pub const PROGBITS: u32 = 1;
pub const SYMTAB: u32 = 2;
pub const RELA: u32 = 4;
pub const REL: u32 = 9;
pub const GROUP: u32 = 17;
pub const SYMTAB_SHNDX: u32 = 18;

pub fn progbits(name: &'static str, contents: &[u8]) -> Section {
    let contents = contents.to_vec();
    Section { name, kind: PROGBITS, flags: 0, contents, align: 1, link: 0, info: 0 }
}

pub fn elf(wide: bool, big: bool) -> Elf {
    Elf {
        wide,
        big,
        sections: vec![progbits(".data", b"DATA!")],
        symbol_names: &[],
        extended: false,
        table_first: false,
        trailing: Vec::new(),
    }
}

impl Elf {
    pub fn half(&self, n: u16) -> Vec<u8> {
        if self.big { n.to_be_bytes().to_vec() } else { n.to_le_bytes().to_vec() }
    }

    pub fn word(&self, n: u32) -> Vec<u8> {
        if self.big { n.to_be_bytes().to_vec() } else { n.to_le_bytes().to_vec() }
    }

    pub fn long(&self, n: u64) -> Vec<u8> {
        match (self.wide, self.big) {
            (true, true) => n.to_be_bytes().to_vec(),
            (true, false) => n.to_le_bytes().to_vec(),
            (false, _) => self.word(n as u32),
        }
    }

    pub fn words(&self, words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|&word| self.word(word)).collect()
    }

    pub fn name(&self, name: &str) -> u32 {
        let names = self.names();
        let name = [name.as_bytes(), b"\0"].concat();
        names.windows(name.len()).position(|window| window == name).unwrap() as u32
    }

    pub fn names(&self) -> Vec<u8> {
        let mut names = b"\0.strtab\0".to_vec();
        for name in self.sections.iter().map(|s| s.name).chain(self.symbol_names.iter().copied()) {
            names.extend([name.as_bytes(), b"\0"].concat());
        }
        names
    }

    pub fn symbol(&self, name: &str, info: u8, section: u16, value: u64) -> Vec<u8> {
        let name = self.word(if name.is_empty() { 0 } else { self.name(name) });
        let rest = [vec![info, 0], self.half(section)].concat();
        let numbers = [self.long(value), self.long(0)].concat();
        if self.wide { [name, rest, numbers].concat() } else { [name, numbers, rest].concat() }
    }

    pub fn sized_symbol(&self, name: &str, section: u16, value: u64, size: u64) -> Vec<u8> {
        let mut symbol = self.symbol(name, 0x11, section, value);
        let at = if self.wide { 16 } else { 8 };
        let size = self.long(size);
        symbol[at..at + size.len()].copy_from_slice(&size);
        symbol
    }

    /// Without addend one of the form that has none.
    pub fn relocation(&self, place: u64, symbol: u64, kind: u64, addend: Option<i64>) -> Vec<u8> {
        let info = if self.wide { symbol << 32 | kind } else { symbol << 8 | kind };
        let mut relocation = [self.long(place), self.long(info)].concat();
        relocation.extend(addend.map(|addend| self.long(addend as u64)).unwrap_or_default());
        relocation
    }

    pub fn rela(&self, symbol: u64) -> Vec<u8> {
        self.relocation(0, symbol, 1, Some(0))
    }

    pub fn build(&self) -> Vec<u8> {
        let (header_len, entry_len) = if self.wide { (64, 64) } else { (52, 40) };
        let count = self.sections.len() + 2;
        let mut body = Vec::new();
        let start = if self.table_first { header_len + count * entry_len } else { header_len };
        let header = |fields: [u32; 2],
                      flags: u64,
                      place: [usize; 2],
                      rest: [u32; 2],
                      align,
                      entry: usize| {
            [
                self.words(&fields),
                self.long(flags),
                self.long(0),
                self.long(place[0] as u64),
                self.long(place[1] as u64),
                self.words(&rest),
                self.long(align),
                self.long(entry as u64),
            ]
            .concat()
        };
        let names = self.names();
        let null = if self.extended { (count, count as u32 - 1) } else { (0, 0) };
        let mut table = header([0, 0], 0, [0, null.0], [null.1, 0], 0, 0);
        let mut known = ("", 0);
        for section in &self.sections {
            let entry = match (section.kind, self.wide) {
                (SYMTAB, true) | (RELA, true) => 24,
                (SYMTAB, false) | (REL, true) => 16,
                (RELA, false) => 12,
                (REL, false) => 8,
                _ => 0,
            };
            let padded = (start + body.len()).next_multiple_of(section.align as usize) - start;
            body.resize(padded, 0);
            let place = [start + padded, section.contents.len()];
            if known.0 != section.name {
                known = (section.name, self.name(section.name));
            }
            let fields = [known.1, section.kind];
            let rest = [section.link, section.info];
            table.extend(header(fields, section.flags, place, rest, section.align, entry));
            body.extend(&section.contents);
        }
        table.extend(header([1, 3], 0, [start + body.len(), names.len()], [0, 0], 1, 0));
        body.extend(names);
        if !self.table_first {
            let padded = (start + body.len()).next_multiple_of(8) - start;
            body.resize(padded, 0);
        }
        let table_at = if self.table_first { header_len } else { start + body.len() };
        let numbers = if self.extended { [0, 0xffff] } else { [count as u16, count as u16 - 1] };
        let mut file =
            [0x7f, b'E', b'L', b'F', 1 + u8::from(self.wide), 1 + u8::from(self.big), 1].to_vec();
        file.resize(16, 0);
        file.extend([self.half(1), self.half(62), self.word(1)].concat());
        file.extend(
            [self.long(0), self.long(0), self.long(table_at as u64), self.word(0)].concat(),
        );
        file.extend([header_len as u16, 0, 0, entry_len as u16].map(|n| self.half(n)).concat());
        file.extend(numbers.map(|n| self.half(n)).concat());
        assert_eq!(file.len(), header_len);
        for part in if self.table_first { [table, body] } else { [body, table] } {
            file.extend(part);
        }
        file.extend(&self.trailing);
        file
    }
}

pub fn all_elf() -> impl Iterator<Item = Elf> {
    [(false, false), (false, true), (true, false), (true, true)]
        .into_iter()
        .map(|(wide, big)| elf(wide, big))
}
