//! The reason why a section of an object cannot be added or removed.

use std::fmt;
use std::ops::Range;

use super::ErrorKind;

/// One fault of an object, or of what was to be added to it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ObjectProblem {
    Unsupported {
        format: &'static str,
    },
    ElfType {
        found: u16,
    },
    PeImage,
    MachO,
    NoSectionHeaders,
    NoSectionNames,
    BeyondEnd {
        format: &'static str,
        part: ObjectPart,
        start: u64,
        end: u64,
        available: u64,
    },
    Overlap {
        part: ObjectPart,
        start: u64,
        end: u64,
        other: ObjectPart,
    },
    Field {
        format: &'static str,
        field: &'static str,
        offset: u64,
        found: u64,
        expected: &'static str,
    },
    Unterminated {
        format: &'static str,
        part: ObjectPart,
        end: u64,
    },
    TooManySections {
        format: &'static str,
        found: u64,
        limit: u64,
    },
    TooLarge {
        format: &'static str,
        value: u64,
        limit: u64,
    },
    EntrySize {
        index: usize,
        expected: u64,
        found: u64,
    },
    EntryCount {
        expected: usize,
        found: usize,
    },
    SectionName {
        index: usize,
        offset: usize,
    },
    StillReferenced {
        format: &'static str,
        section: u64,
        by: ObjectPart,
    },
    OutOfMemory {
        size: u64,
    },
}

impl ObjectProblem {
    /// Returns the error about a part that should lie in `range` of the object.
    pub(crate) fn beyond_end(
        format: &'static str,
        object: &[u8],
        part: ObjectPart,
        range: &Range<u64>,
    ) -> Self {
        let available = object.len() as u64;
        ObjectProblem::BeyondEnd { format, part, start: range.start, end: range.end, available }
    }

    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            Self::Unsupported { .. } => ErrorKind::Format,
            Self::ElfType { .. }
            | Self::PeImage
            | Self::MachO
            | Self::NoSectionHeaders
            | Self::NoSectionNames => ErrorKind::Unsupported,
            Self::BeyondEnd { .. }
            | Self::Overlap { .. }
            | Self::Field { .. }
            | Self::Unterminated { .. } => ErrorKind::Malformed,
            Self::TooManySections { .. } | Self::TooLarge { .. } | Self::OutOfMemory { .. } => {
                ErrorKind::Limit
            }
            Self::EntrySize { .. } | Self::EntryCount { .. } | Self::SectionName { .. } => {
                ErrorKind::Contents
            }
            Self::StillReferenced { .. } => ErrorKind::Refused,
        }
    }
}

impl fmt::Display for ObjectProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported { format } => {
                write!(f, "cannot change sections: this is not possible in {format}")
            }
            Self::ElfType { found } => write!(
                f,
                "cannot change sections: the ELF file is of type {found}, which does not qualify"
            ),
            Self::PeImage => {
                f.write_str("cannot change sections: PE image, only COFF objects qualify")
            }
            Self::MachO => f.write_str("cannot change sections: Mach-O objects are not edited"),
            Self::NoSectionHeaders => {
                f.write_str("cannot change sections: the ELF object has no section header table")
            }
            Self::NoSectionNames => {
                f.write_str("cannot change sections: the ELF object has no table of section names")
            }
            Self::BeyondEnd { format, part, start, end, available } => write!(
                f,
                "{format} {part} lies at {start:#x}..{end:#x}, beyond the end of the object at {available:#x}"
            ),
            Self::Overlap { part, start, end, other } => {
                write!(f, "COFF {part} at {start:#x}..{end:#x} overlaps the {other}")
            }
            Self::Field { format, field, offset, found, expected } => write!(
                f,
                "{format} header field {field} at {offset:#x} is {found:#x}, expected {expected}"
            ),
            Self::Unterminated { format, part, end } => {
                write!(f, "{format} {part} that ends at {end:#x} has no zero byte at its end")
            }
            Self::TooManySections { format, found, limit } => write!(
                f,
                "cannot add sections: the {format} object has {found} sections, the limit is {limit}"
            ),
            Self::TooLarge { format, value, limit } => write!(
                f,
                "cannot lay out the object: {value:#x} does not fit an offset or size of {format}, the limit is {limit:#x}"
            ),
            Self::EntrySize { index, expected, found } => write!(
                f,
                "contents of new section {index} have {found} bytes, {expected} were laid out"
            ),
            Self::EntryCount { expected, found } => {
                write!(f, "contents for {found} new sections, {expected} were laid out")
            }
            Self::SectionName { index, offset } => {
                write!(f, "name of new section {index} has a zero byte at {offset}")
            }
            Self::StillReferenced { format, section, by } => write!(
                f,
                "cannot remove section {section} of the {format} object: {by} refers to it"
            ),
            Self::OutOfMemory { size } => write!(f, "no memory for an object of {size} bytes"),
        }
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
