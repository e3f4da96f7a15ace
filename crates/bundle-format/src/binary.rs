//! Reading the binary layout.

use alloc::format;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;
use core::str;

use zerocopy::FromBytes;

use crate::error::{Error, ErrorKind};
use crate::wire::{DESCRIPTOR_LEN, Descriptor, HEADER_LEN, Header};

/// The bytes every binary bundle starts with.
pub const MAGIC: [u8; 24] = *b"__CLANG_OFFLOAD_BUNDLE__";

/// A valid binary bundle.
///
/// Parsing checks all descriptors, so that the accessors cannot fail. It takes time linear in
/// the length of the descriptors, apart from sorting the entries by their offset, and meanwhile
/// memory for no more entries than are there. IDs may be
/// any bytes and may be there more than once; see [`composition`](crate::composition).
///
/// Stricter than clang-offload-bundler 22 and 23, which crash on or ignore some of it, a bundle
/// is refused when it is cut short, when an ID is empty and when a code object does not lie
/// inside the container or shares bytes with the descriptors or with another one.
pub struct Bundle<'data> {
    /// The bytes of the container that are in memory.
    data: &'data [u8],
    len: usize,
    header_len: u64,
    end: u64,
}

impl<'data> Bundle<'data> {
    /// Reads the bundle that starts with the first byte of `data`. Ignores the bytes after the bundle; [`bundles`]
    /// reads several.
    ///
    /// # Errors
    ///
    /// Errors of [`Error`] that start with a bundle's header, descriptors and entries; never
    /// [`Incomplete`](crate::ErrorKind::Incomplete).
    pub fn parse(data: &'data [u8]) -> Result<Self, Error> {
        Self::parse_prefix(data, data.len() as u64)
    }

    /// Reads the bundle that starts with the first byte of `prefix`, when only the first
    /// `prefix.len()` of `available` bytes are in memory. The descriptors have to be in memory,
    /// code objects need not be.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse), and [`Incomplete`](crate::ErrorKind::Incomplete) when the prefix is too
    /// short: read as many bytes as [`Error::needed`] says and call again. Each such error asks for at least
    /// twice the prefix, or for everything.
    pub fn parse_prefix(prefix: &'data [u8], available: u64) -> Result<Self, Error> {
        let available = available.max(prefix.len() as u64);
        let count = count(prefix, available)?.ok_or_else(|| Error::incomplete(HEADER_LEN))?;
        let mut walk = Walk { data: prefix, at: HEADER_LEN };
        // Its length is bounded by what is in memory, not by what the header counts.
        let mut ranges = Vec::new();
        let (mut end, mut len) = (HEADER_LEN, 0);
        for index in 0..count {
            let NamedEntry { offset, size, .. } = walk.checked_next(index, count, available)?;
            let Some(entry_end) = offset.checked_add(size).filter(|end| *end <= available) else {
                let entry_end = u128::from(offset) + u128::from(size);
                let what = format!("lies at {offset:#x}..{entry_end:#x}");
                return Err(beyond_end(index, offset, available, &what));
            };
            (end, len) = (end.max(entry_end), len + 1);
            if size > 0 {
                ranges.push((offset, entry_end, index));
            }
        }
        let header_len = walk.at;
        check_ranges(ranges, header_len)?;
        Ok(Self { data: prefix, len, header_len, end: end.max(header_len) })
    }

    /// Returns how many bytes from its start the descriptors of a bundle take at least, judged by `prefix`, its first
    /// bytes. Once `prefix` has as many, all descriptors are there.
    ///
    /// It never asks for a byte that a bundle without fault lacks, so this reads bundles of unknown size, where nothing
    /// past the end may be read. Where more than the prefix can be read, [`parse_prefix`](Self::parse_prefix) takes
    /// fewer rounds.
    ///
    /// # From a pointer
    ///
    /// `clang` puts a wrapper of 24 bytes into a section `.hipFatBinSegment` and hands its address to the HIP runtime
    /// (`__hipRegisterFatBinary`): a magic, a version and the address of the bundle, without its size.
    ///
    /// ```
    /// use bundle_format::{Bundle, Error};
    ///
    /// # let layout = bundle_format::layout([("hip-amdgcn-amd-amdhsa--gfx906", 4), ("hip-amdgcn-amd-amdhsa--gfx1100", 4)], 4096)?;
    /// # let bundle = layout.to_vec(&[b"old ", b"code"])?;
    /// # let wrapper = [&0x4850_4946_u32.to_le_bytes()[..], &1_u32.to_le_bytes(), &24_u64.to_le_bytes()].concat();
    /// # let wrapper = [&wrapper[..], &[0; 8]].concat();
    /// # let memory = [&wrapper[..], &bundle].concat();
    /// # let read = |address: u64, len: u64| memory[address as usize..][..len as usize].to_vec();
    /// // `read(address, len)` copies bytes of the process; here the wrapper lies at 0.
    /// let wrapper = read(0, 24);
    /// assert_eq!(wrapper[..8], *b"FIPH\x01\0\0\0"); // "HIPF" as a number, version 1
    /// let address = u64::from_le_bytes(wrapper[8..16].try_into().unwrap());
    ///
    /// let mut table = Vec::new();
    /// loop {
    ///     let needed = Bundle::header_needed(&table)?;
    ///     if needed <= table.len() as u64 {
    ///         break;
    ///     }
    ///     assert!(needed < 1 << 20, "damaged: no bundle has so many entries");
    ///     table = read(address, needed);
    /// }
    /// let bundle = Bundle::parse_prefix(&table, u64::MAX)?;
    /// let entry = bundle.entries().find(|entry| entry.id().ends_with(b"gfx1100")).unwrap();
    /// assert_eq!(read(address + entry.offset(), entry.size()), b"code");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`NotABundle`](crate::ErrorKind::NotABundle). Other faults are for [`parse_prefix`](Self::parse_prefix)
    /// to find; a damaged count or length of an ID asks for very many bytes, up to [`u64::MAX`].
    pub fn header_needed(prefix: &[u8]) -> Result<u64, Error> {
        let count = match count(prefix, u64::MAX) {
            Ok(Some(count)) => count,
            Ok(None) => return Ok(HEADER_LEN),
            // More entries than 64 bits can place.
            Err(error) if error.kind() == ErrorKind::Truncated => return Ok(u64::MAX),
            Err(error) => return Err(error),
        };
        let mut walk = Walk { data: prefix, at: HEADER_LEN };
        let mut left = count;
        while left > 0 && walk.next().is_some() {
            left -= 1;
        }
        // Each descriptor that is left is followed by an ID of a byte at least; of the next one the length may be known.
        let least = left * (DESCRIPTOR_LEN + 1);
        let next = walk.descriptor().filter(|_| left > 0);
        let more = next.and_then(|next| next.id_len.get().checked_sub(1));
        // The largest number, if the sum is larger.
        Ok(walk.at.saturating_add(least).saturating_add(more.unwrap_or(0)))
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no entries at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the end of the descriptors, in bytes from the start of the bundle.
    #[must_use]
    pub fn header_len(&self) -> u64 {
        self.header_len
    }

    /// Returns the end of the bundle, in bytes from its start: the largest end of an entry or, without any, the end
    /// of the descriptors. Padding or another bundle may follow.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the entries in stored order.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = Entry<'data>> + Clone + use<'data> {
        let left = 0..self.len;
        Entries { data: self.data, walk: Walk { data: self.data, at: HEADER_LEN }, left }
    }
}

impl fmt::Debug for Bundle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bundle")
            .field("len", &self.len)
            .field("header_len", &self.header_len)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

/// Returns the entry count, once the header makes sense; `None` if it is not in memory.
fn count(prefix: &[u8], available: u64) -> Result<Option<u64>, Error> {
    let start = prefix.get(..MAGIC.len()).unwrap_or(prefix);
    if !MAGIC.starts_with(start) {
        let message = format!("bundle does not start with the magic \"{}\"", crate::MAGIC_TEXT);
        return Err(Error::at(ErrorKind::NotABundle, 0, message));
    }
    if available < HEADER_LEN {
        let message =
            format!("bundle header needs {HEADER_LEN} bytes, but only {available} are there");
        return Err(Error::at(ErrorKind::Truncated, 0, message));
    }
    let Ok((Header { count, .. }, _)) = Header::ref_from_prefix(prefix) else { return Ok(None) };
    let count = count.get();
    // An ID has at least one character.
    if count > (available - HEADER_LEN) / (DESCRIPTOR_LEN + 1) {
        let message = format!(
            "bundle has {count} entries, too many for the {available:#x} bytes of the container"
        );
        return Err(Error::at(ErrorKind::Truncated, 0, message));
    }
    Ok(Some(count))
}

/// Returns the error of a part of an entry that does not end inside the container.
#[cold]
fn beyond_end(entry: u64, offset: u64, available: u64, what: &str) -> Error {
    let message =
        format!("bundle entry {entry} {what}, beyond the end of the container at {available:#x}");
    Error::in_entry(ErrorKind::Truncated, entry, offset, message)
}

/// Checks that code objects lie neither in each other nor in the descriptors. They may be in any order.
fn check_ranges(mut ranges: Vec<(u64, u64, u64)>, header_len: u64) -> Result<(), Error> {
    ranges.sort_unstable();
    if let Some(&(offset, _, entry)) = ranges.first()
        && offset < header_len
    {
        let message = format!(
            "bundle entry {entry} lies at {offset:#x}, inside the descriptors, which end at {header_len:#x}"
        );
        return Err(Error::in_entry(ErrorKind::Malformed, entry, offset, message));
    }
    for (&(_, end, first), &(offset, _, second)) in ranges.iter().zip(ranges.iter().skip(1)) {
        if end > offset {
            let message = format!("bundle entries {first} and {second} overlap at {offset:#x}");
            return Err(Error::in_entry(ErrorKind::Malformed, second, offset, message));
        }
    }
    Ok(())
}

/// A descriptor and its ID.
struct NamedEntry<'data> {
    id: &'data [u8],
    offset: u64,
    size: u64,
}

/// Goes from descriptor to descriptor.
#[derive(Clone, Copy)]
struct Walk<'data> {
    data: &'data [u8],
    at: u64,
}

impl<'data> Walk<'data> {
    /// Returns the entry with the next descriptor, if it and the ID are in memory.
    fn next(&mut self) -> Option<NamedEntry<'data>> {
        let descriptor = self.descriptor()?;
        let id_start = self.at.checked_add(DESCRIPTOR_LEN)?;
        let id_len = descriptor.id_len.get();
        let id = slice(self.data, id_start, id_len)?;
        self.at = id_start.checked_add(id_len)?;
        Some(NamedEntry { id, offset: descriptor.offset.get(), size: descriptor.size.get() })
    }

    fn descriptor(&self) -> Option<&'data Descriptor> {
        let bytes = self.data.get(usize::try_from(self.at).ok()?..)?;
        Some(Descriptor::ref_from_prefix(bytes).ok()?.0)
    }

    /// Returns the same entry as [`next`](Self::next), or the reason why it is missing.
    fn checked_next(
        &mut self,
        index: u64,
        count: u64,
        available: u64,
    ) -> Result<NamedEntry<'data>, Error> {
        let at = self.at;
        let beyond = |end: &u64| *end <= available;
        let Some(id_start) = at.checked_add(DESCRIPTOR_LEN).filter(beyond) else {
            let what = format!("has its descriptor at {at:#x}");
            return Err(beyond_end(index, at, available, &what));
        };
        // The descriptors after this one have at least one character of ID each.
        let later = (count - index - 1) * (DESCRIPTOR_LEN + 1);
        let Some(descriptor) = self.descriptor() else {
            return Err(self.incomplete(id_start, 1 + later, available));
        };
        let len = descriptor.id_len.get();
        if len == 0 {
            return Err(Error::empty_id(index, at));
        }
        let Some(id_end) = id_start.checked_add(len).filter(beyond) else {
            let what = format!("has an ID of {len:#x} bytes at {id_start:#x}");
            return Err(beyond_end(index, id_start, available, &what));
        };
        self.next().ok_or_else(|| self.incomplete(id_end, later, available))
    }

    /// Asks for at least `more` bytes from `start` on, and for at least twice the present ones, so that few rounds are enough
    /// for IDs of any length; for no more than there are, also if the sum is larger than any number.
    fn incomplete(&self, start: u64, more: u64, available: u64) -> Error {
        let twice = self.data.len() as u64 * 2;
        Error::incomplete(start.saturating_add(more).max(twice).min(available))
    }
}

/// The entries of a bundle, from [`Bundle::entries`].
#[derive(Clone)]
#[must_use = "iterators are lazy and do nothing unless consumed"]
struct Entries<'data> {
    data: &'data [u8],
    walk: Walk<'data>,
    left: Range<usize>,
}

impl<'data> Iterator for Entries<'data> {
    type Item = Entry<'data>;

    fn next(&mut self) -> Option<Self::Item> {
        let index = self.left.next()?;
        let NamedEntry { id, offset, size } = self.walk.next()?;
        Some(Entry { data: self.data, index, id, offset, size })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.left.size_hint()
    }
}

impl ExactSizeIterator for Entries<'_> {}

/// An entry of a bundle: one code object. Two entries are equal if that is the same; the code objects are not
/// compared.
pub struct Entry<'data> {
    /// The bytes of the container that are in memory.
    data: &'data [u8],
    index: usize,
    id: &'data [u8],
    offset: u64,
    size: u64,
}

impl Entry<'_> {
    fn parts(&self) -> (usize, &[u8], u64, u64) {
        (self.index, self.id, self.offset, self.size)
    }
}

impl PartialEq for Entry<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl<'data> Entry<'data> {
    /// Returns the index of the entry, from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the bundle entry ID as stored. Never empty.
    #[must_use]
    pub fn id(&self) -> &'data [u8] {
        self.id
    }

    /// Returns the bundle entry ID as text.
    ///
    /// # Errors
    ///
    /// [`Id`](crate::ErrorKind::Id).
    pub fn id_str(&self) -> Result<&'data str, Error> {
        str::from_utf8(self.id).map_err(|error| Error::id_not_utf8(self.index, &error))
    }

    /// Returns the offset of the code object, in bytes from the start of the bundle. For an empty one this is
    /// anywhere.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the length of the code object in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the code object, or `None` when it is not all in memory (see [`Bundle::parse_prefix`]).
    #[must_use]
    pub fn payload(&self) -> Option<&'data [u8]> {
        // Nothing at all is always in memory.
        if self.size == 0 {
            return Some(&[]);
        }
        slice(self.data, self.offset, self.size)
    }
}

impl fmt::Debug for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("index", &self.index)
            .field("id", &format_args!("\"{}\"", self.id.escape_ascii()))
            .field("offset", &self.offset)
            .field("size", &self.size)
            .finish()
    }
}

/// Reads bundles that lie one after the other in `data`, as in the section `.hip_fatbin` of a
/// linked program.
///
/// Each comes with the offset in bytes of its start in `data`. A bundle ends where its last
/// entry does ([`Bundle::end`]): payloads that contain bundles themselves are not searched.
/// Zeros before, between and after bundles are skipped, whatever their number. Anything else
/// ends the walk with an error, and after an error there is nothing but `None`.
///
/// # Errors
///
/// As [`Bundle::parse`] for a damaged bundle, with its place; for bytes that are neither zero nor a bundle,
/// [`NotABundle`](crate::ErrorKind::NotABundle) at the start of `data` and
/// [`TrailingData`](crate::ErrorKind::TrailingData) after it. Compressed bundles, which this crate does not read,
/// are such.
pub fn bundles(data: &[u8]) -> impl Iterator<Item = Result<(u64, Bundle<'_>), Error>> + Clone {
    byte_parts::concatenated(data, |rest, offset| {
        let bundle = Bundle::parse(rest).map_err(|error| error.in_bundle(offset))?;
        let end = bundle.end();
        Ok((bundle, end))
    })
}

/// Returns `len` bytes at `offset`.
fn slice(data: &[u8], offset: u64, len: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(usize::try_from(len).ok()?)?;
    data.get(start..end)
}
