//! Uncompressed binary bundles, laid out again from the entries they keep and get.

use std::ops::Range;

use bundle_format::Bundle;
use byte_parts::Source;
use object_edit::{Input, Output, copy_of};

use crate::inputs::filled;
use crate::rebuild::{RebuildError, malformed};
use crate::wishes::{Wish, Wishes};

/// Alignment of code objects in HIP's fat binaries: the runtime maps them by the page.
const PAGE: u64 = 4096;

/// Returns the bundle at `range` with the wished entries. `empty` is true if no device image is left.
///
/// Entries keep their order and the exact bytes of their IDs. They lie as close together as the alignment allows that
/// the bundle had, nothing follows the last one. Where only images of the same size are replaced, everything stays in
/// its place.
pub(super) fn rebuild(
    source: &mut Source<'_>,
    range: &Range<u64>,
    wishes: &Wishes<'_>,
    empty: bool,
) -> Result<Output, RebuildError> {
    if wishes.are_none() {
        return Ok(copy_of(range));
    }
    let prefix = source.read_prefix(range, |prefix, available| {
        Bundle::parse_prefix(prefix, available).err().and_then(|error| error.needed())
    })?;
    let bundle = Bundle::parse_prefix(&prefix, range.end - range.start).map_err(malformed)?;
    if bundle.len() != wishes.entries.len() {
        return Err(RebuildError::Changed);
    }
    let places = bundle.entries().map(|entry| {
        let start = range.start + entry.offset();
        start..start + entry.size()
    });
    let places: Vec<Range<u64>> = places.collect();
    if let Some(patched) = patched(range, &places, wishes) {
        return Ok(patched);
    }

    let align = alignment(&bundle);
    let mut ids: Vec<(&[u8], u64)> = Vec::new();
    let mut contents = Vec::new();
    for ((entry, place), wish) in bundle.entries().zip(&places).zip(&wishes.entries) {
        let content = match wish {
            Wish::Remove => continue,
            Wish::Keep => copy_of(place),
            Wish::Replace(image) => Output::from_input(Input::New(image.number), 0..image.size),
        };
        ids.push((entry.id(), content.size()));
        contents.push(content);
    }
    for (id, image) in &wishes.added {
        ids.push((id.as_bytes(), image.size));
        contents.push(Output::from_input(Input::New(image.number), 0..image.size));
    }
    let layout = bundle_format::layout(ids, align).map_err(malformed)?;
    let mut splices = filled(layout.parts(), &contents);
    if empty && align == PAGE {
        // The runtime reads a whole page, whatever is in it.
        splices.pad_to(PAGE);
    }
    Ok(splices)
}

/// Returns the container with images replaced by others of the same size, if nothing else is wished.
pub(super) fn patched(
    range: &Range<u64>,
    places: &[Range<u64>],
    wishes: &Wishes<'_>,
) -> Option<Output> {
    if !wishes.added.is_empty() {
        return None;
    }
    let mut patches = Vec::new();
    for (place, wish) in places.iter().zip(&wishes.entries) {
        match wish {
            Wish::Keep => {}
            Wish::Replace(image) if image.size == place.end - place.start => {
                patches.push((place, image));
            }
            Wish::Replace(_) | Wish::Remove => return None,
        }
    }
    patches.sort_unstable_by_key(|(place, _)| place.start);
    let mut splices = Output::new();
    let mut at = range.start;
    for (place, image) in patches {
        splices.push_input(Input::File, at..place.start.max(at));
        splices.push_input(Input::New(image.number), 0..image.size);
        at = place.end.max(at);
    }
    splices.push_input(Input::File, at..range.end);
    Some(splices)
}

/// Returns the alignment of the code objects of a bundle: whole pages, 1 if they lie close together, or else the
/// largest that all of them have. Empty code objects count only if there are no others.
fn alignment(bundle: &Bundle<'_>) -> u64 {
    let mut places: Vec<(u64, u64)> =
        bundle.entries().map(|entry| (entry.offset(), entry.size())).collect();
    if places.iter().any(|&(_, size)| size > 0) {
        places.retain(|&(_, size)| size > 0);
    }
    let bits = places.iter().fold(0, |bits, (offset, _)| bits | offset);
    if bits % PAGE == 0 {
        return PAGE;
    }
    places.sort_unstable();
    let mut end = bundle.header_len();
    let is_tight = places.iter().all(|&(offset, size)| {
        let follows = offset == end;
        end = offset + size;
        follows
    });
    if is_tight { 1 } else { 1 << bits.trailing_zeros() }
}
