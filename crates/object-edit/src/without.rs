//! Objects without some of their sections.

use std::ops::Range;

use byte_parts::Source;

use super::output::Output;
use crate::error::Error;
use crate::{coff, elf_object};

/// Returns the ELF file or COFF object in the window without the sections whose names start with `prefix`; `None`
/// when there are none.
pub(crate) fn without_sections(
    source: &mut Source<'_>,
    window: &Range<u64>,
    prefix: &[u8],
) -> Result<Option<Output>, Error> {
    let goes = |_, name: &[u8]| name.starts_with(prefix);
    if source.peek(window, 4)?.starts_with(b"\x7fELF") {
        elf_object::without(source, window, &goes)
    } else {
        coff::without(source, window, &goes)
    }
}
