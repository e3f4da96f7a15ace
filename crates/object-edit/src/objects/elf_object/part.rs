//! ELF: sections of the object that is laid out.

use std::ops::Range;

use byte_parts::Source;
use object::Pod;
use object::pod::slice_from_all_bytes_mut;

use super::file::FORMAT;
use crate::error::Error;
use crate::objects::elf_class::ElfSection;

/// A section with what it will hold.
pub(super) struct Part {
    pub(super) fields: ElfSection,
    pub(super) contents: Contents,
    /// By its old index.
    pub(super) index: usize,
    /// `true` if it belongs to a segment and stays where it is.
    pub(super) fixed: bool,
}

pub(super) enum Contents {
    /// This range of the walked file.
    Kept(Range<u64>),
    New(Vec<u8>),
}

impl Part {
    pub(super) fn len(&self) -> u64 {
        match &self.contents {
            Contents::Kept(range) => range.end - range.start,
            Contents::New(bytes) => bytes.len() as u64,
        }
    }

    pub(super) fn read(&self, source: &mut Source<'_>) -> Result<Vec<u8>, Error> {
        match &self.contents {
            Contents::Kept(range) => Ok(source.read_range(range)?),
            Contents::New(bytes) => Ok(bytes.clone()),
        }
    }

    /// Calls `change` with the contents as a table of `T`.
    pub(super) fn change<T: Pod>(
        &mut self,
        source: &mut Source<'_>,
        expected: &'static str,
        change: impl FnOnce(&mut [T]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let old = self.read(source)?;
        let mut new = old.clone();
        let (offset, found) = (self.fields.offset, self.fields.size);
        let table = slice_from_all_bytes_mut(&mut new)
            .map_err(|()| Error::field(FORMAT, "sh_size", offset, found, expected))?;
        change(table)?;
        if new != old {
            self.contents = Contents::New(new);
        }
        Ok(())
    }
}
