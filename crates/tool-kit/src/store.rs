//! The bytes of a member of a package: where they lie in the package, in memory, or in a file without a name, which lies in
//! memory where the system can do that. Bytes that nobody needs are not kept.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::iter;
use std::ops::Range;
use std::sync::Arc;

use byte_parts::{Source, internal};

use crate::budget::Account;
use crate::opened::Opened;
use crate::positioned::{Holes, Positioned};
use crate::remote::Remote;
use crate::scratch;
use crate::stop::Stop;

/// Bytes that are read at a time.
const CHUNK: usize = 1 << 20;
/// The contents of temporary files here.
const MEMBER: &str = "a member of a package";
/// The most bytes that are held in memory; more go to a temporary file.
const MOST_IN_MEMORY: u64 = 1 << 30;
/// The most bytes of a file in memory that is kept for a later member.
const MOST_SPARE: u64 = 128 << 20;

/// The bytes that are kept.
#[derive(Clone, Copy)]
pub enum Keep<'k> {
    /// All, in a file of their own.
    File,
    /// All.
    All,
    /// The ranges that are needed.
    Needed(&'k dyn Gaps),
}

impl Keep<'_> {
    /// Does something with the bytes that are kept; `None` if more of them are needed: then once more, with all.
    pub fn or_all<T, E: From<String>>(
        self,
        mut work: impl FnMut(Keep<'_>) -> Result<Option<T>, E>,
    ) -> Result<T, E> {
        if let Some(done) = work(self)? {
            return Ok(done);
        }
        work(Keep::All)?.ok_or_else(|| TOO_SMALL.to_owned().into())
    }
}

/// The error of work that needs more than all bytes.
pub const TOO_SMALL: &str = "more of a member is needed than was kept";

/// Tells which bytes of a file are not needed, while it is read.
pub trait Gaps: Sync {
    /// Adds the ranges of bytes that are not needed to `found`, in order, as the bytes of a chunk at the place `start` tell. They
    /// may reach beyond the chunk. Returns 0, or how many bytes are to be added to the chunk before it is looked into again,
    /// unless `is_end` says that there are none.
    fn find(&self, chunk: &[u8], start: u64, is_end: bool, found: &mut Vec<Range<u64>>) -> u64;
}

impl fmt::Debug for Keep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Keep::File => "File",
            Keep::All => "All",
            Keep::Needed(_) => "Needed",
        })
    }
}

/// The bytes of a member.
#[derive(Debug)]
pub struct Store {
    bytes: Bytes,
    holes: Holes,
    stop: Stop,
}

#[derive(Debug)]
enum Bytes {
    /// In a file that is open, as they are.
    Within(Arc<Opened>, Range<u64>),
    /// A small member.
    Memory(Vec<u8>),
    /// With the size; bytes of an earlier member may follow.
    File(File, u64),
}

impl Store {
    /// Returns a member that lies in the file of a package as it is.
    pub fn within(file: Arc<Opened>, place: Range<u64>) -> Self {
        Store::new(Bytes::Within(file, place), Holes::default())
    }

    /// Reads a member to its end. `head` is its start, which was read already.
    ///
    /// # Errors
    ///
    /// Errors of the reader, and of a full disk; `FileTooLarge` if more bytes are to be kept than may be held.
    pub fn read(
        head: &[u8],
        contents: &mut dyn Read,
        keep: Keep<'_>,
        held: &mut Account<'_>,
    ) -> io::Result<Self> {
        let mut contents = head.chain(contents);
        let mut chunk = Vec::new();
        contents.by_ref().take(CHUNK as u64).read_to_end(&mut chunk)?;
        if chunk.len() < CHUNK && !matches!(keep, Keep::File) {
            hold(held, chunk.len() as u64)?;
            return Ok(Store::new(Bytes::Memory(chunk), Holes::default()));
        }
        let spare = if matches!(keep, Keep::File) { None } else { held.take_spare() };
        let file = spare.map_or_else(|| scratch::in_memory(MEMBER), Ok)?;
        let mut kept = Kept { file, is_in_memory: true, len: 0, held };
        let mut holes: Vec<Range<u64>> = Vec::new();
        let mut at = 0_u64;
        loop {
            let start = at;
            let is_last = chunk.len() < CHUNK;
            if let Keep::Needed(gaps) = keep {
                let mut is_end = is_last;
                loop {
                    let missing = gaps.find(&chunk, start, is_end, &mut holes);
                    let added = contents.by_ref().take(missing).read_to_end(&mut chunk)?;
                    if missing == 0 || is_end {
                        break;
                    }
                    is_end = (added as u64) < missing;
                }
            }
            at = start + chunk.len() as u64;
            kept.write(&chunk, start, &holes)?;
            if is_last {
                break;
            }
            // Whole chunks in a hole are not looked at.
            let next = holes.partition_point(|hole| hole.end <= at);
            if let Some(hole) = holes.get(next).filter(|hole| hole.start <= at) {
                let whole = (hole.end - at) / CHUNK as u64 * CHUNK as u64;
                let skipped = io::copy(&mut contents.by_ref().take(whole), &mut io::sink())?;
                at += skipped;
            }
            chunk.clear();
            contents.by_ref().take(CHUNK as u64).read_to_end(&mut chunk)?;
        }
        holes.iter_mut().for_each(|hole| hole.end = hole.end.min(at));
        holes.retain(|hole| hole.start < hole.end);
        if kept.file.metadata()?.len() < at || matches!(keep, Keep::File) {
            kept.file.set_len(at)?;
        }
        Ok(Store::new(Bytes::File(kept.file, at), Holes::new(holes)))
    }

    fn new(bytes: Bytes, holes: Holes) -> Self {
        Store { bytes, holes, stop: Stop::of_thread() }
    }

    /// Returns a reader of the member. It fails for bytes that were not kept.
    pub fn reader(&self) -> Positioned<'_> {
        match &self.bytes {
            Bytes::Within(opened, range) => opened.part(range),
            Bytes::Memory(bytes) => Positioned::of_bytes(bytes).until(&self.stop),
            Bytes::File(file, size) => {
                Positioned::with_holes(file, *size, &self.holes).until(&self.stop)
            }
        }
    }

    /// Returns the file of its own, whose holes are zeros.
    pub fn file(&self) -> Option<&File> {
        match &self.bytes {
            Bytes::File(file, _) => Some(file),
            Bytes::Within(..) | Bytes::Memory(_) => None,
        }
    }

    /// Gives the file to a later member: the system need not find memory for it again.
    pub fn reuse(self, held: &Account<'_>) -> io::Result<()> {
        match self.bytes {
            Bytes::File(file, size) if size <= MOST_IN_MEMORY => {
                if file.metadata()?.len() > MOST_SPARE {
                    file.set_len(MOST_SPARE)?;
                }
                held.keep_spare(file);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Fails if the file that it lies in was changed.
    pub fn check(&self) -> io::Result<()> {
        match &self.bytes {
            Bytes::Within(opened, _) => opened.check(),
            Bytes::Memory(_) | Bytes::File(..) => Ok(()),
        }
    }

    /// Returns the package on a server that it lies in as it is.
    pub fn remote(&self) -> Option<&Remote> {
        match &self.bytes {
            Bytes::Within(opened, _) => opened.remote(),
            Bytes::Memory(_) | Bytes::File(..) => None,
        }
    }

    /// Returns whether somebody asked for bytes that were not kept.
    pub fn was_too_small(&self) -> bool {
        self.holes.were_read()
    }

    /// Returns whether there are bytes that were not kept.
    pub fn has_holes(&self) -> bool {
        !self.holes.ranges().is_empty()
    }

    /// Returns the size of the member in bytes.
    pub fn size(&self) -> u64 {
        match &self.bytes {
            Bytes::Within(_, range) => range.end - range.start,
            Bytes::Memory(bytes) => bytes.len() as u64,
            Bytes::File(_, size) => *size,
        }
    }
}

/// A reader of a [`Store`] from its start.
#[derive(Debug)]
pub struct StoreReader {
    store: Arc<Store>,
    at: u64,
}

impl StoreReader {
    /// Creates a reader.
    pub fn new(store: Arc<Store>) -> Self {
        StoreReader { store, at: 0 }
    }
}

impl Read for StoreReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut reader = self.store.reader();
        reader.seek(SeekFrom::Start(self.at))?;
        let read = reader.read(buf)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Counts bytes that are kept.
fn hold(held: &mut Account<'_>, bytes: u64) -> io::Result<()> {
    if held.take(bytes) {
        return Ok(());
    }
    let text = format!("needs more than --max-decompressed={} bytes", held.limit());
    Err(io::Error::new(io::ErrorKind::FileTooLarge, text))
}

/// The bytes that are kept.
struct Kept<'h, 'b> {
    file: File,
    is_in_memory: bool,
    /// The number of bytes that are written.
    len: u64,
    held: &'h mut Account<'b>,
}

impl Kept<'_, '_> {
    /// Writes the bytes of a chunk at a place that lie in no hole.
    fn write(&mut self, chunk: &[u8], place: u64, holes: &[Range<u64>]) -> io::Result<()> {
        let end = place + chunk.len() as u64;
        let mut at = place;
        let first = holes.partition_point(|hole| hole.end <= place);
        let (_, holes) = holes.split_at(first);
        let source = Source::of_bytes(chunk);
        for hole in holes.iter().cloned().chain(iter::once(end..end)) {
            let part = at..hole.start.min(end);
            if part.start < part.end {
                let bytes = source.bytes(&(part.start - place..part.end - place));
                let outside = || io::Error::other(internal!("a part outside of its chunk"));
                self.write_part(bytes.ok_or_else(outside)?, part.start)?;
            }
            at = hole.end.max(at);
            if at >= end {
                break;
            }
        }
        Ok(())
    }

    fn write_part(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.len += bytes.len() as u64;
        hold(self.held, bytes.len() as u64)?;
        if self.is_in_memory && self.len > MOST_IN_MEMORY {
            let mut file = scratch::file(MEMBER)?;
            self.file.rewind()?;
            io::copy(&mut self.file, &mut file).map_err(|error| scratch::copying(MEMBER, error))?;
            (self.file, self.is_in_memory) = (file, false);
        }
        self.file.seek(SeekFrom::Start(at))?;
        self.file.write_all(bytes).map_err(|error| scratch::copying(MEMBER, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;

    /// Ranges that are not needed, and bytes that are asked for once.
    struct Known(Vec<Range<u64>>, u64);

    impl Gaps for Known {
        fn find(&self, chunk: &[u8], start: u64, is_end: bool, found: &mut Vec<Range<u64>>) -> u64 {
            assert_eq!(start % 4096, 0);
            if chunk.len() == CHUNK && start == 0 && !is_end {
                return self.1;
            }
            let end = start + chunk.len() as u64;
            let new = self.0.iter().filter(|hole| (start..end).contains(&hole.start));
            found.extend(new.cloned());
            0
        }
    }

    #[test]
    fn bytes_that_nobody_needs_are_holes() {
        let file: Vec<u8> = (0..5 * CHUNK + 9).map(|at| at.to_le_bytes()[1]).collect();
        let gaps = Known(vec![9000..80_000, CHUNK as u64 + 5..4 * CHUNK as u64 + 6], 8192);
        let budget = Budget::default();
        let read = |keep, limit| {
            let mut held = budget.account(limit);
            Store::read(&file[..64], &mut &file[64..], keep, &mut held)
        };
        let store = read(Keep::Needed(&gaps), 3 << 20).unwrap();
        assert_eq!((store.size(), store.holes.ranges()), (file.len() as u64, &gaps.0[..]));
        assert!(!store.was_too_small());
        for at in (0..file.len()).step_by(99) {
            let mut byte = [0];
            let mut reader = store.reader();
            reader.seek(SeekFrom::Start(at as u64)).unwrap();
            if gaps.0.iter().any(|hole| hole.contains(&(at as u64))) {
                assert!(reader.read(&mut byte).is_err());
            } else {
                assert_eq!((reader.read(&mut byte).unwrap(), byte[0]), (1, file[at]));
            }
        }
        assert!(store.was_too_small());
        let mut whole = Vec::new();
        read(Keep::All, 1 << 30).unwrap().reader().read_to_end(&mut whole).unwrap();
        assert!(whole == file);
        let error = read(Keep::All, 3 << 20).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn a_file_that_is_used_again_shows_nothing_of_the_member_before() {
        let budget = Budget::default();
        let mut held = budget.account(u64::MAX);
        for (keep, byte, size, is_spare) in [
            (Keep::All, 1, 5 * CHUNK, false),
            (Keep::Needed(&Known(Vec::new(), 0)), 2, 2 * CHUNK + 9, true),
            (Keep::File, 3, CHUNK, true),
            (Keep::All, 4, 7 * CHUNK - 1, true),
        ] {
            assert_eq!(
                budget.account(0).take_spare().map(|file| held.keep_spare(file)).is_some(),
                is_spare
            );
            let member = vec![byte; size];
            let store = Store::read(&member[..9], &mut &member[9..], keep, &mut held).unwrap();
            assert_eq!(store.size(), size as u64);
            let mut read = Vec::new();
            store.reader().read_to_end(&mut read).unwrap();
            assert!(read == member);
            if matches!(keep, Keep::File) {
                assert_eq!(store.file().unwrap().metadata().unwrap().len(), size as u64);
            } else {
                store.reuse(&held).unwrap();
            }
        }
    }
}
