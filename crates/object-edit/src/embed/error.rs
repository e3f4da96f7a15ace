//! Why sections cannot be added to an object file or removed from it.

use std::ops::Range;
use std::{fmt, io};

/// Why [`embed`](crate::embed), [`Embedding`](crate::Embedding), [`ObjectBundle`](crate::ObjectBundle) or
/// [`remove_bundle_sections`](crate::remove_bundle_sections) refuses an object file. Offsets count from its
/// start.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// No object file of a format that this is possible in: packages can be embedded in ELF and COFF objects, as
    /// clang does it; bundles can be in Mach-O objects and WebAssembly modules, too.
    #[error("cannot change sections: this is not possible in {format}")]
    Unsupported {
        /// The format of the file, by its first bytes; `unknown` if no host file starts so.
        format: &'static str,
    },
    /// An ELF executable or shared object, in which no package can be embedded any more, or a core file.
    #[error("cannot change sections: the ELF file is of type {found}, which does not qualify")]
    ElfType {
        /// `e_type` of the ELF header.
        found: u16,
    },
    /// A PE executable or library.
    #[error("cannot change sections: PE image, only COFF objects qualify")]
    PeImage,
    /// A Mach-O executable or library.
    #[error(
        "cannot change sections: Mach-O file of type {found}, only relocatable objects (type 1) qualify"
    )]
    MachOType {
        /// `filetype` of the Mach-O header.
        found: u32,
    },
    /// A Mach-O object without a segment, which is where sections are.
    #[error("cannot change sections: the Mach-O object has no segment")]
    NoSegment,
    /// A load command of a Mach-O object may hold offsets, but is not known.
    #[error(
        "cannot change sections: Mach-O load command {index} at {offset:#x} is of the unknown kind {command:#x}"
    )]
    LoadCommand {
        /// Position among the load commands, from 0.
        index: u64,
        /// `cmd` of the load command.
        command: u32,
        /// Offset of the load command.
        offset: u64,
    },
    /// A part of a Mach-O object lies where it cannot be moved together with its neighbours.
    #[error("{format} {part} lies at {start:#x}..{end:#x}, expected {expected}")]
    Misplaced {
        /// `Mach-O`.
        format: &'static str,
        /// Which part.
        part: ObjectPart,
        /// Offset of its first byte.
        start: u64,
        /// Offset of its end; `u64::MAX` stands for everything above, too.
        end: u64,
        /// Where it should lie.
        expected: &'static str,
    },
    /// An ELF file without section headers.
    #[error("cannot change sections: the ELF object has no section header table")]
    NoSectionHeaders,
    /// An ELF file whose sections have no names (`e_shstrndx` is 0).
    #[error("cannot change sections: the ELF object has no table of section names")]
    NoSectionNames,
    /// A part of the object lies beyond its end: the file is cut short or damaged.
    #[error(
        "{format} {part} lies at {start:#x}..{end:#x}, beyond the end of the object at {available:#x}"
    )]
    BeyondEnd {
        /// `ELF`, `COFF`, `Mach-O` or `WebAssembly`.
        format: &'static str,
        /// Which part.
        part: ObjectPart,
        /// Offset of its first byte.
        start: u64,
        /// Offset of its end; `u64::MAX` stands for everything above, too.
        end: u64,
        /// Length of the object.
        available: u64,
    },
    /// Two parts of a COFF object share bytes, so that it cannot be told what has to move.
    #[error("COFF {part} at {start:#x}..{end:#x} overlaps the {other}")]
    Overlap {
        /// One of the two.
        part: ObjectPart,
        /// Offset of its first byte.
        start: u64,
        /// Offset of its end.
        end: u64,
        /// The other.
        other: ObjectPart,
    },
    /// A header field has a value that no tool writes.
    #[error("{format} header field {field} at {offset:#x} is {found:#x}, expected {expected}")]
    Field {
        /// `ELF`, `COFF`, `Mach-O` or `WebAssembly`.
        format: &'static str,
        /// Name of the field in the specification.
        field: &'static str,
        /// Offset of the header or field.
        offset: u64,
        /// The value found.
        found: u64,
        /// What it should be.
        expected: &'static str,
    },
    /// The table that takes the name of the new section does not end with a zero byte.
    #[error("{format} {part} that ends at {end:#x} has no zero byte at its end")]
    Unterminated {
        /// `ELF`, `COFF`, `Mach-O` or `WebAssembly`.
        format: &'static str,
        /// The table.
        part: ObjectPart,
        /// Offset of its end.
        end: u64,
    },
    /// The object has as many sections as its format can number.
    #[error("cannot add sections: the {format} object has {found} sections, the limit is {limit}")]
    TooManySections {
        /// `ELF`, `COFF`, `bigobj COFF` or `Mach-O`.
        format: &'static str,
        /// Number of sections.
        found: u64,
        /// The largest number of sections.
        limit: u64,
    },
    /// With the section added, an offset or size would not fit its field.
    #[error(
        "cannot lay out the object: {value:#x} does not fit an offset or size of {format}, the limit is {limit:#x}"
    )]
    TooLarge {
        /// `ELF`, `COFF`, `Mach-O` or `WebAssembly`.
        format: &'static str,
        /// The offset or size; `u64::MAX` stands for everything above, too.
        value: u64,
        /// The largest possible one.
        limit: u64,
    },
    /// The contents have another size than the one that was laid out.
    #[error("contents of the new section have {found} bytes, {expected} were laid out")]
    ContentsSize {
        /// The size that was laid out.
        expected: u64,
        /// The size found; one more than expected stands for everything above.
        found: u64,
    },
    /// The contents of one of several new sections have another size than the one that was laid out.
    #[error("contents of new section {index} have {found} bytes, {expected} were laid out")]
    EntrySize {
        /// Which of the new sections, from 0.
        index: usize,
        /// The size that was laid out.
        expected: u64,
        /// The size found; one more than expected stands for everything above.
        found: u64,
    },
    /// There are fewer or more contents than sections that were laid out.
    #[error("contents for {found} new sections, {expected} were laid out")]
    EntryCount {
        /// How many sections were laid out.
        expected: usize,
        /// How many contents there are; one more than expected stands for everything above.
        found: usize,
    },
    /// A bundle entry ID has a zero byte, which would end the name of its section.
    #[error(
        "bundle entry ID {index} has a zero byte at {offset}, which a section name cannot hold"
    )]
    EntryId {
        /// Which of the new sections, from 0.
        index: usize,
        /// Offset of the zero byte in the ID.
        offset: usize,
    },
    /// A bundle entry ID is empty, which a binary bundle cannot hold. Mach-O objects have one.
    #[error("bundle entry ID {index} is empty, which the bundle of a Mach-O object cannot hold")]
    EmptyEntryId {
        /// Which of the entries, from 0.
        index: usize,
    },
    /// A section would be removed, but a part that stays refers to it: a symbol in it, a relocation of it, a
    /// group it is in.
    #[error("cannot remove section {section} of the {format} object: {by} refers to it")]
    StillReferenced {
        /// `ELF`, `COFF`, `Mach-O` or `WebAssembly`.
        format: &'static str,
        /// Its number, from 0 in ELF and WebAssembly and from 1 in COFF and Mach-O.
        section: u64,
        /// What refers to it.
        by: ObjectPart,
    },
    /// The result does not fit into memory.
    #[error("no memory for an object of {size} bytes")]
    OutOfMemory {
        /// Size of the result in bytes.
        size: u64,
    },
}

impl EmbedError {
    /// For a part that should lie in `range` of the object.
    pub(super) fn beyond_end(
        format: &'static str,
        object: &[u8],
        part: ObjectPart,
        range: &Range<u64>,
    ) -> Self {
        let available = object.len() as u64;
        EmbedError::BeyondEnd { format, part, start: range.start, end: range.end, available }
    }
}

/// [`InvalidInput`](io::ErrorKind::InvalidInput) if it is about what was to be written,
/// [`OutOfMemory`](io::ErrorKind::OutOfMemory), and else [`InvalidData`](io::ErrorKind::InvalidData). The error itself is
/// inside.
impl From<EmbedError> for io::Error {
    fn from(error: EmbedError) -> Self {
        let kind = match error {
            EmbedError::ContentsSize { .. }
            | EmbedError::EntrySize { .. }
            | EmbedError::EntryCount { .. }
            | EmbedError::EntryId { .. }
            | EmbedError::EmptyEntryId { .. } => io::ErrorKind::InvalidInput,
            EmbedError::OutOfMemory { .. } => io::ErrorKind::OutOfMemory,
            _ => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, error)
    }
}

/// A part of an object file that an [`EmbedError`] is about.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ObjectPart {
    /// The header at its start.
    FileHeader,
    /// The program header table of an ELF file.
    ProgramHeaders,
    /// The table of section headers.
    SectionHeaders,
    /// The string table with the names of an ELF file's sections.
    SectionNames,
    /// The contents of a section. The number is its index, from 0 in ELF and WebAssembly and from 1 in COFF and
    /// Mach-O.
    Section(u64),
    /// The relocations of a COFF or Mach-O section, by its number.
    Relocations(u64),
    /// The line numbers of a COFF section, by its number.
    LineNumbers(u64),
    /// The symbol table of a COFF or Mach-O object.
    SymbolTable,
    /// The string table of a COFF or Mach-O object.
    StringTable,
    /// The load commands of a Mach-O object.
    LoadCommands,
    /// What a load command of a Mach-O object names, by the position of the command, from 0.
    LoadCommand(u64),
    /// The segment of a Mach-O object, or one of an ELF file.
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
            ObjectPart::LoadCommands => f.write_str("load commands"),
            ObjectPart::LoadCommand(index) => write!(f, "table of load command {index}"),
            ObjectPart::Segment => f.write_str("segment"),
        }
    }
}
