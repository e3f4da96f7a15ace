//! The self-check: what a loader makes of the new file is what it made of the old one, but for what was to change.
//!
//! The new file is read as any other, through the parts that it consists of; what the editor meant to do is not asked.
//! Bytes that are the same bytes of the same file need no comparison, wherever the headers of the new file say that
//! they lie: of a large library little is read.

mod contents;
mod sections;
mod segments;

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use super::file::File;
use super::wrappers::{Wrapper, wrappers};
use crate::edit::EditError;
use crate::edit::splices::Splices;
use crate::source::{Origin, ReadSeek, Source};

/// Sections of device code have this name, or one that starts with it.
const DEVICE_SECTION: &[u8] = b".hip_fatbin";

/// Memory whose contents may differ, by address: the place of the device code, the program headers, the old and new
/// places of sections that moved, the dynamic section, wrappers, touched relocations and symbol tables.
#[derive(Debug, Default)]
pub(super) struct Allowed {
    pub(super) addresses: Vec<Range<u64>>,
}

impl Allowed {
    fn contains(&self, address: u64) -> bool {
        self.addresses.iter().any(|range| range.contains(&address))
    }

    /// The parts of `range` that are not allowed to differ.
    fn gaps(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let mut allowed: Vec<_> = self.addresses.iter().collect();
        allowed.sort_by_key(|range| range.start);
        let mut gaps = Vec::new();
        let mut at = range.start;
        for allowed in allowed {
            if at < allowed.start.min(range.end) {
                gaps.push(at..allowed.start.min(range.end));
            }
            at = at.max(allowed.end);
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
        gaps
    }
}

/// Both files.
struct Check<'a> {
    old: &'a File,
    new: &'a File,
    splices: &'a Splices,
    allowed: &'a Allowed,
}

/// Compares the file that `splices` are with the old one.
pub(super) fn check(
    source: &mut Source<'_>,
    old: &File,
    splices: &Splices,
    allowed: &Allowed,
) -> Result<(), EditError> {
    let registered = wrappers(source, old)?;
    let new = with_new(source, splices, |source| {
        let window = 0..source.len();
        let new = File::read(source, &window).map_err(|error| match error {
            super::file::ReadError::Read(error) => EditError::Read(error),
            _ => fault(0, "the headers cannot be read"),
        })?;
        registrations(source, old, &new, &registered)?;
        Ok(new)
    })?;
    let check = Check { old, new: &new, splices, allowed };
    segments::check(&check, source)?;
    sections::check(&check, source)
}

fn fault(address: u64, what: &'static str) -> EditError {
    EditError::SelfCheck { address, what }
}

/// Reads the new file.
fn with_new<T>(
    source: &mut Source<'_>,
    splices: &Splices,
    read: impl FnOnce(&mut Source<'_>) -> Result<T, EditError>,
) -> Result<T, EditError> {
    let mut input = Input { source, at: 0 };
    // New images lie inside bundles, which are not looked into.
    let mut images: [&mut dyn ReadSeek; 0] = [];
    let mut reader = splices.reader(&mut input, &mut images);
    read(&mut Source::new(&mut reader, Origin::File)?)
}

/// A [`Source`] as a reader.
struct Input<'a, 'r> {
    source: &'a mut Source<'r>,
    at: u64,
}

impl Read for Input<'_, '_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.source.read_at(self.at, buf)?;
        self.at = self.at.saturating_add(n as u64);
        Ok(n)
    }
}

impl Seek for Input<'_, '_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.source.len().checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        }
        .ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// As many bytes of a bundle as the HIP runtime reads to find the images of a plain one.
const READABLE: u64 = 4096;

/// That the same wrappers are there, and a bundle where each points to.
fn registrations(
    source: &mut Source<'_>,
    old: &File,
    new: &File,
    before: &[Wrapper],
) -> Result<(), EditError> {
    let after = wrappers(source, new)?;
    if !after.iter().map(|wrapper| wrapper.address).eq(before.iter().map(|old| old.address)) {
        let address = after.first().map_or(0, |wrapper| wrapper.address);
        return Err(fault(address, "other wrappers than before"));
    }
    let in_device_section = |file: &File, address: u64| {
        let sections = file.sections.iter().filter(|s| file.name(s).starts_with(DEVICE_SECTION));
        let mut ranges = sections.map(|s| s.addr.get()..s.addr.get().saturating_add(s.size.get()));
        ranges.any(|range| range.contains(&address))
    };
    let (mut moves, mut back) = (BTreeMap::new(), BTreeMap::new());
    for (before, after) in before.iter().zip(&after) {
        let Wrapper { address, bundle, .. } = *after;
        if *moves.entry(before.bundle).or_insert(bundle) != bundle
            || *back.entry(bundle).or_insert(before.bundle) != before.bundle
        {
            return Err(fault(address, "wrappers of one bundle point to two, or of two to one"));
        }
        if in_device_section(old, before.bundle) && !in_device_section(new, bundle) {
            return Err(fault(address, "the wrapper points outside the sections of device code"));
        }
        if std::mem::discriminant(&before.form) != std::mem::discriminant(&after.form) {
            return Err(fault(address, "the wrapper has another form of pointer"));
        }
        if matches!(after.form, super::wrappers::PointerForm::Unknown { .. }) {
            continue;
        }
        let offset =
            new.offset_of(bundle).ok_or(fault(address, "the wrapper points outside the file"))?;
        let magic = source.peek(&(offset..offset.saturating_add(24)), 24)?;
        if !magic.starts_with(b"CCOB") && magic != b"__CLANG_OFFLOAD_BUNDLE__" {
            return Err(fault(address, "the wrapper points to what is no bundle"));
        }
        if readable(new, bundle) < READABLE.min(readable(old, before.bundle)) {
            return Err(fault(address, "less than 4096 bytes can be read of the bundle"));
        }
    }
    Ok(())
}

/// How many bytes from an address on can be read from pages that have bytes of the file.
fn readable(file: &File, address: u64) -> u64 {
    let Some(load) = file.load_at(address) else { return 0 };
    let end = load.vaddr.get().saturating_add(load.filesz.get());
    let mut end = end.checked_next_multiple_of(READABLE).unwrap_or(end);
    for next in file.loads().filter(|next| next.vaddr.get() > address) {
        if next.vaddr.get() & !(READABLE - 1) <= end && next.flags == load.flags {
            end = end.max(next.vaddr.get().saturating_add(next.filesz.get()));
        }
    }
    end.saturating_sub(address)
}
