//! `ar` archives: GNU, BSD, COFF and thin.
//!
//! Read with the `object` crate, which knows all four, checks every bound and tells where members lie.

use std::io;
use std::ops::{ControlFlow, Range};

use object::read::archive::ArchiveFile;

use crate::budget::Budget;
use crate::containers::lossy;
use crate::error::Error;
use crate::host::with_object_reader;
use crate::model::{ContainerKind, Segment};
use crate::source::{Origin, Source};
use crate::walker::Walker;

const THIN_MAGIC: [u8; 8] = *b"!<thin>\n";

/// What opening a file costs, in bytes that could be read instead.
const OPENING: u64 = 4096;

struct Member {
    name: Vec<u8>,
    /// Offset in the archive, and size; `None` for a thin archive's member.
    range: Option<(u64, u64)>,
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
            let Some((start, size)) = member.range else {
                match self.thin_member(source, window.start, &member.name, name)? {
                    ControlFlow::Continue(()) => continue,
                    ControlFlow::Break(()) => return Ok(()),
                }
            };
            let end = start.saturating_add(size);
            if end > available {
                let error = Error::MemberBeyondEnd { name, start, end, available };
                return self.finding(source, window.start, error);
            }
            let inner = window.start + start..window.start + end;
            let segment = Segment::from_bytes(ContainerKind::Member, &member.name);
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
        name: &[u8],
        text: String,
    ) -> io::Result<ControlFlow<()>> {
        let mut reader = match self.visitor.open_thin_member(name) {
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
        self.add_file(&inner);
        let all = 0..inner.len();
        let segment = Segment::from_bytes(ContainerKind::Member, name);
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
        for member in archive.members() {
            let member = match member {
                Ok(member) => member,
                Err(error) => return (members, malformed(error)),
            };
            // Also of those that are passed over: looking for its end took as long.
            if !names.take(member.name().len() as u64) {
                return (members, Some(Error::TooManyNames { limit: names.limit() }));
            }
            // What `/` still starts after `object` took the known ones is some linker's private table.
            if member.name().starts_with(b"/") && !archive.is_thin() {
                continue;
            }
            members.push(Member {
                name: member.name().to_vec(),
                range: (!member.is_thin()).then(|| member.file_range()),
            });
        }
        (members, None)
    })
}
