//! COFF objects: contents of sections replaced, the others laid out again.
//!
//! ```text
//! file header, section headers      offsets and sizes change
//! contents, relocations             in the order and with the gaps that they have: nothing is aligned in objects
//! symbols, names                    values in sections whose bundles move, sizes and checksums of sections
//! ```
//!
//! From Microsoft's "PE Format". The addend of a relocation is stored in the place that it applies to.

mod checksum;
mod references;

use std::collections::BTreeMap;
use std::ops::Range;

use byte_parts::Source;
use object::pe::IMAGE_SCN_CNT_UNINITIALIZED_DATA;
use object::pod::bytes_of;

use super::changes::{Changes, WalkedSection, numbered};
use super::host::{Edited, HostContext, SectionEdit};
use super::moves::Changed;
use super::relayout::{Piece, lay_out};
use crate::error::Error;
use crate::objects::coff::{LIMIT, Object, Section, narrow, remove, too_large};
use crate::output::{self, NewInputs, Output};
use crate::patches::Patches;
use crate::pod::{LE, until_nul};
use crate::tables::absolute;

/// Lays out the file in the window with other device code in its sections.
pub(crate) fn edit(
    source: &mut Source<'_>,
    inputs: &mut dyn NewInputs,
    context: HostContext<'_>,
    sections: Vec<SectionEdit>,
) -> Result<Edited, Error> {
    let window = context.window;
    let object = Object::read(source, window)?;
    let edits = numbered(window, sections, places(&object))?;
    let align = |index| object.sections.get(index).map_or(1, alignment);
    let Changes { removed, changed } = Changes::new(edits, align)?;
    let splices = if changed.is_empty() {
        output::copy_of(window)
    } else {
        let mut patches = Patches::default();
        references::follow(source, inputs, &object, &changed, &mut patches)?;
        rewrite(&object, changed, patches)?
    };
    let splices = if removed.is_empty() {
        splices
    } else {
        output::edited(&splices, source, |source, window| {
            remove(source, window, &|index, _| removed.contains(&index))
        })?
    };
    Ok(Edited::new(splices))
}

/// Returns the object with other contents in some sections.
fn rewrite(
    object: &Object,
    mut changed: BTreeMap<usize, Changed>,
    mut patches: Patches,
) -> Result<Output, Error> {
    let base = object.window.start;
    let mut pieces = vec![
        Piece::kept(0..object.headers_end, 1),
        Piece::kept(object.symbols.start..object.strings_end, 1),
    ];
    for (index, parts) in object.parts.iter().enumerate() {
        let new = changed.get_mut(&index).map(|changed| std::mem::take(&mut changed.contents));
        let old = match parts.contents.clone() {
            // An empty part may be anywhere.
            old if new.is_some() && old.start < object.headers_end => {
                object.symbols.start..object.symbols.start
            }
            old => old,
        };
        pieces.push(Piece { new, ..Piece::kept(old, 1) });
        pieces.push(Piece::kept(parts.relocations.clone(), 1));
        pieces.push(Piece::kept(parts.lines.clone(), 1));
    }
    let layout = lay_out(&object.window, &pieces)?;
    if layout.splices.size() > LIMIT {
        return Err(too_large(layout.splices.size()));
    }
    let [_, tables, places @ ..] = layout.places.as_slice() else {
        return Err(Error::shared_bytes(0, object.window.end - base));
    };
    let (places, _) = places.as_chunks();
    for ((index, section), places) in object.sections.iter().enumerate().zip(places) {
        let [contents, _, _]: &[Range<u64>; 3] = places;
        let mut new = *section;
        for (field, place) in [
            &mut new.pointer_to_raw_data,
            &mut new.pointer_to_relocations,
            &mut new.pointer_to_linenumbers,
        ]
        .into_iter()
        .zip(places)
        {
            if field.get(LE) != 0 {
                *field = narrow(place.start)?;
            }
        }
        if changed.contains_key(&index) {
            let size = contents.end - contents.start;
            if new.pointer_to_raw_data.get(LE) == 0 && size > 0 {
                new.pointer_to_raw_data = narrow(contents.start)?;
            }
            if new.virtual_size.get(LE) != 0 && new.virtual_size == new.size_of_raw_data {
                new.virtual_size = narrow(size)?;
            }
            new.size_of_raw_data = narrow(size)?;
        }
        if bytes_of(&new) != bytes_of(section) {
            let at = object.header.len() + (size_of_val(section) * index) as u64;
            patches.put(base + at, bytes_of(&new));
        }
    }
    if tables.start != object.symbols.start && object.header.symbols().0 != 0 {
        let symbols_at = narrow(tables.start)?.get(LE);
        patches.put(base, &object.header.changed(object.header.sections(), symbols_at)?);
    }
    let all = || Error::shared_bytes(0, object.window.end - base);
    patches.apply(layout.splices).ok_or_else(all)
}

/// Returns the sections that have bytes in the file.
fn places(object: &Object) -> impl Iterator<Item = WalkedSection<'_>> {
    let sections = object.sections.iter().zip(&object.parts).enumerate();
    let in_file = |section: &Section| {
        !section.characteristics.get(LE).contains(IMAGE_SCN_CNT_UNINITIALIZED_DATA)
    };
    sections.filter(move |(_, (section, _))| in_file(section)).map(|(index, (section, parts))| {
        let name = until_nul(object.name_on(section));
        WalkedSection { index, range: absolute(object.window.start, &parts.contents), name }
    })
}

/// Returns the alignment of the contents of a section in memory.
fn alignment(section: &Section) -> u64 {
    match section.characteristics.get(LE).0 >> 20 & 0xf {
        0 | 15 => 16,
        n => 1 << (n - 1),
    }
}
