//! The walk over a zip file that lies in another package: it is held in memory.

use std::io::{self, Read};
use std::mem;
use std::ops::Deref;
use std::sync::Mutex;

use byte_parts::{Source, internal};

use super::delivery::{deliver, finish};
use super::{PackagePlace, Walker};
use crate::error::{Error, ErrorKind, FindingKind};
use crate::member::Member;
use crate::package::PackageKind;
use crate::reading::too_much;
use crate::visitor::Sink;
use crate::zip::{MOST_LIKELY, SCRIPT, Zip};

/// The most bytes of a program or a script in a package that are searched for a zip file at its end.
const MAX_PROGRAM: u64 = 64 << 20;
/// The most bytes of memory that are kept for later members.
const MAX_SPARE: usize = 64 << 20;
/// The fewest bytes of memory that are cleared at once.
const MIN_CLEARED: usize = 1 << 20;

impl Walker {
    /// Walks over a zip file that lies in another package. It is held in memory.
    pub(super) fn held_zip(
        &self,
        member: &Member,
        head: &[u8],
        contents: &mut dyn Read,
        inner: &PackagePlace,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let (bytes, is_all) = self.hold((member, u64::MAX), head, contents, inner.held, sink);
        let held = inner.held + bytes.len() as u64;
        let result = match is_all {
            Ok(true) => self.zip_of_bytes(
                member,
                &bytes,
                &PackagePlace { held, at: None, ..inner.clone() },
                sink,
            ),
            Ok(false) => {
                sink.hold(inner.held);
                let size = match member.size {
                    0 => String::new(),
                    size => format!(" of {size} bytes"),
                };
                let text = format!(
                    "a zip file{size} in another package exceeds the limit of {} bytes held",
                    self.max_held
                );
                let error = Error::new(ErrorKind::Limit, text);
                sink.finding(member.finding(FindingKind::Unread, error));
                deliver(member, &bytes, contents, sink)
            }
            Err(error) => finish(Err(error.into()), &member.path, sink),
        };
        drop(bytes);
        sink.hold(inner.held);
        result
    }

    /// Walks over the zip file after a program or a script that lies in another package; both are held in memory. The program is
    /// a member like others.
    pub(super) fn held_program(
        &self,
        member: &Member,
        head: &[u8],
        contents: &mut dyn Read,
        place: &PackagePlace,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let (bytes, is_all) = self.hold((member, MAX_PROGRAM), head, contents, place.held, sink);
        let held = place.held + bytes.len() as u64;
        match is_all {
            Ok(true) => {}
            Ok(false) => {
                sink.hold(place.held);
                return deliver(member, &bytes, contents, sink);
            }
            Err(error) => {
                sink.hold(place.held);
                let mut failed = Failed(Some(error));
                deliver(member, &bytes, &mut failed, sink)?;
                let unseen = failed.0.map_or(Ok(()), |error| Err(error.into()));
                return finish(unseen, &member.path, sink);
            }
        }
        let mut source = Source::of_bytes(&bytes);
        match Zip::behind_source(&mut source) {
            Ok(Some(zip)) if sink.package(&member.path, zip.kind()) => {
                let inner = PackagePlace {
                    path: member.path.clone(),
                    depth: place.depth + 1,
                    held,
                    at: None,
                };
                let delivered = if bytes.starts_with(SCRIPT) {
                    Ok(())
                } else {
                    let mut program = (&bytes[..]).take(zip.start());
                    deliver(&member.cut(zip.start()), &[], &mut program, sink)
                };
                let result =
                    delivered.and_then(|()| self.zip(&zip, zip.kind(), &mut source, &inner, sink));
                sink.leave(&result);
                sink.hold(place.held);
                return finish(result, &member.path, sink);
            }
            Ok(_) => {}
            Err(error) => finish(Err(error.while_reading("zip file")), &member.path, sink)?,
        }
        // The walk does not hold bytes that it hands over.
        sink.hold(place.held);
        deliver(member, &bytes, contents, sink)
    }

    /// Walks over a zip file in memory.
    fn zip_of_bytes(
        &self,
        member: &Member,
        bytes: &[u8],
        inner: &PackagePlace,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let mut source = Source::of_bytes(bytes);
        // A file may start like a zip file and be none.
        let Ok(zip) = Zip::read_source(&mut source, MOST_LIKELY) else {
            return deliver(member, bytes, &mut io::empty(), sink);
        };
        let kind = zip.kind();
        if !sink.package(&member.path, kind) {
            return deliver(member, bytes, &mut io::empty(), sink);
        }
        let result = self.zip(&zip, kind, &mut source, inner, sink);
        sink.leave(&result);
        finish(result, &member.path, sink)
    }

    /// Reads a member into memory; only some of it if it has more than `most` bytes, or more than may be held.
    /// Returns its bytes, and whether that is all. The caller gives back what is held.
    fn hold(
        &self,
        (member, most): (&Member, u64),
        head: &[u8],
        contents: &mut dyn Read,
        before: u64,
        sink: &mut dyn Sink,
    ) -> (Held<'_>, io::Result<bool>) {
        let mut held = Held::new(&self.spare);
        let mut is_full = held.fill(&mut &*head, head.len());
        // A compressed file does not say the size of its contents.
        let is_sized = member.package != PackageKind::Compressed;
        while matches!(is_full, Ok(true)) {
            let len = held.len as u64;
            let all = if is_sized { member.size.max(len) } else { 2 * len };
            let total = before.checked_add(all).filter(|total| *total <= self.max_held);
            let may_be = all <= most && total.is_some_and(|total| sink.hold(total));
            let all = usize::try_from(all).ok().filter(|all| may_be && held.reserve(*all));
            let Some(all) = all else { return (held, Ok(false)) };
            is_full = held.fill(contents, all);
            if is_sized {
                break;
            }
        }
        (held, is_full.map(|_| true))
    }
}

/// The bytes of a member in memory, which later members use again: the system needs time to find and clear it.
struct Held<'w> {
    /// At least as many bytes as the member has.
    bytes: Vec<u8>,
    len: usize,
    spare: &'w Mutex<Vec<u8>>,
}

impl<'w> Held<'w> {
    fn new(spare: &'w Mutex<Vec<u8>>) -> Self {
        // Another thread may have the lock, or have failed with it.
        let bytes =
            spare.try_lock().map_or_else(|_| Vec::new(), |mut spare| mem::take(&mut *spare));
        Held { bytes, len: 0, spare }
    }

    /// Returns whether there is memory for as many bytes.
    fn reserve(&mut self, all: usize) -> bool {
        all <= self.bytes.len() || self.bytes.try_reserve_exact(all - self.bytes.len()).is_ok()
    }

    /// Reads until there are `all` bytes; `false` if the reader ends before. Memory is cleared as it is needed, whatever
    /// size a header says.
    fn fill(&mut self, reader: &mut dyn Read, all: usize) -> io::Result<bool> {
        while self.len < all {
            if self.len == self.bytes.len() {
                self.bytes.resize(all.min(self.len + self.len.max(MIN_CLEARED)), 0);
            }
            let end = all.min(self.bytes.len());
            let free = self.bytes.get_mut(self.len..end);
            let free = free.ok_or_else(|| io::Error::other(internal!("more than was cleared")))?;
            let room = free.len();
            match reader.read(free) {
                Ok(0) => return Ok(false),
                Ok(read) if read > room => return Err(too_much()),
                Ok(read) => self.len += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

impl Deref for Held<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let (bytes, _cleared) = self.bytes.split_at(self.len);
        bytes
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Ok(mut spare) = self.spare.lock()
            && self.bytes.len() >= spare.len()
            && self.bytes.capacity() <= MAX_SPARE
        {
            mem::swap(&mut *spare, &mut self.bytes);
        }
    }
}

/// The end of a reader that failed.
struct Failed(Option<io::Error>);

impl Read for Failed {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}
