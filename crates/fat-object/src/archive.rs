//! `ar` archives: GNU, BSD, COFF and thin.
//!
//! Read with the `object` crate, which knows all four, checks every bound and tells where members lie.

use std::io;
use std::ops::{ControlFlow, Range};

use byte_parts::Budget;
use object::archive::Header;
use object::read::ReadRef;
use object::read::archive::{ArchiveFile, ArchiveMember};

use crate::containers::lossy;
use crate::error::Error;
use crate::host::with_object_reader;
use crate::model::{ContainerKind, PathStep};
use crate::source::{Origin, Source};
use crate::walker::Walker;

const THIN_MAGIC: [u8; 8] = *b"!<thin>\n";

/// What opening a file costs, in bytes that could be read instead.
const OPENING: u64 = 4096;

/// The length of [`THIN_MAGIC`] and of the magic of other archives.
const MAGIC_LEN: u64 = 8;

/// COFF's archives start with three tables, and one more for ARM64EC.
const MAX_TABLES: usize = 4;

struct Member {
    name: Vec<u8>,
    /// Offset in the archive; `None` for a thin archive's member, which is a file of its own.
    start: Option<u64>,
    size: u64,
}

impl Walker<'_> {
    pub(crate) fn archive(
        &mut self,
        source: &mut Source<'_>,
        window: &Range<u64>,
    ) -> io::Result<()> {
        // It could name itself, however it is wrapped up: one level is all that `ar` writes.
        if self.in_thin_member && source.peek(window, THIN_MAGIC.len())? == THIN_MAGIC {
            return self.finding(source, window.start, Error::NestedThinArchive);
        }
        let (members, fault) = members(source, window, &mut self.names)?;
        let available = window.end - window.start;
        for member in members {
            let name = lossy(&member.name);
            let Some(start) = member.start else {
                match self.thin_member(source, window.start, &member, name)? {
                    ControlFlow::Continue(()) => continue,
                    ControlFlow::Break(()) => return Ok(()),
                }
            };
            let end = start.saturating_add(member.size);
            if end > available {
                let error = Error::MemberBeyondEnd { name, start, end, available };
                return self.finding(source, window.start, error);
            }
            let inner = window.start + start..window.start + end;
            let segment = PathStep::from_bytes(ContainerKind::Member, &member.name);
            self.within(source, segment, &inner, None, |walker, source| {
                walker.contents(source, &inner).map(drop)
            })?;
        }
        match fault {
            Some(error) => self.finding(source, window.start, error),
            None => Ok(()),
        }
    }

    /// Walks the file that a thin archive names. Breaks when no more of them may be opened.
    fn thin_member(
        &mut self,
        source: &mut Source<'_>,
        start: u64,
        member: &Member,
        text: String,
    ) -> io::Result<ControlFlow<()>> {
        let mut reader = match self.visitor.open_thin_member(&member.name) {
            Ok(reader) => reader,
            Err(error) => {
                let error = Error::ThinMember { name: text, source: error.into() };
                return self.finding(source, start, error).map(ControlFlow::Continue);
            }
        };
        let mut inner = Source::new(reader.as_mut(), Origin::ThinMember)?;
        if !self.thin_members.take(inner.len().max(OPENING)) {
            let limit = self.thin_members.limit();
            let error = Error::ThinMembersTooLarge { name: text, size: inner.len(), limit };
            return self.finding(source, start, error).map(ControlFlow::Break);
        }
        if inner.len() != member.size {
            let (expected, found) = (member.size, inner.len());
            self.finding(source, start, Error::ThinMemberSize { name: text, expected, found })?;
        }
        self.add_file(&inner);
        let all = 0..inner.len();
        let segment = PathStep::from_bytes(ContainerKind::Member, &member.name);
        self.in_thin_member = true;
        self.within(&mut inner, segment, &all, None, |walker, inner| {
            walker.contents(inner, &all).map(drop)
        })?;
        // In such a file there is no other.
        self.in_thin_member = false;
        Ok(ControlFlow::Continue(()))
    }
}

/// The members up to the first fault, and the fault.
fn members(
    source: &mut Source<'_>,
    window: &Range<u64>,
    names: &mut Budget,
) -> io::Result<(Vec<Member>, Option<Error>)> {
    with_object_reader(source, window, |data| {
        let mut members = Vec::new();
        let malformed =
            |error: object::read::Error| Some(Error::Archive { detail: error.to_string() });
        let archive = match ArchiveFile::parse(data) {
            Ok(archive) => archive,
            Err(error) => return (members, malformed(error)),
        };
        if let Some(error) = table_beyond_end(data, archive.is_thin()) {
            return (members, Some(error));
        }
        for member in archive.members() {
            let member = match member {
                Ok(member) => member,
                Err(error) => return (members, malformed(error)),
            };
            // Also of those that are passed over: looking for its end took as long.
            if !names.take(member.name().len() as u64) {
                return (members, Some(Error::TooManyNames { limit: names.limit() }));
            }
            if let Some(error) = not_a_name(&member) {
                return (members, Some(error));
            }
            // What is left of those after `object` took the known ones is some linker's private table.
            if is_table(&member) && !archive.is_thin() {
                continue;
            }
            members.push(Member {
                name: member.name().to_vec(),
                start: (!member.is_thin()).then(|| member.file_range().0),
                size: member.size(),
            });
        }
        (members, None)
    })
}

/// `object` passes over indexes of symbols and tables of names, also where they leave nothing behind them.
fn table_beyond_end<'d>(data: impl ReadRef<'d>, is_thin: bool) -> Option<Error> {
    const HEADER_LEN: u64 = size_of::<Header>() as u64;
    let available = data.len().ok()?;
    let mut at = MAGIC_LEN;
    for _ in 0..MAX_TABLES {
        let header = data.read_at::<Header>(at).ok()?;
        let is_table = match header.name {
            [b'/', second, ..] => !second.is_ascii_digit(),
            name => !is_thin && (name.starts_with(b"__.SYMDEF") || name.starts_with(b"#1/")),
        };
        if !is_table {
            return None;
        }
        let size = str::from_utf8(&header.size).ok()?.trim_end().parse::<u64>().ok()?;
        let start = at.checked_add(HEADER_LEN)?;
        let end = start.checked_add(size)?;
        if end > available {
            let name = lossy(header.name.trim_ascii_end());
            return Some(Error::MemberBeyondEnd { name, start, end, available });
        }
        at = end.checked_next_multiple_of(2)?;
    }
    None
}

/// Names in tables start with `/` and their offset, names in front of contents with `#1/` and their length. `object`
/// takes what has no number there for a name.
fn not_a_name(member: &ArchiveMember<'_>) -> Option<Error> {
    let name = &member.header()?.name;
    let sound = match name.split_at_checked(3) {
        // A file that is called `#1`.
        Some((b"#1/", rest)) => {
            rest.trim_ascii_end().is_empty() || rest.first().is_some_and(u8::is_ascii_digit)
        }
        Some(([b'/', second, _], _)) => matches!(second, b' ' | b'/' | b'<' | b'S' | b'0'..=b'9'),
        _ => true,
    };
    let offset = member.file_range().0.saturating_sub(size_of::<Header>() as u64);
    (!sound).then(|| Error::MemberName { name: lossy(name.trim_ascii_end()), offset })
}

/// Whether a slash starts the name in the header, and no digit follows, which would lead to a long name. That may be
/// a path from the root: `ar` stores such with its modifier `P`.
fn is_table(member: &ArchiveMember<'_>) -> bool {
    let name = member.header().map(|header| &header.name[..]);
    matches!(name, Some([b'/', second, ..]) if !second.is_ascii_digit())
}
