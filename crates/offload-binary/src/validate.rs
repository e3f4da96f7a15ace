//! The rules that hold before a binary is handed out. Everything here works on the binary's own size and ignores
//! the bytes after it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use zerocopy::FromBytes;

use crate::MAGIC;
use crate::compressed_header::CompressedBinary;
use crate::error::{Error, ErrorKind};
use crate::wire::{
    ENTRY_LEN, EntryHeader, FormatVersion, HEADER_LEN, HEADER_V3_LEN, Header, HeaderV3,
    StringEntries, records,
};

/// The parts of a valid binary.
pub(crate) struct Parts<'data> {
    pub(crate) version: FormatVersion,
    pub(crate) size: u64,
    /// The bytes of the binary that are in memory.
    pub(crate) data: &'data [u8],
    pub(crate) entries: &'data [EntryHeader],
}

pub(crate) fn parse(prefix: &[u8], available: u64) -> Result<Parts<'_>, Error> {
    let available = available.max(prefix.len() as u64);
    let (header, version, compressed) = head(prefix, available)?;
    if let Some(binary) = compressed {
        return Err(Error::of_compressed(binary));
    }
    let size = header.size.get();
    let data = usize::try_from(size).ok().and_then(|size| prefix.get(..size)).unwrap_or(prefix);
    let entries = entries(&header, version, data)?;
    let regions = regions(&header, version, entries)?;
    let needed = strings(version, size, data, entries, &regions)?;
    if needed > data.len() as u64 {
        return Err(Error::incomplete(needed));
    }
    Ok(Parts { version, size, data, entries })
}

/// Returns the least size of a plain binary. Without entries a version 2 binary is 40 bytes long and a version 3
/// binary 48, as LLVM 23 and 24 write them.
pub(crate) const fn minimum_size(version: FormatVersion) -> u64 {
    match version {
        FormatVersion::V1 => HEADER_LEN + ENTRY_LEN,
        FormatVersion::V2 | FormatVersion::V3 => version.header_len() + 8,
    }
}

/// Returns the header of a binary, once its own fields make sense.
pub(crate) fn head(
    prefix: &[u8],
    available: u64,
) -> Result<(Header, FormatVersion, Option<CompressedBinary>), Error> {
    let available = available.max(prefix.len() as u64);
    // Every byte of a short prefix must match: more bytes cannot make an offload binary of a wrong one.
    let start = prefix.get(..MAGIC.len()).unwrap_or(prefix);
    if !MAGIC.starts_with(start) {
        let mut found = [0; MAGIC.len()];
        found.iter_mut().zip(start).for_each(|(to, from)| *to = *from);
        let message =
            format!("offload binary starts with bytes {found:02x?}, expected {MAGIC:02x?}");
        return Err(Error::at(ErrorKind::NotABinary, 0, message));
    }
    let truncated = |needed: u64| {
        let message =
            format!("offload binary header needs {needed} bytes, but only {available} are left");
        Error::truncated(available, message)
    };
    if available < HEADER_LEN {
        return Err(truncated(HEADER_LEN));
    }
    let Ok((header, _)) = Header::read_from_prefix(prefix) else {
        // The one entry usually follows the header, so ask for both at once.
        return Err(Error::incomplete(available.min(HEADER_V3_LEN + ENTRY_LEN)));
    };
    let number = header.version.get();
    let version = FormatVersion::from_number(number).ok_or_else(|| Error::version(number))?;
    let size = header.size.get();
    let beyond_end = || {
        let message =
            format!("offload binary has size {size:#x}, but only {available:#x} bytes are left");
        Error::truncated(available, message)
    };
    if version == FormatVersion::V3 {
        if available < HEADER_V3_LEN {
            return Err(truncated(HEADER_V3_LEN));
        }
        let Ok((HeaderV3 { inflated_size, .. }, _)) = HeaderV3::read_from_prefix(prefix) else {
            let needed = size.clamp(HEADER_V3_LEN, HEADER_V3_LEN + ENTRY_LEN).min(available);
            return Err(Error::incomplete(needed));
        };
        if inflated_size != 0 {
            let (inflated_size, entries) = (inflated_size.get(), header.entries_extent.get());
            let binary = CompressedBinary { size, inflated_size, entries };
            compressed(&binary, header.entries_offset.get())?;
            return if size > available {
                Err(beyond_end())
            } else {
                Ok((header, version, Some(binary)))
            };
        }
    }
    let minimum = minimum_size(version);
    if size < minimum {
        return Err(Error::malformed(0, too_small(size, minimum)));
    }
    if !size.is_multiple_of(8) {
        let message = format!("offload binary has size {size}, expected a multiple of 8");
        return Err(Error::malformed(0, message));
    }
    if size > available {
        return Err(beyond_end());
    }
    Ok((header, version, None))
}

/// Returns the text of the error of a size that no binary has.
#[cold]
fn too_small(size: u64, minimum: u64) -> String {
    format!("offload binary has size {size}, expected at least {minimum}")
}

/// Returns the error of entries that are not after the header.
#[cold]
fn inside_header(version: FormatVersion, offset: u64) -> Error {
    let message = format!(
        "offload binary has its entries at {offset:#x}, inside the header of {} bytes",
        version.header_len()
    );
    Error::malformed(offset, message)
}

/// Returns the error of a table of entries that does not end inside the binary.
#[cold]
fn entries_beyond(offset: u64, count: u64, size: u64) -> Error {
    let message =
        format!("offload binary has {count} entries at {offset:#x}, beyond its end at {size:#x}");
    Error::malformed(offset, message)
}

/// Returns the table of entries.
fn entries<'data>(
    header: &Header,
    version: FormatVersion,
    data: &'data [u8],
) -> Result<&'data [EntryHeader], Error> {
    let size = header.size.get();
    let offset = header.entries_offset.get();
    let count = match version {
        FormatVersion::V1 => 1,
        FormatVersion::V2 | FormatVersion::V3 => header.entries_extent.get(),
    };
    if offset < version.header_len() {
        return Err(inside_header(version, offset));
    }
    let beyond = || entries_beyond(offset, count, size);
    let end = range_end(offset, count, ENTRY_LEN, size).ok_or_else(beyond)?;
    if version == FormatVersion::V1 {
        let entry_size = header.entries_extent.get();
        // A size too small for an entry is ignored, as LLVM 22 and 23 do.
        if range_end(offset, entry_size, 1, size).is_none() {
            let message = format!(
                "offload binary has an entry of {entry_size:#x} bytes at {offset:#x}, beyond its end at {size:#x}"
            );
            return Err(Error::malformed(offset, message));
        }
    }
    if end > data.len() as u64 {
        return Err(Error::incomplete(end));
    }
    records(data, offset, count).ok_or_else(beyond)
}

/// A range of bytes that nothing else may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Region {
    start: u64,
    end: u64,
    owner: Owner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Header,
    Entries,
    /// The string entries of this entry.
    Strings(u64),
    /// The image of this entry.
    Image(u64),
}

/// Returns the ranges of tables and images, in order of their offsets. Empty ones are left out.
///
/// As tables do not overlap, the work is linear: entries cannot all claim the same long table of strings.
fn regions(
    header: &Header,
    version: FormatVersion,
    entries: &[EntryHeader],
) -> Result<Vec<Region>, Error> {
    let size = header.size.get();
    let mut regions = Vec::with_capacity(entries.len() * 2 + 2);
    regions.push(Region { start: 0, end: version.header_len(), owner: Owner::Header });
    let start = header.entries_offset.get();
    let end = range_end(start, entries.len() as u64, ENTRY_LEN, size).unwrap_or(start);
    if start < end {
        regions.push(Region { start, end, owner: Owner::Entries });
    }
    for (entry, raw) in (0_u64..).zip(entries) {
        let (start, count) = (raw.string_offset.get(), raw.string_count.get());
        if count > 0 {
            let beyond =
                || beyond_end(entry, start, size, &format!("{count} string entries at {start:#x}"));
            let end =
                range_end(start, count, version.string_entry_len(), size).ok_or_else(beyond)?;
            regions.push(Region { start, end, owner: Owner::Strings(entry) });
        }
        let (start, image_size) = (raw.image_offset.get(), raw.image_size.get());
        let beyond = || {
            let what = format!("an image of {image_size:#x} bytes at {start:#x}");
            beyond_end(entry, start, size, &what)
        };
        let end = range_end(start, image_size, 1, size).ok_or_else(beyond)?;
        if image_size > 0 {
            regions.push(Region { start, end, owner: Owner::Image(entry) });
        }
    }
    regions.sort_unstable();
    for (first, second) in regions.iter().zip(regions.iter().skip(1)) {
        if first.end > second.start {
            return Err(overlap(version, first, second));
        }
    }
    Ok(regions)
}

/// Returns the error of a part of an entry that does not end inside the binary.
#[cold]
fn beyond_end(entry: u64, offset: u64, size: u64, what: &str) -> Error {
    let message = format!("has {what}, beyond the end of the binary at {size:#x}");
    Error::in_entry(entry, offset, &message)
}

/// Returns the error for two regions that share bytes, `first` being the one that starts first.
#[cold]
fn overlap(version: FormatVersion, first: &Region, second: &Region) -> Error {
    let with = |entry, at, what, others| {
        let message = format!("has its {what} at {at:#x}, which {others}");
        Error::in_entry(entry, at, &message)
    };
    let image = |entry, at| with(entry, at, "image", "overlaps the header or a table");
    let strings = |entry, at| with(entry, at, "string entries", "overlap other tables");
    match (first.owner, second.owner) {
        (Owner::Image(entry), Owner::Image(later)) => {
            Error::images_overlap(entry, later, second.start)
        }
        (Owner::Image(entry), _) => image(entry, first.start),
        (_, Owner::Image(entry)) => image(entry, second.start),
        (_, Owner::Strings(entry)) => strings(entry, second.start),
        (Owner::Strings(entry), _) => strings(entry, first.start),
        (_, Owner::Header | Owner::Entries) => inside_header(version, second.start),
    }
}

/// Checks every string entry; returns how much of the binary they need to be in memory.
fn strings(
    version: FormatVersion,
    size: u64,
    data: &[u8],
    entries: &[EntryHeader],
    regions: &[Region],
) -> Result<u64, Error> {
    let in_memory = data.len() as u64;
    let tables = regions
        .iter()
        .filter(|region| matches!(region.owner, Owner::Strings(_)))
        .map(|region| region.end)
        .max()
        .unwrap_or(0);
    if tables > in_memory {
        return Ok(tables);
    }
    let gaps = gaps(size, data, regions);
    let mut needed = 0;
    for (entry, raw) in (0_u64..).zip(entries) {
        let table = string_entries(version, data, raw);
        for (string, raw) in (0_u64..).zip((0..table.len()).filter_map(|i| table.get(i))) {
            let offset = raw.key_offset;
            let place = StringPlace { entry, string, offset, size };
            let end = terminated(&gaps, offset, size, in_memory)
                .map_err(|fault| place.error(fault, "key", None))?;
            needed = needed.max(end);

            let offset = raw.value_offset;
            let end = match raw.value_size {
                None => terminated(&gaps, offset, size, in_memory),
                Some(value_size) => sized(&gaps, offset, value_size, size),
            };
            let place = StringPlace { offset, ..place };
            let end = end
                .map_err(|fault| place.error(fault, "value", Some(raw.value_size.unwrap_or(0))))?;
            needed = needed.max(end);
        }
    }
    Ok(needed)
}

/// Returns the string entries of one image; none where they are not in memory.
pub(crate) fn string_entries<'data>(
    version: FormatVersion,
    data: &'data [u8],
    raw: &EntryHeader,
) -> StringEntries<'data> {
    let (offset, count) = (raw.string_offset.get(), raw.string_count.get());
    let entries = match version {
        FormatVersion::V1 => records(data, offset, count).map(StringEntries::V1),
        FormatVersion::V2 | FormatVersion::V3 => {
            records(data, offset, count).map(StringEntries::V2)
        }
    };
    entries.unwrap_or(StringEntries::V1(&[]))
}

/// Bytes that belong to no table and no image: where strings may lie.
struct Gap {
    start: u64,
    end: u64,
    /// The last NUL of the gap that is in memory.
    last_nul: Option<u64>,
}

/// An error in the place of a string.
#[derive(Clone, Copy)]
enum Fault {
    BeyondEnd,
    NotTerminated,
    Overlap,
}

/// The place of a string.
struct StringPlace {
    entry: u64,
    string: u64,
    offset: u64,
    size: u64,
}

impl StringPlace {
    #[cold]
    fn error(&self, fault: Fault, what: &str, len: Option<u64>) -> Error {
        let &StringPlace { entry, string, offset, size } = self;
        let what = format!("the {what} of string {string} at {offset:#x}");
        let len = len.map(|len| format!(" with {len:#x} bytes")).unwrap_or_default();
        let message = match fault {
            Fault::BeyondEnd => return beyond_end(entry, offset, size, &(what + &len)),
            Fault::NotTerminated => {
                format!("has {what} without a nul before the end of the binary")
            }
            Fault::Overlap => format!(
                "has a key or value of string {string} at {offset:#x}, which overlaps a table or an image"
            ),
        };
        Error::in_entry(entry, offset, &message)
    }
}

/// Returns the gaps around `regions`, in order. Looking for the last NUL of each once makes the check of
/// any number of strings linear.
fn gaps(size: u64, data: &[u8], regions: &[Region]) -> Vec<Gap> {
    let starts = regions.iter().map(|region| region.end);
    let ends = regions.iter().skip(1).map(|region| region.start).chain([size]);
    starts
        .zip(ends)
        .map(|(start, end)| {
            let in_memory = end.min(data.len() as u64);
            let bytes = usize::try_from(start)
                .ok()
                .zip(usize::try_from(in_memory).ok())
                .and_then(|(start, end)| data.get(start..end));
            let last_nul = bytes.and_then(|bytes| bytes.iter().rposition(|&byte| byte == 0));
            Gap { start, end, last_nul: last_nul.map(|at| start + at as u64) }
        })
        .collect()
}

/// Returns the gap that holds the byte at `offset`.
fn gap_at(gaps: &[Gap], offset: u64, size: u64) -> Result<&Gap, Fault> {
    if offset >= size {
        return Err(Fault::BeyondEnd);
    }
    let after = gaps.partition_point(|gap| gap.start <= offset);
    after
        .checked_sub(1)
        .and_then(|index| gaps.get(index))
        .filter(|gap| offset < gap.end)
        .ok_or(Fault::Overlap)
}

/// Checks a string ended by NUL; returns how much of the binary it needs to be in memory, which
/// is 0 when it is there.
fn terminated(gaps: &[Gap], offset: u64, size: u64, in_memory: u64) -> Result<u64, Fault> {
    let gap = gap_at(gaps, offset, size)?;
    match gap.last_nul {
        Some(last_nul) if last_nul >= offset => Ok(0),
        // The NUL may lie in the part that is not in memory.
        _ if gap.end > in_memory => Ok(gap.end),
        _ if gap.end == size => Err(Fault::NotTerminated),
        _ => Err(Fault::Overlap),
    }
}

/// Checks a string with a size; returns its end.
fn sized(gaps: &[Gap], offset: u64, len: u64, size: u64) -> Result<u64, Fault> {
    let end = range_end(offset, len, 1, size).ok_or(Fault::BeyondEnd)?;
    if len == 0 {
        return Ok(0);
    }
    let gap = gap_at(gaps, offset, size)?;
    if end > gap.end {
        return Err(Fault::Overlap);
    }
    Ok(end)
}

/// Returns `offset + count * len`, if it does not exceed `size`.
pub(crate) fn range_end(offset: u64, count: u64, len: u64, size: u64) -> Option<u64> {
    let end = offset.checked_add(count.checked_mul(len)?)?;
    (end <= size).then_some(end)
}

/// Checks the numbers of a header of version 3 that has an inflated size.
pub(crate) fn compressed(binary: &CompressedBinary, entries_offset: u64) -> Result<(), Error> {
    let minimum = HEADER_V3_LEN + 1;
    if binary.size < minimum {
        let kind = match binary.size {
            HEADER_V3_LEN => ErrorKind::EmptyStream,
            _ => ErrorKind::Malformed,
        };
        return Err(Error::at(kind, 0, too_small(binary.size, minimum)));
    }
    let offset = entries_offset;
    if offset != HEADER_V3_LEN {
        let message = format!(
            "compressed offload binary has its entries at {offset:#x}, expected {HEADER_V3_LEN:#x}"
        );
        return Err(Error::malformed(offset, message));
    }
    let (size, minimum) = (binary.inflated_size, minimum_size(FormatVersion::V3));
    let inflated = |expected: &str| {
        let message =
            format!("compressed offload binary has inflated size {size}, expected {expected}");
        Error::malformed(0, message)
    };
    if size < minimum {
        return Err(inflated(&format!("at least {minimum}")));
    }
    if !size.is_multiple_of(8) {
        return Err(inflated("a multiple of 8"));
    }
    let count = binary.entries;
    match range_end(offset, count, ENTRY_LEN, size) {
        Some(_) => Ok(()),
        None => Err(entries_beyond(offset, count, size)),
    }
}
