//! `ar` archives: GNU, BSD, COFF and thin.
//!
//! Read with the `object` crate, which knows all four, checks every bound and tells where members lie.

use std::io;
use std::ops::Range;

use object::read::archive::ArchiveFile;

use crate::containers::lossy;
use crate::error::Error;
use crate::host::with_object_reader;
use crate::model::{ContainerKind, Segment};
use crate::source::{Origin, Source};
use crate::walker::Walker;

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
        let (members, fault) = members(source, window)?;
        let available = window.end - window.start;
        for member in members {
            let name = lossy(&member.name);
            let Some((start, size)) = member.range else {
                self.thin_member(source, window.start, &member.name, name)?;
                continue;
            };
            let end = start.saturating_add(size);
            if end > available {
                let error = Error::MemberBeyondEnd { name, start, end, available };
                return self.finding(source, window.start, error);
            }
            let inner = window.start + start..window.start + end;
            let segment = Segment::new(ContainerKind::Member, name);
            self.within(source, segment, &inner, None, |walker, source| {
                walker.contents(source, &inner).map(drop)
            })?;
        }
        match fault {
            Some(detail) => self.finding(source, window.start, Error::Archive { detail }),
            None => Ok(()),
        }
    }

    fn thin_member(
        &mut self,
        source: &mut Source<'_>,
        start: u64,
        name: &[u8],
        text: String,
    ) -> io::Result<()> {
        // A thin archive could name itself: one level is all that `ar` writes.
        let opened = match source.origin() {
            Origin::ThinMember => Err(io::Error::other("a thin archive in a thin archive")),
            _ => self.visitor.open_thin_member(name),
        };
        let mut reader = match opened {
            Ok(reader) => reader,
            Err(error) => {
                return self.finding(
                    source,
                    start,
                    Error::ThinMember { name: text, source: error },
                );
            }
        };
        let mut inner = Source::new(reader.as_mut(), Origin::ThinMember)?;
        let all = 0..inner.len();
        let segment = Segment::new(ContainerKind::Member, text);
        self.within(&mut inner, segment, &all, None, |walker, inner| {
            walker.contents(inner, &all).map(drop)
        })
    }
}

/// The members up to the first fault, and the fault.
fn members(
    source: &mut Source<'_>,
    window: &Range<u64>,
) -> io::Result<(Vec<Member>, Option<String>)> {
    with_object_reader(source, window, |data| {
        let mut members = Vec::new();
        let archive = match ArchiveFile::parse(data) {
            Ok(archive) => archive,
            Err(error) => return (members, Some(error.to_string())),
        };
        for member in archive.members() {
            match member {
                // What `/` still starts after `object` took the known ones is some linker's private table.
                Ok(member) if member.name().starts_with(b"/") && !archive.is_thin() => {}
                Ok(member) => members.push(Member {
                    name: member.name().to_vec(),
                    range: (!member.is_thin()).then(|| member.file_range()),
                }),
                Err(error) => return (members, Some(error.to_string())),
            }
        }
        (members, None)
    })
}
