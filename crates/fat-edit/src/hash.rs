//! The hash of a file that was split, by which the joined one is known.

use std::hash::Hasher;
#[cfg(any(feature = "ruzstd", feature = "zstd"))]
use std::io::Read;
use std::io::{self, Write};

use twox_hash::XxHash3_64;

/// A writer that hashes all that it passes on.
pub(crate) struct Hashing<W> {
    hasher: XxHash3_64,
    out: W,
}

impl<W: Write> Hashing<W> {
    pub(crate) fn new(out: W) -> Self {
        Hashing { hasher: XxHash3_64::with_seed(0), out }
    }

    /// Returns the hash of all bytes so far.
    pub(crate) fn hash(&self) -> u64 {
        self.hasher.finish()
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.hasher.write(bytes.split_at(count).0);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns the hash of all bytes.
#[cfg(any(feature = "ruzstd", feature = "zstd"))]
pub(crate) fn hash(reader: &mut (impl Read + ?Sized)) -> io::Result<u64> {
    let mut out = Hashing::new(io::sink());
    let mut buffer = vec![0; 1 << 17];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(out.hash()),
            n => out.write_all(buffer.split_at(n).0)?,
        }
    }
}
