//! The layout of binaries.

use alloc::vec::Vec;
use core::fmt;
use core::slice;

#[cfg(feature = "std")]
use byte_parts::WriteError;
use byte_parts::{Parts, Plan};

use crate::error::{Error, Problem};
use crate::image_entry::{FormatVersion, ImageEntry};
use crate::string_table::StringTable;
use crate::to_u64;
use crate::wire::{ENTRY_LEN, EntryHeader, Header};

/// The most bytes all keys and values of a [`Layout`] may have together: 64 MiB. Real ones have
/// a few kilobytes; the limit keeps [`convert`](crate::convert) from unfolding megabytes of
/// strings that share their bytes into gigabytes.
pub const MAX_STRING_BYTES: u64 = 1 << 26;

/// The layout of one or more binaries, computed from strings and sizes alone.
///
/// Version 1 has one binary for each entry, one after the other, and is empty without entries;
/// versions 2 and 3 have one binary with all entries. The bytes are those of LLVM 22, 23 and 24: header,
/// entries, string entries, the string table, in which strings share their ends, and the images,
/// the first of a binary at a multiple of 8. The images of a binary of versions 2 and 3 follow each
/// other without padding. Strings keep their order; [`llvm::string_order`](crate::llvm::string_order) tells the
/// one LLVM's tool would put them into.
///
/// ```
/// use offload_binary::{FormatVersion, ImageEntry, ImageKind, Layout, OffloadBinary, OffloadKind};
///
/// # fn main() -> Result<(), offload_binary::Error> {
/// let image = b"\x7fELF...";
/// let entry = ImageEntry::new(7)
///     .image_kind(ImageKind::OBJECT)
///     .offload_kind(OffloadKind::HIP)
///     .string("arch", "gfx90a")
///     .string("triple", "amdgcn-amd-amdhsa");
/// let layout = Layout::new(FormatVersion::V1, &[entry])?;
/// assert_eq!(layout.image_offset(0), Some(144));
/// assert_eq!(layout.total_size(), 152);
///
/// let bytes = layout.to_vec(&[image])?;
/// let binary = OffloadBinary::parse(&bytes)?;
/// assert_eq!(binary.entries().next().and_then(|entry| entry.arch()), Some("gfx90a"));
/// # Ok(())
/// # }
/// ```
pub struct Layout {
    version: FormatVersion,
    plan: Plan,
    /// Offset of each image.
    offsets: Vec<u64>,
}

impl Layout {
    /// Lays out `entries` in their order.
    ///
    /// # Errors
    ///
    /// [`Nul`](crate::ErrorKind::Nul) in a key, in version 1 in a value, too; [`Limit`](crate::ErrorKind::Limit) for too many
    /// bytes of strings, and when an image would end beyond 2⁶⁴.
    pub fn new(version: FormatVersion, entries: &[ImageEntry<'_>]) -> Result<Self, Error> {
        check_strings(version, entries)?;
        let plan = Plan::new(entries.iter().map(|entry| entry.size));
        let mut layout = Self { version, plan, offsets: Vec::with_capacity(entries.len()) };
        match version {
            FormatVersion::V1 => {
                for entry in entries {
                    layout.push_binary(slice::from_ref(entry))?;
                }
            }
            FormatVersion::V2 | FormatVersion::V3 => layout.push_binary(entries)?,
        }
        Ok(layout)
    }

    /// Appends a binary with `entries`.
    fn push_binary(&mut self, entries: &[ImageEntry<'_>]) -> Result<(), Problem> {
        let strings = || entries.iter().flat_map(|entry| &entry.strings);
        let table = StringTable::new(strings().flat_map(|(key, value)| [&**key, &**value]));
        // None of this overflows: everything counted is in memory, and larger there.
        let string_len = self.version.string_entry_len();
        let entry_count = to_u64(entries.len());
        let header_len = self.version.header_len();
        let mut strings_at = header_len + ENTRY_LEN * entry_count;
        let table_at = strings_at + string_len * to_u64(strings().count());
        let images_at = (table_at + to_u64(table.bytes().len())).next_multiple_of(8);

        let start = self.total_size();
        let first = self.offsets.len();
        let mut image_at = images_at;
        let mut headers = Vec::with_capacity(entries.len());
        for entry in entries {
            let entry_number = to_u64(self.offsets.len());
            let overflow = || Problem::OffsetOverflow { entry: entry_number };
            let string_count = to_u64(entry.strings.len());
            headers.push(EntryHeader {
                image_kind: entry.image_kind.0,
                offload_kind: entry.offload_kind.0,
                flags: entry.flags.0,
                string_offset: strings_at,
                string_count,
                image_offset: image_at,
                image_size: entry.size,
            });
            strings_at += string_len * string_count;
            self.offsets.push(start.checked_add(image_at).ok_or_else(overflow)?);
            image_at = image_at.checked_add(entry.size).ok_or_else(overflow)?;
        }
        let last = to_u64(self.offsets.len()).saturating_sub(1);
        let overflow = || Problem::OffsetOverflow { entry: last };
        let size = image_at.checked_next_multiple_of(8).ok_or_else(overflow)?;
        let end = start.checked_add(size).ok_or_else(overflow)?;

        let header = Header {
            version: self.version.number(),
            size,
            entries_offset: header_len,
            entries_extent: match self.version {
                FormatVersion::V1 => ENTRY_LEN,
                FormatVersion::V2 | FormatVersion::V3 => entry_count,
            },
        };
        // The inflated size is 0 in a binary that is not compressed.
        let mut bytes = header.bytes(0).to_vec();
        bytes.truncate(usize::try_from(header_len).unwrap_or_default());
        headers.iter().for_each(|header| header.write(&mut bytes));
        for (key, value) in strings() {
            for string in [key, value] {
                bytes.extend_from_slice(&(table_at + table.offset(string)).to_le_bytes());
            }
            if self.version != FormatVersion::V1 {
                bytes.extend_from_slice(&to_u64(value.len()).to_le_bytes());
            }
        }
        bytes.extend_from_slice(table.bytes());
        self.plan.parts.push_bytes(&bytes);
        self.plan.parts.pad_to(start.saturating_add(images_at));
        for (index, entry) in (first..).zip(entries) {
            self.plan.parts.push_input(index, 0..entry.size);
        }
        self.plan.parts.pad_to(end);
        Ok(())
    }

    /// Returns the version that is written.
    #[must_use]
    pub fn version(&self) -> FormatVersion {
        self.version
    }

    /// Returns the length of the whole output in bytes, a multiple of 8.
    #[must_use]
    pub fn total_size(&self) -> u64 {
        self.parts().size()
    }

    /// Returns the number of entries, and so of images.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Returns whether there are no entries at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Returns the offset of the image of entry `index`, in bytes from the start of the whole output; `None`
    /// without such an entry.
    #[must_use]
    pub fn image_offset(&self, index: usize) -> Option<u64> {
        self.offsets.get(index).copied()
    }

    /// Returns the length in bytes of the image of entry `index`; `None` without such an entry.
    #[must_use]
    pub fn image_size(&self, index: usize) -> Option<u64> {
        self.plan.sizes().get(index).copied()
    }

    /// Returns the output as a list of parts, to be written or embedded. Inputs are the images, by the index of their
    /// entry.
    #[must_use]
    pub fn parts(&self) -> &Parts {
        &self.plan.parts
    }

    /// Returns the whole output in memory. `images` are the images in the order of the entries, an empty
    /// one for each entry without an image.
    ///
    /// # Errors
    ///
    /// [`Image`](crate::ErrorKind::Image) when the images are not those that were
    /// laid out, [`Memory`](crate::ErrorKind::Memory).
    pub fn to_vec(&self, images: &[&[u8]]) -> Result<Vec<u8>, Error> {
        Ok(self.plan.to_vec(images)?)
    }

    /// Writes the whole output, and flushes it. `images` are read once each, in the order of the entries,
    /// and never held in memory as a whole; an entry without an image has an empty one. From file to
    /// file the kernel copies, where the platform can ([`std::io::copy`]).
    ///
    /// # Errors
    ///
    /// Errors of reading and writing, and [`std::io::ErrorKind::InvalidInput`] with
    /// [`Image`](crate::ErrorKind::Image) inside when the images are not those that were laid out. By then a part
    /// of the output is written.
    #[cfg(feature = "std")]
    pub fn write_to<R: std::io::Read>(
        &self,
        writer: impl std::io::Write,
        images: impl IntoIterator<Item = R>,
    ) -> std::io::Result<()> {
        match self.plan.write_to(writer, images) {
            Err(WriteError::Input(error)) => Err(Error::from(error).into()),
            result => Ok(result?),
        }
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layout")
            .field("version", &self.version)
            .field("offsets", &self.offsets)
            .field("sizes", &self.plan.sizes())
            .finish()
    }
}

/// Refuses strings that cannot be stored.
fn check_strings(version: FormatVersion, entries: &[ImageEntry<'_>]) -> Result<(), Problem> {
    let mut budget = StringBudget::default();
    for (index, entry) in (0_u64..).zip(entries) {
        for (string, (key, value)) in (0_u64..).zip(&entry.strings) {
            budget.spend(key, value)?;
            if key.contains(&0) {
                return Err(Problem::KeyHasNul { entry: index, string, key: key[..].into() });
            }
            if version == FormatVersion::V1 && value.contains(&0) {
                return Err(Problem::ValueHasNul { entry: index, string, key: key[..].into() });
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
    pub(crate) fn spend(&mut self, key: &[u8], value: &[u8]) -> Result<(), Problem> {
        let left = self
            .0
            .checked_sub(to_u64(key.len()))
            .and_then(|left| left.checked_sub(to_u64(value.len())));
        self.0 = left.ok_or(Problem::TooManyStringBytes)?;
        Ok(())
    }
}
