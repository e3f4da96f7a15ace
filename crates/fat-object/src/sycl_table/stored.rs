//! SYCL images back to back, without a table: where each one ends.

use std::io;
use std::ops::Range;

use byte_parts::Source;

const SPIRV_MAGIC: u32 = 0x0723_0203;
const SPIRV_HEADER: usize = 20;
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Returns whether a SPIR-V module of this many bytes can start with these: its header has a magic, version 1, and no
/// schema (SPIR-V specification, 2.3).
///
/// ```
/// let header = [0x0723_0203_u32, 0x0001_0400, 0, 9, 0].map(u32::to_le_bytes).concat();
/// assert!(fat_object::sycl_table::is_spirv_header(&header, 24));
/// assert!(!fat_object::sycl_table::is_spirv_header(&header, 23));
/// ```
#[must_use]
pub fn is_spirv_header(head: &[u8], size: u64) -> bool {
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

/// Returns the end of the image at the start of the window; `None` if there is neither a SPIR-V module nor a zstd frame that
/// ends in the window.
///
/// ```
/// use byte_parts::Source;
///
/// // A frame with one block of three bytes.
/// let bytes = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 3, 3 << 3 | 1, 0, 0, 1, 2, 3, 0, 0];
/// assert_eq!(fat_object::sycl_table::image_end(&mut Source::of_bytes(&bytes), &(0..14))?, Some(12));
/// assert_eq!(fat_object::sycl_table::image_end(&mut Source::of_bytes(&bytes), &(1..14))?, None);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// Errors of reading.
pub fn image_end(source: &mut Source<'_>, window: &Range<u64>) -> io::Result<Option<u64>> {
    let head = source.peek(window, SPIRV_HEADER)?;
    if head.starts_with(&ZSTD_MAGIC) {
        return frame_end(source, window);
    }
    if is_spirv_header(&head, 0) { module_end(source, window, &head).map(Some) } else { Ok(None) }
}

/// Returns the end of a module: the start of another one, zeros, which are not an instruction, or the end of the
/// window.
fn module_end(source: &mut Source<'_>, window: &Range<u64>, head: &[u8]) -> io::Result<u64> {
    let is_big = head.first() == Some(&0x07);
    let mut at = window.start + SPIRV_HEADER as u64;
    let mut word = [0; 4];
    while window.end - at >= 4 {
        source.read_exact_at(at, &mut word)?;
        let number = if is_big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) };
        let words = u64::from(number >> 16);
        if words == 0 || number == SPIRV_MAGIC {
            return Ok(at);
        }
        // The last instruction may be cut short.
        if window.end - at < 4 * words {
            return Ok(window.end);
        }
        at += 4 * words;
    }
    Ok(at)
}

/// Returns the end of a frame, by the headers of its blocks (RFC 8878, 3.1.1).
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

/// Returns the size that the header of a zstd frame records for what it holds, in bytes; `None` for other bytes, and if it
/// records none. A header has 18 bytes at most.
///
/// ```
/// assert_eq!(fat_object::sycl_table::content_size(&[0x28, 0xb5, 0x2f, 0xfd, 0x20, 3]), Some(3));
/// ```
#[must_use]
pub fn content_size(head: &[u8]) -> Option<u64> {
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

    fn images(bytes: &[u8]) -> Vec<(u64, u64)> {
        let mut source = Source::of_bytes(bytes);
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(end) = image_end(&mut source, &(at..bytes.len() as u64)).unwrap() {
            found.push((at, end));
            at = source.skip_zeros(&(end..bytes.len() as u64)).unwrap();
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
        let expected = [(0, len), (len, len + 24), (len + 32, len + 56)];
        assert_eq!(images(&all), expected);
        // A part of a word belongs to no module; the walk reports it.
        assert_eq!(images(&all[..all.len() - 2])[2], (len + 32, len + 52));
        assert_eq!(images(&all[..30]), [(0, 28)]);
        assert_eq!(images(&all[..26]), [(0, 26)]);
        assert_eq!(images(&all[..19]), []);
        assert_eq!(images(&[7; 40]), []);
        let big: Vec<_> = one.chunks(4).flat_map(|word| word.iter().rev().copied()).collect();
        assert_eq!(images(&big), [(0, len)]);
    }

    #[test]
    fn frames_end_with_their_last_block() {
        // Single segment of 3 bytes, one raw block; with a window, no size, a checksum, and two blocks.
        let one = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 3, 3 << 3 | 1, 0, 0, 1, 2, 3];
        let two = [0x28, 0xb5, 0x2f, 0xfd, 4, 0, 5 << 3 | 2, 0, 0, 9, 1, 0, 0, 8, 8, 8, 8];
        let all = [&one[..], &two, &[0; 3], &one].concat();
        assert_eq!(images(&all), [(0, 12), (12, 29), (32, 44)]);
        // A block that ends far past the end of the file.
        let long = [&one[..6], &[0xf8, 0xff, 0x0f], &[0; 3][..]].concat();
        assert_eq!(images(&long), []);
        assert_eq!(content_size(&one), Some(3));
        assert_eq!(content_size(&two), None);
        assert_eq!(content_size(&[0x28, 0xb5, 0x2f, 0xfd, 0x60, 1, 1]), Some(513));
        for cut in 0..12 {
            assert_eq!(images(&one[..cut]), [], "{cut}");
            assert_eq!(images(&all[..12 + cut]).len(), 1, "{cut}");
        }
    }
}
