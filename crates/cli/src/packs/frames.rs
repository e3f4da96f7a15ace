//! The stored bytes of code objects, until their pack is written.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::ops::Range;

use byte_parts::{Inputs, WriteError, copy_range};

use tool_kit::positioned::Positioned;
use tool_kit::scratch;

/// The contents of the temporary file.
const CODES: &str = "code objects";

/// Code objects one after the other in a temporary file.
#[derive(Debug)]
pub(super) struct Frames {
    file: File,
    sizes: Vec<u64>,
    ends: Vec<u64>,
}

impl Frames {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Frames { file: scratch::file(CODES)?, sizes: Vec::new(), ends: Vec::new() })
    }

    /// Adds a code object.
    pub(super) fn push(&mut self, stored: &[u8]) -> io::Result<()> {
        let start = self.size();
        self.file.seek(io::SeekFrom::Start(start))?;
        self.file.write_all(stored).map_err(|error| scratch::copying(CODES, error))?;
        self.sizes.push(stored.len() as u64);
        self.ends.push(start.saturating_add(stored.len() as u64));
        Ok(())
    }

    /// Returns the size of each.
    pub(super) fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// Returns the size of all.
    pub(super) fn size(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }
}

/// By their numbers.
impl Inputs<usize> for Frames {
    type Error = WriteError;

    fn copy<W: Write + ?Sized>(
        &mut self,
        input: &usize,
        range: Range<u64>,
        out: &mut W,
    ) -> Result<(), WriteError> {
        let start = input.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        let start = start.unwrap_or(0);
        let range = start.saturating_add(range.start)..start.saturating_add(range.end);
        let copied = copy_range(&mut Positioned::new(&self.file), &range, out)?;
        match copied == range.end - range.start {
            true => Ok(()),
            false => Err(WriteError::Read(io::ErrorKind::UnexpectedEof.into())),
        }
    }
}
