//! Input files that become parts of a container.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, Take, Write};
use std::path::{Path, PathBuf};

use crate::input::{self, Stamp};
use crate::report::reason;

/// A file whose size was looked at, and whose bytes are needed later. Errors name it.
#[derive(Debug)]
pub(crate) struct Payload {
    path: PathBuf,
    stamp: Stamp,
    /// The contents of what can be read only once: standard input, pipes.
    spooled: Option<File>,
}

impl Payload {
    /// The file and its first bytes, at most `head`. It is closed again: there can be more than may be open at one
    /// time.
    pub(crate) fn open(path: &Path, head: u64) -> io::Result<(Self, Vec<u8>)> {
        let open = || {
            let mut file = input::open_sized(path)?;
            let stamp = Stamp::of(&file)?;
            let mut first = Vec::new();
            Read::take(&mut file, head).read_to_end(&mut first)?;
            let keep = path.as_os_str() == "-" || !path.is_file();
            let spooled = keep.then_some(file);
            Ok((Payload { path: path.to_owned(), stamp, spooled }, first))
        };
        open().map_err(|error| at(path, &error))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file when it was opened.
    pub(crate) fn size(&self) -> u64 {
        self.stamp.size()
    }

    /// Copies the file; from a file to a file, the kernel does it.
    pub(crate) fn copy_to<W: Write>(&mut self, out: &mut W) -> io::Result<()> {
        let size = self.size();
        let copied = match &mut self.spooled {
            Some(file) => {
                file.rewind()?;
                io::copy(&mut Read::take(&mut *file, size), out)?
            }
            None => {
                let mut file = self.reopen()?;
                let copied = io::copy(&mut Read::take(&mut file, size), out)?;
                self.stamp.check(&file).map_err(|error| at(&self.path, &error))?;
                copied
            }
        };
        if copied == size { Ok(()) } else { Err(at(&self.path, &ErrorKind::UnexpectedEof.into())) }
    }

    /// The whole file in memory.
    pub(crate) fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let size = usize::try_from(self.size()).map_err(|_| ErrorKind::OutOfMemory);
        let reserved =
            size.and_then(|size| bytes.try_reserve_exact(size).map_err(|_| ErrorKind::OutOfMemory));
        reserved.map_err(|kind| at(&self.path, &kind.into()))?;
        self.copy_to(&mut bytes)?;
        Ok(bytes)
    }

    /// A reader of the file from its start.
    pub(crate) fn reader(&mut self) -> io::Result<Take<File>> {
        let size = self.size();
        let file = match &mut self.spooled {
            Some(file) => {
                file.rewind()?;
                file.try_clone()?
            }
            None => self.reopen()?,
        };
        Ok(file.take(size))
    }

    fn reopen(&self) -> io::Result<File> {
        let file = File::open(&self.path).map_err(|error| at(&self.path, &error))?;
        self.stamp.check(&file).map_err(|error| at(&self.path, &error))?;
        Ok(file)
    }
}

/// The error with the name of the file it is about.
pub(crate) fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("'{}': {}", path.display(), reason(error)))
}
