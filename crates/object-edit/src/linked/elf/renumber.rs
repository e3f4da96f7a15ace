//! Symbols whose section moves or gets another number.

use std::ops::Range;

use byte_parts::Source;
use object::elf::{SHN_UNDEF, SHT_DYNSYM, SHT_SYMTAB};
use object::pod::bytes_of;

use super::file::{File, Symbol, addresses, file_range};
use super::layout::Layout;
use super::relocations::entries;
use super::sections::Sections;
use super::symbols::is_address;
use crate::error::Error;
use crate::patches::Patch;
use crate::pod::LE;

/// Changed symbols with fewer bytes between them become one patch.
const NEAR: u64 = 512;

/// Returns the patches of the symbol tables. `moved` returns the new address of a byte in a bundle.
pub(super) fn renumber(
    source: &mut Source<'_>,
    file: &File,
    layout: &Layout,
    sections: &Sections,
    moved: &dyn Fn(u64) -> u64,
) -> Result<Vec<Patch>, Error> {
    let mut patches: Vec<Patch> = Vec::new();
    if !sections.is_renumbered() && layout.moved.is_empty() {
        return Ok(patches);
    }
    for table in &file.sections {
        if !matches!(table.sh_type.get(LE), SHT_SYMTAB | SHT_DYNSYM) {
            continue;
        }
        // Unchanged symbols after the last patch.
        let mut between = Vec::new();
        let mut open = false;
        entries(source, file, &file_range(table), &mut |_, at, old: &Symbol| {
            let mut new = *old;
            let index = old.st_shndx.get(LE);
            // Others are reserved numbers.
            let section = file.sections.get(usize::from(index.0)).filter(|_| index != SHN_UNDEF);
            if let Some(section) = section {
                let value = old.st_value.get(LE);
                let Range { start, end } = addresses(section);
                // Symbols of the file as a whole are given the number of any section.
                if is_address(old)
                    && (start..=end).contains(&value)
                    && let Some(address) = layout.moved.get(&usize::from(index.0))
                {
                    let by = address.wrapping_sub(start);
                    new.st_value.set(LE, value.wrapping_add(by));
                }
                new.st_shndx.set(LE, sections.index(index, moved(value)));
            }
            if bytes_of(&new) == bytes_of(old) {
                between.extend_from_slice(bytes_of(old));
                if between.len() as u64 > NEAR {
                    open = false;
                    between.clear();
                }
                return Ok(());
            }
            match patches.last_mut() {
                Some(last) if open => {
                    last.bytes.append(&mut between);
                    last.bytes.extend_from_slice(bytes_of(&new));
                }
                _ => patches.push(Patch::new(at, bytes_of(&new))),
            }
            between.clear();
            open = true;
            Ok(())
        })?;
    }
    Ok(patches)
}
