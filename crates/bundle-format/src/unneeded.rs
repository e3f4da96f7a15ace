//! Images in a long file that a reader need not keep.

use alloc::vec::Vec;
use core::ops::Range;

use crate::binary::{Bundle, MAGIC};

/// Bundles in linked files start at pages.
const PAGE: usize = 4096;
/// The most bytes of the table of a bundle that is looked into.
const MOST_OF_TABLE: u64 = 1 << 20;
/// The bytes at the start and at the end of each image that are needed: its headers tell what it is.
const HEAD: u64 = PAGE as u64;
const TAIL: u64 = 4 * HEAD;
/// Smaller images are not worth a hole.
const LEAST: u64 = 64 << 10;

/// Finds images of uncompressed bundles that need not be kept of a file, while it is read chunk by chunk: they are most bytes of
/// large libraries. `chunk` starts at the place `start`, both at pages. Adds their ranges to `found`, in order, without their
/// heads and tails. They may reach beyond the chunk. An image is kept if `keeps` says so of its bundle entry ID.
///
/// Returns 0, or the number of bytes that are to be added to the chunk before it is looked into again: a table reaches out of it.
/// With `is_end` there are none.
///
/// ```
/// use bundle_format::{layout, unneeded};
///
/// let entries = [("hip-amdgcn-amd-amdhsa--gfx906", 1 << 20), ("hip-amdgcn-amd-amdhsa--gfx90a", 1 << 20)];
/// let images = [vec![1; 1 << 20], vec![2; 1 << 20]];
/// let file = layout(entries, 4096)?.to_vec(&[&images[0], &images[1]])?;
/// let mut found = Vec::new();
/// let missing = unneeded(&file[..4096], 0, false, &|id| id.ends_with(b"gfx90a"), &mut found);
/// assert_eq!(missing, 0);
/// assert_eq!(found, [8192..(1 << 20) + 4096 - 16384]);
/// # Ok::<(), bundle_format::Error>(())
/// ```
pub fn unneeded(
    chunk: &[u8],
    start: u64,
    is_end: bool,
    keeps: &dyn Fn(&[u8]) -> bool,
    found: &mut Vec<Range<u64>>,
) -> u64 {
    // No file has more bytes than 64 bits count.
    if start.checked_add(chunk.len() as u64).is_none() {
        return 0;
    }
    let mut at = 0;
    loop {
        let Some(table) = chunk.get(at..).filter(|rest| !rest.is_empty()) else { return 0 };
        let place = start + at as u64;
        if let Some(hole) = found.last().filter(|hole| hole.end > place) {
            // The end of an image is the start of the next, or near it.
            let past = (hole.end - start).checked_next_multiple_of(PAGE as u64);
            let Some(past) = past.and_then(|past| usize::try_from(past).ok()) else { return 0 };
            at = past;
            continue;
        }
        if table.starts_with(&MAGIC)
            && let Ok(needed) = Bundle::header_needed(table)
            && needed <= MOST_OF_TABLE
        {
            let there = table.len() as u64;
            if needed > there && !is_end {
                return (needed - there).next_multiple_of(PAGE as u64);
            }
            add_images(table, place, keeps, found);
        }
        at += PAGE;
    }
}

/// Adds the images of a bundle at a place that are not kept, in order.
fn add_images(
    table: &[u8],
    place: u64,
    keeps: &dyn Fn(&[u8]) -> bool,
    found: &mut Vec<Range<u64>>,
) {
    // So the sums of the place and of offsets that were checked are numbers.
    let Ok(bundle) = Bundle::parse_prefix(table, u64::MAX - place) else { return };
    let last = found.last().map_or(0, |hole| hole.end);
    let mut after = last.max(place + bundle.header_len());
    let mut images: Vec<(u64, u64, bool)> =
        bundle.entries().map(|entry| (entry.offset(), entry.size(), keeps(entry.id()))).collect();
    images.sort_unstable();
    for (offset, size, is_kept) in images {
        let start = place + offset;
        let end = start + size;
        if is_kept {
            after = after.max(end);
        } else if size > HEAD + TAIL {
            // Images may overlap.
            let hole = after.max(start + HEAD)..end - TAIL;
            if hole.end.checked_sub(hole.start).is_some_and(|len| len >= LEAST) {
                after = hole.end;
                found.push(hole);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec;

    use super::*;
    use crate::layout;

    /// Returns a bundle with an image of each size.
    fn bundle(sizes: &[u64]) -> Vec<u8> {
        let names: Vec<_> =
            (0..sizes.len()).map(|n| format!("hip-amdgcn-amd-amdhsa--gfx90{n}")).collect();
        let images: Vec<Vec<u8>> =
            (1..).zip(sizes).map(|(n, size)| vec![n; usize::try_from(*size).unwrap()]).collect();
        let layout = layout(names.iter().map(|name| &**name).zip(sizes.iter().copied()), 4096);
        let inputs: Vec<_> = images.iter().map(|image| &image[..]).collect();
        layout.unwrap().to_vec(&inputs).unwrap()
    }

    /// Looks into a file in chunks of this many pages.
    fn holes(file: &[u8], pages: usize, keeps: &dyn Fn(&[u8]) -> bool) -> Vec<Range<u64>> {
        let (mut found, mut at) = (Vec::new(), 0);
        while at < file.len() {
            let mut end = file.len().min(at + pages * PAGE);
            loop {
                let (chunk, is_end) = (&file[at..end], end == file.len());
                match unneeded(chunk, at as u64, is_end, keeps, &mut found) {
                    0 => break,
                    missing => end = file.len().min(end + usize::try_from(missing).unwrap()),
                }
            }
            at = end;
        }
        found
    }

    #[test]
    fn images_that_nobody_wants_are_found() {
        let sizes = [200_000, 3_000_000, 100, 5_000_000];
        let mut file = vec![7; 3 * PAGE];
        file.extend(bundle(&sizes));
        file.extend(vec![8; 1_500_001]);
        file.resize(file.len().next_multiple_of(PAGE), 9);
        file.extend(bundle(&[1, 2_000_000]));
        for (end, wanted) in [("x", &[][..]), ("1", &[1]), ("3", &[3])] {
            let keeps = |id: &[u8]| id.ends_with(end.as_bytes());
            let found = holes(&file, 256, &keeps);
            assert_eq!(found, holes(&file, 1, &keeps));
            for hole in &found {
                let range =
                    usize::try_from(hole.start).unwrap()..usize::try_from(hole.end).unwrap();
                let number = file[range.start];
                assert!(file[range].iter().all(|&byte| byte == number), "{hole:?}");
                assert!((1..=4).contains(&number) && !wanted.contains(&(number - 1)), "{hole:?}");
            }
            let found: u64 = found.iter().map(|hole| hole.end - hole.start).sum();
            let most: u64 =
                (0..4).filter(|n| !wanted.contains(n)).map(|n| sizes[usize::from(n)]).sum();
            assert!(found > most - 4 * (HEAD + TAIL) - LEAST, "{end} {found} {most}");
        }
    }

    #[test]
    fn tables_at_the_end_of_a_chunk_are_asked_for() {
        let mut file = vec![7; 255 * PAGE];
        file.extend(bundle(&[500_000; 99]));
        assert_eq!(holes(&file, 256, &|_| false).len(), 99);
        // Its table is cut off.
        file.truncate(256 * PAGE);
        assert!(holes(&file, 256, &|_| false).is_empty());
    }
}
