//! Input files that become parts of a container.

use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, ErrorKind, Read, Seek, SeekFrom, Take, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use byte_parts::copy_range;

use crate::opened::{MaxInput, Opened};
use crate::permissions::NewPermissions;
use crate::positioned::Positioned;
use crate::report::reason;
use crate::scratch;
use crate::stamp::Stamp;

/// A file whose size was looked at, and whose bytes are needed later. Errors name it.
pub struct Payload {
    path: PathBuf,
    stamp: Stamp,
    permissions: NewPermissions,
    /// Standard input, or the copy of a pipe: no path leads there again.
    held: Option<File>,
    /// The contents of a small file: opening it again takes longer than looking whether it is the same.
    small: Option<Vec<u8>>,
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Payload")
            .field("path", &self.path)
            .field("stamp", &self.stamp)
            .finish_non_exhaustive()
    }
}

/// Largest size of a file that is held in memory: there may be many.
const SMALL: u64 = 4096;

impl Payload {
    /// Returns the file and its first bytes, at most `head`. It is closed again: there can be more than may be open
    /// at one time.
    pub fn open(path: &Path, max: MaxInput, head: u64) -> io::Result<(Self, Vec<u8>)> {
        let open = || {
            let opened = Opened::new(path, max)?;
            let (has_path, permissions) = (opened.has_path(), opened.permissions());
            let mut file = opened.file;
            let stamp = Stamp::of(&file)?;
            let is_small = has_path && stamp.size() <= SMALL;
            let mut first = Vec::new();
            let wanted = if is_small { stamp.size() } else { head };
            Read::take(&mut file, wanted).read_to_end(&mut first)?;
            // A file that became shorter is an error when it is copied.
            let small = (is_small && first.len() as u64 == stamp.size()).then(|| first.clone());
            if let Ok(head) = usize::try_from(head) {
                first.truncate(head);
            }
            let held = (!has_path).then_some(file);
            Ok((Payload { path: path.to_owned(), stamp, permissions, held, small }, first))
        };
        open().map_err(|error| at(path, &error))
    }

    /// Returns an opened file, and closes it if its path leads there again.
    pub fn of_opened(path: &Path, opened: Opened) -> io::Result<Self> {
        let stamp = Stamp::of(&opened.file).map_err(|error| at(path, &error))?;
        let permissions = opened.permissions();
        let held = (!opened.has_path()).then_some(opened.file);
        Ok(Payload { path: path.to_owned(), stamp, permissions, held, small: None })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the size of the file in bytes when it was opened.
    pub fn size(&self) -> u64 {
        self.stamp.size()
    }

    /// Returns the permissions of the file.
    pub fn permissions(&self) -> NewPermissions {
        self.permissions
    }

    /// Returns the input with other contents, in a temporary file.
    pub fn with_contents(&self, contents: &[u8]) -> io::Result<Self> {
        Self::of_bytes(&self.path, contents, self.permissions)
    }

    /// Returns an input with these contents, which errors call by this name, as private as these permissions say.
    pub fn of_bytes(path: &Path, contents: &[u8], permissions: NewPermissions) -> io::Result<Self> {
        const CHANGED: &str = "the changed contents of an input";
        let mut file = scratch::file(CHANGED)?;
        file.write_all(contents).map_err(|error| scratch::copying(CHANGED, error))?;
        let stamp = Stamp::of(&file)?;
        Ok(Payload { path: path.to_owned(), stamp, permissions, held: Some(file), small: None })
    }

    /// Copies a part of the file; from a file to a file, the kernel does it.
    pub fn copy_to<W: Write + ?Sized>(&self, part: Range<u64>, out: &mut W) -> io::Result<()> {
        if let Some(bytes) = &self.small {
            self.stamp.check_at(&self.path).map_err(|error| at(&self.path, &error))?;
            copy_range(&mut Cursor::new(bytes), &part, out)?;
            return Ok(());
        }
        self.read_parts(|file| file.copy_to(part, out))
    }

    /// Opens the file for several copies.
    pub fn read_parts<T>(
        &self,
        read: impl FnOnce(&mut OpenPayload<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        let reopened;
        let file = match &self.held {
            Some(file) => file,
            None => {
                reopened = self.reopen()?;
                &reopened
            }
        };
        let result = read(&mut OpenPayload { path: &self.path, file, buffer: Vec::new() })?;
        self.stamp.check(file).map_err(|error| at(&self.path, &error))?;
        Ok(result)
    }

    /// Returns the whole file in memory.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let size = usize::try_from(self.size()).map_err(|_| ErrorKind::OutOfMemory);
        let reserved =
            size.and_then(|size| bytes.try_reserve_exact(size).map_err(|_| ErrorKind::OutOfMemory));
        reserved.map_err(|kind| at(&self.path, &kind.into()))?;
        self.copy_to(0..self.size(), &mut bytes)?;
        Ok(bytes)
    }

    /// Returns a reader of the file from its start.
    pub fn reader(&mut self) -> io::Result<Take<File>> {
        let size = self.size();
        let file = match &mut self.held {
            Some(file) => {
                file.rewind()?;
                file.try_clone()?
            }
            None => self.reopen()?,
        };
        Ok(file.take(size))
    }

    /// Returns a [`reader`](Self::reader) that is opened when it is read.
    pub fn stream(&mut self) -> Stream<'_> {
        Stream { payload: self, reader: None }
    }

    fn reopen(&self) -> io::Result<File> {
        let file = File::open(&self.path).map_err(|error| at(&self.path, &error))?;
        self.stamp.check(&file).map_err(|error| at(&self.path, &error))?;
        Ok(file)
    }
}

/// A [`Payload`] that is open.
pub struct OpenPayload<'p> {
    path: &'p Path,
    file: &'p File,
    buffer: Vec<u8>,
}

impl fmt::Debug for OpenPayload<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenPayload")
            .field("path", &self.path)
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

/// Size up to which reading and writing is faster than having the kernel copy.
const AT_ONCE: usize = 64 << 10;

impl OpenPayload<'_> {
    /// Returns the file, which nobody else reads.
    pub fn file(&self) -> &File {
        self.file
    }

    /// Copies a part of the file; from a file to a file, the kernel does it for large ones.
    pub fn copy_to<W: Write + ?Sized>(&mut self, part: Range<u64>, out: &mut W) -> io::Result<()> {
        let size = usize::try_from(part.end - part.start);
        if let Ok(size) = size
            && size <= AT_ONCE
        {
            self.buffer.resize(self.buffer.len().max(size), 0);
            let (bytes, _) = self.buffer.split_at_mut(size);
            let mut file = Positioned::new(self.file);
            let read = file.seek(SeekFrom::Start(part.start)).and_then(|_| file.read_exact(bytes));
            read.map_err(|error| at(self.path, &error))?;
            return out.write_all(bytes);
        }
        let copied = copy_range(&mut self.file, &part, out)?;
        if copied == part.end - part.start {
            Ok(())
        } else {
            Err(at(self.path, &ErrorKind::UnexpectedEof.into()))
        }
    }
}

/// A file from its start that is open only while it is read.
#[derive(Debug)]
pub struct Stream<'p> {
    payload: &'p mut Payload,
    reader: Option<Take<File>>,
}

impl Read for Stream<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match &mut self.reader {
            Some(reader) => reader.read(buf),
            none => none.insert(self.payload.reader()?).read(buf),
        }
    }
}

/// Returns the error with the name of the file it is about.
pub fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("'{}': {}", path.display(), reason(error)))
}

/// The inputs of an output, by number.
#[derive(Debug)]
pub struct Payloads<'p>(pub Vec<&'p mut Payload>);

impl byte_parts::Inputs<usize> for Payloads<'_> {
    type Error = io::Error;

    fn copy<W: Write + ?Sized>(
        &mut self,
        &input: &usize,
        range: Range<u64>,
        out: &mut W,
    ) -> io::Result<()> {
        self.0.get_mut(input).map_or(Ok(()), |file| file.copy_to(range, out))
    }
}
