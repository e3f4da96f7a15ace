//! SYCL images back to back, without a table: where each one ends.

use std::io;
use std::ops::Range;

use device_code::FileFormat;

use crate::source::Source;

const SPIRV_MAGIC: u32 = 0x0723_0203;
const SPIRV_HEADER: usize = 20;
/// Bytes that a block of a zstd frame can hold.
pub(super) const MAX_BLOCK: usize = 128 << 10;
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// An image whose end its own bytes tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Module {
    pub(super) range: Range<u64>,
    /// `true` for a zstd frame.
    pub(super) is_compressed: bool,
}

/// Returns whether a zstd frame starts with these bytes.
pub(super) fn is_zstd(head: &[u8]) -> bool {
    head.starts_with(&ZSTD_MAGIC)
}

/// Returns whether a SPIR-V module of this many bytes can start with these: its header has a magic, version 1, and no
/// schema (SPIR-V specification, 2.3).
pub(super) fn is_spirv_header(head: &[u8], size: u64) -> bool {
    let words: Vec<_> = head.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word)).collect();
    let words = match words.first() {
        Some(&magic) if magic == SPIRV_MAGIC.swap_bytes() => {
            words.into_iter().map(u32::swap_bytes).collect()
        }
        _ => words,
    };
    match words[..] {
        [SPIRV_MAGIC, version, _, bound, 0, ..] => {
            version & 0xffff_00ff == 0x0001_0000 && bound > 0 && size.is_multiple_of(4)
        }
        _ => false,
    }
}

/// Returns the image at the start of the window; `None` if there is neither a SPIR-V module nor a zstd frame that ends in
/// the window.
pub(super) fn module(source: &mut Source<'_>, window: &Range<u64>) -> io::Result<Option<Module>> {
    let head = source.peek(window, SPIRV_HEADER)?;
    let is_compressed = is_zstd(&head);
    let end = match is_compressed {
        true => frame_end(source, window)?,
        false if is_spirv_header(&head, 0) => Some(module_end(source, window, &head)?),
        false => None,
    };
    Ok(end.map(|end| Module { range: window.start..end, is_compressed }))
}

/// A module ends where another one starts, or zeros, which are no instruction, or the window ends.
fn module_end(source: &mut Source<'_>, window: &Range<u64>, head: &[u8]) -> io::Result<u64> {
    let is_big = head.first() == Some(&0x07);
    let mut at = window.start + SPIRV_HEADER as u64;
    let mut word = [0; 4];
    while window.end.saturating_sub(at) >= 4 {
        source.read_exact_at(at, &mut word)?;
        let number = if is_big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) };
        let words = u64::from(number >> 16);
        if words == 0 || number == SPIRV_MAGIC {
            return Ok(at);
        }
        at = at.saturating_add(4 * words);
    }
    Ok(at.min(window.end))
}

/// The end of a frame, by the headers of its blocks (RFC 8878, 3.1.1).
fn frame_end(source: &mut Source<'_>, window: &Range<u64>) -> io::Result<Option<u64>> {
    let head = source.peek(window, 18)?;
    let Some(header) = FrameHeader::parse(&head) else { return Ok(None) };
    let mut at = window.start + header.len;
    loop {
        if at >= window.end {
            return Ok(None);
        }
        let Some(&[a, b, c]) = source.peek(&(at..window.end), 3)?.first_chunk() else {
            return Ok(None);
        };
        let block = u32::from_le_bytes([a, b, c, 0]);
        let len = match block >> 1 & 3 {
            1 => 1,
            3 => return Ok(None),
            _ => u64::from(block >> 3),
        };
        at += 3 + len;
        if block & 1 == 1 {
            at += if header.has_checksum { 4 } else { 0 };
            return Ok((at <= window.end).then_some(at));
        }
    }
}

/// Decompresses the first block of an image that is a zstd frame.
pub(super) fn inflated_head(
    source: &mut Source<'_>,
    range: &Range<u64>,
    size: u64,
) -> io::Result<Result<Vec<u8>, ccob::Error>> {
    // A compressed bundle has this before such a frame.
    let total = u32::try_from(range.end - range.start + 24).unwrap_or(u32::MAX);
    let uncompressed = u32::try_from(size).unwrap_or(u32::MAX);
    let mut bundle =
        [&b"CCOB\x02\0\x01\0"[..], &total.to_le_bytes(), &uncompressed.to_le_bytes()].concat();
    bundle.extend([0; 8]);
    bundle.extend(source.peek(range, MAX_BLOCK + 64)?);
    Ok(ccob::decompress_prefix(
        &bundle,
        FileFormat::SNIFF_LEN,
        &ccob::Limits::default().with_max_uncompressed(u64::MAX),
    ))
}

/// The size that the header of a zstd frame records for what it holds.
pub(super) fn content_size(head: &[u8]) -> Option<u64> {
    FrameHeader::parse(head)?.content_size
}

struct FrameHeader {
    len: u64,
    content_size: Option<u64>,
    has_checksum: bool,
}

impl FrameHeader {
    fn parse(head: &[u8]) -> Option<Self> {
        let descriptor = *head.strip_prefix(&ZSTD_MAGIC)?.first()?;
        let is_single = descriptor & 0x20 != 0;
        let window = usize::from(!is_single);
        let dictionary = (1 << (descriptor & 3)) >> 1;
        let size = match descriptor >> 6 {
            0 => usize::from(is_single),
            flag => 1 << flag,
        };
        let at = 5 + window + dictionary;
        let stored = head.get(at..at + size)?;
        let number = stored.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
        let content_size = match size {
            0 => None,
            2 => Some(number + 256),
            _ => Some(number),
        };
        let has_checksum = descriptor & 4 != 0;
        Some(FrameHeader { len: (at + size) as u64, content_size, has_checksum })
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::source::Origin;

    fn modules(bytes: &[u8]) -> Vec<(Range<u64>, bool)> {
        let mut source = Source::of_bytes(bytes, Origin::File);
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(module) = module(&mut source, &(at..bytes.len() as u64)).unwrap() {
            at = source.skip_zeros(&(module.range.end..bytes.len() as u64)).unwrap();
            found.push((module.range, module.is_compressed));
        }
        found
    }

    fn spirv(instructions: &[u32]) -> Vec<u8> {
        let words = [&[0x0723_0203, 0x0001_0400, 0, 9, 0], instructions].concat();
        words.into_iter().flat_map(u32::to_le_bytes).collect()
    }

    #[test]
    fn modules_end_where_others_start() {
        // The magic as an operand ends nothing.
        let one = spirv(&[2 << 16 | 17, 6, 3 << 16 | 17, 0x0723_0203, 1]);
        let two = spirv(&[1 << 16 | 17]);
        let all = [&one[..], &two, &[0; 8], &two].concat();
        let len = one.len() as u64;
        let expected = [(0..len, false), (len..len + 24, false), (len + 32..len + 56, false)];
        assert_eq!(modules(&all), expected);
        // A part of a word belongs to no module; the walk tells of it.
        assert_eq!(modules(&all[..all.len() - 2])[2], (len + 32..len + 52, false));
        assert_eq!(modules(&all[..30]), [(0..28, false)]);
        assert_eq!(modules(&all[..26]), [(0..26, false)]);
        assert_eq!(modules(&all[..19]), []);
        assert_eq!(modules(&[7; 40]), []);
        let big: Vec<_> = one.chunks(4).flat_map(|word| word.iter().rev().copied()).collect();
        assert_eq!(modules(&big), [(0..len, false)]);
    }

    #[test]
    fn frames_end_with_their_last_block() {
        // Single segment of 3 bytes, one raw block; with a window, no size, a checksum, and two blocks.
        let one = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 3, 3 << 3 | 1, 0, 0, 1, 2, 3];
        let two = [0x28, 0xb5, 0x2f, 0xfd, 4, 0, 5 << 3 | 2, 0, 0, 9, 1, 0, 0, 8, 8, 8, 8];
        let all = [&one[..], &two, &[0; 3], &one].concat();
        assert_eq!(modules(&all), [(0..12, true), (12..29, true), (32..44, true)]);
        // A block that ends far past the end of the file.
        let long = [&one[..6], &[0xf8, 0xff, 0x0f], &[0; 3][..]].concat();
        assert_eq!(modules(&long), []);
        assert_eq!(content_size(&one), Some(3));
        assert_eq!(content_size(&two), None);
        assert_eq!(content_size(&[0x28, 0xb5, 0x2f, 0xfd, 0x60, 1, 1]), Some(513));
        for cut in 0..12 {
            assert_eq!(modules(&one[..cut]), [], "{cut}");
            assert_eq!(modules(&all[..12 + cut]).len(), 1, "{cut}");
        }
    }
}
