//! Objects in memory without some of their sections.

use std::io::{Cursor, Read};

use super::{EditError, coff, object};
use crate::embed::EmbedError;
use crate::source::{Origin, Source};

/// An ELF file or COFF object without the sections whose names start with `prefix`; `None` when there are none.
pub(crate) fn without_sections(file: &[u8], prefix: &[u8]) -> Result<Option<Vec<u8>>, EmbedError> {
    let out_of_memory = EmbedError::OutOfMemory { size: file.len() as u64 };
    // Nothing else goes wrong in memory.
    let object_error = |error| match error {
        EditError::Object(error) => error,
        _ => EmbedError::OutOfMemory { size: file.len() as u64 },
    };
    let mut cursor = Cursor::new(file);
    let source = &mut Source::new(&mut cursor, Origin::File).map_err(|_| out_of_memory)?;
    let (all, goes) = (0..file.len() as u64, |_, name: &[u8]| name.starts_with(prefix));
    let without = match file.starts_with(b"\x7fELF") {
        true => object::without(source, &all, &goes),
        false => coff::without(source, &all, &goes),
    };
    let Some(splices) = without.map_err(object_error)? else { return Ok(None) };
    let size = splices.len();
    let mut bytes = Vec::new();
    let reserved = usize::try_from(size).map(|size| bytes.try_reserve_exact(size));
    let written = match reserved {
        Ok(Ok(())) => splices.reader(source.reader(), &mut []).read_to_end(&mut bytes).ok(),
        _ => None,
    };
    written.map(|_| Some(bytes)).ok_or(EmbedError::OutOfMemory { size })
}
