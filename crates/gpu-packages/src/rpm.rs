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

/// Sizes of files, from the header: cpio files of packages with files of 4 GiB or more leave them out.
#[derive(Debug, Default)]
pub(crate) struct Sizes(Vec<u64>);

impl Sizes {
    pub(crate) fn get(&self, index: u32) -> Option<u64> {
        self.0.get(usize::try_from(index).ok()?).copied()
    }
}

/// Reads everything before the payload, and returns the sizes of the files.
pub(crate) fn read_headers(reader: &mut dyn Read) -> Result<Sizes, Error> {
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

fn read_header(reader: &mut dyn Read, at: u64, is_main: bool) -> Result<(Sizes, u64), Error> {
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
            true => Ok((Sizes::default(), total)),
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
    let mut sizes = Vec::new();
    for entry in index.chunks_exact(16) {
        let (tag, kind) = (number(entry, 0), number(entry, 4));
        // FILESIZES in 32 bits, LONGFILESIZES in 64.
        let width = match (tag, kind) {
            (1028, 4) => 4,
            (5008, 5) => 8,
            _ => continue,
        };
        let start = usize::try_from(number(entry, 8)).unwrap_or(usize::MAX);
        let count = usize::try_from(number(entry, 12)).unwrap_or(usize::MAX);
        let len = count.checked_mul(width);
        let values = len.and_then(|len| data.get(start..)?.get(..len));
        let values = values.ok_or_else(|| {
            let text = format!("rpm: the {count} sizes of files are not in the header");
            Error::at(ErrorKind::Malformed, at, text)
        })?;
        let value =
            |bytes: &[u8]| bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte));
        sizes = values.chunks_exact(width).map(value).collect();
    }
    Ok((Sizes(sizes), total))
}

fn truncated(at: u64, expected: u64, found: u64) -> Error {
    let text = format!("rpm header: expected {expected} bytes, found {found}");
    Error::at(ErrorKind::Truncated, at, text)
}
