//! Errors of adding sections to objects and removing them.

use std::fmt;

use crate::error::{Error, ErrorKind};

impl Error {
    /// Creates the error of a format without sections that could change.
    #[cold]
    pub(crate) fn unsupported_format(format: &str) -> Self {
        let message = format!("cannot change sections: this is not possible in {format}");
        Self::new(ErrorKind::Format, message)
    }

    /// Creates the error of a known format in which sections do not change.
    #[cold]
    pub(crate) fn cannot_change(why: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Unsupported, format!("cannot change sections: {why}"))
    }

    #[cold]
    pub(crate) fn elf_type(found: u16) -> Self {
        let why = format!("the ELF file is of type {found}, which does not qualify");
        Self::cannot_change(why)
    }

    #[cold]
    pub(crate) fn pe_image() -> Self {
        Self::cannot_change("PE image, only COFF objects qualify")
    }

    #[cold]
    pub(crate) fn no_section_headers() -> Self {
        Self::cannot_change("the ELF object has no section header table")
    }

    /// Creates the error of a part that ends after the object.
    #[cold]
    pub(crate) fn outside(
        format: &str,
        part: ObjectPart,
        start: u64,
        end: u64,
        available: u64,
    ) -> Self {
        let message = format!(
            "{format} {part} lies at {start:#x}..{end:#x}, beyond the end of the object at {available:#x}"
        );
        Self::new(ErrorKind::Malformed, message)
    }

    #[cold]
    pub(crate) fn overlap(part: ObjectPart, start: u64, end: u64, other: ObjectPart) -> Self {
        let message = format!("COFF {part} at {start:#x}..{end:#x} overlaps the {other}");
        Self::new(ErrorKind::Malformed, message)
    }

    #[cold]
    pub(crate) fn field(
        format: &str,
        field: &str,
        offset: u64,
        found: u64,
        expected: &str,
    ) -> Self {
        let message = format!(
            "{format} header field {field} at {offset:#x} is {found:#x}, expected {expected}"
        );
        Self::new(ErrorKind::Malformed, message)
    }

    #[cold]
    pub(crate) fn unterminated(format: &str, part: ObjectPart, end: u64) -> Self {
        let message = format!("{format} {part} that ends at {end:#x} has no zero byte at its end");
        Self::new(ErrorKind::Malformed, message)
    }

    #[cold]
    pub(crate) fn too_large(format: &str, value: u64, limit: u64) -> Self {
        let message = format!(
            "cannot lay out the object: {value:#x} does not fit an offset or size of {format}, the limit is {limit:#x}"
        );
        Self::new(ErrorKind::Limit, message)
    }

    #[cold]
    pub(crate) fn entry_size(index: usize, expected: u64, found: u64) -> Self {
        let message =
            format!("contents of new section {index} have {found} bytes, {expected} were laid out");
        Self::new(ErrorKind::Contents, message)
    }

    #[cold]
    pub(crate) fn entry_count(expected: usize, found: usize) -> Self {
        let message = format!("contents for {found} new sections, {expected} were laid out");
        Self::new(ErrorKind::Contents, message)
    }

    /// Makes it an error of a member of an archive, whose data is there.
    pub(crate) fn in_member(self, at: u64) -> Self {
        let message = format!("member at {at:#x}: {self}");
        Self::new(self.kind(), message)
    }

    #[cold]
    pub(crate) fn archive_field(what: &str, value: u64, limit: u64) -> Self {
        let message = format!("{what} would be {value}, exceeding the archive's limit of {limit}");
        Self::new(ErrorKind::Limit, message)
    }

    #[cold]
    pub(crate) fn still_referenced(format: &str, section: u64, by: ObjectPart) -> Self {
        let message =
            format!("cannot remove section {section} of the {format} object: {by} refers to it");
        Self::new(ErrorKind::Refused, message)
    }
}

/// A part of an object file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ObjectPart {
    /// The header at its start.
    FileHeader,
    /// The program header table of an ELF file.
    ProgramHeaders,
    /// The table of section headers.
    SectionHeaders,
    /// The string table with the names of an ELF file's sections.
    SectionNames,
    /// The contents of a section. The number is its index, from 0 in ELF and WebAssembly and from 1 in COFF.
    Section(u64),
    /// The relocations of a COFF section, by its number.
    Relocations(u64),
    /// The line numbers of a COFF section, by its number.
    LineNumbers(u64),
    /// The symbol table of a COFF object.
    SymbolTable,
    /// The string table of a COFF object.
    StringTable,
    /// A segment of an ELF file.
    Segment,
}

impl fmt::Display for ObjectPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectPart::FileHeader => f.write_str("file header"),
            ObjectPart::ProgramHeaders => f.write_str("program header table"),
            ObjectPart::SectionHeaders => f.write_str("section header table"),
            ObjectPart::SectionNames => f.write_str("section name table"),
            ObjectPart::Section(number) => write!(f, "section {number}"),
            ObjectPart::Relocations(number) => write!(f, "relocation table of section {number}"),
            ObjectPart::LineNumbers(number) => write!(f, "line number table of section {number}"),
            ObjectPart::SymbolTable => f.write_str("symbol table"),
            ObjectPart::StringTable => f.write_str("string table"),
            ObjectPart::Segment => f.write_str("segment"),
        }
    }
}
