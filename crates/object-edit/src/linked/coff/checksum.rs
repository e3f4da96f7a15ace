//! Checksums of sections, as Microsoft's and LLVM's compilers put them into symbol tables.

use std::io::{self, Read};

use byte_parts::{Source, internal};

use crate::output::{self, Input, NewInputs, Output, Part};

/// Computes the CRC-32 in its usual bit order, from 0, without inversion at the end. `None` when some of the bytes are
/// of another file.
pub(super) fn of(
    source: &mut Source<'_>,
    inputs: &mut dyn NewInputs,
    contents: &Output,
) -> io::Result<Option<u32>> {
    if contents.iter().any(|part| matches!(part, Part::Input(Input::New(_), _))) {
        return Ok(None);
    }
    let mut reader = output::reader(contents, source.reader(), inputs);
    let mut buffer = vec![0; 64 * 1024];
    let mut crc = 0;
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(Some(crc)),
            Ok(n) => {
                let more =
                    || io::Error::other(internal!("more bytes read than there was room for"));
                crc = update(crc, buffer.get(..n).ok_or_else(more)?);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn update(crc: u32, bytes: &[u8]) -> u32 {
    let mut chunks = bytes.chunks_exact(8);
    let crc = chunks.by_ref().fold(crc, |crc, chunk| {
        let Some(&[b0, b1, b2, b3, rest @ ..]) = chunk.first_chunk::<8>() else { return crc };
        let [c0, c1, c2, c3] = crc.to_le_bytes();
        let bytes = [[b0 ^ c0, b1 ^ c1, b2 ^ c2, b3 ^ c3], rest].into_iter().flatten();
        TABLES.iter().zip(bytes).fold(0, |sum, (table, byte)| sum ^ look_up(table, byte))
    });
    chunks
        .remainder()
        .iter()
        .fold(crc, |crc, &byte| look_up(&LAST, crc.to_le_bytes()[0] ^ byte) ^ crc >> 8)
}

fn look_up(table: &[u32; 256], byte: u8) -> u32 {
    table.get(usize::from(byte)).copied().unwrap_or(0)
}

static LAST: [u32; 256] = table(0);

/// Tables for eight bytes at once: the first for a byte with seven after it, and so on.
static TABLES: [[u32; 256]; 8] =
    [table(7), table(6), table(5), table(4), table(3), table(2), table(1), table(0)];

/// Returns the remainder of a byte with `zeros` zero bytes after it, by the polynomial 0x04C11DB7, bits reversed.
const fn table(zeros: u32) -> [u32; 256] {
    let mut table = [0; 256];
    let mut rest: &mut [u32] = &mut table;
    let mut byte: u32 = 0;
    while let [entry, others @ ..] = rest {
        let mut value = byte;
        let mut bit = 0;
        while bit < 8 * (zeros + 1) {
            value = value >> 1 ^ if value & 1 == 1 { 0xEDB8_8320 } else { 0 };
            bit += 1;
        }
        *entry = value;
        byte += 1;
        rest = others;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn the_sizes_of_pieces_do_not_matter() {
        // The lengths of the pieces do not matter.
        let bytes: Vec<u8> = (0..50).map(|n| n * 5 + 3).collect();
        let one_by_one = bytes.chunks(1).fold(0, update);
        for len in 1..50 {
            assert_eq!(bytes.chunks(len).fold(0, update), one_by_one, "{len}");
        }
        // Inverted at both ends it would be the CRC-32 of the digits, 0xcbf43926.
        assert_eq!(!update(!0, b"123456789"), 0xcbf4_3926);
        let mut data = Cursor::new(b"..123456");
        let mut source = Source::new(&mut data).unwrap();
        let mut contents = output::copy_of(&(2..8));
        contents.push_bytes(b"789");
        contents.push_zeros(5001);
        let mut all = b"123456789".to_vec();
        all.resize(5010, 0);
        assert_eq!(of(&mut source, &mut (), &contents).unwrap(), Some(update(0, &all)));
        contents.push_input(Input::New(0), 0..1);
        assert_eq!(of(&mut source, &mut (), &contents).unwrap(), None);
    }
}
