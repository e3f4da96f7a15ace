//! ELF: tables of strings without the names of removed sections, and with new names.

use std::collections::BTreeMap;

use byte_parts::Source;
use object::elf::{SHF_ALLOC, SHT_CREL, SHT_REL, SHT_RELA, SHT_STRTAB, SHT_SYMTAB};
use object::pod::{slice_from_all_bytes, slice_from_all_bytes_mut};
use object::read::elf::Sym;

use super::file::Object;
use super::part::{Contents, Part};
use crate::error::Error;
use crate::objects::elf_class::{ElfHeader, ElfSection};
use crate::objects::rename::Renames;
use crate::objects::strings::{Limit, Strings, string_at};
use crate::pod::rest;

/// Leaves the names of removed sections out of the tables of strings that only section headers and symbols refer to, and
/// puts new names in. Returns whether there are any.
pub(super) fn rebuild_tables<H: ElfHeader>(
    source: &mut Source<'_>,
    parts: &mut [Part],
    object: &Object<H>,
    renames: &Renames,
) -> Result<bool, Error> {
    // The parts that refer to each.
    let mut users: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, part) in parts.iter().enumerate().skip(1) {
        if let Ok(table) = usize::try_from(part.fields.link) {
            users.entry(table).or_default().push(at);
        }
    }
    let mut renamed = false;
    for new_index in 1..parts.len() {
        let is_table = |part: &&Part| part.fields.kind == SHT_STRTAB;
        let Some(table) = parts.get(new_index).filter(is_table) else { continue };
        let names = table.index == object.names_index;
        let fixed = table.fixed || table.fields.flags.contains(SHF_ALLOC);
        let users = users.get(&new_index).map_or(&[][..], Vec::as_slice);
        if !names && users.is_empty() {
            continue;
        }
        let kinds = users.iter().filter_map(|&at| parts.get(at)).map(|part| part.fields.kind);
        let is_whole = !fixed && kinds.clone().all(|kind| kind == SHT_SYMTAB);
        if !is_whole && renames.is_empty() {
            continue;
        }
        let old = table.read(source)?;
        let mut symbols = BTreeMap::new();
        for &at in users {
            if let Some(part) = parts.get(at).filter(|part| part.fields.kind == SHT_SYMTAB) {
                symbols.insert(at, part.read(source)?);
            }
        }
        let new = New { old: &old, renames };
        let has_new = new.is_any::<H>(if names { parts } else { &[] }, &symbols);
        // One that cannot be rebuilt does not change.
        let rebuilt =
            is_whole && rebuild_strings::<H>(parts, &mut symbols, &new, new_index, names).is_some();
        if has_new && !rebuilt {
            let text = format!("the string table, section {new_index}, cannot take other names");
            return Err(Error::cannot_change(text));
        }
        renamed |= has_new;
    }
    Ok(renamed)
}

/// The strings that a new table will hold for those of an old one.
struct New<'a> {
    old: &'a [u8],
    renames: &'a Renames,
}

impl<'a> New<'a> {
    /// Returns another name of a section.
    fn of_section(&self, section: &ElfSection) -> Option<&'a [u8]> {
        let of_relocations = match section.kind {
            SHT_RELA => Some(".rela"),
            SHT_REL => Some(".rel"),
            SHT_CREL => Some(".crel"),
            _ => None,
        };
        self.renames.section(rest(self.old, section.name.into()), of_relocations)
    }

    /// Returns another name of a symbol.
    fn of_symbol(&self, name: u32) -> Option<&'a [u8]> {
        self.renames.symbol(rest(self.old, name.into()))
    }

    fn section(&self, section: &ElfSection) -> Option<&'a [u8]> {
        self.of_section(section).or_else(|| string_at(self.old, section.name.into()))
    }

    fn symbol(&self, name: u32) -> Option<&'a [u8]> {
        self.of_symbol(name).or_else(|| string_at(self.old, name.into()))
    }

    /// Returns whether any of them has another name.
    fn is_any<H: ElfHeader>(&self, parts: &[Part], symbols: &BTreeMap<usize, Vec<u8>>) -> bool {
        let of_symbol = |symbol: &H::Sym| self.of_symbol(symbol.st_name(H::order()));
        let are_renamed = |bytes: &Vec<u8>| {
            let symbols = slice_from_all_bytes::<H::Sym>(bytes);
            symbols.is_ok_and(|symbols| symbols.iter().any(|symbol| of_symbol(symbol).is_some()))
        };
        !self.renames.is_empty()
            && (parts.iter().any(|part| self.of_section(&part.fields).is_some())
                || symbols.values().any(are_renamed))
    }
}

/// Rebuilds a string table; `None` if it cannot be rebuilt. `symbols` has the symbols that refer to the table, by the
/// part that holds them.
fn rebuild_strings<H: ElfHeader>(
    parts: &mut [Part],
    symbols: &mut BTreeMap<usize, Vec<u8>>,
    new: &New<'_>,
    new_index: usize,
    names: bool,
) -> Option<()> {
    let e = H::order();
    let mut strings = Strings::default();
    let mut limit = Limit::of(new.old);
    let mut add = |string| {
        strings.add(limit.take(string)?);
        Some(())
    };
    if names {
        parts.iter().try_for_each(|part| add(new.section(&part.fields)))?;
    }
    for symbols in symbols.values() {
        let symbols = slice_from_all_bytes::<H::Sym>(symbols).ok()?;
        symbols.iter().try_for_each(|symbol| add(new.symbol(symbol.st_name(e))))?;
    }
    let built = strings.build(b"\0")?;
    // All names are there: from here on nothing fails.
    if names {
        for part in &mut *parts {
            part.fields.name = built.offset(new.section(&part.fields)?)?;
        }
    }
    for (at, bytes) in std::mem::take(symbols) {
        let (mut symbols, part) = (bytes.clone(), parts.get_mut(at)?);
        for symbol in slice_from_all_bytes_mut::<H::Sym>(&mut symbols).ok()? {
            let name = built.offset(new.symbol(symbol.st_name(e))?)?;
            H::set_symbol(symbol, name, symbol.st_shndx(e));
        }
        if symbols != bytes {
            part.contents = Contents::New(symbols);
        }
    }
    let bytes = built.bytes;
    let table = parts.get_mut(new_index)?;
    table.fields.size = bytes.len() as u64;
    table.contents = Contents::New(bytes);
    Some(())
}
