//! The bytes of a member, in memory.

use std::io::{self, Read, Seek, SeekFrom, Write};

use byte_parts::seek_position;

/// The size of all chunks but the last. Memory is taken as bytes come, whatever a package says of its members.
const CHUNK: usize = 1 << 20;

/// Bytes in chunks. No chunk moves when more bytes come.
#[derive(Default)]
pub(crate) struct Chunks {
    chunks: Vec<Vec<u8>>,
    len: u64,
}

impl Chunks {
    /// Reads to the end.
    ///
    /// # Errors
    ///
    /// Errors of the reader; [`FileTooLarge`](io::ErrorKind::FileTooLarge) if there are more than `most` bytes.
    pub(crate) fn read(reader: &mut dyn Read, most: u64) -> io::Result<Self> {
        let mut all = Chunks::default();
        loop {
            let mut chunk = Vec::new();
            reader.take(CHUNK as u64).read_to_end(&mut chunk)?;
            all.len += chunk.len() as u64;
            if all.len > most {
                let text = format!("member exceeds the limit of {most} bytes in memory");
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
            }
            let is_last = chunk.len() < CHUNK;
            all.chunks.push(chunk);
            if is_last {
                return Ok(all);
            }
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn reader(&self) -> ChunksReader<'_> {
        ChunksReader { all: self, at: 0 }
    }
}

impl Write for Chunks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.chunks.last().is_none_or(|last| last.len() == CHUNK) {
            self.chunks.push(Vec::new());
        }
        let Some(last) = self.chunks.last_mut() else { return Ok(0) };
        let (taken, _) = bytes.split_at(bytes.len().min(CHUNK - last.len()));
        last.extend_from_slice(taken);
        self.len += taken.len() as u64;
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A reader of chunks.
#[derive(Clone)]
pub(crate) struct ChunksReader<'c> {
    all: &'c Chunks,
    at: u64,
}

impl Read for ChunksReader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let chunk = usize::try_from(self.at / CHUNK as u64).ok();
        let chunk = chunk.and_then(|at| self.all.chunks.get(at)).map_or(&[][..], |chunk| chunk);
        let within = usize::try_from(self.at % CHUNK as u64).unwrap_or(CHUNK);
        let read = chunk.get(within..).unwrap_or(&[]).read(buf)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for ChunksReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = seek_position(to, self.at, self.all.len)?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_are_there_at_any_position() {
        let bytes: Vec<u8> =
            (0..2 * CHUNK + 7).map(|at| at.to_le_bytes()[0] ^ at.to_le_bytes()[2]).collect();
        for size in [0, 9, CHUNK, 2 * CHUNK + 7] {
            let bytes = &bytes[..size];
            let chunks = Chunks::read(&mut &*bytes, size as u64).unwrap();
            let mut written = Chunks::default();
            io::copy(&mut &*bytes, &mut written).unwrap();
            for chunks in [&chunks, &written] {
                assert_eq!(chunks.len(), size as u64);
                for at in [0, 5, CHUNK - 1, CHUNK, size] {
                    let mut found = Vec::new();
                    let mut reader = chunks.reader();
                    reader.seek(SeekFrom::Start(at as u64)).unwrap();
                    reader.read_to_end(&mut found).unwrap();
                    assert!(found == bytes[at.min(size)..], "{size} from {at}");
                }
            }
            if size > 0 {
                let error = Chunks::read(&mut &*bytes, size as u64 - 1).err().unwrap();
                assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
            }
        }
    }
}
