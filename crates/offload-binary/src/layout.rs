//! The layout of binaries.

use alloc::format;
use alloc::vec::Vec;
use core::slice;

use byte_parts::Layout;
use zerocopy::IntoBytes;

use crate::MAGIC;
use crate::error::{Error, ErrorKind};
use crate::image_entry::ImageEntry;
use crate::string_table::StringTable;
use crate::wire::{
    ENTRY_LEN, EntryHeader, FormatVersion, Header, HeaderV3, MAX_STRING_BYTES, StringV1, StringV2,
};

/// Returns the layout of one or more binaries with these entries, in their order. Inputs of the layout are the images,
/// by the index of their entry; an entry without an image has an empty one.
///
/// Version 1 has one binary for each entry, one after the other, and is empty without entries;
/// versions 2 and 3 have one binary with all entries. The bytes are those of LLVM 22, 23 and 24: header,
/// entries, string entries, the string table, in which strings share their ends, and the images,
/// the first of a binary at a multiple of 8. The images of a binary of versions 2 and 3 follow each
/// other without padding. Strings keep their order; [`llvm::string_order`](crate::llvm::string_order) tells the
/// one LLVM's tool would put them into.
///
/// ```
/// use offload_binary::{FormatVersion, ImageEntry, ImageKind, OffloadBinary, OffloadKind, layout};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let image = b"\x7fELF...";
/// let entry = ImageEntry::new(7)
///     .with_image_kind(ImageKind::OBJECT)
///     .with_offload_kind(OffloadKind::HIP)
///     .with_string("arch", "gfx90a")
///     .with_string("triple", "amdgcn-amd-amdhsa");
/// let layout = layout(FormatVersion::V1, &[entry])?;
/// assert_eq!((layout.offset(0), layout.size()), (Some(144), 152));
///
/// let bytes = layout.to_vec(&[image])?;
/// let binary = OffloadBinary::parse(&bytes)?;
/// assert_eq!(binary.entries().next().and_then(|entry| entry.arch()), Some("gfx90a"));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Nul`](crate::ErrorKind::Nul) in a key, in version 1 in a value, too; [`Limit`](crate::ErrorKind::Limit) for too many
/// bytes of strings, and when an image would end beyond 2⁶⁴.
pub fn layout(version: FormatVersion, entries: &[ImageEntry<'_>]) -> Result<Layout, Error> {
    check_strings(version, entries)?;
    let mut layout = Layout::new(entries.iter().map(|entry| entry.size));
    match version {
        FormatVersion::V1 => {
            for (index, entry) in entries.iter().enumerate() {
                push_binary(&mut layout, version, index, slice::from_ref(entry))?;
            }
        }
        FormatVersion::V2 | FormatVersion::V3 => push_binary(&mut layout, version, 0, entries)?,
    }
    Ok(layout)
}

/// Appends a binary with `entries`; the first has the number `first`.
fn push_binary(
    layout: &mut Layout,
    version: FormatVersion,
    first: usize,
    entries: &[ImageEntry<'_>],
) -> Result<(), Error> {
    let strings = || entries.iter().flat_map(|entry| &entry.strings);
    let table = StringTable::new(strings().flat_map(|(key, value)| [&**key, &**value]));
    // None of this overflows: everything counted is in memory, and larger there.
    let string_len = version.string_entry_len();
    let entry_count = entries.len() as u64;
    let header_len = version.header_len();
    let mut strings_at = header_len + ENTRY_LEN * entry_count;
    let table_at = strings_at + string_len * strings().count() as u64;
    let images_at = (table_at + table.bytes().len() as u64).next_multiple_of(8);

    let start = layout.size();
    let mut image_at = images_at;
    let mut headers = Vec::with_capacity(entries.len());
    let mut last = first as u64;
    for (number, entry) in ((first as u64)..).zip(entries) {
        last = number;
        let overflow = || beyond_largest(number);
        let string_count = entry.strings.len() as u64;
        headers.push(EntryHeader {
            image_kind: entry.image_kind.0.into(),
            offload_kind: entry.offload_kind.0.into(),
            flags: entry.flags.bits().into(),
            string_offset: strings_at.into(),
            string_count: string_count.into(),
            image_offset: image_at.into(),
            image_size: entry.size.into(),
        });
        strings_at += string_len * string_count;
        start.checked_add(image_at).ok_or_else(overflow)?;
        image_at = image_at.checked_add(entry.size).ok_or_else(overflow)?;
    }
    let overflow = || beyond_largest(last);
    let size = image_at.checked_next_multiple_of(8).ok_or_else(overflow)?;
    let end = start.checked_add(size).ok_or_else(overflow)?;

    let header = Header {
        magic: MAGIC,
        version: version.number().into(),
        size: size.into(),
        entries_offset: header_len.into(),
        entries_extent: match version {
            FormatVersion::V1 => ENTRY_LEN.into(),
            FormatVersion::V2 | FormatVersion::V3 => entry_count.into(),
        },
    };
    let mut bytes = match version {
        FormatVersion::V1 | FormatVersion::V2 => header.as_bytes().to_vec(),
        // The inflated size is 0 in a binary that is not compressed.
        FormatVersion::V3 => {
            HeaderV3 { start: header, inflated_size: 0.into() }.as_bytes().to_vec()
        }
    };
    bytes.extend_from_slice(headers.as_bytes());
    for ((_, value), [key_offset, value_offset]) in strings().zip(table.offsets().as_chunks().0) {
        let key_offset = (table_at + key_offset).into();
        let value_offset = (table_at + value_offset).into();
        let offsets = StringV1 { key_offset, value_offset };
        if version == FormatVersion::V1 {
            bytes.extend_from_slice(offsets.as_bytes());
        } else {
            let value_size = (value.len() as u64).into();
            bytes.extend_from_slice(StringV2 { offsets, value_size }.as_bytes());
        }
    }
    bytes.extend_from_slice(table.bytes());
    layout.push_bytes(&bytes);
    layout.pad_to(start + images_at);
    for (index, entry) in (first..).zip(entries) {
        layout.push_input(index, 0..entry.size);
    }
    layout.pad_to(end);
    Ok(())
}

#[cold]
fn beyond_largest(entry: u64) -> Error {
    Error::of_entry(ErrorKind::Limit, entry, "would end beyond the largest offset")
}

/// Refuses strings that cannot be stored.
fn check_strings(version: FormatVersion, entries: &[ImageEntry<'_>]) -> Result<(), Error> {
    let mut budget = StringBudget::default();
    for (index, entry) in (0_u64..).zip(entries) {
        for (string, (key, value)) in (0_u64..).zip(&entry.strings) {
            budget.spend(key, value)?;
            if key.contains(&0) {
                let key = key.escape_ascii();
                let message = format!(
                    "has the key \"{key}\" in string {string}, which cannot be stored with a nul"
                );
                return Err(Error::of_entry(ErrorKind::Nul, index, &message));
            }
            if version == FormatVersion::V1 && value.contains(&0) {
                let key = key.escape_ascii();
                let message = format!(
                    "has the value of key \"{key}\" in string {string} with a nul, which version 1 cannot store"
                );
                return Err(Error::of_entry(ErrorKind::Nul, index, &message));
            }
        }
    }
    Ok(())
}

/// The number of bytes of strings that are still allowed.
pub(crate) struct StringBudget(u64);

impl Default for StringBudget {
    fn default() -> Self {
        Self(MAX_STRING_BYTES)
    }
}

impl StringBudget {
    pub(crate) fn spend(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let left = self
            .0
            .checked_sub(key.len() as u64)
            .and_then(|left| left.checked_sub(value.len() as u64));
        self.0 = left.ok_or_else(|| {
            let message = format!(
                "offload binary would have more than {MAX_STRING_BYTES} bytes of keys and values"
            );
            Error::new(ErrorKind::Limit, message)
        })?;
        Ok(())
    }
}
