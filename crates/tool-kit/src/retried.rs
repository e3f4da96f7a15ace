//! Outputs that are written once more where the first try was in vain.

use std::fs::File;
use std::io::{self, Seek, Write};

use crate::scratch;

/// An output that can be started again.
#[derive(Debug)]
pub enum Retried<'f> {
    /// A file.
    File(&'f mut File),
    /// Nowhere; the number of bytes.
    Counted(u64),
}

impl Retried<'_> {
    /// Fills an output that cannot be started again, such as standard output, by way of a temporary file with these contents.
    pub fn through<T, E: From<io::Error>>(
        contents: &str,
        out: &mut File,
        write: impl FnOnce(&mut Retried<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut file = scratch::file(contents)?;
        let done = write(&mut Retried::File(&mut file))?;
        file.rewind()?;
        io::copy(&mut file, out)?;
        Ok(done)
    }

    /// Forgets what was written.
    pub fn restart(&mut self) -> io::Result<()> {
        match self {
            Retried::File(file) => {
                file.set_len(0)?;
                file.rewind()
            }
            Retried::Counted(size) => {
                *size = 0;
                Ok(())
            }
        }
    }

    /// Returns the number of bytes that were written.
    pub fn size(&self) -> io::Result<u64> {
        Ok(match self {
            Retried::File(file) => file.metadata()?.len(),
            Retried::Counted(size) => *size,
        })
    }
}

impl Write for Retried<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Retried::File(file) => file.write(bytes),
            Retried::Counted(size) => {
                *size += bytes.len() as u64;
                Ok(bytes.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
