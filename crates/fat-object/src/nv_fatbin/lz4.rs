//! LZ4 blocks ("LZ4 Block Format Description"): how CUDA up to version 12 compresses entries.

/// Shortest match; lengths of matches count from it.
const MIN_MATCH: usize = 4;

/// Decompresses a block of exactly `size` bytes; `None` if it is malformed or of another size.
pub(crate) fn decompress(mut block: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(size.min(block.len().saturating_mul(255)));
    loop {
        let (token, rest) = block.split_first()?;
        block = rest;
        let literals = length(token >> 4, &mut block)?;
        let (bytes, rest) = block.split_at_checked(literals)?;
        block = rest;
        if bytes.len() > size - out.len() {
            return None;
        }
        out.extend_from_slice(bytes);
        // The last sequence has no match.
        if block.is_empty() {
            return (out.len() == size).then_some(out);
        }
        let (offset, rest) = block.split_first_chunk::<2>()?;
        block = rest;
        let match_len = length(token & 15, &mut block)?.checked_add(MIN_MATCH)?;
        let distance = usize::from(u16::from_le_bytes(*offset));
        let start = out.len().checked_sub(distance).filter(|_| distance > 0)?;
        if match_len > size - out.len() {
            return None;
        }
        // A match may overlap what it makes.
        for at in start..start + match_len {
            out.push(*out.get(at)?);
        }
    }
}

/// A length whose first four bits are those of a token.
fn length(nibble: u8, block: &mut &[u8]) -> Option<usize> {
    let mut length = usize::from(nibble);
    if nibble == 15 {
        loop {
            let (byte, rest) = block.split_first()?;
            *block = rest;
            length = length.checked_add(usize::from(*byte))?;
            if *byte < 255 {
                break;
            }
        }
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::decompress;

    #[test]
    fn literals_and_matches() {
        assert_eq!(decompress(b"\x00", 0).unwrap(), b"");
        assert_eq!(decompress(b"\x30abc", 3).unwrap(), b"abc");
        // Two literals, a match of 4 + 2 at distance 2, which overlaps itself, and a last literal.
        assert_eq!(decompress(b"\x22ab\x02\x00\x10c", 9).unwrap(), b"ababababc");
        // Lengths that go on: 15 + 255 + 1 literals, and a match of 4 + 15 + 2.
        let block = [&[0xff, 255, 1][..], &[b'x'; 271], &[1, 0, 2, 0x10, b'y']].concat();
        let expected = [&[b'x'; 271 + 21][..], b"y"].concat();
        assert_eq!(decompress(&block, expected.len()).unwrap(), expected);
    }

    #[test]
    fn malformed_blocks() {
        let sound = b"\x22ab\x02\x00\x10c";
        for cut in 0..sound.len() {
            assert_eq!(decompress(&sound[..cut], 9), None, "{cut}");
        }
        for (block, size) in [
            (&sound[..], 8),
            (sound, 10),
            // Distances of 0 and before the start.
            (b"\x22ab\x00\x00\x10c", 9),
            (b"\x22ab\x03\x00\x10c", 9),
            (b"\xf0\xff\xff", 3),
        ] {
            assert_eq!(decompress(block, size), None, "{block:?}");
        }
    }
}
