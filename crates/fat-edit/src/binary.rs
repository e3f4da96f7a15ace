//! Offload binaries, laid out again from the entries they keep and get.

use std::borrow::Cow;
use std::ops::Range;

use bundle_format::EntryId;
use byte_parts::Source;
use fat_object::FileFormat;
use object_edit::{Input, Output, copy_of};
use offload_binary::{FormatVersion, ImageEntry, ImageKind, OffloadBinary, OffloadKind};

use crate::bundle::patched;
use crate::inputs::filled;
use crate::rebuild::{RebuildError, malformed};
use crate::wishes::{Incoming, Wish, Wishes};

/// Returns the offload binary at `range` with its entries as wished: `None` for one of version 1 without an image.
///
/// Entries keep their order, kinds, flags and strings, and the offload binary its version.
pub(super) fn rebuild(
    source: &mut Source<'_>,
    range: &Range<u64>,
    wishes: &Wishes<'_>,
) -> Result<Option<Output>, RebuildError> {
    if wishes.are_none() {
        return Ok(Some(copy_of(range)));
    }
    let prefix = source.read_prefix(range, |prefix, available| {
        OffloadBinary::parse_prefix(prefix, available).err().and_then(|error| error.needed())
    })?;
    let binary =
        OffloadBinary::parse_prefix(&prefix, range.end - range.start).map_err(malformed)?;
    if binary.entries().len() != wishes.entries.len() {
        return Err(RebuildError::Changed);
    }
    let place = |offset: u64, size: u64| range.start + offset..range.start + offset + size;
    let places: Vec<Range<u64>> =
        binary.entries().map(|e| place(e.image_offset(), e.image_size())).collect();
    let same_kinds = binary.entries().zip(&wishes.entries).all(|(entry, wish)| match wish {
        Wish::Replace(new) => image_kind(new).is_none_or(|kind| kind == entry.image_kind()),
        Wish::Keep | Wish::Remove => true,
    });
    if same_kinds && let Some(patched) = patched(range, &places, wishes) {
        return Ok(Some(patched));
    }

    let mut entries = Vec::new();
    let mut images = Vec::new();
    for ((old, place), wish) in binary.entries().zip(places).zip(&wishes.entries) {
        let mut entry = old.to_image_entry();
        let image = match wish {
            Wish::Remove => continue,
            Wish::Keep => copy_of(&place),
            Wish::Replace(new) => {
                entry.image_kind = image_kind(new).unwrap_or(entry.image_kind);
                Output::from_input(Input::New(new.number), 0..new.size)
            }
        };
        entry.size = image.size();
        entries.push(entry);
        images.push(image);
    }
    for (id, new) in &wishes.added {
        entries.push(entry(id, new)?);
        images.push(Output::from_input(Input::New(new.number), 0..new.size));
    }
    if entries.is_empty() && binary.version() == FormatVersion::V1 {
        return Ok(None);
    }
    let layout = offload_binary::layout(binary.version(), &entries).map_err(malformed)?;
    Ok(Some(filled(layout.parts(), &images)))
}

/// Returns an entry for the target that a bundle entry ID names.
fn entry<'e>(id: &'e str, new: &Incoming) -> Result<ImageEntry<'e>, RebuildError> {
    let id = EntryId::parse(id).map_err(malformed)?;
    let kind = OffloadKind::from_target_id(&id.kind()).unwrap_or(OffloadKind::NONE);
    // Offload binaries have triples as the compiler is given them: without an empty environment.
    let triple = id.triple().strip_suffix('-').unwrap_or(id.triple());
    let mut entry = ImageEntry::new(new.size)
        .with_image_kind(image_kind(new).unwrap_or(ImageKind::NONE))
        .with_offload_kind(kind);
    let mut string = |key: &'static str, value: &'e str| {
        entry.strings.push((Cow::Borrowed(key.as_bytes()), Cow::Borrowed(value.as_bytes())));
    };
    string("arch", id.target_id());
    string("triple", triple);
    Ok(entry)
}

/// Returns the kind of an image according to its first bytes, if they show it.
fn image_kind(new: &Incoming) -> Option<ImageKind> {
    Some(match new.format {
        FileFormat::Elf { .. } => ImageKind::OBJECT,
        FileFormat::Cubin => ImageKind::CUBIN,
        FileFormat::Bitcode => ImageKind::BITCODE,
        FileFormat::SpirV => ImageKind::SPIRV,
        FileFormat::Ptx => ImageKind::PTX,
        FileFormat::Fatbinary => ImageKind::FATBINARY,
        _ => return None,
    })
}
