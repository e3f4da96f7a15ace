//! Each host file goes to the editor of its format.

use std::ops::Range;

use byte_parts::{ReadSeek, Source};

use crate::error::Error;
use crate::linked::host::{Edited, HostContext, Options, SectionEdit};
use crate::linked::{coff, elf, elf_object, pe, registration};
use crate::output::NewInputs;

/// The format of a host file whose sections can be edited.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Format {
    /// A linked ELF file: an executable or a library.
    LinkedElf,
    /// A relocatable ELF object; or a linked ELF file if only sections change that are never loaded.
    ElfObject,
    /// A COFF object.
    Coff,
    /// A PE executable or library.
    Pe,
}

/// Lays out the host file in the window with other contents in some of its sections. `new` are the inputs of the new
/// contents; they are read only where a checksum needs them.
///
/// # Errors
///
/// Every [kind](crate::ErrorKind): damage, and what the format or the references into the sections do not allow.
pub fn edit(
    source: &mut Source<'_>,
    window: &Range<u64>,
    format: Format,
    sections: Vec<SectionEdit>,
    options: Options,
    new: &mut dyn NewInputs,
) -> Result<Edited, Error> {
    let context = HostContext { window, options };
    if matches!(format, Format::LinkedElf | Format::Pe) {
        registration::check(source, &sections)?;
    }
    match format {
        Format::LinkedElf => elf::edit(source, context, sections),
        Format::ElfObject => elf_object::edit(source, context, sections),
        Format::Coff => coff::edit(source, new, context, sections),
        Format::Pe => pe::edit(source, new, context, sections),
    }
}

/// Returns the name of a section's kind, in the plural, if a section of this name is not edited in files of this format.
#[must_use]
pub fn uneditable(format: Format, section: &str) -> Option<&'static str> {
    match format {
        Format::LinkedElf => elf::uneditable(section),
        Format::Pe => pe::uneditable(section),
        _ => None,
    }
}

/// Returns the reason why no device code was found in a linked ELF file, if the file shows it.
///
/// # Errors
///
/// [`Refused`](crate::ErrorKind::Refused), [`Unsupported`](crate::ErrorKind::Unsupported) for a file without section headers,
/// and [`Read`](crate::ErrorKind::Read).
pub fn explain_nothing(input: &mut dyn ReadSeek) -> Result<(), Error> {
    elf::explain_nothing(input)
}
