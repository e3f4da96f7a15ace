//! Relocatable ELF objects: contents of sections replaced, the others laid out again. And linked files, if
//! nothing that is loaded changes.
//!
//! Nothing is read but headers, symbols and relocations. Contents before the first change stay; contents after it
//! move, in their order and with their alignment. When the bundles of a section move, the addends of relocations
//! and the values of symbols follow them (System V ABI, "Symbol Table" and "Relocation"), so that each wrapper
//! still points to its bundle.

mod references;

use std::collections::BTreeMap;
use std::ops::Range;

use byte_parts::Source;
use object::elf::SHT_NOBITS;
use object::pod::bytes_of;

use super::changes::{Changes, WalkedSection, numbered};
use super::host::{Edited, HostContext, SectionEdit};
use super::moves::Changed;
use super::relayout::{Piece, lay_out};
use crate::error::Error;
use crate::objects::elf_class::{Class, ElfHeader, ElfSection, by_class};
use crate::objects::elf_object::{Loaded, Object, place, remove};
use crate::output::{self, Output};
use crate::patches::Patches;
use crate::pod::until_nul;

/// Lays out the file in the window with other device code in its sections. It may be linked if the sections are
/// after everything that is loaded.
pub(crate) fn edit(
    source: &mut Source<'_>,
    context: HostContext<'_>,
    sections: Vec<SectionEdit>,
) -> Result<Edited, Error> {
    let window = context.window;
    let head = source.peek(window, 6)?;
    let class =
        Class::of(&head).ok_or_else(|| Error::unsupported_elf("unknown class or byte order"))?;
    let splices = by_class!(class, H => edit_as::<H>(source, window, sections))?;
    Ok(Edited::new(splices))
}

/// Returns the sections that have bytes in the file.
fn places<H: ElfHeader>(object: &Object<H>) -> impl Iterator<Item = WalkedSection<'_>> {
    let sections = object.sections.iter().enumerate().skip(1);
    sections.filter(|(_, section)| section.kind != SHT_NOBITS).map(|(index, section)| {
        let name = until_nul(object.name_on(section));
        WalkedSection { index, range: object.place(section), name }
    })
}

fn edit_as<H: ElfHeader>(
    source: &mut Source<'_>,
    window: &Range<u64>,
    edits: Vec<SectionEdit>,
) -> Result<Output, Error> {
    let object = Object::<H>::read(source, window)?;
    let loaded = Loaded::read::<H>(source, window, &object.header)?;
    let edits = numbered(window, edits, places(&object))?;
    for (index, edit) in &edits {
        let section = object.sections.get(*index);
        if edit.is_changed() && section.is_some_and(|section| loaded.may_need(section)) {
            let kind = "device code of linked ELF files that is loaded, in other sections than .hip_fatbin,";
            return Err(Error::unsupported_kind(kind));
        }
    }
    let align =
        |index: usize| object.sections.get(index).map_or(1, |section| power_of_two(section.align));
    let Changes { removed, changed } = Changes::new(edits, align)?;
    let splices = if changed.is_empty() {
        output::copy_of(window)
    } else {
        let mut patches = Patches::default();
        references::follow(source, &object, &changed, &mut patches)?;
        rewrite(&object, changed, patches)?
    };
    if removed.is_empty() {
        Ok(splices)
    } else {
        output::edited(&splices, source, |source, window| {
            remove::<H>(source, window, &|index, _| removed.contains(&index))
        })
    }
}

/// Returns the object with other contents in some sections.
fn rewrite<H: ElfHeader>(
    object: &Object<H>,
    mut changed: BTreeMap<usize, Changed>,
    mut patches: Patches,
) -> Result<Output, Error> {
    let mut pieces = Vec::with_capacity(object.sections.len());
    // Section numbers of the pieces; the first, of the null section, is the header.
    pieces.push(Piece::kept(0..size_of::<H>() as u64, 1));
    for (index, section) in object.sections.iter().enumerate().skip(1) {
        let new = changed.remove(&index).map(|changed| changed.contents);
        let old = match place(section) {
            // An empty one may be anywhere.
            old if new.is_some() && old.is_empty() => object.table.start..object.table.start,
            old => old,
        };
        pieces.push(Piece { new, ..Piece::kept(old, power_of_two(section.align)) });
    }
    let word = if size_of::<H::SectionHeader>() == 40 { 4 } else { 8 };
    pieces.push(Piece::kept(object.table.clone(), word));
    let layout = lay_out(&object.window, &pieces)?;

    let too_large = |value| Error::too_large("ELF", value, H::LIMIT);
    let base = object.window.start;
    for ((index, section), place) in object.sections.iter().enumerate().zip(&layout.places).skip(1)
    {
        let mut new = ElfSection { offset: place.start, ..*section };
        if section.kind != SHT_NOBITS {
            new.size = place.end - place.start;
        }
        if new.offset != section.offset || new.size != section.size {
            let header = H::section_header(&new).ok_or_else(|| too_large(place.end))?;
            let entry = size_of::<H::SectionHeader>() as u64;
            let at = object.table.start + entry * index as u64;
            patches.put(base + at, bytes_of(&header));
        }
    }
    if let Some(place) = layout.places.last()
        && *place != object.table
    {
        let (mut header, e) = (object.header, H::order());
        header
            .set_table(place.start, header.e_shnum(e), header.e_shstrndx(e))
            .ok_or_else(|| too_large(place.end))?;
        patches.put(base, bytes_of(&header));
    }
    if layout.splices.size() > H::LIMIT {
        return Err(too_large(layout.splices.size()));
    }
    let all = || Error::shared_bytes(0, object.window.end - base);
    patches.apply(layout.splices).ok_or_else(all)
}

/// Returns the alignment that a header field means: 0 means none.
fn power_of_two(align: u64) -> u64 {
    if align.is_power_of_two() { align } else { 1 }
}
