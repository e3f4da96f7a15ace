//! The relocations that a loader applies: System V ABI, "Relocation" and "Dynamic Section", with the forms RELA, REL
//! and RELR (generic ABI, "Relative Relocation Table").

use std::ops::Range;

use byte_parts::Source;
use zerocopy::{FromBytes, Immutable, KnownLayout, LittleEndian, Unaligned};

use super::file::{File, SHF_ALLOC};
use crate::error::Error;
pub(super) use crate::scan::Machine;
use crate::wire::{ElfDynamic64, ElfRel64, ElfRela64};

pub(super) type Rela = ElfRela64<LittleEndian>;
pub(super) type Rel = ElfRel64<LittleEndian>;
type Dynamic = ElfDynamic64<LittleEndian>;
type Word = zerocopy::little_endian::U64;

const PT_DYNAMIC: u32 = 2;

const SHT_RELA: u32 = 4;
const SHT_REL: u32 = 9;
pub(super) const SHT_DYNSYM: u32 = 11;
const SHT_RELR: u32 = 19;
/// LLVM's `ELF.h`: tables that are not decoded here.
const SHT_CREL: u32 = 0x4000_0014;
const SHT_ANDROID_REL: u32 = 0x6000_0001;
const SHT_ANDROID_RELA: u32 = 0x6000_0002;
/// The same form as RELR, from before it was standard.
const SHT_ANDROID_RELR: u32 = 0x6fff_ff00;

const DT_NULL: u64 = 0;
const DT_PLTRELSZ: u64 = 2;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_REL: u64 = 17;
const DT_RELSZ: u64 = 18;
const DT_PLTREL: u64 = 20;
const DT_JMPREL: u64 = 23;
const DT_RELRSZ: u64 = 35;
const DT_RELR: u64 = 36;
const DT_ANDROID_REL: u64 = 0x6000_000f;
const DT_ANDROID_RELA: u64 = 0x6000_0011;
const DT_ANDROID_RELR: u64 = 0x6fff_e000;
const DT_ANDROID_RELRSZ: u64 = 0x6fff_e001;

/// Bytes read at once, in round numbers of all entries.
const BLOCK: u64 = 24 * 2048;

impl Machine {
    pub(super) fn of(file: &File) -> Result<Self, Error> {
        match file.header.machine.get() {
            62 => Ok(Machine::X86_64),
            183 => Ok(Machine::Aarch64),
            _ => Err(Error::UnsupportedElf { what: "machine" }),
        }
    }

    /// The relocation that adds the load address.
    pub(super) fn relative(self) -> u32 {
        match self {
            Machine::X86_64 => 8,
            Machine::Aarch64 => 1027,
        }
    }

    /// The one that stores the address of a symbol.
    pub(super) fn absolute(self) -> u32 {
        match self {
            Machine::X86_64 => 1,
            Machine::Aarch64 => 257,
        }
    }
}

/// Lower half of `r_info`.
pub(super) fn kind(info: u64) -> u32 {
    u32::try_from(info & 0xffff_ffff).unwrap_or_default()
}

/// Where the tables lie in the ELF file: those that the dynamic section names and those in allocated sections, as a
/// static program, which has no dynamic section, finds its own. In order, and each byte once.
#[derive(Default)]
pub(super) struct Relocations {
    rela: Vec<Range<u64>>,
    rel: Vec<Range<u64>>,
    relr: Vec<Range<u64>>,
    /// The address of a table of another form.
    pub(super) other: Option<u64>,
    /// The symbols that relocations name.
    pub(super) symbols: Option<Range<u64>>,
}

impl Relocations {
    pub(super) fn read(source: &mut Source<'_>, file: &File) -> Result<Self, Error> {
        let mut all = Relocations::default();
        all.by_tags(source, file)?;
        let allocated = |kinds: &'static [u32]| {
            let sections = file.sections.iter();
            sections.filter(move |section| {
                section.flags.get() & SHF_ALLOC != 0 && kinds.contains(&section.kind.get())
            })
        };
        let range = |section: &super::file::SectionHeader| {
            let start = section.offset.get();
            start..start.saturating_add(section.size.get())
        };
        all.rela.extend(allocated(&[SHT_RELA]).map(range));
        all.rel.extend(allocated(&[SHT_REL]).map(range));
        all.relr.extend(allocated(&[SHT_RELR, SHT_ANDROID_RELR]).map(range));
        let other = allocated(&[SHT_CREL, SHT_ANDROID_REL, SHT_ANDROID_RELA]).next();
        all.other = all.other.or(other.map(|section| section.addr.get()));
        let at = all.symbols.take().map(|symbols| symbols.start);
        all.symbols =
            allocated(&[SHT_DYNSYM]).map(range).find(|table| at.is_none_or(|at| at == table.start));
        for (tables, entry) in [
            (&mut all.rela, size_of::<Rela>()),
            (&mut all.rel, size_of::<Rel>()),
            (&mut all.relr, 8),
        ] {
            join(tables, entry as u64)?;
        }
        let tables = all.rela.iter().chain(&all.rel).chain(&all.relr).chain(&all.symbols);
        let available = file.window.end - file.window.start;
        if let Some(table) = tables.into_iter().find(|table| table.end > available) {
            let (start, end) = (table.start, table.end);
            return Err(Error::BeyondEnd { what: "a relocation table", start, end, available });
        }
        Ok(all)
    }

    /// Takes in what the dynamic section names. Of the symbols only the start is known.
    fn by_tags(&mut self, source: &mut Source<'_>, file: &File) -> Result<(), Error> {
        let Some(dynamic) = file.segments.iter().find(|segment| segment.kind.get() == PT_DYNAMIC)
        else {
            return Ok(());
        };
        let range = dynamic.offset.get()..dynamic.offset.get().saturating_add(dynamic.filesz.get());
        let available = file.window.end - file.window.start;
        if range.end > available {
            return Err(Error::BeyondEnd {
                what: "the dynamic section",
                start: range.start,
                end: range.end,
                available,
            });
        }
        let mut tags = std::collections::BTreeMap::new();
        let mut ended = false;
        entries(source, file, &range, &mut |_, _, entry: &Dynamic| {
            ended |= entry.tag.get() == DT_NULL;
            if !ended {
                tags.insert(entry.tag.get(), entry.value.get());
            }
            Ok(())
        })?;
        let table = |at: u64, size: u64| {
            let (Some(&at), Some(&size)) = (tags.get(&at), tags.get(&size)) else {
                return Ok(None);
            };
            if size == 0 {
                return Ok(None);
            }
            let what = "a relocation table of the dynamic section lies outside the file";
            let outside = Error::InconsistentSegments { what };
            let ends = (file.offset_of(at), file.offset_of(at.saturating_add(size - 1)));
            match ends {
                (Some(start), Some(last)) if last.checked_sub(start) == Some(size - 1) => {
                    Ok(Some(start..last.saturating_add(1)))
                }
                _ => Err(outside),
            }
        };
        self.rela.extend(table(DT_RELA, DT_RELASZ)?);
        self.rel.extend(table(DT_REL, DT_RELSZ)?);
        self.relr.extend(table(DT_RELR, DT_RELRSZ)?);
        self.relr.extend(table(DT_ANDROID_RELR, DT_ANDROID_RELRSZ)?);
        let plt = match tags.get(&DT_PLTREL) {
            Some(&DT_REL) => &mut self.rel,
            _ => &mut self.rela,
        };
        plt.extend(table(DT_JMPREL, DT_PLTRELSZ)?);
        self.other =
            [DT_ANDROID_REL, DT_ANDROID_RELA].iter().find_map(|tag| tags.get(tag).copied());
        let symbols = tags.get(&DT_SYMTAB).and_then(|&at| file.offset_of(at));
        self.symbols = symbols.map(|start| start..start);
        Ok(())
    }

    /// Every entry of the RELA tables, with its offset in the ELF file.
    pub(super) fn rela(
        &self,
        source: &mut Source<'_>,
        file: &File,
        visit: &mut dyn FnMut(&mut Source<'_>, u64, &Rela) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.rela.iter().try_for_each(|table| entries(source, file, table, visit))
    }

    /// Every entry of the REL tables.
    pub(super) fn rel(
        &self,
        source: &mut Source<'_>,
        file: &File,
        visit: &mut dyn FnMut(&mut Source<'_>, u64, &Rel) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.rel.iter().try_for_each(|table| entries(source, file, table, visit))
    }

    /// The address of every word that a RELR table names.
    pub(super) fn relr(
        &self,
        source: &mut Source<'_>,
        file: &File,
        visit: &mut dyn FnMut(&mut Source<'_>, u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for table in &self.relr {
            // The word that the first bit of a bitmap stands for.
            let mut next = 0_u64;
            entries(source, file, table, &mut |source, _, entry: &Word| {
                let entry = entry.get();
                if entry & 1 == 0 {
                    next = entry.wrapping_add(8);
                    return visit(source, entry);
                }
                let mut bits = entry >> 1;
                while bits != 0 {
                    visit(source, next.wrapping_add(u64::from(bits.trailing_zeros()) * 8))?;
                    bits &= bits - 1;
                }
                next = next.wrapping_add(63 * 8);
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Sorts tables of entries of this size, and cuts what another covers.
fn join(tables: &mut Vec<Range<u64>>, entry: u64) -> Result<(), Error> {
    tables.sort_by_key(|table| (table.start, table.end));
    let mut apart: Vec<Range<u64>> = Vec::new();
    for table in tables.drain(..) {
        match apart.last_mut() {
            Some(last) if table.start < last.end => {
                if !(table.start - last.start).is_multiple_of(entry) {
                    let what = "relocation tables overlap";
                    return Err(Error::InconsistentSegments { what });
                }
                last.end = last.end.max(table.end);
            }
            _ => apart.push(table),
        }
    }
    *tables = apart;
    Ok(())
}

/// Every whole entry of a table in `range` of the ELF file, with its offset there. The table is read in blocks.
pub(super) fn entries<T: FromBytes + Immutable + KnownLayout + Unaligned>(
    source: &mut Source<'_>,
    file: &File,
    range: &Range<u64>,
    visit: &mut dyn FnMut(&mut Source<'_>, u64, &T) -> Result<(), Error>,
) -> Result<(), Error> {
    let size = size_of::<T>() as u64;
    let mut at = range.start;
    while at < range.end {
        let end = range.end.min(at.saturating_add(BLOCK));
        let start = file.window.start.saturating_add(at);
        let block = source.read_range(&(start..start.saturating_add(end - at)))?;
        for (entry, n) in block.chunks_exact(size_of::<T>()).zip(0_u64..) {
            if let Ok(entry) = T::ref_from_bytes(entry) {
                visit(source, at.saturating_add(n.saturating_mul(size)), entry)?;
            }
        }
        at = end;
    }
    Ok(())
}
