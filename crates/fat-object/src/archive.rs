//! `ar` archives: GNU, BSD, COFF and thin.
//!
//! Read with the `object` crate, which knows all four, checks every bound and tells where members lie.

use std::io;
use std::ops::Range;
use std::vec;

use byte_parts::Budget;
use object::archive::Header;
use object::read::ReadRef;
use object::read::archive::{ArchiveFile, ArchiveMember};

use crate::context::Context;
use crate::error::{Error, ErrorKind};
use crate::model::{ContainerKind, PathStep};
use crate::opened::{Children, Content, Finds, Inner, Inside, Member, Opened};
use crate::source::{Origin, ReadSeek, Source};
use crate::text::{lossy, printable};

const THIN_MAGIC: [u8; 8] = *b"!<thin>\n";

/// The cost of opening a file, in bytes that could be read instead.
const OPENING: u64 = 4096;

/// The length of [`THIN_MAGIC`] and of the magic of other archives.
const MAGIC_LEN: u64 = 8;

/// COFF's archives start with three tables, and one more for ARM64EC.
const MAX_TABLES: usize = 4;

/// The members of an archive.
pub(crate) struct Members {
    window: Range<u64>,
    members: vec::IntoIter<Member>,
    fault: Option<Error>,
}

/// Opens the archive in the window.
pub(crate) fn open(
    cx: &mut Context<'_>,
    source: &mut Source<'_>,
    window: &Range<u64>,
) -> io::Result<Result<Members, Error>> {
    // It could name itself, however it is wrapped up: one level is all that `ar` writes.
    if cx.in_thin_member && source.peek(window, THIN_MAGIC.len())? == THIN_MAGIC {
        let message = "nested thin archive: members not opened";
        return Ok(Err(Error::new(ErrorKind::ThinMember, message)));
    }
    let (members, fault) = members(source, window, &mut cx.names)?;
    Ok(Ok(Members { window: window.clone(), members: members.into_iter(), fault }))
}

impl Children for Members {
    fn next(
        &mut self,
        _: &mut Context<'_>,
        _: &mut Source<'_>,
        found: &mut Finds,
    ) -> io::Result<bool> {
        let Some(member) = self.members.next() else {
            if let Some(error) = self.fault.take() {
                found.finding(self.window.start, error);
            }
            return Ok(false);
        };
        let Some(start) = member.start else {
            found.thin_member(member);
            return Ok(true);
        };
        let available = self.window.end - self.window.start;
        let end = start + member.size;
        if end > available {
            let error = member_beyond_end(&member.name, start..end, available);
            found.finding(self.window.start, error);
            return Ok(false);
        }
        let inner = self.window.start + start..self.window.start + end;
        let step = PathStep::from_bytes(ContainerKind::Member, &member.name);
        found.container(Opened::file(step, inner));
        Ok(true)
    }
}

/// Adds the file that a thin archive names. Returns `false` if no more of them may be opened.
pub(crate) fn thin_member(
    cx: &mut Context<'_>,
    member: &Member,
    file: io::Result<Box<dyn ReadSeek>>,
    found: &mut Finds,
) -> io::Result<bool> {
    let file = match file {
        Ok(file) => file,
        Err(error) => {
            let message = format!("cannot be read: {error}");
            found.finding(member.archive, of_thin_member(ErrorKind::ThinMember, member, &message));
            return Ok(true);
        }
    };
    let source = Source::new(file, Origin::ThinMember)?;
    let size = source.len();
    if !cx.thin_members.take(size.max(OPENING)) {
        let limit = cx.thin_members.limit();
        let message =
            format!("opening it ({size} bytes) would exceed the limit of {limit} bytes in total");
        found.finding(member.archive, of_thin_member(ErrorKind::Limit, member, &message));
        return Ok(false);
    }
    // The sum is within the limit, which `take` checked.
    cx.thin_size += size;
    if size != member.size {
        let message = format!("expected {} bytes, found {size}", member.size);
        found.finding(member.archive, of_thin_member(ErrorKind::ThinMemberSize, member, &message));
    }
    cx.add_file(&source);
    let content = Content::File(0..size);
    found.container(Opened {
        step: PathStep::from_bytes(ContainerKind::Member, &member.name),
        window: 0..size,
        compression: None,
        inside: Inside::Elsewhere(Inner { source, content, held: 0, hash: None }),
    });
    Ok(true)
}

/// Returns the members up to the first fault, and the fault.
fn members(
    source: &mut Source<'_>,
    window: &Range<u64>,
    names: &mut Budget,
) -> io::Result<(Vec<Member>, Option<Error>)> {
    source.with_headers(window, |data| {
        let mut members = Vec::new();
        let malformed = |error: object::read::Error| {
            Some(Error::new(ErrorKind::Archive, format!("malformed archive: {error}")))
        };
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
            // Also of names that are passed over: looking for its end took as long.
            if !names.take(member.name().len() as u64) {
                return (members, Some(Error::too_many_names(names.limit())));
            }
            if let Some(error) = not_a_name(&member) {
                return (members, Some(error));
            }
            // Other tables, which `object` does not know, are private to some linker.
            if is_table(&member) && !archive.is_thin() {
                continue;
            }
            members.push(Member {
                name: member.name().to_vec(),
                start: (!member.is_thin()).then(|| member.file_range().0),
                size: member.size(),
                archive: window.start,
            });
        }
        (members, None)
    })
}

/// Returns the problem of a symbol index or name table that exceeds the archive. `object` skips these even if no bytes
/// follow them.
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
            return Some(member_beyond_end(header.name.trim_ascii_end(), start..end, available));
        }
        at = end.checked_next_multiple_of(2)?;
    }
    None
}

/// Returns the problem of a malformed name. A reference to a name table is `/` and an offset, one to a name before the
/// contents `#1/` and a length. `object` takes a reference without a number for a name.
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
    (!sound).then(|| {
        let name = lossy(name.trim_ascii_end());
        let name = printable(&name);
        // A member that is a file of its own has no place.
        let header = member.file_range().0.checked_sub(size_of::<Header>() as u64);
        let place = header.map(|at| format!(" at {at:#x}")).unwrap_or_default();
        let message =
            format!("archive member{place}: expected a name or a reference to one, found {name}");
        Error::new(ErrorKind::Archive, message)
    })
}

#[cold]
fn member_beyond_end(name: &[u8], Range { start, end }: Range<u64>, available: u64) -> Error {
    let name = lossy(name);
    let name = printable(&name);
    let message = format!(
        "archive is cut short: member {name} needs bytes {start:#x}..{end:#x}, the archive ends at {available:#x}"
    );
    Error::new(ErrorKind::Archive, message)
}

#[cold]
fn of_thin_member(kind: ErrorKind, member: &Member, message: &str) -> Error {
    let name = lossy(&member.name);
    let name = printable(&name);
    Error::new(kind, format!("thin archive member {name}: {message}"))
}

/// Returns whether the name in the header starts with a slash and no digit follows, so that it does not refer to a long
/// name. Such a name may be an absolute path: `ar` stores such with its modifier `P`.
fn is_table(member: &ArchiveMember<'_>) -> bool {
    let name = member.header().map(|header| &header.name[..]);
    matches!(name, Some([b'/', second, ..]) if !second.is_ascii_digit())
}
