//! The bytes of a member of a package: where they lie in the package, in memory, or in a file without a name, which lies in
//! memory where the system can do that. Images that nobody asks for are not kept.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::Arc;

use bundle_format::Bundle;

use tool_kit::budget::Account;
use tool_kit::opened::Opened;
use tool_kit::positioned::{Holes, Positioned};
use tool_kit::scratch;

/// Bytes that are read at a time.
const CHUNK: usize = 1 << 20;
/// Bundles in linked files start at pages.
const PAGE: usize = 4096;
/// The most bytes of the table of a bundle that is looked into.
const MOST_OF_TABLE: u64 = 1 << 20;
/// The bytes at the start and at the end of each image that are kept: its headers tell what it is.
const HEAD: u64 = PAGE as u64;
const TAIL: u64 = 4 * HEAD;
/// Smaller images are not worth a hole.
const LEAST: u64 = 64 << 10;
/// The contents of temporary files here.
const MEMBER: &str = "a member of a package";
/// The most bytes that are held in memory; more go to a temporary file.
const MOST_IN_MEMORY: u64 = 1 << 30;
/// The most bytes of a file in memory that is kept for a later member.
const MOST_SPARE: u64 = 128 << 20;

/// The images whose bytes are kept. Images of uncompressed bundles can be left out, as they are most bytes of large libraries.
#[derive(Clone, Copy)]
pub(crate) enum Keep<'k> {
    /// All, in a file of their own.
    File,
    /// All.
    All,
    /// The headers of each image.
    Heads,
    /// Those with these bundle entry IDs.
    Images(&'k (dyn Fn(&str) -> bool + Sync)),
}

impl fmt::Debug for Keep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Keep::File => "File",
            Keep::All => "All",
            Keep::Heads => "Heads",
            Keep::Images(_) => "Images",
        })
    }
}

impl Keep<'_> {
    fn keeps(self, id: &[u8]) -> bool {
        match self {
            Keep::File | Keep::All => true,
            Keep::Heads => false,
            Keep::Images(keeps) => std::str::from_utf8(id).is_ok_and(keeps),
        }
    }
}

/// The bytes of a member.
#[derive(Debug)]
pub(crate) struct Store {
    bytes: Bytes,
    holes: Holes,
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
    pub(crate) fn within(file: Arc<Opened>, place: Range<u64>) -> Self {
        Store { bytes: Bytes::Within(file, place), holes: Holes::default() }
    }

    /// Reads a member to its end. `head` is its start, which was read already.
    ///
    /// # Errors
    ///
    /// Those of the reader, and of a full disk; `FileTooLarge` if more bytes are to be kept than may be held.
    pub(crate) fn read(
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
            return Ok(Store { bytes: Bytes::Memory(chunk), holes: Holes::default() });
        }
        let spare = if matches!(keep, Keep::File) { None } else { held.take_spare() };
        let file = spare.map_or_else(|| scratch::in_memory(MEMBER), Ok)?;
        let mut kept = Kept { file, is_in_memory: true, len: 0, held };
        let mut holes: Vec<Range<u64>> = Vec::new();
        let mut at = 0_u64;
        loop {
            let start = at;
            let is_last = chunk.len() < CHUNK;
            if !matches!(keep, Keep::File | Keep::All) {
                scan(&mut chunk, start, &mut contents, keep, &mut holes)?;
            }
            at = start.saturating_add(chunk.len() as u64);
            kept.write(&chunk, start, &holes)?;
            if is_last {
                break;
            }
            // Whole chunks in a hole are not looked at.
            let next = holes.partition_point(|hole| hole.end <= at);
            if let Some(hole) = holes.get(next).filter(|hole| hole.start <= at) {
                let whole = (hole.end - at) / CHUNK as u64 * CHUNK as u64;
                let skipped = io::copy(&mut contents.by_ref().take(whole), &mut io::sink())?;
                at = at.saturating_add(skipped);
            }
            chunk.clear();
            contents.by_ref().take(CHUNK as u64).read_to_end(&mut chunk)?;
        }
        holes.iter_mut().for_each(|hole| hole.end = hole.end.min(at));
        holes.retain(|hole| hole.start < hole.end);
        if kept.file.metadata()?.len() < at || matches!(keep, Keep::File) {
            kept.file.set_len(at)?;
        }
        let holes = Holes::new(holes);
        Ok(Store { bytes: Bytes::File(kept.file, at), holes })
    }

    /// Returns a reader of the member. It fails for bytes that were not kept.
    pub(crate) fn reader(&self) -> Positioned<'_> {
        match &self.bytes {
            Bytes::Within(opened, range) => Positioned::of_range(&opened.file, range),
            Bytes::Memory(bytes) => Positioned::of_bytes(bytes),
            Bytes::File(file, size) => Positioned::with_holes(file, *size, &self.holes),
        }
    }

    /// Returns the file of its own, whose holes are zeros.
    pub(crate) fn file(&self) -> Option<&File> {
        match &self.bytes {
            Bytes::File(file, _) => Some(file),
            Bytes::Within(..) | Bytes::Memory(_) => None,
        }
    }

    /// Gives the file to a later member: the system need not find memory for it again.
    pub(crate) fn reuse(self, held: &Account<'_>) -> io::Result<()> {
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
    pub(crate) fn check(&self) -> io::Result<()> {
        match &self.bytes {
            Bytes::Within(opened, _) => opened.check(),
            Bytes::Memory(_) | Bytes::File(..) => Ok(()),
        }
    }

    /// Returns whether somebody asked for bytes that were not kept.
    pub(crate) fn was_too_small(&self) -> bool {
        self.holes.were_read()
    }

    /// Returns whether there are bytes that were not kept.
    pub(crate) fn has_holes(&self) -> bool {
        !self.holes.ranges().is_empty()
    }

    /// Returns the size of the member in bytes.
    pub(crate) fn size(&self) -> u64 {
        match &self.bytes {
            Bytes::Within(_, range) => range.end - range.start,
            Bytes::Memory(bytes) => bytes.len() as u64,
            Bytes::File(_, size) => *size,
        }
    }
}

/// A reader of a [`Store`] from its start.
#[derive(Debug)]
pub(crate) struct StoreReader {
    store: Arc<Store>,
    at: u64,
}

impl StoreReader {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        StoreReader { store, at: 0 }
    }
}

impl Read for StoreReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut reader = self.store.reader();
        reader.seek(SeekFrom::Start(self.at))?;
        let read = reader.read(buf)?;
        self.at = self.at.saturating_add(read as u64);
        Ok(read)
    }
}

/// Finds the images in the bundles of a chunk, and after it, that are not kept. The chunk becomes longer if a table reaches out
/// of it.
fn scan(
    chunk: &mut Vec<u8>,
    start: u64,
    contents: &mut dyn Read,
    keep: Keep<'_>,
    holes: &mut Vec<Range<u64>>,
) -> io::Result<()> {
    let mut at = 0;
    loop {
        let place = start.saturating_add(at as u64);
        if let Some(hole) = holes.last().filter(|hole| hole.end > place) {
            // The end of an image is the start of the next, or near it.
            let past = usize::try_from(hole.end - start).unwrap_or(usize::MAX);
            at = past.saturating_add(PAGE - 1) / PAGE * PAGE;
        }
        let place = start.saturating_add(at as u64);
        let Some(rest) = chunk.get(at..).filter(|rest| !rest.is_empty()) else { return Ok(()) };
        if rest.starts_with(&bundle_format::MAGIC)
            && let Ok(needed) = Bundle::header_needed(rest)
            && needed <= MOST_OF_TABLE
        {
            // Chunks start at pages.
            let missing = needed.saturating_sub(rest.len() as u64).next_multiple_of(PAGE as u64);
            contents.take(missing).read_to_end(chunk)?;
            let table = chunk.get(at..).unwrap_or_default();
            let found = holes_of(table, place, keep, holes.last());
            holes.extend(found);
        }
        at += PAGE;
    }
}

/// Returns the images of a bundle at a place that are not kept, in order, without their ends.
fn holes_of(
    table: &[u8],
    place: u64,
    keep: Keep<'_>,
    last: Option<&Range<u64>>,
) -> Vec<Range<u64>> {
    let Ok(bundle) = Bundle::parse_prefix(table, u64::MAX - place) else { return Vec::new() };
    let mut after = last.map_or(0, |hole| hole.end).max(place.saturating_add(bundle.header_len()));
    let mut images: Vec<(u64, u64, bool)> = bundle
        .entries()
        .map(|entry| (entry.offset(), entry.size(), keep.keeps(entry.id())))
        .collect();
    images.sort_unstable();
    let mut holes = Vec::new();
    for (offset, size, is_kept) in images {
        let start = place.saturating_add(offset);
        let end = start.saturating_add(size);
        // Images may overlap.
        let hole = start.saturating_add(HEAD).max(after)..end.saturating_sub(TAIL);
        if is_kept {
            after = after.max(end);
        } else if hole.start.saturating_add(LEAST) <= hole.end {
            after = hole.end;
            holes.push(hole);
        }
    }
    holes
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
        let end = place.saturating_add(chunk.len() as u64);
        let mut at = place;
        let first = holes.partition_point(|hole| hole.end <= place);
        let ends = Some(end..end);
        for hole in holes.get(first..).unwrap_or_default().iter().cloned().chain(ends) {
            let part = at..hole.start.min(end);
            if part.start < part.end {
                let [from, to] = [part.start, part.end]
                    .map(|at| usize::try_from(at - place).unwrap_or(usize::MAX));
                self.write_part(chunk.get(from..to).unwrap_or_default(), part.start)?;
            }
            at = hole.end.max(at);
            if at >= end {
                break;
            }
        }
        Ok(())
    }

    fn write_part(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.len = self.len.saturating_add(bytes.len() as u64);
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
    use tool_kit::budget::Budget;

    /// Returns a bundle with an image of each size.
    fn bundle(sizes: &[u64]) -> Vec<u8> {
        let names: Vec<_> =
            (0..sizes.len()).map(|n| format!("hip-amdgcn-amd-amdhsa--gfx90{n}")).collect();
        let images: Vec<Vec<u8>> =
            (1..).zip(sizes).map(|(n, size)| vec![n; usize::try_from(*size).unwrap()]).collect();
        let layout = bundle_format::layout(
            names.iter().map(|name| &**name).zip(sizes.iter().copied()),
            4096,
        );
        let inputs: Vec<_> = images.iter().map(|image| &image[..]).collect();
        layout.unwrap().to_vec(&inputs).unwrap()
    }

    #[test]
    fn images_that_nobody_wants_are_holes() {
        let mut file = vec![7; 3 * PAGE];
        file.extend(bundle(&[200_000, 3_000_000, 100, 5_000_000]));
        file.extend(vec![8; 1_500_001]);
        file.resize(file.len().next_multiple_of(PAGE), 9);
        file.extend(bundle(&[1, 2_000_000]));
        for (keep, wanted) in [
            (Keep::All, &[0, 1, 2, 3][..]),
            (Keep::Heads, &[]),
            (Keep::Images(&|id| id.ends_with('1')), &[1]),
            (Keep::Images(&|id| id.ends_with('3')), &[3]),
        ] {
            let budget = Budget::default();
            let mut held = budget.account(u64::MAX);
            let store = Store::read(&file[..64], &mut &file[64..], keep, &mut held).unwrap();
            assert_eq!(store.size(), file.len() as u64);
            let is_hole =
                |at: usize| store.holes.ranges().iter().any(|hole| hole.contains(&(at as u64)));
            let mut whole = Vec::new();
            if wanted.len() == 4 {
                store.reader().read_to_end(&mut whole).unwrap();
                assert!(whole == file);
                continue;
            }
            assert!(store.reader().read_to_end(&mut whole).is_err() && store.was_too_small());
            for at in (0..file.len()).step_by(99) {
                let mut byte = [0];
                let mut reader = store.reader();
                reader.seek(SeekFrom::Start(at as u64)).unwrap();
                match is_hole(at) {
                    true => {
                        assert!(reader.read(&mut byte).is_err());
                        assert!((1..=4).contains(&file[at]), "{at}");
                        assert!(!wanted.contains(&(file[at] - 1)), "{at}");
                    }
                    false => assert_eq!((reader.read(&mut byte).unwrap(), byte[0]), (1, file[at])),
                }
            }
            let kept: u64 = store.holes.ranges().iter().map(|hole| hole.end - hole.start).sum();
            let sizes = [200_000, 3_000_000, 100, 5_000_000];
            let most =
                (0..4).filter(|n| !wanted.contains(n)).map(|n| sizes[usize::from(n)]).sum::<u64>();
            assert!(kept > most - 4 * (HEAD + TAIL) - LEAST, "{keep:?} {kept} {most}");
        }
    }

    #[test]
    fn a_file_that_is_used_again_shows_nothing_of_the_member_before() {
        let budget = Budget::default();
        let mut held = budget.account(u64::MAX);
        for (keep, byte, size, is_spare) in [
            (Keep::All, 1, 5 * CHUNK, false),
            (Keep::Heads, 2, 2 * CHUNK + 9, true),
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

    #[test]
    fn tables_at_the_end_of_a_chunk_are_read() {
        let mut file = vec![7; CHUNK - PAGE];
        file.extend(bundle(&[500_000; 9]));
        let budget = Budget::default();
        let read = |keep, limit| {
            let mut held = budget.account(limit);
            Store::read(&[], &mut &file[..], keep, &mut held)
        };
        assert_eq!(read(Keep::Heads, 1 << 30).unwrap().holes.ranges().len(), 9);
        assert!(read(Keep::All, 1 << 30).unwrap().holes.ranges().is_empty());
        let error = read(Keep::All, 5_000_000).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(read(Keep::Heads, 5_000_000).is_ok());
    }
}
