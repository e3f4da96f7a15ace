//! xz streams (The .xz File Format 1.2): what their headers say, and blocks that are compressed independently.

use std::io::Write;
use std::num::NonZeroUsize;

use byte_parts::internal;
use lzma_rust2::{CheckType, FilterConfig, FilterType, LzmaOptions, XzOptions, XzWriter};

use crate::error::Error;

const HEADER: usize = 12;
const FOOTER: usize = 12;
/// Bytes that all threads together may take.
const MEMORY: u64 = 1 << 30;

/// Choices of an encoder beside the level.
#[derive(Clone, Debug, Default)]
pub(super) struct Form {
    check: CheckType,
    filters: Vec<FilterConfig>,
}

impl Form {
    /// Returns the level and form of a stream that starts like this; the default ones where it does not say.
    pub(super) fn read(head: &[u8]) -> (u32, Self) {
        let check = match head.get(7) {
            Some(0) => CheckType::None,
            Some(1) => CheckType::Crc32,
            Some(10) => CheckType::Sha256,
            _ => CheckType::Crc64,
        };
        match read_filters(head.split_at_checked(HEADER).map_or(&[], |(_, block)| block)) {
            Some((dictionary, filters)) => (level_of(dictionary), Form { check, filters }),
            None => (6, Form { check, filters: Vec::new() }),
        }
    }
}

/// Returns the size of the dictionary in bytes and the filters before LZMA2 in the header of a block.
fn read_filters(mut block: &[u8]) -> Option<(u64, Vec<FilterConfig>)> {
    let block = &mut block;
    let [_, flags] = *block.split_off(..2)?.first_chunk()?;
    for size in [0x40, 0x80] {
        if flags & size != 0 {
            number(block)?;
        }
    }
    let mut filters = Vec::new();
    loop {
        let filter_type = FilterType::try_from(number(block)?).ok()?;
        let len = usize::try_from(number(block)?).ok()?;
        let property = match (filter_type, block.split_off(..len)?) {
            // The bits of the exponent, and one of the mantissa.
            (FilterType::Lzma2, &[bits @ ..=40]) => {
                return Some(((2 | u64::from(bits & 1)) << (bits / 2 + 11), filters));
            }
            (FilterType::Delta, &[distance]) => u32::from(distance) + 1,
            (FilterType::Delta | FilterType::Lzma2, _) => return None,
            (_, []) => 0,
            (_, start) => u32::from_le_bytes(*start.first_chunk()?),
        };
        filters.push(FilterConfig { filter_type, property });
        if filters.len() > 3 {
            return None;
        }
    }
}

/// Reads a number of up to nine bytes.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..63).step_by(7) {
        let byte = *bytes.split_off_first()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn push_number(mut number: u64, to: &mut Vec<u8>) {
    while let Some(rest @ 1..) = number.checked_shr(7) {
        to.push(number.to_le_bytes()[0] | 0x80);
        number = rest;
    }
    to.push(number.to_le_bytes()[0]);
}

/// Returns the highest level with a dictionary of at most this many bytes. Levels 3 and 4 have the same, as have 5 and
/// 6: the higher is never larger, and takes less than twice the time.
fn level_of(dictionary: u64) -> u32 {
    let dictionary_of = |level: &u32| u64::from(LzmaOptions::with_preset(*level).dict_size);
    (0..=9).rev().find(|level| dictionary_of(level) <= dictionary).unwrap_or(0)
}

/// An encoder of blocks.
#[derive(Debug)]
pub(super) struct Encoder {
    options: XzOptions,
}

impl Encoder {
    pub(super) fn new(level: u32, form: &Form) -> Self {
        let mut options = XzOptions::with_preset(level);
        options.check_type = form.check;
        options.filters.clone_from(&form.filters);
        Encoder { options }
    }

    /// Returns the bytes of a block, as `xz -T0` has them: three dictionaries, and at least 1 MiB.
    pub(super) fn block_size(&self) -> usize {
        (3 * self.options.lzma_options.dict_size as usize).max(1 << 20)
    }

    /// Returns the number of threads that there is memory for, at least one. Each has a block, and what it becomes.
    pub(super) fn most_threads(&self) -> NonZeroUsize {
        let each = u64::from(self.options.lzma_options.get_memory_usage()) << 10;
        let most = MEMORY / (each + 2 * self.block_size() as u64);
        usize::try_from(most).ok().and_then(NonZeroUsize::new).unwrap_or(NonZeroUsize::MIN)
    }

    /// Compresses a block, as a stream of its own.
    pub(super) fn block(&self, contents: &[u8]) -> Result<Vec<u8>, Error> {
        let mut writer = XzWriter::new(Vec::new(), self.options.clone())?;
        writer.write_all(contents)?;
        Ok(writer.finish()?)
    }

    fn flags(&self) -> [u8; 2] {
        [0, self.options.check_type as u8]
    }

    /// Returns the header of the stream.
    pub(super) fn header(&self) -> Vec<u8> {
        let flags = self.flags();
        [b"\xfd7zXZ\0", &flags[..], &crc32(&flags)].concat()
    }

    /// Returns the index, and the footer of the stream.
    pub(super) fn end(&self, index: &Index) -> Result<Vec<u8>, Error> {
        let mut end = vec![0];
        push_number(index.count, &mut end);
        end.extend_from_slice(&index.records);
        end.resize(end.len().next_multiple_of(4), 0);
        end.extend(crc32(&end));
        // In units of four bytes, less one. No file has 16 GiB of sizes of blocks.
        let size = u32::try_from(end.len() / 4 - 1);
        let size = size.map_err(|_| Error::internal(internal!("an xz index of 16 GiB")))?;
        let size = [&size.to_le_bytes()[..], &self.flags()].concat();
        end.extend(crc32(&size));
        end.extend(size);
        end.extend(b"YZ");
        Ok(end)
    }
}

/// The index of a stream.
#[derive(Debug, Default)]
pub(super) struct Index {
    count: u64,
    /// The sizes of each block.
    records: Vec<u8>,
}

impl Index {
    /// Adds the block of a stream of one, and returns its bytes.
    pub(super) fn add<'s>(&mut self, stream: &'s [u8]) -> Result<&'s [u8], Error> {
        let unexpected = || Error::internal(internal!("an xz stream of one block"));
        self.take(stream).ok_or_else(unexpected)
    }

    fn take<'s>(&mut self, stream: &'s [u8]) -> Option<&'s [u8]> {
        let (rest, footer) = stream.split_at_checked(stream.len().checked_sub(FOOTER)?)?;
        let size = u32::from_le_bytes(*footer.get(4..)?.first_chunk()?);
        let index_at = rest.len().checked_sub((usize::try_from(size).ok()? + 1) * 4)?;
        let (block, index) = rest.split_at_checked(index_at)?;
        let mut sizes = index.strip_prefix(&[0, 1])?;
        for _ in 0..2 {
            push_number(number(&mut sizes)?, &mut self.records);
        }
        self.count += 1;
        block.get(HEADER..)
    }
}

fn crc32(bytes: &[u8]) -> [u8; 4] {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum().to_le_bytes()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use lzma_rust2::XzReader;

    use super::*;

    #[test]
    fn check_and_filters_are_kept() {
        let contents: Vec<u8> = (0..300_000_u32).flat_map(|n| (n >> 12).to_le_bytes()).collect();
        for (check, filter_type, property) in [
            (CheckType::None, FilterType::BcjX86, 0),
            (CheckType::Crc32, FilterType::Delta, 4),
            (CheckType::Sha256, FilterType::BcjArm64, 4096),
        ] {
            let filters = vec![FilterConfig { filter_type, property }];
            let encoder = Encoder::new(0, &Form { check, filters });
            let (mut stream, mut index) = (encoder.header(), Index::default());
            for block in contents.chunks(encoder.block_size()) {
                stream.extend(index.add(&encoder.block(block).unwrap()).unwrap());
            }
            assert_eq!(index.count, 2);
            stream.extend(encoder.end(&index).unwrap());
            let mut found = Vec::new();
            XzReader::new(&stream[..], true).read_to_end(&mut found).unwrap();
            assert!(found == contents);
            let (level, form) = Form::read(&stream);
            assert_eq!((level, form.check), (0, check));
            let [filter] = &form.filters[..] else { panic!("{form:?}") };
            assert_eq!((filter.filter_type, filter.property), (filter_type, property));
        }
    }

    #[test]
    fn numbers_read_back() {
        for number in [0, 1, 127, 128, 300, 1 << 20, (1 << 63) - 1] {
            let mut bytes = Vec::new();
            push_number(number, &mut bytes);
            assert_eq!(super::number(&mut &bytes[..]), Some(number));
        }
        assert_eq!(number(&mut &[0xff; 12][..]), None);
    }
}
