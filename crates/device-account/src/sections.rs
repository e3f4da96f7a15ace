//! The sections of an ELF image, and what is wrong with its tables.

use std::cmp::Reverse;
use std::ops::Range;

use byte_parts::Budget;
use device_code::Fault;
use object::read::elf::{FileHeader, SectionHeader, SectionTable};
use object::{Endianness, elf};

use crate::claims::{Claim, sized};
use crate::kind::Kind;

/// The type of sections of a cubin for memory of kernels, which have a size and no bytes, wherever they lie.
const CUDA_MEMORY: elf::SectionType = elf::SectionType(0x7000_000a);

/// The owner of bytes of an image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub(crate) kind: Kind,
    pub(crate) function: Option<usize>,
    /// `true` if relocations change them.
    pub(crate) is_relocated: bool,
}

impl Owner {
    /// The image itself.
    pub(crate) const IMAGE: Owner =
        Owner { kind: Kind::Headers, function: None, is_relocated: false };
}

/// The rank of claims to bytes of sections, which functions divide: bytes of several sections are in the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    start: u64,
    number: usize,
    depth: Reverse<u32>,
}

/// A section.
pub(crate) struct Section<'a> {
    number: usize,
    pub(crate) name: &'a [u8],
    /// Its bytes in the image, which may be none.
    pub(crate) range: Range<u64>,
    pub(crate) address: u64,
    pub(crate) owner: Owner,
    /// The section that it describes.
    pub(crate) info: Option<usize>,
    /// `false` if it may lie over other sections: as a part of them for NVIDIA's driver, or as memory.
    is_apart: bool,
}

impl Section<'_> {
    /// Returns a claim to some of its bytes for a function.
    pub(crate) fn part(
        &self,
        at: u64,
        len: u64,
        function: Option<usize>,
    ) -> Option<Claim<Owner, Rank>> {
        let start = self.range.start.checked_add(at)?;
        let end = start.checked_add(len)?.min(self.range.end);
        let owner = Owner { function, ..self.owner };
        // Only where the section itself has the bytes.
        let rank = self.rank(2);
        (start < end).then_some(Claim { range: start..end, rank, label: owner })
    }

    /// Returns the rank of a claim of this depth to its bytes.
    fn rank(&self, depth: u32) -> Rank {
        Rank { start: self.range.start, number: self.number, depth: Reverse(depth) }
    }
}

/// The sections of an image.
pub(crate) struct Sections<'a, Elf: FileHeader<Endian = Endianness>> {
    pub(crate) image: &'a [u8],
    pub(crate) endian: Endianness,
    pub(crate) header: &'a Elf,
    pub(crate) table: SectionTable<'a, Elf>,
    pub(crate) all: Vec<Section<'a>>,
    /// Bytes of names that may still be read. Names of a hostile file are one long text, each from another place on.
    pub(crate) names: Budget,
    /// The first thing that is wrong.
    pub(crate) fault: Option<Fault>,
    /// The header of the file, the segments and the headers of the sections.
    headers: [Range<u64>; 3],
}

impl<'a, Elf: FileHeader<Endian = Endianness>> Sections<'a, Elf> {
    /// Reads the tables of an image of `size` bytes. Its end may be left off.
    pub(crate) fn read(image: &'a [u8], size: u64) -> Result<Self, Fault> {
        let no_header = |_| Fault::new(0, "an ELF header", image.len() as u64);
        let header = Elf::parse(image).map_err(no_header)?;
        let endian = header.endian().map_err(no_header)?;
        // Two offsets of this size follow the entry.
        let word = size_of::<Elf::Word>() as u64;
        let (segments_at, sections_at): (u64, u64) =
            (header.e_phoff(endian).into(), header.e_shoff(endian).into());
        let table = header.sections(endian, image).map_err(|_| {
            Fault::new(0x18 + 2 * word, "the offset of the section headers", sections_at)
        })?;
        let segments = header.program_headers(endian, image).map_err(|_| {
            Fault::new(0x18 + word, "the offset of the program headers", segments_at)
        })?;
        let segments_len = segments.len() as u64 * u64::from(header.e_phentsize(endian));
        let sections_len = table.len() as u64 * u64::from(header.e_shentsize(endian));
        let headers = [
            sized(0, u64::from(header.e_ehsize(endian))),
            sized(segments_at, segments_len),
            sized(sections_at, sections_len),
        ];
        let names = Budget::new(4 * image.len() as u64 + (1 << 16));
        let all = Vec::with_capacity(table.len());
        let mut sections =
            Sections { image, endian, header, table, all, names, fault: None, headers };
        sections.read_all(size);
        sections.check_symbols();
        sections.check_overlaps(size);
        Ok(sections)
    }

    fn read_all(&mut self, size: u64) {
        let (endian, is_cuda) = (self.endian, self.header.e_machine(self.endian) == elf::EM_CUDA);
        // A file need not have names of sections.
        let has_names = self.header.shstrndx(endian, self.image).is_ok_and(|index| index != 0);
        let entry = u64::from(self.header.e_shentsize(endian));
        let [.., headers] = &self.headers;
        let mut at = headers.start;
        for section in self.table.iter() {
            let (kind, flags) = (section.sh_type(endian), section.sh_flags(endian));
            let name = self.table.section_name(endian, section);
            if name.is_err() && has_names {
                let expected = "the offset of a name of a section";
                let found = section.sh_name(endian).into();
                self.fault.get_or_insert(Fault::new(at, expected, found));
            }
            let name = counted(&mut self.names, || name.ok());
            let has_bytes = kind != elf::SHT_NULL && !(is_cuda && is_memory_only(name));
            let range = section.file_range(endian).filter(|_| has_bytes);
            let range = range.map_or(0..0, |(start, len)| sized(start, len));
            let starts = |start: &[u8]| name.starts_with(start);
            let is_driver = starts(b".nv.merc") || starts(b".nv.capmerc");
            let is_apart = !(is_cuda && (kind == CUDA_MEMORY || is_driver));
            if is_apart && range.end > size && !range.is_empty() {
                let found = section.sh_size(endian).into();
                let expected = "a section that ends in the image";
                self.fault.get_or_insert(Fault::new(range.start, expected, found));
            }
            let describes =
                flags.0 & elf::SHF_INFO_LINK.0 != 0 || matches!(kind, elf::SHT_REL | elf::SHT_RELA);
            let info = usize::try_from(section.sh_info(endian)).ok();
            let info = info.filter(|info| describes && *info > 0);
            let owner = Owner { kind: kind_of(name, kind, flags), ..Owner::IMAGE };
            let address = section.sh_addr(endian).into();
            let number = self.all.len() + 1;
            self.all.push(Section { number, name, range, address, owner, info, is_apart });
            at += entry;
        }
    }

    /// Finds a table of symbols that is damaged, or without names.
    fn check_symbols(&mut self) {
        for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
            if self.table.symbols(self.endian, self.image, kind).is_err() {
                let mut headers = self.table.iter();
                let header = headers.find(|header| header.sh_type(self.endian) == kind);
                let at = header.map_or(0, |header| header.sh_offset(self.endian).into());
                let found = header.map_or(0, |header| header.sh_link(self.endian).into());
                let expected = "symbols, whose names are in a section of strings";
                self.fault.get_or_insert(Fault::new(at, expected, found));
            }
        }
    }

    /// Finds sections and tables that share bytes.
    fn check_overlaps(&mut self, size: u64) {
        if self.fault.is_some() {
            return;
        }
        let own = self.all.iter().filter(|section| section.is_apart);
        let own = own.map(|section| &section.range).chain(&self.headers);
        let mut own: Vec<_> = own.filter(|range| !range.is_empty() && range.start < size).collect();
        own.sort_unstable_by_key(|range| (range.start, range.end));
        let pairs = own.iter().zip(own.iter().skip(1));
        let shared = pairs.into_iter().find(|(before, after)| before.end > after.start);
        self.fault = shared.map(|(before, after)| {
            Fault::new(after.start, "the end of the section or table before it", before.end)
        });
    }

    /// Returns the claims of tables and sections to the bytes of an image of `size` bytes.
    pub(crate) fn claims(&self, size: u64) -> Vec<Claim<Owner>> {
        let of_headers = self.headers.iter().map(|range| (range, Owner::IMAGE));
        let of_sections = self.all.iter().map(|section| (&section.range, section.owner));
        let all = of_headers.chain(of_sections);
        let all = all.map(|(range, owner)| Claim::new(range.clone(), 1, owner));
        [Claim::new(0..size, 0, Owner::IMAGE)].into_iter().chain(all).collect()
    }

    /// Returns the same claims, each with the rank among claims of functions to parts of sections.
    pub(crate) fn ranked_claims(&self) -> Vec<Claim<Owner, Rank>> {
        // Before sections that start at the same place.
        let of_header = |range: &Range<u64>| {
            let rank = Rank { start: range.start, number: 0, depth: Reverse(1) };
            Claim { range: range.clone(), rank, label: Owner::IMAGE }
        };
        let of_section = |section: &Section<'_>| {
            let (range, rank, label) = (section.range.clone(), section.rank(1), section.owner);
            Claim { range, rank, label }
        };
        let of_headers = self.headers.iter().map(of_header);
        of_headers.chain(self.all.iter().map(of_section)).collect()
    }
}

/// Reads a name, unless more bytes of names were read than a sound file has.
pub(crate) fn counted<'a>(left: &mut Budget, name: impl FnOnce() -> Option<&'a [u8]>) -> &'a [u8] {
    let name = if left.left() > 0 { name().unwrap_or(b"") } else { b"" };
    // The last name may be longer than what is left.
    left.spend(name.len() as u64);
    name
}

/// Returns whether a section of a cubin is memory of a kernel, whatever type it has, and has no bytes in the file.
fn is_memory_only(name: &[u8]) -> bool {
    const STARTS: [&[u8]; 3] = [b".nv.shared.", b".nv.local.", b".nv.merc.nv.shared."];
    [&b".nv.shared"[..], b".nv.global", b".nv.local"].contains(&name)
        || STARTS.iter().any(|start| name.starts_with(start))
}

/// Returns the kind of a section of an image.
fn kind_of(name: &[u8], kind: elf::SectionType, flags: elf::SectionFlags) -> Kind {
    let starts = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start.as_bytes()));
    let has = |flag: elf::SectionFlags| flags.0 & flag.0 != 0;
    if starts(&[".debug", ".nv_debug", ".nv.debug", ".nv.merc.debug", ".nv.merc.nv_debug"]) {
        return Kind::Debug;
    }
    if starts(&[".nv.capmerc", ".nv.merc"]) {
        return Kind::Mercury;
    }
    match kind {
        elf::SHT_REL | elf::SHT_RELA => Kind::Relocations,
        _ if starts(&[".nv.resolvedrela", ".nv.rel.action"]) => Kind::Relocations,
        _ if has(elf::SHF_EXECINSTR) || starts(&[".text"]) => Kind::Code,
        _ if starts(&[".nv.constant"]) => Kind::Data,
        elf::SHT_SYMTAB
        | elf::SHT_DYNSYM
        | elf::SHT_STRTAB
        | elf::SHT_SYMTAB_SHNDX
        | elf::SHT_HASH
        | elf::SHT_GNU_HASH => Kind::Symbols,
        elf::SHT_NOTE => Kind::Metadata,
        elf::SHT_DYNAMIC => Kind::Headers,
        _ if starts(&[".nv.info", ".note", ".nv.compat", ".nv.callgraph", ".nv.prototype"]) => {
            Kind::Metadata
        }
        _ if starts(&[".ze_info", ".gtpin_info"]) => Kind::Metadata,
        _ if has(elf::SHF_ALLOC) => Kind::Data,
        _ => Kind::Other,
    }
}
