//! The bytes of one image: sections, and the functions that they belong to.

use std::collections::HashMap;
use std::ops::Range;

use byte_parts::Budget;
use device_code::FileFormat;
use object::read::elf::{FileHeader, SectionHeader, SectionTable, Sym};
use object::read::{FileKind, ReadRef};
use object::{Endianness, elf};
use twox_hash::XxHash3_128;

use crate::claims::{Claim, resolve, sized};
use crate::kind::{ByKind, Kind};

/// Functions that are told apart. Large libraries have some thousand.
const MOST_FUNCTIONS: usize = 1 << 18;
/// Endings of the name of a section that may be the name of a function: honest ones have two or three.
const MOST_ENDINGS: usize = 64;

/// The bytes of an image by their kinds.
#[derive(Debug, Default)]
pub(crate) struct Divided {
    pub(crate) kinds: ByKind,
    /// The functions, if they are asked for, each with its part of `kinds`.
    pub(crate) functions: Vec<Function>,
    /// Bytes that several sections share.
    pub(crate) shared: u64,
}

/// A kernel, or another function with sections or symbols of its own.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) kinds: ByKind,
    /// A hash of its machine code and data; `None` if it has none, or if relocations change them.
    pub(crate) hash: Option<u128>,
}

/// Divides an image of this format. `size` counts bytes that tools leave off its end, too.
pub(crate) fn divide(image: &[u8], size: u64, format: FileFormat, with_functions: bool) -> Divided {
    let of_one = |kind| Divided { kinds: ByKind::of(kind, size), ..Divided::default() };
    let divided = match (format, FileKind::parse(image)) {
        (FileFormat::Elf { .. } | FileFormat::Cubin, Ok(FileKind::Elf32)) => {
            of_elf::<elf::FileHeader32<Endianness>>(image, size, with_functions)
        }
        (FileFormat::Elf { .. } | FileFormat::Cubin, Ok(FileKind::Elf64)) => {
            of_elf::<elf::FileHeader64<Endianness>>(image, size, with_functions)
        }
        (FileFormat::Ptx, _) => return of_one(Kind::Ptx),
        (FileFormat::LtoIr, _) => return of_one(Kind::LtoIr),
        (FileFormat::SpirV, _) => return of_one(Kind::SpirV),
        (FileFormat::Bitcode, _) => return of_one(Kind::Bitcode),
        (
            FileFormat::IntelBinary
            | FileFormat::DirectX
            | FileFormat::MetalLibrary
            | FileFormat::Mlir
            | FileFormat::Archive,
            _,
        ) => return of_one(Kind::Opaque),
        _ => return of_one(Kind::NotUnderstood),
    };
    divided.unwrap_or_else(|_| of_one(Kind::NotUnderstood))
}

/// The owner of bytes.
#[derive(Clone, Copy, Debug)]
struct Owner {
    kind: Kind,
    function: Option<usize>,
    /// `true` if relocations change them.
    is_relocated: bool,
}

/// A section with bytes in the file.
struct Section<'a> {
    name: &'a [u8],
    range: Range<u64>,
    address: u64,
    owner: Owner,
    /// The section that it describes.
    info: Option<usize>,
}

fn of_elf<Elf: FileHeader<Endian = Endianness>>(
    image: &[u8],
    size: u64,
    with_functions: bool,
) -> object::read::Result<Divided> {
    let header = Elf::parse(image)?;
    let endian = header.endian()?;
    let table = header.sections(endian, image)?;
    let segments = header.program_headers(endian, image)?.len() as u64;
    let is_cuda = header.e_machine(endian) == elf::EM_CUDA;
    let whole = Owner { kind: Kind::Headers, function: None, is_relocated: false };
    let mut claims = vec![Claim::new(0..size, 0, whole)];
    let tables = [
        (0, u64::from(header.e_ehsize(endian))),
        (header.e_phoff(endian).into(), segments * u64::from(header.e_phentsize(endian))),
        (header.e_shoff(endian).into(), table.len() as u64 * u64::from(header.e_shentsize(endian))),
    ];
    claims.extend(tables.map(|(start, len)| Claim::new(sized(start, len), 1, whole)));

    // Names of a hostile file are one long text, each from another place on.
    let mut names = Budget::new(4 * image.len() as u64 + (1 << 16));
    let mut sections = Vec::with_capacity(table.len());
    for section in table.iter() {
        let name = counted(&mut names, || table.section_name(endian, section).ok());
        let flags = section.sh_flags(endian);
        let has_bytes =
            section.sh_type(endian) != elf::SHT_NULL && !(is_cuda && is_memory_only(name));
        let range = section
            .file_range(endian)
            .filter(|_| has_bytes)
            .map_or(0..0, |(start, len)| sized(start, len));
        let kind = kind_of(name, section.sh_type(endian), flags);
        let describes = flags.0 & elf::SHF_INFO_LINK.0 != 0
            || matches!(section.sh_type(endian), elf::SHT_REL | elf::SHT_RELA);
        let info = usize::try_from(section.sh_info(endian)).ok().filter(|at| describes && *at > 0);
        let address = section.sh_addr(endian).into();
        let owner = Owner { kind, ..whole };
        sections.push(Section { name, range, address, owner, info });
    }
    let mut functions = Functions::default();
    if with_functions {
        for (header, at) in table.iter().zip(0..) {
            const RELOCATIONS: [elf::SectionType; 3] = [elf::SHT_REL, elf::SHT_RELA, elf::SHT_CREL];
            let is_empty = sections.get(at).is_none_or(|section| section.range.is_empty());
            if is_empty || !RELOCATIONS.contains(&header.sh_type(endian)) {
                continue;
            }
            let changed = usize::try_from(header.sh_info(endian)).ok().filter(|at| *at > 0);
            if let Some(changed) = changed.and_then(|at| sections.get_mut(at)) {
                changed.owner.is_relocated = true;
            }
        }
        functions.find(&table, endian, image, &mut names);
        functions.own(&mut sections);
    }
    for section in &sections {
        claims.push(Claim::new(section.range.clone(), 1, section.owner));
    }
    if !functions.names.is_empty() {
        let is_relocatable = header.e_type(endian) == elf::ET_REL;
        let names_at = header.shstrndx(endian, image)?;
        let strings = sections.get(usize::try_from(names_at).unwrap_or(0));
        if let Some(strings) = strings {
            for (header, section) in table.iter().zip(&sections) {
                let start = u64::from(header.sh_name(endian));
                let owner = section.owner.function;
                claims.extend(part(strings, start, section.name.len() as u64 + 1, owner));
            }
        }
        functions.symbols(&table, endian, image, (&sections, is_relocatable), &mut claims);
    }

    let mut divided = Divided::default();
    let mut all = vec![ByKind::default(); functions.names.len()];
    let mut pieces = Vec::new();
    divided.shared = resolve(size, &claims, 1, |claim, range| {
        let Some(Claim { label: owner, .. }) = claims.get(claim) else { return };
        let len = range.end - range.start;
        divided.kinds.add(owner.kind, len);
        let Some(function) = owner.function else { return };
        let Some(kinds) = all.get_mut(function) else { return };
        kinds.add(owner.kind, len);
        if matches!(owner.kind, Kind::Code | Kind::Data) {
            pieces.push((function, *owner, range));
        }
    });
    // Pieces of one function stay in file order.
    pieces.sort_by_key(|(function, ..)| *function);
    let mut hashes = vec![None; functions.names.len()];
    for pieces in pieces.chunk_by(|(one, ..), (other, ..)| one == other) {
        let at = pieces.first().and_then(|(function, ..)| hashes.get_mut(*function));
        at.into_iter().for_each(|at| *at = hash(image, pieces));
    }
    let named = functions.names.into_iter().zip(all).zip(hashes);
    divided.functions = named
        .map(|((name, kinds), hash)| Function {
            name: String::from_utf8_lossy(name).into_owned(),
            kinds,
            hash,
        })
        .filter(|function| function.kinds != ByKind::default())
        .collect();
    Ok(divided)
}

/// Returns the hash of a function's machine code and data: of the kind, the length and the bytes of each run of them. `None` if
/// relocations change one: bytes that are equal in the file may not be so when they are loaded.
fn hash(image: &[u8], pieces: &[(usize, Owner, Range<u64>)]) -> Option<u128> {
    let mut hasher = XxHash3_128::new();
    let runs = pieces.chunk_by(|(_, one, before), (_, other, after)| {
        one.kind == other.kind && before.end == after.start
    });
    for run in runs {
        let ((_, owner, first), (.., last)) = (run.first()?, run.last()?);
        if run.iter().any(|(_, owner, _)| owner.is_relocated) {
            return None;
        }
        let len = last.end - first.start;
        hasher.write(&[owner.kind as u8]);
        hasher.write(&len.to_le_bytes());
        hasher.write(image.read_bytes_at(first.start, len).ok()?);
    }
    Some(hasher.finish_128())
}

/// Reads a name, unless more bytes of names were read than a sound file has.
fn counted<'a>(left: &mut Budget, name: impl FnOnce() -> Option<&'a [u8]>) -> &'a [u8] {
    let name = if left.left() > 0 { name().unwrap_or(b"") } else { b"" };
    // The last name may be longer than what is left.
    left.spend(name.len() as u64);
    name
}

/// Returns a claim to bytes of a section for a function.
fn part(section: &Section<'_>, at: u64, len: u64, function: Option<usize>) -> Option<Claim<Owner>> {
    let start = section.range.start.checked_add(at)?;
    let end = start.checked_add(len)?.min(section.range.end);
    let owner = Owner { function, ..section.owner };
    (start < end).then(|| Claim::new(start..end, 2, owner))
}

/// The functions of an image.
#[derive(Default)]
struct Functions<'a> {
    names: Vec<&'a [u8]>,
    by_name: HashMap<&'a [u8], usize>,
}

impl<'a> Functions<'a> {
    /// Finds functions by the symbols of the table for linkers, or else of the table for loaders.
    fn find<Elf: FileHeader<Endian = Endianness>>(
        &mut self,
        table: &SectionTable<'a, Elf>,
        endian: Endianness,
        image: &'a [u8],
        names: &mut Budget,
    ) {
        for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
            let Ok(symbols) = table.symbols(endian, image, kind) else { continue };
            for symbol in symbols.iter().filter(|symbol| symbol.st_type() == elf::STT_FUNC) {
                let name = counted(names, || symbols.symbol_name(endian, symbol).ok());
                if name.is_empty() || self.names.len() >= MOST_FUNCTIONS {
                    continue;
                }
                let next = self.names.len();
                if *self.by_name.entry(name).or_insert(next) == next {
                    self.names.push(name);
                }
            }
            if !self.names.is_empty() {
                return;
            }
        }
    }

    /// Gives each section to the function whose name its name ends with, or to the function of the section that it describes.
    fn own(&self, sections: &mut [Section<'_>]) {
        for section in sections.iter_mut() {
            let dots = section.name.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'.');
            let mut endings =
                dots.take(MOST_ENDINGS).filter_map(|(at, _)| section.name.get(at + 1..));
            section.owner.function = endings.find_map(|name| self.by_name.get(name).copied());
        }
        let owners: Vec<_> = sections.iter().map(|section| section.owner.function).collect();
        for section in sections {
            let described = section.info.and_then(|at| *owners.get(at)?);
            section.owner.function = section.owner.function.or(described);
        }
    }

    /// Claims symbols, their names and their bytes for functions.
    fn symbols<Elf: FileHeader<Endian = Endianness>>(
        &self,
        table: &SectionTable<'a, Elf>,
        endian: Endianness,
        image: &'a [u8],
        (sections, is_relocatable): (&[Section<'a>], bool),
        claims: &mut Vec<Claim<Owner>>,
    ) {
        let entry = size_of::<Elf::Sym>() as u64;
        // Tables of a hostile file share bytes, as names do.
        let len = image.len() as u64;
        let (mut symbols_left, mut names_left) = (len / entry, Budget::new(4 * len + (1 << 16)));
        for (header, own) in table.iter().zip(sections) {
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
            let Ok(symbols) = image.read_slice_at::<Elf::Sym>(own.range.start, count) else {
                continue;
            };
            let strings = usize::try_from(header.sh_link(endian)).unwrap_or(0);
            let Some(strings) = sections.get(strings) else { continue };
            let len = strings.range.end - strings.range.start;
            let texts = image.read_bytes_at(strings.range.start, len).unwrap_or_default();
            for (at, symbol) in symbols.iter().enumerate().skip(1) {
                let section = usize::from(symbol.st_shndx(endian).0);
                let section = sections.get(section).filter(|_| section > 0);
                let of_name = usize::try_from(symbol.st_name(endian)).unwrap_or(0);
                let name = counted(&mut names_left, || {
                    texts.get(of_name..)?.split(|byte| *byte == 0).next()
                });
                let by_name = || {
                    let code = name.strip_suffix(b".kd").unwrap_or(name);
                    self.by_name.get(code).copied()
                };
                let owned = section.and_then(|section| section.owner.function);
                let owner = owned.or_else(by_name);
                claims.extend(part(own, at as u64 * entry, entry, owner));
                if of_name > 0 {
                    claims.extend(part(strings, of_name as u64, name.len() as u64 + 1, owner));
                }
                let value: u64 = symbol.st_value(endian).into();
                if let (Some(section), None, Some(_)) = (section, owned, owner) {
                    let base = if is_relocatable { 0 } else { section.address };
                    let within = value.checked_sub(base);
                    let bytes = symbol.st_size(endian).into();
                    claims.extend(within.and_then(|within| part(section, within, bytes, owner)));
                }
            }
        }
    }
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
