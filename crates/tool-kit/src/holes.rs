//! Holes in files: pages of zeros that take no space on a disk.

use std::fs::File;
use std::ops::Range;

#[cfg(target_os = "linux")]
use byte_parts::Source;

#[cfg(target_os = "linux")]
use crate::positioned::Positioned;

/// Bytes of a page: the blocks of file systems are no larger, as a rule.
const PAGE: u64 = 4096;

/// Returns the whole pages in a range of a file.
fn pages(range: &Range<u64>) -> Option<Range<u64>> {
    let start = range.start.checked_next_multiple_of(PAGE)?;
    let end = range.end - range.end % PAGE;
    (start < end).then_some(start..end)
}

/// Returns the number of bytes that [`make`] takes out of a file.
#[must_use]
pub fn size(zeros: impl IntoIterator<Item = Range<u64>>) -> u64 {
    zeros.into_iter().filter_map(|range| pages(&range)).map(|pages| pages.end - pages.start).sum()
}

/// The most holes of a file that are looked for.
const MOST: usize = 1 << 20;

/// Returns the first holes of a file, in order; none if the system cannot list them. It moves the position of the file.
#[must_use]
pub fn of(file: &File) -> Vec<Range<u64>> {
    let mut holes = Vec::new();
    let Ok(len) = file.metadata().map(|metadata| metadata.len()) else { return holes };
    let mut at = 0;
    while holes.len() < MOST
        && let Some(start) = next_hole(file, at).filter(|&start| start < len)
    {
        let Some(end) = end_of_hole(file, start, len) else { break };
        at = end;
        holes.push(start..at);
    }
    holes
}

/// Makes holes of the whole pages in these ranges of a file if they are zeros: they read as before. A file system without
/// holes keeps the zeros.
pub fn make(file: &File, zeros: impl IntoIterator<Item = Range<u64>>) {
    for pages in zeros.into_iter().filter_map(|range| pages(&range)) {
        if !punch(file, &pages) {
            break;
        }
    }
}

/// Makes a hole of pages if they are zeros. Returns whether the file system has holes.
#[cfg(target_os = "linux")]
fn punch(file: &File, pages: &Range<u64>) -> bool {
    use rustix::fs::{FallocateFlags, fallocate};
    // The range may have been copied from a file that changed since, or whose holes the file system got wrong.
    if !are_zeros(file, pages) {
        return true;
    }
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(file, flags, pages.start, pages.end - pages.start).is_ok()
}

/// Returns the start of the next hole, which may be the end of the file.
#[cfg(target_os = "linux")]
fn next_hole(file: &File, at: u64) -> Option<u64> {
    rustix::fs::seek(file, rustix::fs::SeekFrom::Hole(at)).ok()
}

/// Returns the end of a hole in a file of this length; `None` if the system fails.
#[cfg(target_os = "linux")]
fn end_of_hole(file: &File, at: u64, len: u64) -> Option<u64> {
    use rustix::{fs, io::Errno};
    match fs::seek(file, fs::SeekFrom::Data(at)) {
        Ok(end) => Some(end),
        // No bytes are stored after it.
        Err(Errno::NXIO) => Some(len),
        Err(_) => None,
    }
}

/// Returns whether pages are zeros; `false` if they cannot be read.
#[cfg(target_os = "linux")]
fn are_zeros(file: &File, pages: &Range<u64>) -> bool {
    let file = Positioned::new(file);
    let end = Source::new(file).and_then(|mut file| file.skip_zeros(pages));
    end.is_ok_and(|end| end == pages.end)
}

#[cfg(not(target_os = "linux"))]
fn next_hole(_: &File, _: u64) -> Option<u64> {
    None
}

#[cfg(not(target_os = "linux"))]
fn end_of_hole(_: &File, _: u64, _: u64) -> Option<u64> {
    None
}

#[cfg(not(target_os = "linux"))]
fn punch(_: &File, _: &Range<u64>) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _, Write as _};

    use super::*;

    #[test]
    fn whole_pages_count() {
        let all = [0..4095, 1..8191, 1..8192, 4096..12_288, 5000..5000, 20_000..40_000];
        assert_eq!(
            all.iter().map(pages).collect::<Vec<_>>(),
            [None, None, Some(4096..8192), Some(4096..12_288), None, Some(20_480..36_864)]
        );
        assert_eq!(size(all), 4096 + 8192 + 16_384);
        assert_eq!(size(Some(u64::MAX - 4..u64::MAX)), 0);
    }

    #[test]
    fn a_file_reads_as_before() {
        let mut file = tempfile::tempfile().unwrap();
        let mut bytes = vec![7; 100_000];
        bytes[10_000..90_000].fill(0);
        file.write_all(&bytes).unwrap();
        // The first page of the second range is not zeros.
        make(&file, [10_000..90_000, 90_000..100_000]);
        let holes = of(&file);
        // Not every file system has holes.
        assert!(holes.is_empty() || holes == Vec::from_iter(Some(12_288..86_016)), "{holes:?}");
        let mut read = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut read).unwrap();
        assert!(read == bytes);
    }
}
