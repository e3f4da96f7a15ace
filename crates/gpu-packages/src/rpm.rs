//! RPM packages: two headers, and a compressed cpio file.
//!
//! ```text
//! lead              96 bytes, ED AB EE DB
//! signature header  8E AD E8 01, 4 reserved bytes, entries (u32, big-endian), data size (u32), padded to 8
//! header            the same, not padded; entries of 16 bytes: tag, type, offset, count
//! payload           cpio (newc), compressed
//! ```

use std::io::{self, Read};

use zerocopy::big_endian::U32;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned, transmute_ref};

use crate::error::{Error, ErrorKind};
use crate::reading::read_full;
use crate::text::until_nul;

/// The first bytes of an RPM package.
pub(crate) const MAGIC: [u8; 4] = [0xed, 0xab, 0xee, 0xdb];
const LEAD: usize = 96;
/// The most bytes of a header: what `rpm` itself allows.
const MAX_HEADER: u64 = 256 << 20;

/// Sizes and names of files, from the header: cpio files of packages with files of 4 GiB or more leave them out.
#[derive(Debug, Default)]
pub(crate) struct Files {
    data: Vec<u8>,
    sizes: Numbers,
    /// The places of the names in the data.
    bases: Vec<u32>,
    directories: Vec<u32>,
    /// For each name, the index of its directory.
    indexes: Numbers,
}

/// Numbers of one width in the data of a header.
#[derive(Debug, Default)]
struct Numbers {
    start: usize,
    count: usize,
    width: usize,
}

impl Numbers {
    fn get(&self, data: &[u8], index: usize) -> Option<u64> {
        let start = self.start.checked_add(index.checked_mul(self.width)?)?;
        let bytes = data.get(start..start.checked_add(self.width)?);
        let bytes = bytes.filter(|_| index < self.count)?;
        Some(bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }
}

impl Files {
    /// Returns the size and the name of a file.
    pub(crate) fn get(&self, index: u32) -> Option<(u64, Vec<u8>)> {
        let at = usize::try_from(index).ok()?;
        let size = self.sizes.get(&self.data, at)?;
        Some((size, self.name(at).unwrap_or_else(|| format!("file {index}").into_bytes())))
    }

    fn name(&self, at: usize) -> Option<Vec<u8>> {
        let directory = usize::try_from(self.indexes.get(&self.data, at)?).ok()?;
        let directory = self.directories.get(directory).map_or(Some(&[][..]), |&at| self.text(at));
        Some([directory?, self.text(*self.bases.get(at)?)?].concat())
    }

    fn text(&self, at: u32) -> Option<&[u8]> {
        self.data.get(usize::try_from(at).ok()?..).map(until_nul)
    }
}

/// Reads everything before the payload, and returns what it says of the files.
pub(crate) fn read_headers(reader: &mut dyn Read) -> Result<Files, Error> {
    let mut lead = [0; LEAD];
    if read_full(reader, &mut lead)?.len() < LEAD || !lead.starts_with(&MAGIC) {
        let text = "rpm: expected a lead of 96 bytes";
        return Err(Error::at(ErrorKind::Truncated, 0, text));
    }
    let mut at = LEAD as u64;
    let (_, signature_len) = read_header(reader, at, false)?;
    at += signature_len;
    let padding = at.next_multiple_of(8) - at;
    io::copy(&mut Read::take(&mut *reader, padding), &mut io::sink())?;
    Ok(read_header(reader, at + padding, true)?.0)
}

/// Start of a header; the index and its data follow.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
struct Intro {
    /// 8E AD E8 01.
    magic: [u8; 4],
    reserved: [u8; 4],
    /// Number of entries of the index.
    entries: U32,
    /// Size in bytes of the data.
    size: U32,
}

/// Entry of an index.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
struct IndexEntry {
    tag: U32,
    /// Type of the values.
    kind: U32,
    /// Offset of the values in the data.
    start: U32,
    /// Number of values.
    count: U32,
}

fn read_header(reader: &mut dyn Read, at: u64, is_main: bool) -> Result<(Files, u64), Error> {
    let mut intro = Intro::new_zeroed();
    let read = read_full(reader, intro.as_mut_bytes())?.len();
    if read < size_of::<Intro>() || intro.magic != [0x8e, 0xad, 0xe8, 1] {
        let text = "rpm: expected a header, 8e ad e8 01";
        return Err(Error::at(ErrorKind::Malformed, at, text));
    }
    let index_len = u64::from(intro.entries) * size_of::<IndexEntry>() as u64;
    let len = index_len + u64::from(intro.size);
    if len > MAX_HEADER {
        let text = format!("rpm: a header of {len} bytes exceeds the limit of {MAX_HEADER} bytes");
        return Err(Error::at(ErrorKind::Limit, at, text));
    }
    let total = len + size_of::<Intro>() as u64;
    if !is_main {
        let skipped = io::copy(&mut reader.take(len), &mut io::sink())?;
        return if skipped == len {
            Ok((Files::default(), total))
        } else {
            Err(truncated(at, len, skipped))
        };
    }
    let (mut index, mut data) = (Vec::new(), Vec::new());
    Read::take(&mut *reader, index_len).read_to_end(&mut index)?;
    reader.take(intro.size.into()).read_to_end(&mut data)?;
    let read = (index.len() + data.len()) as u64;
    if read < len {
        return Err(truncated(at, len, read));
    }
    // Each tag counts once, the last time that it is there: the values are read once, whatever their number.
    let mut lasts = [None; TAGS.len()];
    for entry in index.as_chunks::<{ size_of::<IndexEntry>() }>().0 {
        let entry: &IndexEntry = transmute_ref!(entry);
        let known = (entry.tag.get(), entry.kind.get());
        if let Some(nth) = TAGS.iter().position(|&tag| tag == known)
            && let Some(last) = lasts.get_mut(nth)
        {
            let (start, count) = (entry.start.into(), entry.count.into());
            *last = Some(Values { start, count, at });
        }
    }
    let [sizes, long_sizes, indexes, bases, directories] = lasts;
    let numbers = |values: Option<Values>, width| {
        values.map_or(Ok(Numbers::default()), |values| values.numbers(&data, width))
    };
    let texts =
        |values: Option<Values>| values.map_or(Ok(Vec::new()), |values| values.texts(&data));
    let sizes = match long_sizes {
        Some(_) => numbers(long_sizes, 8)?,
        None => numbers(sizes, 4)?,
    };
    let (indexes, bases, directories) = (numbers(indexes, 4)?, texts(bases)?, texts(directories)?);
    Ok((Files { data, sizes, bases, directories, indexes }, total))
}

/// Tag and type of the entries that are read: FILESIZES, LONGFILESIZES, DIRINDEXES, BASENAMES, DIRNAMES.
const TAGS: [(u32, u32); 5] = [(1028, 4), (5008, 5), (1116, 4), (1117, 8), (1118, 8)];

/// The values of an entry.
#[derive(Clone, Copy)]
struct Values {
    start: u64,
    count: u64,
    /// Place of the header.
    at: u64,
}

impl Values {
    fn bad(self) -> Error {
        let text = format!("rpm: {} values of the files are not in the header", self.count);
        Error::at(ErrorKind::Malformed, self.at, text)
    }

    fn numbers(self, data: &[u8], width: usize) -> Result<Numbers, Error> {
        let [start, count] = [self.start, self.count].map(|n| usize::try_from(n).ok());
        let end = |start: usize, count: usize| start.checked_add(count.checked_mul(width)?);
        match (start, count) {
            (Some(start), Some(count)) if end(start, count).is_some_and(|n| n <= data.len()) => {
                Ok(Numbers { start, count, width })
            }
            _ => Err(self.bad()),
        }
    }

    /// Returns the places of texts that end with a NUL.
    fn texts(self, data: &[u8]) -> Result<Vec<u32>, Error> {
        let mut at = usize::try_from(self.start).map_err(|_| self.bad())?;
        let mut found = Vec::new();
        for _ in 0..self.count {
            let rest = data.get(at..).ok_or_else(|| self.bad())?;
            found.push(u32::try_from(at).map_err(|_| self.bad())?);
            let end = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
            at += end + 1;
        }
        Ok(found)
    }
}

fn truncated(at: u64, expected: u64, found: u64) -> Error {
    let text = format!("rpm header: expected {expected} bytes, found {found}");
    Error::at(ErrorKind::Truncated, at, text)
}
