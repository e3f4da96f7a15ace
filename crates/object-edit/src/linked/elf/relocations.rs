//! The relocations that a loader applies: System V ABI, "Relocation" and "Dynamic Section", with the forms RELA, REL
//! and RELR (generic ABI, "Relative Relocation Table").

use std::ops::Range;

use byte_parts::Source;
use object::elf::{
    DT_ANDROID_REL, DT_ANDROID_RELA, DT_ANDROID_RELR, DT_ANDROID_RELRSZ, DT_JMPREL, DT_NULL,
    DT_PLTREL, DT_PLTRELSZ, DT_REL, DT_RELA, DT_RELASZ, DT_RELR, DT_RELRSZ, DT_RELSZ, DT_SYMTAB,
    Dyn64, DynamicTag, EM_AARCH64, EM_X86_64, PT_DYNAMIC, R_AARCH64_ABS64, R_AARCH64_COPY,
    R_AARCH64_RELATIVE, R_X86_64_64, R_X86_64_COPY, R_X86_64_RELATIVE, Rel64, Rela64,
    RelocationType, Relr64, SHF_ALLOC, SHT_ANDROID_REL, SHT_ANDROID_RELA, SHT_ANDROID_RELR,
    SHT_CREL, SHT_DYNSYM, SHT_REL, SHT_RELA, SHT_RELR, SectionType,
};
use object::{LittleEndian, Pod};

use super::file::{File, file_range, segment_file_range};
use crate::error::Error;
pub(super) use crate::linked::scan::Machine;
use crate::pod::{LE, first};
use crate::tables::{absolute, for_each, sized};

pub(super) type Rela = Rela64<LittleEndian>;
pub(super) type Rel = Rel64<LittleEndian>;
type Dynamic = Dyn64<LittleEndian>;
type Relr = Relr64<LittleEndian>;

impl Machine {
    pub(super) fn of(file: &File) -> Result<Self, Error> {
        match file.header.e_machine.get(LE) {
            EM_X86_64 => Ok(Machine::X86_64),
            EM_AARCH64 => Ok(Machine::Aarch64),
            _ => Err(Error::unsupported_elf("machine")),
        }
    }

    /// Returns the relocation that adds the load address.
    pub(super) fn relative(self) -> RelocationType {
        match self {
            Machine::X86_64 => R_X86_64_RELATIVE,
            Machine::Aarch64 => R_AARCH64_RELATIVE,
        }
    }

    /// Returns the relocation that copies the contents of a symbol.
    pub(super) fn copy(self) -> RelocationType {
        match self {
            Machine::X86_64 => R_X86_64_COPY,
            Machine::Aarch64 => R_AARCH64_COPY,
        }
    }

    /// Returns the one that stores the address of a symbol.
    pub(super) fn absolute(self) -> RelocationType {
        match self {
            Machine::X86_64 => R_X86_64_64,
            Machine::Aarch64 => R_AARCH64_ABS64,
        }
    }
}

/// The ranges of the tables in the ELF file: tables that the dynamic section names and tables in allocated sections,
/// where a static program, which has no dynamic section, finds its own. In order, and each byte once.
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
        let allocated = |kinds: &'static [SectionType]| {
            let sections = file.sections.iter();
            sections.filter(move |section| {
                section.sh_flags.get(LE).contains(SHF_ALLOC)
                    && kinds.contains(&section.sh_type.get(LE))
            })
        };
        all.rela.extend(allocated(&[SHT_RELA]).map(file_range));
        all.rel.extend(allocated(&[SHT_REL]).map(file_range));
        all.relr.extend(allocated(&[SHT_RELR, SHT_ANDROID_RELR]).map(file_range));
        let other = allocated(&[SHT_CREL, SHT_ANDROID_REL, SHT_ANDROID_RELA]).next();
        all.other = all.other.or(other.map(|section| section.sh_addr.get(LE)));
        let at = all.symbols.take().map(|symbols| symbols.start);
        all.symbols = allocated(&[SHT_DYNSYM])
            .map(file_range)
            .find(|table| at.is_none_or(|at| at == table.start));
        for (tables, entry) in [
            (&mut all.rela, size_of::<Rela>()),
            (&mut all.rel, size_of::<Rel>()),
            (&mut all.relr, 8),
        ] {
            join(tables, entry as u64)?;
        }
        let tables = all.rela.iter().chain(&all.rel).chain(&all.relr).chain(&all.symbols);
        tables.into_iter().try_for_each(|table| file.check("a relocation table", table))?;
        Ok(all)
    }

    /// Adds the tables that the dynamic section names. Only the start of the symbols is known.
    fn by_tags(&mut self, source: &mut Source<'_>, file: &File) -> Result<(), Error> {
        let Some(dynamic) =
            file.segments.iter().find(|segment| segment.p_type.get(LE) == PT_DYNAMIC)
        else {
            return Ok(());
        };
        let range = segment_file_range(dynamic);
        file.check("the dynamic section", &range)?;
        let mut tags = std::collections::BTreeMap::new();
        let mut ended = false;
        entries(source, file, &range, &mut |_, _, entry: &Dynamic| {
            ended |= entry.d_tag.get(LE) == DT_NULL;
            if !ended {
                tags.insert(entry.d_tag.get(LE), entry.d_val.get(LE));
            }
            Ok(())
        })?;
        let table = |at: DynamicTag, size: DynamicTag| {
            let (Some(&at), Some(&size)) = (tags.get(&at), tags.get(&size)) else {
                return Ok(None);
            };
            if size == 0 {
                return Ok(None);
            }
            let what = "a relocation table of the dynamic section lies outside the file";
            let outside = || Error::inconsistent_segments(what);
            let last = at.checked_add(size - 1);
            match (file.offset_of(at), last.and_then(|last| file.offset_of(last))) {
                (Some(start), Some(last)) if last.checked_sub(start) == Some(size - 1) => {
                    Ok(Some(sized(start, size)))
                }
                _ => Err(outside()),
            }
        };
        self.rela.extend(table(DT_RELA, DT_RELASZ)?);
        self.rel.extend(table(DT_REL, DT_RELSZ)?);
        self.relr.extend(table(DT_RELR, DT_RELRSZ)?);
        self.relr.extend(table(DT_ANDROID_RELR, DT_ANDROID_RELRSZ)?);
        let plt = match tags.get(&DT_PLTREL) {
            Some(&form) if form == DT_REL.0.cast_unsigned() => &mut self.rel,
            _ => &mut self.rela,
        };
        plt.extend(table(DT_JMPREL, DT_PLTRELSZ)?);
        self.other =
            [DT_ANDROID_REL, DT_ANDROID_RELA].iter().find_map(|tag| tags.get(tag).copied());
        let symbols = tags.get(&DT_SYMTAB).and_then(|&at| file.offset_of(at));
        self.symbols = symbols.map(|start| start..start);
        Ok(())
    }

    /// Visits every entry of the RELA tables, with its offset in the ELF file.
    pub(super) fn rela(
        &self,
        source: &mut Source<'_>,
        file: &File,
        visit: &mut dyn FnMut(&mut Source<'_>, u64, &Rela) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.rela.iter().try_for_each(|table| entries(source, file, table, visit))
    }

    /// Visits every entry of the REL tables.
    pub(super) fn rel(
        &self,
        source: &mut Source<'_>,
        file: &File,
        visit: &mut dyn FnMut(&mut Source<'_>, u64, &Rel) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.rel.iter().try_for_each(|table| entries(source, file, table, visit))
    }

    /// Visits the address of every word that a RELR table names.
    pub(super) fn relr(
        &self,
        source: &mut Source<'_>,
        file: &File,
        visit: &mut dyn FnMut(&mut Source<'_>, u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for table in &self.relr {
            // The word of the first bit of a bitmap.
            let mut next = 0_u64;
            entries(source, file, table, &mut |source, _, entry: &Relr| {
                let entry = entry.0.get(LE);
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

/// Sorts tables of entries of this size, and merges overlapping ones.
fn join(tables: &mut Vec<Range<u64>>, entry: u64) -> Result<(), Error> {
    tables.sort_by_key(|table| (table.start, table.end));
    let mut apart: Vec<Range<u64>> = Vec::new();
    for table in tables.drain(..) {
        match apart.last_mut() {
            Some(last) if table.start < last.end => {
                if !(table.start - last.start).is_multiple_of(entry) {
                    let what = "relocation tables overlap";
                    return Err(Error::inconsistent_segments(what));
                }
                last.end = last.end.max(table.end);
            }
            _ => apart.push(table),
        }
    }
    *tables = apart;
    Ok(())
}

/// Visits every whole entry of a table in `range` of the ELF file, with its offset there. Reads the table in blocks.
pub(super) fn entries<T: Pod>(
    source: &mut Source<'_>,
    file: &File,
    range: &Range<u64>,
    visit: &mut dyn FnMut(&mut Source<'_>, u64, &T) -> Result<(), Error>,
) -> Result<(), Error> {
    let base = file.window.start;
    for_each(source, &absolute(base, range), size_of::<T>() as u64, |source, _, at, entry| {
        first(entry).map_or(Ok(()), |entry| visit(source, at - base, &entry))
    })
}
