//! Members of packages in temporary files.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use fat_object::FileFormat;
use tool_inputs::package::HEAD;
use tool_kit::failure::Failure;
use tool_kit::positioned::Positioned;
use tool_kit::scratch;

/// The contents of temporary files.
const MEMBER: &str = "a member of a wheel";

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

    pub(crate) fn into_file(self) -> File {
        self.file
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
