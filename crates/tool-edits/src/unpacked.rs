//! Members of packages in temporary files.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use fat_object::FileFormat;
use gpu_packages::NewContents;
use tool_inputs::package::HEAD;
use tool_kit::failure::Failure;
use tool_kit::positioned::Positioned;
use tool_kit::scratch;

use crate::words::of_package;

/// The contents of temporary files.
const MEMBER: &str = "a member of a wheel";

/// Members of wheels in one temporary file: a wheel may have more of them than a process may have open files.
pub(crate) struct Spool {
    file: File,
    end: u64,
}

impl Spool {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Spool { file: scratch::file(MEMBER)?, end: 0 })
    }

    /// Adds a member, and returns its place.
    pub(crate) fn add(&mut self, mut contents: impl Read) -> io::Result<Range<u64>> {
        let start = self.end;
        self.file.seek(SeekFrom::Start(start))?;
        let size = io::copy(&mut contents, &mut self.file)
            .map_err(|error| scratch::copying(MEMBER, error))?;
        self.end += size;
        Ok(start..self.end)
    }

    /// Adds new contents of a member as they will be stored. `write` gets the file and its end.
    pub(crate) fn add_new(
        &mut self,
        write: impl FnOnce(&mut File, u64) -> Result<NewContents, gpu_packages::Error>,
    ) -> Result<NewContents, Failure> {
        self.file.seek(SeekFrom::Start(self.end))?;
        let new = write(&mut self.file, self.end).map_err(of_package)?;
        self.end += new.stored_size();
        Ok(new)
    }

    /// Returns a reader of all.
    pub(crate) fn whole(&self) -> Positioned<'_> {
        self.reader(&(0..self.end))
    }

    /// Returns a reader of a member.
    pub(crate) fn reader(&self, place: &Range<u64>) -> Positioned<'_> {
        Positioned::of_range(&self.file, place)
    }
}

/// A member of a wheel, in a temporary file.
pub(crate) struct Unpacked {
    file: File,
    size: u64,
}

impl Unpacked {
    /// Reads a member of at most `most` bytes.
    pub(crate) fn read(contents: &mut dyn Read, most: u64) -> Result<Self, Failure> {
        let mut file = scratch::file(MEMBER)?;
        let size = io::copy(&mut contents.take(most), &mut file)
            .map_err(|error| scratch::copying(MEMBER, error))?;
        if io::copy(&mut contents.take(1), &mut io::sink())? > 0 {
            let text = format!("needs more than --max-decompressed={most} bytes");
            return Err(text.into());
        }
        Ok(Unpacked { file, size })
    }

    /// Reads a member if it is a linked file by its first bytes, which may have device code.
    pub(crate) fn read_linked(contents: &mut dyn Read, most: u64) -> Result<Option<Self>, Failure> {
        let mut head = Vec::new();
        contents.take(HEAD as u64).read_to_end(&mut head)?;
        match FileFormat::sniff(&head) {
            FileFormat::Elf { .. } | FileFormat::Pe => {}
            _ => return Ok(None),
        }
        Self::read(&mut head.chain(contents), most).map(Some)
    }

    /// Returns the file with its length.
    pub(crate) fn subject(&self) -> (Positioned<'_>, u64) {
        (Positioned::new(&self.file), self.size)
    }

    /// Returns a file from its start that `write` writes.
    pub(crate) fn rewritten(
        write: impl FnOnce(&mut File) -> Result<(), fat_edit::Error>,
    ) -> Result<File, Failure> {
        let mut file = scratch::file(MEMBER)?;
        write(&mut file).map_err(|error| match error.io() {
            Some(_) => Failure::from(scratch::copying(MEMBER, error.into())),
            None => error.to_string().into(),
        })?;
        file.seek(SeekFrom::Start(0))?;
        Ok(file)
    }
}
