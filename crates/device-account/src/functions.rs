//! Functions of an ELF image: the sections and symbols that belong to them.

use std::collections::HashMap;
use std::ops::Range;

use byte_parts::Budget;
use object::read::ReadRef;
use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::{Endianness, elf};
use twox_hash::XxHash3_128;

use crate::claims::{Claim, resolve};
use crate::kind::{ByKind, Kind};
use crate::sections::{Owner, Rank, Section, Sections, counted};

/// Functions that are told apart. Large libraries have some thousand.
const MOST_FUNCTIONS: usize = 1 << 18;
/// Endings of the name of a section that may be the name of a function: honest ones have two or three.
const MOST_ENDINGS: usize = 64;

/// A kernel, or another function with sections or symbols of its own.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) kinds: ByKind,
    /// A hash of its machine code and data, if it is asked for; `None` if it has none, or if relocations change them.
    pub(crate) hash: Option<u128>,
}

/// The names of functions of an image.
#[derive(Default)]
pub(crate) struct Functions<'a> {
    names: Vec<&'a [u8]>,
    by_name: HashMap<&'a [u8], usize>,
}

impl<'a> Functions<'a> {
    /// Finds functions by the symbols of the table for linkers, or else of the table for loaders, and gives them their sections.
    pub(crate) fn find<Elf: FileHeader<Endian = Endianness>>(
        sections: &mut Sections<'a, Elf>,
    ) -> Self {
        let mut functions = Functions::default();
        for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
            if functions.names.is_empty() {
                functions.add_symbols(sections, kind);
            }
        }
        functions.own(sections);
        functions
    }

    /// Adds the functions of a table of symbols.
    fn add_symbols<Elf: FileHeader<Endian = Endianness>>(
        &mut self,
        sections: &mut Sections<'a, Elf>,
        kind: elf::SectionType,
    ) {
        let endian = sections.endian;
        let Ok(symbols) = sections.table.symbols(endian, sections.image, kind) else { return };
        for symbol in symbols.iter().filter(|symbol| symbol.st_type() == elf::STT_FUNC) {
            let name = counted(&mut sections.names, || symbols.symbol_name(endian, symbol).ok());
            if name.is_empty() || self.names.len() >= MOST_FUNCTIONS {
                continue;
            }
            let next = self.names.len();
            if *self.by_name.entry(name).or_insert(next) == next {
                self.names.push(name);
            }
        }
    }

    /// Gives each section to the function whose name its name ends with, or to the function of the section that it describes.
    fn own<Elf: FileHeader<Endian = Endianness>>(&self, sections: &mut Sections<'a, Elf>) {
        const RELOCATIONS: [elf::SectionType; 3] = [elf::SHT_REL, elf::SHT_RELA, elf::SHT_CREL];
        for (at, header) in sections.table.iter().enumerate() {
            let is_empty = sections.all.get(at).is_none_or(|section| section.range.is_empty());
            if is_empty || !RELOCATIONS.contains(&header.sh_type(sections.endian)) {
                continue;
            }
            let changed = usize::try_from(header.sh_info(sections.endian)).ok();
            let changed = changed.filter(|at| *at > 0).and_then(|at| sections.all.get_mut(at));
            changed.into_iter().for_each(|section| section.owner.is_relocated = true);
        }
        for section in &mut sections.all {
            let dots = section.name.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'.');
            let mut endings =
                dots.take(MOST_ENDINGS).filter_map(|(at, _)| section.name.get(at + 1..));
            section.owner.function = endings.find_map(|name| self.by_name.get(name).copied());
        }
        let owners: Vec<_> = sections.all.iter().map(|section| section.owner.function).collect();
        for section in &mut sections.all {
            let described = section.info.and_then(|at| *owners.get(at)?);
            section.owner.function = section.owner.function.or(described);
        }
    }

    /// Divides the bytes of an image of `size` bytes: returns each function with its pieces.
    pub(crate) fn divide<Elf: FileHeader<Endian = Endianness>>(
        self,
        sections: &Sections<'a, Elf>,
        size: u64,
        with_hashes: bool,
    ) -> Vec<Function> {
        if self.names.is_empty() {
            return Vec::new();
        }
        let mut claims = sections.ranked_claims();
        self.claim(sections, &mut claims);
        let mut pieces = Vec::new();
        resolve(size, &claims, |claim, range| {
            let Some(owner) = claims.get(claim).map(|claim| claim.label) else { return };
            pieces.extend(owner.function.map(|function| (function, owner, range)));
        });
        self.with_pieces(with_hashes.then_some(sections.image), pieces)
    }

    /// Claims names of sections, and symbols with their names and bytes.
    fn claim<Elf: FileHeader<Endian = Endianness>>(
        &self,
        sections: &Sections<'a, Elf>,
        claims: &mut Vec<Claim<Owner, Rank>>,
    ) {
        let (endian, image) = (sections.endian, sections.image);
        let strings = sections.header.shstrndx(endian, image).unwrap_or(0);
        if let Some(strings) = sections.all.get(usize::try_from(strings).unwrap_or(0)) {
            for (header, section) in sections.table.iter().zip(&sections.all) {
                let (start, len) = (header.sh_name(endian).into(), section.name.len() as u64 + 1);
                claims.extend(strings.part(start, len, section.owner.function));
            }
        }
        let entry = size_of::<Elf::Sym>() as u64;
        // Tables of a hostile file share bytes, as names do.
        let len = image.len() as u64;
        let (mut symbols_left, mut names_left) = (len / entry, Budget::new(4 * len + (1 << 16)));
        for (header, own) in sections.table.iter().zip(&sections.all) {
            let kind = header.sh_type(endian);
            // Tables of NVIDIA's have types of their own.
            let is_alias =
                own.name.ends_with(b"symtab") && header.sh_entsize(endian).into() == entry;
            if kind != elf::SHT_SYMTAB && kind != elf::SHT_DYNSYM && !is_alias {
                continue;
            }
            let len = own.range.end - own.range.start;
            let Some(left) = symbols_left.checked_sub(len / entry) else { continue };
            symbols_left = left;
            let count = usize::try_from(len / entry).unwrap_or(0);
            let symbols = image.read_slice_at::<Elf::Sym>(own.range.start, count);
            let strings = usize::try_from(header.sh_link(endian)).unwrap_or(0);
            if let (Ok(symbols), Some(strings)) = (symbols, sections.all.get(strings)) {
                let tables = (own, strings);
                self.claim_symbols(sections, tables, symbols, &mut names_left, claims);
            }
        }
    }

    fn claim_symbols<Elf: FileHeader<Endian = Endianness>>(
        &self,
        sections: &Sections<'a, Elf>,
        (own, strings): (&Section<'a>, &Section<'a>),
        symbols: &[Elf::Sym],
        names: &mut Budget,
        claims: &mut Vec<Claim<Owner, Rank>>,
    ) {
        let (endian, entry) = (sections.endian, size_of::<Elf::Sym>() as u64);
        let is_relocatable = sections.header.e_type(endian) == elf::ET_REL;
        let len = strings.range.end - strings.range.start;
        let texts = sections.image.read_bytes_at(strings.range.start, len).unwrap_or_default();
        for (at, symbol) in symbols.iter().enumerate().skip(1) {
            let section = usize::from(symbol.st_shndx(endian).0);
            let section = sections.all.get(section).filter(|_| section > 0);
            let of_name = usize::try_from(symbol.st_name(endian)).unwrap_or(0);
            let name = counted(names, || texts.get(of_name..)?.split(|byte| *byte == 0).next());
            let by_name = || {
                let code = name.strip_suffix(b".kd").unwrap_or(name);
                self.by_name.get(code).copied()
            };
            let owned = section.and_then(|section| section.owner.function);
            let owner = owned.or_else(by_name);
            claims.extend(own.part(at as u64 * entry, entry, owner));
            if of_name > 0 {
                claims.extend(strings.part(of_name as u64, name.len() as u64 + 1, owner));
            }
            let value: u64 = symbol.st_value(endian).into();
            if let (Some(section), None, Some(_)) = (section, owned, owner) {
                let base = if is_relocatable { 0 } else { section.address };
                let within = value.checked_sub(base);
                let bytes = symbol.st_size(endian).into();
                claims.extend(within.and_then(|within| section.part(within, bytes, owner)));
            }
        }
    }

    /// Returns the functions with the pieces of the image that they own, and with hashes of these, if there is an image.
    fn with_pieces(
        self,
        hashed: Option<&[u8]>,
        mut pieces: Vec<(usize, Owner, Range<u64>)>,
    ) -> Vec<Function> {
        // Pieces of one function stay in file order.
        pieces.sort_by_key(|(function, ..)| *function);
        let mut pieces = pieces.chunk_by(|(one, ..), (other, ..)| one == other).peekable();
        let mut functions = Vec::new();
        for (at, name) in self.names.into_iter().enumerate() {
            let own =
                pieces.next_if(|pieces| pieces.first().is_some_and(|(owner, ..)| *owner == at));
            let Some(own) = own else { continue };
            let mut kinds = ByKind::default();
            own.iter().for_each(|(_, owner, range)| kinds.add(owner.kind, range.end - range.start));
            let name = String::from_utf8_lossy(name).into_owned();
            let hash = hashed.and_then(|image| hash(image, own));
            functions.push(Function { name, kinds, hash });
        }
        functions
    }
}

/// Returns the hash of a function's machine code and data: of the kind, the length and the bytes of each run of them. `None` if
/// there are none, or if relocations change one: bytes that are equal in the file may not be so when they are loaded.
fn hash(image: &[u8], pieces: &[(usize, Owner, Range<u64>)]) -> Option<u128> {
    let hashed = |owner: &Owner| matches!(owner.kind, Kind::Code | Kind::Data);
    let mut hasher = None;
    let mut pieces = pieces.iter().filter(|(_, owner, _)| hashed(owner)).peekable();
    while let Some((_, owner, range)) = pieces.next() {
        let (kind, mut end, mut is_relocated) = (owner.kind, range.end, owner.is_relocated);
        while let Some((_, owner, range)) =
            pieces.next_if(|(_, owner, range)| owner.kind == kind && range.start == end)
        {
            (end, is_relocated) = (range.end, is_relocated || owner.is_relocated);
        }
        if is_relocated {
            return None;
        }
        let len = end - range.start;
        let hasher = hasher.get_or_insert_with(XxHash3_128::new);
        hasher.write(&[kind as u8]);
        hasher.write(&len.to_le_bytes());
        hasher.write(image.read_bytes_at(range.start, len).ok()?);
    }
    hasher.map(|hasher| hasher.finish_128())
}
