//! What refers to the contents of a section of an ELF object: symbols and relocations.

use std::collections::BTreeMap;
use std::ops::Range;

use byte_parts::Source;
use zerocopy::byteorder::{U32, U64};
use zerocopy::{FromBytes, IntoBytes};

use super::file::{Object, SHN_XINDEX, SHT_CREL, SHT_REL, SHT_RELA, SHT_SYMTAB, SHT_SYMTAB_SHNDX};
use crate::embed::EmbedError;
use crate::error::Error;
use crate::moves::{Addend, Changed, Reference};
use crate::relayout::Patches;
use crate::tables::for_each;
use crate::wire::{ElfHeader, ElfSection, ElfSymbol};

const EM_386: u16 = 3;
const EM_MIPS: u16 = 8;
const EM_PPC64: u16 = 21;
const EM_S390: u16 = 22;
const EM_ARM: u16 = 40;
const EM_X86_64: u16 = 62;
const EM_AARCH64: u16 = 183;
const EM_RISCV: u16 = 243;
const EM_LOONGARCH: u16 = 258;

const STT_SECTION: u8 = 3;

/// A symbol in a section whose contents change.
struct Target<'c> {
    changed: &'c Changed,
    value: u64,
    of_section: bool,
}

/// Symbols by their number.
type Targets<'c> = BTreeMap<u64, Target<'c>>;

/// Changes symbols and relocations so that they are about what they were about.
pub(super) fn follow<H: ElfHeader>(
    source: &mut Source<'_>,
    object: &Object<H>,
    changed: &BTreeMap<usize, Changed>,
    patches: &mut Patches,
) -> Result<(), Error> {
    let stay = changed.values().all(|changed| changed.moves.stay());
    // Sections by the one that they link to.
    let mut users: BTreeMap<u32, Vec<&ElfSection>> = BTreeMap::new();
    for user in &object.sections {
        if [SHT_REL, SHT_RELA, SHT_CREL, SHT_SYMTAB_SHNDX].contains(&user.kind) {
            users.entry(user.link).or_default().push(user);
        }
    }
    for (index, section) in object.sections.iter().enumerate() {
        let of_changed =
            || usize::try_from(section.info).is_ok_and(|info| changed.contains_key(&info));
        if [SHT_REL, SHT_RELA, SHT_CREL].contains(&section.kind) && of_changed() && section.size > 0
        {
            return Err(Error::Unsupported { kind: "sections of device code with relocations" });
        }
        if section.kind != SHT_SYMTAB {
            continue;
        }
        let users = u32::try_from(index).ok().and_then(|index| users.get(&index));
        let users = users.map_or(&[][..], Vec::as_slice);
        let extension = users.iter().find(|user| user.kind == SHT_SYMTAB_SHNDX);
        let extension = extension.map(|extension| object.place(extension));
        let targets = symbols(source, object, section, extension.as_ref(), changed, patches)?;
        if targets.is_empty() {
            continue;
        }
        for user in users {
            if user.kind == SHT_CREL && !stay {
                return Err(Error::Unsupported {
                    kind: "objects with compact relocations, where bundles move,",
                });
            }
            relocations(source, object, user, &targets, patches)?;
        }
    }
    Ok(())
}

/// Changes values and sizes of symbols of the table `section`, and finds those that relocations may use. `extension`:
/// where the numbers of sections are that have no room in symbols.
fn symbols<'c, H: ElfHeader>(
    source: &mut Source<'_>,
    object: &Object<H>,
    section: &ElfSection,
    extension: Option<&Range<u64>>,
    changed: &'c BTreeMap<usize, Changed>,
    patches: &mut Patches,
) -> Result<Targets<'c>, Error> {
    let mut targets = Targets::new();
    let entry_len = size_of::<H::Symbol>() as u64;
    for_each(source, &object.place(section), entry_len, |source, number, at, entry| {
        let Ok(mut symbol) = H::Symbol::read_from_bytes(entry) else { return Ok(()) };
        let mut index = u32::from(symbol.section());
        if symbol.section() == SHN_XINDEX
            && let Some(extension) = extension
        {
            let word = extension.start.saturating_add(number.saturating_mul(4));
            if word.saturating_add(4) <= extension.end {
                let word = word..word + 4;
                index = U32::<H::Order>::read_from_bytes(&source.read_range(&word)?)
                    .map_or(index, U32::get);
            }
        }
        let index = usize::try_from(index).ok();
        let Some(changed) = index.and_then(|index| changed.get(&index)) else { return Ok(()) };
        let of_section = symbol.info() & 0xf == STT_SECTION;
        let (value, size) = (symbol.value(), symbol.size());
        targets.insert(number, Target { changed, value, of_section });
        let moves = &changed.moves;
        let new =
            if of_section { (value, size) } else { (moves.value(value), moves.size(value, size)) };
        if new != (value, size) {
            symbol.set_place(new.0, new.1).ok_or(EmbedError::TooLarge {
                format: "ELF",
                value: new.0.max(new.1),
                limit: H::LIMIT,
            })?;
            patches.put(at, symbol.as_bytes());
        }
        Ok(())
    })?;
    Ok(targets)
}

/// Changes what is added to symbols.
fn relocations<H: ElfHeader>(
    source: &mut Source<'_>,
    object: &Object<H>,
    section: &ElfSection,
    targets: &Targets<'_>,
    patches: &mut Patches,
) -> Result<(), Error> {
    let machine = object.header.fields().machine;
    let wide = is_wide::<H>();
    let word = if wide { 8 } else { 4 };
    let (entry_len, explicit) = match section.kind {
        SHT_RELA => (word * 3, true),
        SHT_REL => (word * 2, false),
        _ => return Ok(()),
    };
    let too_large = |value: i64| EmbedError::TooLarge {
        format: "ELF",
        value: value.unsigned_abs(),
        limit: H::LIMIT,
    };
    for_each(source, &object.place(section), entry_len, |source, index, at, entry| {
        let (place, symbol, kind) = decode::<H>(entry, machine);
        let Some(target) = targets.get(&symbol) else { return Ok(()) };
        let width = absolute_width(machine, kind);
        // Where the addend stands, and how long it is.
        let stored = match (explicit, width) {
            (true, _) => Some((at.saturating_add(word * 2), word)),
            (false, None) => None,
            (false, Some(width)) => {
                let section = section.info.into();
                let start = applied_to(object, section, place, width);
                let start = start.ok_or(Error::RelocationPlace { section, index, place })?;
                Some((start, width))
            }
        };
        let old = match stored {
            Some((start, len)) => {
                signed::<H>(&source.read_range(&(start..start.saturating_add(len)))?)
            }
            None => 0,
        };
        let addend = match (stored, width) {
            (Some(_), Some(_)) => Addend::Known(old),
            (Some(_), None) => Addend::About(old),
            (None, _) => Addend::Unknown,
        };
        let reference = Reference { symbol: target.value, of_section: target.of_section, addend };
        let new = target.changed.moves.addend(reference).map_err(|lost| lost.at(at, kind))?;
        if let (Some(new), Some((start, len))) = (new, stored) {
            let narrow = U32::<H::Order>::new(i32::try_from(new).unwrap_or(0).cast_unsigned());
            let full = U64::<H::Order>::new(new.cast_unsigned());
            match len {
                8 => patches.put(start, full.as_bytes()),
                // What an address of 32 bits can be is up to the linker.
                _ if i32::try_from(new).is_ok() => patches.put(start, narrow.as_bytes()),
                _ => return Err(too_large(new).into()),
            }
        }
        Ok(())
    })
}

fn is_wide<H: ElfHeader>() -> bool {
    size_of::<H::Section>() == 64
}

/// `r_offset`, and symbol and type in `r_info`.
pub(super) fn decode<H: ElfHeader>(entry: &[u8], machine: u16) -> (u64, u64, u32) {
    let word = |at: usize| {
        let bytes = entry.get(at..at.saturating_add(4)).unwrap_or_default();
        U32::<H::Order>::read_from_bytes(bytes).map_or(0, U32::get)
    };
    if !is_wide::<H>() {
        return (word(0).into(), (word(4) >> 8).into(), word(4) & 0xff);
    }
    let place =
        entry.first_chunk::<8>().map_or(0, |bytes| U64::<H::Order>::from_bytes(*bytes).get());
    let little = U32::<H::Order>::new(1).as_bytes() == [1, 0, 0, 0];
    // The upper half is the symbol. Little-endian 64-bit MIPS has it first.
    let (symbol, kind) = if little && machine != EM_MIPS { (12, 8) } else { (8, 12) };
    (place, word(symbol).into(), word(kind))
}

/// An addend of 4 or 8 bytes.
fn signed<H: ElfHeader>(bytes: &[u8]) -> i64 {
    match bytes.len() {
        8 => U64::<H::Order>::read_from_bytes(bytes).map_or(0, |word| word.get().cast_signed()),
        _ => U32::<H::Order>::read_from_bytes(bytes)
            .map_or(0, |word| word.get().cast_signed().into()),
    }
}

/// Where in the walked file a relocation of this section applies, if so many bytes are there.
fn applied_to<H: ElfHeader>(
    object: &Object<H>,
    section: u64,
    place: u64,
    width: u64,
) -> Option<u64> {
    let section = object.sections.get(usize::try_from(section).ok()?)?;
    let contents = object.place(section);
    let start = contents.start.checked_add(place)?;
    (start.checked_add(width)? <= contents.end).then_some(start)
}

/// How many bytes of a relocated place a relocation of this type writes, if it writes symbol plus addend. From the
/// supplements of the System V ABI for the processors.
fn absolute_width(machine: u16, kind: u32) -> Option<u64> {
    match (machine, kind) {
        // R_X86_64_64, R_AARCH64_ABS64, R_PPC64_ADDR64, R_390_64, R_RISCV_64, R_LARCH_64
        (EM_X86_64, 1)
        | (EM_AARCH64, 257)
        | (EM_PPC64, 38)
        | (EM_S390, 22)
        | (EM_RISCV | EM_LOONGARCH, 2) => Some(8),
        // R_X86_64_32, R_X86_64_32S, R_AARCH64_ABS32, R_PPC64_ADDR32, R_390_32, R_RISCV_32, R_LARCH_32, R_386_32,
        // R_ARM_ABS32
        (EM_X86_64, 10 | 11)
        | (EM_AARCH64, 258)
        | (EM_PPC64 | EM_RISCV | EM_LOONGARCH | EM_386, 1)
        | (EM_S390, 4)
        | (EM_ARM, 2) => Some(4),
        _ => None,
    }
}
