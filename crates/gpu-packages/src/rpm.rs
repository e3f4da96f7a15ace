//! RPM packages: two headers, and a compressed cpio file.
//!
//! ```text
//! lead              96 bytes, ED AB EE DB
//! signature header  8E AD E8 01, 4 reserved bytes, entries (u32, big-endian), data size (u32), padded to 8
//! header            the same, not padded; entries of 16 bytes: tag, type, offset, count
//! payload           cpio (newc), compressed
//! ```

use std::io::{self, Read};

use crate::error::{Error, ErrorKind};
use crate::limits::read_full;

/// The first bytes of an RPM package.
pub(crate) const MAGIC: [u8; 4] = [0xed, 0xab, 0xee, 0xdb];
const LEAD: usize = 96;
/// The most bytes of a header: what `rpm` itself allows.
const MAX_HEADER: u64 = 256 << 20;

/// Sizes and names of files, from the header: cpio files of packages with files of 4 GiB or more leave them out.
#[derive(Debug, Default)]
pub(crate) struct Files {
    sizes: Vec<u64>,
    names: Vec<Vec<u8>>,
}

impl Files {
    /// Returns the size and the name of a file.
    pub(crate) fn get(&self, index: u32) -> Option<(u64, Vec<u8>)> {
        let at = usize::try_from(index).ok()?;
        let name = self.names.get(at).cloned();
        Some((*self.sizes.get(at)?, name.unwrap_or_else(|| format!("file {index}").into_bytes())))
    }
}

/// Reads everything before the payload, and returns what it says of the files.
pub(crate) fn read_headers(reader: &mut dyn Read) -> Result<Files, Error> {
    let mut lead = [0; LEAD];
    if read_full(reader, &mut lead)? < LEAD || !lead.starts_with(&MAGIC) {
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

fn read_header(reader: &mut dyn Read, at: u64, is_main: bool) -> Result<(Files, u64), Error> {
    let mut intro = [0; 16];
    let read = read_full(reader, &mut intro)?;
    if read < intro.len() || !intro.starts_with(&[0x8e, 0xad, 0xe8, 1]) {
        let text = "rpm: expected a header, 8e ad e8 01";
        return Err(Error::at(ErrorKind::Malformed, at, text));
    }
    let number = |bytes: &[u8], at: usize| super::be32(bytes, at).map_or(0, u64::from);
    let (entries, size) = (number(&intro, 8), number(&intro, 12));
    let index_len = entries * 16;
    let len = index_len + size;
    if len > MAX_HEADER {
        let text = format!("rpm: a header of {len} bytes exceeds the limit of {MAX_HEADER} bytes");
        return Err(Error::at(ErrorKind::Limit, at, text));
    }
    let total = len + intro.len() as u64;
    if !is_main {
        let skipped = io::copy(&mut reader.take(len), &mut io::sink())?;
        return match skipped == len {
            true => Ok((Files::default(), total)),
            false => Err(truncated(at, len, skipped)),
        };
    }
    let mut bytes = Vec::new();
    let read = reader.take(len).read_to_end(&mut bytes)? as u64;
    if read < len {
        return Err(truncated(at, len, read));
    }
    let split = usize::try_from(index_len).unwrap_or(usize::MAX);
    let (index, data) = bytes.split_at_checked(split).unwrap_or((&[], &[]));
    let mut files = Files::default();
    let (mut base_names, mut directories, mut indexes) = (Vec::new(), Vec::new(), Vec::new());
    for entry in index.chunks_exact(16) {
        let [tag, kind, start, count] = [0, 4, 8, 12].map(|at| number(entry, at));
        let values = Values { data, start, count, at };
        match (tag, kind) {
            // FILESIZES in 32 bits, LONGFILESIZES in 64.
            (1028, 4) => files.sizes = values.numbers(4)?,
            (5008, 5) => files.sizes = values.numbers(8)?,
            (1116, 4) => indexes = values.numbers(4)?,
            (1117, 8) => base_names = values.texts()?,
            (1118, 8) => directories = values.texts()?,
            _ => {}
        }
    }
    // A hostile header could repeat a long directory often.
    let mut left = MAX_HEADER;
    for (base, index) in base_names.iter().zip(indexes) {
        let directory = usize::try_from(index).ok().and_then(|at| directories.get(at));
        let name = [directory.copied().unwrap_or_default(), base].concat();
        match left.checked_sub(name.len() as u64) {
            Some(rest) => left = rest,
            None => return Err(Error::at(ErrorKind::Limit, at, "rpm: names exceed 256 MiB")),
        }
        files.names.push(name);
    }
    Ok((files, total))
}

/// The values of an entry.
struct Values<'d> {
    data: &'d [u8],
    start: u64,
    count: u64,
    /// Place of the header.
    at: u64,
}

impl<'d> Values<'d> {
    fn bad(&self) -> Error {
        let text = format!("rpm: {} values of the files are not in the header", self.count);
        Error::at(ErrorKind::Malformed, self.at, text)
    }

    fn rest(&self) -> Result<&'d [u8], Error> {
        let start = usize::try_from(self.start).ok();
        start.and_then(|start| self.data.get(start..)).ok_or_else(|| self.bad())
    }

    fn numbers(&self, width: usize) -> Result<Vec<u64>, Error> {
        let count = usize::try_from(self.count).ok();
        let values = count
            .and_then(|count| self.rest().ok()?.get(..count.checked_mul(width)?))
            .ok_or_else(|| self.bad())?;
        let value =
            |bytes: &[u8]| bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte));
        Ok(values.chunks_exact(width).map(value).collect())
    }

    fn texts(&self) -> Result<Vec<&'d [u8]>, Error> {
        let mut texts = self.rest()?.split(|&byte| byte == 0);
        let mut found = Vec::new();
        for _ in 0..self.count {
            found.push(texts.next().ok_or_else(|| self.bad())?);
        }
        Ok(found)
    }
}

fn truncated(at: u64, expected: u64, found: u64) -> Error {
    let text = format!("rpm header: expected {expected} bytes, found {found}");
    Error::at(ErrorKind::Truncated, at, text)
}
