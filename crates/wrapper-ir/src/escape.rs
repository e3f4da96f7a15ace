//! Bytes inside the quotes of LLVM IR text.

use std::fmt::{self, Write as _};
use std::io::{self, Write};

/// The text of each byte, with its length: itself, a backslash twice, or a backslash and two hexadecimal digits.
const CODES: [(usize, [u8; 3]); 256] = codes();

/// The number of bytes that are escaped before they are written.
const CHUNK: usize = 1 << 14;

#[allow(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "evaluated by the compiler, which would refuse an index out of bounds"
)]
const fn codes() -> [(usize, [u8; 3]); 256] {
    const DIGITS: [u8; 16] = *b"0123456789ABCDEF";
    let mut codes = [(3, [b'\\'; 3]); 256];
    let mut byte = 0;
    while byte < 256 {
        let value = byte as u8;
        codes[byte] = match value {
            b'\\' => (2, [value; 3]),
            b' '..=b'~' if value != b'"' => (1, [value; 3]),
            _ => (3, [b'\\', DIGITS[byte >> 4], DIGITS[byte & 15]]),
        };
        byte += 1;
    }
    codes
}

/// Text or bytes as LLVM writes them between quotes.
pub(crate) struct Escaped<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|&byte| match byte {
            b'\\' => f.write_str("\\\\"),
            b' '..=b'~' if byte != b'"' => f.write_char(byte.into()),
            _ => write!(f, "\\{byte:02X}"),
        })
    }
}

/// Writes bytes escaped.
pub(crate) struct Escape<W> {
    writer: W,
    buffer: Vec<u8>,
}

impl<W: Write> Escape<W> {
    pub(crate) fn new(writer: W) -> Self {
        Self { writer, buffer: Vec::with_capacity(CHUNK * 3) }
    }

    /// Writes the rest.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.drain()
    }

    fn drain(&mut self) -> io::Result<()> {
        self.writer.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

impl<W: Write> Write for Escape<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let chunk = bytes.get(..CHUNK).unwrap_or(bytes);
        if self.buffer.len() + chunk.len() * 3 > CHUNK * 3 {
            self.drain()?;
        }
        for byte in chunk {
            // All three bytes at once, then back to the bytes that count: faster than a copy whose
            // length is not known.
            if let Some((len, code)) = CODES.get(usize::from(*byte)) {
                let end = self.buffer.len() + len;
                self.buffer.extend_from_slice(code);
                self.buffer.truncate(end);
            }
        }
        Ok(chunk.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.drain()?;
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_llvm_does() {
        // llvm-dis 22 of a module with these bytes.
        let bytes = b"ABC\"\\\n\x00\xffhello ~\x7f";
        assert_eq!(Escaped(bytes).to_string(), r"ABC\22\\\0A\00\FFhello ~\7F");
    }

    #[test]
    fn a_stream_may_have_any_length() {
        for size in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 5 * CHUNK + 7] {
            let bytes: Vec<u8> = (0..size).map(|i| i.to_le_bytes()[0].wrapping_mul(7)).collect();
            let mut output = Vec::new();
            let mut escape = Escape::new(&mut output);
            io::copy(&mut &bytes[..], &mut escape).unwrap();
            escape.finish().unwrap();
            assert_eq!(output, Escaped(&bytes).to_string().as_bytes());
        }
    }
}
