//! The scan of what nothing accounts for in a host file: containers in sections for other data, and outside of all
//! sections; and of files of no format that is read, which have no sections.
//!
//! Magics alone prove nothing: programs that deal with these formats have them among their constants. Headers and
//! tables of each candidate are parsed, inside its section, before a visitor sees any of it.

use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::sync::OnceLock;
use std::vec;

use aho_corasick::packed::Searcher;
use byte_parts::{Budget, Window};
use device_code::FileFormat;

use crate::bare::is_device_elf;
use crate::compressed::read_bundle;
use crate::containers;
use crate::context::Context;
use crate::error::{Error, ErrorKind};
use crate::loose::Loose;
use crate::model::{ContainerKind, PathStep};
use crate::opened::{Children, Finds, Opened, Walked};
use crate::ranges::Ranges;
use crate::section::Section;
use crate::sequence::One;
use crate::source::{Source, lend};

/// The first bytes of images, and of a file system.
const IMAGES: &[&[u8]] = &[
    b"\x7fELF",
    // With a byte of the version.
    b"\x03\x02\x23\x07\0",
    b"\x07\x23\x02\x03\0",
    PTX,
    b"DXBC",
    b"MTLB",
    b"hsqs",
];

/// The first directive of PTX, which only comments may precede ("PTX ISA", "Module Directives").
const PTX: &[u8] = b".version";

/// The first bytes of a candidate, which tell most of the wrong ones.
const HEAD_LEN: usize = 96;

/// Bytes read at a time from a source that is not in memory.
const PIECE: u64 = 256 << 10;

/// Bytes that may be read of candidates that are none: a quarter of the file, and as many as these.
const REJECTED_AT_LEAST: u64 = 16 << 20;
const BYTES_FOR_EACH_REJECTED: u64 = 4;

/// The containers in all bytes of a file that nothing accounts for. Sections and gaps count from its start.
pub(crate) struct Scan {
    window: Range<u64>,
    sections: Rc<[Section]>,
    /// Positions of those inside the file, in its order.
    order: Vec<usize>,
    gaps: vec::IntoIter<Range<u64>>,
    gap: Range<u64>,
    /// The place where the search continues.
    at: u64,
    /// The end of what was found last.
    free: u64,
    /// The start of that place.
    found: u64,
    scanner: Scanner,
    rejected: Budget,
}

impl Scan {
    pub(crate) fn new(window: Range<u64>, walked: &Ranges, sections: Rc<[Section]>) -> Self {
        let available = window.end - window.start;
        let mut order: Vec<_> = (0..sections.len()).collect();
        let range = |&index: &usize| sections.get(index).map(|section| section.range.clone());
        order.retain(|index| range(index).is_some_and(|range| range.end <= available));
        order.sort_by_key(|index| range(index).map(|range| range.start));
        let allowed = available / BYTES_FOR_EACH_REJECTED + REJECTED_AT_LEAST;
        let gaps: Vec<_> = walked.gaps(available).collect();
        Scan {
            window,
            sections,
            order,
            gaps: gaps.into_iter(),
            gap: 0..0,
            at: 0,
            free: 0,
            found: 0,
            scanner: Scanner::default(),
            rejected: Budget::new(allowed),
        }
    }

    /// Scans a file without sections.
    pub(crate) fn of_file(window: Range<u64>) -> Self {
        Self::new(window, &Ranges::default(), Rc::new([]))
    }

    /// Returns the section that holds this byte.
    fn section_at(&self, at: u64) -> Option<&Section> {
        let section = |&index: &usize| self.sections.get(index);
        let starts = |index: &usize| section(index).is_some_and(|s| s.range.start <= at);
        let after = self.order.partition_point(starts);
        let section = section(self.order.get(after.checked_sub(1)?)?)?;
        section.range.contains(&at).then_some(section)
    }

    /// Goes to the next gap; returns `false` if there is none.
    fn next_gap(&mut self) -> bool {
        let Some(gap) = self.gaps.next() else { return false };
        self.gap = self.window.start + gap.start..self.window.start + gap.end;
        (self.at, self.free) = (self.gap.start, self.gap.start);
        true
    }

    /// Returns the container found, with the name of its section.
    fn opened(
        cx: &Context<'_>,
        source: &mut Source<'_>,
        window: Range<u64>,
        format: FileFormat,
        section: Option<&Section>,
    ) -> io::Result<Opened> {
        let step = match section {
            Some(section) => {
                let name = format!("{} at {:#x}", section.name, window.start);
                PathStep::new(ContainerKind::Section, name)
            }
            None => PathStep::new(ContainerKind::OutsideSections, format!("{:#x}", window.start)),
        };
        let kind = step.kind();
        let entered = match format {
            FileFormat::CompressedBundle => window.start..stored_end(cx, source, &window)?,
            _ => window.clone(),
        };
        let step = step.found_by_scan();
        Ok(match format {
            format if containers::of(format).is_some() => {
                Opened::here(step, entered, One::new(window, format))
            }
            format => Opened::here(step, entered, Loose { kind, window, format }),
        })
    }
}

impl Children for Scan {
    fn next(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Source<'_>,
        found: &mut Finds,
    ) -> io::Result<bool> {
        let base = self.window.start;
        let Some(at) = self.scanner.next(source, &(self.at..self.gap.end))? else {
            return Ok(self.next_gap());
        };
        let section = self.section_at(at - base);
        let end = section.map_or(self.gap.end, |s| self.gap.end.min(base + s.range.end));
        let before = section.map_or(self.free, |s| self.free.max(base + s.range.start));
        let candidate = Candidate { window: at..end, before };
        match sound(source, &candidate, &mut self.rejected)? {
            Verdict::Sound(FileFormat::Squashfs, range) => {
                let format = FileFormat::Squashfs;
                found.finding(base, Error::embedded(format, at - base));
                self.at = range.end.max(at + 1);
                self.free = self.at;
            }
            Verdict::Sound(format, range) => {
                let next = range.end.max(at + 1);
                found.container(Self::opened(
                    cx,
                    source,
                    range,
                    format,
                    self.section_at(at - base),
                )?);
                (self.found, self.at, self.free) = (at, next, next);
            }
            Verdict::Rejected => self.at = at + 1,
            Verdict::Unknown => {
                let at = at - base;
                let message = format!(
                    "the scan for containers stopped at {at:#x}: too many bytes look like the start of one"
                );
                found.finding(base, Error::new(ErrorKind::Limit, message));
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn left(&mut self, walked: Walked) {
        if let Some(end) = walked.end {
            self.at = end.max(self.found + 1);
            self.free = self.at;
        }
    }
}

/// Returns the end of a compressed bundle. Version 1 records no size: its stream is decoded here to find its end, and
/// again by the walk, which counts the result. If it has no end, only its header is certain.
fn stored_end(cx: &Context<'_>, source: &mut Source<'_>, window: &Range<u64>) -> io::Result<u64> {
    let head = source.peek(window, HEAD_LEN)?;
    let Ok(header) = ccob::Header::parse(&head, window.end - window.start) else {
        return Ok(window.end);
    };
    if header.total_size().is_some() {
        return Ok(window.end);
    }
    let options = ccob::ReadOptions::default().with_verify_hash(false);
    let options = options.with_max_decompressed(cx.decompression_budget());
    let outcome = read_bundle(source, window, None, &options)?;
    let stored = outcome.map_or(header.header_len() as u64, |decompressed| decompressed.consumed);
    Ok(window.start + stored)
}

/// Bytes that start with a magic.
struct Candidate {
    /// From the magic to where it ends at the latest.
    window: Range<u64>,
    /// The earliest start: text may have comments before its magic.
    before: u64,
}

/// A candidate, after a look at its headers.
enum Verdict {
    /// Its kind, and its place.
    Sound(FileFormat, Range<u64>),
    Rejected,
    /// Too many were rejected before.
    Unknown,
}

/// Returns whether bytes that start with a magic are a container, according to all of its headers.
fn sound(
    source: &mut Source<'_>,
    candidate: &Candidate,
    rejected: &mut Budget,
) -> io::Result<Verdict> {
    let window = &candidate.window;
    if rejected.left() == 0 {
        return Ok(Verdict::Unknown);
    }
    let head = source.peek(window, HEAD_LEN)?;
    let available = window.end - window.start;
    let mut read = head.len() as u64;
    if head.starts_with(PTX) {
        let text = image(source, candidate, &head, FileFormat::Ptx, &mut read)?;
        return Ok(verdict(text.map(|range| (FileFormat::Ptx, range)), rejected, read));
    }
    let format = FileFormat::sniff(&head);
    let size = match containers::of(format).and_then(|row| row.size) {
        Some(size) => size(source, window, &head, &mut read)?,
        None if format == FileFormat::Squashfs => squashfs(&head, available),
        None if is_image(format) => {
            let range = image(source, candidate, &head, format, &mut read)?;
            return Ok(verdict(range.map(|range| (format, range)), rejected, read));
        }
        None => None,
    };
    let place = |size: u64| window.start..window.start + size.min(available);
    Ok(verdict(size.map(|size| (format, place(size))), rejected, read))
}

fn is_image(format: FileFormat) -> bool {
    is_device_elf(format)
        || matches!(format, FileFormat::SpirV | FileFormat::DirectX | FileFormat::MetalLibrary)
}

/// Returns the place of a device image whose end only its own bytes show.
fn image(
    source: &mut Source<'_>,
    candidate: &Candidate,
    head: &[u8],
    format: FileFormat,
    read: &mut u64,
) -> io::Result<Option<Range<u64>>> {
    let before = candidate.before;
    let candidate = device_code::Candidate::new(candidate.window.clone(), head).with_before(before);
    lend(source, |source| device_code::extent(source, &candidate, format, read))
}

fn verdict(found: Option<(FileFormat, Range<u64>)>, rejected: &mut Budget, read: u64) -> Verdict {
    let Some((format, range)) = found else {
        rejected.spend(read);
        return Verdict::Rejected;
    };
    Verdict::Sound(format, range)
}

/// The size of a superblock of squashfs.
const SUPERBLOCK: u64 = 96;

/// Returns the size of a squashfs file system, according to its superblock: the size of its blocks and its logarithm agree, and it has
/// the version 4.0.
fn squashfs(head: &[u8], available: u64) -> Option<u64> {
    let two = |at: usize| head.get(at..)?.first_chunk().copied().map(u16::from_le_bytes);
    let block: u32 = head.get(12..)?.first_chunk().copied().map(u32::from_le_bytes)?;
    let size: u64 = head.get(40..)?.first_chunk().copied().map(u64::from_le_bytes)?;
    let is_sound = block.is_power_of_two()
        && u32::from(two(22)?) == block.trailing_zeros()
        && (two(28)?, two(30)?) == (4, 0);
    // Only the superblock is certain where the size is not there.
    is_sound.then_some(if size <= available { size } else { SUPERBLOCK })
}

/// Returns whether a squashfs file system fills a window, according to its superblock.
pub(crate) fn is_squashfs(head: &[u8], available: u64) -> bool {
    squashfs(head, available).is_some_and(|size| size > SUPERBLOCK)
}

/// Returns the first bytes of what the scan finds.
fn magics() -> impl Iterator<Item = &'static [u8]> {
    let containers = containers::ALL.iter().filter(|row| row.size.is_some());
    containers.map(|row| row.magic).chain(IMAGES.iter().copied())
}

/// Returns the length of the shortest and the longest magic.
fn lengths() -> (u64, u64) {
    let lengths = magics().map(|magic| magic.len() as u64);
    lengths.fold((u64::MAX, 0), |(shortest, longest), len| (shortest.min(len), longest.max(len)))
}

/// Finds magics, from one to the next.
#[derive(Default)]
struct Scanner {
    /// A part of a source that is not in memory, and where it starts.
    piece: Vec<u8>,
    start: u64,
}

impl Scanner {
    /// Returns the bytes of a range, if they are held.
    fn held(&self, range: &Range<u64>) -> Option<&[u8]> {
        let index = |at: u64| usize::try_from(at.checked_sub(self.start)?).ok();
        self.piece.get(index(range.start)?..index(range.end)?)
    }

    /// Returns the first magic in `window`, which lies in no part that was scanned before.
    fn next(&mut self, source: &mut Source<'_>, window: &Range<u64>) -> io::Result<Option<u64>> {
        if let Some(bytes) = source.bytes(window) {
            return Ok(find(bytes).map(|at| window.start + at as u64));
        }
        let (shortest, longest) = lengths();
        let mut at = window.start;
        while Window::new(&(at..window.end)).len() >= shortest {
            let end = window.end.min(self.start + self.piece.len() as u64);
            let bytes = self.held(&(at..end));
            let Some(bytes) = bytes.filter(|_| window.end.min(at + longest) <= end) else {
                self.piece.clear();
                self.start = at;
                let end = at + PIECE.min(window.end - at);
                source.append_range(&(at..end), &mut self.piece)?;
                continue;
            };
            if let Some(found) = find(bytes) {
                return Ok(Some(at + found as u64));
            }
            if end == window.end {
                break;
            }
            // One may start in the last bytes.
            at = (end - (longest - 1)).max(at + 1);
        }
        Ok(None)
    }
}

/// Returns the position of the first magic.
fn find(bytes: &[u8]) -> Option<usize> {
    static SEARCHER: OnceLock<Option<Searcher>> = OnceLock::new();
    match SEARCHER.get_or_init(|| Searcher::new(magics())) {
        Some(searcher) => searcher.find(bytes).map(|found| found.start()),
        // Where there are no vector instructions for it.
        None => (0..bytes.len()).find(|&at| {
            let (_, rest) = bytes.split_at(at);
            magics().any(|magic| rest.starts_with(magic))
        }),
    }
}
