//! References to the contents of a section of an ELF object: symbols and relocations.

use std::collections::BTreeMap;

use byte_parts::{Source, Window};
use object::elf::{
    EM_386, EM_AARCH64, EM_ARM, EM_LOONGARCH, EM_PPC64, EM_RISCV, EM_S390, EM_X86_64, Machine,
    R_386_32, R_390_32, R_390_64, R_AARCH64_ABS32, R_AARCH64_ABS64, R_ARM_ABS32, R_LARCH_32,
    R_LARCH_64, R_PPC64_ADDR32, R_PPC64_ADDR64, R_RISCV_32, R_RISCV_64, R_X86_64_32, R_X86_64_32S,
    R_X86_64_64, RelocationType, SHN_XINDEX, SHT_CREL, SHT_REL, SHT_RELA, SHT_SYMTAB,
    SHT_SYMTAB_SHNDX, STT_SECTION,
};
use object::pod::bytes_of;
use object::read::elf::Sym;
use object::{Endian, U32};

use crate::error::Error;
use crate::linked::moves::{Addend, Changed, Reference};
use crate::objects::elf_class::{ElfHeader, ElfSection};
use crate::objects::elf_object::{Object, decode};
use crate::patches::Patches;
use crate::pod::first;
use crate::tables::{for_each, sized};

/// A symbol in a section whose contents change.
struct Target<'c> {
    changed: &'c Changed,
    value: u64,
    of_section: bool,
}

/// Symbols by their number.
type Targets<'c> = BTreeMap<u64, Target<'c>>;

/// Changes symbols and relocations so that they keep their targets.
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
            return Err(Error::unsupported_kind("sections of device code with relocations"));
        }
        if section.kind != SHT_SYMTAB {
            continue;
        }
        let users = u32::try_from(index).ok().and_then(|index| users.get(&index));
        let users = users.map_or(&[][..], Vec::as_slice);
        let extension = users.iter().find(|user| user.kind == SHT_SYMTAB_SHNDX);
        let extension = extension.map(|extension| Window::new(&object.place(extension)));
        let targets = symbols(source, object, section, extension, changed, patches)?;
        if targets.is_empty() {
            continue;
        }
        for user in users {
            if user.kind == SHT_CREL && !stay {
                return Err(Error::unsupported_kind(
                    "objects with compact relocations, where bundles move,",
                ));
            }
            relocations(source, object, user, &targets, patches)?;
        }
    }
    Ok(())
}

/// Changes values and sizes of symbols of the table `section`, and finds symbols that relocations may use. `extension`:
/// where the numbers of sections are that have no room in symbols.
fn symbols<'c, H: ElfHeader>(
    source: &mut Source<'_>,
    object: &Object<H>,
    section: &ElfSection,
    extension: Option<Window>,
    changed: &'c BTreeMap<usize, Changed>,
    patches: &mut Patches,
) -> Result<Targets<'c>, Error> {
    let mut targets = Targets::new();
    let (e, entry_len) = (H::order(), size_of::<H::Sym>() as u64);
    for_each(source, &object.place(section), entry_len, |source, number, at, entry| {
        let Some(mut symbol) = first::<H::Sym>(entry) else { return Ok(()) };
        let shndx = symbol.st_shndx(e);
        let mut index = u32::from(shndx.0);
        if shndx == SHN_XINDEX
            && let Some(word) = extension.and_then(|words| words.sized(number * 4, 4))
        {
            let word = source.read_range(&word)?;
            index = first::<U32<H::Endian>>(&word).map_or(index, |word| word.get(e));
        }
        let index = usize::try_from(index).ok();
        let Some(changed) = index.and_then(|index| changed.get(&index)) else { return Ok(()) };
        let of_section = symbol.st_type() == STT_SECTION;
        let (value, size) = (symbol.st_value(e).into(), symbol.st_size(e).into());
        targets.insert(number, Target { changed, value, of_section });
        let moves = &changed.moves;
        let new =
            if of_section { (value, size) } else { (moves.value(value), moves.size(value, size)) };
        if new != (value, size) {
            H::set_place(&mut symbol, new.0, new.1)
                .ok_or_else(|| Error::too_large("ELF", new.0.max(new.1), H::LIMIT))?;
            patches.put(at, bytes_of(&symbol));
        }
        Ok(())
    })?;
    Ok(targets)
}

/// Changes the addends of relocations.
fn relocations<H: ElfHeader>(
    source: &mut Source<'_>,
    object: &Object<H>,
    section: &ElfSection,
    targets: &Targets<'_>,
    patches: &mut Patches,
) -> Result<(), Error> {
    let machine = object.header.e_machine(H::order());
    let word = if H::is_type_64_sized() { 8 } else { 4 };
    let (entry_len, explicit) = match section.kind {
        SHT_RELA => (word * 3, true),
        SHT_REL => (word * 2, false),
        _ => return Ok(()),
    };
    let too_large = |value: i64| Error::too_large("ELF", value.unsigned_abs(), H::LIMIT);
    for_each(source, &object.place(section), entry_len, |source, index, at, entry| {
        let Some((place, symbol, kind)) = decode::<H>(entry, machine) else { return Ok(()) };
        let Some(target) = targets.get(&symbol) else { return Ok(()) };
        let width = absolute_width(machine, kind);
        // Where the addend stands, and how long it is.
        let stored = match (explicit, width) {
            (true, _) => Some((at + word * 2, word)),
            (false, None) => None,
            (false, Some(width)) => {
                let section = section.info.into();
                let start = applied_to(object, section, place, width);
                let start = start.ok_or_else(|| Error::relocation_place(section, index, place))?;
                Some((start, width))
            }
        };
        let old = match stored {
            Some((start, len)) => signed::<H>(&source.read_range(&sized(start, len))?),
            None => 0,
        };
        let addend = match (stored, width) {
            (Some(_), Some(_)) => Addend::Known(old),
            (Some(_), None) => Addend::About(old),
            (None, _) => Addend::Unknown,
        };
        let reference = Reference { symbol: target.value, of_section: target.of_section, addend };
        let new = target.changed.moves.addend(reference).map_err(|lost| lost.at(at, kind.0))?;
        if let (Some(new), Some((start, len))) = (new, stored) {
            match (len, i32::try_from(new)) {
                (8, _) => patches.put(start, &H::order().write_i64(new)),
                // The linker decides about addresses of 32 bits.
                (_, Ok(new)) => patches.put(start, &H::order().write_i32(new)),
                (_, Err(_)) => return Err(too_large(new)),
            }
        }
        Ok(())
    })
}

/// Returns an addend of 4 or 8 bytes.
fn signed<H: ElfHeader>(bytes: &[u8]) -> i64 {
    match (bytes.first_chunk(), bytes.first_chunk()) {
        (Some(bytes), _) => H::order().read_i64(*bytes),
        (None, Some(bytes)) => H::order().read_i32(*bytes).into(),
        (None, None) => 0,
    }
}

/// Returns the place in the walked file to which a relocation of this section applies, if it has this many bytes.
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

/// Returns the number of bytes that a relocation of this type writes, if it writes symbol plus addend. From the
/// supplements of the System V ABI for the processors.
fn absolute_width(machine: Machine, kind: RelocationType) -> Option<u64> {
    match (machine, kind) {
        (EM_X86_64, R_X86_64_64)
        | (EM_AARCH64, R_AARCH64_ABS64)
        | (EM_PPC64, R_PPC64_ADDR64)
        | (EM_S390, R_390_64)
        | (EM_RISCV, R_RISCV_64)
        | (EM_LOONGARCH, R_LARCH_64) => Some(8),
        (EM_X86_64, R_X86_64_32 | R_X86_64_32S)
        | (EM_AARCH64, R_AARCH64_ABS32)
        | (EM_PPC64, R_PPC64_ADDR32)
        | (EM_S390, R_390_32)
        | (EM_RISCV, R_RISCV_32)
        | (EM_LOONGARCH, R_LARCH_32)
        | (EM_386, R_386_32)
        | (EM_ARM, R_ARM_ABS32) => Some(4),
        _ => None,
    }
}
