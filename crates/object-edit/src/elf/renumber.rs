//! Symbols whose section moves or gets another number.

use std::ops::Range;

use byte_parts::Source;
use zerocopy::IntoBytes;

use super::file::{File, Symbol, addresses, file_range};
use super::layout::Layout;
use super::relocations::{SHT_DYNSYM, entries};
use super::sections::Sections;
use super::symbols::is_address;
use super::wrappers::Patch;
use crate::error::Error;

const SHT_SYMTAB: u32 = 2;
/// Changed symbols with fewer bytes between them become one patch.
const NEAR: u64 = 512;

/// What to overwrite in the symbol tables. `moved`: the new address of what lies at an address in a bundle.
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
        if !matches!(table.kind.get(), SHT_SYMTAB | SHT_DYNSYM) {
            continue;
        }
        // Unchanged symbols behind the last patch.
        let mut between = Vec::new();
        let mut open = false;
        entries(source, file, &file_range(table), &mut |_, at, old: &Symbol| {
            let mut new = *old;
            let index = old.section.get();
            // Others are reserved numbers.
            let section = file.sections.get(usize::from(index)).filter(|_| index > 0);
            if let Some(section) = section {
                let value = old.value.get();
                let Range { start, end } = addresses(section);
                // Symbols of the file as a whole are given the number of any section.
                if is_address(old)
                    && (start..=end).contains(&value)
                    && let Some(address) = layout.moved.get(&usize::from(index))
                {
                    let by = address.wrapping_sub(start);
                    new.value.set(value.wrapping_add(by));
                }
                new.section.set(sections.index(index, moved(value)));
            }
            if new.as_bytes() == old.as_bytes() {
                between.extend_from_slice(old.as_bytes());
                if between.len() as u64 > NEAR {
                    open = false;
                    between.clear();
                }
                return Ok(());
            }
            match patches.last_mut() {
                Some(last) if open => {
                    last.bytes.append(&mut between);
                    last.bytes.extend_from_slice(new.as_bytes());
                }
                _ => patches.push(Patch { offset: at, bytes: new.as_bytes().to_vec() }),
            }
            between.clear();
            open = true;
            Ok(())
        })?;
    }
    Ok(patches)
}
