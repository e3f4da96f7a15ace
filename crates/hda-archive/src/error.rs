//! What can go wrong.

use std::io;

use fat_object::ListedFinding;

/// What is wrong with an archive, a member, or the calls made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input does not start as an `ar` archive does.
    #[error("not an ar archive (first bytes {first:02x?})")]
    NotAnArchive {
        /// The first bytes, at most eight.
        first: Vec<u8>,
    },
    /// The archive, or a member that holds bundles, is malformed or cut short.
    #[error("{finding}")]
    Damaged {
        /// Where and what: `member:a.o/ccob:0 at byte 0x44: ...`.
        finding: Box<ListedFinding>,
    },
    /// Something about one member.
    #[error("archive member \"{}\": {source}", member.escape_debug())]
    Member {
        /// The member's name; bytes that are not UTF-8 are replaced.
        member: String,
        /// What is wrong with it.
        source: Box<Error>,
    },
    /// An object file whose symbols cannot be read. An archive with it would have a wrong index.
    #[error("malformed {format} file: {detail}")]
    Object {
        /// `ELF`, `COFF`, `PE` or `Mach-O`.
        format: &'static str,
        /// What the reader of object files says.
        detail: String,
    },
    /// Symbols of an object file share the bytes of their names until these are a multiple of the file.
    #[error("the names of the symbols of the {format} file come to more than {limit} bytes")]
    TooManyNames {
        /// `ELF`, `COFF`, `PE` or `Mach-O`.
        format: &'static str,
        /// 16 bytes for each byte of the file.
        limit: usize,
    },
    /// The symbols of bitcode cannot be read.
    #[error(transparent)]
    Bitcode(#[from] llvm_bitcode::Error),
    /// The host object of a bundle cannot be taken out of it.
    #[error("the host object cannot be restored: {0}")]
    Restore(#[from] object_edit::EmbedError),
    /// A name that is empty, or has a line break or a NUL, would make another archive than meant.
    #[error("the name is empty, or has a line break or nul")]
    Name,
    /// The header of a member has ten digits for a size.
    #[error("{what} has {size} bytes, the ar format allows 9999999999")]
    TooLarge {
        /// `the member`, `the index of symbols` or `the table of names`.
        what: &'static str,
        /// Its size in bytes.
        size: u64,
    },
    /// An index without 64-bit offsets counts its symbols with 32 bits.
    #[error("the index of symbols has {count} entries, the ar format allows 4294967295")]
    TooManySymbols {
        /// Symbols of all members.
        count: u64,
    },
    /// A member of an archive of bundles is neither a bundle nor an object with sections of one.
    #[error("neither a bundle nor an object file with the sections of a bundle")]
    NotBundled,
    /// The input is not the one that the plan was made from.
    #[error("the file changed while it was read, at entry {entry}")]
    Changed {
        /// Position among the planned entries, from 0.
        entry: usize,
    },
    /// The input has no code for a target.
    #[error("no code for {}", target.escape_debug())]
    NoCode {
        /// The bundle entry ID of the target.
        target: Box<str>,
    },
    /// There must be a writer for every target.
    #[error("{found} writers for {expected} archives")]
    Writers {
        /// Archives that were planned.
        expected: usize,
        /// Writers given.
        found: usize,
    },
    /// Reading the input failed.
    #[error(transparent)]
    Read(io::Error),
    /// Writing an archive failed.
    #[error("writing archive {archive}: {source}")]
    Write {
        /// Position of the archive among those written, from 0.
        archive: usize,
        /// What writing returned.
        source: io::Error,
    },
}

impl Error {
    /// The same, saying in which member.
    pub(crate) fn in_member(self, name: &[u8]) -> Self {
        let member = String::from_utf8_lossy(name).into_owned();
        Error::Member { member, source: Box::new(self) }
    }
}

/// Errors of reading and writing come out as they are; others are [`InvalidData`](io::ErrorKind::InvalidData) or
/// [`InvalidInput`](io::ErrorKind::InvalidInput), with the [`Error`] inside.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Read(source) | Error::Write { source, .. } => source,
            Error::Name
            | Error::TooLarge { .. }
            | Error::TooManySymbols { .. }
            | Error::NotBundled
            | Error::Writers { .. }
            | Error::Member { .. } => io::Error::new(io::ErrorKind::InvalidInput, error),
            _ => io::Error::new(io::ErrorKind::InvalidData, error),
        }
    }
}
